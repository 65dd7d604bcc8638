"""The matrix as a workbook: written, edited with another library, and read again."""

import shutil
from pathlib import Path

import openpyxl
import pytest
from click.testing import CliRunner

from commodel.cli import main
from commodel.plan.editable_matrix import COLUMNS, EXPERIMENT_SHEET, HEADER_ROWS, MATRIX_SHEET, join_to_blocks
from commodel.plan.planning import make_plan
from tests import libreoffice

TEXT = """\
title: "=1+1, a title"
platform: small
models: [hockney]
probe_bytes: [1, 64, 1KiB, 64KiB]
library: false
matrix:
  - axes: {operation: bcast, algorithm: [linear, "chain:4KiB"], ranks: [2, 4, 8], bytes: [8, 1KiB]}
    exclude: [{where: ranks == 8 and bytes == 8}]
  - axes: {operation: reduce, topology: ["flat:4", "kary:2^2"]}
    zips: {sizes: {bytes: [16, 64], waves: [1, 5]}}
    include: [{operation: barrier, algorithm: dissemination, nodes: 2, ranks_per_node: 2}]
"""
PLATFORM = "launcher: hosts\nnodes: 8\ncores: 2\nhosts: {names: [a1, a2, a3, a4, a5, a6, a7, a8]}\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    for kind, name, text in (("experiments", "mine", TEXT), ("platforms", "small", PLATFORM)):
        (tmp_path / "params" / kind).mkdir(parents=True)
        (tmp_path / "params" / kind / f"{name}.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    called("plan", "mine", "--format", "xlsx", "-o", "mine.xlsx")
    return tmp_path


def called(*arguments):
    return CliRunner().invoke(main, [*map(str, arguments)])


def ids(name, root):
    return sorted(point.id for point in make_plan(name, root).points)


def edited(path, sheet, change):
    book = openpyxl.load_workbook(path)
    change(book[sheet])
    book.save(path)


def cell(sheet, column, row=0):
    return sheet.cell(HEADER_ROWS + 1 + row, COLUMNS.index(column) + 1)


def test_an_unedited_workbook_is_the_same_points(project):
    result = called("plan", "--from", "mine.xlsx", "-o", "back.yaml")
    assert result.exit_code == 0, result.output
    assert ids("back.yaml", project) == ids("mine", project)
    assert "models: [hockney]" in (project / "back.yaml").read_text()


def test_excluded_points_stay_marked_in_the_sheet_and_a_formula_counts_the_rest(project):
    sheet = openpyxl.load_workbook("mine.xlsx")[MATRIX_SHEET]
    kept = [row[COLUMNS.index("keep")].value for row in sheet.iter_rows(min_row=HEADER_ROWS + 1) if row[1].value]
    assert (kept.count("yes"), kept.count("no")) == (15, 2)
    assert sheet["C1"].data_type == "f"
    assert openpyxl.load_workbook("mine.xlsx", data_only=True)[MATRIX_SHEET]["C1"].value == 15
    (rule,) = (rule for entry in sheet.conditional_formatting for rule in entry.rules)
    assert '="no"' in rule.formula[0]
    assert len(sheet.data_validations.dataValidation) == len(COLUMNS)


def node_hours(name, root):
    plan = make_plan(name, root)
    return sum(batch.seconds * batch.nodes for batch in plan.batches) / 3600


def test_node_hours_in_the_workbook_equal_the_plan(project):
    values = openpyxl.load_workbook("mine.xlsx", data_only=True)[MATRIX_SHEET]
    assert values["H1"].value == pytest.approx(node_hours("mine", project), rel=1e-9)
    rest = values.cell(1, len(COLUMNS) + 3).value
    assert 0 < rest < values["H1"].value


@pytest.mark.slow
def test_node_hours_in_the_workbook_follow_edits_of_points(project, tmp_path):
    def change(sheet):
        cell(sheet, "bytes", 1).value = 1 << 20
        cell(sheet, "keep", 3).value = "no"
        rows = [number for number in range(17) if cell(sheet, "waves", number).value == 5]
        cell(sheet, "waves", rows[0]).value = 900

    edited("mine.xlsx", MATRIX_SHEET, change)
    (book,) = libreoffice.recalculated([project / "mine.xlsx"], tmp_path)
    assert book[MATRIX_SHEET]["C1"].value == 14
    assert called("plan", "--from", "mine.xlsx", "-o", "back.yaml").exit_code == 0
    assert node_hours("back.yaml", project) > 1.05 * node_hours("mine", project)  # starts of programs are in both
    assert book[MATRIX_SHEET]["H1"].value == pytest.approx(node_hours("back.yaml", project), rel=1e-9)


def test_a_simulated_platform_takes_no_node_hours(project):
    for file in (Path(__file__).parents[2] / "params/platforms").glob("fast-ethernet-32.*"):
        shutil.copy(file, project / "params/platforms" / file.name)
    text = (project / "params/experiments/mine.yaml").read_text()
    (project / "params/experiments/mine.yaml").write_text(
        text.replace("small", "fast-ethernet-32").replace("ranks_per_node: 2", "ranks_per_node: 1")
    )
    assert called("plan", "mine", "--format", "xlsx", "-o", "simulated.xlsx").exit_code == 0
    sheet = openpyxl.load_workbook("simulated.xlsx")[MATRIX_SHEET]
    assert sheet["E1"].value == "simulated: no node-hours"
    assert sheet.max_column == len(COLUMNS)


def test_edits_are_read_back(project):
    def change(sheet):
        cell(sheet, "bytes").value = 4096
        cell(sheet, "keep", 1).value = "no"
        for column, value in {"operation": "gather", "algorithm": "linear", "ranks": 4, "bytes": 32}.items():
            cell(sheet, column, 17).value = value

    edited("mine.xlsx", MATRIX_SHEET, change)
    assert called("plan", "--from", "mine.xlsx", "-o", "back.yaml").exit_code == 0
    before, after = (make_plan(name, project).points for name in ("mine", "back.yaml"))
    names = [
        {(point.operation, point.alternative, point.ranks, point.bytes) for point in points}
        for points in (before, after)
    ]
    assert names[1] - names[0] == {("bcast", "linear", 2, 4096), ("gather", "linear", 4, 32)}
    assert names[0] - names[1] == {("bcast", "linear", 2, 8), ("bcast", "linear", 2, 1024)}


@pytest.mark.parametrize(
    ("sheet", "column", "value", "message"),
    [
        (MATRIX_SHEET, "operation", "bcats", "mine.xlsx: Matrix!B4:"),
        (MATRIX_SHEET, "algorithm", "linaer", "mine.xlsx: Matrix!C4:"),
        (MATRIX_SHEET, "ranks", "many", "mine.xlsx: Matrix!F4:"),
        (MATRIX_SHEET, "bytes", -1, "mine.xlsx: Matrix!I4:"),
        (MATRIX_SHEET, "bytes", "=1+1", "mine.xlsx: Matrix!I4: found '=1+1', wanted a name or a number"),
        (MATRIX_SHEET, "platform", "nowhere", "mine.xlsx: Matrix!A4:"),
        (MATRIX_SHEET, "keep", "perhaps", "mine.xlsx: Matrix!K4: found 'perhaps', wanted yes or no"),
        (EXPERIMENT_SHEET, None, "seed: -1", "mine.xlsx!Experiment:2: seed"),
        (EXPERIMENT_SHEET, None, "a: &x [*x]", "mine.xlsx!Experiment:2"),
    ],
)
def test_mistakes_name_sheet_and_cell(project, sheet, column, value, message):
    def change(page):
        (page["A2"] if column is None else cell(page, column)).value = value

    edited("mine.xlsx", sheet, change)
    result = called("plan", "--from", "mine.xlsx", "-o", "back.yaml")
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (project / "back.yaml").exists()


def test_a_plan_is_the_same_file_again(project):
    called("plan", "mine", "--format", "xlsx", "-o", "again.xlsx")
    assert (project / "again.xlsx").read_bytes() == (project / "mine.xlsx").read_bytes()


def test_combinations_that_differ_in_one_axis_are_a_block():
    rows = [
        {"operation": "bcast", "algorithm": choice, "ranks": ranks, "bytes": size}
        for choice in ("a", "b")
        for ranks in (2, 4)
        for size in (1, 8)
    ]
    rows = [{"platform": "", **row} for row in rows]
    assert join_to_blocks(rows) == [
        {"axes": {"operation": "bcast", "algorithm": ["a", "b"], "ranks": [2, 4], "bytes": [1, 8]}}
    ]
    assert len(join_to_blocks(rows[:-1])) == 3
