"""H edges in a row; one leaf."""

import numpy as np

from commodel.patterns.arguments import whole_number
from commodel.patterns.trees.topologies import Topology
from commodel.patterns.trees.tree import Tree, check_size


def build(text: str) -> Tree:
    height = whole_number(text, "chain:HEIGHT")
    check_size(height + 1)
    return Tree(np.arange(-1, height))


TOPOLOGY = Topology(name="chain", form="chain:HEIGHT", title="every node has one child", build=build)
