"""Points of kernels: the program that measures them, and its input files."""

import json
import subprocess

import pytest

from commodel.errors import UserError
from commodel.measure.program_starts import list_starts, store_case_files
from commodel.patterns.points import PlatformResources, make_point
from commodel.records import Batch
from commodel_kernels import rectangles

RESOURCES = PlatformResources("here", 4, 4, substrate="mpi")
PARTITION = "rank,x,y,width,height\n0,0,0,5,8\n1,5,0,3,8\n2,0,0,0,0\n"


def point(operation, ranks=4, size=512, **more):
    algorithm = "paper" if operation.startswith(("summa", "wave2d")) else "linear"
    requested = {"operation": operation, "algorithm": algorithm, "bytes": size, **more}
    return make_point(
        RESOURCES, requested if "partition" in operation else {**requested, "ranks": ranks}
    )


def starts(tmp_path, *points, simulated=False):
    batch = Batch("b", "here", 4, points=points)
    return {start.program: start for start in list_starts(batch, tmp_path, simulated=simulated)}


def test_every_program_gets_the_points_of_that_program(tmp_path):
    points = [
        point("bcast"),
        point("summa:n=8"),
        point("wave2d:n=9", size=8),
        point("summa:n=8:iteration=3"),
    ]
    started = starts(tmp_path, *points)
    assert {program: len(start.rows) for program, start in started.items()} == {
        "player": 1,
        "summa": 2,
        "wave2d": 1,
    }
    assert {row["compute"] for row in started["summa"].rows} == {1}
    simulated = starts(tmp_path, *points, simulated=True)
    assert {
        row["compute"] for program in ("summa", "wave2d") for row in simulated[program].rows
    } == {0}


@pytest.mark.parametrize(
    ("operation", "iteration", "overlapped", "barrier"),
    [
        ("summa:n=8", "all", 0, 1),
        ("summa:n=8:iteration=0", 0, 0, 1),
        ("summa:n=8:iteration=7:overlapped=yes", 7, 1, 1),
        ("summa:n=8:barrier=no", "all", 0, 0),
    ],
)
def test_the_case_file_has_the_iteration_overlap_and_barrier_of_the_operation(
    tmp_path, operation, iteration, overlapped, barrier
):
    (row,) = starts(tmp_path, point(operation))["summa"].rows
    assert (row["iteration"], row["overlapped"], row["barrier"]) == (iteration, overlapped, barrier)


def test_rectangles_are_written_beside_the_case_file(tmp_path):
    (tmp_path / "mine.csv").write_text(PARTITION)
    members = [point(f"summa:partition={tmp_path}/mine.csv"), point("wave2d:n=9:grid=1x4", size=8)]
    for start in starts(tmp_path, *members).values():
        (row,) = (store_case_files(row, tmp_path) for row in start.rows)
        read = rectangles.read_rectangles(tmp_path / row["partition"])
        assert read.ranks == start.ranks
        assert read.side == (8 if start.program == "summa" else 9)


def test_stored_partitions_have_speeds_only_in_simulated_overlapped_runs(tmp_path):
    """A real run measures the multiplication itself, so the partition has no speeds."""
    (tmp_path / "mine.csv").write_text("rank,x,y,width,height,speed\n0,0,0,5,8,10\n1,5,0,3,8,6\n")

    def speeds(operation, simulated):
        (row,) = starts(
            tmp_path, point(f"{operation}:partition={tmp_path}/mine.csv"), simulated=simulated
        )["summa"].rows
        return rectangles.read_rectangles(
            tmp_path / store_case_files(row, tmp_path)["partition"]
        ).speed

    assert speeds("summa:overlapped=yes", simulated=True).tolist() == [10, 6]
    assert speeds("summa:overlapped=yes", simulated=False) is None
    assert speeds("summa", simulated=True) is None


@pytest.mark.parametrize("operation", ["summa:n=8", "wave2d:n=9"])
def test_the_program_reads_these_columns(mpi_programs, tmp_path, operation):
    ((program, start),) = starts(tmp_path, point(operation)).items()
    done = subprocess.run(
        [mpi_programs / program, "--describe"], capture_output=True, text=True, check=True
    )
    columns = [column["name"] for column in json.loads(done.stdout)["columns"]]
    assert list(start.rows[0]) == ["id", *columns]


def test_kernels_have_no_waves():
    with pytest.raises(UserError, match="found 20, wanted 1: the kernel summa"):
        point("summa:n=8", waves=20)


def test_the_barrier_option_changes_the_point_id_but_not_the_schedule():
    from commodel.patterns.build import build_schedule

    plain, loose = point("summa:n=8"), point("summa:n=8:barrier=no")
    assert plain.id != loose.id
    assert build_schedule(plain).encode() == build_schedule(loose).encode()
