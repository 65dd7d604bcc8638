"""Everyone sends to the root at once."""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import phase, sequence
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    source = np.arange(1, ranks)
    return sequence(ranks, phase(0, source, 0, bytes, lambda: source * bytes), root=0)


ALGORITHM = Algorithm("gather", "linear", "every rank sends to the root at once", build)
