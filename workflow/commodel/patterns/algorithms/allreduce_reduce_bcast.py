"""Reduce, then broadcast, both over the binomial tree."""

from commodel.patterns.algorithms import RANK_ORDER, Algorithm
from commodel.patterns.phases import sequence
from commodel.patterns.rounds import knomial, up, whole
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    edges = knomial(ranks)
    return sequence(ranks, up(edges, bytes), whole(edges, bytes))


ALGORITHM = Algorithm("allreduce", "reduce-bcast", "binomial reduce, then binomial broadcast", build, order=RANK_ORDER)
