"""Barrier over a topology: signals go up to the root and down again."""

from commodel.algorithms import TreeAlgorithm
from commodel.phases import sequence
from commodel.rounds import down_tree, up_tree
from commodel.schedule import Schedule
from commodel.tree import Tree


def build(tree: Tree, bytes: int) -> Schedule:
    return sequence(tree.nodes, up_tree(tree, 0), down_tree(tree, 0))


ALGORITHM = TreeAlgorithm("barrier", "signals go up to the root and down again", build)
