"""Long tables in the workbook: written row by row with the same cells, and what is more than can be read on a sheet."""

import re
from dataclasses import replace

import openpyxl
import pandas as pd
from tests.reports.book import rows_of, written

from commodel.reports import charts, write_xlsx
from commodel.reports.frames import judged, prepare
from commodel.reports.shape import WORDS, Column, Section, Table
from commodel.reports.values import comparable, show
from commodel.reports.xlsx import layout
from commodel.reports.xlsx import workbook as xlsx


def test_what_no_sheet_can_hold_lies_beside_the_workbook(report, comparison, tmp_path, monkeypatch):
    for module in (xlsx, layout):
        monkeypatch.setattr(module, "LONGEST_TABLE", 700)
    monkeypatch.setattr(layout, "ROWS_SHOWN", 50)
    monkeypatch.setattr(layout, "PIECE", 400)
    path, beside = write_xlsx(report, tmp_path / "large.xlsx")
    assert beside == tmp_path / "comparison.parquet"
    sheet = openpyxl.load_workbook(path)["Comparison"]
    assert sheet["A3"].value == (
        f"{len(comparison):,} rows, more than can be read on a sheet: "
        "all are in comparison.parquet beside this workbook; here the first 50."
    )
    head, rows = rows_of(sheet, "T_Comparison")
    assert len(rows) == 50
    table, frame = report.section("Comparison").tables[0], pd.read_parquet(beside)
    assert list(frame.columns) == head
    assert len(frame) == len(table.rows) == len(comparison)
    for place, column in enumerate(table.columns):
        for value, wanted in zip(frame[head[place]], table.values(place), strict=True):
            if comparable(wanted):
                assert value == wanted
            else:
                said = "" if pd.isna(value) else value
                assert said == (show(column.kind, wanted) if column.kind in WORDS else "")
    again = write_xlsx(report, tmp_path / "large.xlsx")[1]
    assert again.read_bytes() == beside.read_bytes()


def test_a_text_that_looks_like_formatted_markup_is_a_text(report, tmp_path):
    """XlsxWriter would copy it into the file as it is, and nothing could open that."""
    text = "<r><t>not closed</r>"
    table = Table("t", "T", (Column("a", text), Column("b", "b")), ((text, 1),))
    odd = replace(report, sections=(Section("Odd", "", (table,)),), title=text, sets=())
    cells = [cell.value for row in written(odd, tmp_path / "odd.xlsx")["Odd"].iter_rows() for cell in row]
    assert [str(value).strip() for value in cells].count(text) == 2


def test_charts_of_very_many_dots_have_those_of_some_points(comparison, monkeypatch):
    """Of each point that is drawn all families', so that none looks better for it."""
    frame = judged(prepare(comparison))
    whole = charts.predicted_measured(frame)["ether16"]
    monkeypatch.setattr(charts, "MOST_DOTS", 100)
    some = charts.predicted_measured(frame)["ether16"]
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
