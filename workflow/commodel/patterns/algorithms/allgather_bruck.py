"""Bruck: in round s every rank sends all blocks it has to the rank 2^s before it, and in the end turns what it has into
the order of the ranks: a copy of everything, which rank 0 is spared."""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import around, every_step, phase, sequence
from commodel.patterns.schedule import Schedule, Work


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    rounds = (ranks - 1).bit_length()
    step, source = every_step(rounds, ranks)
    distance = 1 << step
    length = np.minimum(distance, ranks - distance) * bytes
    turning = Work.copy(rounds - 1, np.arange(1, ranks), ranks * bytes)
    return sequence(
        ranks,
        phase(
            step,
            source,
            (source - distance) % ranks,
            length,
            lambda: around(source * bytes, length, ranks * bytes),
            copies=turning,
        ),
    )


ALGORITHM = Algorithm("allgather", "bruck", "round s: all blocks to the rank 2^s before", build)
