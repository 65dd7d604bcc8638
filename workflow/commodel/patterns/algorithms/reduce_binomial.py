"""Binomial tree, nearest first: partial results cover rows of ranks."""

from commodel.patterns.algorithms import RANK_ORDER, Algorithm
from commodel.patterns.phases import sequence
from commodel.patterns.rounds import knomial, up
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    return sequence(ranks, up(knomial(ranks), bytes), root=0)


ALGORITHM = Algorithm("reduce", "binomial", "binomial tree, nearest rank first", build, order=RANK_ORDER)
