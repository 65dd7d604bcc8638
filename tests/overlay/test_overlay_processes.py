"""The section on the processes of an overlay network: counts of each pass, their sum, and refused
counts."""

from types import SimpleNamespace

import pandas as pd
import pytest

from commodel.errors import UserError
from commodel_overlay.process_counts import COLUMNS, join_counts, read_counts
from commodel_overlay.report_section import make_sections

PASS = """depth,processes,packets_up,packets_down,bytes_up,bytes_down,waves,filter_seconds,cpu_seconds,round_trip
0,1,10,20,400,800,10,1e-3,2e-3,0
1,2,20,0,800,0,0,0,3e-3,5e-6
"""


@pytest.fixture
def study(tmp_path):
    """Return a study with two passes of case `a` of an overlay, and case `b`, which has no
    counts."""
    raw = tmp_path / "raw"
    raw.mkdir()
    for number in range(2):
        (tmp_path / f"pass{number}").mkdir()
        (tmp_path / f"pass{number}" / "a.levels").write_text(PASS)
    batches = [SimpleNamespace(name="one", platform="p", ids=["a", "b"])]
    plan = SimpleNamespace(batches=batches, platforms={"p": SimpleNamespace(simulated=False)})
    rows = {
        "id": ["a", "b"],
        "kind": "point",
        "name": ["reduce", "ring"],
        "settings": ["bytes=8", ""],
    }
    summary = pd.DataFrame(rows)
    passes = [tmp_path / f"pass{number}" for number in range(3)]
    inputs = SimpleNamespace(plan=plan, results=SimpleNamespace(raw=lambda _: raw), raw=summary)
    return SimpleNamespace(inputs=inputs, passes=passes, raw=raw)


def test_counts_are_summed_over_passes_and_shown(study):
    assert make_sections(study.inputs) == ()
    join_counts(study.passes, study.raw, "a")
    join_counts(study.passes, study.raw, "b")
    assert [path.name for path in study.raw.iterdir()] == ["a.levels"]
    (section,) = make_sections(study.inputs)
    (shown,) = section.tables
    assert section.name == "Overlay processes"
    assert shown.column("name") == ["reduce", "reduce"]
    assert shown.column("processes") == [1, 2]
    assert shown.column("packets_up") == [20, 40]
    assert shown.column("bytes_down") == [1600, 0]
    assert shown.column("filter_seconds") == pytest.approx([2, 0])  # ms
    assert shown.column("cpu_seconds") == pytest.approx([4, 6])
    assert shown.column("round_trip") == pytest.approx([0, 5])  # µs


@pytest.mark.parametrize(
    "text",
    [
        "",
        "depth\n0\n",
        PASS.replace("400", "x"),
        PASS.replace("400", "-1"),
        PASS.replace("400", ""),
        "\0\xff",
    ],
)
def test_counts_that_are_none_are_refused(tmp_path, text):
    (tmp_path / "a.levels").write_text(text)
    with pytest.raises(UserError, match=COLUMNS[0]) as refused:
        read_counts(tmp_path / "a.levels")
    assert "a.levels" in refused.value.format_message()
