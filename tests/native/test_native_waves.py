"""Waves, the same schedule many times in a row: what is measured of them, on a simulated cluster that equals LogGP
beside closed forms and the replay of as many waves; and that no message is taken for that of another wave."""

import numpy as np
import pytest
from tests.native.test_native_rank_local import OVERHEAD, cases, programs
from tests.native.test_native_simulated import HOP, O_R, O_S, L, near
from tests.patterns.catalogue import point

from commodel.models.pricing.replay import Costs, finish_times
from commodel.patterns.build import schedule
from commodel.patterns.schedule_files import write_play
from commodel.predictions.predictions import repeated

WAVES, RANKS = 20, 16


def streams(folder, patterns):
    """A case file of streams, and of single waves as programs without that column know them."""
    rows = [
        f"{name},{name}.play,{'all' if pattern.root is None else pattern.root},{WAVES}"
        for name, pattern in patterns.items()
    ]
    path = folder / "cases.csv"
    path.write_text("\n".join(["id,schedule,finish,waves", *rows, ""]))
    return path


def written(folder, points):
    patterns = {}
    for name, entry in points.items():
        patterns[name] = schedule(entry)
        write_play(folder / f"{name}.play", patterns[name], entry.operation, entry.bytes)
    return patterns


def column(result, name, key):
    return np.median([float(row[key]) for row in result.rows(name)])


def finish(pattern, waves):
    """When every rank is done with so many waves on the simulated cluster."""
    pattern = repeated(pattern, waves)
    costs = Costs(OVERHEAD, OVERHEAD, L + 1e-10 * pattern.bytes, OVERHEAD, OVERHEAD)
    return finish_times(pattern, costs, pattern.work_seconds(0.0))


@pytest.fixture(scope="module")
def ways():
    """A pattern of each kind, with what a rank of it does between two waves where that is known."""
    return {
        "chain": (point("bcast", "chain", ranks=RANKS, bytes=8), O_S + O_R),  # a rank between two others
        "flat": (point("bcast", "linear", ranks=RANKS, bytes=8), (RANKS - 1) * O_S),  # the root
        "gather": (point("gather", "linear", ranks=RANKS, bytes=8), (RANKS - 1) * O_R),
        "binomial": (point("reduce", "binomial", ranks=RANKS, bytes=8), 4 * O_R),  # the root; its child 3 and a send
        "ring": (point("allreduce", "ring", ranks=RANKS, bytes=1600), None),
        "tree": (point("reduce", topology="balanced:4x3", bytes=8), 4 * O_R),
    }


def test_the_period_is_that_of_the_busiest_rank_and_of_the_replay(simulated, tmp_path, ways):
    patterns = written(tmp_path, {name: entry for name, (entry, _) in ways.items()})
    result = simulated(17, "player", streams(tmp_path, patterns), "--warmup", 1)
    assert result.code == 0, result.err
    for name, pattern in patterns.items():
        replayed = [pattern.cost(finish(pattern, waves)) for waves in (1, WAVES - 1, WAVES)]
        assert result.median(name) == near((replayed[2] - replayed[0]) / (WAVES - 1)), name
        assert column(result, name, "first") == near(replayed[0]), name
        begins = finish(pattern, WAVES - 1)[np.union1d(pattern.src, pattern.dst)].min()
        assert column(result, name, "last") == near(replayed[2] - begins), name
        if ways[name][1]:
            assert result.median(name) == near(ways[name][1]), name


def test_the_first_wave_is_what_one_wave_alone_takes(simulated, tmp_path, ways):
    patterns = written(tmp_path, {name: entry for name, (entry, _) in ways.items()})
    stream = simulated(17, "player", streams(tmp_path, patterns), "--warmup", 1, out="stream")
    path = streams(tmp_path, patterns)
    alone = tmp_path / "alone.csv"
    alone.write_text(path.read_text().replace(f",{WAVES}\n", ",1\n"))
    single = simulated(17, "player", alone, "--warmup", 1, out="single")
    for name in patterns:
        assert column(stream, name, "first") == near(single.median(name)), name


