"""Pipelined chain: the message is cut into segments that follow each other down a row of ranks. Open MPI calls it
pipeline; its chain has several such rows."""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import PIPELINED, phase, segment_sizes, segmented, sequence
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    hop = np.arange(ranks - 1)
    return sequence(ranks, segmented(phase(hop, hop, hop + 1, bytes), segment_sizes(bytes, argument)))


ALGORITHM = Algorithm("bcast", "chain", "segments follow each other down a row of ranks", build, argument=PIPELINED)
