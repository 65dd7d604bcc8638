"""Verbs for data-parallel kernels: communication, partitions by speed, and ranking of layouts."""

import csv
import io
import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import openpyxl
import pytest

import commodel
from commodel.files.parameter_sets import write_parameters
from commodel.models.parameter_sets import make_given_set
from commodel.parameters import Estimate, ParameterSet
from commodel.platforms.tools import ROOT, find_tool
from commodel.predictions.predictions import predict
from commodel_kernels.partitioning import locate_processes, read_process_speeds
from commodel_kernels.partitions.arrangement import arrange_in_columns
from commodel_kernels.partitions.shares import even_out_times, partition_geometric
from commodel_kernels.rectangles import format_rectangles, read_rectangles
from commodel_kernels.speeds import KernelSpeeds, Speed, Speeds, write_speeds
from commodel_kernels.times import predict_computation
from tests.cli.running import output, read_rows, run
from tests.models.taulop_terms import parameters, table
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
def model_sets(tmp_path):
    """Return a folder with parameter sets of a synthetic machine."""
    folder = tmp_path / "sets"
    for name, values in SETS.items():
        write_parameters(
            folder / f"{name}.yaml", replace(make_given_set(name, values), simulated=True)
        )
    return folder


def test_predictions_of_several_models(model_sets):
    out = read_rows(
        f"predict kernel summa --params {model_sets} --partition {FIGURE_8} --layout block:3"
    )
    assert (out["ranks"], out["iterations"], out["different"], out["bytes"]) == (6, 256, 6, 8192)
    assert out["simulated"] is True
    rows = {(row["model"], row["rule"]): row["seconds"] for row in out["models"]}
    assert set(rows) == {(name, "messages") for name in SETS} | {("hloggp", "sums")}
    chosen = point(f"summa:partition={FIGURE_8}", "paper", ranks=6, bytes=8192, layout="block:3")
    assert rows["loggp", "messages"] == predict(make_given_set("loggp", LOGGP), [chosen])[0].seconds
    assert [entry["iteration"] for entry in out["by_iteration"]] == [0, 124, 134, 146, 152, 221]
    for column, names in {
        "loggp": ("loggp", "messages"),
        "hloggp sums": ("hloggp", "sums"),
    }.items():
        total = sum(entry["count"] * entry[column] for entry in out["by_iteration"])
        assert total == pytest.approx(rows[names], rel=1e-12)


def test_predictions_as_text(model_sets):
    text = run(
        f"predict kernel summa --params {model_sets} --partition {FIGURE_8} --layout block:3"
    ).output
    assert (
        "6 processes on 2 nodes: 256 iterations, 6 of them different; communication alone, predicted."
        in text
    )
    assert "Slowest iterations" in text
    assert "0-123" in text
    assert "sums: by the τ–Lop paper's rule" in text
    single_iteration = run(
        f"predict kernel summa --params {model_sets} --partition {FIGURE_8} --iteration 80"
    ).output
    assert "Slowest iterations" not in single_iteration
    assert ":iteration=80" in single_iteration


