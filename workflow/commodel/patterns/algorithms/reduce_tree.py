"""Reduction over a topology: a node waits for all its children, combines, and sends one message to its parent."""

from commodel.patterns.algorithms import ANY_ORDER, TreeAlgorithm
from commodel.patterns.phases import sequence
from commodel.patterns.rounds import up_tree
from commodel.patterns.schedule import Schedule
from commodel.patterns.trees.tree import Tree


def build(tree: Tree, bytes: int) -> Schedule:
    return sequence(tree.nodes, up_tree(tree, bytes, combines=True), root=0)


ALGORITHM = TreeAlgorithm(
    "reduce", "every node waits for its children, combines, sends to its parent", build, order=ANY_ORDER
)
