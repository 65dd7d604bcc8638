"""commodel partition: every format says the same, a workbook is edited and read back, and mistakes are one line."""

import csv
import io
import xml.etree.ElementTree as ET

import numpy as np
import openpyxl
import pytest

from commodel.api.kernels import locate_processes, read_process_speeds
from commodel.models.speeds import Speed
from commodel.patterns.partitions.arrangement import by_columns
from commodel.patterns.partitions.shares import even_out_times, geometric
from commodel.patterns.rectangles import read, write
from commodel.predictions.kernel_times import computation
from tests.cli.running import output, read_rows

SPEEDS = "params/speeds/fermi.yaml"
LAYOUT = "processes:params/layouts/fermi/M10.csv"
FERMI = f"--speeds {SPEEDS} --platform fermi"
M10 = f"{FERMI} --layout {LAYOUT}"


def test_the_table_says_who_gets_what_and_how_long_it_takes():
    lines = output(f"partition {M10} --blocks 128").splitlines()
    assert lines[0].split() == [
        "rank",
        "node",
        "kind",
        "speed",
        "x",
        "y",
        "width",
        "height",
        "area",
        "seconds",
        "idle",
    ]
    assert len(lines[1:-4]) == 29
    assert lines[-3].startswith("gemm, 128×128 blocks over 29 processes of fermi (simulated), by geometric: ")


@pytest.mark.parametrize("by", ["geometric", "constant", "dynamic"])
@pytest.mark.parametrize("form", ["piecewise", "akima"])
def test_formats_agree(by, form, tmp_path):
    asked = f"{M10} --blocks 96 --by {by} --interpolation {form}"
    said = read_rows(f"partition {asked}")
    assert (said["side"], said["ranks"], said["iterations"]) == (96, 29, 96)
    assert sum(row["area"] for row in said["rows"]) == 96 * 96
    assert said["seconds"] == max(row["seconds"] for row in said["rows"])
    table = list(csv.DictReader(io.StringIO(output(f"partition {asked} --format csv"))))
    assert list(table[0]) == ["rank", "x", "y", "width", "height", "speed"]
    for name in table[0]:
        values = [float(row[name]) for row in table]
        assert values == pytest.approx([row[name] for row in said["rows"]], rel=1e-8), name
    output(f"partition {asked} -o {tmp_path}/p.xlsx")
    assert read_rows(f"partition {M10} --interpolation {form} --from {tmp_path}/p.xlsx")["rows"] == said["rows"]
    output(f"partition {asked} -o {tmp_path}/p.csv")
    assert read_rows(f"partition {M10} --interpolation {form} --from {tmp_path}/p.csv")["rows"] == said["rows"]


def test_functional_models_beat_constant_speeds_where_speeds_depend_on_the_share():
    functional, constant = (
        read_rows(f"partition {M10} --blocks 128 --by {by}")["seconds"] for by in ("geometric", "constant")
    )
    assert functional < 0.9 * constant


@pytest.mark.parametrize("by", ["geometric", "constant", "dynamic"])
def test_blocks_are_handed_on_while_that_makes_the_slowest_faster(by, tmp_path):
    """By the speeds that shares were made with, until nothing is left to hand on. Edited ones are left as they are."""
    placed = read_process_speeds(locate_processes(LAYOUT, "fermi", None), SPEEDS, "gemm", "piecewise")
    output(f"partition {M10} --blocks 128 --by {by} -o {tmp_path}/p.csv")
    tiling = read(tmp_path / "p.csv")
    curves = placed.curves
    if by == "constant":
        curves = [Speed.of(((1.0, float(curve.at(128 * 128 / 29))),)) for curve in curves]
    assert np.array_equal(even_out_times(tiling, curves).table, tiling.table)
    rounded = by_columns(geometric(placed.curves, 128 * 128), 128)
    if by == "geometric":
        slowest = [computation(known, curves).slowest for known in (tiling, rounded)]
        assert slowest[0] < 0.99 * slowest[1]
    (tmp_path / "rounded.csv").write_text(write(rounded))
    assert [
        row["area"] for row in read_rows(f"partition {M10} --from {tmp_path}/rounded.csv")["rows"]
    ] == rounded.area.tolist()


