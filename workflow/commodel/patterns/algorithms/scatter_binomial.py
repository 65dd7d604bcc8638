"""Binomial tree, farthest first: a message carries the blocks of its receiver's whole subtree."""

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import sequence
from commodel.patterns.rounds import equal, scatter_tree
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    return sequence(ranks, scatter_tree(equal(bytes, ranks)))


ALGORITHM = Algorithm("scatter", "binomial", "binomial tree, blocks parted on the way", build)
