"""The workbook, read back with another library than the one that wrote it: its cells, and what is no formula."""

import math
import re
from dataclasses import replace

import pytest
from tests.reports.book import rows_of, written

from commodel.reports import build
from commodel.reports.shape import Column, Section, Table
from commodel.reports.values import finite, show


def test_comparison_is_a_filtered_table_with_a_frozen_header(book, comparison):
    sheet = book["Comparison"]
    (table,) = sheet.tables.values()
    first, last = table.ref.split(":")
    assert table.autoFilter.ref == table.ref
    assert sheet.freeze_panes == f"E{sheet[first].row + 1}"
    assert sheet[last].row - sheet[first].row == len(comparison)


def test_comparison_holds_the_values_of_the_frame(book, comparison):
    head, rows = rows_of(book["Comparison"], "T_Comparison")
    written = {(row[head.index("point")], row[head.index("family")]): dict(zip(head, row, strict=True)) for row in rows}
    assert len(written) == len(comparison)
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
        cells = written[row["point"], row["family"]]
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
    assert len(tables) == len(names) == 23
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
    sets = [parameters for parameters in inputs["parameter_sets"] if parameters.platform == "ether16"]
    book = written(build(real, sets, experiment="one"), tmp_path / "one.xlsx")
    assert not any("SIMULATED" in str(sheet["A2"].value) for sheet in book)
    assert {row[1] for row in rows_of(book["Comparison"], "T_Comparison")[1]} == {"no"}
    assert [len(book[name]._charts) for name in ("Summary", "What to use")] == [1, 5]


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


def test_infinite_values_and_odd_headers(tmp_path, report):
    columns = tuple(
        Column(f"c{place}", header, "number") for place, header in enumerate(("a", "A", "", "=x", "b" * 400))
    )
    table = Table("odd/name", "Odd", columns, ((math.inf, -math.inf, math.nan, None, 1e-12), (0, -0.5, 1e12, 3, 2.5)))
    sections = (Section("a[b]:c*d?e/f\\g" + "h" * 40, "", (table,)), Section("Odd", "", (table, table)))
    odd = replace(report, sections=sections, fronts=())
    book = written(odd, tmp_path / "odd.xlsx")
    sheet = book.worksheets[0]
    assert len(sheet.title) <= 31
    assert not set(sheet.title) & set("[]:*?/\\")
    _, rows = rows_of(sheet, next(iter(sheet.tables)))
    assert rows == [["∞", "-∞", "n/a", None, 1e-12], [0, -0.5, 1e12, 3, 2.5]]
