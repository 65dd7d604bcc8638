"""Dissemination barrier: in round s every rank signals the rank 2^s further on, around the ring."""

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import every_step, phase, sequence
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    step, source = every_step((ranks - 1).bit_length(), ranks)
    return sequence(ranks, phase(step, source, (source + (1 << step)) % ranks, 0))


ALGORITHM = Algorithm("barrier", "dissemination", "round s: signal the rank 2^s further on", build)
