"""A rooted tree as an array of parents, and what the papers ask of one: depth, fan-out, leaves."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from commodel.errors import UserError

MAX_NODES = 1 << 21


@dataclass(frozen=True, eq=False)
class Tree:
    """Node 0 is the root and every parent has a smaller number than its children. `names` are those of a file."""

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
        """Edges between a node and the root, by doubling: log2(height) passes."""
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


def by_levels(fanouts: list[int]) -> Tree:
    """Every node of level i has fanouts[i] children, breadth first."""
    parents, level, first = [np.array([-1])], 1, 0
    for fanout in fanouts:
        check_size(first + level + level * fanout)
        parents.append(np.repeat(np.arange(first, first + level), fanout))
        first, level = first + level, level * fanout
    found = Tree(np.concatenate(parents))
    found.__dict__["depth"] = np.repeat(np.arange(len(parents)), [len(column) for column in parents])
    return found


def check_size(nodes: int) -> None:
    if nodes > MAX_NODES:
        raise UserError(f"a tree of {nodes:,} nodes; the limit is {MAX_NODES:,}")


def whole_numbers(text: str, separator: str, form: str) -> list[int]:
    """The positive whole numbers of a topology's arguments, e.g. '4x4'."""
    parts = text.split(separator)
    if not all(part.isascii() and part.isdigit() and int(part[:9]) > 0 and len(part) < 9 for part in parts):
        raise UserError(f"found '{text}', wanted {form}")
    return [int(part) for part in parts]


def one_number(text: str, form: str) -> int:
    numbers = whole_numbers(text, ",", form)
    if len(numbers) != 1:
        raise UserError(f"found '{text}', wanted {form}")
    return numbers[0]


def sized(text: str, form: str) -> tuple[str, int]:
    """What stands before the '@', and the number of nodes after it."""
    before, at, nodes = text.partition("@")
    if not at:
        raise UserError(f"found '{text}', wanted {form}")
    return before, one_number(nodes, form)
