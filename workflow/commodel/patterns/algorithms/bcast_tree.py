"""Multicast over a topology: a node that has the message sends it to each of its children in turn."""

from commodel.patterns.algorithms import TreeAlgorithm
from commodel.patterns.phases import sequence
from commodel.patterns.rounds import down_tree
from commodel.patterns.schedule import Schedule
from commodel.patterns.trees.tree import Tree


def build(tree: Tree, bytes: int) -> Schedule:
    return sequence(tree.nodes, down_tree(tree, bytes))


ALGORITHM = TreeAlgorithm("bcast", "every node sends to its children in turn", build)