def test_communication_that_is_not_overlapped(model_sets, tmp_path):
    """The predicted time is the communication that does not overlap computation. The speeds come
    from a file or from the partition; without speeds there is no prediction."""
    speeds, with_speeds = tmp_path / "speeds.yaml", tmp_path / "with-speeds.csv"
    speeds.write_text(
        "simulated: true\nkernels: {gemm: {block: 32, kinds: {node/1: [[100, 1.0e+6]]}}}\n"
    )
    tiling = read_rectangles(FIGURE_8)
    with_speeds.write_text(format_rectangles(replace(tiling, speed=np.full(6, 1e6))))
    requested = [
        "summa",
        "--params",
        model_sets,
        "--layout",
        "block:3",
        "--format",
        "json",
        "--partition",
    ]

    def times(*arguments):
        out = json.loads(run("predict", "kernel", *requested, *arguments).output)
        return out, {
            row["model"]: row["seconds"] for row in out["models"] if row["rule"] == "messages"
        }

    (plain, sequential), (out, overlapped) = (
        times(FIGURE_8),
        times(FIGURE_8, "--overlapped", "--speeds", speeds),
    )
    assert "computation" not in plain
    assert out["computation"] == tiling.area.max() / 1e6
    assert {row["rule"] for row in out["models"]} == {"messages"}
    assert out["operation"] == f"summa:partition={FIGURE_8}:overlapped=yes"
    assert times(with_speeds, "--overlapped")[1] == overlapped
    assert all(0 < overlapped[name] < 0.99 * sequential[name] for name in SETS), (
        overlapped,
        sequential,
    )
    without_speeds, seconds = times(FIGURE_8, "--overlapped")
    assert set(seconds.values()) == {None}
    assert all(
        row["validity"].startswith("no prediction: the time of the overlapped computation")
        for row in without_speeds["models"]
    )
    text = run("predict", "kernel", *requested[:-3], "--partition", FIGURE_8, "--overlapped").output
    assert (
        "Overlapped, but computation times are unknown: give --speeds, or speeds in --partition"
        in text
    )


def test_the_wave_equation_and_a_csv(model_sets):
    text = run(
        f"predict kernel wave2d --params {model_sets} --blocks 512 --ranks 16 --format csv"
    ).output
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["model"] for row in rows] == ["hloggp", "hloggp", "hockney", "loggp", "taulop"]
    assert all(float(row["seconds"]) > 0 for row in rows)


def test_a_process_layout_file_provides_ranks_and_nodes_of_a_prediction(model_sets):
    layout = f"processes:{ROOT}/params/layouts/fermi/M2.csv"
    out = run(
        f"predict kernel summa --params {model_sets} --platform fermi --layout {layout} --blocks 16 --format json"
    )
    predicted = json.loads(out.output)
    assert (predicted["platform"], predicted["ranks"], predicted["nodes"]) == ("fermi", 5, 2)


def test_a_workbook_of_a_kernel(model_sets, tmp_path):
    path = tmp_path / "kernel.xlsx"
    run(f"predict kernel summa --params {model_sets} --partition {FIGURE_8} -o {path}")
    book = openpyxl.load_workbook(path)
    texts = [
        str(cell)
        for sheet in book
        for row in sheet.iter_rows(values_only=True)
        for cell in row
        if cell is not None
    ]
    assert "hloggp sums [µs]" in texts
    assert any(text.startswith("SIMULATED") for text in texts)
    assert {"Models", "Iterations"} <= set(book.sheetnames)


FERMI_SPEEDS = "params/speeds/fermi.yaml"
LAYOUT = "processes:params/layouts/fermi/M10.csv"
FERMI = f"--speeds {FERMI_SPEEDS} --platform fermi"
M10 = f"{FERMI} --layout {LAYOUT}"


def test_the_table_has_the_rectangle_and_time_of_each_process():
    answer, blank, *lines = output(f"partition {M10} --blocks 128").splitlines()
    assert (
        answer.startswith(
            "gemm, 128×128 blocks over 29 processes of fermi (simulated), by geometric: "
        ),
        blank,
    ) == (True, "")
    assert lines[0].split() == [
        "rank",
        "node",
        "kind",
        "speed",
        "[blocks/s]",
        "x",
        "y",
        "width",
        "height",
        "area",
        "time",
        "[µs]",
        "idle",
        "[%]",
    ]
    assert lines[30:31] == [""]


