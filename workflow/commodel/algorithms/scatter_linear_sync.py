"""Linear with synchronisation: the root sends the next block when it knows that the last one has arrived."""

from commodel.algorithms import Algorithm
from commodel.algorithms.scatter_windowed import build as windowed
from commodel.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    return windowed(ranks, bytes, "1")


ALGORITHM = Algorithm("scatter", "linear-sync", "the next block when the last has been acknowledged", build)
