"""Recursive halving: partners at distance P/2, P/4, … exchange the half that the other is to keep. Ranks beyond a power
of two hand their vector to a neighbour first and get their share from it at the end."""

from commodel.algorithms import ANY_ORDER, Algorithm
from commodel.phases import sequence
from commodel.rounds import Core, shares
from commodel.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    core, ends = Core(ranks), shares(bytes, ranks)
    odd = 2 * core.pairs + 1
    return sequence(
        ranks,
        core.fold(0, bytes, combines=True),
        core.halve(core.ends(ends)),
        core.unfold(ends[odd], ends[odd + 1] - ends[odd]),
    )


ALGORITHM = Algorithm(
    "reduce-scatter", "recursive-halving", "partners exchange halves of what is left", build, order=ANY_ORDER
)
