"""Who is to blame for a start that ended badly, and what it costs the others."""

import math
from types import SimpleNamespace

import pytest

from commodel.measure import sweep as subject
from commodel.measure.starts import Start
from commodel.measure.sweep import Sweep, _not_the_cases_fault, sweep
from commodel.results.unmeasured import finished


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
    assert _not_the_cases_fault(tmp_path / "log", 1, "b") == innocent
    assert _not_the_cases_fault(tmp_path / "log", 1, "")
    assert _not_the_cases_fault(tmp_path / "log", 2, "b")


@pytest.mark.parametrize(("number", "given_up"), [(0, set("abcde")), (1, set("abc"))])
def test_three_failures_in_a_row_cost_no_samples_of_earlier_passes(tmp_path, monkeypatch, number, given_up):
    """A program that is brought down by every case: of those it never came to, d and e have samples of pass 1."""
    rig = SimpleNamespace(folder=tmp_path, passes=2, how=SimpleNamespace(argv=list, end=None, settings=lambda user: {}))
    rig.hosts_of = lambda start: []
    rig.pass_folder = lambda number: tmp_path / f".pass-{number + 1}"
    rig.log = lambda start: tmp_path / "log"
    for path in map(rig.pass_folder, range(2)):
        path.mkdir()
    for case in "de" if number else "":
        (rig.pass_folder(0) / f"{case}.csv").touch()
    left = []

    def dies(argv, log, watch, settings):
        (rig.pass_folder(number) / ".now").write_text(left[-1].ids[0])
        log.write_text("player.c:80: it died\n")
        return 1, ""

    monkeypatch.setattr(subject, "run", dies)
    monkeypatch.setattr(subject, "prepare", lambda rig, start, number: left.append(start) or ())
    start = Start("player", 2, "block:2", (), tuple({"id": case} for case in "abcde"))
    this = Sweep(rig, SimpleNamespace(number=1, starts_on=tuple, sign_of_life=tuple), 1.0, math.inf)
    assert sweep(this, start, number)
    assert finished(tmp_path)[1] == given_up
    assert len(left) == 3
