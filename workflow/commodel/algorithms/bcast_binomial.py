"""Binomial tree, farthest first as MPI libraries do: the root sends to P/2, then P/4, …"""

import numpy as np

from commodel.algorithms import Algorithm
from commodel.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    rounds = (ranks - 1).bit_length()
    steps, sources, targets = [], [], []
    for step in range(rounds):
        distance = 1 << (rounds - 1 - step)
        source = np.arange(0, ranks - distance, 2 * distance)
        steps.append(np.full(len(source), step))
        sources.append(source)
        targets.append(source + distance)
    if not rounds:
        return Schedule.of(ranks, [], [], np.empty(0, dtype=int), bytes)
    return Schedule.of(ranks, np.concatenate(steps), np.concatenate(sources), np.concatenate(targets), bytes)


ALGORITHM = Algorithm("bcast", "binomial", "binomial tree, farthest rank first", build)
