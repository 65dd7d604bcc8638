"""The table of a platform: each file is in it once, files that have grown replace their rows, and
contradictions are refused with both files named."""

from dataclasses import replace

import pytest

from commodel.errors import UserError
from commodel.fits.measured_tables import read_points
from commodel.interchange import MeasuredTime
from commodel.interchange.folders.reading import FolderFile, Source
from commodel.interchange.folders.tables import EvidenceTable
from commodel.records import Repetitions, Statistic

TIME = MeasuredTime(
    operation="bcast",
    algorithm="binomial",
    layout="block:4",
    ranks=8,
    bytes=64,
    seconds=1e-5,
    statistic=Statistic.RANK_MEAN,
    repetitions=Repetitions.MEAN,
    setting="=Open MPI",
    source="osu.txt:3",
)


def make_file(name, *seconds, digest="", **changes):
    times = [
        replace(TIME, bytes=4**number, seconds=value, source=f"{name}:{number}", **changes)
        for number, value in enumerate(seconds, 1)
    ]
    return FolderFile(name, "osu", times, Source(), "Open MPI", digest or name)


FIRST = make_file("a.txt", 1e-5, 2e-5, 3e-5, 4e-5)


@pytest.fixture
def table():
    table = EvidenceTable()
    assert not table.add(FIRST).reason
    return table


def test_a_table_is_read_as_it_was_written_and_a_model_can_be_fitted_to_it(table, tmp_path):
    path = tmp_path / "platform" / "table.csv"
    table.write(path)
    again = EvidenceTable.read(path)
    assert [row.cells["source"] for row in again.rows] == [f"a.txt:{n}" for n in (1, 2, 3, 4)]
    again.write(tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == path.read_bytes()
    measured = read_points(path)
    assert [point.bytes for point in measured.points] == [4, 16, 64, 256]
    assert measured.seconds == [1e-5, 2e-5, 3e-5, 4e-5]


def test_a_file_is_in_the_table_once(table):
    assert table.add(FIRST).reason == "in the table already"
    copy = replace(FIRST, path="b.txt")
    assert table.add(copy).reason == "in the table already, as a.txt"
    edited = make_file("b.txt", 1e-5, 2e-5, 3e-5, 4e-5)
    assert table.add(edited).reason == "it has the same times as a.txt"
    assert len(table.rows) == 4


def test_repetitions_of_a_run_are_added(table):
    assert not table.add(make_file("b.txt", 1.1e-5, 2.1e-5)).reason
    assert len(table.rows) == 6


def test_a_file_that_has_grown_replaces_its_rows(table):
    grown = make_file("a.txt", 1e-5, 2e-5, 3e-5, 4e-5, 5e-5, digest="more")
    assert not table.add(grown).reason
    assert [row.seconds for row in table.rows] == [1e-5, 2e-5, 3e-5, 4e-5, 5e-5]
    other = make_file("a.txt", 9e-5, digest="of another folder")
    assert not table.add(other).reason
    assert len(table.rows) == 6


def test_a_file_whose_placement_is_stated_replaces_its_rows(table):
    stated = make_file("a.txt", 1e-5, 2e-5, 3e-5, 4e-5, layout="block:8")
    assert not table.add(stated).reason
    assert {row.workload.layout for row in table.rows} == {"block:8"}
    assert table.add(stated).reason == "in the table already"


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"ranks": 16}, "ranks 16 in place of 8"),
        ({"operation": "reduce"}, "operation reduce in place of bcast"),
        ({"layout": ""}, "layout none in place of block:4"),
        ({"statistic": Statistic.LAST_RANK}, "statistic last rank in place of rank mean"),
    ],
)
def test_the_same_times_under_another_header_are_refused(table, changes, difference):
    other = make_file("b.txt", 1e-5, 2e-5, 3e-5, 4e-5, **changes)
    assert table.add(other).reason == f"it has the times of a.txt, but {difference}"
    few = make_file("c.txt", 1e-5, 2e-5, **changes)  # which may be equal by chance
    assert not table.add(few).reason


def test_a_workload_with_and_without_a_statistic_is_refused(table):
    unknown = make_file("b.txt", 1.1e-5, statistic=Statistic.UNKNOWN)
    reason = table.add(unknown).reason
    assert reason == (
        "of bcast of 8 ranks and 4 B, a.txt states which ranks a time is of, and it does not: give "
        "--statistic"
    )
    assert not table.add(make_file("c.txt", 1.2e-5, statistic=Statistic.LAST_RANK)).reason


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("1e-05", "-1", r"table\.csv:2: seconds: found"),
        ("rank mean", "rank average", r"table\.csv:2: statistic: found"),
        (",a.txt\n", ",\n", "wanted the digest of a file"),
        (",8,", ",many,", r"table\.csv:2: ranks: found"),
    ],
)
def test_a_damaged_table_is_refused(table, tmp_path, old, new, said):
    path = tmp_path / "table.csv"
    table.write(path)
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UserError, match=said):
        EvidenceTable.read(path)
