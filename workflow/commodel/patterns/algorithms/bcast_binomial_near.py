"""Binomial tree, nearest first, as Open MPI's binomial: in round s every rank below 2^s sends to the rank 2^s further
on. With a segment size the message is cut, and each segment goes down the whole tree behind the one before it."""

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import sequence
from commodel.patterns.rounds import near_first, segment_by_segment
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    return sequence(ranks, segment_by_segment(near_first(ranks), bytes, argument))


ALGORITHM = Algorithm("bcast", "binomial-near", "binomial tree, nearest rank first", build, argument="[SEGMENT BYTES]")
