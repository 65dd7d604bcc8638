"""Formats of commodel_formats: what their numbers mean, and what is refused.

Tests that hold for every installed format are in tests/interchange/test_formats.py."""

import pytest

from commodel.registry import lookup
from tests.interchange.format_reading import list_statistics, read
from tests.refusals import catch_error_message


def test_parameters_of_netgauge_are_microseconds(tmp_path):
    """L is half of the smallest round-trip time of 10 µs, minus both overheads; g and G are those
    of the last row."""
    path = tmp_path / "loggp.txt"
    path.write_text(
        "1 10 10.0 20.0 40.0 5.0 1.5 1.0 -nan -nan -nan\n2049 10 10.0 20.0 40.0 5.0 3.2 3.2 2.1 0.0005 0.6\n"
    )
    values = lookup("interchange", "FORMAT", "netgauge").read_parameters(path).values
    seconds = {"L": 2.5e-6, "o_s": 1.5e-6, "o_r": 1e-6, "g": 2.1e-6}
    wanted = {name: (pytest.approx(value), "s") for name, value in seconds.items()}
    wanted["G"] = (pytest.approx(0.5e-9), "s/B")
    assert {name: (value.value, value.unit) for name, value in values.items()} == wanted


def test_reprompi_counts_of_reduce_scatters_are_per_rank(tmp_path):
    """By the sources of ReproMPI, the count of both reduce-scatters is per rank; that of an
    allreduce is the vector."""
    names = ("Reduce_scatter", "Reduce_scatter_block", "Allreduce", "Allgather", "Gather")
    rows = "".join(f"MPI_{name} 0 10 1e-6\n" for name in names)
    table = read(
        "reprompi",
        tmp_path,
        f"#@datatype_extent_bytes=8\n#@nprocs=4\ntest nrep count runtime_sec\n{rows}",
    )
    assert [time.bytes for time in table.times] == [320, 320, 80, 80, 80]


@pytest.mark.parametrize(("elements", "size"), [(64, 0), (128, 4), (255, 4), (256, 8)])
def test_blocks_of_pico_have_whole_elements(elements, size, tmp_path):
    """There are 128 ranks, and an element has 4 bytes. Without elements, 64 elements would give
    blocks of 2 bytes."""
    head = "collective,algorithm,nodes,ranks_per_node,elements,bytes,median_s\n"
    rows = (
        "bcast,linear_ompi,128,1,1,4,1e-6\n",
        f"allgather,ring_ompi,128,1,{elements},{4 * elements},1e-5\n",
    )
    table = read("pico", tmp_path, head + "".join(rows))
    assert [time.bytes for time in table.times if time.operation == "allgather"] == [size] * bool(
        size
    )
    assert table.left_out["allgather of 0 bytes"] == (not size)


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        ("runtime_sec", (2.0, "last rank", "single")),
        ("mean_sec median_sec", (3.0, "last rank", "median")),
        ("max_sec mean_sec", (3.0, "last rank", "mean")),
        ("min_sec max_sec", (2.0, "last rank", "least")),
        ("max_sec", (2.0, "last rank", "largest")),
    ],
)
def test_reprompi_prints_times_of_the_last_rank_by_repetition_or_summarised(
    columns, wanted, tmp_path
):
    cells = ["2e-6", "3e-6"][: len(columns.split())]
    text = f"#@nprocs=4\ntest count {columns}\nMPI_Bcast 8 {' '.join(cells)}\n"
    assert list_statistics(read("reprompi", tmp_path, text)) == [wanted]


def test_a_process_a_row_has_the_first_and_last_process_and_their_mean(tmp_path):
    text = "test process nrep count runtime_sec\n" + "".join(
        f"MPI_Bcast {process} {nrep} 4 {1e-6 * (1 + process + 10 * nrep):.9f}\n"
        for nrep in (0, 1)
        for process in (1, 0)
    )
    table = read("reprompi", tmp_path, "#@nprocs=2\n" + text)
    assert list_statistics(table) == [
        (1.0, "first rank", "single"),
        (1.5, "rank mean", "single"),
        (2.0, "last rank", "single"),
        (11.0, "first rank", "single"),
        (11.5, "rank mean", "single"),
        (12.0, "last rank", "single"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        (
            "reprompi",
            "test nrep count runtime_sec\nMPI_Reduce_scatter_block 0 4 1e-6\n",
            "give --ranks",
        ),
        ("reprompi", "test nrep count seconds\nMPI_Bcast 0 1 1\n", "found no column runtime_sec"),
        ("reprompi", "test nrep count runtime_sec\nMPI_Bcast 0 1\n", "found 3 cells, wanted"),
        ("mpiblib", "#msg time wtick reps ci\n1 1 1 1 1\n", "give --operation"),
        ("skampi", 'begin result "MPI_Bcast"\ncount= 4 4 1.0\nend result\n', "found 2 numbers"),
        ("pico", "collective,algorithm\nbcast,ring\n", "found no column 'nodes'"),
    ],
)
def test_missing_fields_are_stated_in_the_error(name, text, complaint, tmp_path):
    assert complaint in catch_error_message(read, name, tmp_path, text)
