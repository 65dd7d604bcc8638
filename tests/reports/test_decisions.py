"""A decision table as a workbook: every cell equals the table's value, and every sheet marks
simulated times."""

import openpyxl
import pandas as pd
import pytest

from commodel.advice.decision_tables import COLUMNS, NOTE_SEPARATOR, summarize_notes
from commodel.reports.charts import PALE_COLOURS
from commodel.reports.workbooks import (
    MAX_WEIGHT_SETS,
    TIED_PREFIX,
    describe_basis,
    write_decision_workbook,
)

SIMULATED = "SIMULATED: the parameters were fitted to a simulated platform"


def row(operation, ranks, size, algorithm, **more):
    time = ranks * 1e-6 + size * 1e-9
    known = {
        "leaves": 0,
        "layout": "block:1",
        "seconds": time,
        "low": 0.9 * time,
        "high": 1.1 * time,
        "as_good": "",
    }
    known |= {
        "doubt": "",
        "platform": "mine",
        "simulated": False,
        "gain_over_default": float("nan"),
        "basis": "at least: 1 allocation, 20 workloads of bcast",
        "weights": "loggp 100 %",
        "notes": "",
        "layout_name": "block:1",
    }
    return (
        {"operation": operation, "ranks": ranks, "bytes": size, "algorithm": algorithm}
        | known
        | more
    )


@pytest.fixture
def table():
    rows = [
        row("bcast", ranks, size, "binomial" if size < 4096 else "chain:8KiB")
        for ranks in (2, 16)
        for size in (8, 4096)
    ]
    rows[1] |= {
        "as_good": "binary, linear",
        "notes": NOTE_SEPARATOR.join(["EXTRAPOLATED: 1.0 doublings beyond", "logp has weight 0"]),
    }
    rows[3] |= {"notes": "EXTRAPOLATED: 3.0 doublings beyond", "algorithm": "chain:64KiB"}
    return pd.DataFrame(
        [*rows, row("barrier", 4, 0, "=dissemination", doubt="@x")], columns=COLUMNS
    )


def book(table, tmp_path):
    write_decision_workbook(table, summarize_notes(table), tmp_path / "t.xlsx")
    return openpyxl.load_workbook(tmp_path / "t.xlsx")


def tables(sheet):
    return [[list(cells) for cells in sheet[area.ref]] for area in sheet.tables.values()]


def test_a_sheet_with_all_and_one_for_each_operation(table, tmp_path):
    sheets = book(table, tmp_path)
    assert sheets.sheetnames == ["Decisions", "bcast", "barrier"]
    ((head, *rows),) = tables(sheets["Decisions"])
    names = [cell.value for cell in head]
    assert "leaves" not in names
    for cells, wanted in zip(rows, table.to_dict("records"), strict=True):
        shown = dict(zip(names, (cell.value for cell in cells), strict=True))
        assert shown["use"] == wanted["algorithm"]
        assert (shown["ranks"], shown["bytes [B]"]) == (wanted["ranks"], wanted["bytes"])
        for name, key in (("time", "seconds"), ("low", "low"), ("high", "high")):
            assert shown[f"{name} [µs]"] == pytest.approx(wanted[key] * 1e6)


def test_the_decision_matrix_has_each_choice_at_the_right_ranks_and_bytes(table, tmp_path):
    ways, times = tables(book(table, tmp_path)["bcast"])
    assert [[cell.value for cell in cells] for cells in ways] == [
        ["ranks", "8\N{NO-BREAK SPACE}B", "4\N{NO-BREAK SPACE}KiB"],
        [2, "binomial", f"{TIED_PREFIX}chain:8KiB"],
        [16, "binomial", "chain:64KiB"],
    ]
    assert times[2][2].value == pytest.approx(16 + 4.096)


def test_each_algorithm_has_one_colour_for_all_arguments(table, tmp_path):
    for cells in tables(book(table, tmp_path)["bcast"]):
        colours = [[cell.fill.fgColor.rgb[2:] for cell in line[1:]] for line in cells[1:]]
        assert colours[0] == colours[1]
        assert len(set(colours[0])) == 2
        assert {f"#{colour}" for colour in colours[0]} <= set(PALE_COLOURS)


def test_decision_cells_name_the_layout_only_if_layouts_differ(table, tmp_path):
    mixed = table.assign(layout=["block:1", "cyclic:2", "block:1", "block:2", "block:1"])
    sheets = book(mixed, tmp_path)
    assert tables(sheets["bcast"])[0][1][2].value == f"{TIED_PREFIX}chain:8KiB, cyclic:2"
    assert "Layout: block." in " ".join(
        str(cell.value) for cells in sheets["barrier"] for cell in cells
    )


def test_leaves_go_down_where_trees_are_chosen(tmp_path):
    trees = pd.DataFrame(
        [row("reduce", 9, 8, "flat:8", leaves=8), row("reduce", 21, 8, "kary:4^2", leaves=16)]
    )
    sheets = book(trees[list(COLUMNS)], tmp_path)
    assert [line[0].value for line in tables(sheets["reduce"])[0]] == ["leaves", 8, 16]
    assert "leaves" in [cell.value for cell in tables(sheets["Decisions"])[0][0]]


def test_every_sheet_names_simulated_platforms(table, tmp_path):
    for sheet in book(table.assign(simulated=True, notes=SIMULATED), tmp_path):
        texts = [str(cell.value) for cells in sheet.iter_rows(max_row=3) for cell in cells]
        assert any(text.startswith("SIMULATED: ") for text in texts)
        assert any("mine (simulated)" in text for text in texts)
    for sheet in book(table, tmp_path):
        assert not any(
            "SIMULATED" in str(cell.value) for cells in sheet.iter_rows() for cell in cells
        )


def test_nothing_is_a_formula(table, tmp_path):
    for sheet in book(table, tmp_path):
        assert all(cell.data_type != "f" for cells in sheet.iter_rows() for cell in cells)


def test_each_kind_of_note_appears_once(table):
    assert summarize_notes(table) == [
        "2 of 5 workloads, such as bcast over 2 ranks, 4 KiB: EXTRAPOLATED: 1.0 doublings beyond",
        "1 of 5 workloads, such as bcast over 2 ranks, 4 KiB: logp has weight 0",
    ]
    assert summarize_notes(table.assign(notes=SIMULATED)) == [SIMULATED]


def test_weights_are_listed_by_operation(table):
    lines = describe_basis(table, summarize_notes(table)).sentences
    assert "Weights for bcast: loggp 100 %." in lines
    many = pd.concat(
        [table.assign(weights=f"loggp {share} %") for share in range(MAX_WEIGHT_SETS + 2)]
    )
    lines = describe_basis(many, summarize_notes(many)).sentences
    assert "Weights for bcast at 4 of 20 workloads: loggp 0 %." in lines
    assert "Weights for bcast at other workloads: 2 more sets." in lines
