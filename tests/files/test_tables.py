"""Tables: types of columns, texts that look like formulas, and memory that is returned."""

import csv
import gc
import weakref
from math import nan

import pandas as pd
import pytest
from click.testing import CliRunner

from commodel.cli import main
from commodel.files import tables
from commodel.files.streamed_tables import (
    make_arrow_schema,
    make_piece,
    return_freed_memory,
    write_stream,
)
from commodel.files.tables import (
    MATRIX_PREDICTIONS,
    Field,
    list_columns,
    read_table,
    write_table,
)

SCHEMA = (
    Field("name", str),
    Field("size", int, "B", blank=True),
    Field("seconds", float, "s"),
    Field("good", bool),
)


def test_default_values_of_columns_can_be_written():
    schemas = [
        value
        for value in vars(tables).values()
        if isinstance(value, tuple) and Field in map(type, value)
    ]
    assert len(schemas) > 5
    assert not [
        field.name
        for schema in schemas
        for field in schema
        if field.default is nan and not field.blank
    ]


def frame(copies=1, **more):
    columns = {
        "name": ["a", "", "1e10", "007", "b", "a"],
        "size": [1, 2, 3, 4, None, 6],
        "seconds": [0.5] * 6,
    }
    rows = pd.DataFrame(columns | {"good": [True, False] * 3} | more)
    return pd.concat([rows] * copies, ignore_index=True)


@pytest.mark.parametrize(
    "note", [["1", "2", "3", "4", "x", "y"], [None] * 5 + ["late"], ["", "1", "2", "3", "4", "5"]]
)
def test_large_and_small_tables_have_equal_types(tmp_path, note):
    """pandas reads a large table in pieces and infers types for each. The first piece of `note` has
    only numbers."""
    rows = pd.concat([frame(20_000, note="1"), frame(note=note)])
    write_table(tmp_path / "large.csv", rows)
    large = read_table(tmp_path / "large.csv", SCHEMA)
    assert set(large.columns) == {*rows.columns}
    for name, kind in {"name": str, "size": float, "seconds": float, "good": bool}.items():
        assert {type(value) for value in large[name].tolist()} == {kind}
        assert large[name].fillna(-1).tolist() == rows[name].fillna(-1).tolist()
    assert len({type(value) for value in large["note"].dropna().tolist()}) == 1


def test_equal_texts_are_one_object(tmp_path):
    write_table(tmp_path / "t.csv", frame(2))
    names = read_table(tmp_path / "t.csv", SCHEMA)["name"].tolist()
    assert names == ["a", "", "1e10", "007", "b", "a"] * 2
    assert names[0] is names[-1]


FORMULAS = ("=1+1", "+1", "-1+1", "@SUM(A1)", "\t=1")


def cells(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_texts_like_formulas_are_quoted_in_a_table(tmp_path):
    frame = pd.DataFrame(
        {
            "text": [*FORMULAS, "a\r=1", "plain", "a=b"],
            "number": [-1.5] * 8,
            "mixed": [*"abcdef", -2, None],
        }
    )
    write_table(tmp_path / "t.csv", frame)
    rows = cells(tmp_path / "t.csv")
    assert [row["text"] for row in rows] == [
        *(f"'{text}" for text in FORMULAS),
        "a =1",
        "plain",
        "a=b",
    ]
    assert {row["number"] for row in rows} == {"-1.5"}
    assert [row["mixed"] for row in rows][-2:] == ["-2", ""]
    assert frame["text"][0] == "=1+1"  # the table in memory is unchanged


def test_texts_like_formulas_are_quoted_in_a_streamed_table(tmp_path):
    types = make_arrow_schema(MATRIX_PREDICTIONS)
    row = dict.fromkeys(list_columns(MATRIX_PREDICTIONS), "=cmd()") | {
        name: [-1.5] for name in list_columns(MATRIX_PREDICTIONS, float)
    }
    write_stream(
        tmp_path / "t.csv", types, [make_piece(row | {"ranks": 2, "bytes": 8, "waves": 1}, types)]
    )
    (written,) = cells(tmp_path / "t.csv")
    assert written["parameters"] == "'=cmd()"
    assert written["seconds"] == "-1.5"


@pytest.mark.parametrize("start", ["=", "+", "-", "@"])
def test_import_quotes_a_file_name_like_a_formula(tmp_path, start):
    file = tmp_path / f"{start}cmd.csv"
    file.write_text("operation,ranks,bytes,seconds\nbcast,4,8,1us\n")
    done = CliRunner().invoke(main, ["import", "csv", str(file), "-o", str(tmp_path / "out.csv")])
    assert done.exit_code == 0, done.output
    (written,) = cells(tmp_path / "out.csv")
    assert written["source"].startswith(f"'{start}cmd")
    assert written["seconds"] == "1e-06"


class SelfReference:
    def __init__(self):
        self.itself = self


def test_objects_with_reference_cycles_are_freed():
    gc.disable()  # else Python may collect it earlier
    try:
        reference = weakref.ref(SelfReference())
        assert reference() is not None
        return_freed_memory()
        assert reference() is None
    finally:
        gc.enable()
