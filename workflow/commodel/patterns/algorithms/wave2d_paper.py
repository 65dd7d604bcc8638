"""All sides at once, as the τ–Lop paper has them: every rank posts a receive and a send for each neighbour, and waits
for all of them."""

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.operations import Grid
from commodel.patterns.operations.wave2d import addresses, cells
from commodel.patterns.phases import phase, sequence
from commodel.patterns.rectangles import touching
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str, n: int, grid: Grid, partition: str) -> Schedule:
    parts = cells(ranks, n, grid, partition)
    shared = touching(parts)
    sent = shared.src, shared.dst, shared.length * bytes
    return sequence(ranks, phase(0, *sent, lambda: addresses(parts, shared) * bytes))


ALGORITHM = Algorithm("wave2d", "paper", "all sides at once", build)
