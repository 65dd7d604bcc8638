"""Ring: P − 1 steps of reduce-scatter, then P − 1 of allgather, one P-th of the vector at a time. With a segment size
each such share is cut, and the reduce-scatter goes round once for every segment, as Open MPI's segmented ring does."""

import numpy as np

from commodel.algorithms import ANY_ORDER, Algorithm
from commodel.phases import sequence
from commodel.rounds import ring, shares
from commodel.schedule import Schedule
from commodel.segments import segment_sizes


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    ends = shares(bytes, ranks)
    longest = int(np.diff(ends).max())
    segments = segment_sizes(longest, argument) if argument else np.array([longest])
    starts = np.cumsum(segments) - segments
    rounds = [ring(ends, combines=True, part=(start, length)) for start, length in zip(starts, segments, strict=True)]
    return sequence(ranks, *rounds, ring(ends, ahead=1))


ALGORITHM = Algorithm(
    "allreduce",
    "ring",
    "reduce-scatter, then allgather, around the ring",
    build,
    argument="[SEGMENT BYTES]",
    order=ANY_ORDER,
)
