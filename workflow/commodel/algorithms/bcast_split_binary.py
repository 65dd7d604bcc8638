"""Split binary tree: one half of the message goes down each of two binary trees under the root, in segments; then ranks
of the two trees exchange halves in pairs. A rank that is left over gets its other half from the root."""

import numpy as np

from commodel.algorithms import Algorithm
from commodel.phases import phase, segmented, sequence
from commodel.rounds import below_root, shares, whole
from commodel.schedule import Schedule
from commodel.segments import PIPELINED, segment_sizes


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    _, middle, end = (int(place) for place in shares(bytes, 2))
    left, right = np.arange(1, ranks // 2 + 1), np.arange(ranks // 2 + 1, ranks)
    down = tuple(
        segmented(whole(below_root(members), length), segment_sizes(length, argument), start=start)
        for members, start, length in ((left, 0, middle), (right, middle, end - middle))
    )
    partner = np.append(right, 0)[: len(left)]
    exchange = phase(0, left[: len(right)], right, middle, 0), phase(0, partner, left, end - middle, middle)
    return sequence(ranks, down, exchange)


ALGORITHM = Algorithm(
    "bcast", "split-binary", "a half down each of two binary trees, then halves exchanged", build, argument=PIPELINED
)
