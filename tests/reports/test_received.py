"""A workbook from an unknown source: it is read as it is, or refused in one line; parameter sets of a report."""

import os
import random
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import openpyxl
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commodel.cli import main
from commodel.cli.report import report as verb
from commodel.errors import UserError
from commodel.models.parameter_sets import describe_changes
from commodel.parameters import Estimate
from commodel.reports import received_workbooks as received_module
from commodel.reports import write_xlsx
from commodel.reports.elements import Report, Section
from commodel.reports.received_workbooks import open_received, read_changed_sets, read_sheet_rows
from commodel.reports.xlsx.calculator.families import FORMULAS
from commodel.reports.xlsx.calculator.sheet import CALCULATOR_SHEET, SAMPLES_TITLE
from tests.cli.running import read_rows, refused
from tests.reports.calculations import parameter_set


def pack(path, parts):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def parts_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><x>&b;</x>'


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("xl/sharedStrings.xml", LAUGHS.encode()),
        ("xl/sharedStrings.xml", LAUGHS.encode("utf-16")),
        ("xl/workbook.xml", b"<?xml version='1.0' encoding='cp037'?>" + LAUGHS.encode("cp037")),
        ("xl/styles.xml", b" " * (65 << 20)),
        ("xl/workbook.xml", b"<workbook"),
        ("[Content_Types].xml", b""),
        ("xl/sharedStrings.xml", b"<sst>" + 1_000_001 * b"<si/>" + b"</sst>"),
        ("xl/sharedStrings.xml", b"<x:sst>" + 1_000_001 * b"<x:si></x:si>" + b"</x:sst>"),
    ],
)
def test_hostile_parts_are_refused_in_one_line(path, folder, name, data):
    pack(path, parts_of(path) | {name: data})
    run = CliRunner().invoke(verb, ["--verify", str(path), "--in", str(folder)])
    assert run.exit_code == 2
    assert run.output.count("\n") == 1
    assert "trees.xlsx" in run.output


def test_the_sum_of_many_parts_is_bounded(path, folder, monkeypatch):
    """Each part has 3 MiB; only their sum exceeds the limit."""
    monkeypatch.setattr(received_module, "MAX_TOTAL_BYTES", {"xl/worksheets/": 64 << 20, "": 8 << 20})
    for name in ("xl/worksheets/x", "xl/drawings/x"):
        pack(path, parts_of(path) | {f"{name}{number}.xml": bytes(3 << 20) for number in range(30)})
        run = CliRunner().invoke(verb, ["--verify", str(path), "--in", str(folder)])
        assert (run.exit_code, run.output.count("\n")) == (2, 1)
        assert "found parts of " in run.output


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "hole"])
def test_pipes_devices_folders_and_huge_files_are_refused_as_workbooks(kind, tmp_path, folder):
    path = tmp_path / "x.xlsx"
    {
        "pipe": lambda: os.mkfifo(path),
        "device": lambda: path.symlink_to("/dev/zero"),
        "folder": path.mkdir,
        "hole": lambda: (path.touch(), os.truncate(path, 1 << 40)),
    }[kind]()
    run = CliRunner().invoke(verb, ["--verify", str(path), "--in", str(folder)])
    assert (run.exit_code, run.output.count("\n")) == (2, 1)
    assert "wanted a file" in run.output or "found more than 1024 MiB" in run.output


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x05\x06" + bytes(18)])
def test_a_file_that_is_not_a_workbook_is_refused_in_one_line(content, tmp_path, folder):
    (tmp_path / "x.xlsx").write_bytes(content)
    run = CliRunner().invoke(verb, ["--verify", str(tmp_path / "x.xlsx"), "--in", str(folder)])
    assert run.exit_code == 2
    assert run.output.count("\n") == 1


def test_rows_far_away_cost_nothing(tmp_path):
    """The sheet has one cell in row 4 000 000 000; at most 50 rows are read."""
    book = openpyxl.Workbook()
    book.active["A1"] = 1
    book.save(tmp_path / "far.xlsx")
    parts = parts_of(tmp_path / "far.xlsx")
    far = b'<row r="4000000000"><c r="XFD4000000000"><v>1</v></c></row></sheetData>'
    parts["xl/worksheets/sheet1.xml"] = parts["xl/worksheets/sheet1.xml"].replace(b"</sheetData>", far)
    with open_received(pack(tmp_path / "far.xlsx", parts)) as book:
        assert len(list(read_sheet_rows(book.active, 50, 10, tmp_path))) <= 50


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_workbooks_are_read_or_refused(original, tmp_path, data):
    """Bytes of one part are overwritten. The only exception is UserError."""
    parts = parts_of(original.parent / "trees.xlsx")
    name = data.draw(st.sampled_from(sorted(parts)))
    at = data.draw(st.integers(0, len(parts[name]) - 1))
    junk = data.draw(st.binary(min_size=1, max_size=8) | st.sampled_from([b"<", b"</row>", b"999999999", b"&#0;"]))
    parts[name] = parts[name][:at] + junk + parts[name][at + len(junk) :]
    path = pack(tmp_path / "damaged.xlsx", parts)
    complaint = ""
    try:
        with open_received(path) as book:
            read = [row for sheet in book.worksheets for row in read_sheet_rows(sheet, 60, 20, path)]
    except UserError as error:
        read, complaint = [], error.message
    assert read or len(complaint.splitlines()) == 1


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
def calculator(tmp_path_factory):
    return written(tmp_path_factory.mktemp("original") / "reports.xlsx", sets())