@pytest.mark.parametrize("by", ["geometric", "constant", "dynamic"])
@pytest.mark.parametrize("form", ["piecewise", "akima"])
def test_all_formats_have_the_same_partition(by, form, tmp_path):
    requested = f"{M10} --blocks 96 --by {by} --interpolation {form}"
    answer = read_rows(f"partition {requested}")
    assert (answer["side"], answer["ranks"], answer["iterations"]) == (96, 29, 96)
    assert sum(row["area"] for row in answer["rows"]) == 96 * 96
    assert answer["seconds"] == max(row["seconds"] for row in answer["rows"])
    table = list(csv.DictReader(io.StringIO(output(f"partition {requested} --format csv"))))
    assert list(table[0]) == ["rank", "x", "y", "width", "height", "speed"]
    for name in table[0]:
        values = [float(row[name]) for row in table]
        assert values == pytest.approx([row[name] for row in answer["rows"]], rel=1e-8), name
    output(f"partition {requested} -o {tmp_path}/p.xlsx")
    assert (
        read_rows(f"partition {M10} --interpolation {form} --from {tmp_path}/p.xlsx")["rows"]
        == answer["rows"]
    )
    output(f"partition {requested} -o {tmp_path}/p.csv")
    assert (
        read_rows(f"partition {M10} --interpolation {form} --from {tmp_path}/p.csv")["rows"]
        == answer["rows"]
    )


def test_speed_functions_give_faster_partitions_than_constant_speeds():
    functional, constant = (
        read_rows(f"partition {M10} --blocks 128 --by {by}")["seconds"]
        for by in ("geometric", "constant")
    )
    assert functional < 0.9 * constant


@pytest.mark.parametrize("by", ["geometric", "constant", "dynamic"])
def test_blocks_are_moved_until_the_slowest_process_gets_no_faster(by, tmp_path):
    """Times are by the speeds from which the shares were computed. Partitions that were read are
    not changed."""
    placed = read_process_speeds(
        locate_processes(LAYOUT, "fermi", None), FERMI_SPEEDS, "gemm", "piecewise"
    )
    output(f"partition {M10} --blocks 128 --by {by} -o {tmp_path}/p.csv")
    tiling = read_rectangles(tmp_path / "p.csv")
    curves = placed.curves
    if by == "constant":
        curves = [Speed.of(((1.0, float(curve.at(128 * 128 / 29))),)) for curve in curves]
    assert np.array_equal(even_out_times(tiling, curves).table, tiling.table)
    rounded = arrange_in_columns(partition_geometric(placed.curves, 128 * 128), 128)
    if by == "geometric":
        slowest = [
            predict_computation(partition, curves).slowest for partition in (tiling, rounded)
        ]
        assert slowest[0] < 0.99 * slowest[1]
    (tmp_path / "rounded.csv").write_text(format_rectangles(rounded))
    assert [
        row["area"] for row in read_rows(f"partition {M10} --from {tmp_path}/rounded.csv")["rows"]
    ] == rounded.area.tolist()


def test_a_picture_has_every_rank():
    picture = ET.fromstring(output(f"partition {M10} --blocks 128 --format svg"))
    titles = [title.text for title in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert [title.split(":")[0] for title in titles] == [f"rank {rank}" for rank in range(29)]
    assert "fat/gpu of node 1" in titles[4]


def test_partition_uses_the_speeds_of_the_wave_kernel():
    answer = read_rows(f"partition {M10} --kernel wave --blocks 512")
    assert (answer["iterations"], answer["rows"][0]["speed"] > 1e8) == (1, True)


def test_partition_requires_ranks_for_a_layout_without_a_rank_count():
    requested = f"{FERMI} --layout block:2 --blocks 64"
    assert {row["kind"] for row in read_rows(f"partition {requested} --ranks 4")["rows"]} == {
        "fat/1"
    }
    assert "wanted --ranks" in output(f"partition {requested}", code=2)


@pytest.fixture
def edited(tmp_path):
    """Return a function that changes cells of a workbook, by column and rank, and returns its
    path."""
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
    before = read_rows(f"partition {M10} --blocks 128")
    first, second = before["rows"][:2]  # neighbours in a column
    assert first["x"] == second["x"]
    assert first["y"] + first["height"] == second["y"]
    moved = (
        ("height", 0, first["height"] - 1),
        ("y", 1, second["y"] - 1),
        ("height", 1, second["height"] + 1),
    )
    path = edited(*moved)
    # since the speeds are
    assert "SIMULATED" in str(openpyxl.load_workbook(path)["Partition"]["A2"].value)
    after = read_rows(f"partition {M10} --from", path)
    assert after["rows"][1]["area"] == second["area"] + second["width"]
    assert after["seconds"] > before["seconds"]


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (("height", 0, 18), "cell B7: found a gap at x=17, y=18"),
        (("width", 3, 30), "overlap"),
        (("x", 5, "left"), "found 'left', wanted a whole number from 0"),
        (("y", 5, "=1+1"), "found a formula, wanted a whole number from 0"),
        (("y", 5, 2.5), "found '2.5', wanted a whole number from 0"),
        (("width", 5, None), "found nothing, wanted a whole number from 0"),
        (("rank", 5, 4), "found rank 4 again"),
        (("height", 28, 2**20), "28"),
    ],
)
def test_a_wrong_partition_is_refused_with_sheet_and_cell(edited, change, wanted):
    path = edited(change)
    text = output(f"partition {M10} --from {path}", code=2)
    assert wanted in text
    assert text.startswith(f"commodel: {path}: sheet 'Partition'")
    assert len(text.splitlines()) == 1


