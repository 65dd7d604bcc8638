"""No text in a table that is written becomes a formula of a spreadsheet; numbers stay numbers."""

import csv

import pandas as pd
import pytest
from click.testing import CliRunner

from commodel.cli import main
from commodel.files.streams import arrow, piece, write_stream
from commodel.files.tables import PRICES, names, write_table

FORMULAS = ("=1+1", "+1", "-1+1", "@SUM(A1)", "\t=1")


def cells(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_a_table(tmp_path):
    frame = pd.DataFrame(
        {"text": [*FORMULAS, "a\r=1", "plain", "a=b"], "number": [-1.5] * 8, "mixed": [*"abcdef", -2, None]}
    )
    write_table(tmp_path / "t.csv", frame)
    rows = cells(tmp_path / "t.csv")
    assert [row["text"] for row in rows] == [*(f"'{text}" for text in FORMULAS), "a =1", "plain", "a=b"]
    assert {row["number"] for row in rows} == {"-1.5"}
    assert [row["mixed"] for row in rows][-2:] == ["-2", ""]
    assert frame["text"][0] == "=1+1"  # the table at hand is as it was


def test_a_stream(tmp_path):
    types = arrow(PRICES)
    row = dict.fromkeys(names(PRICES), "=cmd()") | {name: [-1.5] for name in names(PRICES, float)}
    write_stream(tmp_path / "t.csv", types, [piece(row | {"ranks": 2, "bytes": 8, "waves": 1}, types)])
    (written,) = cells(tmp_path / "t.csv")
    assert written["parameters"] == "'=cmd()"
    assert written["seconds"] == "-1.5"


@pytest.mark.parametrize("start", ["=", "+", "-", "@"])
def test_what_import_writes_of_a_file_of_such_a_name(tmp_path, start):
    file = tmp_path / f"{start}cmd.csv"
    file.write_text("operation,ranks,bytes,seconds,statistic\nbcast,4,8,1us,=1+1\n")
    done = CliRunner().invoke(main, ["import", "csv", str(file), "-o", str(tmp_path / "out.csv")])
    assert done.exit_code == 0, done.output
    (written,) = cells(tmp_path / "out.csv")
    assert written["statistic"] == "'=1+1"
    assert written["source"].startswith(f"'{start}cmd")
    assert written["seconds"] == "1e-06"
