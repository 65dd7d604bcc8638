"""Scatter down a binomial tree, then allgather by recursive doubling: van de Geijn's broadcast of long messages. Blocks
are rounded up, so that the last ones are short or empty."""

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import sequence
from commodel.patterns.rounds import doubling, rounded_up, scatter_tree
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    ends = rounded_up(bytes, ranks)
    return sequence(ranks, scatter_tree(ends), doubling(ends))


ALGORITHM = Algorithm("bcast", "scatter-allgather", "binomial scatter, then allgather by recursive doubling", build)
