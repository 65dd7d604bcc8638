"""Exchange of the sides of rectangles between neighbours."""

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import join_stages, make_phase
from commodel.patterns.schedule import Schedule
from commodel_kernels.rectangles import find_neighbours
from commodel_kernels.wave2d import find_message_starts, make_cell_rectangles


def wave(ranks: int, bytes: int, n: int, grid: tuple[int, ...], partition: str) -> Schedule:
    """Return the exchange of all sides at once, as in the τ–Lop paper.

    Every rank posts a receive and a send for each neighbour, and waits for all of them.
    """
    parts = make_cell_rectangles(ranks, n, grid, partition)
    shared = find_neighbours(parts)
    sent = shared.src, shared.dst, shared.length * bytes
    return join_stages(
        ranks, make_phase(0, *sent, lambda: find_message_starts(parts, shared) * bytes)
    )


ALGORITHM = Algorithm("wave2d", "paper", "all sides at once", wave)
