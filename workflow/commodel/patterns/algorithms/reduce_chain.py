"""Pipelined chain: segments follow each other up a row of ranks, each of which adds its own. Open MPI calls it
pipeline; its chain has several such rows."""

import numpy as np

from commodel.patterns.algorithms import RANK_ORDER, Algorithm
from commodel.patterns.phases import PIPELINED, phase, segment_sizes, segmented, sequence
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    hop = np.arange(ranks - 1)
    row = phase(hop, ranks - 1 - hop, ranks - 2 - hop, bytes, combines=True)
    return sequence(ranks, segmented(row, segment_sizes(bytes, argument)), root=0)


ALGORITHM = Algorithm(
    "reduce", "chain", "segments follow each other up a row of ranks", build, argument=PIPELINED, order=RANK_ORDER
)
