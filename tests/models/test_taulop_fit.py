"""τ–Lop: fits of its values; broadcasts compared with a loop over table rows (`shared: node`); and
equations 8 to 11, 13 and 14 of the paper for any rectangles."""

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.models.evaluation.values import Values
from commodel.models.families import complete_values, find_family
from commodel.patterns.build import build_schedule
from commodel.patterns.layouts import place_ranks
from commodel.patterns.operations import list_summands
from commodel.patterns.schedule import Schedule
from commodel.predictions.predictions import predict
from commodel_formats import taulop as tables
from commodel_kernels.rectangles import make_even_grid, read_rectangles
from tests.models.synthetic import costs, fit_machine, observed, truth
from tests.models.taulop_terms import parameters, table, transmission
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


FIGURE_8 = "params/partitions/taulop-summa.csv"
FIGURE_9 = "params/partitions/taulop-wave.csv"
NUMBERS = table(3.0, 40.0, 0.5, 2.0, latency=5.0)
JOINED = parameters({"join": "yes", "rest": "message"}, **NUMBERS)
LETTER = parameters({"rest": "message"}, **NUMBERS)
MEMORY, NETWORK = 0, 1


def add_terms(sizes):
    """Return the terms of T(m₁) ‖ T(m₂) ‖ … by A2, as {number of concurrent transfers: bytes}."""
    terms, done = {}, 0
    for number, size in enumerate(sorted(sizes)):
        if size > done:
            terms[len(sizes) - number] = size - done
            done = size
    return terms


def cost(terms, channel):
    values = complete_values(find_family("taulop"), Values.of(JOINED))
    return sum(transmission(values, channel, size, count) for count, size in terms.items())


def longest(stage):
    """Return the channel with the longest terms (A3)."""
    return max(stage, key=lambda channel: cost(add_terms(stage[channel]), channel))


def iteration(parts_of, node, k):
    """Return the predicted time Θ(k): A1 within each sender and over stages, A2 and A3 in each
    stage."""
    x, y, width, height = (column.tolist() for column in parts_of.table)
    ranks = range(len(x))
    stages = [defaultdict(list), defaultdict(list)]
    for src in (rank for rank in ranks if x[rank] <= k < x[rank] + width[rank]):
        sums = defaultdict(int)
        for dst in ranks:
            shared = min(y[src] + height[src], y[dst] + height[dst]) - max(y[src], y[dst])
            if x[dst] != x[src] and shared > 0:
                sums[NETWORK if node[src] != node[dst] else MEMORY] += shared
        for stage, channel in enumerate(sorted(sums)):
            stages[stage][channel].append(sums[channel])
    turns = defaultdict(lambda: defaultdict(list))
    for src in (rank for rank in ranks if y[rank] <= k < y[rank] + height[rank]):
        below = [dst for dst in ranks if x[dst] == x[src] and dst != src]
        for turn, dst in enumerate(below):
            turns[turn][NETWORK if node[src] != node[dst] else MEMORY].append(width[src])
    together = defaultdict(int)
    for stage in [*filter(None, stages), *turns.values()]:
        channel = longest(stage)
        for count, size in add_terms(stage[channel]).items():
            together[channel, count] += size
    return sum(cost({count: size}, channel) for (channel, count), size in together.items())


def test_equation_11_of_figure_8():
    tiling, node = read_rectangles(FIGURE_8), [0, 0, 0, 1, 1, 1]
    wanted = [iteration(tiling, node, k) for k in range(tiling.side)]
    assert wanted[80] == pytest.approx(
        sum(cost({count: size}, 1) for count, size in ((3, 35), (2, 166), (1, 81)))
        + sum(cost({count: size}, 0) for count, size in ((2, 116), (1, 18)))
    )
    (whole,) = predict(
        JOINED, [point(f"summa:partition={FIGURE_8}", "paper", ranks=6, bytes=1, layout="block:3")]
    )
    assert whole.seconds == pytest.approx(sum(wanted), rel=1e-12)


@given(
    st.sampled_from([(2, 2), (2, 3), (3, 2), (4, 2), (1, 5), (5, 1)]),
    st.integers(5, 11),
    st.integers(1, 4),
)
def test_equation_11_of_a_grid(grid, side, nodes):
    ranks = grid[0] * grid[1]
    per_node = -(-ranks // nodes)
    operation = f"summa:n={side}:grid={grid[0]}x{grid[1]}"
    wanted = sum(
        iteration(make_even_grid(side, grid), [rank // per_node for rank in range(ranks)], k)
        for k in range(side)
    )
    (whole,) = predict(
        JOINED, [point(operation, "paper", ranks=ranks, bytes=1, layout=f"block:{per_node}")]
    )
    assert whole.seconds == pytest.approx(wanted, rel=1e-12)
    assert sum(count for _, count in list_summands(operation, ranks)) == side


def neighbours(tiling):
    """Return {(sender, receiver): cells}, counted cell by cell."""
    owner = np.empty((tiling.side, tiling.side), dtype=int)
    for rank, (x, y, width, height) in enumerate(zip(*tiling.table, strict=True)):
        owner[x : x + width, y : y + height] = rank
    sides = defaultdict(int)
    for here, overlapped_seconds in ((owner[:-1], owner[1:]), (owner[:, :-1], owner[:, 1:])):
        for pair in zip(
            here[here != overlapped_seconds].tolist(),
            overlapped_seconds[here != overlapped_seconds].tolist(),
            strict=True,
        ):
            sides[pair] += 1
            sides[pair[::-1]] += 1
    return sides


@pytest.mark.parametrize("node", [[1, 0, 1, 0, 1, 0, 0, 1], [0, 0, 0, 0, 1, 1, 1, 1], [0] * 8])
def test_equation_14_of_figure_9(node):
    """All messages are concurrent. A2 gives one sum per channel, and A3 selects the longest."""
    stage = defaultdict(list)
    for (src, dst), cells in neighbours(read_rectangles(FIGURE_9)).items():
        stage[NETWORK if node[src] != node[dst] else MEMORY].append(cells)
    wanted = cost(add_terms(stage[longest(stage)]), longest(stage))
    pattern = build_schedule(
        point(f"wave2d:partition={FIGURE_9}", "paper", ranks=8, bytes=1)
    ).place(node)
    assert costs(find_family("taulop"), pattern, LETTER, drawn=False)[0] == pytest.approx(
        wanted, rel=1e-12
    )
