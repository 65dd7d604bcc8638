"""A changed raw file is detected: every cut and every flipped bit.

Unmeasured cases have marks beside raw files, and a table that is written and read once. Damaged or
missing raw files are reported in one line, with the command to continue."""

from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.compare.comparison import compare
from commodel.errors import UserError
from commodel.files.tables import UNMEASURED, list_columns, write_table
from commodel.records import Batch, Case, Point
from commodel.results import raw_samples
from commodel.results.attempts import DAMAGED_OUTCOME, OwnAttempt
from commodel.results.collection import collect_samples, summarize_raw
from commodel.results.raw_samples import (
    LATE,
    LATE_SUFFIX,
    DamagedError,
    find_raw_file,
    is_complete,
    join_passes,
    list_finished,
    read_marker,
    read_samples,
    read_unmeasured,
    tabulate_unmeasured,
)
from tests.planning import planned
from tests.refusals import catch_error_message

HEADER = "id,sample,seconds,skew,valid,stop"
PASS_ROWS = [
    f"c,{number},{1e-6 * (number + 1):.9e},1.000000000e-09,1,precision" for number in range(4)
]


@pytest.fixture(scope="module")
def two_passes(tmp_path_factory):
    """Return a raw file of two passes, by whether it has counts."""
    folder = tmp_path_factory.mktemp("raw")

    def write_raw_file(counts):
        passes = {}
        for number in (1, 3):
            passes[number] = folder / f"pass-{number}.csv"
            tails = (",count", ",7") if counts else ("", "")
            passes[number].write_text(
                "\n".join([HEADER + tails[0], *(row + tails[1] for row in PASS_ROWS)]) + "\n"
            )
        (folder / str(counts)).mkdir()
        join_passes(passes, folder / str(counts), "c")
        return find_raw_file(folder / str(counts), "c")

    return {counts: write_raw_file(counts) for counts in (False, True)}


def write_stream(folder, tail=",2.0e-05,3.0e-05"):
    """Return the raw file of a stream of waves."""
    path = folder / "pass.csv"
    path.write_text("\n".join([f"{HEADER},first,last", *(row + tail for row in PASS_ROWS)]) + "\n")
    join_passes({1: path, 2: path}, folder, "c")
    return find_raw_file(folder, "c")


def test_the_latencies_of_waves_are_read(tmp_path):
    rows = read_samples(write_stream(tmp_path), "c")
    assert [(row["first"], row["last"]) for row in rows] == [(2e-5, 3e-5)] * 8


def test_latencies_that_no_clock_shows_are_blank(tmp_path):
    rows = read_samples(write_stream(tmp_path, ",,3.0e-05"), "c")
    assert all("first" not in row and row["last"] == 3e-5 for row in rows)


@pytest.mark.parametrize("tail", [",nan,1", ",inf,1", ",1,x", ",1,-inf"])
def test_latencies_are_numbers(tmp_path, tail):
    with pytest.raises(DamagedError):
        read_samples(write_stream(tmp_path, tail), "c")


@pytest.mark.parametrize("counts", [False, True])
def test_samples_of_joined_passes_are_read_back(two_passes, counts):
    rows = read_samples(two_passes[counts], "c")
    assert [(row["pass"], row["sample"]) for row in rows] == [
        (number, k) for number in (1, 3) for k in range(4)
    ]
    assert [row["seconds"] for row in rows] == [1e-6, 2e-6, 3e-6, 4e-6] * 2
    assert all(row.get("count") == (7 if counts else None) for row in rows)


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("valid", ["000", "001", "100", "010", "111"])
def test_the_name_shows_whether_a_sample_is_valid(counts, valid, tmp_path):
    passes = {}
    for number, mark in enumerate(valid, 1):
        passes[number] = tmp_path / f"pass-{number}.csv"
        rows = [
            row.replace(",1,precision", f",{mark if k == number else 0},time")
            for k, row in enumerate(PASS_ROWS)
        ]
        rows = [row + ",1" if counts else row for row in rows]  # a count of 1 makes no sample valid
        passes[number].write_text("\n".join([HEADER + (",count" if counts else ""), *rows]) + "\n")
    join_passes(passes, tmp_path, "c")
    path = find_raw_file(tmp_path, "c")
    assert path.name == ("c.csv" if "1" in valid else f"c{LATE_SUFFIX}")
    assert any(row["valid"] for row in read_samples(path, "c")) == ("1" in valid)
    assert find_raw_file(tmp_path, "d") is None


