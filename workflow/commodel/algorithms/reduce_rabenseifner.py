"""Rabenseifner: reduce-scatter by recursive halving, then gather of the shares up a binomial tree."""

from commodel.algorithms import ANY_ORDER, Algorithm
from commodel.phases import sequence
from commodel.rounds import Core, shares
from commodel.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    core = Core(ranks)
    ends = shares(bytes, len(core.rank))
    return sequence(ranks, core.fold(0, bytes, combines=True), core.halve(ends), core.collect(ends), root=0)


ALGORITHM = Algorithm("reduce", "rabenseifner", "recursive halving, then binomial gather", build, order=ANY_ORDER)
