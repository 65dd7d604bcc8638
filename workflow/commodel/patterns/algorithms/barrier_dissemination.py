"""Dissemination barrier: in round s every rank signals the rank 2^s further on, around the ring."""

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import sequence
from commodel.patterns.rounds import dissemination
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    return sequence(ranks, dissemination(ranks, 0))


ALGORITHM = Algorithm("barrier", "dissemination", "round s: signal the rank 2^s further on", build)
