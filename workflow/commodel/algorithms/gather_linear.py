"""Everyone sends to the root at once."""

import numpy as np

from commodel.algorithms import Algorithm
from commodel.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    return Schedule.of(ranks, 0, np.arange(1, ranks), 0, bytes, root=0)


ALGORITHM = Algorithm("gather", "linear", "every rank sends to the root at once", build)
