"""Rabenseifner: reduce-scatter by recursive halving, then allgather by recursive doubling."""

from commodel.algorithms import ANY_ORDER, Algorithm
from commodel.phases import sequence
from commodel.rounds import Core, shares
from commodel.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    core = Core(ranks)
    ends = shares(bytes, len(core.rank))
    folded = core.fold(0, bytes, combines=True)
    return sequence(ranks, folded, core.halve(ends), core.double(ends), core.unfold(0, bytes))


ALGORITHM = Algorithm("allreduce", "rabenseifner", "recursive halving, then recursive doubling", build, order=ANY_ORDER)
