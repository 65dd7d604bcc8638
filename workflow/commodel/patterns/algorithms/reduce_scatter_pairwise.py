"""Pairwise: in step i every rank sends its part of the share of the rank i further on straight to it."""

import numpy as np

from commodel.patterns.algorithms import ANY_ORDER, Algorithm
from commodel.patterns.phases import sequence
from commodel.patterns.rounds import pairwise, shares
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    ends = shares(bytes, ranks)
    return sequence(ranks, pairwise(np.diff(ends), lambda source, target: ends[target], combines=True))


ALGORITHM = Algorithm("reduce-scatter", "pairwise", "step i: to the rank i further on", build, order=ANY_ORDER)
