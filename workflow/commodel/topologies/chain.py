"""H edges in a row; one leaf."""

from commodel.topologies import Topology
from commodel.tree import Tree, by_levels, check_size, one_number


def build(text: str) -> Tree:
    height = one_number(text, "chain:HEIGHT")
    check_size(height)
    return by_levels([1] * height)


TOPOLOGY = Topology(name="chain", form="chain:HEIGHT", title="every node has one child", build=build)