@given(st.data())
def test_no_cut_and_no_flipped_bit_goes_unnoticed(two_passes, tmp_path_factory, data):
    whole = two_passes[data.draw(st.booleans())].read_bytes()
    if data.draw(st.booleans()):
        changed = whole[: data.draw(st.integers(0, len(whole) - 1))]
    else:
        place, bit = data.draw(st.integers(0, len(whole) - 1)), data.draw(st.integers(0, 7))
        changed = whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :]
    path = tmp_path_factory.mktemp("damaged") / "c.csv"
    path.write_bytes(changed)
    with pytest.raises(DamagedError):
        read_samples(path, "c")


def test_samples_of_another_case_are_not_taken(two_passes):
    with pytest.raises(DamagedError, match="it has samples of 'c'"):
        read_samples(two_passes[False], "d")


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("\n".join([HEADER, *PASS_ROWS]) + "\n", True),
        ("\n".join([HEADER, *PASS_ROWS]), False),
        ("\n".join([HEADER, *PASS_ROWS[1:]]) + "\n", False),
        (HEADER + "\n", False),
        ("", False),
        ("\0" * 100, False),
    ],
)
def test_a_pass_file_with_missing_or_truncated_rows_is_incomplete(tmp_path, text, whole):
    (tmp_path / "c.csv").write_text(text)
    assert is_complete(tmp_path / "c.csv") == whole


ROWS = [
    {
        "id": "1e10",
        "batch": "b",
        "platform": "p",
        "simulated": False,
        "kind": "point",
        "name": "bcast",
    }
    | {
        "alternative": "linear",
        "layout": "block:2",
        "ranks": 4,
        "nodes": 2,
        "leaves": 0,
        "bytes": 2**40,
        "waves": 50,
    }
    | {"status": "crash", "reason": "=signal 9"},
    {
        "id": "0e00",
        "batch": "b",
        "platform": "p",
        "simulated": False,
        "kind": "probe",
        "name": "fan",
        "layout": "block",
    }
    | {"ranks": 2, "nodes": 1, "status": "late", "reason": ""},
]


def test_the_table_of_unmeasured_cases_is_read_back_as_written(tmp_path):
    write_table(tmp_path / "u.csv", tabulate_unmeasured(ROWS))
    first, second = read_unmeasured(tmp_path / "u.csv").to_dict("records")
    assert first == ROWS[0] | {"reason": "'=signal 9"}  # guarded, for spreadsheets
    assert {key: second[key] for key in ROWS[1]} == ROWS[1]
    assert second["alternative"] == ""
    assert pd.isna(second["leaves"])
    assert pd.isna(second["bytes"])
    assert pd.isna(second["waves"])
    write_table(tmp_path / "none.csv", tabulate_unmeasured([]))
    assert read_unmeasured(tmp_path / "none.csv").empty


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (",reason", ",why", "1: found no column 'reason' among"),
        ("ranks,nodes", "ranks,knots", "1: found no column 'nodes' among"),
        (",4,2,", ",four,2,", "2: ranks: found 'four', wanted a whole number, not negative"),
        *(
            (",4,2,", f",4,{odd},", f"2: nodes: found '{odd[:59]}")
            for odd in ("1.5", "-2", "inf", "1e30", "9" * 25, "9" * 400, "0x10")
        ),
    ],
)
def test_an_edited_table_is_refused_in_one_line(old, new, complaint, tmp_path):
    write_table(tmp_path / "u.csv", tabulate_unmeasured(ROWS))
    text = (tmp_path / "u.csv").read_text()
    assert old in text
    (tmp_path / "u.csv").write_text(text.replace(old, new, 1))
    assert catch_error_message(read_unmeasured, tmp_path / "u.csv").startswith(
        f"{tmp_path}/u.csv:{complaint}"
    )


