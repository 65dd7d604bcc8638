"""Reading of measured times in every format of the registry.

A valid file gives its times; an invalid file is refused in one line that names it. Trees on real
hosts are the same after writing and reading. Times of each tool are interpreted by its definition:
the unit, the bytes, and the rank whose time is reported."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.fits.measured_tables import read_points
from commodel.interchange import OPERATIONS, StatedProperties, normalize_operation, read_all_times
from commodel.interchange.mrnet import name_hosts
from commodel.patterns.operations import canonicalize_operation, find_base_name, list_operations
from commodel.patterns.trees.files import format_mrnet
from commodel.patterns.trees.topologies import make_tree
from commodel.registry import discover
from tests.interchange.samples import SAMPLES
from tests.refusals import catch_error_message

FORMATS = discover("interchange", "FORMAT")


def read(name, folder, text, **given):
    path = folder / "file.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_all_times(FORMATS[name], [path], StatedProperties(**given))


READ = sorted(name for name, entry in FORMATS.items() if entry.read_times)
WRITTEN = {"goal", "mrnet", "rules", "selection"}


def times(table):
    """Return the times of a table without their positions in the file."""
    names = (
        "operation",
        "algorithm",
        "layout",
        "ranks",
        "bytes",
        "seconds",
        "statistic",
        "repetitions",
    )
    return [tuple(getattr(time, name) for name in names) for time in table.times]


def test_every_format_is_read_or_written():
    assert sorted(SAMPLES) == READ
    for name, entry in FORMATS.items():
        assert entry.title
        assert bool(entry.read_times or entry.read_parameters) != (name in WRITTEN)


@pytest.mark.parametrize("name", READ)
def test_a_sample_is_read(name, tmp_path):
    sample = SAMPLES[name]
    table = read(name, tmp_path, sample.text, **sample.given)
    rows = times(table)
    assert [row[:5] + row[6:] for row in rows] == [row[:5] + row[6:] for row in sample.times]
    assert [row[5] for row in rows] == pytest.approx([row[5] for row in sample.times])
    lines = sample.text.splitlines()
    for time in table.times:
        line = lines[int(time.source.removeprefix("file.txt:").split()[0]) - 1]
        assert re.search(r"[0-9]", line)
    assert table.left_out == sample.left_out


@pytest.mark.parametrize("name", READ)
def test_windows_line_ends_change_nothing(name, tmp_path):
    sample = SAMPLES[name]
    plain = read(name, tmp_path, sample.text, **sample.given)
    assert times(read(name, tmp_path, sample.text.replace("\n", "\r\n"), **sample.given)) == times(
        plain
    )


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("text", ["", "\n\n", "nothing of the kind\n", b"\x00\xff\xfe\x01 1 2 3\n"])
def test_a_file_of_another_format_is_refused(name, text, tmp_path):
    with pytest.raises(UserError, match=r"file\.txt"):
        read(name, tmp_path, text, **SAMPLES[name].given)


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("word", ["nan", "-1e-6", "inf", "-nan", "1e99", "0.0", "fast"])
def test_an_impossible_time_is_refused_with_file_and_line(name, word, tmp_path):
    sample = SAMPLES[name]
    first = read(name, tmp_path, sample.text, **sample.given).times[0]
    number = int(first.source.split(":")[1].split()[0])
    lines = sample.text.splitlines()
    digits = {
        "osu": "3.50",
        "imb": "0.50",
        "reprompi": "0.0000109819",
        "mpiblib": "4.0e-06",
        "skampi": "6.0",
    }
    lines[number - 1] = lines[number - 1].replace(
        digits.get(name, {"pico": "1e-5", "csv": "12.5", "microbench": "5.0e-07"}.get(name)),
        word,
        1,
    )
    with pytest.raises(UserError, match=rf"file\.txt:{number}: "):
        read(name, tmp_path, "\n".join(lines), **sample.given)


@pytest.mark.parametrize("name", READ)
@settings(max_examples=60)
@given(st.data())
def test_a_damaged_file_is_read_or_refused_in_one_line(name, tmp_path_factory, data):
    sample = SAMPLES[name]
    text = sample.text
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 30))
        text = text[:place] + data.draw(st.text(max_size=6)) + text[place + length :]
    refused, table = "", None
    try:
        table = read(
            name,
            tmp_path_factory.mktemp("damaged"),
            text.encode("utf-8", "replace"),
            **sample.given,
        )
    except UserError as error:
        refused = error.message
    assert bool(refused) != bool(table and table.times)
    assert "\n" not in refused
    for operation, _, _, ranks, size, seconds, *_ in times(table) if table else ():
        assert find_base_name(operation) in list_operations()
        assert ranks >= 2
        assert size >= 0
        assert 0 < seconds < 1e10


@pytest.mark.parametrize("name", READ)
def test_a_user_knows_the_algorithm(name, tmp_path):
    sample = SAMPLES[name]
    table = read(name, tmp_path, sample.text, **{**sample.given, "algorithm": "linear"})
    assert {time.algorithm for time in table.times if not time.operation.startswith("pairs")} <= {
        "linear"
    }


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        (
            "osu",
            "# OSU MPI Broadcast Latency Test\n# Size  Avg Latency(us)\n1 2.0\n",
            "give --ranks",
        ),
        ("osu", "8 1.0\n", "before a title"),
        ("osu", "# OSU MPI Latency Test\n8 1.0\n", "wanted column names first"),
        (
            "osu",
            "# OSU MPI Latency Test\n# Size  Latency (us)\n8\n",
            "found 1 numbers, wanted size latency",
        ),
        (
            "osu",
            "# OSU MPI Bandwidth Test\n# Size  Latency (us)\n8 1.0\n",
            "only 1 row (1 MPI Bandwidth)",
        ),
        (
            "osu",
            "# OSU MPI Bandwidth Test\n# [ pairs: 1 ] [ window size: 0 ]\n# Size Bandwidth (MB/s)\n8 1.0\n",
            "file.txt:4: pairs: messages: found '0', wanted a whole number from 1",
        ),
        (
            "osu",
            (
                "# OSU MPI Multiple Bandwidth / Message Rate Test\n# [ pairs: 0 ] [ window size: 4 ]\n"
                "# Size MB/s Messages/s\n8 1.0 0.0\n"
            ),
            "file.txt:4: found a time of inf s",
        ),
        ("imb", "# Benchmarking Bcast\n#bytes #repetitions t_max[usec]\n8 1 1.0\n", "give --ranks"),
        (
            "imb",
            "# Benchmarking Bcast\n# #processes = 4\n#bytes #repetitions t_max[usec]\n8 1\n",
            "wanted #bytes",
        ),
        (
            "imb",
            "# Benchmarking Reduce_scatter\n# #processes = 4\n#bytes t_max[usec]\n8 1\n",
            "does not name the version",
        ),
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
        ("csv", "operation,seconds,ranks,bytes\nbcst,1,2,3\n", "did you mean 'bcast'?"),
        (
            "csv",
            "operation,seconds,ranks,bytes,algorithm\nbcast,1,2,3,binomal\n",
            "did you mean 'binomial'?",
        ),
    ],
)
def test_missing_or_unknown_fields_are_stated_in_the_error(name, text, complaint, tmp_path):
    assert complaint in catch_error_message(read, name, tmp_path, text)


@pytest.mark.parametrize(
    ("column", "complaint"),
    [
        ("seconds", "wanted NAME=COLUMN"),
        ("time=t", "no column is called 'time' here"),
        ("seconds=t:hours", "found the unit 'hours'"),
        ("ranks=p:us", "ranks has no unit"),
        ("seconds=nowhere", "found no column 'nowhere'"),
        ("seconds=ranks", "found '2' without a unit; name it, e.g. --column seconds=ranks:us"),
    ],
)
def test_columns_of_a_table_are_named_rightly(column, complaint, tmp_path):
    with pytest.raises(UserError) as error:
        read("csv", tmp_path, "operation,seconds,ranks,bytes\nbcast,1,2,3\n", columns=(column,))
    assert complaint in error.value.message


@pytest.mark.parametrize(
    ("name", "means"),
    [
        ("All-to-All Personalized Exchange", "alltoall"),
        ("MPI_Reduce_scatter", "reduce-scatter"),
        ("Reduce_scatter_block", "reduce-scatter"),
        ("Broadcast", "bcast"),
        ("MPI_Allgather", "allgather"),
    ],
)
def test_names_of_operations(name, means):
    assert OPERATIONS[normalize_operation(name)] == means


@pytest.mark.parametrize("name", READ)
def test_a_layout_is_one(name, tmp_path):
    with pytest.raises(UserError, match=r"file\.txt:\d+: .*blok"):
        read(name, tmp_path, SAMPLES[name].text, **{**SAMPLES[name].given, "layout": "blok:2"})


@pytest.mark.parametrize("name", READ)
def test_a_file_that_is_too_long_or_none(name, tmp_path, monkeypatch):
    monkeypatch.setattr("commodel.interchange.MAX_FILE_BYTES", 20)
    monkeypatch.setattr("commodel.files.tables.MAX_FILE_BYTES", 20)
    with pytest.raises(UserError, match="found more than"):
        read(name, tmp_path, SAMPLES[name].text, **SAMPLES[name].given)
    with pytest.raises(UserError, match="nowhere"):
        read_all_times(
            FORMATS[name], [tmp_path / "nowhere"], StatedProperties(**SAMPLES[name].given)
        )


@pytest.mark.parametrize("name", [name for name in READ if name != "microbench"])
def test_a_library_that_has_nothing_to_do_is_no_sample(name, tmp_path):
    """MPI_Bcast of 0 bytes returns at once and is left out."""
    texts = {
        "osu": "# OSU MPI Broadcast Latency Test v7.3\n# Size  Avg Latency(us)\n0 0.03\n8 1.0\n",
        "imb": "# Benchmarking Bcast\n# #processes = 4\n#bytes #repetitions t_max[usec]\n0 9 0.03\n8 9 1.0\n",
        "reprompi": "#@nprocs=4\ntest nrep count runtime_sec\nMPI_Bcast 0 0 3e-8\nMPI_Bcast 0 8 1e-6\n",
        "mpiblib": "#msg time wtick reps ci\n0 3e-8 1 1 1\n8 1e-6 1 1 1\n",
        "skampi": 'begin result "MPI_Bcast"\nprocs= 4 0 0.03 0 1 1\nprocs= 4 8 1.0 0 1 1\nend result\n',
        "pico": "collective,algorithm,nodes,ranks_per_node,bytes,median_s\n"
        "gather,default,4,1,2,3e-8\ngather,default,4,1,32,1e-6\n",
        "csv": "operation,seconds,ranks,bytes\nbcast,3e-8,4,0\nbcast,1e-6,4,8\n",
    }
    given = {"osu": {"ranks": 4}, "mpiblib": {"ranks": 4, "operation": "bcast"}}.get(name, {})
    table = read(name, tmp_path, texts[name], **given)
    assert [(time.bytes, time.seconds) for time in table.times] == [(8, pytest.approx(1e-6))]
    assert list(table.left_out.values()) == [1]
    assert next(iter(table.left_out)).endswith(" of 0 bytes")


def test_a_library_has_no_prediction(tmp_path):
    head = "operation,algorithm,layout,ranks,bytes,seconds,statistic,source\n"
    path = tmp_path / "t.csv"
    path.write_text(
        head + "bcast,library,,4,8,1e-5,rank mean,f:1\nbcast,binomial,,4,8,2e-5,rank mean,f:2\n"
    )
    measured = read_points(path)
    assert (len(measured.points), measured.seconds, measured.unpredicted) == (1, [2e-5], 1)
    path.write_text(head + "bcast,library,,4,8,1e-5,rank mean,f:1\n")
    with pytest.raises(UserError, match="found only 1 row of algorithm 'library'"):
        read_points(path)


@pytest.mark.parametrize(
    "spec", ["flat:5", "kary:2^3", "balanced:3x2", "binomial:4", "groups:3,1,2x2"]
)
def test_hosts_in_order_one_a_node(spec, tmp_path):
    wanted = make_tree(spec)
    hosts = tmp_path / "hosts"
    hosts.write_text(
        "# first the front end\n\n" + "".join(f"n{node % 4}.site # rack\n" for node in range(40))
    )
    named = name_hosts(wanted, hosts)
    assert named.names[:6] == (
        "n0.site:0",
        "n1.site:0",
        "n2.site:0",
        "n3.site:0",
        "n0.site:1",
        "n1.site:1",
    )
    (tmp_path / "tree.top").write_text(format_mrnet(named))
    again = make_tree(f"file:{tmp_path / 'tree.top'}")
    parent_of = {again.names[i]: again.names[again.parent[i]] for i in range(1, again.nodes)}
    assert parent_of == {
        named.names[i]: named.names[wanted.parent[i]] for i in range(1, wanted.nodes)
    }


def test_hosts_that_are_none(tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("a\nb c\n")
    with pytest.raises(UserError, match="hosts:2: found 'b c', wanted a host's name"):
        name_hosts(make_tree("flat:1"), hosts)
    hosts.write_text("a\nb\n")
    with pytest.raises(UserError, match="found 2 hosts, wanted one for each of 3 nodes"):
        name_hosts(make_tree("flat:2"), hosts)


def test_parameters_of_netgauge_are_microseconds(tmp_path):
    """L is half of the smallest round-trip time of 10 µs, minus both overheads; g and G are those
    of the last row."""
    path = tmp_path / "loggp.txt"
    path.write_text(
        "1 10 10.0 20.0 40.0 5.0 1.5 1.0 -nan -nan -nan\n2049 10 10.0 20.0 40.0 5.0 3.2 3.2 2.1 0.0005 0.6\n"
    )
    values = FORMATS["netgauge"].read_parameters(path).values
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
        "# Benchmarking {}\n# #processes = 4\n#bytes #repetitions t_min[usec] t_max[usec] "
        "t_avg[usec]\n64 9 1 3 2\n\n"
    )
    names = ("Reduce_scatter", "Reduce_scatter_block", "Reduce", "Allgather")
    table = read("imb", tmp_path, f"#    {version}\n" + "".join(map(block.format, names)))
    means = [time for time in table.times if time.statistic == "rank mean"]
    assert [time.bytes for time in means] == [size, 256, 64, 64]
    assert [time.seconds for time in means] == pytest.approx([2e-6] * 4)


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
    ("version", "options", "window"),
    [
        ("2019 Update 6", "", 64),
        ("2021.2", "", 256),
        ("2021.7", " -window_size 32", 32),
        ("", "", 64),
    ],
)
def test_imb_sends_windows_of_a_size_that_depends_on_version_and_option(
    version, options, window, tmp_path
):
    """Biband: 1e6 messages per second in both directions of two pairs."""
    head = f"#    Intel(R) MPI Benchmarks {version}, MPI-1 part\n" if version else ""
    rows = (
        "# Benchmarking Biband\n# #processes = 5\n#bytes #repetitions Mbytes/sec Msg/sec\n8 10 "
        "8.00 1000000\n"
    )
    (time,) = read("imb", tmp_path, f"{head}# IMB-MPI1{options} Biband\n{rows}").times
    assert (time.operation, time.ranks) == (
        canonicalize_operation(f"pairs:messages={window}:directions=2"),
        4,
    )
    assert time.seconds == pytest.approx(2 * 2 * window / 1e6)


def list_statistics(table):
    """Return the times of a table in microseconds, each with its statistic and its repetitions."""
    return [
        (round(time.seconds * 1e6, 6), time.statistic, time.repetitions) for time in table.times
    ]


@pytest.mark.parametrize(
    ("columns", "cells", "wanted"),
    [
        ("", "", [(1.0, "rank mean", "mean")]),
        ("  P50 Tail Lat(us)", "2.0", [(2.0, "rank mean", "median")]),
        (
            "  Min Latency(us)  Max Latency(us)  Iterations",
            "0.5 3.0 9",
            [(0.5, "first rank", "mean"), (1.0, "rank mean", "mean"), (3.0, "last rank", "mean")],
        ),
        (
            "  Min Latency(us)  Max Latency(us)  Iterations  P50 Tail Lat(us)",
            "0.5 3.0 9 2.0",
            [(0.5, "first rank", "mean"), (2.0, "rank mean", "median"), (3.0, "last rank", "mean")],
        ),
    ],
)
def test_osu_prints_the_mean_over_the_ranks_and_the_fastest_and_slowest_of_them(
    columns, cells, wanted, tmp_path
):
    head = "# OSU MPI Broadcast Latency Test v7.3\n# Size  Avg Latency(us)"
    table = read("osu", tmp_path, f"{head}{columns}\n8 1.0 {cells}\n", ranks=4)
    assert list_statistics(table) == wanted


def test_a_time_of_the_first_rank_that_is_rounded_to_0_is_left_out(tmp_path):
    """The first rank of an eager reduce may be done in less than the 10 ns that OSU prints."""
    text = (
        "# OSU MPI Reduce Latency Test\n# Size  Avg Latency(us)  Min Latency(us)  Max "
        "Latency(us)\n8 0.02 0.00 1.0\n"
    )
    table = read("osu", tmp_path, text, ranks=4)
    assert list_statistics(table) == [(0.02, "rank mean", "mean"), (1.0, "last rank", "mean")]
    assert table.left_out == {"Reduce whose first rank takes 0 s": 1}
    with pytest.raises(UserError, match=r"file\.txt:3: found a time of 0 s"):
        read("osu", tmp_path, text.replace("1.0\n", "0.0\n"), ranks=4)


IMB_ROW = (
    "# #processes = 4\n#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]\n64 9 1.0 3.0 2.0\n"
    "\n"
)
ALL_RANKS = [(1.0, "first rank", "mean"), (2.0, "rank mean", "mean"), (3.0, "last rank", "mean")]


@pytest.mark.parametrize(
    # from the sources of IMB: the root of repetition i is i modulo ranks, or 0
    ("version", "options", "rotates"),
    [
        ("Intel (R) MPI Benchmarks 4.1, MPI-1 part", "IMB-MPI1", True),
        ("Intel (R) MPI Benchmarks 4.1, MPI-1 part", "IMB-MPI1 -root_shift off", False),
        ("Intel(R) MPI Benchmarks 2018, MPI-1 part", "IMB-MPI1 Reduce", False),
        (
            "Intel(R) MPI Benchmarks 2021.3, MPI-1 part",
            "IMB-MPI1 -npmin 4 -root_shift on Reduce",
            True,
        ),
        ("Intel(R) MPI Benchmarks 2021.3, MPI-1 part", "IMB-MPI1 -root_shift 0", False),
    ],
)
def test_imb_with_a_rotating_root_has_no_first_and_last_rank(version, options, rotates, tmp_path):
    """With a rotating root every rank is the root as often as the others, so their means are
    alike."""
    blocks = "".join(f"# Benchmarking {name}\n{IMB_ROW}" for name in ("Reduce", "Alltoall"))
    table = read(
        "imb", tmp_path, f"#    {version}\n# Calling sequence was:\n\n# {options}\n\n{blocks}"
    )
    wanted = [(2.0, "rank mean", "mean")] if rotates else ALL_RANKS
    assert list_statistics(table) == [*wanted, *ALL_RANKS]


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


CSV_ROWS = (
    "operation,seconds,ranks,bytes,kind,of\nreduce,1us,4,8,Rank Mean,median\nreduce,2us,4,16,,\n"
)
OF_THE_FILE = ("statistic=kind", "repetitions=of")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, [("unknown", "unknown"), ("unknown", "unknown")]),
        ({"columns": OF_THE_FILE}, [("rank mean", "median"), ("unknown", "unknown")]),
        ({"statistic": "completion"}, [("completion", "unknown"), ("completion", "unknown")]),
        (
            {"columns": OF_THE_FILE, "statistic": "rank mean"},
            [("rank mean", "median"), ("rank mean", "unknown")],
        ),
    ],
)
def test_the_statistic_of_a_csv_table_is_in_a_column_or_stated(given, wanted, tmp_path):
    table = read("csv", tmp_path, CSV_ROWS, **given)
    assert [(time.statistic, time.repetitions) for time in table.times] == wanted
    unknown = sum(statistic == "unknown" for statistic, _ in wanted)
    assert len(table.remarks) == bool(unknown)
    assert all(
        f"statistic of {unknown} time" in remark and "--statistic" in remark
        for remark in table.remarks
    )


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (
            {"columns": ("statistic=of",)},
            r"file.txt:2: statistic: found 'median', wanted one of: completion, first rank",
        ),
        (
            {"columns": ("repetitions=kind",)},
            "file.txt:2: repetitions: found 'Rank Mean', did you mean 'mean'?",
        ),
        (
            {"columns": OF_THE_FILE, "statistic": "last rank"},
            "file.txt:2: statistic: found 'rank mean' and --statistic 'last rank'; leave --statistic out",
        ),
    ],
)
def test_a_wrong_statistic_is_refused_in_one_line(given, complaint, tmp_path):
    with pytest.raises(UserError) as error:
        read("csv", tmp_path, CSV_ROWS, **given)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


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


@given(
    rows=st.lists(
        st.tuples(st.integers(1, 1 << 30), st.integers(1, 10**9)), min_size=1, max_size=20
    )
)
def test_osu_sizes_and_times_are_read_as_written(rows, tmp_path_factory):
    """OSU rounds times to hundredths of a microsecond."""
    body = "".join(f"{size:<10}{hundredths / 100:>20.2f}\n" for size, hundredths in rows)
    text = f"# OSU MPI Allreduce Latency Test v7.0\n# Size       Avg Latency(us)\n{body}"
    table = read("osu", tmp_path_factory.mktemp("osu"), text, ranks=4)
    assert [time.bytes for time in table.times] == [size for size, _ in rows]
    assert [time.seconds for time in table.times] == pytest.approx([h * 1e-8 for _, h in rows])
