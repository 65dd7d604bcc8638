"""Speeds of this machine, measured by the native program, and mistakes that are reported before a
program starts."""

import json

import pytest
from click.testing import CliRunner

from commodel.cli import main
from commodel.platforms.tools import find_tool
from commodel_kernels.speed_measurement import MeasuredKernel
from commodel_kernels.speeds import KernelSpeeds, Speeds, read_speeds, write_speeds
from tests.cli.running import output

LAYOUT = "rank,node,cores,device\n0,0,1,cpu\n1,0,1,cpu\n"


@pytest.fixture
def layout(tmp_path):
    (tmp_path / "mine.csv").write_text(LAYOUT)
    return f"processes:{tmp_path}/mine.csv"


def test_speeds_of_this_machine_are_measured_and_balance_a_matrix(mpi_programs, layout, tmp_path):
    if not find_tool("mpiexec"):
        pytest.skip("no mpiexec here")
    out = tmp_path / "speeds.yaml"
    requested = [
        "measure",
        "speeds",
        "gemm",
        "--layout",
        layout,
        "--seconds",
        0.1,
        "--most",
        4,
        "-o",
        out,
    ]
    output(*requested, "--sizes", "4:64")
    output(*["wave" if word == "gemm" else word for word in requested], "--sizes", "4:64")
    speeds = read_speeds(out)
    assert (speeds.platform, speeds.simulated, set(speeds.kernels)) == (
        "local",
        False,
        {"gemm", "wave"},
    )
    rows = speeds.kernels["gemm"].kinds["node/1"]
    assert 3 <= len(rows) <= 4
    assert (rows[0][0], rows[-1][0]) == (4, 64)
    assert all(low <= speed <= high for _, speed, low, high in rows)
    flops = 2 * 32**3 * rows[-1][1]
    assert 1e7 < flops < 1e12  # of one core
    options = [
        "--speeds",
        out,
        "--platform",
        "local",
        "--layout",
        layout,
        "--blocks",
        16,
        "--format",
        "json",
    ]
    shown = json.loads(output("partition", *options))
    assert [row["area"] for row in shown["rows"]] == [128, 128]  # both of one kind
    assert shown["rows"][0]["low"] <= shown["rows"][0]["seconds"] <= shown["rows"][0]["high"]


def test_a_matrix_is_balanced_while_speeds_are_measured(monkeypatch, tmp_path):
    """Two kinds of process on one node; the faster one slows down if its share exceeds a cache of
    400 blocks."""
    (tmp_path / "two.csv").write_text("rank,node,cores,device\n0,0,1,cpu\n1,0,2,cpu\n2,0,1,cpu\n")
    (tmp_path / "node.yaml").write_text(
        "launcher: hosts\nnodes: 1\ncores: 4\nhosts: {names: [one]}\n"
    )
    sizes = []

    def compute_speed(kind, size):
        return 100.0 if kind == "node/1" else 300.0 if size < 400 else 300 * 400 / size

    def make_measurer(platform, layout, kinds, kernel, settings, rectangle, folder):
        assert (kinds, kernel) == (["node/1", "node/2", "node/1"], MeasuredKernel("gemm", 32))

        def measure(requested):
            sizes.append(requested)
            return {kind: (compute_speed(kind, size), 0.0, 0.0) for kind, size in requested.items()}

        return measure

    monkeypatch.setattr("commodel_kernels.partitioning.make_measurer", make_measurer)
    requested = [
        "--layout",
        f"processes:{tmp_path}/two.csv",
        "--platform",
        tmp_path / "node.yaml",
        "--blocks",
        40,
    ]
    result = CliRunner().invoke(
        main, [str(part) for part in ["partition", "--measure", *requested, "--format", "json"]]
    )
    shown = json.loads(result.stdout)
    assert sizes[0] == {"node/1": 534, "node/2": 533}  # even shares first
    blocks = [row["area"] for row in shown["rows"]]
    times = [
        count / compute_speed(row["kind"], count)
        for count, row in zip(blocks, shown["rows"], strict=True)
    ]
    assert max(times) / min(times) < 1.15  # columns of whole blocks cannot be balanced better
    assert f"dynamic, {len(sizes)} rounds of measuring" in shown["by"]
    assert not shown["simulated"]


@pytest.mark.parametrize(
    "more",
    [["--speeds", "params/speeds/fermi.yaml", "--measure"], [], ["--measure", "--from", "p.csv"]],
)
def test_speeds_come_from_a_file_or_from_measuring(layout, more):
    requested = [
        "--layout",
        layout,
        "--platform",
        "local",
        *([] if "--from" in more else ["--blocks", 16]),
    ]
    assert "give --speeds FILE, or --measure without --from" in output(
        "partition", *requested, *more, code=2
    )


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (
            {"--platform": "fermi"},
            "platform 'fermi' is simulated; its speeds are declared in a file",
        ),
        ({"--sizes": "64"}, "--sizes: found '64', wanted SMALLEST:LARGEST"),
        ({"--sizes": "64:4"}, "wanted the smaller first"),
        ({"--sizes": "0:4"}, "found '0', wanted a whole number from 1"),
        ({"--within": "7"}, "--within: found '7', wanted a fraction"),
        ({"--precision": "7"}, "--precision: found '7', wanted a fraction"),
        ({"--layout": "block:2"}, "wanted --ranks"),
    ],
)
def test_mistakes_are_one_line(layout, tmp_path, change, wanted):
    options = {"--layout": layout, "-o": str(tmp_path / "s.yaml")} | change
    text = output(
        "measure", "speeds", "gemm", *(part for pair in options.items() for part in pair), code=2
    )
    assert wanted in text
    assert len(text.splitlines()) == 1


@pytest.mark.parametrize(
    ("known", "wanted"),
    [
        (
            Speeds({"gemm": KernelSpeeds({"a": ((1.0, 1.0),)}, 32)}, "local", True),
            "found speeds that are declared",
        ),
        (
            Speeds({"gemm": KernelSpeeds({"a": ((1.0, 1.0),)}, 32)}, "far"),
            "found speeds of platform 'far'",
        ),
        (
            Speeds({"gemm": KernelSpeeds({"a": ((1.0, 1.0),)}, 8)}, "local"),
            "found speeds of blocks of 8",
        ),
    ],
)
def test_a_file_of_other_speeds_is_not_written_over(layout, tmp_path, known, wanted):
    write_speeds(tmp_path / "s.yaml", known)
    text = output(
        "measure", "speeds", "gemm", "--layout", layout, "-o", tmp_path / "s.yaml", code=2
    )
    assert wanted in text
    assert read_speeds(tmp_path / "s.yaml") == known


def test_other_kinds_and_kernels_are_kept():
    known = Speeds(
        {
            "gemm": KernelSpeeds({"a": ((1.0, 1.0),), "b": ((1.0, 2.0),)}, 32),
            "wave": KernelSpeeds({}),
        }
    )
    joined = known.joined("gemm", 32, {"b": ((1.0, 3.0),)})
    assert joined.kernels["gemm"].kinds == {"a": ((1.0, 1.0),), "b": ((1.0, 3.0),)}
    assert joined.kernels["wave"] == known.kernels["wave"]
