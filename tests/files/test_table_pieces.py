"""Large tables are read piece by piece: the same cells and types as at once, each text once."""

import pandas as pd
import pytest

from commodel.errors import UserError
from commodel.files import tables
from commodel.files.tables import Field, read_table, write_table

SCHEMA = (Field("name", str), Field("size", int, "B", blank=True), Field("seconds", float, "s"), Field("good", bool))


def frame(**more):
    about = {"name": ["a", "", "1e10", "007", "b", "a"], "size": [1, 2, 3, 4, None, 6], "seconds": [0.5] * 6}
    return pd.DataFrame(about | {"good": [True, False] * 3} | more)


@pytest.mark.parametrize("more", [{}, {"note": ["1", "2", "3", "4", "x", "y"]}, {"note": [None] * 5 + ["late"]}])
def test_pieces_are_the_whole(tmp_path, monkeypatch, more):
    """A further column, of which pandas decides, may look like numbers for a while."""
    write_table(tmp_path / "t.csv", frame(**more))
    whole = read_table(tmp_path / "t.csv", SCHEMA)
    monkeypatch.setattr(tables, "PIECE", 2)
    pieces = read_table(tmp_path / "t.csv", SCHEMA)
    pd.testing.assert_frame_equal(whole, pieces, check_dtype=False)
    assert [type(value) for value in whole.to_numpy().ravel()] == [type(value) for value in pieces.to_numpy().ravel()]


def test_equal_texts_are_one(tmp_path, monkeypatch):
    write_table(tmp_path / "t.csv", frame())
    monkeypatch.setattr(tables, "PIECE", 2)
    names = read_table(tmp_path / "t.csv", SCHEMA)["name"].tolist()
    assert names == ["a", "", "1e10", "007", "b", "a"]
    assert names[0] is names[5]


def test_columns_with_an_earlier_name_are_read(tmp_path):
    schema = (*SCHEMA[:2], Field("time", float, "s", old=("seconds",)), SCHEMA[3])
    write_table(tmp_path / "t.csv", frame())
    pd.testing.assert_series_equal(
        read_table(tmp_path / "t.csv", schema)["time"], frame()["seconds"], check_names=False
    )
    write_table(tmp_path / "t.csv", frame(seconds="soon"))
    with pytest.raises(UserError, match="2: time: found 'soon', wanted a number"):
        read_table(tmp_path / "t.csv", schema)
