"""The first sheet, as its reader uses it: each question is answered after at most two clicks. A click leads to a cell
or to rows of this workbook, or to a file; nothing else is looked at."""

import io
from dataclasses import replace

import openpyxl
import pandas as pd
import pytest
from openpyxl.utils import range_boundaries

from commodel.reports import write_xlsx
from commodel.reports.xlsx import overview
from commodel.reports.xlsx.workbook import Workbook
from commodel.units import format_bytes

PLATFORM = "ether16"


@pytest.fixture(scope="module")
def pages(report, tmp_path_factory):
    """With links to raw files, as where report and results lie in one project."""
    path = tmp_path_factory.mktemp("overview") / "e.xlsx"
    write_xlsx(replace(report, results="../../results/e"), path)
    return openpyxl.load_workbook(path)


def links(cells):
    return [cell.hyperlink for cell in cells if cell.hyperlink]


def followed(book, link):
    """The sheet and the cells that a click selects."""
    name, _, area = link.location.rpartition("!")
    sheet = book[name.strip("'").replace("''", "'")]
    left, top, right, bottom = range_boundaries(area)
    return sheet, [cell for row in sheet.iter_rows(top, bottom, left, right) for cell in row]


def after(book, clicks):
    """All that the reader sees selected after so many clicks from the first sheet, link by link."""
    first = book.worksheets[0]
    seen = [(first, [cell for row in first.iter_rows() for cell in row])]
    for _ in range(clicks):
        inside = [link for _, cells in seen for link in links(cells) if link.location]
        seen = [followed(book, link) for link in inside]
    return seen


def texts(book):
    return [str(cell.value) for cell in after(book, 0)[0][1] if cell.value is not None]


def head_of(sheet, cell):
    """The headers of the table that a cell is in."""
    areas = [range_boundaries(table.ref) for table in sheet.tables.values()]
    (top,) = [top for _, top, _, bottom in areas if top < cell.row <= bottom]
    return [str(entry.value) for entry in sheet[top]]


def test_what_it_is_and_whether_anything_is_simulated_by_no_click(pages, report):
    said = texts(pages)
    assert said[0] == report.title
    assert "SIMULATED" in said[1]
    assert "fattree" in said[1]
    (line,) = [text for text in said if text.startswith(f"{PLATFORM}: ")]
    for part in ("measured", "2026-10-02", "3 hosts", "MPICH 5.0.2", "no container", "commit 4f2a91c"):
        assert part in line


def test_the_answers_are_those_of_the_page_and_do_not_name_the_platform_again(pages, report):
    said = texts(pages)
    (front,) = [front for front in report.fronts if front.platform == PLATFORM]
    for tile in front.tiles:
        assert {tile.question, tile.figure, tile.sentence} <= set(said)
    assert set(front.odd) <= set(said)
    sentences = [text for text in said if text.endswith(".")]
    assert sum(text.startswith(PLATFORM) for text in sentences) == 0


def test_which_tree_for_so_many_leaves_at_a_measured_size_by_no_click(pages, comparison):
    sheet, cells = after(pages, 0)[0]
    (label,) = [cell for cell in cells if cell.value == "32 leaves"]
    (column,) = [cell for cell in cells if cell.value == format_bytes(1024).replace(" ", "\N{NO-BREAK SPACE}")]
    here = comparison[
        (comparison["platform"] == PLATFORM) & (comparison["leaves"] == 32) & (comparison["bytes"] == 1024)
    ]
    fastest = here.loc[here["measured"].idxmin(), "choice"]
    assert sheet.cell(label.row, column.column).value.removeprefix("≈ ") == fastest


def test_at_a_size_that_was_not_measured_and_what_if_l_doubles_by_one_click(pages):
    reached = [(sheet, cells) for sheet, cells in after(pages, 1) if sheet.title == "Calculator"]
    assert len(reached) == 2
    (sheet, _), (_, (factor,)) = reached
    assert not sheet[sheet.defined_names["bytes"].attr_text.rpartition("!")[2]].protection.locked
    assert (factor.value, factor.protection.locked) == (1, False)
    assert sheet.cell(factor.row, 2).value in ("L", "alpha")
    (command,) = [text for text in texts(pages) if text.startswith("commodel advise")]
    assert f"--platform {PLATFORM}" in command


