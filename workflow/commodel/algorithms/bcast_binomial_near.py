"""Binomial tree, nearest first: in round s every rank below 2^s sends to the rank 2^s further on."""

import numpy as np

from commodel.algorithms import Algorithm
from commodel.phases import phase, sequence
from commodel.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    target = np.arange(1, ranks)
    step = np.frexp(target)[1] - 1  # the highest set bit: the round in which a rank is reached
    return sequence(ranks, phase(step, target - (1 << step), target, bytes))


ALGORITHM = Algorithm("bcast", "binomial-near", "binomial tree, nearest rank first", build)
