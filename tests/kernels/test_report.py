"""Kernels in a report: a picture of the partition, speeds of processes, and times of iterations."""

import re
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from commodel.files.cache import use_archived_inputs
from commodel.files.results_folder import Results
from commodel.plan.planning import record_files
from commodel.records import Batch, Point
from commodel.reports.elements import MAX_RECTANGLES, Report, Tiling, mix_scale_colour
from commodel.reports.html.page import format_page
from commodel.reports.pictures.render import list_pictures
from commodel.reports.xlsx.workbook import write_xlsx
from commodel_kernels.planned_partitions import read_partitions, select_iterations
from commodel_kernels.report import UNIFORM_COLOUR, format_speed, make_kernel_sections
from commodel_kernels.speeds import KernelSpeeds, Speeds
from tests.planning import planned

TILES = "rank,x,y,width,height,speed\n0,0,0,3,4,600\n1,3,0,1,1,100\n2,3,1,1,3,150\n"
BLOCK = 8192
NO_SAMPLES = pd.DataFrame()
NAMES = ["point", "platform", "simulated", "operation", "layout", "bytes", "model"]
NAMES += ["measured", "measured_low", "measured_high", "seconds", "mu"]


def point(operation, platform="here", ranks=3, layout="block:3", size=BLOCK):
    return Point(platform, operation, "paper", "", layout, ranks, size)


def plan_of(*points):
    names = dict.fromkeys(point.platform for point in points)
    batches = [
        Batch(f"{name}-b", name, 1, tuple(p for p in points if p.platform == name))
        for name in names
    ]
    return replace(planned(*batches), files=record_files(points))


def table(section, name):
    named = next(table for table in section.tables if table.name == name)
    return [
        dict(zip((column.key for column in named.columns), row, strict=True)) for row in named.rows
    ]


def frame_of(rows):
    frame = pd.DataFrame(rows, columns=NAMES)
    return frame.assign(
        held_out=True, workload=frame["operation"], alternative="paper", validity="valid"
    )


