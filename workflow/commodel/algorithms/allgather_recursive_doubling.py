"""Recursive doubling: partners at distance 1, 2, 4, … give each other all blocks they have. Ranks beyond a power of two
hand their block to a neighbour first and get all from it at the end."""

from commodel.algorithms import Algorithm
from commodel.phases import sequence
from commodel.rounds import Core, equal
from commodel.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    return sequence(ranks, *Core(ranks).allgather(equal(bytes, ranks)))


ALGORITHM = Algorithm("allgather", "recursive-doubling", "partners at distance 1, 2, 4, … give all they have", build)
