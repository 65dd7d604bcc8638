"""One face after the other: in every step all ranks send the same way, and receive from the other side."""

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.grids import faces
from commodel.patterns.phases import phase, sequence
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str, grid: tuple[int, ...], periodic: bool) -> Schedule:
    sent = faces(grid, periodic)
    return sequence(ranks, phase(sent.face, sent.src, sent.dst, bytes, lambda: sent.address(bytes)))


ALGORITHM = Algorithm("halo", "shift", "one face after the other, as MPI_Sendrecv shifts them", build)
