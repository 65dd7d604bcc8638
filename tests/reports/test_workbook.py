"""The workbook, read with another library than the one that wrote it: its cells, sheets and native
charts, texts that must not be formulas, and long tables in separate files."""

import io
import math
import re
import zipfile
from dataclasses import replace

import numpy as np
import openpyxl
import pandas as pd
import pytest
import xlsxwriter

from commodel.compare.recommended import recommend_points
from commodel.reports import charts, write_xlsx
from commodel.reports.comparison_frame import prepare_comparison, select_held_out
from commodel.reports.elements import (
    TEXT_KINDS,
    Axis,
    Chart,
    Column,
    Report,
    Section,
    Series,
    Table,
    format_value,
    has_rank,
    is_finite_number,
    make_table,
)
from commodel.reports.xlsx import layout
from commodel.reports.xlsx import workbook as xlsx
from tests import libreoffice
from tests.reports.reading import make_report, parts, rows_of, written


def count_compared(report):
    """Return the number of rows of the comparison, with those of the recommended prediction."""
    return len(report.section("Comparison").tables[0].rows)


def test_comparison_is_a_filtered_table_with_a_frozen_header(book, report):
    sheet = book["Comparison"]
    (table,) = sheet.tables.values()
    first, last = table.ref.split(":")
    assert table.autoFilter.ref == table.ref
    assert sheet.freeze_panes == f"E{sheet[first].row + 1}"
    assert sheet[last].row - sheet[first].row == count_compared(report)


def test_comparison_begins_with_the_recommended_predictions(book, comparison):
    head, rows = rows_of(book["Comparison"], "T_Comparison")
    rows = [dict(zip(head, row, strict=True)) for row in rows]
    expected = recommend_points(comparison).set_index("point")
    for platform in ("ether16", "fattree"):
        of_platform = [row for row in rows if row["platform"] == platform]
        recommended = [row for row in of_platform if row["model"] == "recommended"]
        assert of_platform[: len(recommended)] == recommended
        assert {row["point"] for row in recommended} == set(
            expected.index[expected["platform"] == platform]
        )
        for row in recommended:
            for title, name in (("predicted", "seconds"), ("predicted low", "low")):
                assert row[f"{title} [µs]"] == pytest.approx(1e6 * expected.at[row["point"], name])
            assert row["interval basis"] == expected.at[row["point"], "basis"]
            assert row["parameters low [µs]"] == "n/a"


def test_comparison_holds_the_values_of_the_frame(book, report, comparison):
    head, rows = rows_of(book["Comparison"], "T_Comparison")
    written = {
        (row[head.index("point")], row[head.index("model")]): dict(zip(head, row, strict=True))
        for row in rows
    }
    assert len(written) == count_compared(report)
    scales = {
        "measured": ("measured [µs]", 1e6),
        "measured_low": ("measured low [µs]", 1e6),
        "seconds": ("predicted [µs]", 1e6),
        "high": ("predicted high [µs]", 1e6),
        "skew": ("skew [µs]", 1e6),
        "relative_error": ("relative error [%]", 100),
        "mu": ("μ", 1),
        "bytes": ("bytes [B]", 1),
        "samples": ("samples", 1),
    }
    for row in comparison.to_dict("records"):
        cells = written[row["point"], row["model"]]
        for key, (header, scale) in scales.items():
            if not math.isfinite(row[key]):
                assert cells[header] == ("n/a" if math.isnan(row[key]) else "∞")
            else:
                assert cells[header] == pytest.approx(row[key] * scale, rel=1e-14)
        assert cells["alternative"] == row["alternative"]
        assert cells["validity"] == row["validity"]
        assert cells["measurement"] == row["measurement"]
        assert cells["chosen"] == ("yes" if row["chosen"] else "no")
        assert cells["simulated"] == ("simulated" if row["platform"] == "fattree" else "no")
        assert (cells["regret [%]"] is None) == (not row["chosen"])


