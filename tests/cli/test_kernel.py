"""commodel kernel through the command a user would type: all families side by side, and every mistake in one line."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import openpyxl
import pytest

from commodel.files.parameter_sets import write_parameters
from commodel.models.parameter_sets import set_given
from commodel.patterns.rectangles import Rectangles, read, write
from commodel.platforms.tools import ROOT
from commodel.predictions.predictions import predict
from tests.cli.running import read_rows, run
from tests.patterns.catalogue import point

LOGGP = ["L=20us", "o_s=5us", "o_r=5us", "g=10us", "G=8ns"]
SETS = {
    "loggp": LOGGP,
    "hloggp": LOGGP,
    "hockney": ["alpha.a=30us", "beta.a=8ns"],
    "taulop": ["o_0.a=1us", "L_0.a=1us", "L_0.b=0.3ns", "o_1.a=5us", "L_1.a=1us", "L_1.b=1ns"],
}
FIGURE_8 = str(ROOT / "params/partitions/taulop-summa.csv")


@pytest.fixture
def sets(tmp_path):
    """A folder of sets of a made-up machine, as a fit leaves them."""
    folder = tmp_path / "sets"
    for name, values in SETS.items():
        write_parameters(folder / f"{name}.yaml", replace(set_given(name, values), simulated=True))
    return folder


def test_all_families_side_by_side(sets):
    out = read_rows(f"kernel summa --params {sets} --partition {FIGURE_8} --layout block:3")
    assert (out["ranks"], out["iterations"], out["different"], out["bytes"]) == (6, 256, 6, 8192)
    assert out["simulated"] is True
    rows = {(row["family"], row["rule"]): row["seconds"] for row in out["families"]}
    assert set(rows) == {(name, "messages") for name in SETS} | {("hloggp", "sums")}
    chosen = point(f"summa:partition={FIGURE_8}", "paper", ranks=6, bytes=8192, layout="block:3")
    assert rows["loggp", "messages"] == predict(set_given("loggp", LOGGP), [chosen])[0].seconds
    assert [entry["iteration"] for entry in out["by_iteration"]] == [0, 124, 134, 146, 152, 221]
    for column, names in {"loggp": ("loggp", "messages"), "hloggp sums": ("hloggp", "sums")}.items():
        total = sum(entry["count"] * entry[column] for entry in out["by_iteration"])
        assert total == pytest.approx(rows[names], rel=1e-12)


def test_a_table_for_people(sets):
    text = run(f"kernel summa --params {sets} --partition {FIGURE_8} --layout block:3").output
    assert "6 processes on 2 nodes: 256 iterations, 6 of them different; communication alone, predicted." in text
    assert "The dearest iterations" in text
    assert "0-123" in text
    assert "sums: by the τ–Lop paper's rule" in text
    alone = run(f"kernel summa --params {sets} --partition {FIGURE_8} --iteration 80").output
    assert "dearest" not in alone
    assert ":iteration=80" in alone


def test_what_a_product_does_not_hide(sets, tmp_path):
    """By a file of speeds, or by the partition's own; without either nobody can say, and not as if it took no time."""
    speeds, known = tmp_path / "speeds.yaml", tmp_path / "known.csv"
    speeds.write_text("simulated: true\nkernels: {gemm: {block: 32, kinds: {node/1: [[100, 1.0e+6]]}}}\n")
    tiling = read(FIGURE_8)
    known.write_text(write(replace(tiling, speed=np.full(6, 1e6))))
    asked = ["summa", "--params", sets, "--layout", "block:3", "--format", "json", "--partition"]

    def times(*arguments):
        out = json.loads(run("kernel", *asked, *arguments).output)
        return out, {row["family"]: row["seconds"] for row in out["families"] if row["rule"] == "messages"}

    (plain, waiting), (out, hidden) = times(FIGURE_8), times(FIGURE_8, "--overlapped", "--speeds", speeds)
    assert "computation" not in plain
    assert out["computation"] == tiling.area.max() / 1e6
    assert {row["rule"] for row in out["families"]} == {"messages"}
    assert out["operation"] == f"summa:partition={FIGURE_8}:overlapped=yes"
    assert times(known, "--overlapped")[1] == hidden
    assert all(0 < hidden[name] < 0.99 * waiting[name] for name in SETS), (hidden, waiting)
    unknown, none = times(FIGURE_8, "--overlapped")
    assert set(none.values()) == {None}
    assert all(row["status"].startswith("not priced: how long ranks compute") for row in unknown["families"])
    text = run("kernel", *asked[:-3], "--partition", FIGURE_8, "--overlapped").output
    assert "Overlapped, but nobody says how long processes compute: give --speeds, or speeds in --partition" in text


def test_the_wave_equation_and_a_csv(sets):
    text = run(f"kernel wave2d --params {sets} --blocks 512 --ranks 16 --format csv").output
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["family"] for row in rows] == ["hloggp", "hloggp", "hockney", "loggp", "taulop"]
    assert all(float(row["seconds"]) > 0 for row in rows)


