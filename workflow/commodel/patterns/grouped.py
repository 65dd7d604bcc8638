"""Layouts over groups of nodes, such as those on a leaf switch: `leaf` or `leaf:2`, for 2 ranks a node. The full spec
has the nodes of every group behind it, leaf:2@0-3/4-6+9, so that it means the same without the platform."""

import re

import numpy as np

from commodel.errors import UserError, suggest
from commodel.patterns.arguments import whole_number
from commodel.patterns.layouts import Defaults
from commodel.units import MAX_COUNT, ranges

RANGE = re.compile(r"([0-9]{1,8})(?:-([0-9]{1,8}))?")
WANTED = "groups of nodes such as 0-3/4-7"


def full(arguments: str, defaults: Defaults) -> str:
    """The level's groups, and as many ranks a node as the defaults say where that is left open."""
    if "@" in arguments:
        return arguments
    level, _, per_node = arguments.partition(":")
    levels = dict(defaults.levels)
    if level not in levels:
        if not levels:
            raise UserError(f"found level '{level}', wanted a platform whose file says its `levels`")
        raise UserError(f"found level '{level}', which the platform does not have; {suggest(level, levels)}")
    column = np.asarray(levels[level])
    groups = ("+".join(ranges(np.flatnonzero(column == number))) for number in dict.fromkeys(column.tolist()))
    return f"{level}:{per_node or defaults.per_node}@{'/'.join(groups)}"


def per_node(arguments: str) -> int:
    return whole_number(arguments.partition("@")[0].partition(":")[2], "LEVEL:Q, Q ranks a node")


def groups(arguments: str) -> list[np.ndarray]:
    """The nodes of every group of a full spec."""
    text = arguments.partition("@")[2]
    groups = [np.concatenate([_range(part) for part in group.split("+")]) for group in text.split("/")]
    nodes = np.concatenate(groups)
    if len(np.unique(nodes)) < len(nodes):
        raise UserError(f"found '{text}', wanted every node once")
    return groups


def _range(text: str) -> np.ndarray:
    ends = RANGE.fullmatch(text)
    first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (1, 0)
    if not first <= last < MAX_COUNT:
        raise UserError(f"found '{text}', wanted {WANTED}")
    return np.arange(first, last + 1)


def roomy(places: np.ndarray, arguments: str, ranks: int) -> np.ndarray:
    """The first `ranks` of all the places that there are."""
    if ranks > len(places):
        raise UserError(f"found {ranks} ranks, but '{arguments.partition('@')[0]}' has room for {len(places)}")
    return places[:ranks]
