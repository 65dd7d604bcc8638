"""Pairwise: in step i every rank sends to the rank i further on and receives from the rank i before."""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import phase, sequence
from commodel.patterns.schedule import Schedule, check_rows


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    check_rows(ranks * (ranks - 1))
    step, source = np.divmod(np.arange((ranks - 1) * ranks), ranks)
    target = (source + step + 1) % ranks
    return sequence(ranks, phase(step, source, target, bytes, lambda: (source * ranks + target) * bytes))


ALGORITHM = Algorithm("alltoall", "pairwise", "step i: to the rank i further on", build)
