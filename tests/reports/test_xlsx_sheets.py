"""The sheets of the workbook: order, widths, set-up for paper; and that its file is whole and the same again."""

import math

import numpy as np
import openpyxl
import pytest
from tests.reports.book import written

from commodel.reports import build, write_xlsx
from commodel.reports.values import show
from commodel.reports.xlsx import pages
from commodel.reports.xlsx import workbook as xlsx
from commodel.reports.xlsx.layout import longest_text

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


def test_no_page_ends_in_a_chart(book):
    """All columns side by side on A4, and rows page by page as Excel lays them out."""
    charts = 0
    for sheet in (sheet for sheet in book if sheet._charts and not sheet.title.startswith(("Overview", "Calculator"))):
        last, widths = openpyxl.utils.cell.range_boundaries(sheet.print_area.split("!")[1])[2], {}
        for letter, group in sheet.column_dimensions.items():
            first = openpyxl.utils.column_index_from_string(letter)
            widths |= dict.fromkeys(range(first, (group.max or first) + 1), group.width)
        scale = min(1, 784 / sum((7 * widths.get(place, 8.43) + 5) * 0.75 for place in range(1, last + 1)))
        begins, height = {entry.id for entry in sheet.row_breaks.brk}, 0.0
        page_of, number = {}, 0
        for row in range(sheet.max_row + 500):
            own = (sheet.row_dimensions[row + 1].height or 15) * scale
            if row in begins or height + own > 508:
                number, height = number + 1, 0.0
            height += own
            page_of[row] = number
        for chart in sheet._charts:
            top, bottom = chart.anchor._from, chart.anchor.to
            assert page_of[top.row] == page_of[bottom.row], (sheet.title, top.row)
            assert bottom.col < last
            charts += 1
    assert charts > 10


def test_a_page_begins_before_what_it_would_cut():
    def breaks(*units, percent=100, heights=None):
        return pages.breaks([pages.Unit(*unit) for unit in units], heights or {}, percent, pages.A4)

    assert 32 < 0.97 * (595 - 86.4) / 15 < 33  # rows a page
    chart = (10, 40, 30)
    assert breaks((0, 10), chart) == [10]
    assert breaks((0, 10), chart, percent=75) == []
    assert breaks((0, 10), chart, percent=75, heights={0: 90.0}) == [10]
    assert breaks((0, 10), (10, 40)) == []  # a table has room enough
    assert breaks((0, 20), (20, 40)) == [20]
    assert breaks((0, 20), (20, 200)) == []  # where it would not stand on one page either
    assert breaks((0, 30), (30, 200)) == [30]  # but its head does not stand alone
    assert breaks((4, 40, 36)) == []  # nor does the title
    assert breaks((0, 100), (100, 110), (110, 130, 20)) == [110]  # 32, 64, 96 are the program's


def test_the_longest_number_of_a_column_is_found(report):
    kinds = ("number", "count", "percent", "signed", "ratio")
    random = np.random.default_rng(3)
    for kind in kinds:
        values = [*(10 ** random.uniform(-5, 11, 500) * random.choice([-1, 1], 500)).tolist(), math.nan, None, "x"]
        assert longest_text(kind, values) == max(len(show(kind, value)) for value in values)


def test_wide_content(comparison, tmp_path):
    wide = comparison[comparison["family"] == "loggp"].copy()
    wide = wide.assign(status="extrapolated: " + "long words " * 60, layout="l" * 300, bytes=np.int64(2) ** 50)
    book = written(build(wide, experiment="e" * 500, title="t" * 500), tmp_path / "wide.xlsx")
    assert max(column.width for column in book["Comparison"].column_dimensions.values()) < 60
