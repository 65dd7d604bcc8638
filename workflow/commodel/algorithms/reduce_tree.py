"""Reduction over a topology: a node waits for all its children, combines, and sends one message to its parent."""

import numpy as np

from commodel.algorithms import TreeAlgorithm
from commodel.schedule import Schedule, Work
from commodel.tree import Tree


def build(tree: Tree, bytes: int) -> Schedule:
    # A node takes all its children in one step, the deeper the earlier, so it can combine them in order of arrival.
    node = np.arange(1, tree.nodes)
    step = tree.height - tree.depth
    inner = np.flatnonzero(tree.fanout)
    work = Work.reduce(step[inner] - 1, inner, tree.fanout[inner] * bytes)
    return Schedule.of(tree.nodes, step[node], node, tree.parent[node], bytes, work=work, root=0)


ALGORITHM = TreeAlgorithm("reduce", "every node waits for its children, combines, sends to its parent", build)