def test_a_picture_has_every_rank():
    picture = ET.fromstring(output(f"partition {M10} --blocks 128 --format svg"))
    titles = [title.text for title in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert [title.split(":")[0] for title in titles] == [f"rank {rank}" for rank in range(29)]
    assert "fat/gpu of node 1" in titles[4]


def test_the_wave_has_cells_and_speeds_of_its_own():
    said = read_rows(f"partition {M10} --kernel wave --blocks 512")
    assert (said["iterations"], said["rows"][0]["speed"] > 1e8) == (1, True)


def test_ranks_of_a_layout_that_does_not_say_them():
    like = f"{FERMI} --layout block:2 --blocks 64"
    assert {row["kind"] for row in read_rows(f"partition {like} --ranks 4")["rows"]} == {"fat/1"}
    assert "wanted --ranks" in output(f"partition {like}", code=2)


@pytest.fixture
def edited(tmp_path):
    """A workbook, and a function that changes a cell of it by the name of its column and its rank."""
    path = tmp_path / "edited.xlsx"
    output(f"partition {M10} --blocks 128 -o {path}")

    def change(*changes):
        book = openpyxl.load_workbook(path)
        sheet = book["Partition"]
        head = next(row for row in sheet.iter_rows() if row[0].value == "rank")
        for name, rank, value in changes:
            column = next(cell.column for cell in head if cell.value == name)
            sheet.cell(head[0].row + 1 + rank, column).value = value
        book.save(path)
        return path

    return change


def test_a_workbook_that_was_edited_is_read_back(edited):
    before = read_rows(f"partition {M10} --blocks 128")["rows"]
    first, second = before[0], before[1]  # one above the other in a column
    assert first["x"] == second["x"]
    assert first["y"] + first["height"] == second["y"]
    moved = ("height", 0, first["height"] - 1), ("y", 1, second["y"] - 1), ("height", 1, second["height"] + 1)
    said = read_rows(f"partition {M10} --from", edited(*moved))
    assert said["rows"][1]["area"] == second["area"] + second["width"]
    assert said["seconds"] > read_rows(f"partition {M10} --blocks 128")["seconds"]


def test_workbooks_are_simulated_where_speeds_are(edited):
    assert "SIMULATED" in str(openpyxl.load_workbook(edited())["Partition"]["A2"].value)


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (("height", 0, 18), "cell B7: found a gap at x=17, y=18"),
        (("width", 3, 30), "overlap"),
        (("x", 5, "left"), "found 'left', wanted a whole number from 0"),
        (("y", 5, "=1+1"), "found a formula, wanted a whole number from 0"),
        (("y", 5, -1), "found '-1', wanted a whole number from 0"),
        (("y", 5, 2.5), "found '2.5', wanted a whole number from 0"),
        (("width", 5, None), "found nothing, wanted a whole number from 0"),
        (("rank", 5, 4), "found rank 4 again"),
        (("rank", 28, 30), "found no rank 28"),
        (("height", 28, 2**20), "28"),
    ],
)
def test_what_does_not_tile_is_refused_with_sheet_and_cell(edited, change, wanted):
    path = edited(change)
    text = output(f"partition {M10} --from {path}", code=2)
    assert wanted in text
    assert text.startswith(f"commodel: {path}: sheet 'Partition'")
    assert len(text.splitlines()) == 1


def test_a_workbook_without_the_columns_is_refused(tmp_path):
    openpyxl.Workbook().save(tmp_path / "x.xlsx")
    text = output(f"partition {M10} --from {tmp_path}/x.xlsx", code=2)
    assert "found no sheet with the columns rank, x, y, width, height" in text


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"--blocks": "5"}, "found 29 processes for 25 blocks"),
        ({"--blocks": None}, "give --blocks, or --from"),
        ({"--format": "xlsx"}, "give -o NAME.xlsx"),
        ({"--within": "200%"}, "200%"),
        ({"--layout": "processes:params/layouts/fermi/M99.csv"}, "M99.csv"),
        ({"--speeds": "params/platforms/fermi.yaml"}, "params/platforms/fermi.yaml:"),
        ({"--platform": "nowhere"}, "unknown platform 'nowhere'"),
        ({"--layout": "block:1", "--ranks": "17"}, "17 ranks"),
    ],
)
def test_a_mistake_is_one_line(change, wanted):
    words = M10.split()
    options = dict(zip(words[::2], words[1::2], strict=True)) | {"--blocks": "128", "--by": "dynamic"} | change
    lines = output("partition", *(part for pair in options.items() if pair[1] for part in pair), code=2).splitlines()
    assert any(wanted in line for line in lines)
    assert all(line.startswith("commodel: ") for line in lines)
    assert len(lines) == 1 or "platforms/fermi.yaml:" in wanted  # a file of another kind has a mistake in every line


@pytest.mark.parametrize("speed", ["0", "-3", ".nan"])
def test_a_speed_that_is_none_is_refused_with_its_line(tmp_path, speed):
    (tmp_path / "s.yaml").write_text(f"kernels:\n  gemm:\n    kinds:\n      fat/6: [[1, {speed}]]\n")
    text = output(f"partition {M10} --speeds {tmp_path}/s.yaml --blocks 128", code=2)
    assert text.startswith(f"commodel: {tmp_path}/s.yaml:4: kernels.gemm.kinds.fat/6[0][1]: found ")


def test_a_kind_without_a_curve_is_named(tmp_path):
    (tmp_path / "s.yaml").write_text("kernels: {gemm: {kinds: {fat/6: [[1, 5]], thin/4: [[1, 5]]}}}\n")
    text = output(f"partition {M10} --speeds {tmp_path}/s.yaml --blocks 128", code=2)
    assert "s.yaml: no speeds of 'fat/5' for gemm; there are those of fat/6, thin/4" in text


def test_more_cores_than_a_node_has_are_refused(tmp_path):
    (tmp_path / "l.csv").write_text("rank,node,cores,device\n0,0,6,cpu\n1,0,7,cpu\n")
    text = output(f"partition {FERMI} --layout processes:{tmp_path}/l.csv --blocks 128", code=2)
    assert "found 13 cores kept on node 0, wanted at most its 12" in text
