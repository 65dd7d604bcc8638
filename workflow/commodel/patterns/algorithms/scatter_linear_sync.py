"""Linear with synchronisation: the root sends the next block when it knows that the last one has arrived."""

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.algorithms.scatter_windowed import build as windowed
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    return windowed(ranks, bytes, "1")


ALGORITHM = Algorithm("scatter", "linear-sync", "the next block when the last has been acknowledged", build)