def test_a_wave_is_as_it_was_without_the_column(simulated, tmp_path, ways):
    """To the last bit of every sample."""
    written(tmp_path, {name: entry for name, (entry, _) in ways.items()})
    names = sorted(ways)
    rows = {name: f"{name},{name}.play,all" for name in names}
    (tmp_path / "old.csv").write_text("\n".join(["id,schedule,finish", *rows.values(), ""]))
    (tmp_path / "new.csv").write_text("\n".join(["id,schedule,finish,waves", *(f"{r},1" for r in rows.values()), ""]))
    old = simulated(17, "player", tmp_path / "old.csv", out="old")
    new = simulated(17, "player", tmp_path / "new.csv", out="new")
    for name in names:
        assert (old.out / f"{name}.csv").read_bytes() == (new.out / f"{name}.csv").read_bytes()
        assert (old.out / f"{name}.csv").read_text().startswith("id,sample,seconds,skew,valid,stop\n")


def test_random_schedules_stream_as_the_replay_says(simulated, tmp_path):
    """Late waits, overlap and local work included; the data of every wave arrive."""
    patterns = programs(4, 30, RANKS, 60)
    cases(tmp_path, patterns)
    result = simulated(RANKS, "player", streams(tmp_path, patterns), "--warmup", 1)
    assert result.code == 0, result.err
    for name, pattern in patterns.items():
        first, last = (finish(pattern, waves).max() for waves in (1, WAVES))
        assert result.median(name) == pytest.approx((last - first) / (WAVES - 1), rel=0.01, abs=2e-9), name


def test_real_ranks_stream_random_schedules(real, tmp_path):
    patterns = programs(5, 30, 2, 40)
    cases(tmp_path, patterns)
    result = real(2, "player", streams(tmp_path, patterns), "--max-seconds", 0.01, "--warmup", 1)
    assert result.code == 0, result.err
    for name in patterns:
        for row in result.rows(name):
            assert row["valid"] == "0" or float(row["seconds"]) >= 0
            assert all(float(row[key]) > 0 for key in ("first", "last") if row[key])


def test_latencies_are_blank_where_the_clocks_tell_none(relinked, start):
    """Clocks known to milliseconds; the time between waves ends at one rank mostly, and stays."""
    slow = relinked("slow_receives.c", ["library"])
    case = "id,operation,bytes,waves\na,gather,8,50"
    result = start(2, slow, "library", case, "--sync", "barrier", "--min-samples", 6, "--max-samples", 6)
    assert result.code == 0, result.err
    latencies = [row[key] for row in result.rows("a") for key in ("first", "last")]
    assert "" in latencies
    assert all(float(text) >= 5e-3 for text in latencies if text)  # what a round trip takes here
    assert all(float(row["seconds"]) > 0 for row in result.rows("a"))


@pytest.mark.parametrize("operation", ["bcast", "allreduce"])
def test_a_message_of_another_wave_is_seen(relinked, start, tmp_path, operation):
    swapped = relinked("swapped_waves.c", ["player"])
    choice = "linear" if operation == "bcast" else "recursive-doubling"
    patterns = written(tmp_path, {"a": point(operation, choice, ranks=2, bytes=64)})
    result = start(2, swapped, "player", streams(tmp_path, patterns), out="swapped")
    assert result.code != 0
    assert "of wave 1 " in result.err if operation == "bcast" else "not the sum of all ranks' data" in result.err


def test_the_library_streams_too(simulated):
    result = simulated(8, "library", f"id,operation,bytes,waves\nb,bcast,8,{WAVES}\nr,reduce,64,{WAVES}\na,bcast,8,1")
    assert result.code == 0, result.err
    assert column(result, "b", "first") == near(result.median("a"))
    assert 0 < result.median("b") < result.median("a")
    assert column(result, "r", "last") > 0
    assert result.median("a") >= 0.99 * HOP
