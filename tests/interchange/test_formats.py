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
from tests.interchange.format_reading import (
    FORMATS,
    READ,
    SAMPLES,
    list_statistics,
    read,
    times,
)
from tests.refusals import catch_error_message

WRITTEN = {"goal", "mrnet", "rules", "selection"}


def test_every_format_is_read_or_written():
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
    lines[number - 1] = lines[number - 1].replace(sample.first_time, word, 1)
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


@pytest.mark.parametrize("name", [name for name in READ if SAMPLES[name].no_bytes])
def test_a_library_that_has_nothing_to_do_is_no_sample(name, tmp_path):
    """MPI_Bcast of 0 bytes returns at once and is left out."""
    text, given = SAMPLES[name].no_bytes
    table = read(name, tmp_path, text, **given)
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
