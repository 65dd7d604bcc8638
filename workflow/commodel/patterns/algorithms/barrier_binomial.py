"""Tree barrier, as Open MPI's `tree`: signals go up a binomial tree to rank 0 and down again."""

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import sequence
from commodel.patterns.rounds import knomial, whole
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    down = whole(knomial(ranks), 0)
    return sequence(ranks, down.backwards(), down)


ALGORITHM = Algorithm("barrier", "binomial", "signals up a binomial tree and down again", build)
