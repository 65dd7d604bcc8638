"""Programs on two real ranks: output files are valid and their stop reason is correct; samples of
probes that load a rank, a network or the memory are plausible."""

import os
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.alone

CASES = {
    "pingpong": "id,bytes\na,8\nb,0\nc,100000",
    "fan": "id,direction,how,n,bytes,answer\na,out,isend,1,8,0\nb,in,list,1,0,8\nc,round,put,1,5000,80",
}


def median_interval(values):
    """Return the 95 % order-statistics interval of the median from exact binomial sums."""
    from math import comb

    n, below, k = len(values), 0, 0
    ordered = sorted(values)
    while n and (below + comb(n, k)) / 2**n <= 0.025:
        below, k = below + comb(n, k), k + 1
    if k == 0:
        return 0, float("inf")
    return ordered[k - 1], ordered[n - k]


@pytest.mark.parametrize("sync", ["window", "barrier"])
@pytest.mark.parametrize("program", sorted(CASES))
def test_files_and_stop_reasons(real, program, sync):
    result = real(
        2, program, CASES[program], "--sync", sync, "--precision", 0.05, "--max-seconds", 1
    )
    assert result.code == 0, result.err
    assert result.files() == ["a.csv", "b.csv", "c.csv"]
    for case in "abc":
        text = (result.out / f"{case}.csv").read_text().splitlines()
        assert text[0] == "id,sample,seconds,skew,valid,stop"
        rows, values = result.rows(case), result.seconds(case)
        assert [row["sample"] for row in rows] == [str(i) for i in range(len(rows))]
        assert all(re.fullmatch(r"-?\d\.\d{9}e[+-]\d\d", row["seconds"]) for row in rows)
        assert all((row["skew"] == "") == (program == "pingpong") for row in rows)
        (stop,) = {row["stop"] for row in rows}
        if not values:  # so busy a machine that no rank was ever in time for a window
            assert stop != "precision"
            continue
        low, high = median_interval(values)
        narrow = high - low <= 2 * 0.05 * result.median(case) * (1 + 1e-6)
        assert narrow if stop == "precision" else not narrow or len(values) < 10
        if stop == "samples":
            assert len(values) >= 1000 or len(rows) >= 4000
        assert min(values) > 0
        line = rf"case \d/3 {case} median [\d.]+ us, {len(values)} samples, {stop}"
        assert re.search(line, result.err)


def test_sample_and_time_budgets_stop_a_case_that_does_not_reach_the_precision(real):
    samples = real(2, "pingpong", "id,bytes\na,8", "--precision", 0, "--max-samples", 40, out="s")
    assert len(samples.rows("a")) == 40
    assert samples.rows("a")[0]["stop"] == "samples"
    time = real(
        2,
        "prtt",
        "id,n,delay,late,bytes\na,1,0,20000,8",
        "--precision",
        0,
        "--max-seconds",
        0.3,
        out="t",
    )
    assert 1 <= len(time.rows("a")) < 500  # of the 1,000 that are allowed
    assert time.rows("a")[0]["stop"] == "time"


def test_delays_are_taken_off(real):
    cases = "id,n,delay,late,bytes\nnone,3,0,0,8\ndelay,3,500,0,8\nlate,3,0,500,8"
    result = real(2, "prtt", cases, "--min-samples", 100, "--max-seconds", 1)
    # the least of many, because a busy machine only ever adds; 500 round trips would show
    plain = min(result.seconds("none"))
    assert min(result.seconds("delay")) < 50 * plain
    assert min(result.seconds("late")) < 50 * plain


def test_the_time_of_local_work_grows_with_the_number_of_bytes(real):
    result = real(1, "work", "id,bytes\nempty,0\nsmall,80000\nbig,800000")
    least = {case: min(result.seconds(case)) for case in ("empty", "small", "big")}
    assert 0 < least["empty"] < 1e-6
    assert 4 < least["big"] / least["small"] < 40


def test_metadata_record_program_hosts_clock_compiler_and_options(real, load_json, tmp_path):
    real(
        2, "fan", CASES["fan"], "--meta", tmp_path / "meta.json", "--seed", 9, "--max-seconds", 0.1
    )
    meta = load_json(tmp_path / "meta.json")
    assert meta["program"] == "fan"
    assert meta["ranks"] == 2
    assert len(meta["hosts"]) == 2
    assert meta["processors"] == os.cpu_count()
    assert meta["sync"] == "window"
    assert meta["seed"] == 9
    assert meta["simulated"] is False
    assert 0 < meta["clock_resolution"] < 1e-4
    assert 0 < meta["clock_uncertainty"] < 1e-3
    assert "-std=c11" in meta["flags"]
    assert "mpicc" in meta["compiler"]
    assert meta["mpi"]
    assert meta["options"]["max-samples"] == 1000
    assert meta["options"]["placement"] is None


def test_a_finished_case_is_not_measured_again(real):
    cases = "id,bytes\na,8\nb,8", "--max-seconds", 0.1
    result = real(2, "pingpong", *cases)
    (result.out / "a.csv").write_text("kept")
    (result.out / "b.csv").unlink()
    again = real(2, "pingpong", *cases)
    assert (again.out / "a.csv").read_text() == "kept"
    assert again.files() == ["a.csv", "b.csv"]
    assert [line.split()[1:3] for line in again.err.splitlines()] == [["2/2", "b"]]


