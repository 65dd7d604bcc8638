"""Recursive doubling: partners at distance 1, 2, 4, … exchange whole vectors. Ranks beyond a power of two hand their
vector to a neighbour first and get the result from it at the end."""

from commodel.patterns.algorithms import RANK_ORDER, Algorithm
from commodel.patterns.phases import sequence
from commodel.patterns.rounds import Core
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    core = Core(ranks)
    return sequence(ranks, core.fold(bytes), core.exchange(bytes), core.unfold(0, bytes))


ALGORITHM = Algorithm(
    "allreduce", "recursive-doubling", "partners at distance 1, 2, 4, … exchange vectors", build, order=RANK_ORDER
)