def test_a_workbook_without_the_columns_is_refused(tmp_path):
    openpyxl.Workbook().save(tmp_path / "x.xlsx")
    text = output(f"partition {M10} --from {tmp_path}/x.xlsx", code=2)
    assert "found no sheet with the columns rank, x, y, width, height" in text


def test_a_file_of_another_format_in_place_of_speeds_has_a_line_for_each_mistake():
    line = f"partition --speeds params/platforms/fermi.yaml --platform fermi --layout {LAYOUT}"
    lines = output(f"{line} --blocks 128 --by dynamic", code=2).splitlines()
    assert any("params/platforms/fermi.yaml:" in line for line in lines)
    assert all(line.startswith("commodel: ") for line in lines)


SPEEDS = "--speeds params/speeds/fermi.yaml --platform fermi-ib"
WAVE = f"{SPEEDS} --blocks 96"


@pytest.fixture(scope="module")
def taulop(tmp_path_factory):
    path = tmp_path_factory.mktemp("sets") / "taulop.yaml"
    write_parameters(path, parameters(**table(2e-7, 1.3e-6, 2e-10, 3.1e-10)))
    return path


@pytest.fixture(scope="module")
def layouts(tmp_path_factory):
    """Return a folder with the three smallest layouts of the paper."""
    folder = tmp_path_factory.mktemp("layouts")
    for name in ("M1", "M2", "M3"):
        (folder / f"{name}.csv").write_text(Path(f"params/layouts/fermi/{name}.csv").read_text())
    return folder


def test_layouts_are_ranked_by_the_sum_of_both_times(taulop, layouts):
    rows = read_rows(f"advise layouts wave {WAVE} --params {taulop} --layout {layouts}")
    assert sorted(row["layout"] for row in rows) == ["M1", "M2", "M3"]
    assert all(row["total"] == row["computation"] + row["communication taulop"] for row in rows)
    assert [row["total"] for row in rows] == sorted(row["total"] for row in rows)


@pytest.mark.parametrize(
    ("kernel", "side", "steps", "size"), [("wave", 96, 10, 8), ("gemm", 24, 1, 8192)]
)
def test_advise_kernel_times_equal_partition_and_predict_output(
    taulop, layouts, tmp_path, kernel, side, steps, size
):
    requested = f"{kernel} {SPEEDS} --blocks {side} --params {taulop}"
    requested += f" --iterations {steps}" if kernel == "wave" else ""
    layout = f"processes:{layouts}/M3.csv"
    (row,) = read_rows(f"advise layouts {requested} --layout {layout} --out {tmp_path}")
    (file,) = (
        path for path in tmp_path.glob("*.csv") if row["partition"].replace(" ", "-") in path.name
    )
    shown = read_rows(f"partition {SPEEDS} --kernel {kernel} --layout {layout} --from {file}")
    assert row["computation"] == pytest.approx(steps * shown["total"])
    operation = f"{'summa' if kernel == 'gemm' else 'wave2d'}:partition={file}"
    requested = f"--operation {operation} --layout {layout} --bytes {size} --platform fermi-ib"
    (predicted,) = read_rows(f"predict {requested} --algorithm paper --params {taulop}")
    assert row["communication taulop"] == pytest.approx(steps * predicted["seconds"])


