"""Scatter down a binomial tree, then allgather around the ring. Blocks are rounded up, so that the last ones are short
or empty."""

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import sequence
from commodel.patterns.rounds import ring, rounded_up, scatter_tree
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    ends = rounded_up(bytes, ranks)
    return sequence(ranks, scatter_tree(ends), ring(ends))


ALGORITHM = Algorithm("bcast", "scatter-allgather-ring", "binomial scatter, then allgather around the ring", build)