def test_marks_and_samples(tmp_path):
    raw_samples.write_marker(tmp_path, "a", "crash", "signal 9", 1)
    raw_samples.write_marker(tmp_path, "b", "crash", "measured after all", 1)
    for name in ("b.csv", "c.csv", "d.late.csv", ".e.csv.7.tmp", "f.csv.damaged"):
        (tmp_path / name).touch()
    assert list_finished(tmp_path) == ({"b", "c"}, {"a", "d"})
    assert read_marker(tmp_path, "a") == ("crash", "signal 9")
    assert read_marker(tmp_path, "d")[0] == LATE
    assert [read_marker(tmp_path, case) for case in "bcef"] == [None] * 4
    for case in "abd":
        raw_samples.remove_marker(tmp_path, case)
    assert list_finished(tmp_path) == ({"b", "c"}, set())
    assert list_finished(tmp_path / "none") == (set(), set())


POINTS = tuple(Point("here", "bcast", "linear", "", "block:2", 2, 1 << size) for size in range(4))
CASE = Case("here", "pingpong", 2, {"bytes": 8}, "block:2")
BATCHES = (
    Batch("first", "here", 1, cases=(CASE,), points=POINTS[:2]),
    Batch("second", "here", 1, points=POINTS[2:]),
)
PLAN = planned(*BATCHES)


@pytest.fixture
def raw(tmp_path):
    """Write two samples of every case in each of two passes; return the folder."""
    for batch in BATCHES:
        folder = tmp_path / batch.name
        folder.mkdir()
        (folder / "done").touch()
        for case in batch.ids:
            pass_file = tmp_path / "pass.csv"
            rows = [f"{case},{k},{1e-6 * (k + 1):.9e},1e-9,1,samples" for k in range(2)]
            pass_file.write_text("\n".join(["id,sample,seconds,skew,valid,stop", *rows]) + "\n")
            raw_samples.join_passes({1: pass_file, 2: pass_file}, folder, case)
    return tmp_path


def test_every_sample_row_has_the_columns_of_the_measured_case(raw):
    observations, lacking = collect_samples(PLAN, raw)
    assert len(observations) == 5 * 4
    assert lacking.empty
    assert list(lacking) == list_columns(UNMEASURED)
    for batch in BATCHES:
        for point in batch.points:
            samples = observations[observations["id"] == point.id]
            assert set(samples["batch"]) == {batch.name}
            assert set(samples["bytes"]) == {point.bytes}
            assert list(samples["seconds"]) == [1e-6, 2e-6] * 2
            assert list(samples["pass"]) == [1, 1, 2, 2]
    assert set(observations[observations["kind"] == "probe"]["id"]) == {CASE.id}


def test_tables_name_the_file_that_holds_all_samples_of_a_case(raw):
    """This includes a case whose samples are all late. An unmeasured point has a batch and no
    file."""
    late, lost = POINTS[1], POINTS[2]
    pass_file = raw / "pass.csv"
    pass_file.write_text(f"id,sample,seconds,skew,valid,stop\n{late.id},0,1e-6,0,0,time\n")
    (raw / "first" / f"{late.id}.csv").unlink()
    raw_samples.join_passes({1: pass_file, 2: pass_file}, raw / "first", late.id)
    (raw / "second" / f"{lost.id}.csv").unlink()
    observations, lacking = collect_samples(PLAN, raw, unfinished=True)
    prediction = {"model": "f", "validity": "valid"} | dict.fromkeys(
        ("seconds", "parameter_low", "parameter_high"), 1e-6
    )
    predictions = pd.DataFrame([{"point": point.id, **prediction} for point in POINTS])
    plan = replace(PLAN, measure=replace(PLAN.measure, passes=2))
    compared, summary = (
        compare(plan, observations, predictions, lacking),
        summarize_raw(observations),
    )
    named = dict(zip(compared["point"], compared["raw"], strict=True))
    assert dict(zip(compared["point"], compared["batch"], strict=True)) == {
        point.id: batch.name for batch in BATCHES for point in batch.points
    }
    assert named.pop(lost.id) == ""
    named[CASE.id] = f"raw/first/{CASE.id}.csv"
    assert named[late.id] == f"raw/first/{late.id}.late.csv"
    assert dict(zip(summary["id"], summary["raw"], strict=True)) == named
    assert set(summary["batch"]) == {"first", "second"}
    for case, path in named.items():
        samples = raw_samples.read_samples(raw.joinpath(*path.split("/")[1:]), case)
        assert len(samples) == (observations["id"] == case).sum()


