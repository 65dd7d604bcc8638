"""Barrier over a topology: signals go up to the root and down again."""

from commodel.patterns.algorithms import TreeAlgorithm
from commodel.patterns.phases import sequence
from commodel.patterns.rounds import down_tree, up_tree
from commodel.patterns.schedule import Schedule
from commodel.patterns.trees.tree import Tree


def build(tree: Tree, bytes: int) -> Schedule:
    return sequence(tree.nodes, up_tree(tree, 0), down_tree(tree, 0))


ALGORITHM = TreeAlgorithm("barrier", "signals go up to the root and down again", build)