def test_a_platform_and_a_layout_that_says_its_ranks(sets):
    layout = f"processes:{ROOT}/params/layouts/fermi/M2.csv"
    out = run(f"kernel summa --params {sets} --platform fermi --layout {layout} --blocks 16 --format json")
    priced = json.loads(out.output)
    assert (priced["platform"], priced["ranks"], priced["nodes"]) == ("fermi", 5, 2)


def test_a_workbook(sets, tmp_path):
    path = tmp_path / "kernel.xlsx"
    run(f"kernel summa --params {sets} --partition {FIGURE_8} -o {path}")
    book = openpyxl.load_workbook(path)
    texts = [
        str(cell) for sheet in book for row in sheet.iter_rows(values_only=True) for cell in row if cell is not None
    ]
    assert "hloggp sums [µs]" in texts
    assert any(text.startswith("SIMULATED") for text in texts)
    assert {"Families", "Iterations"} <= set(book.sheetnames)


PINWHEEL = write(Rectangles.of([0, 2, 1, 0, 1], [0, 0, 2, 1, 1], [2, 1, 2, 1, 1], [1, 2, 1, 2, 1]))
HEAD = "rank,x,y,width,height\n"


@pytest.mark.parametrize(
    ("content", "more", "complaint"),
    [
        (HEAD + "0,0,0,2,1\n1,0,1,1,1\n", [], "{}:3: found a gap at x=1, y=1: no rectangle is there; wanted 2×2 tiled"),
        (
            HEAD + "0,0,0,2,2\n1,1,1,1,1\n",
            [],
            "{}:3: rank 0 and rank 1 overlap at x=1, y=1: 2×2 at x=0, y=0 and 1×1 at",
        ),
        (HEAD + "0,0,0,2,1\n1,0,1,2,1\n", ["--blocks", 4], "{}: found 2×2, wanted n=4"),
        (
            HEAD + "0,0,0,2,1\n1,0,1,2,1\n",
            ["--iteration", 2],
            "found iteration 2, wanted one below 2, the blocks a side",
        ),
        (HEAD + "0,0,0,2,1\n1,0,1,2,1\n", ["--ranks", 3], "ranks: found 3, but 'summa:partition={}' has 2 ranks"),
        (HEAD + "0,0,0,2,1\n1,0,1,2,1\n", ["--grid", "1x2"], "found grid beside partition, wanted one of them"),
        (PINWHEEL, [], "{}: found no columns: of those that begin at x=0 rank 0 is 2 wide, rank 3 1; summa needs them"),
        (
            HEAD + "=cmd|' /C calc'!A0,0,0,2,2\n",
            [],
            "{}:2: rank: found '=cmd|' /C calc'!A0', wanted the number of a rank, from 0",
        ),
        ("\0\n", [], "{}:1: found a zero byte, wanted text"),
        ("", [], "{}:1: found no column 'rank' among none"),
    ],
)
def test_a_mistake_in_a_partition_is_one_line(sets, tmp_path, content, more, complaint):
    path = tmp_path / "p.csv"
    path.write_text(content)
    output = run(f"kernel summa --params {sets} --partition {path}", *more, code=2).output
    text = output.removeprefix("commodel: ").removeprefix("operation: ").removeprefix("algorithm: ")
    assert text.startswith(complaint.format(path))
    assert output.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["summa"], "give --params FILE…, or --platform or --experiment of a run"),
        (["summa", "--params", "SETS"], "ranks: ranks are missing"),
        (
            ["summa", "--params", "SETS", "--ranks", "4", "--speeds", "params/speeds/fermi.yaml"],
            "--speeds: only --overlapped asks how long processes compute; leave it out",
        ),
        (
            ["summa", "--params", "SETS", "--ranks", "4", "--overlapped", "--speeds", "params/speeds/fermi.yaml"],
            "params/speeds/fermi.yaml: no speeds of 'node/1' for gemm; there are those of fat/1, ",
        ),
        (
            ["summa", "--params", "SETS", "--ranks", "4", "--blocks", "0"],
            "summa: n: found '0', wanted a whole number from 1",
        ),
        (
            ["summa", "--params", "SETS", "--ranks", "4", "--format", "xlsx"],
            "a workbook needs a file: give -o NAME.xlsx",
        ),
        (["summa", "--params", "EMPTY", "--ranks", "4"], "found no parameter set (.yaml) in this folder"),
        (
            ["wave2d", "--params", "SETS", "--partition", "none.csv"],
            "none.csv: cannot be read: No such file or directory",
        ),
        (["wave2d", "--params", "SETS", "--ranks", "4", "--iteration", "1"], "No such option"),
    ],
)
def test_a_mistake_is_one_line(sets, tmp_path, arguments, complaint):
    (tmp_path / "empty").mkdir()
    places = {"SETS": str(sets), "EMPTY": str(tmp_path / "empty")}
    output = run("kernel", *(places.get(word, word) for word in arguments), code=2).output
    assert complaint in output
    assert output.count("\n") == 1