def test_calculators_stand_in_the_order_of_the_first_sheets(report):
    for fronts in (report.fronts, report.fronts[::-1]):
        book = Workbook(replace(report, fronts=fronts), io.BytesIO())
        assert [platform for platform, *_ in book.calculable] == [front.platform for front in fronts]


def test_lowest_error_for_an_operation_and_a_fan_in_by_one_click(pages, comparison):
    held = comparison[comparison["held_out"] & (comparison["platform"] == PLATFORM) & comparison["mu"].notna()]
    held = held[(held["operation"] == "reduce") & (held["fan_in"] == 4)]
    best = held.groupby("family")["mu"].mean().idxmin()
    marked = []
    for sheet, cells in after(pages, 1):
        for cell in cells if sheet.title == "Errors" else ():
            if [sheet.cell(cell.row, column).value for column in (3, 4)] == ["reduce", 4] and cell.font.bold:
                marked.append(head_of(sheet, cell)[cell.column - 1])
    assert marked == [best]


def test_latency_and_its_interval_by_one_click(pages):
    (row,) = [
        (sheet, cells[0])
        for sheet, cells in after(pages, 1)
        if sheet.title == "Latency" and len(cells) == 1 and cells[0].column > 1
    ]
    sheet, cell = row
    named = dict(zip(head_of(sheet, cell), [entry.value for entry in sheet[cell.row]], strict=True))
    assert named["platform"] == PLATFORM
    assert named["bytes [B]"] == 1
    assert named["median low [µs]"] < cell.value < named["median high [µs]"]


def test_a_number_down_to_its_samples_by_two_clicks(pages, comparison):
    raw = {text for text in comparison["raw"] if text}
    seen = 0
    for sheet, cells in after(pages, 1):
        if sheet.title == "Comparison" and len(cells) > 1:
            targets = {link.target.replace("\\", "/") for link in links(cells) if link.target}
            (target,) = targets
            assert target.removeprefix("../../results/e/") in raw
            at = head_of(sheet, cells[0]).index("point") + 1
            points = {sheet.cell(cell.row, at).value for cell in cells}
            assert len(points) == 1, "one point, priced by all families"
            seen += 1
    assert seen >= 10


def test_each_row_of_the_comparison_leads_to_its_raw_summary(pages):
    sheet = pages["Comparison"]
    at = head_of(sheet, sheet.cell(20, 1)).index("point")
    rows = [row for row in sheet.iter_rows(min_row=10) if row[at].hyperlink]
    assert len(rows) > 1000
    for row in rows[::97]:
        raw, cells = followed(pages, row[at].hyperlink)
        names = head_of(raw, cells[0])
        assert raw.cell(cells[0].row, names.index("id") + 1).value == row[at].value


def test_whether_it_is_better_than_last_month_is_a_command(pages):
    assert "commodel diff results/EARLIER results/trees-2026 --out changes.xlsx" in texts(pages)


def test_everything_else_is_one_click_away_and_leads_back(pages):
    reached = {sheet.title for sheet, _ in after(pages, 1)}
    assert {sheet.title for sheet in pages if sheet.sheet_state == "visible"} - reached == {
        "Overview",
        "Calculator_2",  # from the other platform's first sheet
    }
    for sheet in pages.worksheets[1:]:
        back = [link.location for link in links([sheet["A3"], sheet["A4"]])]
        assert back == ["Overview!A1"]


def test_many_rows_and_platforms_are_no_obstacle(comparison, tmp_path, monkeypatch):
    from commodel.reports import build

    monkeypatch.setattr(overview, "MOST_ROWS", 2)
    some = comparison[(comparison["bytes"] == 256) & comparison["family"].isin(["loggp", "hockney"])]
    some = some[some["platform"] == PLATFORM]
    parts = [
        some.assign(platform=name, group=some["group"] + name, point=some["point"] + name)
        for name in (f"p{number}" for number in range(6))
    ]
    write_xlsx(build(pd.concat(parts, ignore_index=True), experiment="many"), tmp_path / "many.xlsx")
    book = openpyxl.load_workbook(tmp_path / "many.xlsx")
    names = [sheet.title for sheet in book if sheet.title.startswith("Overview")]
    assert names == ["Overview", *(f"Overview_{number}" for number in range(2, 7))]
    linked = {link.location.strip("'").partition("!")[0].strip("'") for link in links(after(book, 0)[0][1])}
    assert set(names[1:]) <= linked
    assert any("rows more: on the sheet Selection" in text for text in texts(book))
