"""The k-nomial tree of N nodes: in every round each node that has the message gives it to K - 1 more."""

import numpy as np

from commodel.patterns.arguments import before_nodes, whole_number
from commodel.patterns.trees.topologies import Topology
from commodel.patterns.trees.tree import Tree, check_size

FORM = "knomial:K@NODES"


def knomial(base: int, nodes: int) -> Tree:
    """A parent is its child's number without its first digit to the base K, so it is smaller. The larger a child, the
    smaller its subtree: in their order the deepest comes first."""
    check_size(nodes)
    node = np.arange(nodes)
    first = np.ones(nodes, dtype=int)  # the power of K of the first digit
    while (higher := first * base <= node).any():
        first[higher] *= base
    parent = node % first
    parent[0] = -1
    return Tree(parent)


def build(text: str) -> Tree:
    base, nodes = before_nodes(text, FORM)
    return knomial(whole_number(base, f"{FORM} with a whole number K of 2 or more", least=2), nodes)


TOPOLOGY = Topology(name="knomial", form=FORM, title="k-nomial tree; K = 2 is the binomial one", build=build)
