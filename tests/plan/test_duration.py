"""How long a measurement is guessed to take, where something beside messages takes time."""

from dataclasses import replace

import pytest

from commodel.patterns.points import Setting, make_point
from commodel.plan.duration import Durations
from commodel.records import Case
from tests.planning import MEASURE


def test_a_kernel_computes_beside_its_messages():
    """A product of 64 times 64 blocks of 32 x 32 numbers on two ranks, at 2e9 operations a second."""
    asked = {"operation": "summa:n=64", "algorithm": "paper", "ranks": 2, "bytes": 8192}
    whole = make_point(Setting.unlimited(), asked)
    part = make_point(Setting.unlimited(), {**asked, "operation": "summa:n=64:iteration=3"})
    real, simulated = (Durations(name, MEASURE) for name in ("local", "simgrid"))
    assert real._once(whole)[0] == pytest.approx(2048**3 / 2e9, rel=0.05)
    assert real._once(part)[0] == pytest.approx(2048**3 / 2e9 / 64, rel=0.05)
    assert simulated._once(whole)[0] < 1


@pytest.mark.parametrize(("most", "samples"), [(500, 30), (20, 20)])
def test_a_calm_machine_takes_three_times_the_fewest_samples_and_no_more_than_there_may_be(most, samples):
    durations = Durations("local", replace(MEASURE, max_samples=most))
    assert MEASURE.min_samples == 10
    seconds = 1e-4 * (samples + MEASURE.warmup) + 1e-3
    assert durations._of_samples(1e-4, simulating=8e-5, most=False) == pytest.approx(seconds)


def test_long_messages_of_probes_take_their_time():
    """There and back at 5e9 bytes a second, one after the other: 16 of 1 MiB are as long as one of 16 MiB."""
    durations = Durations("local", replace(MEASURE, seconds=1e6))
    burst, one, short = (
        Case("local", "prtt", 2, {"n": n, "bytes": size}, "block:2")
        for n, size in ((16, 1 << 20), (1, 1 << 24), (1, 1))
    )
    longer = durations.of_cases([one]) - durations.of_cases([short])
    assert durations.of_cases([burst]) == durations.of_cases([one])
    assert longer == pytest.approx(2 * (1 << 24) / 5e9 * (3 * MEASURE.min_samples + MEASURE.warmup), rel=1e-3)


def test_simulating_long_messages_takes_its_time_since_the_player_copies_them():
    """Every rank of sixteen sends the next one 16 MiB, 256 MiB a sample, at 4e-10 s a byte."""
    settings = {"level": "node", "how": "all", "procs": 16, "flows": 16, "step": 1, "ways": 1, "bytes": 1 << 24}
    long, short = (Case("mine", "capacity", 16, {**settings, "bytes": size}, "block:1") for size in (1 << 24, 1))
    durations = Durations("simgrid", MEASURE)
    longer = durations.of_cases([long]) - durations.of_cases([short])
    passes = MEASURE.min_samples + max(MEASURE.warmup, 1)
    assert longer == pytest.approx(16 * (1 << 24) * 4e-10 * passes, rel=1e-3)

    setting = Setting.unlimited()
    points = [
        make_point(setting, {"operation": "bcast", "algorithm": "linear", "ranks": 16, "bytes": size})
        for size in (1 << 24, 0)
    ]
    more = durations.of_points(points[:1]) - durations.of_points(points[1:])
    assert more == pytest.approx(15 * (1 << 24) * 4e-10 * passes, rel=1e-3)
