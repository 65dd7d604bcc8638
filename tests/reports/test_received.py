"""A workbook that a stranger sends: read as it is, or refused in one line."""

import os
import zipfile

import openpyxl
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commodel.cli.report import report as verb
from commodel.errors import UserError
from commodel.reports import received_workbooks as received_module
from commodel.reports.received_workbooks import received, rows


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
    """None of them is large."""
    monkeypatch.setattr(received_module, "MOST_IN_ALL", {"xl/worksheets/": 64 << 20, "": 8 << 20})
    for name in ("xl/worksheets/x", "xl/drawings/x"):
        pack(path, parts_of(path) | {f"{name}{number}.xml": bytes(3 << 20) for number in range(30)})
        run = CliRunner().invoke(verb, ["--verify", str(path), "--in", str(folder)])
        assert (run.exit_code, run.output.count("\n")) == (2, 1)
        assert "found parts of " in run.output


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "hole"])
def test_what_is_no_file_is_no_workbook(kind, tmp_path, folder):
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
def test_what_is_no_workbook_is_refused_in_one_line(content, tmp_path, folder):
    (tmp_path / "x.xlsx").write_bytes(content)
    run = CliRunner().invoke(verb, ["--verify", str(tmp_path / "x.xlsx"), "--in", str(folder)])
    assert run.exit_code == 2
    assert run.output.count("\n") == 1


def test_rows_far_away_cost_nothing(tmp_path):
    """A sheet that says it goes on to the last row that a number can name."""
    book = openpyxl.Workbook()
    book.active["A1"] = 1
    book.save(tmp_path / "far.xlsx")
    parts = parts_of(tmp_path / "far.xlsx")
    far = b'<row r="4000000000"><c r="XFD4000000000"><v>1</v></c></row></sheetData>'
    parts["xl/worksheets/sheet1.xml"] = parts["xl/worksheets/sheet1.xml"].replace(b"</sheetData>", far)
    with received(pack(tmp_path / "far.xlsx", parts)) as book:
        assert len(list(rows(book.active, 50, 10, tmp_path))) <= 50


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_workbooks_are_read_or_refused(original, tmp_path, data):
    """Bytes of one part are overwritten: never another exception than the one that a user can cause."""
    parts = parts_of(original.parent / "trees.xlsx")
    name = data.draw(st.sampled_from(sorted(parts)))
    at = data.draw(st.integers(0, len(parts[name]) - 1))
    junk = data.draw(st.binary(min_size=1, max_size=8) | st.sampled_from([b"<", b"</row>", b"999999999", b"&#0;"]))
    parts[name] = parts[name][:at] + junk + parts[name][at + len(junk) :]
    path = pack(tmp_path / "damaged.xlsx", parts)
    complaint = ""
    try:
        with received(path) as book:
            read = [row for sheet in book.worksheets for row in rows(sheet, 60, 20, path)]
    except UserError as error:
        read, complaint = [], error.message
    assert read or len(complaint.splitlines()) == 1