def test_the_chosen_partition_has_the_shortest_total_time(taulop, layouts, tmp_path):
    (row,) = read_rows(
        f"advise layouts wave {WAVE} --params {taulop} --layout processes:{layouts}/M3.csv --out {tmp_path}"
    )
    layout = f"--layout processes:{layouts}/M3.csv"
    totals = []
    for file in tmp_path.glob("*.csv"):
        requested = (
            f"--operation wave2d:partition={file} --algorithm paper --bytes 8 --platform fermi-ib"
        )
        (predicted,) = read_rows(f"predict {requested} {layout} --params {taulop}")
        shown = read_rows(f"partition {SPEEDS} --kernel wave {layout} --from {file}")
        totals.append(predicted["seconds"] + shown["seconds"])
    assert len(totals) > 2
    assert row["total"] == pytest.approx(min(totals))


def test_layouts_with_cores_per_process_use_growing_numbers_of_nodes(taulop, tmp_path):
    rows = read_rows(
        f"advise layouts wave {WAVE} --params {taulop} --cores 6,4 --out {tmp_path} --blocks 64"
    )
    assert {row["layout"] for row in rows} >= {"4-cores-on-1", "4-cores-on-16", "6-cores-on-8"}
    assert "6-cores-on-16" not in {row["layout"] for row in rows}  # there are no speeds of thin/6
    table = (tmp_path / "4-cores-on-16.csv").read_text().splitlines()
    assert len(table) == 1 + 9 * 3 + 7 * 2  # 12 cores and 8


def test_the_answer_has_a_layout_and_states_declared_speeds(taulop, layouts):
    text = output(f"advise layouts wave {WAVE} --params {taulop} --layout {layouts}")
    assert "Fastest, communication included: M" in text
    assert text.endswith("The speeds are declared, not measured (simulated).\n")


def test_the_kernel_table_has_each_model_and_is_ranked_by_the_chosen_one(taulop, layouts, tmp_path):
    numbers = {"L": 1.3e-6, "o_s": 3e-7, "o_r": 3e-7, "g": 5e-7, "G": 3e-10}
    values = {
        name: Estimate(number, "s/B" if name == "G" else "s", number, number)
        for name, number in numbers.items()
    }
    write_parameters(tmp_path / "loggp.yaml", ParameterSet("loggp", "", "", values))
    sets = f"--params {taulop} --params {tmp_path}/loggp.yaml"
    by_taulop = read_rows(f"advise layouts wave {WAVE} {sets} --layout {layouts}")
    by_loggp = read_rows(f"advise layouts wave {WAVE} {sets} --layout {layouts} --model loggp")
    assert list(by_taulop[0])[-3:] == ["total", "communication loggp", "simulated"]
    assert [row["total"] for row in by_loggp] == sorted(row["total"] for row in by_loggp)


def test_a_model_without_message_size_ranks_only_if_requested(layouts, tmp_path):
    sets = []
    for name, values in (
        ("bsp", ["g=1us", "l=1us"]),
        ("loggp", ["L=1us", "o_s=1us", "o_r=1us", "g=1us", "G=1ns"]),
    ):
        sets.append(tmp_path / f"{name}.yaml")
        write_parameters(sets[-1], replace(make_given_set(name, values), bytes_range=(8.0, 8.0)))
    sets_options = " ".join(f"--params {path}" for path in sets)
    rows = read_rows(f"advise layouts wave {WAVE} {sets_options} --layout {layouts}")
    assert {(row["communication bsp"], row["validity"].partition(":")[0]) for row in rows} == {
        (None, "extrapolated")
    }
    text = output(f"advise layouts wave {WAVE} {sets_options} --layout {layouts}")
    assert ". 3 of 3 predictions of loggp are flagged, such as extrapolated: messages of" in text
    assert "found values of bsp, wanted a model of message sizes" in output(
        f"advise layouts wave {WAVE} --params {sets[0]} --layout {layouts}", code=2
    )
    requested = output(
        f"advise layouts wave {WAVE} --params {sets[0]} --layout {layouts} --model bsp"
    )
    assert ". 3 of 3 predictions of bsp are flagged: size not modelled: valid for 8 B" in requested


