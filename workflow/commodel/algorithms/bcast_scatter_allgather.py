"""Scatter down a binomial tree, then allgather by recursive doubling: van de Geijn's broadcast of long messages."""

from commodel.algorithms import Algorithm
from commodel.phases import sequence
from commodel.rounds import Core, scatter, shares
from commodel.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    ends, core = shares(bytes, ranks), Core(ranks)
    return sequence(ranks, scatter(ends), *core.allgather(ends))


ALGORITHM = Algorithm("bcast", "scatter-allgather", "binomial scatter, then allgather by recursive doubling", build)
