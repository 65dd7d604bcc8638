"""The sheets of the workbook: order, widths, set-up for paper; and that its file is whole and the same again."""

import numpy as np
import pytest
from tests.reports.book import written

from commodel.reports import build, write_xlsx
from commodel.reports.xlsx import workbook as xlsx

SHEETS = [
    "Overview",
    "Overview_2",
    "Summary",
    "Calculator",
    "Calculator_2",
    "Standings",
    "What to use",
    "Comparison",
    "Errors",
    "Selection",
    "Picks",
    "Families",
    "Parameters",
    "Latency",
    "Fits",
    "Raw summary",
    "Provenance",
    "Sets",
    "Chart data",
]


def test_sheets_stand_in_the_promised_order(book):
    assert book.sheetnames == SHEETS


def test_equal_reports_are_equal_bytes(inputs, workbook, tmp_path):
    write_xlsx(build(**inputs), tmp_path / "again.xlsx")
    assert (tmp_path / "again.xlsx").read_bytes() == workbook.read_bytes()


def test_nothing_half_written_is_left(report, tmp_path, monkeypatch):
    monkeypatch.setattr(xlsx.Workbook, "close", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_xlsx(report, tmp_path / "broken.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_numbers_fit_their_columns(book):
    """A number that is too wide shows as ###; a digit takes one unit of width, and the filter button some."""
    for sheet in book:
        if sheet.title == "Chart data" or sheet.title.startswith("Calculator"):  # whose formats suit any value
            continue
        for row in sheet.iter_rows():
            for cell in row:
                if isinstance(cell.value, int | float) and not isinstance(cell.value, bool):
                    whole, _, digits = cell.number_format.split(";")[0].partition(".")
                    wide = 9 if "E" in digits else len(f"{cell.value:,.{digits.count('0')}f}") + whole.count("+")
                    assert sheet.column_dimensions[cell.column_letter].width >= wide + 1, cell.coordinate


def test_print_set_up(book):
    for sheet in book:
        assert sheet.page_setup.orientation == "landscape"
        pages = 1 if sheet.title.startswith(("Calculator", "Overview")) else 0
        height = sheet.page_setup.fitToHeight
        assert (sheet.page_setup.fitToWidth or 1, 1 if height is None else height) == (1, pages)


def test_wide_content(comparison, tmp_path):
    wide = comparison[comparison["family"] == "loggp"].copy()
    wide = wide.assign(status="extrapolated: " + "long words " * 60, layout="l" * 300, bytes=np.int64(2) ** 50)
    book = written(build(wide, experiment="e" * 500, title="t" * 500), tmp_path / "wide.xlsx")
    assert max(column.width for column in book["Comparison"].column_dimensions.values()) < 60
