"""Rabenseifner: reduce-scatter by recursive halving of the vector between partners at distance 1, 2, 4, …, then gather
the same way back. Ranks beyond a power of two share the combining with a neighbour first, as in Open MPI."""

from commodel.patterns.algorithms import RANK_ORDER, Algorithm
from commodel.patterns.phases import sequence
from commodel.patterns.rounds import Core, halves
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    core = Core(ranks, odd=False, mirrored=True)
    ends = halves(bytes, core.rounds)
    return sequence(ranks, *core.fold_halves(bytes), core.halve(ends), core.collect(ends), root=0)


ALGORITHM = Algorithm("reduce", "rabenseifner", "recursive halving, then binomial gather", build, order=RANK_ORDER)
