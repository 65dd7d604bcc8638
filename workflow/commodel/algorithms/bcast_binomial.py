"""Binomial tree, farthest first as MPI libraries do: the root sends to P/2, then P/4, … With a segment size the message
is cut, and each segment goes down the whole tree behind the one before it."""

import numpy as np

from commodel.algorithms import Algorithm
from commodel.schedule import Schedule
from commodel.segments import segment_sizes


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    sizes = segment_sizes(bytes, argument) if argument else np.array([bytes])
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
    step, source, target = (np.concatenate(column) for column in (steps, sources, targets))
    segment, row = np.divmod(np.arange(len(sizes) * len(step)), len(step))
    return Schedule.of(ranks, segment * rounds + step[row], source[row], target[row], sizes[segment])


ALGORITHM = Algorithm("bcast", "binomial", "binomial tree, farthest rank first", build, argument="[SEGMENT BYTES]")
