"""Binomial tree, nearest first, as Open MPI's binomial: in round s every rank below 2^s sends to the rank 2^s further
on. With a segment size the message is cut, and each segment goes down the whole tree behind the one before it."""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import segmented, sequence
from commodel.patterns.rounds import near_first, whole
from commodel.patterns.schedule import Schedule
from commodel.patterns.segments import segment_sizes


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    edges = near_first(ranks)
    sizes = segment_sizes(bytes, argument) if argument else np.array([bytes])
    return sequence(ranks, segmented(whole(edges, bytes), sizes, apart=edges.rounds))


ALGORITHM = Algorithm("bcast", "binomial-near", "binomial tree, nearest rank first", build, argument="[SEGMENT BYTES]")
