"""Multicast over a topology: a node that has the message sends it to each of its children in turn."""

from commodel.algorithms import TreeAlgorithm
from commodel.phases import sequence
from commodel.rounds import down_tree
from commodel.schedule import Schedule
from commodel.tree import Tree


def build(tree: Tree, bytes: int) -> Schedule:
    return sequence(tree.nodes, down_tree(tree, bytes))


ALGORITHM = TreeAlgorithm("bcast", "every node sends to its children in turn", build)
