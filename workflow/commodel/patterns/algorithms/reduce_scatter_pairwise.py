"""Pairwise: in step i every rank sends its part of the share of the rank i further on straight to it."""

import numpy as np

from commodel.patterns.algorithms import ANY_ORDER, Algorithm
from commodel.patterns.phases import every_step, phase, sequence
from commodel.patterns.rounds import shares
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    ends = shares(bytes, ranks)
    step, source = every_step(ranks - 1, ranks)
    target = (source + step + 1) % ranks
    return sequence(ranks, phase(step, source, target, np.diff(ends)[target], lambda: ends[target], combines=True))


ALGORITHM = Algorithm("reduce-scatter", "pairwise", "step i: to the rank i further on", build, order=ANY_ORDER)
