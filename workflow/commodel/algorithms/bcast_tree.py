"""Multicast over a topology: a node that has the message sends it to each of its children in turn."""

import numpy as np

from commodel.algorithms import TreeAlgorithm
from commodel.schedule import Schedule
from commodel.tree import Tree


def build(tree: Tree, bytes: int) -> Schedule:
    node = np.arange(1, tree.nodes)
    return Schedule.of(tree.nodes, tree.depth[node] - 1, tree.parent[node], node, bytes)


ALGORITHM = TreeAlgorithm("bcast", "every node sends to its children in turn", build)
