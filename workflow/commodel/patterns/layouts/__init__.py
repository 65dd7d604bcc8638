"""Which node each rank sits on: `spec` is `name:arguments`, e.g. `block:2` for 2 ranks a node. One file each.

A full spec says everything: `place(spec, ranks)` needs no platform. What a user writes may leave to the platform how
many ranks a node takes, which nodes are of which type, and what they are called; `full` fills that in.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from commodel.errors import UserError
from commodel.records import Case
from commodel.registry import lookup


@dataclass(frozen=True)
class Defaults:
    """What a layout may leave open."""

    per_node: int = 1  # ranks a node
    types: tuple[tuple[str, int], ...] = ()  # nodes of each type, in the order of the nodes
    hosts: tuple[str, ...] = ()  # what the nodes are called, where that is known before a job runs


def as_written(arguments: str, defaults: Defaults) -> str:
    return arguments


def or_spread(arguments: str, defaults: Defaults) -> str:
    """Q, or where it is left out what the defaults say."""
    return arguments or str(defaults.per_node)


@dataclass(frozen=True)
class Layout:
    name: str
    form: str  # how its spec is written
    title: str
    place: Callable[[str, int], np.ndarray]  # (arguments, ranks) -> node of every rank
    per_node: Callable[[str], int] | None = None  # Q of the arguments; None: it says what each node holds
    full: Callable[[str, Defaults], str] = as_written  # the arguments, with what they leave open
    kinds: Callable[[str, int], np.ndarray] | None = None  # (arguments, ranks) -> what every rank runs on


def named(spec: str) -> tuple[Layout, str]:
    """The layout that a spec names, and its arguments."""
    name, _, arguments = spec.partition(":")
    return lookup("patterns.layouts", "LAYOUT", name.strip()), arguments.strip()


def place(spec: str, ranks: int) -> np.ndarray:
    """Node of every rank under a full spec; `block` and `cyclic` without a Q place one rank a node."""
    layout, arguments = named(spec)
    return layout.place(layout.full(arguments, Defaults()), ranks)


def kinds_of(spec: str, ranks: int) -> np.ndarray | None:
    """What every rank runs on under a full spec, where it says so."""
    layout, arguments = named(spec)
    return layout.kinds(arguments, ranks) if layout.kinds else None


def full(spec: str, defaults: Defaults, asked: int | None = None) -> str:
    """The full spec; `asked` are the ranks a node that were given beside it, which must agree."""
    layout, arguments = named(spec)
    if layout.per_node is None and asked:
        raise UserError(f"found '{spec}' beside ranks_per_node {asked}, wanted one of them: it says what a node holds")
    arguments = layout.full(arguments, defaults)
    if asked and asked != layout.per_node(arguments):
        raise UserError(f"found '{spec}' beside ranks_per_node {asked}; they do not agree")
    return f"{layout.name}:{arguments}"


def nodes_of_case(case: Case) -> int:
    """The nodes that an allocation needs for it: the first ones, up to the last that it uses."""
    return max(case.where) + 1 if case.where else int(place(case.layout, case.ranks).max()) + 1
