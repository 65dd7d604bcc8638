"""Long tables in the workbook: written row by row with the same cells, and what is more than a sheet holds."""

from dataclasses import replace

import openpyxl
from tests.report.book import rows_of, written

from commodel.report.shape import Column, Section, Table
from commodel.report.xlsx import workbook as xlsx


def test_long_tables_are_split_over_sheets(report, tmp_path, monkeypatch):
    monkeypatch.setattr(xlsx, "MAX_ROWS", 708)
    book = written(report, tmp_path / "split.xlsx")
    names = [name for name in book.sheetnames if name.startswith("Comparison")]
    assert names == ["Comparison", "Comparison 2", "Comparison 3"]
    lengths = [len(rows_of(book[name], next(iter(book[name].tables)))[1]) for name in names]
    assert lengths == [700, 700, 382]


def test_a_very_long_table_is_written_row_by_row_with_the_same_cells(report, tmp_path, monkeypatch, workbook):
    comparison = next(section for section in report.sections if section.name == "Comparison")
    monkeypatch.setattr(xlsx, "LONG", 100)
    long = written(replace(report, sections=(comparison,), sets=()), tmp_path / "long.xlsx")["Comparison"]
    usual = openpyxl.load_workbook(workbook)["Comparison"]
    assert not long.tables
    assert long.auto_filter.ref == next(iter(usual.tables.values())).ref
    for here, there in zip(long.iter_rows(), usual.iter_rows(), strict=True):
        assert [cell.value for cell in here] == [cell.value for cell in there]
        assert [cell.number_format for cell in here] == [cell.number_format for cell in there]


def test_a_text_that_looks_like_formatted_markup_is_a_text(report, tmp_path, monkeypatch):
    """XlsxWriter would copy it into the file as it is, and nothing could open that."""
    text = "<r><t>not closed</r>"
    table = Table("t", "T", (Column("a", text), Column("b", "b")), ((text, 1),))
    odd = replace(report, sections=(Section("Odd", "", (table,)),), title=text, sets=())
    for most in (0, 100):
        monkeypatch.setattr(xlsx, "LONG", most)
        cells = [cell.value for row in written(odd, tmp_path / "odd.xlsx")["Odd"].iter_rows() for cell in row]
        assert [str(value).strip() for value in cells].count(text) == 2
