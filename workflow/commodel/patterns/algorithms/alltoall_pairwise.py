"""Pairwise: in step i every rank sends to the rank i further on and receives from the rank i before."""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import sequence
from commodel.patterns.rounds import pairwise
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    return sequence(ranks, pairwise(np.full(ranks, bytes), lambda source, target: (source * ranks + target) * bytes))


ALGORITHM = Algorithm("alltoall", "pairwise", "step i: to the rank i further on", build)
