"""Clocks that jump while samples are taken: no sample is ever an hour long, and none is lost for good."""

import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CASES = "id,pairs,bytes\none,1,8\ntwo,1,1024\nthree,1,65536"
LONG = ("--precision", 1e-6, "--max-samples", 10_000_000, "--max-seconds", 0.25)  # so that a jump falls into a case


@pytest.fixture(scope="session")
def jumping(tmp_path_factory):
    """jumping(file, after): the environment in which clocks jump, so many seconds after a file has appeared."""
    shim = tmp_path_factory.mktemp("shim") / "clock_jumps.so"
    command = ["cc", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared", "-o", str(shim)]
    subprocess.run([*command, str(HERE / "clock_jumps.c")], check=True)
    return lambda file, after: {"LD_PRELOAD": str(shim), "JUMP_FILE": str(file), "JUMP_AFTER": str(after)}


@pytest.fixture
def in_jumps(real, jumping, monkeypatch, tmp_path):
    def run(sync, after, **more):
        for name, value in (jumping(tmp_path / "samples/.now", after) | more).items():
            monkeypatch.setenv(name, value)
        return real(2, "pairs", CASES, "--sync", sync, *LONG)

    return run


def sane(result, sync):
    """No sample that counts is of hours. On a busy machine all windows may be missed; no barrier ever is."""
    assert result.code == 0, result.err
    seconds = [sample for case in ("one", "two", "three") for sample in result.seconds(case)]
    assert all(result.rows(case) for case in ("one", "two", "three"))
    assert seconds or sync == "window"
    assert all(0 <= sample < 60 for sample in seconds)


def test_the_shim_makes_the_wall_clock_jump(jumping):
    """The oracle of the other tests: a program that looks at the wall clock sees hours go by."""
    look = "import time; first = time.time(); print(max(abs(time.time() - first) for _ in range(5)) > 3000)"
    done = subprocess.run(["python3", "-c", look], env=jumping("/", 0), capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


@pytest.mark.parametrize("sync", ["window", "barrier"])
def test_a_wall_clock_that_jumps_is_nobody_s_business(in_jumps, sync):
    sane(in_jumps(sync, 0), sync)


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("sync", ["window", "barrier"])
@pytest.mark.parametrize("after", [0.05, pytest.param(0.3, marks=pytest.mark.slow), 0.6])
def test_a_rank_s_clock_that_jumps_ahead_costs_a_few_samples(in_jumps, rank, sync, after):
    sane(in_jumps(sync, after, JUMP_RANK=str(rank)), sync)


def test_the_first_samples_keep_to_the_time_where_clocks_are_known_badly(relinked, start):
    """A window is many times as long as a pass then. 2,000 samples were taken before the time was first looked at."""
    options = ("--sync", "window", "--min-samples", 2000, "--max-samples", 4000, "--max-seconds", 0.5)
    slow = relinked("slow_receives.c", ["library"])
    result = start(2, slow, "library", "id,operation,bytes\none,allreduce,8", *options)
    assert result.code == 0, result.err
    assert 1 <= len(result.rows("one")) <= 0.5 / 0.005


def test_clocks_are_not_compared_again_for_every_case(relinked, start):
    """Over a slow network that takes longer than many a case."""
    cases = "\n".join(["id,operation,bytes", *(f"c{number},bcast,8" for number in range(40))])
    counted = relinked("counted_scatters.c", ["library"])
    result = start(2, counted, "library", cases, "--sync", "barrier", "--min-samples", 5, "--max-samples", 5)
    assert result.code == 0, result.err
    assert 1 <= int(re.search(r"clocks compared (\d+) times", result.err)[1]) < 40
