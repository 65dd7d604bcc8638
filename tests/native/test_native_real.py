"""Two real ranks: the files have the promised form and their stop reason is true."""

import os
import re

import pytest

pytestmark = pytest.mark.alone

CASES = {
    "pingpong": "id,bytes\na,8\nb,0\nc,100000",
    "fan": "id,direction,how,n,bytes,answer\na,out,isend,1,8,0\nb,in,list,1,0,8\nc,round,put,1,5000,80",
}


def median_interval(values):
    """The 95 % order-statistics interval of the median from exact binomial sums."""
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
    result = real(2, program, CASES[program], "--sync", sync, "--precision", 0.05, "--max-seconds", 1)
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


def test_budgets_stop_what_precision_does_not(real):
    samples = real(2, "pingpong", "id,bytes\na,8", "--precision", 0, "--max-samples", 40, out="s")
    assert len(samples.rows("a")) == 40
    assert samples.rows("a")[0]["stop"] == "samples"
    time = real(2, "prtt", "id,n,delay,late,bytes\na,1,0,20000,8", "--precision", 0, "--max-seconds", 0.3, out="t")
    assert 1 <= len(time.rows("a")) < 500  # of the 1,000 that are allowed
    assert time.rows("a")[0]["stop"] == "time"


def test_delays_are_taken_off(real):
    cases = "id,n,delay,late,bytes\nnone,3,0,0,8\ndelay,3,500,0,8\nlate,3,0,500,8"
    result = real(2, "prtt", cases, "--min-samples", 300, "--max-seconds", 3)
    # the least of many, because a busy machine only ever adds; 500 round trips would show
    plain = min(result.seconds("none"))
    assert min(result.seconds("delay")) < 50 * plain
    assert min(result.seconds("late")) < 50 * plain


def test_local_work_grows_with_its_bytes(real):
    result = real(1, "work", "id,bytes\nempty,0\nsmall,80000\nbig,800000")
    least = {case: min(result.seconds(case)) for case in ("empty", "small", "big")}
    assert 0 < least["empty"] < 1e-6
    assert 4 < least["big"] / least["small"] < 40


def test_meta_tells_how_it_was_run(real, load_json, tmp_path):
    real(2, "fan", CASES["fan"], "--meta", tmp_path / "meta.json", "--seed", 9, "--max-seconds", 0.1)
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
    result = real(2, "pingpong", "id,bytes\na,8\nb,8")
    (result.out / "a.csv").write_text("kept")
    (result.out / "b.csv").unlink()
    again = real(2, "pingpong", "id,bytes\na,8\nb,8")
    assert (again.out / "a.csv").read_text() == "kept"
    assert again.files() == ["a.csv", "b.csv"]
    assert [line.split()[1:3] for line in again.err.splitlines()] == [["2/2", "b"]]
