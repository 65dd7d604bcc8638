"""Random schedules with rank-local steps in the player: the data arrive, and simulated times equal
the replay. Random schedules pass the payload check, and their times equal a slow reference. Streams
of waves on a simulated LogGP cluster equal closed forms and the replay; no message is matched with
one of another wave."""

import random

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.models.evaluation.replay import Costs, finish_times
from commodel.patterns.build import build_schedule
from commodel.patterns.schedule import Schedule
from commodel.patterns.schedule_files import write_player_table
from commodel.predictions.predictions import repeat_waves
from tests.native.test_native_simulated import HOP, O_R, O_S, L, near
from tests.patterns.catalogue import point
from tests.patterns.rank_local import built
from tests.patterns.slow_events import Message

OVERHEAD, LATENCY, PER_BYTE = 1.5e-6, 10e-6, 1e-10  # of the simulated cluster
# a send waits for its receive
SYNCHRONOUS = ("smpi/async-small-thresh:0", "smpi/send-is-detached-thresh:0")


def random_program(rng, ranks: int, messages: int) -> Schedule | None:
    """Return a random schedule, or None for a deadlock. Send and receive of a message are posted in
    about the same step."""
    rows = []
    for number in range(messages):
        src, ahead, step = (
            rng.integers(0, ranks),
            rng.integers(1, ranks),
            rng.integers(0, messages // ranks + 3),
        )
        out, back = step + rng.integers(0, 2, 2)
        ends = out, out + rng.integers(0, 3), back, back + rng.integers(0, 3)
        rows.append(Message(src, (src + ahead) % ranks, number, *ends))
    work = [
        (rng.integers(0, ranks), rng.integers(0, 6), 1e-6 * rng.random() * 30)
        for _ in range(rng.integers(0, 6))
    ]
    try:
        return built(ranks, rows, work, rng.integers(0, 3000, messages))
    except UserError:
        return None


def programs(seed: int, count: int, ranks: int, messages: int) -> dict[str, Schedule]:
    rng, kept = np.random.default_rng(seed), {}
    while len(kept) < count:
        pattern = random_program(rng, ranks, rng.integers(1, messages))
        if pattern:
            kept[f"p{len(kept)}"] = pattern
    return kept


def cases(folder, patterns: dict[str, Schedule]):
    for name, pattern in patterns.items():
        write_player_table(folder / f"{name}.play", pattern)
    path = folder / "cases.csv"
    path.write_text(
        "".join(["id,schedule,finish\n", *(f"{name},{name}.play,all\n" for name in patterns)])
    )
    return path


def played(result, patterns: dict[str, Schedule]):
    assert result.code == 0, result.err
    assert not result.errors
    assert len(result.files()) == len(patterns)


def test_simulated_ranks_take_the_time_of_the_replay(simulated, tmp_path):
    patterns = programs(1, 60, 16, 60)
    assert sum(pattern.nonblocking is not None for pattern in patterns.values()) > 50
    result = simulated(16, "player", cases(tmp_path, patterns), "--warmup", 1)
    played(result, patterns)
    for name, pattern in patterns.items():
        costs = Costs(OVERHEAD, OVERHEAD, LATENCY + PER_BYTE * pattern.bytes, OVERHEAD, OVERHEAD)
        prediction = finish_times(pattern, costs, pattern.work_seconds(0.0)).max()
        assert result.median(name) == pytest.approx(prediction, rel=0.01), name


def test_schedules_without_waits_before_receives_run_with_synchronous_sends(simulated, tmp_path):
    patterns = programs(2, 60, 16, 60)
    patient = {
        name: pattern
        for name, pattern in patterns.items()
        if (pattern.src_wait >= pattern.dst_step).all()
    }
    assert len(patient) > 10
    played(
        simulated(16, "player", cases(tmp_path, patient), "--warmup", 1, settings=SYNCHRONOUS),
        patient,
    )


def test_the_data_arrive_on_real_mpi(real, tmp_path):
    patterns = programs(3, 40, 2, 40)
    played(
        real(2, "player", cases(tmp_path, patterns), "--max-seconds", 0.01, "--warmup", 1), patterns
    )


def test_a_rank_sends_to_itself_on_real_mpi(real, tmp_path):
    """Rank 0 sends to itself within a step, and across steps; then it sends to rank 1."""
    (tmp_path / "self.csv").write_text(
        "step,wait,kind,rank,peer,peer_step,peer_wait,bytes,seconds,runs\n"
        "0,,send,0,0,,,8,,\n0,2,send,0,0,1,2,100000,,\n3,,send,0,1,,,8,,\n"
    )
    (tmp_path / "cases.csv").write_text("id,schedule,finish\na,self.csv,all\n")
    result = real(2, "player", tmp_path / "cases.csv", "--max-seconds", 0.01, "--warmup", 1)
    assert result.code == 0, result.err
    assert not result.errors
    assert result.files() == ["a.csv"]


def random_schedule(seed, ranks, steps, messages):
    """Return random rows: several messages of a pair in one step, skipped steps, local work and
    empty messages."""
    dice, rows = random.Random(seed), []
    for step in sorted(dice.sample(range(3 * steps), steps)):
        for _ in range(dice.randint(1, messages)):
            src, dst = dice.sample(range(ranks), 2)
            rows += [(step, "send", src, dst, dice.choice([0, 1, 7, 8, 100]), "")] * dice.choice(
                [1, 1, 3]
            )
        for _ in range(dice.randint(0, 3)):
            rank, kind = dice.randrange(ranks), dice.choice(["reduce", "copy", "compute"])
            work = (
                ("", round(dice.uniform(0, 2e-5), 9))
                if kind == "compute"
                else (dice.choice([0, 8, 64]), "")
            )
            rows.append((step, kind, rank, "", *work))
    return rows


@pytest.mark.parametrize("sync", ["window", "barrier"])
def test_random_schedules_play_on_real_mpi(real, tmp_path, sync, write_schedule):
    cases = "id,schedule,finish"
    for seed in range(12):
        rows = random_schedule(seed, 2, steps=8, messages=6)
        # above eager sizes too
        rows = [(s, k, r, p, b * 4000 if k == "send" else b, t) for s, k, r, p, b, t in rows]
        write_schedule(tmp_path / f"s{seed}.csv", rows)
        cases += f"\ns{seed},s{seed}.csv,{seed % 2 if seed < 4 else 'all'}"
    result = real(2, "player", cases, "--max-seconds", 0.02, "--sync", sync, "--seed", 3)
    assert result.code == 0, result.err
    assert len(result.files()) == 12


WAVES, RANKS = 20, 16


def write_stream_cases(folder, patterns):
    """Write a case file of streams of waves, and return its path."""
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
        patterns[name] = build_schedule(entry)
        write_player_table(folder / f"{name}.play", patterns[name], entry.operation, entry.bytes)
    return patterns


def column(result, name, key):
    return np.median([float(row[key]) for row in result.rows(name)])


def finish(pattern, waves):
    """Return the finish time of each rank after a number of waves on the simulated cluster."""
    pattern = repeat_waves(pattern, waves)
    costs = Costs(OVERHEAD, OVERHEAD, L + 1e-10 * pattern.bytes, OVERHEAD, OVERHEAD)
    return finish_times(pattern, costs, pattern.work_seconds(0.0))


@pytest.fixture(scope="module")
def patterns_of_streams():
    """Return a pattern of each kind, and the period of its busiest rank where it has a closed
    form."""
    return {
        # a rank between two others
        "chain": (point("bcast", "chain", ranks=RANKS, bytes=8), O_S + O_R),
        "flat": (point("bcast", "linear", ranks=RANKS, bytes=8), (RANKS - 1) * O_S),  # the root
        "gather": (point("gather", "linear", ranks=RANKS, bytes=8), (RANKS - 1) * O_R),
        # the root; its child 3 and a send
        "binomial": (point("reduce", "binomial", ranks=RANKS, bytes=8), 4 * O_R),
        "ring": (point("allreduce", "ring", ranks=RANKS, bytes=1600), None),
        "tree": (point("reduce", topology="balanced:4x3", bytes=8), 4 * O_R),
    }


def test_the_period_is_that_of_the_busiest_rank_and_of_the_replay(
    simulated, tmp_path, patterns_of_streams
):
    patterns = written(tmp_path, {name: entry for name, (entry, _) in patterns_of_streams.items()})
    result = simulated(17, "player", write_stream_cases(tmp_path, patterns), "--warmup", 1)
    assert result.code == 0, result.err
    for name, pattern in patterns.items():
        replayed = [pattern.cost(finish(pattern, waves)) for waves in (1, WAVES - 1, WAVES)]
        assert result.median(name) == near((replayed[2] - replayed[0]) / (WAVES - 1)), name
        assert column(result, name, "first") == near(replayed[0]), name
        begins = finish(pattern, WAVES - 1)[np.union1d(pattern.src, pattern.dst)].min()
        assert column(result, name, "last") == near(replayed[2] - begins), name
        if patterns_of_streams[name][1]:
            assert result.median(name) == near(patterns_of_streams[name][1]), name


def test_random_schedules_stream_as_the_replay_says(simulated, tmp_path):
    """The schedules have late waits, overlap and local work."""
    patterns = programs(4, 30, RANKS, 60)
    cases(tmp_path, patterns)
    result = simulated(RANKS, "player", write_stream_cases(tmp_path, patterns), "--warmup", 1)
    assert result.code == 0, result.err
    for name, pattern in patterns.items():
        first, last = (finish(pattern, waves).max() for waves in (1, WAVES))
        assert result.median(name) == pytest.approx(
            (last - first) / (WAVES - 1), rel=0.01, abs=2e-9
        ), name


def test_real_ranks_stream_random_schedules(real, tmp_path):
    patterns = programs(5, 30, 2, 40)
    cases(tmp_path, patterns)
    result = real(
        2, "player", write_stream_cases(tmp_path, patterns), "--max-seconds", 0.01, "--warmup", 1
    )
    assert result.code == 0, result.err
    for name in patterns:
        for row in result.rows(name):
            assert row["valid"] == "0" or float(row["seconds"]) >= 0
            assert all(float(row[key]) > 0 for key in ("first", "last") if row[key])


def test_latencies_are_blank_with_uncertain_clocks(relinked, start):
    """Clocks are uncertain by milliseconds. The time between waves is measured at one rank and
    remains valid."""
    slow = relinked("slow_receives.c", ["library"])
    case = "id,operation,bytes,waves\na,gather,8,50"
    result = start(
        2, slow, "library", case, "--sync", "barrier", "--min-samples", 6, "--max-samples", 6
    )
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
    result = start(2, swapped, "player", write_stream_cases(tmp_path, patterns), out="swapped")
    assert result.code != 0
    assert (
        "of wave 1 " in result.err
        if operation == "bcast"
        else "not the sum of all ranks' data" in result.err
    )


def test_the_library_streams_too(simulated):
    result = simulated(
        8,
        "library",
        f"id,operation,bytes,waves\nb,bcast,8,{WAVES}\nr,reduce,64,{WAVES}\na,bcast,8,1",
    )
    assert result.code == 0, result.err
    assert column(result, "b", "first") == near(result.median("a"))
    assert 0 < result.median("b") < result.median("a")
    assert column(result, "r", "last") > 0
    assert result.median("a") >= 0.99 * HOP
