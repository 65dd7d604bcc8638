"""The binomial tree B_K: 2^K nodes, half of them leaves; its root has the children B_(K-1), …, B_0."""

import numpy as np

from commodel.errors import UserError
from commodel.topologies import Topology
from commodel.tree import Tree, one_number


def build(text: str) -> Tree:
    order = one_number(text, "binomial:ORDER")
    if order > 24:
        raise UserError(f"found 'binomial:{text}', wanted an order up to 24")
    node = np.arange(1 << order)
    # Clearing the highest set bit gives a parent that is smaller than its child; node 2^i hangs under the root as B_i's
    # mirror image, which is the same tree.
    highest = 1 << (np.frexp(np.maximum(node, 1))[1] - 1)
    parent = node - highest
    parent[0] = -1
    return Tree(parent)


TOPOLOGY = Topology(name="binomial", form="binomial:ORDER", title="binomial tree of 2^ORDER nodes", build=build)
