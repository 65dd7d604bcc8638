"""Random schedules play through with the payload check, and cost what a slow reference of the semantics says."""

import random

import pytest

L, OVERHEAD, G_BYTE, HEADER = 10e-6, 1.5e-6, 1e-10, 16


def random_schedule(seed, ranks, steps, messages):
    """Several messages of a pair in one step, skipped steps, local work, empty messages: all of it legal."""
    dice, rows = random.Random(seed), []
    for step in sorted(dice.sample(range(3 * steps), steps)):
        for _ in range(dice.randint(1, messages)):
            src, dst = dice.sample(range(ranks), 2)
            rows += [(step, "send", src, dst, dice.choice([0, 1, 7, 8, 100]), "")] * dice.choice([1, 1, 3])
        for _ in range(dice.randint(0, 3)):
            rank, kind = dice.randrange(ranks), dice.choice(["reduce", "copy", "compute"])
            work = ("", round(dice.uniform(0, 2e-5), 9)) if kind == "compute" else (dice.choice([0, 8, 64]), "")
            rows.append((step, kind, rank, "", *work))
    return rows


def reference_cost(rows, ranks):
    """One rank and one message at a time: o for each send in row order, then o for each arrival as it comes."""
    clock = [0.0] * ranks
    for step in sorted({row[0] for row in rows}):
        here = [row for row in rows if row[0] == step]
        arrivals = {}
        for _, kind, rank, peer, size, _ in here:
            if kind == "send":
                clock[rank] += OVERHEAD
                arrivals.setdefault(peer, []).append(clock[rank] + L + (size + HEADER) * G_BYTE)
        for rank, times in arrivals.items():
            for time in sorted(times):
                clock[rank] = max(clock[rank], time) + OVERHEAD
        for _, kind, rank, _, _, seconds in here:
            if kind == "compute":
                clock[rank] += seconds
    return max(clock)


def test_random_schedules_cost_what_the_reference_says(simulated, tmp_path, write_schedule):
    ranks, expected, cases = 12, {}, "id,schedule,finish"
    for seed in range(25):
        rows = random_schedule(seed, ranks, steps=6, messages=10)
        write_schedule(tmp_path / f"s{seed}.csv", rows)
        expected[f"s{seed}"] = reference_cost(rows, ranks)
        cases += f"\ns{seed},s{seed}.csv,all"
    result = simulated(ranks, "player", cases)
    assert result.code == 0, result.err
    for case, cost in expected.items():
        assert result.median(case) == pytest.approx(cost, rel=0.005), case


@pytest.mark.parametrize("sync", ["window", "barrier"])
def test_random_schedules_play_on_real_mpi(real, tmp_path, sync, write_schedule):
    cases = "id,schedule,finish"
    for seed in range(12):
        rows = random_schedule(seed, 2, steps=8, messages=6)
        rows = [(s, k, r, p, b * 4000 if k == "send" else b, t) for s, k, r, p, b, t in rows]  # above eager sizes too
        write_schedule(tmp_path / f"s{seed}.csv", rows)
        cases += f"\ns{seed},s{seed}.csv,{seed % 2 if seed < 4 else 'all'}"
    result = real(2, "player", cases, "--max-seconds", 0.1, "--sync", sync, "--seed", 3)
    assert result.code == 0, result.err
    assert len(result.files()) == 12
