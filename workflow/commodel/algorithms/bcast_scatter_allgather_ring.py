"""Scatter down a binomial tree, then allgather around the ring."""

from commodel.algorithms import Algorithm
from commodel.phases import sequence
from commodel.rounds import ring, scatter, shares
from commodel.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    ends = shares(bytes, ranks)
    return sequence(ranks, scatter(ends), ring(ends))


ALGORITHM = Algorithm("bcast", "scatter-allgather-ring", "binomial scatter, then allgather around the ring", build)
