"""The root sends each rank its block, one after the other."""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import phase, sequence
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    target = np.arange(1, ranks)
    return sequence(ranks, phase(0, 0, target, bytes, lambda: target * bytes))


ALGORITHM = Algorithm("scatter", "linear", "root sends to every rank in turn", build)
