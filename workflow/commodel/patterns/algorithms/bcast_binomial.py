"""Binomial tree, farthest first, as in MPICH and as Open MPI's k-nomial tree of radix 2: the root sends to P/2, then
P/4, … With a segment size the message is cut, and each segment goes down the whole tree behind the one before it."""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import segmented, sequence
from commodel.patterns.rounds import knomial, whole
from commodel.patterns.schedule import Schedule
from commodel.patterns.segments import segment_sizes


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    edges = knomial(ranks)
    sizes = segment_sizes(bytes, argument) if argument else np.array([bytes])
    return sequence(ranks, segmented(whole(edges, bytes), sizes, apart=edges.rounds))


ALGORITHM = Algorithm("bcast", "binomial", "binomial tree, farthest rank first", build, argument="[SEGMENT BYTES]")
