"""The levels of a network: nested groups of nodes, innermost first, such as leaf switches in groups
of a dragonfly (`Hierarchy`).

The distance class of two nodes is 0 for the same node, 1 for different nodes of one innermost
group, 2 for different innermost groups in one group of the next level, and so on; the last class
has all other pairs. A class has the name of the smallest group that contains both nodes: `node`,
`leaf`, …, `beyond`. Its description names the largest group that differs: "different leaf groups".
Levels of time are another concept (`patterns/rank_local_steps.py`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from commodel.errors import UserError
from commodel.units import MAX_COUNT, parse_count, show_value

NODE, BEYOND = "node", "beyond"  # the classes that are not named after a level
HOST = "host"  # level of nodes with sockets, each of which then counts as a node
RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
NAME = re.compile(r"[a-z][a-z0-9-]{0,20}")
MAX_LEVELS = 8  # levels
MAX_SOCKETS = 64  # of a node


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The groups of a network: `groups[level][node]` is the number of a node's group. Without
    levels there are two distance classes."""

    groups: Mapping[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(cls, levels: object) -> "Hierarchy":
        """Return the hierarchy of levels that have a group number for every node, as in parameter
        sets and plans."""
        return cls(_check_nesting(_parse_groups(levels)))

    @classmethod
    def written(cls, levels: object, nodes: int, hosts: Sequence[str] = ()) -> "Hierarchy":
        """Return the hierarchy of the levels in a platform file.

        Each level has the number of nodes in a group, or a list of its groups: ranges of node
        numbers (`0-15`) or patterns of host names (`rack1-*`).
        """
        if not isinstance(levels, Mapping):
            raise UserError(
                f"found {show_value(levels)}, wanted a mapping such as {{leaf: 16, group: 64}}"
            )
        return cls.of(
            {name: _parse_level(name, text, nodes, hosts) for name, text in levels.items()}
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the distance classes, the nearest first."""
        return (NODE, *self.groups, BEYOND)

    def crossed(self, distance: int) -> str:
        """Return the description of a distance class: the largest group that differs between the
        two nodes."""
        has_sockets = HOST in self.groups
        if distance < 2:
            of_node = "socket" if has_sockets else "node"
            return f"different {of_node}s" if distance else f"same {of_node}"
        level = list(self.groups)[distance - 2]
        if level == HOST:
            return "different nodes"
        return f"different {level} groups" if level != "group" else "different groups"

    def levels_crossed(self, node: np.ndarray) -> str:
        """Return the names of the distance classes up to that of the farthest ranks, such as
        node/leaf; empty without levels."""
        return "/".join(self.names[: max(self.classes(node), default=0) + 1]) if self.groups else ""

    @property
    def nodes(self) -> int | None:
        """The number of nodes; None without levels, which hold for any number."""
        return len(next(iter(self.groups.values()))) if self.groups else None

    @property
    def group_lists(self) -> dict[str, list[int]]:
        """The groups by level as lists, as parameter sets and plans store them."""
        return {name: column.tolist() for name, column in self.groups.items()}

    def members(self, level: int) -> list[int]:
        """Return the size of each group of a level: its nodes, or above the first level its groups
        of the level below."""
        columns = [np.arange(self.columns.shape[1]), *self.columns] if self.groups else []
        inner, outer = columns[level - 1], columns[level]
        first = np.unique(inner, return_index=True)[1]
        return np.unique(outer[first], return_counts=True)[1].tolist()

    @cached_property
    def columns(self) -> np.ndarray:
        """The groups as an array (levels, nodes)."""
        return np.array(list(self.groups.values()), dtype=np.int64)

    @cached_property
    def stamp(self) -> tuple[bytes, ...]:
        """The key for caching results that depend on these levels."""
        return tuple(group.tobytes() for group in self.groups.values())

    def distance(self, one: ArrayLike, two: ArrayLike) -> np.ndarray:
        """Return the distance class of every pair of node numbers; arrays broadcast."""
        one, two = np.asarray(one), np.asarray(two)
        distance = (one != two).astype(np.int64)
        if self.groups:
            nodes = self.columns.shape[1]
            largest_node = max((int(ends.max()) for ends in (one, two) if ends.size), default=-1)
            if largest_node >= nodes:
                raise UserError(f"the levels have {nodes} nodes, found node {largest_node}")
            for column in self.columns:
                distance += column[one] != column[two]
        return distance

    def apart(self, node: np.ndarray, src: np.ndarray, dst: np.ndarray) -> list[int]:
        """Return the distance classes of messages between ranks on these nodes."""
        return np.flatnonzero(np.bincount(self.distance(node[src], node[dst]))).tolist()

    def classes(self, node: np.ndarray) -> list[int]:
        """Return the distance classes of all pairs of ranks on these nodes."""
        nodes, ranks = np.unique(node, return_counts=True)
        if self.groups and len(nodes):  # two nodes of an innermost group represent all of it
            self.distance(nodes, nodes)
            group = self.columns[0][nodes]
            order = np.argsort(group, kind="stable")
            third = np.concatenate([[False, False], group[order][2:] == group[order][:-2]])
            nodes = nodes[order][~third[: len(order)]]
        else:
            nodes = nodes[:2]
        classes = np.unique(self.distance(nodes[:, None], nodes[None, :]))
        return [distance for distance in classes.tolist() if distance or (ranks > 1).any()]


FLAT = Hierarchy()


def covers_levels(levels_crossed: str, other: str) -> bool:
    """Return whether levels crossed include all distance classes of others."""
    return f"{levels_crossed}/".startswith(f"{other}/")


def describe_levels_crossed(levels_crossed: str) -> str:
    """Return the description of the levels crossed, such as `within one leaf`."""
    *inner, last = levels_crossed.split("/")
    return f"beyond one {inner[-1]}" if last == BEYOND and inner else f"within one {last}"


def _parse_groups(levels: object) -> dict[str, np.ndarray]:
    """Return the group of each node by level; groups are numbered in the order of their first
    nodes."""
    if not isinstance(levels, Mapping):
        raise UserError(f"found {show_value(levels)}, wanted a mapping of levels")
    groups: dict[str, np.ndarray] = {}
    for name, column in levels.items():
        _check_name(name)
        numbers = (
            isinstance(column, Sequence | np.ndarray)
            and not isinstance(column, str)
            and len(column)
        )
        if not numbers or not all(isinstance(number, int | np.integer) for number in column):
            raise UserError(
                f"level {name}: found {show_value(column)}, wanted a group number for every node"
            )
        _, first, group = np.unique(np.asarray(column), return_index=True, return_inverse=True)
        groups[name] = np.argsort(np.argsort(first))[group]
    if len(groups) > MAX_LEVELS:
        raise UserError(f"found {len(groups)} levels, wanted at most {MAX_LEVELS}")
    return groups


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not NAME.fullmatch(name) or name in (NODE, BEYOND, "same"):
        wanted = f"a name of a-z, 0-9 and - other than {NODE}, {BEYOND} and same"
        raise UserError(f"found a level called {show_value(name)}, wanted {wanted}")


def _check_nesting(groups: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """Return the groups; refuse them unless every group lies in one group of the next level."""
    for name, outer in pairwise(groups):
        inside, around = groups[name], groups[outer]
        if len(inside) != len(around):
            raise UserError(
                f"found {len(inside)} nodes in level {name} and {len(around)} in level {outer}"
            )
        first = np.unique(inside, return_index=True)[1]
        if (wrong := around != around[first][inside]).any():
            node = int(wrong.argmax())
            node_names = f"nodes {first[inside[node]]} and {node}"
            raise UserError(
                f"found {node_names} in one {name} but not in one {outer}; levels nest, innermost first"
            )
    return groups


def _parse_level(name: object, text: object, nodes: int, hosts: Sequence[str]) -> np.ndarray:
    if not isinstance(text, list | tuple):
        return np.arange(nodes) // parse_count(text, 1, MAX_COUNT)
    column = np.full(nodes, -1)
    for number, group in enumerate(text):
        for part in group if isinstance(group, list | tuple) else [group]:
            members = _parse_members(name, part, nodes, hosts)
            if (column[members] >= 0).any():
                raise UserError(
                    f"level {name}: found node {members[column[members] >= 0][0]} in two groups"
                )
            column[members] = number
    if (column < 0).any():
        raise UserError(f"level {name}: found no group of node {int((column < 0).argmax())}")
    return column


def _parse_members(name: object, part: object, nodes: int, hosts: Sequence[str]) -> np.ndarray:
    text = str(part)
    ends = RANGE.fullmatch(text)
    if ends:
        first, last = int(ends[1]), int(ends[2] or ends[1])
        if not first <= last < nodes:
            raise UserError(
                f"level {name}: found {show_value(part)}, wanted nodes from 0 to {nodes - 1}"
            )
        return np.arange(first, last + 1)
    members = np.flatnonzero([fnmatchcase(host, text) for host in hosts])
    if not len(members):
        raise UserError(
            f"level {name}: found {show_value(part)}, wanted nodes such as 0-15, or a pattern of hosts' names"
        )
    return members
