"""Ring: in each of P − 1 steps every rank passes on the block it got last."""

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import sequence
from commodel.patterns.rounds import equal, ring
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    return sequence(ranks, ring(equal(bytes, ranks)))


ALGORITHM = Algorithm("allgather", "ring", "every rank passes on the block it got last", build)
