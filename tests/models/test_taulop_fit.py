"""τ–Lop: fits of its values; broadcasts compared with a loop over table rows (`shared: node`); and
equations 8 to 11, 13 and 14 of the paper for any rectangles."""

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from commodel.models.families import find_family
from commodel.patterns.build import build_schedule
from commodel.patterns.layouts import place_ranks
from commodel.patterns.schedule import Schedule
from commodel_formats import taulop as tables
from tests.models.synthetic import costs, fit_machine, observed, truth
from tests.patterns.catalogue import point


@pytest.mark.parametrize("shared", ["channel", "node", "port"])
@pytest.mark.parametrize(
    ("procs", "within"), [(2, False), (4, False), (8, False), (2, True), (4, True)]
)
def test_the_prediction_of_a_ring_equals_the_measured_time(procs, within, shared):
    """The setting `shared` of the prediction does not change a ring, which is counted as
    measured."""
    machine, ranks = truth("taulop"), np.arange(procs)
    fitted = fit_machine("taulop", machine)
    fitted = replace(fitted, settings={**fitted.settings, "shared": shared})
    pattern = Schedule.of(procs, 0, ranks, (ranks + 1) % procs, 4096).place(
        0 * ranks if within else ranks % 2
    )
    measured = machine.times["ring"](
        {"pair": "node.same" if within else "node.node", "procs": procs, "bytes": 4096}
    )
    assert costs(find_family("taulop"), pattern, fitted, drawn=False)[0] == pytest.approx(
        measured, rel=1e-6
    )


def test_processor_time_is_half_of_the_busy_time_of_both_ends_and_bounded():
    """Processor time is fitted to short messages with a late receiver. It is at most half of the
    time of an empty message."""
    machine = truth("taulop")
    values = find_family("taulop").fit(observed(machine, "taulop", noise=0)).values
    assert (values["p_0"][0], values["p_1"][0]) == pytest.approx((2e-7, 6e-7), rel=1e-3)
    busier = {
        name: lambda case: 20e-6 if case["late"] else machine.times["prtt"](case)
        for name in ("prtt", "pairprtt")
    }
    values = (
        find_family("taulop")
        .fit(observed(replace(machine, times=machine.times | busier), "taulop", noise=0))
        .values
    )
    assert (values["p_0"][0], values["p_1"][0]) == pytest.approx((0.5e-6, 2.5e-6), rel=1e-3)


SIZES = (1, 64, 256, 1024, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288)


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_rendezvous_is_in_the_overhead_and_shares_nothing(noise):
    """Above 8 KiB, rendezvous takes 12 µs. The overhead o_1(m) increases by 12 µs; L_1 does not
    change for any number of concurrent transfers."""
    machine = truth("taulop")

    def asking(case):
        between = not case["pair"].endswith(".same")
        return 12e-6 if between and case["bytes"] > 8192 else 0.0

    times = {
        "ring": lambda case: machine.times["ring"](case) + asking(case),
        "prtt": lambda case: machine.times["prtt"](case) + 2 * asking(case),
        "pairprtt": lambda case: machine.times["pairprtt"](case) + 2 * asking(case),
    }
    asks = replace(machine, times=machine.times | times, sizes=SIZES)
    fitted = fit_machine("taulop", asks, noise=noise)
    close = 1e-3 if noise == 0 else 0.1
    assert fitted.forms["o_1"] == "piecewise"
    assert fitted.values["o_1.x1"].value == 8192
    assert fitted.values["o_1.a"].value == pytest.approx(5e-6, rel=close)
    assert fitted.values["o_1.a1"].value == pytest.approx(17e-6, rel=close)
    assert fitted.forms["o_0"] == "constant"
    assert fitted.values["L_1.16384x1"].value == pytest.approx(8e-10 * 16384, rel=close)
    sixteen = Schedule.of(32, 0, np.arange(16), np.arange(16, 32), 16384)
    fitted = replace(fitted, settings={**fitted.settings, "shared": "channel"})
    (cost,) = costs(find_family("taulop"), sixteen, fitted, drawn=False)
    assert cost == pytest.approx(17e-6 + 2 * 8e-10 * 16384 * (1 + 0.7 * 7), rel=close / 3)


