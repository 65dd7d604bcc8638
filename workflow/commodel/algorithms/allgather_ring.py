"""Ring: in each of P-1 steps every rank passes on the block it got last."""

import numpy as np

from commodel.algorithms import Algorithm
from commodel.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    step, source = np.divmod(np.arange((ranks - 1) * ranks), ranks)
    return Schedule.of(ranks, step, source, (source + 1) % ranks, bytes)


ALGORITHM = Algorithm("allgather", "ring", "every rank passes on the block it got last", build)
