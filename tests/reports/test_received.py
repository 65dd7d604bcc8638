"""A workbook from an unknown source: it is read as it is, or refused in one line; parameter sets of
a report."""

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
from commodel.errors import UserError
from commodel.reports import received_workbooks as received_module
from commodel.reports import write_xlsx
from commodel.reports.elements import Report, Section
from commodel.reports.received_workbooks import (
    SETS_SHEET,
    open_received,
    read_platform_sets,
    read_sheet_rows,
)
from commodel.reports.sections.evidence import make_parameter_section
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


def read_sets(path):
    point = ("--operation", "bcast", "--algorithm", "linear", "--ranks", "4", "--bytes", "1KiB")
    return CliRunner().invoke(main, ["predict", "--params", str(path), *point])


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
def test_hostile_parts_are_refused_in_one_line(path, name, data):
    pack(path, parts_of(path) | {name: data})
    run = read_sets(path)
    assert run.exit_code == 2
    assert run.output.count("\n") == 1
    assert "trees.xlsx" in run.output


def test_the_sum_of_many_parts_is_bounded(path, monkeypatch):
    """Each part has 3 MiB; only their sum exceeds the limit."""
    monkeypatch.setattr(
        received_module, "MAX_TOTAL_BYTES", {"xl/worksheets/": 64 << 20, "": 8 << 20}
    )
    for name in ("xl/worksheets/x", "xl/drawings/x"):
        pack(path, parts_of(path) | {f"{name}{number}.xml": bytes(3 << 20) for number in range(30)})
        run = read_sets(path)
        assert (run.exit_code, run.output.count("\n")) == (2, 1)
        assert "found parts of " in run.output


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "hole"])
def test_pipes_devices_folders_and_huge_files_are_refused_as_workbooks(kind, tmp_path):
    path = tmp_path / "x.xlsx"
    {
        "pipe": lambda: os.mkfifo(path),
        "device": lambda: path.symlink_to("/dev/zero"),
        "folder": path.mkdir,
        "hole": lambda: (path.touch(), os.truncate(path, 1 << 40)),
    }[kind]()
    run = read_sets(path)
    assert (run.exit_code, run.output.count("\n")) == (2, 1)
    assert "wanted a file" in run.output or "found more than 1024 MiB" in run.output


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x05\x06" + bytes(18)])
def test_a_file_that_is_not_a_workbook_is_refused_in_one_line(content, tmp_path):
    (tmp_path / "x.xlsx").write_bytes(content)
    run = read_sets(tmp_path / "x.xlsx")
    assert run.exit_code == 2
    assert run.output.count("\n") == 1


def test_rows_far_away_cost_nothing(tmp_path):
    """The sheet has one cell in row 4 000 000 000; at most 50 rows are read."""
    book = openpyxl.Workbook()
    book.active["A1"] = 1
    book.save(tmp_path / "far.xlsx")
    parts = parts_of(tmp_path / "far.xlsx")
    far = b'<row r="4000000000"><c r="XFD4000000000"><v>1</v></c></row></sheetData>'
    parts["xl/worksheets/sheet1.xml"] = parts["xl/worksheets/sheet1.xml"].replace(
        b"</sheetData>", far
    )
    with open_received(pack(tmp_path / "far.xlsx", parts)) as book:
        assert len(list(read_sheet_rows(book.active, 50, 10, tmp_path))) <= 50


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_workbooks_are_read_or_refused(original, tmp_path, data):
    """Bytes of one part are overwritten. The only exception is UserError."""
    parts = parts_of(original.parent / "trees.xlsx")
    name = data.draw(st.sampled_from(sorted(parts)))
    at = data.draw(st.integers(0, len(parts[name]) - 1))
    junk = data.draw(
        st.binary(min_size=1, max_size=8)
        | st.sampled_from([b"<", b"</row>", b"999999999", b"&#0;"])
    )
    parts[name] = parts[name][:at] + junk + parts[name][at + len(junk) :]
    path = pack(tmp_path / "damaged.xlsx", parts)
    complaint = ""
    try:
        with open_received(path) as book:
            read = [
                row for sheet in book.worksheets for row in read_sheet_rows(sheet, 60, 20, path)
            ]
    except UserError as error:
        read, complaint = [], error.message
    assert read or len(complaint.splitlines()) == 1


FAMILIES = ("hockney", "loggp", "tan", "taulop")


