"""Linear barrier: everyone tells rank 0, then rank 0 tells everyone: the n:1 and 1:n of the LoP paper, one after the
other."""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import phase, sequence
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    others = np.arange(1, ranks)
    return sequence(ranks, phase(0, others, 0, 0), phase(0, 0, others, 0))


ALGORITHM = Algorithm("barrier", "linear", "everyone tells rank 0, rank 0 tells everyone", build)
