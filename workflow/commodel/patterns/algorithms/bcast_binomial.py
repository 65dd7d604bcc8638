"""Binomial tree, farthest first, as in MPICH and as Open MPI's k-nomial tree of radix 2: the root sends to P/2, then
P/4, … With a segment size the message is cut, and each segment goes down the whole tree behind the one before it."""

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import sequence
from commodel.patterns.rounds import knomial, segment_by_segment
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    return sequence(ranks, segment_by_segment(knomial(ranks), bytes, argument))


ALGORITHM = Algorithm("bcast", "binomial", "binomial tree, farthest rank first", build, argument="[SEGMENT BYTES]")