@pytest.fixture
def book_path(calculator, tmp_path):
    return Path(shutil.copy(calculator, tmp_path))


def change_calculator(path, family, name, column, value):
    """Change a value of the calculator's table and return its row. `column` is 5 for × factor, 6 for instead."""
    book = openpyxl.load_workbook(path)
    rows = list(book[CALCULATOR_SHEET].iter_rows())
    (row,) = (row for row in rows if row[0].value == family and row[1].value == name)
    row[column - 1].value = value
    book.save(path)
    return row[0].row


def test_an_unchanged_workbook_gives_the_sets_of_the_results(tmp_path):
    every = sets(families=FORMULAS)
    for ours, read in zip(every, read_changed_sets(written(tmp_path / "reports.xlsx", every)), strict=True):
        assert (read.family, read.platform, read.forms, read.settings) == (
            ours.family,
            "net",
            ours.forms,
            ours.settings,
        )
        assert {name: value.value for name, value in read.values.items()} == {
            name: value.value for name, value in ours.values.items()
        }
        assert not describe_changes(read)


def test_a_factor_and_a_replaced_value_are_used_and_listed(book_path):
    change_calculator(book_path, "LogGP", "L", 5, 2)
    change_calculator(book_path, "LogGP", "G", 6, 80)  # ns/B
    before = next(parameters for parameters in sets() if parameters.family == "loggp")
    after = next(parameters for parameters in read_changed_sets(book_path) if parameters.family == "loggp")
    assert after.values["L"].value == 2 * before.values["L"].value
    assert after.values["G"].value == pytest.approx(80e-9, rel=1e-12)
    assert after.values["o_s"].value == before.values["o_s"].value
    assert "L=" in describe_changes(after)
    assert "G=8e-08 s/B in place of" in describe_changes(after)


def test_advise_reads_the_values_of_a_workbook_as_predict_does(tmp_path):
    path = written(tmp_path / "reports.xlsx", sets(families=("hockney",)))
    workload = f"--params {path} --operation bcast --ranks 8 --bytes 1KiB"
    predicted = {row["algorithm"]: row["seconds"] for row in read_rows(f"predict {workload} --algorithm binomial")}
    advised = {row["alternative"]: row["seconds"] for row in read_rows(f"advise {workload}")}
    assert advised["binomial"] == pytest.approx(predicted["binomial"], rel=1e-9)
    assert "no platform 'none'" in refused(f"advise {workload.replace('.xlsx', '.xlsx#none')}")


def test_a_table_is_read_back_cell_by_cell(book_path):
    book = openpyxl.load_workbook(book_path)
    sheet = book[CALCULATOR_SHEET]
    (head,) = (row for row in sheet.iter_rows() if str(row[1].value).endswith(SAMPLES_TITLE))
    assert sheet.cell(head[0].row + 2, 2).value == 1  # bytes; level 2 stands in the fourth column
    sheet.cell(head[0].row + 2, 4).value = 123
    book.save(book_path)
    after = next(parameters for parameters in read_changed_sets(book_path) if parameters.family == "taulop")
    function = head[1].value.removesuffix(SAMPLES_TITLE)
    assert after.values[f"{function}.1x2"].value == pytest.approx(123e-6, rel=1e-12)
    assert describe_changes(after).count("=") == 1


def test_text_in_a_parameter_cell_is_refused_with_sheet_and_cell(book_path):
    row = change_calculator(book_path, "LogGP", "L", 5, "twice")
    with pytest.raises(UserError, match=f"reports.xlsx: {CALCULATOR_SHEET}!E{row}: found 'twice', wanted a number"):
        read_changed_sets(book_path)


def test_of_several_platforms_one_is_named(tmp_path):
    path = written(tmp_path / "two.xlsx", (*sets("a"), *sets("b")))
    with pytest.raises(UserError, match=r"has a, b: name one of them, as two\.xlsx#a"):
        read_changed_sets(path)
    changed_b = openpyxl.load_workbook(path)
    sheet = changed_b[f"{CALCULATOR_SHEET} b"]
    (row,) = (row for row in sheet.iter_rows() if (row[0].value, row[1].value) == ("LogGP", "L"))
    row[4].value = 3
    changed_b.save(path)
    for platform, factor in (("a", 1), ("b", 3)):
        ours = next(parameters for parameters in sets() if parameters.family == "loggp")
        read = next(parameters for parameters in read_changed_sets(path, platform) if parameters.family == "loggp")
        assert read.values["L"].value == factor * ours.values["L"].value


def test_predict_takes_a_workbook(book_path):
    change_calculator(book_path, "Hockney", "gamma", 5, 2)
    options = ["--operation", "reduce", "--algorithm", "linear", "--ranks", "4", "--bytes", "1KiB"]
    result = CliRunner().invoke(main, ["predict", "--params", f"{book_path}#net", "--family", "hockney", *options])
    assert result.exit_code == 0, result.output
    assert "gamma=" in result.stdout
    missing = CliRunner().invoke(main, ["predict", "--params", f"{book_path}#nowhere", *options])
    assert "no platform 'nowhere'" in missing.stderr
