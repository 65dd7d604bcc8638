"""Recursive halving: partners at distance P/2, P/4, … exchange the half that the other is to keep. Ranks beyond a power
of two hand their vector to a neighbour first and get their share from it at the end."""

from commodel.patterns.algorithms import ANY_ORDER, Algorithm
from commodel.patterns.phases import sequence
from commodel.patterns.rounds import Core, shares
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    core, ends = Core(ranks), shares(bytes, ranks)
    outer = core.outer
    handed = core.unfold(ends[outer], ends[outer + 1] - ends[outer])
    return sequence(ranks, core.fold(bytes), core.halve(core.ends(ends)), handed)


ALGORITHM = Algorithm(
    "reduce-scatter", "recursive-halving", "partners exchange halves of what is left", build, order=ANY_ORDER
)
