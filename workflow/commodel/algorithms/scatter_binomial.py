"""Binomial tree, farthest first: a message carries the blocks of its receiver's whole subtree."""

from commodel.algorithms import Algorithm
from commodel.phases import sequence
from commodel.rounds import equal, scatter
from commodel.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    return sequence(ranks, scatter(equal(bytes, ranks)))


ALGORITHM = Algorithm("scatter", "binomial", "binomial tree, blocks parted on the way", build)
