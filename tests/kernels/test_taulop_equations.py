"""τ–Lop on kernels: equations 11 and 14 of the paper, for any rectangles."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.models.evaluation.values import Values
from commodel.models.families import complete_values, find_family
from commodel.patterns.build import build_schedule
from commodel.patterns.operations import list_summands
from commodel.predictions.predictions import predict
from commodel_kernels.rectangles import make_even_grid, read_rectangles
from tests.models.synthetic import costs
from tests.models.taulop_terms import parameters, table, transmission
from tests.patterns.catalogue import point

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
