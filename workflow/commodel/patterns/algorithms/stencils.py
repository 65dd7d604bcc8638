"""Exchanges between neighbours: the faces of a grid's cells."""

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.operations.collectives import list_faces
from commodel.patterns.phases import join_stages, make_phase
from commodel.patterns.schedule import Schedule


def nonblocking(ranks: int, bytes: int, grid: tuple[int, ...], periodic: bool) -> Schedule:
    """Return the exchange in which every rank posts a receive and a send for each neighbour, and
    waits for all of them."""
    sent = list_faces(grid, periodic)
    return join_stages(ranks, make_phase(0, sent.src, sent.dst, bytes, lambda: sent.address(bytes)))


def shift(ranks: int, bytes: int, grid: tuple[int, ...], periodic: bool) -> Schedule:
    """Return the exchange in which, in every step, all ranks send in one direction and receive from
    the opposite one."""
    sent = list_faces(grid, periodic)
    return join_stages(
        ranks, make_phase(sent.face, sent.src, sent.dst, bytes, lambda: sent.address(bytes))
    )


ALGORITHM = (
    Algorithm(
        operation="halo", short_name="nonblocking", title="all faces at once", build=nonblocking
    ),
    Algorithm(
        operation="halo",
        short_name="shift",
        title="one face after the other, as MPI_Sendrecv shifts them",
        build=shift,
    ),
)
