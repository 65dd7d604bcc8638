"""Binomial tree, farthest first as MPI libraries do: the root sends to P/2, then P/4, … With a segment size the message
is cut, and each segment goes down the whole tree behind the one before it."""

import numpy as np

from commodel.algorithms import Algorithm
from commodel.phases import segmented, sequence
from commodel.rounds import knomial, whole
from commodel.schedule import Schedule
from commodel.segments import segment_sizes


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    edges = knomial(ranks)
    sizes = segment_sizes(bytes, argument) if argument else np.array([bytes])
    return sequence(ranks, segmented(whole(edges, bytes), sizes, apart=edges.rounds))


ALGORITHM = Algorithm("bcast", "binomial", "binomial tree, farthest rank first", build, argument="[SEGMENT BYTES]")
