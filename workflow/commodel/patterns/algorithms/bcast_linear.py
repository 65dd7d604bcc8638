"""The root sends to everyone, one after the other."""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import phase, sequence
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    return sequence(ranks, phase(0, 0, np.arange(1, ranks), bytes))


ALGORITHM = Algorithm("bcast", "linear", "root sends to every rank in turn", build)