def test_the_best_layout_and_that_with_the_fastest_computation_are_measured(
    simgrid_programs, taulop, layouts
):
    requested = f"{WAVE} --blocks 24 --params {taulop} --layout {layouts} --measure 1"
    ranked = read_rows(f"advise layouts wave {requested}")
    fastest = min(ranked, key=lambda row: row["computation"])
    measured = [row for row in ranked if row["measured total"] is not None]
    assert measured == [ranked[0], fastest]
    for row in measured:
        assert row["measured computation"] == row["computation"]  # simulated runs do not compute
        assert row["measured communication"] > 0
        assert row["measured total"] == row["measured computation"] + row["measured communication"]
    text = output(f"advise layouts wave {requested}")
    shortest = min(measured, key=lambda row: row["measured total"])["layout"]
    for criterion, row in (
        ("Communication included", ranked[0]),
        ("By computation alone", fastest),
    ):
        (line,) = (
            line
            for line in text.splitlines()
            if f". {criterion}: {row['layout']}, measured" in line
        )
        assert line.endswith(
            "the fastest of these." if row["layout"] == shortest else f"longer than {shortest}."
        )


def test_on_a_real_machine_the_computation_is_measured(mpi_programs, taulop, tmp_path):
    if not find_tool("mpiexec"):
        pytest.skip("no mpiexec here")
    (tmp_path / "two.csv").write_text("rank,node,cores,device\n0,0,1,cpu\n1,0,1,cpu\n")
    kinds = {"node/1": ((1.0, 2e4, 2e4, 2e4), (64.0, 2e4, 2e4, 2e4))}
    write_speeds(tmp_path / "speeds.yaml", Speeds({"gemm": KernelSpeeds(kinds, 32)}, "local"))
    requested = (
        f"--speeds {tmp_path}/speeds.yaml --platform local --blocks 8 --measure 3 --params {taulop}"
    )
    (row,) = read_rows(f"advise layouts gemm {requested} --layout processes:{tmp_path}/two.csv")
    assert row["measured computation"] not in (0, row["computation"])
    assert row["measured total"] == row["measured computation"] + row["measured communication"]


@pytest.mark.parametrize("kernel", ["gemm", "wave"])
def test_a_printed_partition_equals_the_output_of_the_verb(kernel):
    layout = "processes:params/layouts/fermi/M2.csv"
    result = commodel.partition("params/speeds/fermi.yaml", 32, layout, "fermi", kernel=kernel)
    verb = (
        f"partition --speeds params/speeds/fermi.yaml --blocks 32 --layout {layout} --platform "
        "fermi"
    )
    verb += f" --kernel {kernel}"
    assert str(result) == run(verb).stdout.rstrip("\n")
    for style in ("json", "csv", "svg"):
        assert getattr(result, f"to_{style}")() == run(f"{verb} --format {style}").stdout.rstrip(
            "\n"
        )
    assert result.frame["area"].sum() == 32 * 32
    assert result.sentence.startswith(f"{kernel}, 32×32 ")
    with pytest.raises(
        commodel.UserError, match="method: found 'even', wanted geometric or constant or dynamic"
    ):
        commodel.partition("params/speeds/fermi.yaml", 32, layout, "fermi", method="even")


def test_a_sum_of_iterations_is_for_another_verb(tmp_path):
    params = tmp_path / "loggp.yaml"
    write_parameters(params, make_given_set("loggp", LOGGP))
    result = run(f"advise --operation summa:n=8 --ranks 4 --bytes 8KiB --params {params}", code=2)
    assert (
        "'summa:n=8' is a sum of iterations, each begun by all ranks at once: `commodel predict kernel` predicts it"
        in result.output
    )
    assert result.output.count("\n") == 1
    assert (
        "paper"
        in run(
            f"advise --operation summa:n=8:iteration=3 --ranks 4 --bytes 8 --params {params}"
        ).output
    )
