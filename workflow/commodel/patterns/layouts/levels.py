"""Layouts over groups of nodes, such as those on a leaf switch: `leaf` or `leaf:2`, for 2 ranks per
node.

The full spec lists the nodes of every group, as in leaf:2@0-3/4-6+9, so that it needs no platform.
"""

import re
from dataclasses import dataclass
from functools import partial

import numpy as np

from commodel.errors import UserError, suggest_name
from commodel.patterns.arguments import Argument, Kind, parse_whole_number
from commodel.patterns.layouts import Layout, PlatformDefaults
from commodel.units import MAX_COUNT, format_ranges

RANGE = re.compile(r"([0-9]{1,8})(?:-([0-9]{1,8}))?")


@dataclass(frozen=True, eq=False)
class LevelGroups:
    """The nodes of every group of a level, and the ranks per node."""

    level: str
    per_node: int
    nodes: list[np.ndarray]


def _complete_spec(arguments: str, defaults: PlatformDefaults) -> str:
    """Add the level's groups, and the default ranks per node if the spec omits them."""
    if "@" in arguments:
        return arguments
    level, _, per_node = arguments.partition(":")
    levels = dict(defaults.levels)
    if level not in levels:
        if not levels:
            raise UserError(f"found level '{level}', wanted a platform whose file has `levels`")
        raise UserError(
            f"found level '{level}', which the platform does not have; {suggest_name(level, levels)}"
        )
    column = np.asarray(levels[level])
    groups = (
        "+".join(format_ranges(np.flatnonzero(column == number)))
        for number in dict.fromkeys(column.tolist())
    )
    return f"{level}:{per_node or defaults.per_node}@{'/'.join(groups)}"


def _read_groups(text: str) -> LevelGroups:
    head, _, group_text = text.partition("@")
    level, _, per_node = head.partition(":")
    groups = read_group_nodes(group_text)
    return LevelGroups(level, parse_whole_number(per_node, "LEVEL:Q, Q ranks a node"), groups)


def read_group_nodes(text: str) -> list[np.ndarray]:
    """Return the nodes of every group of a text such as 0-3/4-6+9."""
    groups = [_read_ranges(group) for group in text.split("/")]
    nodes = np.concatenate(groups)
    if len(np.unique(nodes)) < len(nodes):
        raise UserError(f"found '{text}', wanted every node once")
    return groups


def _read_ranges(text: str) -> np.ndarray:
    return np.concatenate([_read_range(part) for part in text.split("+")])


def _read_range(text: str) -> np.ndarray:
    ends = RANGE.fullmatch(text)
    first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (1, 0)
    if not first <= last < MAX_COUNT:
        raise UserError(f"found '{text}', wanted groups of nodes such as 0-3/4-7")
    return np.arange(first, last + 1)


def _select_slots(slots: np.ndarray, groups: LevelGroups, ranks: int) -> np.ndarray:
    if ranks > len(slots):
        spec = f"{groups.level}:{groups.per_node}"
        raise UserError(f"found {ranks} ranks, but '{spec}' has room for {len(slots)}")
    return slots[:ranks]


def _pack_groups(ranks: int, groups: LevelGroups) -> np.ndarray:
    """Fill one group of nodes after the other. If nodes are numbered by group, pack:leaf:2 is
    block:2."""
    return _select_slots(np.repeat(np.concatenate(groups.nodes), groups.per_node), groups, ranks)


def _deal_to_groups(ranks: int, groups: LevelGroups) -> np.ndarray:
    """Deal ranks to the groups in turn, and fill the nodes of a group one after the other. Skip
    full groups."""
    slots = [np.repeat(nodes, groups.per_node) for nodes in groups.nodes]
    position = np.concatenate([np.arange(len(of_group)) for of_group in slots])
    group = np.repeat(np.arange(len(slots)), [len(of_group) for of_group in slots])
    return _select_slots(np.concatenate(slots)[np.lexsort((group, position))], groups, ranks)


_make_group_layout = partial(
    Layout, per_node=lambda groups: groups.per_node, complete=_complete_spec
)
LAYOUT = (
    _make_group_layout(
        "pack",
        "groups of nodes, such as those of a leaf switch, are filled one after the other, Q ranks on each node",
        (Argument("LEVEL or pack:LEVEL:Q", Kind.LEVEL, _read_groups),),
        place=_pack_groups,
    ),
    _make_group_layout(
        "scatter",
        "ranks are dealt round robin to groups of nodes, such as those of a leaf switch, Q on each node",
        (Argument("LEVEL or scatter:LEVEL:Q", Kind.LEVEL, _read_groups),),
        place=_deal_to_groups,
    ),
)
