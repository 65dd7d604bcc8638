"""The workbook, read back with another library than the one that wrote it."""

import math
import re
import zipfile
from dataclasses import replace

import numpy as np
import openpyxl
import pytest

from commodel.report import build, write_xlsx
from commodel.report.shape import Axis, Chart, Column, Report, Section, Series, Table
from commodel.report.values import finite, show
from commodel.report.xlsx import workbook as xlsx
from commodel.report.xlsx.layout import longest_text

SHEETS = [
    "Summary",
    "Calculator",
    "Calculator_2",
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


@pytest.fixture(scope="module")
def path(report, tmp_path_factory):
    path = tmp_path_factory.mktemp("xlsx") / "report.xlsx"
    write_xlsx(report, path)
    return path


@pytest.fixture(scope="module")
def book(path):
    return openpyxl.load_workbook(path)


def written(report, path):
    write_xlsx(report, path)
    return openpyxl.load_workbook(path)


def rows_of(sheet, name):
    """Header and rows of one Excel table."""
    area = sheet[sheet.tables[name].ref]
    return [cell.value for cell in area[0]], [[cell.value for cell in row] for row in area[1:]]


def parts(path, pattern):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist() if re.search(pattern, name)}


def test_sheets_stand_in_the_promised_order(book):
    assert book.sheetnames == SHEETS


def test_comparison_is_a_filtered_table_with_a_frozen_header(book, comparison):
    sheet = book["Comparison"]
    (table,) = sheet.tables.values()
    first, last = table.ref.split(":")
    assert table.autoFilter.ref == table.ref
    assert sheet.freeze_panes == f"E{sheet[first].row + 1}"
    assert sheet[last].row - sheet[first].row == len(comparison)


def test_comparison_holds_the_values_of_the_frame(book, comparison):
    head, rows = rows_of(book["Comparison"], "T_Comparison")
    found = {(row[head.index("point")], row[head.index("family")]): dict(zip(head, row, strict=True)) for row in rows}
    assert len(found) == len(comparison)
    scales = {
        "measured": ("measured [µs]", 1e6),
        "measured_low": ("measured low [µs]", 1e6),
        "predicted": ("predicted [µs]", 1e6),
        "predicted_high": ("predicted high [µs]", 1e6),
        "skew": ("skew [µs]", 1e6),
        "relative_error": ("relative error [%]", 100),
        "mu": ("μ", 1),
        "bytes": ("bytes [B]", 1),
        "samples": ("samples", 1),
    }
    for row in comparison.to_dict("records"):
        cells = found[row["point"], row["family"]]
        for key, (header, scale) in scales.items():
            if not math.isfinite(row[key]):
                assert cells[header] == ("n/a" if math.isnan(row[key]) else "∞")
            else:
                assert cells[header] == pytest.approx(row[key] * scale, rel=1e-14)
        assert cells["choice"] == row["choice"]
        assert cells["price status"] == row["status"]
        assert cells["measurement"] == row["measurement"]
        assert cells["chosen"] == ("yes" if row["chosen"] else "no")
        assert cells["simulated"] == ("simulated" if row["platform"] == "fattree" else "no")
        assert (cells["regret [%]"] is None) == (not row["chosen"])


def test_every_table_says_what_the_report_says(book, report):
    names = {name: sheet for sheet in book for name in sheet.tables}
    tables = [table for section in report.sections for table in section.tables]
    assert len(tables) == len(names) == 26
    for table, name in zip(tables, names, strict=True):
        head, rows = rows_of(names[name], name)
        assert [title.lower() for title in head] == [column.header.lower() for column in table.columns]
        for cells, values in zip(rows, table.rows, strict=True):
            for cell, value, column in zip(cells, values, table.columns, strict=True):
                assert cell == (pytest.approx(value) if finite(value) else show(column.kind, value) or None)


def test_seconds_and_shares_carry_their_unit_in_the_header(report):
    for section in report.sections:
        for table in section.tables:
            for column in table.columns:
                if column.kind in ("percent", "signed"):
                    assert "%" in column.header or "%" in table.title
                if column.key.startswith(("measured", "predicted", "skew")) and column.kind == "number":
                    assert "[µs]" in column.header or "quantity" in [other.header for other in table.columns]


def test_everything_simulated_says_so(book):
    for sheet in book:
        assert "SIMULATED" in sheet["A2"].value
        assert "fattree" in sheet["A2"].value
        for table in sheet.tables:
            head, rows = rows_of(sheet, table)
            if "platform" in head:
                for row in rows:
                    assert row[head.index("simulated")] == (
                        "simulated" if row[head.index("platform")] == "fattree" else "no"
                    )


def test_real_measurements_do_not_say_simulated(inputs, tmp_path):
    real = inputs["comparison"][inputs["comparison"]["platform"] == "ether16"]
    sets = [each for each in inputs["parameter_sets"] if each.platform == "ether16"]
    book = written(build(real, sets, experiment="one"), tmp_path / "one.xlsx")
    assert not any("SIMULATED" in str(sheet["A2"].value) for sheet in book)
    assert {row[1] for row in rows_of(book["Comparison"], "T_Comparison")[1]} == {"no"}
    charts = list(book["Summary"]._charts)
    assert len(charts) == 1 + 5


def test_charts_are_native_logarithmic_and_refer_to_cells(path, report):
    charts = parts(path, r"charts/chart\d+\.xml")
    assert len(charts) == len(report.charts) + 2 > 10  # of each platform's calculator one
    over = [text for text in charts.values() if "predicted [µs]" in text]
    assert len(over) == 2
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


