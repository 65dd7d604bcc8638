"""Binomial tree: blocks are joined on the way, so that a message carries its sender's whole subtree."""

import numpy as np

from commodel.algorithms import Algorithm
from commodel.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    source = np.arange(1, ranks)
    distance = source & -source  # the lowest set bit: how far a rank sends, and how many ranks its subtree could hold
    step = np.frexp(distance)[1] - 1
    return Schedule.of(ranks, step, source, source - distance, np.minimum(distance, ranks - source) * bytes, root=0)


ALGORITHM = Algorithm("gather", "binomial", "binomial tree, blocks joined on the way", build)
