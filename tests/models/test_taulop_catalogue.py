"""τ–Lop's price of broadcasts over shared memory and InfiniBand against an obvious loop over a table's rows. As an
independent implementation reads them (`shared: node`): in each step the largest over channel and destination node of a
message at that concurrency; sends of one rank add up."""

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import product

import pytest

from commodel.interchange.taulop import read
from commodel.models.families import family
from commodel.patterns.build import schedule
from commodel.patterns.layouts import place
from tests.models.synthetic import costs
from tests.patterns.catalogue import point

SIZES = (1, 64, 1024, 65536)
SHM = {size: (4e-7, *(level * (2e-7 + size * 1.5e-10) * 0.9 for level in range(1, 9))) for size in SIZES}
IB = {size: (1.8e-6, *((0.7 + 0.3 * level) * (9e-7 + size * 3.1e-10) for level in range(1, 9))) for size in SIZES}


@pytest.fixture
def parameters(tmp_path):
    for name, rows in (("SHM", SHM), ("IB", IB)):
        lines = [" ".join(map(repr, (size, *numbers))) for size, numbers in rows.items()]
        (tmp_path / f"{name}.txt").write_text("# m o L(1) …\n" + "\n".join(lines) + "\n")
    return replace(read(tmp_path), settings={"shared": "node"})


def between(rows, size, level):
    """Overhead and transfer time at a size between two rows, at a level; beyond the last level in proportion."""
    low = max(known for known in SIZES if known <= size)
    high = min((known for known in SIZES if known > low), default=low)
    share = (size - low) / (high - low) if high > low else 0.0
    column = min(level, 8)
    transfer = rows[low][column] + share * (rows[high][column] - rows[low][column])
    overhead = rows[low][0] + share * (rows[high][0] - rows[low][0])
    return overhead, transfer * max(level / 8, 1)


def by_hand(messages, node, size):
    """`messages`: by step, the (source, target) of each, in order."""
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
def test_broadcast(parameters, layout, algorithm):
    for ranks, size in product([8, 16, 32, 64], [1, 40, 1024, 30000, 65536]):
        messages = far_first(ranks) if algorithm == "binomial" else [[(0, rank) for rank in range(1, ranks)]]
        pattern = schedule(point("bcast", algorithm, ranks=ranks, bytes=size, layout=layout))
        (seconds,) = costs(family("taulop"), pattern, parameters, drawn=False)
        assert seconds == pytest.approx(by_hand(messages, place(layout, ranks), size), rel=1e-12), (ranks, size)
