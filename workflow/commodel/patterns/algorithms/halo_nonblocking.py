"""All faces at once: every rank posts a receive and a send for each neighbour, and waits for all of them."""

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.grids import faces
from commodel.patterns.phases import phase, sequence
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str, grid: tuple[int, ...], periodic: bool) -> Schedule:
    sent = faces(grid, periodic)
    return sequence(ranks, phase(0, sent.src, sent.dst, bytes, lambda: sent.address(bytes)))


ALGORITHM = Algorithm("halo", "nonblocking", "all faces at once", build)
