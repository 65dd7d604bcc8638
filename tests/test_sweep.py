"""Who is to blame for a start that ended badly: its log tells."""

import pytest

from commodel.sweep import _innocent


@pytest.mark.parametrize(
    ("said", "innocent"),
    [
        ("player.c:80: MPI_Waitall failed", False),
        ("slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-21T12:00:00 ***", False),  # a rank died
        ("slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-21T12:00:00 DUE TO TIME LIMIT ***", True),
        ("slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-21T12:00:00 DUE TO PREEMPTION ***", True),
        ("srun: error: Node failure on n1", True),
        ("error: no-such-file: cannot open", True),
    ],
)
def test_a_case_is_not_to_blame_for_what_happens_to_its_nodes(tmp_path, said, innocent):
    (tmp_path / "log").write_text(f"case 1/2 a median 1 us\n{said}\n")
    assert _innocent(tmp_path / "log", 1, "b") == innocent
    assert _innocent(tmp_path / "log", 1, "")
    assert _innocent(tmp_path / "log", 2, "b")
