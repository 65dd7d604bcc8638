"""Pipelined chain: the message is cut into segments that follow each other down a row of ranks."""

import numpy as np

from commodel.algorithms import Algorithm
from commodel.schedule import Schedule
from commodel.segments import segment_sizes


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    sizes = segment_sizes(bytes, argument)
    segment, hop = np.divmod(np.arange(len(sizes) * (ranks - 1)), max(ranks - 1, 1))
    return Schedule.of(ranks, segment + hop, hop, hop + 1, sizes[segment])


ALGORITHM = Algorithm(
    "bcast", "chain", "segments follow each other down a row of ranks", build, argument="SEGMENT BYTES"
)