def test_equal_reports_are_equal_bytes(inputs, path, tmp_path):
    write_xlsx(build(**inputs), tmp_path / "again.xlsx")
    assert (tmp_path / "again.xlsx").read_bytes() == path.read_bytes()


def test_nothing_half_written_is_left(report, tmp_path, monkeypatch):
    monkeypatch.setattr(xlsx.Workbook, "close", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_xlsx(report, tmp_path / "broken.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_formulas_stand_on_calculators_only_and_none_leaves_its_sheet(book):
    for sheet in book:
        formulas = [cell.value for row in sheet.iter_rows() for cell in row if cell.data_type == "f"]
        assert bool(formulas) == sheet.title.startswith("Calculator")
        assert not any(re.search(r"[!|]|http|WEBSERVICE|INDIRECT|HYPERLINK", formula) for formula in formulas)


def test_calculators_are_protected_but_for_what_one_may_change(book):
    sheet = book["Calculator"]
    assert sheet.protection.sheet
    assert not sheet.protection.password
    cells = [cell for row in sheet.iter_rows() for cell in row]
    assert all(cell.protection.locked for cell in cells if cell.data_type == "f")
    free = {cell.coordinate for cell in cells if not cell.protection.locked}
    assert all(any(place in entry.sqref for entry in sheet.data_validations.dataValidation) for place in free)
    names = set(sheet.defined_names)
    assert {"ranks", "bytes", "segment", "fan_out_1", "loggp_L", "loggp_g", "loggp_G_"} <= names


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
        pages = 1 if sheet.title.startswith("Calculator") else 0
        height = sheet.page_setup.fitToHeight
        assert (sheet.page_setup.fitToWidth or 1, 1 if height is None else height) == (1, pages)


def test_long_tables_are_split_over_sheets(report, tmp_path, monkeypatch):
    monkeypatch.setattr(xlsx, "MAX_ROWS", 708)
    book = written(report, tmp_path / "split.xlsx")
    names = [name for name in book.sheetnames if name.startswith("Comparison")]
    assert names == ["Comparison", "Comparison 2", "Comparison 3"]
    lengths = [len(rows_of(book[name], next(iter(book[name].tables)))[1]) for name in names]
    assert lengths == [700, 700, 382]


def test_a_very_long_table_is_written_row_by_row_with_the_same_cells(report, tmp_path, monkeypatch, path):
    comparison = next(section for section in report.sections if section.name == "Comparison")
    monkeypatch.setattr(xlsx, "LONG", 100)
    long = written(replace(report, sections=(comparison,), sets=()), tmp_path / "long.xlsx")["Comparison"]
    usual = openpyxl.load_workbook(path)["Comparison"]
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


def test_the_longest_number_of_a_column_is_found(report):
    kinds = ("number", "count", "percent", "signed", "ratio")
    random = np.random.default_rng(3)
    for kind in kinds:
        values = [*(10 ** random.uniform(-5, 11, 500) * random.choice([-1, 1], 500)).tolist(), math.nan, None, "x"]
        assert longest_text(kind, values) == max(len(show(kind, value)) for value in values)


def test_the_first_sheet_leads_to_the_others_of_this_workbook_only(book):
    links = [cell.hyperlink for sheet in book for row in sheet.iter_rows() for cell in row if cell.hyperlink]
    assert all(link.target is None and link.location for link in links)
    places = [link.location.partition("!")[0].strip("'") for link in links]
    assert places == ["Calculator", "Comparison", "Errors", "Selection", "Parameters", "Provenance"]
    assert set(places) <= set(book.sheetnames)


def test_infinite_values_and_odd_headers(tmp_path, report):
    columns = tuple(
        Column(f"c{place}", header, "number") for place, header in enumerate(("a", "A", "", "=x", "b" * 400))
    )
    table = Table("odd/name", "Odd", columns, ((math.inf, -math.inf, math.nan, None, 1e-12), (0, -0.5, 1e12, 3, 2.5)))
    odd = replace(
        report, sections=(Section("a[b]:c*d?e/f\\g" + "h" * 40, "", (table,)), Section("Odd", "", (table, table)))
    )
    book = written(odd, tmp_path / "odd.xlsx")
    sheet = book.worksheets[0]
    assert len(sheet.title) <= 31
    assert not set(sheet.title) & set("[]:*?/\\")
    _, rows = rows_of(sheet, next(iter(sheet.tables)))
    assert rows == [["∞", "-∞", "n/a", None, 1e-12], [0, -0.5, 1e12, 3, 2.5]]


def test_wide_content(comparison, tmp_path):
    wide = comparison[comparison["family"] == "loggp"].copy()
    wide = wide.assign(status="extrapolated: " + "long words " * 60, layout="l" * 300, bytes=np.int64(2) ** 50)
    book = written(build(wide, experiment="e" * 500, title="t" * 500), tmp_path / "wide.xlsx")
    assert max(column.width for column in book["Comparison"].column_dimensions.values()) < 60


def test_beyond_eight_colours_the_dots_have_another_shape(tmp_path):
    clouds = tuple(Series(f"family {number}", (1.0, 2.0), (1.0, 2.0), "dots", number) for number in range(9))
    chart = Chart("Many", "Many", Axis("x"), Axis("y"), clouds)
    write_xlsx(Report("e", "e", "", (Section("Summary", "", (chart,)),)), tmp_path / "e.xlsx")
    with zipfile.ZipFile(tmp_path / "e.xlsx") as archive:
        shapes = re.findall(r'<c:symbol val="(\w+)"', archive.read("xl/charts/chart1.xml").decode())
    assert shapes == ["circle"] * 8 + ["diamond"]
