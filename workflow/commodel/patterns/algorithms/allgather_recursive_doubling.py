"""Recursive doubling: partners at distance 1, 2, 4, … give each other all blocks they have. Works for powers of two;
any other number of ranks takes Bruck's algorithm, as in Open MPI."""

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.algorithms.allgather_bruck import build as bruck
from commodel.patterns.phases import sequence
from commodel.patterns.rounds import Core, equal
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    if ranks & (ranks - 1):
        return bruck(ranks, bytes, argument)
    return sequence(ranks, Core(ranks).double(equal(bytes, ranks)))


ALGORITHM = Algorithm("allgather", "recursive-doubling", "partners at distance 1, 2, 4, … give all they have", build)
