"""Large tables are read with the types of small ones, each text once."""

import pandas as pd
import pytest

from commodel.errors import UserError
from commodel.files.tables import Field, read_table, write_table

SCHEMA = (Field("name", str), Field("size", int, "B", blank=True), Field("seconds", float, "s"), Field("good", bool))


def frame(times=1, **more):
    about = {"name": ["a", "", "1e10", "007", "b", "a"], "size": [1, 2, 3, 4, None, 6], "seconds": [0.5] * 6}
    rows = pd.DataFrame(about | {"good": [True, False] * 3} | more)
    return pd.concat([rows] * times, ignore_index=True)


@pytest.mark.parametrize("note", [["1", "2", "3", "4", "x", "y"], [None] * 5 + ["late"], ["", "1", "2", "3", "4", "5"]])
def test_the_types_of_a_large_table_are_those_of_a_small_one(tmp_path, note):
    """pandas reads a large table in pieces, and of a further column decides by piece: here the first is other ones."""
    rows = pd.concat([frame(20_000, note="1"), frame(note=note)])
    write_table(tmp_path / "large.csv", rows)
    large = read_table(tmp_path / "large.csv", SCHEMA)
    assert set(large.columns) == {*rows.columns}
    for name, kind in {"name": str, "size": float, "seconds": float, "good": bool}.items():
        assert {type(value) for value in large[name].tolist()} == {kind}
        assert large[name].fillna(-1).tolist() == rows[name].fillna(-1).tolist()
    assert len({type(value) for value in large["note"].dropna().tolist()}) == 1


def test_equal_texts_are_one(tmp_path):
    write_table(tmp_path / "t.csv", frame(2))
    names = read_table(tmp_path / "t.csv", SCHEMA)["name"].tolist()
    assert names == ["a", "", "1e10", "007", "b", "a"] * 2
    assert names[0] is names[-1]


def test_columns_with_an_earlier_name_are_read(tmp_path):
    schema = (*SCHEMA[:2], Field("time", float, "s", old=("seconds",)), SCHEMA[3])
    write_table(tmp_path / "t.csv", frame())
    pd.testing.assert_series_equal(
        read_table(tmp_path / "t.csv", schema)["time"], frame()["seconds"], check_names=False
    )
    write_table(tmp_path / "t.csv", frame(seconds="soon"))
    with pytest.raises(UserError, match="2: time: found 'soon', wanted a number"):
        read_table(tmp_path / "t.csv", schema)