@pytest.fixture
def tiles(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiles.csv").write_text(TILES)
    return "summa:partition=tiles.csv"


@pytest.fixture
def report_and_section(tiles):
    """A report of three iterations of one partition, two of them alone, and their section."""
    alone = [point(f"{tiles}:iteration={k}") for k in (0, 3)]
    plan = plan_of(*alone, point(tiles))
    rows = [
        (
            p.id,
            "here",
            False,
            p.operation,
            p.layout,
            BLOCK,
            family,
            2e-3,
            1e-3,
            3e-3,
            2e-3 * off,
            off,
        )
        for p in alone
        for family, off in (("loggp", 1.5), ("taulop", 1.1))
    ]
    speeds = {
        "s.yaml": Speeds(
            {"gemm": KernelSpeeds({"node/1": ((4.0, 50.0, 40.0, 60.0), (16.0, 70.0, 65.0, 75.0))})}
        )
    }
    (section,) = make_kernel_sections(
        *read_partitions(plan), frame_of(rows), speeds, NO_SAMPLES, set()
    )
    return Report("e", "Kernels", "", (section,)), section


def test_equal_partitions_are_listed_once_with_the_iterations_per_point(tiles):
    points = [
        point(tiles),
        point(f"{tiles}:iteration=3"),
        point(tiles, "there"),
        point("wave2d:n=9:grid=1x3", size=8),
    ]
    (summa, wave), unread = read_partitions(plan_of(*points, point("bcast", size=8)))
    assert not unread
    assert (summa.kernel, summa.division, summa.platforms) == (
        "summa",
        "tiles.csv",
        ("here", "there"),
    )
    assert [count for _, count in summa.points] == [4, 1, 4]
    assert summa.tiling.area.tolist() == [12, 1, 3]
    assert wave.division == "n=9:grid=1x3"
    assert wave.kinds == ["node/1"] * 3


def test_the_picture_has_every_rectangle_coloured_by_speed(report_and_section):
    _, section = report_and_section
    (tiling,) = [block for block in section.blocks if isinstance(block, Tiling)]
    assert [
        (rectangle.label, rectangle.x, rectangle.y, rectangle.width, rectangle.height)
        for rectangle in tiling.rectangles
    ] == [
        ("0", 0, 0, 3, 4),
        ("1", 3, 0, 1, 1),
        ("2", 3, 1, 1, 3),
    ]
    assert [rectangle.fill for rectangle in tiling.rectangles] == [
        mix_scale_colour(0),
        mix_scale_colour(1),
        mix_scale_colour(np.log(4) / np.log(6)),
    ]
    assert tiling.legend[0] == (mix_scale_colour(0), "600 blocks/s")
    assert (
        "4×4 blocks over 3 processes as rectangles of 1 to 12 blocks, coloured by speed"
        in tiling.alt
    )
    rows = table(section, "Rectangles")
    assert [row["computes"] for row in rows] == [20.0, 10.0, 20.0]


def test_the_legend_names_gpus_and_has_each_speed_once(tmp_path):
    lines = ["rank,x,y,width,height,speed", "0,0,0,1,3,100", "1,1,0,1,3,91940", "2,2,0,1,3,91941"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    (tmp_path / "who.csv").write_text("rank,node,cores,device\n0,0,1,gpu\n1,0,1,cpu\n2,0,1,cpu\n")
    division = f"summa:partition={tmp_path / 't.csv'}"
    plan = plan_of(point(division, layout=f"processes:{tmp_path / 'who.csv'}"))
    (section,) = make_kernel_sections(*read_partitions(plan), frame_of([]), {}, NO_SAMPLES, set())
    (tiling,) = [block for block in section.blocks if isinstance(block, Tiling)]
    assert [text for _, text in tiling.legend] == ["91,900 blocks/s", "100 blocks/s (GPU)"]
    assert [rectangle.label for rectangle in tiling.rectangles] == ["0 GPU", "1", "2"]


def test_without_speeds_processes_are_coloured_by_kind(tmp_path, tiles):
    (tmp_path / "tiles.csv").write_text(
        "\n".join(line.rpartition(",")[0] for line in TILES.splitlines())
    )
    (tmp_path / "who.csv").write_text("rank,node,cores,device\n0,0,4,cpu\n1,0,1,gpu\n2,1,4,cpu\n")
    plan = plan_of(point(tiles, layout="processes:who.csv"), point(tiles, layout="block:2"))
    (section,) = make_kernel_sections(*read_partitions(plan), frame_of([]), {}, NO_SAMPLES, set())
    assert [row["least"] for row in table(section, "Partitions")] == [1, 1]
    by_kind, by_node = [block for block in section.blocks if isinstance(block, Tiling)]
    assert [text for _, text in by_kind.legend] == ["node/4", "node/gpu"]
    assert [text for _, text in by_node.legend] == ["node 0", "node 1"]
    one, two, three = (rectangle.fill for rectangle in by_kind.rectangles)
    assert one == three != two


def test_page_and_workbook_draw_the_partition_with_alternative_text(report_and_section, tmp_path):
    report, section = report_and_section
    (tiling,) = [block for block in section.blocks if isinstance(block, Tiling)]
    assert "Partition 1" in dict(list_pictures(report, every=True))
    page = format_page(report)
    (drawing,) = re.findall(
        r'id="tiling-1" role="img"[^>]*aria-label="([^"]*)">(.*?)</svg>', page, re.DOTALL
    )
    assert drawing[0] == tiling.alt
    # the rectangle and its colour beside
    assert drawing[1].count(f'fill="{mix_scale_colour(0)}"') == 2
    write_xlsx(report, tmp_path / "k.xlsx")
    with zipfile.ZipFile(tmp_path / "k.xlsx") as book:
        shapes = "".join(
            book.read(name).decode() for name in book.namelist() if "drawings/drawing" in name
        )
        (picture,) = [book.read(name) for name in book.namelist() if name.endswith(".png")]
    assert picture.startswith(b"\x89PNG")
    place = re.search(
        r"<xdr:from>.*?<xdr:row>(\d+)<.*?<xdr:to>.*?<xdr:row>(\d+)<.*?<xdr:pic>", shapes, re.DOTALL
    )
    rows = int(place[2]) - int(place[1])
    assert 360 <= 19 * rows <= 400  # not larger than the rows that are left free for it
    assert tiling.alt[:200] in shapes


def test_iterations_stand_side_by_side_with_all_families(report_and_section):
    _, section = report_and_section
    first, second = table(section, "Iterations")
    assert (first["iteration"], second["iteration"]) == (0, 3)
    assert first["measured"] == pytest.approx(2000)
    assert (first["loggp prediction"], first["taulop prediction"]) == (
        pytest.approx(3000),
        pytest.approx(2200),
    )
    chart = next(chart for chart in section.charts if chart.name.startswith("Iterations"))
    assert {line.name: line.x for line in chart.series} == dict.fromkeys(
        ("measured", "taulop", "loggp"), (0.0, 3.0)
    )
    (line,) = section.blocks[0].sentences
    assert "2 single iterations took 2 ms; best model taulop, mean error 10 %." in line


def test_the_table_of_speeds_states_the_source_of_each_speed(report_and_section):
    _, section = report_and_section
    rows = table(section, "Speeds")
    assert [(row["size"], row["speed"], row["low"]) for row in rows] == [
        (4.0, 50.0, 40.0),
        (16.0, 70.0, 65.0),
    ]
    assert rows[0]["source"].startswith("measured: ")
    chart = next(chart for chart in section.charts if chart.name.startswith("Speeds"))
    assert chart.series[0].low == (40.0, 65.0)
    declared = Speeds(
        {"wave": KernelSpeeds({"node/1": ((4.0, 50.0),)})}, "sim", simulated=True, source="by hand"
    )
    (other,) = make_kernel_sections(
        [], ["a line"], frame_of([]), {"s": declared}, NO_SAMPLES, {"sim"}
    )
    assert table(other, "Speeds")[0]["source"] == "declared, not measured (simulated): by hand"
    assert "(simulated)" in other.charts[0].title


def test_computation_times_of_kernels_give_the_speed_of_the_slowest_process():
    points = [point("summa:n=8:grid=1x2", ranks=2, layout="block:2")]
    points += [
        point(f"summa:n=8:grid=1x2:iteration={k}", ranks=2, layout="block:2") for k in (0, 5)
    ]
    points += [point("summa:n=4:grid=1x2:iteration=0", ranks=2, layout="block:2")]
    points += [point("summa:n=9:grid=1x2", ranks=2, layout="block:2")]  # whose shares are not alike
    seconds = (8.0, 2.0, 0.5, 0.1, 1.0)
    raw = pd.DataFrame(
        [("point", "here", False, p.id, value) for p, value in zip(points, seconds, strict=True)],
        columns=["kind", "platform", "simulated", "id", "computation"],
    )
    (section,) = make_kernel_sections(
        *read_partitions(plan_of(*points)), frame_of([]), {}, raw, set()
    )
    small, large = table(section, "Speeds")
    assert (small["size"], small["speed"], small["unit"]) == (8, 80.0, "blocks of 32×32")
    assert (large["size"], large["speed"], large["low"], large["high"]) == (32, 32.0, 16.0, 64.0)
    assert "the slowest of 2 processes, median and ends of 3 points" in large["source"]
    simulated = raw.assign(simulated=True)
    (section,) = make_kernel_sections(
        *read_partitions(plan_of(*points)), frame_of([]), {}, simulated, {"here"}
    )
    assert not [table for table in section.tables if table.name == "Speeds"]


def test_a_stranger_s_plan_makes_us_read_no_other_file_and_draw_nothing_endless(tiles, tmp_path):
    (tmp_path / "secret.csv").write_text("token=abc\n")
    many = f"summa:n={MAX_RECTANGLES + 1}:grid=1x{MAX_RECTANGLES + 1}"
    layout = f"block:{MAX_RECTANGLES + 1}"
    even = point("summa:n=3:grid=1x3")
    plan = plan_of(even, point(tiles), point(many, ranks=MAX_RECTANGLES + 1, layout=layout))
    strange = [
        point("summa:partition=secret.csv"),
        point("summa:n=4:grid=1000x1000"),
        point("summa:no=1"),
    ]
    strange += [
        point("summa:n=4", ranks=1 << 40, layout="block:1"),
        point("summa:n=4", layout="processes:secret.csv"),
    ]
    batch = plan.batches[0]
    plan = replace(plan, batches=(replace(batch, points=(*batch.points, *strange)),))
    with use_archived_inputs(Results.of(tmp_path), plan.files):
        partitions, unread = read_partitions(plan)
    assert len(partitions) == 3
    assert len(unread) == 4
    assert "secret.csv" in unread[0]
    assert not any("token" in line for line in unread)
    (section,) = make_kernel_sections(partitions, unread, frame_of([]), {}, NO_SAMPLES, set())
    assert [block.alt[:18] for block in section.blocks if isinstance(block, Tiling)] == [
        "summa, tiles.csv: "
    ]
    assert any(
        line.startswith("1 of 3 partitions are drawn ") for line in section.blocks[0].sentences
    )
    (section,) = make_kernel_sections(
        *read_partitions(plan_of(even)), frame_of([]), {}, NO_SAMPLES, set()
    )
    (alone,) = [block for block in section.blocks if isinstance(block, Tiling)]
    assert alone.legend == ((UNIFORM_COLOUR, "node/1, node 0"),)
    assert select_iterations(frame_of([]).assign(operation=[])).empty


def test_a_report_without_kernels_has_no_such_sheet():
    assert (
        make_kernel_sections(
            *read_partitions(plan_of(point("bcast", size=8))), frame_of([]), {}, NO_SAMPLES, set()
        )
        == []
    )


def test_legend_speeds_have_three_significant_digits_and_separators():
    speeds = {
        1.3e6: "1,300,000",
        986_123.0: "986,000",
        12.345: "12.3",
        0.5: "0.500",
        0.00123: "0.00123",
    }
    assert {speed: format_speed(speed) for speed in speeds} == speeds