def test_every_table_has_the_values_of_the_report(book, report):
    names = {name: sheet for sheet in book for name in sheet.tables if sheet.title != "Calculator"}
    tables = [table for section in xlsx.merge_sections(report) for table in section.tables]
    assert len(tables) == len(names) == 27
    for table, name in zip(tables, names, strict=True):
        head, rows = rows_of(names[name], name)
        assert [title.lower() for title in head] == [
            column.header.lower() for column in table.columns
        ]
        for cells, values in zip(rows, table.rows, strict=True):
            for cell, value, column in zip(cells, values, table.columns, strict=True):
                assert cell == (
                    pytest.approx(value)
                    if is_finite_number(value)
                    else format_value(column.kind, value) or None
                )


def test_seconds_and_shares_carry_their_unit_in_the_header(report):
    for section in report.sections:
        for table in section.tables:
            for column in table.columns:
                if column.kind in ("percent", "signed"):
                    assert "%" in column.header or "%" in table.title
                if (
                    column.key.startswith(("measured", "seconds", "skew"))
                    and column.kind == "number"
                ):
                    assert "[µs]" in column.header or "quantity" in [
                        other.header for other in table.columns
                    ]


def test_simulated_rows_and_sheets_are_marked(book):
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


def test_measured_rows_and_sheets_are_not_marked_as_simulated(inputs, fewer, tmp_path):
    real = fewer[fewer["platform"] == "ether16"]
    sets = [
        parameters for parameters in inputs["parameter_sets"] if parameters.platform == "ether16"
    ]
    book = written(make_report(real, sets, experiment="one"), tmp_path / "one.xlsx")
    assert not any("SIMULATED" in str(sheet["A2"].value) for sheet in book)
    head, rows = rows_of(book["Comparison"], "T_Comparison")
    assert {row[head.index("simulated")] for row in rows} == {"no"}
    assert len(book["What to use"]._charts) == 4


def test_columns_of_a_single_value_are_last_folded_and_repeated_in_the_note(small, tmp_path):
    report = make_report(small[small["platform"] == "ether16"], experiment="one")
    section = report.section("Comparison")
    (table,) = section.tables
    keys = [column.key for column in table.columns]
    constant = [key for key in keys if len({*table.column(key)}) == 1]
    folded = keys[len(keys) - table.folded :]
    assert {"platform", "simulated"} <= set(folded) <= set(constant)
    assert "ether16" in section.note
    sheet = written(report, tmp_path / "one.xlsx")["Comparison"]
    hidden = [entry for entry in sheet.column_dimensions.values() if entry.hidden]
    assert sum(entry.max - entry.min + 1 for entry in hidden) == table.folded
    assert min(entry.min for entry in hidden) == len(keys) - table.folded + 1


