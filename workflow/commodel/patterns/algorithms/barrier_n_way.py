"""n-way dissemination barrier of the LoP paper: in a round every rank signals N others, at distances d, 2d, … N·d
around the ring; d is N + 1 times as large in the next round."""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.arguments import whole_number
from commodel.patterns.phases import phase, sequence
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    others = whole_number(argument) if argument else 2
    rounds, distance = [], 1
    while distance < ranks:
        far = distance * np.arange(1, min(others, (ranks - 1) // distance) + 1)
        source = np.repeat(np.arange(ranks), len(far))
        rounds.append(phase(0, source, (source + np.tile(far, ranks)) % ranks, 0))
        distance *= others + 1
    return sequence(ranks, *rounds)


ALGORITHM = Algorithm("barrier", "n-way", "dissemination, N signals a round", build, argument="[N, else 2]")