def test_a_case_without_a_valid_sample_was_not_measured(raw):
    pass_file = raw / "pass.csv"
    rows = [f"{POINTS[1].id},{k},1e-6,1e-3,{{}},time" for k in range(2)]
    for valid, expected in ((0, ["late"]), (1, [])):
        text = [rows[0].format(0), rows[1].format(valid)]
        pass_file.write_text("\n".join(["id,sample,seconds,skew,valid,stop", *text]) + "\n")
        raw_samples.find_raw_file(raw / "first", POINTS[1].id).unlink()
        raw_samples.join_passes({1: pass_file}, raw / "first", POINTS[1].id)
        observations, lacking = collect_samples(PLAN, raw)
        assert (observations["id"] == POINTS[1].id).sum() == 2
        assert list(lacking["status"]) == expected
        assert [POINTS[1].id in cases for cases in raw_samples.list_finished(raw / "first")] == [
            bool(valid),
            not valid,
        ]
    assert collect_samples(PLAN, raw)[1].empty


def test_all_damaged_files_are_moved_aside_at_once_and_their_batches_are_not_done(raw):
    first, second = raw / "first" / f"{POINTS[1].id}.csv", raw / "second" / f"{POINTS[2].id}.csv"
    first.write_text(first.read_text().replace("2.0", "2.1", 1))
    second.write_text(second.read_text()[:-5])
    with pytest.raises(UserError) as refused:
        collect_samples(PLAN, raw)
    message = refused.value.format_message()
    assert f"{first}:3: damaged raw file (its checksum differs)" in message
    assert "2 files moved aside" in message
    for path in (first, second):
        assert not path.exists()
        assert path.with_name(f"{path.name}.damaged").exists()
        assert not (path.parent / "done").exists()


def test_a_summary_is_of_the_valid_samples():
    about = {
        "id": "c",
        "batch": "b",
        "kind": "point",
        "platform": "here",
        "simulated": False,
        "name": "bcast",
    }
    rows = [
        about | {"pass": 1, "seconds": number * 1e-6, "skew": 0.0, "valid": True}
        for number in range(1, 22)
    ]
    rows.append(rows[0] | {"seconds": 1.0, "valid": False})
    (summary,) = summarize_raw(pd.DataFrame(rows).assign(stop="samples")).to_dict("records")
    assert (summary["samples"], summary["invalid"], summary["passes"], summary["stop"]) == (
        21,
        1,
        1,
        "samples",
    )
    micro = {"min": 1, "median": 11, "mean": 11, "p95": 20, "max": 21}
    assert {name: summary[name] * 1e6 for name in micro} == pytest.approx(micro)


def test_a_damaged_file_of_late_samples_is_moved_aside_too(raw):
    path = raw / "first" / f"{POINTS[1].id}.csv"
    late = path.replace(path.with_suffix(raw_samples.LATE_SUFFIX))
    late.write_text(late.read_text()[:-5])
    with pytest.raises(UserError, match=rf"{late.name}: damaged raw file .* 1 file moved aside"):
        collect_samples(PLAN, raw)
    assert raw_samples.read_marker(raw / "first", POINTS[1].id) is None
    assert not (raw / "first/done").exists()


def test_a_damaged_file_leaves_the_other_batch_done(raw):
    (raw / "second" / f"{POINTS[2].id}.csv").write_text("")
    with pytest.raises(UserError, match="1 file moved aside"):
        collect_samples(PLAN, raw)
    assert (raw / "first/done").exists()
    assert not (raw / "second/done").exists()
    _, lacking = collect_samples(PLAN, raw, unfinished=True)
    assert (
        lacking.loc[lacking["id"] == POINTS[2].id, "reason"].item()
        == "its raw file was damaged and moved aside"
    )


def test_a_crashed_case_has_a_row_with_the_reason(raw):
    (raw / "first" / f"{POINTS[0].id}.csv").unlink()
    raw_samples.write_marker(raw / "first", POINTS[0].id, raw_samples.CRASH, "signal 9", 1)
    raw_samples.write_marker(
        raw / "first", POINTS[1].id, raw_samples.CRASH, "measured after all", 1
    )
    observations, lacking = collect_samples(PLAN, raw)
    assert len(observations) == 4 * 4
    (row,) = lacking.to_dict("records")
    assert (row["id"], row["batch"], row["name"], row["alternative"]) == (
        POINTS[0].id,
        "first",
        "bcast",
        "linear",
    )
    assert (row["ranks"], row["nodes"], row["bytes"]) == (2, 1, 1)
    assert (row["status"], row["reason"]) == ("crash", "signal 9")


