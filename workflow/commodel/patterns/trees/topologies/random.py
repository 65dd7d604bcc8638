"""The uniform random recursive tree of N nodes: each node hangs under one of those before it, any as likely as another.
The same seed gives the same tree."""

import numpy as np

from commodel.patterns.arguments import with_seed
from commodel.patterns.trees.topologies import Topology
from commodel.patterns.trees.tree import Tree, check_size

FORM = "random:NODES@SEED"


def build(text: str) -> Tree:
    nodes, seed = with_seed(text, FORM)
    check_size(nodes)
    numbers = np.random.Generator(np.random.PCG64(seed))
    return Tree(np.concatenate([[-1], numbers.integers(0, np.arange(1, nodes))]))


TOPOLOGY = Topology(name="random", form=FORM, title="random recursive tree", build=build)
