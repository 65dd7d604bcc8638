"""The contract of every format that is read, over the registry: what a good file gives, and that a bad one is refused
in one line that names it."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.fits.measured_tables import read_points
from commodel.interchange import MPI_NAMES, Given, plain, read_times
from commodel.patterns.operations import operations
from tests.interchange.reading import FORMATS, read
from tests.interchange.samples import SAMPLES

READ = sorted(name for name, entry in FORMATS.items() if entry.times)
WRITTEN = {"goal", "mrnet", "extrap", "simgrid", "rules", "selection"}


def times(table):
    """Without where they stand."""
    names = ("operation", "algorithm", "layout", "ranks", "bytes", "seconds", "statistic")
    return [tuple(getattr(time, name) for name in names) for time in table.times]


def test_every_format_is_read_or_written():
    assert sorted(SAMPLES) == READ
    for name, entry in FORMATS.items():
        assert entry.title
        assert bool(entry.times or entry.parameters) != (name in WRITTEN)


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
    assert times(read(name, tmp_path, sample.text.replace("\n", "\r\n"), **sample.given)) == times(plain)


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("text", ["", "\n\n", "nothing of the kind\n", b"\x00\xff\xfe\x01 1 2 3\n"])
def test_what_is_no_such_file_is_refused(name, text, tmp_path):
    with pytest.raises(UserError, match=r"file\.txt"):
        read(name, tmp_path, text, **SAMPLES[name].given)


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("word", ["nan", "-1e-6", "inf", "-nan", "1e99", "0.0", "fast"])
def test_a_time_that_cannot_be_is_refused_with_its_line(name, word, tmp_path):
    sample = SAMPLES[name]
    first = read(name, tmp_path, sample.text, **sample.given).times[0]
    number = int(first.source.split(":")[1].split()[0])
    lines = sample.text.splitlines()
    digits = {"osu": "3.50", "imb": "0.50", "reprompi": "0.0000109819", "mpiblib": "4.0e-06", "skampi": "6.0"}
    lines[number - 1] = lines[number - 1].replace(digits.get(name, {"pico": "1e-5", "csv": "12.5"}.get(name)), word, 1)
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
        table = read(name, tmp_path_factory.mktemp("damaged"), text.encode("utf-8", "replace"), **sample.given)
    except UserError as error:
        refused = error.message
    assert bool(refused) != bool(table and table.times)
    assert "\n" not in refused
    for operation, _, _, ranks, size, seconds, _ in times(table) if table else ():
        assert operation in operations()
        assert ranks >= 2
        assert size >= 0
        assert 0 < seconds < 1e10


@pytest.mark.parametrize("name", READ)
def test_a_user_knows_the_algorithm(name, tmp_path):
    sample = SAMPLES[name]
    table = read(name, tmp_path, sample.text, **{**sample.given, "algorithm": "linear"})
    assert {time.algorithm for time in table.times} == {"linear"}


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("osu", "# OSU MPI Broadcast Latency Test\n# Size  Avg Latency(us)\n1 2.0\n", "give --ranks"),
        ("osu", "8 1.0\n", "before a title"),
        ("osu", "# OSU MPI Latency Test\n8 1.0\n", "wanted column names first"),
        ("osu", "# OSU MPI Latency Test\n# Size  Latency (us)\n8\n", "found 1 numbers, wanted size, latency"),
        ("imb", "# Benchmarking Bcast\n#bytes #repetitions t_max[usec]\n8 1 1.0\n", "give --ranks"),
        ("imb", "# Benchmarking Bcast\n# #processes = 4\n#bytes #repetitions t_max[usec]\n8 1\n", "wanted #bytes"),
        ("imb", "# Benchmarking Reduce_scatter\n# #processes = 4\n#bytes t_max[usec]\n8 1\n", "does not tell"),
        ("reprompi", "test nrep count runtime_sec\nMPI_Reduce_scatter_block 0 4 1e-6\n", "give --ranks"),
        ("reprompi", "test nrep count seconds\nMPI_Bcast 0 1 1\n", "found no column runtime_sec"),
        ("reprompi", "test nrep count runtime_sec\nMPI_Bcast 0 1\n", "found 3 cells, wanted"),
        ("mpiblib", "#msg time wtick reps ci\n1 1 1 1 1\n", "give --operation"),
        ("skampi", 'begin result "MPI_Bcast"\ncount= 4 4 1.0\nend result\n', "found 2 numbers"),
        ("pico", "collective,algorithm\nbcast,ring\n", "found no column 'nodes'"),
        ("csv", "operation,seconds,ranks,bytes\nbcst,1,2,3\n", "did you mean 'bcast'?"),
        ("csv", "operation,seconds,ranks,bytes,algorithm\nbcast,1,2,3,binomal\n", "did you mean 'binomial'?"),
    ],
)
def test_what_is_missing_is_said(name, text, complaint, tmp_path):
    with pytest.raises(UserError) as error:
        read(name, tmp_path, text)
    assert complaint in error.value.message


@pytest.mark.parametrize(
    ("column", "complaint"),
    [
        ("seconds", "wanted NAME=COLUMN"),
        ("time=t", "no column is called 'time' here"),
        ("seconds=t:hours", "found the unit 'hours'"),
        ("ranks=p:us", "ranks has no unit"),
        ("seconds=nowhere", "found no column 'nowhere'"),
        ("seconds=ranks", "found '2' without a unit; say which, e.g. --column seconds=ranks:us"),
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
    assert MPI_NAMES[plain(name)] == means


@pytest.mark.parametrize("name", READ)
def test_a_layout_is_one(name, tmp_path):
    with pytest.raises(UserError, match=r"file\.txt:\d+: .*blok"):
        read(name, tmp_path, SAMPLES[name].text, **{**SAMPLES[name].given, "layout": "blok:2"})


@pytest.mark.parametrize("name", READ)
def test_a_file_that_is_too_long_or_none(name, tmp_path, monkeypatch):
    monkeypatch.setattr("commodel.interchange.MAX_FILE", 20)
    monkeypatch.setattr("commodel.files.tables.MAX_FILE", 20)
    with pytest.raises(UserError, match="found more than"):
        read(name, tmp_path, SAMPLES[name].text, **SAMPLES[name].given)
    with pytest.raises(UserError, match="nowhere"):
        read_times(FORMATS[name], [tmp_path / "nowhere"], Given(**SAMPLES[name].given))


@pytest.mark.parametrize("name", READ)
def test_a_library_that_has_nothing_to_do_is_no_sample(name, tmp_path):
    """MPI_Bcast of 0 bytes returns at once; a ping-pong of 0 bytes, and one's own code, do not."""
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


def test_a_library_has_no_price(tmp_path):
    head = "operation,algorithm,layout,ranks,bytes,seconds,statistic,source\n"
    path = tmp_path / "t.csv"
    path.write_text(head + "bcast,library,,4,8,1e-5,mean,f:1\nbcast,binomial,,4,8,2e-5,mean,f:2\n")
    measured = read_points(path)
    assert (len(measured.points), measured.seconds, measured.unpriced) == (1, [2e-5], 1)
    path.write_text(head + "bcast,library,,4,8,1e-5,mean,f:1\n")
    with pytest.raises(UserError, match="found only 1 rows of algorithm 'library'"):
        read_points(path)