def test_a_batch_that_did_not_finish_is_an_error_unless_requested(raw):
    for path in (raw / "second").glob("*"):
        path.unlink()
    with pytest.raises(
        UserError, match=r"2 cases are neither .* as \w+ \(never started\): run again"
    ):
        collect_samples(PLAN, raw)
    OwnAttempt(raw / "second", 60, "").write()
    _, lacking = collect_samples(PLAN, raw, unfinished=True)
    assert list(lacking["id"]) == BATCHES[1].ids
    assert set(lacking["status"]) == {"unfinished"}
    assert set(lacking["reason"]) == {"1 attempt, the last one: ended without a message"}
    again = OwnAttempt(raw / "second", 60, "")
    again.end("error: no MPI")
    _, lacking = collect_samples(PLAN, raw, unfinished=True)
    assert set(lacking["reason"]) == {"2 attempts, the last one: error: no MPI"}
    (raw / "second/state.json").write_text("{")
    _, lacking = collect_samples(PLAN, raw, unfinished=True)
    assert set(lacking["reason"]) == {f"1 attempt, the last one: {DAMAGED_OUTCOME}"}


def test_an_unfinished_probe_case_is_listed_with_kind_name_and_size(raw, tmp_path):
    (raw / "first" / f"{CASE.id}.csv").unlink()
    _, lacking = collect_samples(PLAN, raw, unfinished=True)
    lacking.to_csv(tmp_path / "unmeasured.csv", index=False)
    (row,) = pd.read_csv(tmp_path / "unmeasured.csv").to_dict("records")
    assert (row["kind"], row["name"], row["nodes"], row["bytes"]) == ("probe", "pingpong", 1, 8)


def test_streams_record_times_of_the_first_and_last_wave(tmp_path):
    """Points of one wave have empty cells; the settings in the summary state the number of
    waves."""
    wave, stream = POINTS[0], replace(POINTS[0], waves=50)
    batch = Batch("first", "here", 1, points=(wave, stream))
    (tmp_path / "first").mkdir()
    for point, head, tail in ((wave, "", ""), (stream, ",first,last", ",{}e-6,9e-6")):
        rows = [
            f"{point.id},{k},{k + 1}e-6,1e-9,{int(k < 3)},samples{tail.format(10 + k)}"
            for k in range(4)
        ]
        (tmp_path / "pass.csv").write_text(
            "\n".join([f"id,sample,seconds,skew,valid,stop{head}", *rows]) + "\n"
        )
        raw_samples.join_passes({1: tmp_path / "pass.csv"}, tmp_path / "first", point.id)
    plan = planned(batch)
    observations, _ = collect_samples(plan, tmp_path)
    write_stream = observations[observations["id"] == stream.id]
    assert set(write_stream["waves"]) == {50}
    assert list(write_stream["first"]) == pytest.approx([1e-5, 1.1e-5, 1.2e-5, 1.3e-5])
    assert (
        observations.loc[observations["id"] == wave.id, ["waves", "first", "last"]]
        .isna()
        .all(axis=None)
    )
    settings = summarize_raw(observations).set_index("id")["settings"]
    assert settings[stream.id].endswith(f"{settings[wave.id]} waves=50".split("alternative=")[1])
    predictions = pd.DataFrame(
        columns=["point", "model", "seconds", "parameter_low", "parameter_high", "validity"]
    )
    types = dict.fromkeys(("point", "model", "validity"), str)
    rows = compare(plan, observations, predictions.astype(float).astype(types)).set_index("point")
    row = rows.loc[stream.id]
    assert (row["waves"], row["measured"], row["first"], row["last"]) == (
        50,
        pytest.approx(2e-6),
        pytest.approx(1.1e-5),  # median of the valid ones
        pytest.approx(9e-6),
    )
    assert rows.loc[wave.id, ["waves", "first"]].tolist() == [
        1,
        pytest.approx(float("nan"), nan_ok=True),
    ]
