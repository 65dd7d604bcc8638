"""The workbook's native charts, by their XML and the cells that they draw."""

import re
import zipfile

import pytest
from tests.reports.book import parts

from commodel.reports import write_xlsx
from commodel.reports.shape import Axis, Chart, Report, Section, Series


def test_charts_are_native_logarithmic_and_refer_to_cells(workbook, report):
    charts = parts(workbook, r"charts/chart\d+\.xml")
    assert (
        len(charts) == len(report.charts) + 2 * 3 > 10
    )  # of each platform's calculator one, two again on its first sheet
    over = [text for text in charts.values() if "predicted [µs]" in text]
    assert len(over) == 2 * 2
    for text in over:
        assert text.count("<c:scatterChart>") == 1
        assert text.count('<c:logBase val="10"') == 2
        assert text.count("<c:ser>") == 6  # the diagonal and the five best families
        ends = re.findall(r'<c:(?:max|min) val="([^"]+)"', text)
        assert ends[:2] == ends[2:], "the diagonal needs equal axes"
        assert "'Chart data'!" in text
        assert "<c:v>loggp</c:v>" in text
    assert all("NaN" not in text and ">nan<" not in text.lower() for text in charts.values())


def test_charts_draw_what_the_report_says(book, report):
    sheet, column = book["Chart data"], 1
    assert sheet.sheet_state == "hidden"  # and so not printed
    for chart in report.charts:
        for series in chart.series:
            assert sheet.cell(6, column + 1).value == series.name
            assert [sheet.cell(7 + row, column).value for row in range(len(series.x))] == pytest.approx(list(series.x))
            assert [sheet.cell(7 + row, column + 1).value for row in range(len(series.y))] == pytest.approx(
                list(series.y)
            )
            column += 2


def test_beyond_eight_colours_the_dots_have_another_shape(tmp_path):
    clouds = tuple(Series(f"family {number}", (1.0, 2.0), (1.0, 2.0), "dots", number) for number in range(9))
    chart = Chart("Many", "Many", Axis("x"), Axis("y"), clouds)
    write_xlsx(Report("e", "e", "", (Section("Summary", "", (chart,)),)), tmp_path / "e.xlsx")
    with zipfile.ZipFile(tmp_path / "e.xlsx") as archive:
        shapes = re.findall(r'<c:symbol val="(\w+)"', archive.read("xl/charts/chart1.xml").decode())
    assert shapes == ["circle"] * 8 + ["diamond"]
