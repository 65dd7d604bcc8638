"""What a figure of each tool means: its unit, whose bytes it counts, and whose time it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.interchange.reading import FORMATS, read


def test_parameters_of_netgauge_are_microseconds(tmp_path):
    """Half of the smallest round trip of 10 µs, less both overheads; the g and G of the last row."""
    path = tmp_path / "loggp.txt"
    path.write_text(
        "1 10 10.0 20.0 40.0 5.0 1.5 1.0 -nan -nan -nan\n2049 10 10.0 20.0 40.0 5.0 3.2 3.2 2.1 0.0005 0.6\n"
    )
    values = FORMATS["netgauge"].parameters(path).values
    seconds = {"L": 2.5e-6, "o_s": 1.5e-6, "o_r": 1e-6, "g": 2.1e-6}
    wanted = {name: (pytest.approx(value), "s") for name, value in seconds.items()}
    wanted["G"] = (pytest.approx(0.5e-9), "s/B")
    assert {name: (value.value, value.unit) for name, value in values.items()} == wanted


@pytest.mark.parametrize(
    ("version", "size"),  # from the sources of IMB: recvcounts are shares of #bytes, or #bytes each
    [
        ("Intel (R) MPI Benchmarks 4.1, MPI-1 part    ", 64),
        ("Intel (R) MPI Benchmarks 2018 Update 1, MPI-1 part    ", 64),
        ("Intel(R) MPI Benchmarks 2018, MPI-1 part", 64),
        ("Intel(R) MPI Benchmarks 2019, MPI-1 part", 64),
        ("Intel(R) MPI Benchmarks 2019 Update 1, MPI-1 part", 256),
        ("Intel(R) MPI Benchmarks 2019 Update 6, MPI-1 part", 256),
        ("Intel(R) MPI Benchmarks 2021.1, MPI-1 part", 256),
        ("Intel(R) MPI Benchmarks 2021.11, MPI-1 part (GPU)", 256),
    ],
)
def test_imb_means_a_block_or_a_vector(version, size, tmp_path):
    block = (
        "# Benchmarking {}\n# #processes = 4\n#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]\n64 9 1 3 2\n\n"
    )
    names = ("Reduce_scatter", "Reduce_scatter_block", "Reduce", "Allgather")
    table = read("imb", tmp_path, f"#    {version}\n" + "".join(map(block.format, names)))
    assert [time.bytes for time in table.times] == [size, 256, 64, 64]
    assert [time.seconds for time in table.times] == pytest.approx([3e-6] * 4)


def test_a_count_of_reprompi_is_what_each_rank_gets(tmp_path):
    """From its sources: both reduce-scatters get the count for every rank; a reduction's count is the vector."""
    names = ("Reduce_scatter", "Reduce_scatter_block", "Allreduce", "Allgather", "Gather")
    rows = "".join(f"MPI_{name} 0 10 1e-6\n" for name in names)
    table = read("reprompi", tmp_path, f"#@datatype_extent_bytes=8\n#@nprocs=4\ntest nrep count runtime_sec\n{rows}")
    assert [time.bytes for time in table.times] == [320, 320, 80, 80, 80]


@pytest.mark.parametrize(("elements", "size"), [(64, 0), (128, 4), (255, 4), (256, 8)])
def test_blocks_of_pico_have_whole_elements(elements, size, tmp_path):
    """Of 128 ranks and elements of 4 bytes; bytes alone would give blocks of 2 for 64 elements."""
    head = "collective,algorithm,nodes,ranks_per_node,elements,bytes,median_s\n"
    rows = "bcast,linear_ompi,128,1,1,4,1e-6\n", f"allgather,ring_ompi,128,1,{elements},{4 * elements},1e-5\n"
    table = read("pico", tmp_path, head + "".join(rows))
    assert [time.bytes for time in table.times if time.operation == "allgather"] == [size] * bool(size)
    assert table.left_out["allgather of 0 bytes"] == (not size)


def test_a_collective_of_osu_has_ended_when_the_last_rank_has(tmp_path):
    head = "# OSU MPI Broadcast Latency Test v7.3\n# Size  Avg Latency(us)"
    for more, cells, wanted in (
        ("", "", (1e-6, "mean over the ranks")),
        ("  P50 Tail Lat(us)", "2.0", (2e-6, "median of the ranks' mean")),
        (
            "  Min Latency(us)  Max Latency(us)  Iterations  P50 Tail Lat(us)",
            "0.5 3.0 9 2.0",
            (3e-6, "mean of the slowest rank"),
        ),
    ):
        table = read("osu", tmp_path, f"{head}{more}\n8 1.0 {cells}\n", ranks=4)
        assert [(time.seconds, time.statistic) for time in table.times] == [(pytest.approx(wanted[0]), wanted[1])]


def test_a_process_a_row_means_the_slowest(tmp_path):
    text = "test process nrep count runtime_sec\n" + "".join(
        f"MPI_Bcast {process} {nrep} 4 {1e-6 * (1 + process + 10 * nrep):.9f}\n"
        for nrep in (0, 1)
        for process in (1, 0)
    )
    table = read("reprompi", tmp_path, "#@nprocs=2\n" + text)
    assert [time.seconds for time in table.times] == pytest.approx([2e-6, 12e-6])


@given(rows=st.lists(st.tuples(st.integers(1, 1 << 30), st.integers(1, 10**9)), min_size=1, max_size=20))
def test_what_is_written_is_read(rows, tmp_path_factory):
    """Sizes, and times in hundredths of a microsecond, as the tool rounds them."""
    body = "".join(f"{size:<10}{hundredths / 100:>20.2f}\n" for size, hundredths in rows)
    text = f"# OSU MPI Allreduce Latency Test v7.0\n# Size       Avg Latency(us)\n{body}"
    table = read("osu", tmp_path_factory.mktemp("osu"), text, ranks=4)
    assert [time.bytes for time in table.times] == [size for size, _ in rows]
    assert [time.seconds for time in table.times] == pytest.approx([h * 1e-8 for _, h in rows])
