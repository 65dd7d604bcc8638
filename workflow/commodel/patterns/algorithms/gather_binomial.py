"""Binomial tree: blocks are joined on the way, so that a message carries its sender's whole subtree."""

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import sequence
from commodel.patterns.rounds import equal, scatter_tree
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    return sequence(ranks, scatter_tree(equal(bytes, ranks)).backwards(), root=0)


ALGORITHM = Algorithm("gather", "binomial", "binomial tree, blocks joined on the way", build)
