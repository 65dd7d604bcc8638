"""What was not measured: marks beside raw files, and the table that is written once and read once."""

import pandas as pd
import pytest

from commodel.errors import UserError
from commodel.files.tables import write_table
from commodel.results import raw_samples
from commodel.results.raw_samples import LATE, finished, read_unmeasured, table_of, why_unmeasured

ROWS = [
    {"id": "1e10", "batch": "b", "platform": "p", "simulated": False, "kind": "point", "name": "bcast"}
    | {"choice": "linear", "layout": "block:2", "ranks": 4, "nodes": 2, "leaves": 0, "bytes": 2**40, "waves": 50}
    | {"status": "crash", "reason": "=signal 9"},
    {"id": "0e00", "batch": "b", "platform": "p", "simulated": False, "kind": "probe", "name": "fan", "layout": "block"}
    | {"ranks": 2, "nodes": 1, "status": "late", "reason": ""},
]


def test_the_table_is_read_as_it_was_written(tmp_path):
    write_table(tmp_path / "u.csv", table_of(ROWS))
    first, second = read_unmeasured(tmp_path / "u.csv").to_dict("records")
    assert first == ROWS[0] | {"reason": "'=signal 9"}  # guarded, for spreadsheets
    assert {key: second[key] for key in ROWS[1]} == ROWS[1]
    assert second["choice"] == ""
    assert pd.isna(second["leaves"])
    assert pd.isna(second["bytes"])
    assert pd.isna(second["waves"])
    write_table(tmp_path / "none.csv", table_of([]))
    assert read_unmeasured(tmp_path / "none.csv").empty
    assert read_unmeasured(tmp_path / "no such.csv") is None


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (",reason", ",why", "1: found no column 'reason' among"),
        ("ranks,nodes", "ranks,knots", "1: found no column 'nodes' among"),
        (",4,2,", ",four,2,", "2: ranks: found 'four', wanted a whole number, not negative"),
        *(
            (",4,2,", f",4,{odd},", f"2: nodes: found '{odd[:59]}")
            for odd in ("1.5", "-2", "inf", "1e30", "9" * 25, "9" * 400, "0x10")
        ),
    ],
)
def test_an_edited_table_is_refused_in_one_line(old, new, complaint, tmp_path):
    write_table(tmp_path / "u.csv", table_of(ROWS))
    text = (tmp_path / "u.csv").read_text()
    assert old in text
    (tmp_path / "u.csv").write_text(text.replace(old, new, 1))
    with pytest.raises(UserError) as refused:
        read_unmeasured(tmp_path / "u.csv")
    assert refused.value.format_message().startswith(f"{tmp_path}/u.csv:{complaint}")


def test_marks_and_samples(tmp_path):
    raw_samples.mark(tmp_path, "a", "crash", "signal 9", 1)
    raw_samples.mark(tmp_path, "b", "crash", "measured after all", 1)
    for name in ("b.csv", "c.csv", "d.late.csv", ".e.csv.7.tmp", "f.csv.damaged"):
        (tmp_path / name).touch()
    assert finished(tmp_path) == ({"b", "c"}, {"a", "d"})
    assert why_unmeasured(tmp_path, "a") == ("crash", "signal 9")
    assert why_unmeasured(tmp_path, "d")[0] == LATE
    assert [why_unmeasured(tmp_path, case) for case in "bcef"] == [None] * 4
    for case in "abd":
        raw_samples.unmark(tmp_path, case)
    assert finished(tmp_path) == ({"b", "c"}, set())
    assert finished(tmp_path / "none") == (set(), set())
