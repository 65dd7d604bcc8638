"""Everyone sends to the root at once, which combines."""

import numpy as np

from commodel.patterns.algorithms import RANK_ORDER, Algorithm
from commodel.patterns.phases import phase, sequence
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    return sequence(ranks, phase(0, np.arange(1, ranks), 0, bytes, combines=True), root=0)


ALGORITHM = Algorithm("reduce", "linear", "every rank sends to the root at once", build, order=RANK_ORDER)