def test_rendezvous_takes_the_smallest_distance_of_the_lines():
    """Above 8 KiB rendezvous takes 12 µs, and each byte takes 0.5 ns less: 12 µs − 0.5 ns/B · 8 KiB
    are left at 16 KiB, the first size with rendezvous."""
    machine = truth("taulop")

    def more(case):
        asks = case["bytes"] > 8192 and not case["pair"].endswith(".same")
        return 12e-6 - 5e-10 * (case["bytes"] - 8192) if asks else 0.0

    times = {
        name: lambda case: machine.times["prtt"](case) + 2 * more(case)
        for name in ("prtt", "pairprtt")
    }
    asks = replace(machine, times=machine.times | times, sizes=SIZES)
    values = find_family("taulop").fit(observed(asks, "taulop", noise=0)).values
    assert values["o_1.x1"][0] == 8192
    assert values["o_1.a1"][0] - values["o_1.a"][0] == pytest.approx(12e-6 - 5e-10 * 8192, rel=1e-3)


def test_a_transfer_that_was_slower_at_a_smaller_size_is_drawn_as_predicted():
    slow, machine = 5e-5, truth("taulop")

    def ring(case):
        odd = case["bytes"] == 1024 and case["procs"] == 4 and not case["pair"].endswith(".same")
        return slow if odd else machine.times["ring"](case)

    bent = replace(machine, times=machine.times | {"ring": ring})
    fitted = fit_machine("taulop", bent)
    drawn = next(
        curve
        for curve in fitted.curves
        if curve.title.startswith("between") and "4 at once" in curve.title
    )
    place = drawn.x.index(1024)
    assert drawn.measured[place] == pytest.approx(slow)
    assert drawn.fitted[place] == pytest.approx(
        fitted.values["o_1.a"].value + fitted.values["L_1.1024x4"].value
    )
    assert drawn.fitted[place] == drawn.fitted[place + 1] < slow
    assert fitted.values["L_1.1024x4"].note.startswith("samples fall with the size or concurrency")
    assert not fitted.values["L_1.1024x4"].known
    assert fitted.values["L_1.1024x1"].known


TABLE_SIZES = (1, 64, 1024, 65536)
SHM = {
    size: (4e-7, *(level * (2e-7 + size * 1.5e-10) * 0.9 for level in range(1, 9)))
    for size in TABLE_SIZES
}
IB = {
    size: (1.8e-6, *((0.7 + 0.3 * level) * (9e-7 + size * 3.1e-10) for level in range(1, 9)))
    for size in TABLE_SIZES
}


@pytest.fixture
def imported(tmp_path):
    for name, rows in (("SHM", SHM), ("IB", IB)):
        lines = [" ".join(map(repr, (size, *numbers))) for size, numbers in rows.items()]
        (tmp_path / f"{name}.txt").write_text("# m o L(1) …\n" + "\n".join(lines) + "\n")
    return replace(tables.read_tables(tmp_path), settings={"shared": "node"})


def between(rows, size, level):
    """Return overhead and transfer time, interpolated between two sizes, at a level; beyond the
    last level in proportion."""
    low = max(known for known in TABLE_SIZES if known <= size)
    high = min((known for known in TABLE_SIZES if known > low), default=low)
    share = (size - low) / (high - low) if high > low else 0.0
    column = min(level, 8)
    transfer = rows[low][column] + share * (rows[high][column] - rows[low][column])
    overhead = rows[low][0] + share * (rows[high][0] - rows[low][0])
    return overhead, transfer * max(level / 8, 1)


def by_hand(messages, node, size):
    """Return the predicted time. `messages` has the (source, target) pairs of each step in
    order."""
    total = 0.0
    for step in messages:
        turns = defaultdict(list)
        sent = Counter()
        for source, target in step:
            turns[sent[source]].append((source, target))
            sent[source] += 1
        for turn in turns.values():
            load = Counter((node[s] == node[t], node[t]) for s, t in turn)
            costs = []
            for (within, _), level in load.items():
                o, transfer = between(SHM if within else IB, size, level)
                costs.append(o + (2 if within else 1) * transfer)
            total += max(costs)
    return total


def far_first(ranks):
    rounds, distance = [], ranks // 2
    while distance:
        rounds.append([(rank, rank + distance) for rank in range(0, ranks, 2 * distance)])
        distance //= 2
    return rounds


@pytest.mark.parametrize("layout", ["block:2", "cyclic:2", "block:8", "cyclic:8"])
@pytest.mark.parametrize("algorithm", ["linear", "binomial"])
def test_broadcast(imported, layout, algorithm):
    for ranks, size in product([8, 16, 32, 64], [1, 40, 1024, 30000, 65536]):
        messages = (
            far_first(ranks)
            if algorithm == "binomial"
            else [[(0, rank) for rank in range(1, ranks)]]
        )
        pattern = build_schedule(point("bcast", algorithm, ranks=ranks, bytes=size, layout=layout))
        (seconds,) = costs(find_family("taulop"), pattern, imported, drawn=False)
        assert seconds == pytest.approx(
            by_hand(messages, place_ranks(layout, ranks), size), rel=1e-12
        ), (ranks, size)