def sets(platform="net", models=FAMILIES):
    several = [parameter_set(random.Random(f"{family} 1"), family) for family in models]
    return tuple(
        replace(entry, platform=platform, bytes_range=(1, 65536), missing={"x": "why"})
        for entry in several
    )


def written(path, several):
    section = make_parameter_section(several, {})
    write_xlsx(Report("e", "e", "", (section, Section("Comparison", "", ())), sets=several), path)
    return path


@pytest.fixture(scope="module")
def kept_book(tmp_path_factory):
    return written(tmp_path_factory.mktemp("original") / "reports.xlsx", sets())


@pytest.fixture
def book_path(kept_book, tmp_path):
    return Path(shutil.copy(kept_book, tmp_path))


def change_value(path, model, name, value, column=5):
    """Change a value of the table of parameters and return its row."""
    book = openpyxl.load_workbook(path)
    rows = [
        row for row in book[SETS_SHEET].iter_rows() if (row[2].value, row[3].value) == (model, name)
    ]
    rows[0][column - 1].value = value
    book.save(path)
    return rows[0][0].row


def test_a_workbook_gives_the_sets_of_the_results(book_path):
    read = {parameters.model: parameters for parameters in read_platform_sets(book_path)}
    assert set(read) == set(FAMILIES)
    for ours in sets():
        found = read[ours.model]
        assert (found.platform, found.forms, found.settings) == ("net", ours.forms, ours.settings)
        assert (found.bytes_range, found.missing) == ((1, 65536), {"x": "why"})
        assert set(found.values) == set(ours.values)
        for name, estimate in ours.values.items():
            assert found.values[name].value == pytest.approx(estimate.value, rel=1e-14)
            assert (found.values[name].unit or "1") == estimate.unit


def test_a_value_that_a_reader_changes_in_the_table_is_used(book_path):
    change_value(book_path, "loggp", "L", 25)  # µs
    (after,) = (
        parameters for parameters in read_platform_sets(book_path) if parameters.model == "loggp"
    )
    assert after.values["L"].value == pytest.approx(25e-6, rel=1e-14)


def test_advise_reads_the_values_of_a_workbook_as_predict_does(tmp_path):
    path = written(tmp_path / "reports.xlsx", sets(models=("hockney",)))
    workload = f"--params {path} --operation bcast --ranks 8 --bytes 1KiB"
    predicted = {
        row["algorithm"]: row["seconds"]
        for row in read_rows(f"predict {workload} --algorithm binomial")
    }
    advised = {row["alternative"]: row["seconds"] for row in read_rows(f"advise {workload}")}
    assert advised["binomial"] == pytest.approx(predicted["binomial"], rel=1e-9)
    assert "no platform 'none'" in refused(f"advise {workload.replace('.xlsx', '.xlsx#none')}")


@pytest.mark.parametrize("value", ["twice", True, "=1+1"])
def test_texts_and_formulas_in_a_value_cell_are_refused(book_path, value):
    row = change_value(book_path, "loggp", "L", value)
    with pytest.raises(UserError, match=rf"{SETS_SHEET}, row {row}.*: found .*, wanted a"):
        read_platform_sets(book_path)


def test_other_texts_than_forms_are_refused(book_path):
    row = change_value(book_path, "loggp", "made up", "[" * 10_000, column=8)
    with pytest.raises(UserError, match=f"row {row}: found no forms and settings as JSON"):
        read_platform_sets(book_path)


def test_a_row_that_is_lost_is_noticed(book_path):
    book = openpyxl.load_workbook(book_path)
    (row,) = (
        row
        for row in book[SETS_SHEET].iter_rows()
        if (row[2].value, row[3].value) == ("loggp", "L")
    )
    book[SETS_SHEET].delete_rows(row[0].row)
    book.save(book_path)
    with pytest.raises(UserError, match="found 5 values of loggp on net, wanted 6"):
        read_platform_sets(book_path)


def test_of_several_platforms_one_is_named(tmp_path):
    path = written(tmp_path / "two.xlsx", (*sets("a"), *sets("b")))
    with pytest.raises(UserError, match=r"has a, b: name one of them, as two\.xlsx#a"):
        read_platform_sets(path)
    assert {parameters.platform for parameters in read_platform_sets(path, "b")} == {"b"}
    missing = read_sets(f"{path}#nowhere")
    assert "no platform 'nowhere'" in missing.stderr
