"""The root sends to everyone, one after the other."""

import numpy as np

from commodel.algorithms import Algorithm
from commodel.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    return Schedule.of(ranks, 0, 0, np.arange(1, ranks), bytes)


ALGORITHM = Algorithm("bcast", "linear", "root sends to every rank in turn", build)