LOADED_CASES = {
    "pairs": "id,pairs,bytes\na,1,8\nb,1,0\nc,1,100000",
    "stream": "id,senders,each,bytes\na,1,1,8\nb,1,100,0\nc,1,10,100000",
    "post": "id,how,n,bytes\na,isend,1,8\nb,list,1,0\nc,put,1,100000\nd,irecv,1,100000",
    "hrelation": "id,procs,h,bytes\na,2,0,8\nb,2,1,0\nc,2,3,100000",
    "overlap": "id,what,messages,bytes\na,control,0,8\nb,control,10,8\nc,user,10,0\nd,user,3,100000",
    "memory": "id,procs,bytes\na,1,1000\nb,2,100\nc,2,1",
    "memcopy": "id,path,bytes\na,ctc,1\nb,ctm,100\nc,mtm,0\nd,anew,100\ne,anew,0",
    "flood": "id,what,senders,packets,bytes\na,arrived,1,1,8\nb,through,1,20,65507\nc,room,1,1,8\nd,held,1,20,1000",
    "fan": "\n".join(
        ["id,direction,how,n,bytes,answer"]
        + [
            f"{d}-{how},{d},{how},1,{size},100000"
            for d in ("out", "in", "round")
            for how, size in (("isend", 0), ("list", 8), ("put", 200000))
        ]
    ),
}
ALONE = {"post", "overlap", "memcopy", "memory"}
COUNTING = {"flood", "memory"}


@pytest.mark.parametrize("program", sorted(LOADED_CASES))
def test_samples(real, program):
    result = real(2, program, LOADED_CASES[program], "--precision", 0.1, "--max-seconds", 0.1)
    assert result.code == 0, result.err
    cases = [line.split(",")[0] for line in LOADED_CASES[program].splitlines()[1:]]
    assert result.files() == sorted(f"{case}.csv" for case in cases)
    for case in cases:
        rows = result.rows(case)
        assert list(rows[0])[:6] == ["id", "sample", "seconds", "skew", "valid", "stop"]
        assert list(rows[0])[6:] == (["count"] if program in COUNTING else [])
        assert all(re.fullmatch(r"\d\.\d{9}e[+-]\d\d", row["seconds"]) for row in rows)
        assert all((row["skew"] == "") == (program in ALONE) for row in rows)
        assert all(float(row["seconds"]) > 0 for row in rows if row["valid"] == "1")


def test_messages_that_have_come_cost_their_receiver_time_each(real):
    result = real(
        2,
        "overlap",
        "id,what,messages,bytes\nnone,user,0,8\nsome,user,50,8\nplain,control,0,8",
        "--max-seconds",
        1,
    )
    assert result.median("some") > result.median("none")
    assert result.median("plain") > 20 * result.median("none")


def test_datagrams_are_counted(real):
    result = real(
        2,
        "flood",
        "id,what,senders,packets,bytes\nfew,arrived,1,2,8\nmany,arrived,1,2000,60000",
        "--max-seconds",
        1,
    )
    assert result.code == 0, result.err
    counts = {case: [int(row["count"]) for row in result.rows(case)] for case in ("few", "many")}
    assert all(0 <= count <= 2 for count in counts["few"])
    assert max(counts["few"]) == 2
    assert all(0 < count <= 2000 for count in counts["many"])
    assert all(row["count"] == str(int(row["count"])) for row in result.rows("many"))


FLOOD = (
    "id,what,senders,packets,bytes\nmany,through,1,2000,20000\nfew,arrived,1,2000,20000\n"
    "room,room,1,1,8"
)


def flooded(result):
    assert result.code == 0, result.err
    return ([float(row["count"]) for row in result.rows(case)] for case in ("many", "few", "room"))


def test_packets_dropped_by_the_receiving_socket_count_as_delivered_by_the_network(start, relinked):
    """On one host the network loses no packets; the receiver's socket drops the packets that exceed
    its buffer."""
    through, arrived, room = flooded(
        start(2, relinked("slow_reader.c", {"flood"}), "flood", FLOOD, "--max-seconds", 1)
    )
    assert set(room) == {float(Path("/proc/sys/net/core/rmem_default").read_text())}
    assert max(arrived) < 2000
    assert set(through) == {2000}


def test_without_counters_of_sockets_the_counters_of_the_host_are_used(start, relinked):
    """The host counters include all sockets, so no other flood may run at the same time."""
    through, _, _ = flooded(
        start(2, relinked("old_kernel.c", {"flood"}), "flood", FLOOD, "--max-seconds", 1)
    )
    assert set(through) == {2000}


def test_copies_grow_with_their_bytes_and_caches_help(real):
    sizes = (1000, 30000)  # larger ones may not fit into a small cache
    cases = "\n".join(
        f"{kind}{size},{kind},{size}" for kind in ("ctc", "ctm", "mtm") for size in sizes
    )
    result = real(1, "memcopy", "id,path,bytes\n" + cases, "--max-seconds", 0.1)
    assert result.code == 0, result.err
    for kind in ("ctc", "ctm", "mtm"):
        assert result.median(f"{kind}1000") < result.median(f"{kind}30000")
    for size in sizes:
        assert result.median(f"mtm{size}") > 0.8 * result.median(f"ctc{size}")


def test_pages_of_a_buffer_that_is_allocated_for_a_copy_cost_time(real):
    result = real(
        1,
        "memcopy",
        f"id,path,bytes\nagain,ctc,{40 << 20}\nanew,anew,{40 << 20}",
        "--max-seconds",
        0.3,
    )
    assert result.code == 0, result.err
    assert result.median("anew") > result.median("again")
