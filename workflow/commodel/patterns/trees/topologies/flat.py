"""N leaves under one root: the N-to-1 of the TAN paper."""

from commodel.patterns.arguments import whole_number
from commodel.patterns.trees.topologies import Topology
from commodel.patterns.trees.tree import Tree, by_levels


def build(text: str) -> Tree:
    return by_levels([whole_number(text, "flat:LEAVES")])


TOPOLOGY = Topology(name="flat", form="flat:LEAVES", title="all leaves directly under the root", build=build)
