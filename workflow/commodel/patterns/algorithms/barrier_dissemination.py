"""Dissemination barrier: in round s every rank signals the rank 2^s further on, around the ring."""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import phase, sequence
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    step, source = np.divmod(np.arange((ranks - 1).bit_length() * ranks), ranks)
    return sequence(ranks, phase(step, source, (source + (1 << step)) % ranks, 0))


ALGORITHM = Algorithm("barrier", "dissemination", "round s: signal the rank 2^s further on", build)
