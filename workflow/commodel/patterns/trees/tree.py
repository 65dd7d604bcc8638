"""A rooted tree as an array of parents (`Tree`), with depth, fan-out and leaves."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from commodel.errors import UserError

MAX_NODES = 1 << 21


@dataclass(frozen=True, eq=False)
class Tree:
    """A rooted tree. Node 0 is the root, and every parent has a smaller number than its children.
    `names` come from a file."""

    parent: np.ndarray  # parent[0] == -1
    names: tuple[str, ...] = ()

    @property
    def nodes(self) -> int:
        return len(self.parent)

    @cached_property
    def fanout(self) -> np.ndarray:
        return np.bincount(self.parent[1:], minlength=self.nodes)

    @cached_property
    def depth(self) -> np.ndarray:
        """Edges between each node and the root, by doubling: log2(height) passes."""
        ancestor = np.maximum(self.parent, 0)
        depth = (self.parent >= 0).astype(int)
        while np.any(ancestor):
            depth = depth + depth[ancestor]
            ancestor = ancestor[ancestor]
        return depth

    @property
    def height(self) -> int:
        return int(self.depth.max())

    @property
    def leaves(self) -> int:
        return int(np.count_nonzero(self.fanout == 0)) if self.nodes > 1 else 0


def place_on_hosts(tree: Tree, hosts: Iterable[str]) -> Tree:
    """Return the tree with node i on host i; a repeated host gets further processes, `host:1`,
    `host:2`, …."""
    processes: Counter[str] = Counter()
    names = []
    for host in hosts:
        names.append(f"{host}:{processes[host]}")
        processes[host] += 1
    return replace(tree, names=tuple(names[: tree.nodes]))


def make_tree_by_levels(fanouts: list[int]) -> Tree:
    """Return the tree in which every node of level i has fanouts[i] children, breadth first."""
    parents = [np.array([-1])]
    level_nodes = 1
    first = 0
    for fanout in fanouts:
        check_size(first + level_nodes + level_nodes * fanout)
        parents.append(np.repeat(np.arange(first, first + level_nodes), fanout))
        first = first + level_nodes
        level_nodes = level_nodes * fanout
    return Tree(np.concatenate(parents))


def check_size(nodes: int) -> None:
    if nodes > MAX_NODES:
        raise UserError(f"a tree of {nodes:,} nodes; the limit is {MAX_NODES:,}")