def test_row_heights_fit_wrapped_text(book):
    """Spreadsheet programs keep the row heights of a workbook: a second line would be cut off."""
    several = 0
    for sheet in book:
        ranges = [
            (range(entry.min, entry.max + 1), entry.width)
            for entry in sheet.column_dimensions.values()
        ]
        widths = {column: width for columns, width in ranges for column in columns}
        for table in sheet.tables.values():
            head = sheet[table.ref][0]
            lines = max(-(-len(cell.value) // int(widths.get(cell.column, 9))) for cell in head)
            assert (sheet.row_dimensions[head[0].row].height or 15) >= 15 * lines
            several += lines > 1
            for cell in (
                cell for row in sheet[table.ref][1:] for cell in row if cell.alignment.wrap_text
            ):
                # spaces end lines
                lines = -(-(len(str(cell.value or "")) + 1) // (layout.MAX_COLUMN_WIDTH + 1))
                assert (sheet.row_dimensions[cell.row].height or 15) >= 15 * lines
    assert several


def test_only_calculators_have_formulas_and_none_refers_to_another_sheet(book):
    for sheet in book:
        formulas = [
            cell.value for row in sheet.iter_rows() for cell in row if cell.data_type == "f"
        ]
        assert bool(formulas) == sheet.title.startswith("Calculator")
        assert not any(
            re.search(r"[!|]|http|WEBSERVICE|INDIRECT|HYPERLINK", formula) for formula in formulas
        )


def test_calculators_are_protected_except_for_validated_input_cells(book):
    sheet = book["Calculator"]
    assert sheet.protection.sheet
    assert not sheet.protection.password
    cells = [cell for row in sheet.iter_rows() for cell in row]
    assert all(cell.protection.locked for cell in cells if cell.data_type == "f")
    free = {cell.coordinate for cell in cells if not cell.protection.locked}
    assert all(
        any(place in entry.sqref for entry in sheet.data_validations.dataValidation)
        for place in free
    )
    names = set(sheet.defined_names)
    assert {
        "ranks",
        "bytes",
        "fan_out_1",
        "loggp_L_1",
        "loggp_g_1",
        "loggp_G_1_",
        "loggp_L_2",
    } <= names


def test_infinite_values_and_odd_headers(tmp_path, report):
    columns = tuple(
        Column(f"c{place}", header, "number")
        for place, header in enumerate(("a", "A", "", "=x", "b" * 400))
    )
    table = Table(
        "odd/name",
        "Odd",
        columns,
        ((math.inf, -math.inf, math.nan, None, 1e-12), (0, -0.5, 1e12, 3, 2.5)),
    )
    sections = (
        Section("a[b]:c*d?e/f\\g" + "h" * 40, "", (table,)),
        Section("Odd", "", (table, table)),
    )
    odd = replace(report, sections=sections, screens=())
    book = written(odd, tmp_path / "odd.xlsx")
    sheet = book.worksheets[0]
    assert len(sheet.title) <= 31
    assert not set(sheet.title) & set("[]:*?/\\")
    _, rows = rows_of(sheet, next(iter(sheet.tables)))
    assert rows == [["∞", "-∞", "n/a", None, 1e-12], [0, -0.5, 1e12, 3, 2.5]]


SHEETS = [
    "Overview ether16",
    "Overview fattree",
    "What to use",
    "Comparison",
    "Errors",
    "Models",
    "Fits",
    "Network",
    "Raw summary",
    "Provenance",
    "Glossary",
    "Calculator",
    "Chart data",
]


def test_sheets_stand_in_the_promised_order(book):
    assert book.sheetnames == SHEETS
    kinds = {
        sheet.title.split(" ether16")[0].split(" fattree")[0]
        for sheet in book
        if sheet.sheet_state == "visible"
    }
    assert len(kinds) == 11
    assert sum(sheet.sheet_state == "visible" for sheet in book) == 12


def test_every_section_is_on_a_sheet_under_its_name(book, report):
    texts = {cell.value for sheet in book for (cell,) in sheet["A1:A2000"]}
    merged = {name for names in xlsx.SHEETS.values() for name in names[1:]}
    assert {section.name for section in report.sections} <= {*texts, *book.sheetnames}
    assert {"Findings", "Parameters", "Latency", "Standings"} <= merged & texts


def check_pivot(frame, report):
    """The sheet is one rectangle of typed columns, from which a pivot table gives the means of the
    report."""
    (table,) = report.section("Comparison").tables
    assert len(frame) == len(table.rows)
    assert not any(str(name).startswith("Unnamed") for name in frame)
    keys = [column.key for column in table.columns]
    for column in table.columns:
        if column.kind not in TEXT_KINDS:
            assert pd.api.types.is_numeric_dtype(frame[column.header]), column.header
    mu = table.columns[keys.index("mu")].header
    pivot = frame.pivot_table(index="operation", columns="model", values=mu, aggfunc="mean")
    of_recommended = [
        row[keys.index("mu")]
        for row in table.rows
        if row[keys.index("model")] == "recommended" and row[keys.index("operation")] == "bcast"
    ]
    wanted = [value for value in of_recommended if is_finite_number(value)]
    assert pivot.loc["bcast", "recommended"] == pytest.approx(sum(wanted) / len(wanted))


def test_a_pivot_over_the_comparison_works_at_once(fewer, tmp_path):
    workbook = tmp_path / "fewer.xlsx"
    report = make_report(fewer, experiment="fewer")
    sheet = written(report, workbook)["Comparison"]
    (table,) = sheet.tables.values()
    head = sheet[table.ref][0][0].row
    assert not sheet.merged_cells.ranges
    check_pivot(
        pd.read_excel(workbook, sheet_name="Comparison", header=head - 1, na_values=["n/a", "∞"]),
        report,
    )
    (computed,) = libreoffice.recalculated([workbook], tmp_path)
    rows = list(computed["Comparison"].iter_rows(min_row=head, values_only=True))
    frame = (
        pd.DataFrame(rows[1:], columns=rows[0])
        .replace({"n/a": np.nan, "∞": np.nan})
        .infer_objects()
    )
    check_pivot(frame, report)


def test_it_prints_on_few_pages_none_of_them_half_empty(workbook, book, tmp_path):
    """The pages by the page breaks of the sheets are those of LibreOffice. The last page of a sheet
    is more than half full."""
    planned = 0
    for sheet in (sheet for sheet in book if sheet.sheet_state == "visible"):
        (area,) = re.findall(r"\$[A-Z]+\$1:\$[A-Z]+\$(\d+)", str(sheet.print_area))
        ends = [*(entry.id for entry in sheet.row_breaks.brk), int(area)]
        planned += len(ends)
        heights = [
            sheet.row_dimensions[row].height or sheet.sheet_format.defaultRowHeight
            for row in range(1, ends[-1])
        ]
        pages = [sum(heights[first:end]) for first, end in zip([0, *ends], ends, strict=False)]
        assert pages[-1] >= 0.5 * max(pages), sheet.title
    assert planned <= 20
    assert libreoffice.count_pages(workbook, tmp_path) == planned


def test_nothing_half_written_is_left(report, tmp_path, monkeypatch):
    monkeypatch.setattr(xlsx.Workbook, "close", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_xlsx(report, tmp_path / "broken.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_numbers_fit_their_columns(book):
    """A number that is too wide shows as ###. A digit takes one unit of width; the filter button
    needs one unit."""
    for sheet in book:
        # whose formats suit any value
        if sheet.title == "Chart data" or sheet.title.startswith("Calculator"):
            continue
        for row in sheet.iter_rows():
            for cell in row:
                if isinstance(cell.value, int | float) and not isinstance(cell.value, bool):
                    whole, _, digits = cell.number_format.split(";")[0].partition(".")
                    wide = (
                        9
                        if "E" in digits
                        else len(f"{cell.value:,.{digits.count('0')}f}") + whole.count("+")
                    )
                    assert sheet.column_dimensions[cell.column_letter].width >= wide + 1, (
                        cell.coordinate
                    )


def test_print_set_up(book):
    for sheet in book:
        assert sheet.page_setup.orientation == "landscape"
        assert sheet.print_title_rows or sheet.title.startswith(
            ("Overview", "Calculator", "Chart data")
        )
        pages = 1 if sheet.title.startswith("Overview") else 0
        height = sheet.page_setup.fitToHeight
        assert (sheet.page_setup.fitToWidth or 1, 1 if height is None else height) == (1, pages)


def test_a_page_ends_before_a_block_that_it_would_cut():
    """A page has 32 rows of 20 pixels; what is longer than a page is cut anyway."""
    starts, filled = layout.break_pages(
        [20] * 130, 650, [(0, 5), (20, 42), (42, 64), (64, 120), (121, 124)]
    )
    assert starts == [0, 20, 42, 74, 106]
    assert filled == 24 * 20


def test_a_sheet_becomes_smaller_to_print_no_page_that_is_half_empty():
    book = xlsxwriter.Workbook(io.BytesIO())
    book.worksheet_class = layout.Sheet
    sheet = book.add_worksheet()
    sheet.set_paper(9)
    assert sheet.print_pages(70, 10, [(20, 30)], max_pages=2) == 70
    assert len(sheet.hbreaks) == 1
    assert sheet.print_pages(40, 10, [], max_pages=2) == 40
    assert sheet.hbreaks == []
    assert sheet.print_pages(400, 10, [(60, 70)], max_pages=2) == 60  # the rest is not printed


def test_a_line_of_charts_is_kept_together_with_its_heading(book):
    sheet = book["What to use"]
    heading = next(row[0].row for row in sheet if row[0].value == "Time over message size")
    breaks = {entry.id for entry in sheet.row_breaks.brk}
    for anchor in (chart.anchor for chart in sheet._charts):
        assert not breaks & set(range(anchor._from.row + 1, anchor.to.row))
    assert not breaks & {heading, heading + 1}


def test_printed_heads_name_simulated_platforms_and_footers_count_the_rows_of_the_table(
    book, report
):
    simulated = "SIMULATED measurements on fattree"
    assert simulated in book["Comparison"].oddHeader.center.text
    assert simulated in book["Overview fattree"].oddHeader.center.text
    assert not (book["Overview ether16"].oddHeader.center.text or "").strip()
    assert f" of {count_compared(report):,} rows" in book["Comparison"].oddFooter.center.text


def test_wide_content(comparison, tmp_path):
    wide = comparison[comparison["model"] == "loggp"].copy()
    wide = wide.assign(
        validity="extrapolated: " + "long words " * 60, layout="l" * 300, bytes=np.int64(2) ** 50
    )
    book = written(make_report(wide, experiment="e" * 500, title="t" * 500), tmp_path / "wide.xlsx")
    assert max(column.width for column in book["Comparison"].column_dimensions.values()) < 60


def test_charts_are_native_logarithmic_and_refer_to_cells(workbook, report):
    charts = parts(workbook, r"charts/chart\d+\.xml")
    # two again on each platform's first sheet, one of the calculator
    assert len(charts) == len(report.charts) + 2 * 2 + 1 > 10
    over = [text for text in charts.values() if "predicted [µs]" in text]
    assert len(over) == 2 * 2
    for text in over:
        assert text.count("<c:scatterChart>") == 1
        assert text.count('<c:logBase val="10"') == 2
        # the diagonal, the recommended prediction, and the five best models
        assert text.count("<c:ser>") == 7
        ends = re.findall(r'<c:(?:max|min) val="([^"]+)"', text)
        assert ends[:2] == ends[2:], "the diagonal needs equal axes"
        assert "'Chart data'!" in text
        assert "<c:v>loggp</c:v>" in text
    assert all("NaN" not in text and ">nan<" not in text.lower() for text in charts.values())


def test_charts_draw_the_values_of_the_report(book, report):
    sheet, column = book["Chart data"], 1
    assert sheet.sheet_state == "hidden"  # and so not printed
    for chart in (chart for section in xlsx.merge_sections(report) for chart in section.charts):
        for series in chart.series:
            assert sheet.cell(6, column + 1).value == series.name
            assert [
                sheet.cell(7 + row, column).value for row in range(len(series.x))
            ] == pytest.approx(list(series.x))
            assert [
                sheet.cell(7 + row, column + 1).value for row in range(len(series.y))
            ] == pytest.approx(list(series.y))
            column += 2


def test_beyond_eight_colours_the_dots_have_another_shape(tmp_path):
    clouds = tuple(
        Series(f"model {number}", (1.0, 2.0), (1.0, 2.0), "dots", number) for number in range(9)
    )
    chart = Chart("Many", "Many", Axis("x"), Axis("y"), clouds)
    write_xlsx(Report("e", "e", "", (Section("Summary", "", (chart,)),)), tmp_path / "e.xlsx")
    with zipfile.ZipFile(tmp_path / "e.xlsx") as archive:
        shapes = re.findall(r'<c:symbol val="(\w+)"', archive.read("xl/charts/chart1.xml").decode())
    assert shapes == ["circle"] * 8 + ["diamond"]


def test_a_long_table_among_others_on_a_sheet_is_in_a_file(tmp_path, monkeypatch):
    for module in (xlsx, layout):
        monkeypatch.setattr(module, "MAX_TABLE_ROWS", 20)
    monkeypatch.setattr(layout, "LONG_TABLE_SHOWN_ROWS", 5)
    columns = Column("a", "a", "count"), Column("b", "b", "number")
    rows = [(number, number / 2) for number in range(30)]
    tables = (
        make_table("Long", "Samples of curves", rows, columns),
        make_table("Short", "Short", rows[:3], columns),
    )
    path, beside = write_xlsx(
        Report("e", "e", "", (Section("Fits", "", tables),)), tmp_path / "e.xlsx"
    )
    assert beside == tmp_path / "samples-of-curves.parquet"
    assert pd.read_parquet(beside)["a"].tolist() == list(range(30))
    cells = [row[0] for row in openpyxl.load_workbook(path)["Fits"].iter_rows(values_only=True)]
    (note,) = [cell for cell in cells if isinstance(cell, str) and "more than can be read" in cell]
    assert "all are in samples-of-curves.parquet beside this workbook; here the first 5." in note


def test_tables_too_large_for_a_sheet_are_in_a_file(report, tmp_path, monkeypatch):
    for module in (xlsx, layout):
        monkeypatch.setattr(module, "MAX_TABLE_ROWS", 700)
    monkeypatch.setattr(layout, "LONG_TABLE_SHOWN_ROWS", 50)
    monkeypatch.setattr(layout, "PARQUET_PIECE_ROWS", 400)
    path, beside = write_xlsx(report, tmp_path / "large.xlsx")
    assert beside == tmp_path / "comparison.parquet"
    sheet = openpyxl.load_workbook(path)["Comparison"]
    assert sheet["A3"].value == (
        f"{count_compared(report):,} rows, more than can be read on a sheet: "
        "all are in comparison.parquet beside this workbook; here the first 50."
    )
    head, rows = rows_of(sheet, "T_Comparison")
    assert len(rows) == 50
    table, frame = report.section("Comparison").tables[0], pd.read_parquet(beside)
    assert list(frame.columns) == head
    assert len(frame) == len(table.rows) == count_compared(report)
    for place, column in enumerate(table.columns):
        for value, wanted in zip(frame[head[place]], table.values(place), strict=True):
            if has_rank(wanted):
                assert value == wanted
            else:
                said = "" if pd.isna(value) else value
                assert said == (
                    format_value(column.kind, wanted) if column.kind in TEXT_KINDS else ""
                )
    again = write_xlsx(report, tmp_path / "large.xlsx")[1]
    assert again.read_bytes() == beside.read_bytes()


def test_a_text_that_looks_like_formatted_markup_is_a_text(report, tmp_path):
    """XlsxWriter would copy it into the file as it is, and nothing could open that."""
    text = "<r><t>not closed</r>"
    table = Table("t", "T", (Column("a", text), Column("b", "b")), ((text, 1),))
    odd = replace(report, sections=(Section("Odd", "", (table,)),), title=text, sets=())
    cells = [
        cell.value for row in written(odd, tmp_path / "odd.xlsx")["Odd"].iter_rows() for cell in row
    ]
    assert [str(value).strip() for value in cells].count(text) == 2


def test_charts_with_too_many_dots_draw_a_sample_of_points(comparison, monkeypatch):
    """Each drawn point keeps the dots of all models, so that no model has an advantage."""
    frame = select_held_out(prepare_comparison(comparison))
    whole = charts.chart_predictions(frame)["ether16"]
    monkeypatch.setattr(charts, "MAX_DOTS", 100)
    some = charts.chart_predictions(frame)["ether16"]
    step = int(re.search(r"One of every (\d+) points is drawn", some.note)[1])
    assert step > 1
    _, *clouds = some.series
    assert sum(len(cloud.x) for cloud in clouds) <= 1.2 * 100
    for cloud, all_dots in zip(clouds, whole.series[1:], strict=True):
        assert len(all_dots.x) / step * 0.8 < len(cloud.x) < len(all_dots.x)
        assert set(zip(cloud.x, cloud.y, cloud.labels, strict=True)) < set(
            zip(all_dots.x, all_dots.y, all_dots.labels, strict=True)
        )
    assert len({cloud.x for cloud in clouds if len(cloud.x) == len(clouds[0].x)}) == 1
