"""Parameter sets out of a report's workbook, unchanged and as a reader has changed them on its calculator."""

import random
import shutil
from dataclasses import replace
from pathlib import Path

import openpyxl
import pytest
from click.testing import CliRunner
from tests.reports.calculations import parameter_set

from commodel.cli import main
from commodel.errors import UserError
from commodel.models.parameter_sets import note
from commodel.parameters import Estimate
from commodel.reports import write_xlsx
from commodel.reports.received_workbooks import sets_of
from commodel.reports.shape import Report, Section
from commodel.reports.xlsx.calculator.families import FORMULAS
from commodel.reports.xlsx.calculator.sheet import SHEET, TABLE

EDITED = ("hockney", "loggp", "taulop")  # of which a test looks at the values


def sets(platform="net", families=EDITED):
    several = [parameter_set(random.Random(f"{family} 1"), family) for family in families]
    return tuple(
        replace(entry, platform=platform, values=entry.values | LATENCY.get(entry.family, {})) for entry in several
    )


LATENCY = {"loggp": {"L": Estimate(1e-5, "s", 1e-5, 1e-5)}}  # a random one may be 0


def written(path, several):
    write_xlsx(Report("e", "e", "", (Section("Summary", "", ()),), sets=several), path)
    return path


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return written(tmp_path_factory.mktemp("original") / "reports.xlsx", sets())


@pytest.fixture
def path(original, tmp_path):
    return Path(shutil.copy(original, tmp_path))


def changed(path, family, name, column, value):
    """`column`: × factor is 5, instead 6."""
    book = openpyxl.load_workbook(path)
    rows = list(book[SHEET].iter_rows())
    (row,) = (row for row in rows if row[0].value == family and row[1].value == name)
    row[column - 1].value = value
    book.save(path)
    return row[0].row


def test_an_unchanged_workbook_gives_the_sets_of_the_results(tmp_path):
    every = sets(families=FORMULAS)
    for ours, read in zip(every, sets_of(written(tmp_path / "reports.xlsx", every)), strict=True):
        assert (read.family, read.platform, read.forms, read.settings) == (
            ours.family,
            "net",
            ours.forms,
            ours.settings,
        )
        assert {name: value.value for name, value in read.values.items()} == {
            name: value.value for name, value in ours.values.items()
        }
        assert not note(read)


def test_a_factor_and_a_value_instead_are_taken_and_told(path):
    changed(path, "LogGP", "L", 5, 2)
    changed(path, "LogGP", "G", 6, 80)  # ns/B
    before = next(parameters for parameters in sets() if parameters.family == "loggp")
    after = next(parameters for parameters in sets_of(path) if parameters.family == "loggp")
    assert after.values["L"].value == 2 * before.values["L"].value
    assert after.values["G"].value == pytest.approx(80e-9, rel=1e-12)
    assert after.values["o_s"].value == before.values["o_s"].value
    assert "L=" in note(after)
    assert "G=8e-08 s/B in place of" in note(after)


def test_a_table_is_read_back_cell_by_cell(path):
    book = openpyxl.load_workbook(path)
    sheet = book[SHEET]
    (head,) = (row for row in sheet.iter_rows() if str(row[1].value).endswith(TABLE))
    assert sheet.cell(head[0].row + 2, 2).value == 1  # bytes; level 2 stands in the fourth column
    sheet.cell(head[0].row + 2, 4).value = 123
    book.save(path)
    after = next(parameters for parameters in sets_of(path) if parameters.family == "taulop")
    function = head[1].value.removesuffix(TABLE)
    assert after.values[f"{function}.1x2"].value == pytest.approx(123e-6, rel=1e-12)
    assert note(after).count("=") == 1


def test_what_is_no_number_names_sheet_and_cell(path):
    row = changed(path, "LogGP", "L", 5, "twice")
    with pytest.raises(UserError, match=f"reports.xlsx: {SHEET}!E{row}: found 'twice', wanted a number"):
        sets_of(path)


def test_of_several_platforms_one_is_said(tmp_path):
    path = written(tmp_path / "two.xlsx", (*sets("a"), *sets("b")))
    with pytest.raises(UserError, match=r"is of a, b: say which, as two\.xlsx#a"):
        sets_of(path)
    changed_b = openpyxl.load_workbook(path)
    sheet = changed_b[f"{SHEET}_2"]
    (row,) = (row for row in sheet.iter_rows() if (row[0].value, row[1].value) == ("LogGP", "L"))
    row[4].value = 3
    changed_b.save(path)
    for platform, factor in (("a", 1), ("b", 3)):
        ours = next(parameters for parameters in sets() if parameters.family == "loggp")
        read = next(parameters for parameters in sets_of(path, platform) if parameters.family == "loggp")
        assert read.values["L"].value == factor * ours.values["L"].value


def test_predict_takes_a_workbook(path):
    changed(path, "Hockney", "gamma", 5, 2)
    options = ["--operation", "reduce", "--algorithm", "linear", "--ranks", "4", "--bytes", "1KiB"]
    result = CliRunner().invoke(main, ["predict", "--params", f"{path}#net", "--family", "hockney", *options])
    assert result.exit_code == 0, result.output
    assert "gamma=" in result.stdout
    missing = CliRunner().invoke(main, ["predict", "--params", f"{path}#nowhere", *options])
    assert "no platform 'nowhere'" in missing.stderr
