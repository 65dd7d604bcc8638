"""The uniform random recursive tree of N nodes: each node hangs under one of those before it, any as likely as another.
The same seed gives the same tree."""

import numpy as np

from commodel.errors import UserError
from commodel.patterns.trees.topologies import Topology
from commodel.patterns.trees.tree import Tree, check_size, one_number
from commodel.units import parse_count

FORM = "random:NODES@SEED"


def build(text: str) -> Tree:
    written, _, seed = text.partition("@")
    nodes = one_number(written, FORM)
    check_size(nodes)
    try:
        start = parse_count(seed, 0, 2**63 - 1)
    except UserError:
        raise UserError(f"found 'random:{text}', wanted {FORM}, a whole number of 0 or more as seed") from None
    numbers = np.random.Generator(np.random.PCG64(start))
    return Tree(np.concatenate([[-1], numbers.integers(0, np.arange(1, nodes))]))


TOPOLOGY = Topology(name="random", form=FORM, title="random recursive tree", build=build)
