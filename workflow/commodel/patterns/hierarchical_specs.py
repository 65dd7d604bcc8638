"""Specs of algorithms whose messages depend on the nodes of the ranks (`Composition`), as in
hier:inter=ring:intra=binomial.

Each part is KEY=VALUE. A key is a distance class of the platform, from `node` to `beyond`, with
`intra` and `inter` as their usual names; its value is the algorithm among the ranks or leaders
within one group. An algorithm keeps its argument, as in inter=chain:64KiB; one that has parts
itself is in brackets, as in inter=lanes(intra=linear). UP+DOWN are the algorithms on the way to the
leaders and back. The parts may be written in brackets, with commas.

A full spec needs no platform: it has the groups of nodes of each level, as in leaf@16 for 16 nodes
each, or leaf@0-3/4-6+9.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from commodel.errors import UserError, suggest_name
from commodel.hierarchy import BEYOND, NODE
from commodel.patterns.arguments import parse_whole_number, read_segment
from commodel.patterns.layouts.levels import read_group_nodes
from commodel.units import format_bytes, format_ranges

INTRA, INTER = "intra", "inter"
SYNONYMS = {NODE: INTRA, BEYOND: INTER}
LEADERS, SEGMENT = "leaders", "segment"
LEVEL = re.compile(r"[a-z][a-z0-9-]{0,20}")

Levels = Sequence[tuple[str, Sequence[int]]]  # group of each node by level, innermost first
FindAlgorithm = Callable[[str, str], str]  # (operation, spec) -> canonical spec; refuses others


@dataclass(frozen=True)
class Way:
    """The algorithms of a level: towards the leaders and back, or the same one if only one operation
    is done there.

    An allreduce among leaders may be a reduction and a broadcast: it is then `split`.
    """

    up: str
    down: str
    split: bool = False

    @property
    def text(self) -> str:
        up = close_brackets(self.up)
        down = close_brackets(self.down)
        return up if up == down and not self.split else f"{up}+{down}"


@dataclass(frozen=True)
class LevelWay:
    """The algorithms within the groups of a level of the platform."""

    level: str
    groups: str  # nodes in each group, or the nodes of all groups; empty: the platform's
    way: Way


@dataclass(frozen=True)
class Composition:
    """The parts of a spec. `inter` is the way among the outermost leaders, `levels` are those
    between, innermost first."""

    inter: Way
    intra: Way
    levels: tuple[LevelWay, ...] = ()
    leaders: int = 1  # of a node
    segment: int | None = None


@dataclass(frozen=True)
class SpecForm:
    """What may stand in a spec of an algorithm, and which operations its parts do."""

    operation: str
    inter: tuple[str, ...]  # operations among the leaders: one, or two as UP+DOWN
    intra: tuple[str, ...]  # within a group
    defaults: Composition
    has_levels: bool = True
    has_leaders: bool = True
    has_segments: bool = False

    @property
    def parts(self) -> str:
        """The parts that a spec may have, the algorithms with their defaults."""
        intra = self.defaults.intra.text
        parts = [f"{INTER}={self.defaults.inter.text}"]
        parts += [f"LEVEL={intra}"] if self.has_levels else []
        parts += [f"{INTRA}={intra}"]
        parts += [f"{LEADERS}=N"] if self.has_leaders else []
        parts += [f"{SEGMENT}=BYTES"] if self.has_segments else []
        return ", ".join(parts)


def open_brackets(spec: str) -> str:
    """Return a spec without brackets: hier(inter=ring,intra=linear) is
    hier:inter=ring:intra=linear."""
    name, bracket, rest = spec.partition("(")
    if not bracket or ":" in name or not rest.rstrip().endswith(")"):
        return spec
    parts = [part.strip() for part in _split_outside(rest.rstrip()[:-1], ",") if part.strip()]
    return ":".join([name.strip(), *parts])


def close_brackets(spec: str) -> str:
    """Return a spec as a value of a part: with brackets if it has parts itself."""
    name, _, parts = spec.partition(":")
    if "=" not in parts:
        return spec
    return f"{name}({','.join(_split_outside(parts, ':'))})"


def _split_outside(text: str, separator: str) -> list[str]:
    """Return the text cut at each separator that is outside of brackets."""
    parts = [""]
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def parse_composition(form: SpecForm, find: FindAlgorithm, text: str) -> Composition:
    """Return the parts of a text such as inter=ring:intra=binomial. Those left out are the
    defaults."""
    values = _split_parts(form, text) if text else {}
    inter = form.defaults.inter
    intra = form.defaults.intra
    leaders = form.defaults.leaders
    segment = form.defaults.segment
    levels: list[LevelWay] = []
    for key, value in values.items():
        name, _, groups = key.partition("@")
        if key == INTER:
            inter = _read_way(form, form.inter, key, value, find)
        elif key == INTRA:
            intra = _read_way(form, form.intra, key, value, find)
        elif key == LEADERS and form.has_leaders:
            leaders = parse_whole_number(value, f"{LEADERS}=N, the leaders of a node")
        elif key == SEGMENT and form.has_segments:
            segment = read_segment(value)
        elif form.has_levels and name not in (LEADERS, SEGMENT) and LEVEL.fullmatch(name):
            way = _read_way(form, form.intra, key, value, find)
            levels.append(LevelWay(name, groups, way))
        else:
            raise UserError(f"found '{key}', wanted {form.parts}")
    # in a canonical spec, the outermost level is first
    return Composition(inter, intra, tuple(reversed(levels)), leaders, segment)


def _split_parts(form: SpecForm, text: str) -> dict[str, str]:
    """Return the text of each part by key. What follows a colon without KEY= belongs to the part
    before it, as the argument of its algorithm."""
    values: dict[str, str] = {}
    key = ""
    for part in _split_outside(text, ":"):
        name, equals, value = part.partition("=")
        if equals:
            key = name.strip()
            key = SYNONYMS.get(key, key)
            if key in values:
                raise UserError(f"found {key} twice in '{text}', wanted it once")
            values[key] = value.strip()
        elif not key:
            raise UserError(f"found '{part}', wanted {form.parts}")
        else:
            values[key] += f":{part.strip()}"
    return values


def _read_way(
    form: SpecForm, operations: Sequence[str], key: str, text: str, find: FindAlgorithm
) -> Way:
    up, *others = (part.strip() for part in _split_outside(text, "+"))
    plus = bool(others)
    down = "+".join(others)
    wanted_pair = len(operations) > 1
    allows_pair = wanted_pair or (key == INTER and form.operation == "allreduce")
    if plus and not allows_pair:
        raise UserError(f"found {key}={text}, wanted one algorithm of {operations[0]}")
    try:
        if plus and not wanted_pair:
            return Way(find("reduce", up), find("bcast", down), split=True)
        if not wanted_pair:
            name = find(operations[0], up)
            return Way(name, name)
        return Way(find(operations[0], up), find(operations[1], down or up))
    except UserError as error:
        pair = ""
        if wanted_pair and not plus:
            pair = f"; or wanted {key}=UP+DOWN, algorithms of {operations[0]} and {operations[1]}"
        raise UserError(f"{key}={text}: {error.message}{pair}") from None


def write_composition(form: SpecForm, composition: Composition) -> str:
    """Return the argument in its canonical spelling: parts from the outermost level inwards."""
    defaults = form.defaults
    parts = []
    if composition.inter != defaults.inter:
        parts.append(f"{INTER}={composition.inter.text}")
    for level in reversed(composition.levels):
        groups = f"@{level.groups}" if level.groups else ""
        parts.append(f"{level.level}{groups}={level.way.text}")
    if composition.intra != defaults.intra:
        parts.append(f"{INTRA}={composition.intra.text}")
    if composition.leaders != defaults.leaders:
        parts.append(f"{LEADERS}={composition.leaders}")
    if composition.segment != defaults.segment and composition.segment:
        parts.append(f"{SEGMENT}={format_bytes(composition.segment).replace(' ', '')}")
    return ":".join(parts)


def complete_levels(composition: Composition, levels: Levels) -> Composition:
    """Return the composition with the groups of each level, from the platform where the spec has
    none, innermost level first."""
    by_name = dict(levels)
    order = {name: number for number, (name, _) in enumerate(levels)}
    completed = []
    for level in composition.levels:
        groups = level.groups
        if not groups:
            groups = _write_groups(level.level, by_name)
        completed.append(LevelWay(level.level, groups, level.way))
    completed.sort(key=lambda level: order.get(level.level, len(order)))
    return replace(composition, levels=tuple(completed))


def _write_groups(level: str, levels: Mapping[str, Sequence[int]]) -> str:
    if level not in levels:
        keys = [INTER, INTRA, *levels]
        if not levels:
            raise UserError(
                f"found '{level}', wanted {INTER} or {INTRA}, or a platform whose file has `levels`"
            )
        raise UserError(
            f"found level '{level}', which the platform does not have; {suggest_name(level, keys)}"
        )
    column = np.asarray(levels[level])
    size = int(np.count_nonzero(column == column[0]))
    if np.array_equal(column, np.arange(len(column)) // size):
        return str(size)
    groups = (
        "+".join(format_ranges(np.flatnonzero(column == number)))
        for number in dict.fromkeys(column.tolist())
    )
    return "/".join(groups)


def find_group_of_node(level: LevelWay, nodes: int) -> np.ndarray:
    """Return the group of each node."""
    if level.groups.isdigit():
        return np.arange(nodes) // parse_whole_number(level.groups, "nodes in a group")
    group = np.full(nodes, -1)
    for number, members in enumerate(read_group_nodes(level.groups)):
        group[members[members < nodes]] = number
    if (group < 0).any():
        raise UserError(f"level {level.level}: found no group of node {int((group < 0).argmax())}")
    return group
