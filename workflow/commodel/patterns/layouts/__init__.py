"""Which node each rank sits on: `spec` is `name:arguments`, e.g. `block:2` for 2 ranks a node. One file each.

A full spec says everything: `place(spec, ranks)` needs no platform. What a user writes may leave to the platform how
many ranks a node takes, which nodes are of which type, and what they are called; `full` fills that in. A rank may keep
several cores, or drive an accelerator: it is a process of a hybrid application. Most layouts give each rank one core.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from commodel.errors import UserError
from commodel.records import Case
from commodel.registry import lookup

CORE, ACCELERATOR = "core", "accelerator"  # what a rank may run on
NODE = "node"  # the type of nodes that are all alike


@dataclass(frozen=True)
class Defaults:
    """What a layout may leave open, and has to fit."""

    per_node: int = 1  # ranks a node
    types: tuple[tuple[str, int], ...] = ()  # nodes of each type, in the order of the nodes
    hosts: tuple[str, ...] = ()  # what the nodes are called, where that is known before a job runs
    most_cores: int = 0  # of a node; 0: nobody knows
    fewer_cores: tuple[tuple[str, int], ...] = ()  # of the nodes of types that have fewer
    levels: tuple[tuple[str, tuple[int, ...]], ...] = ()  # the group that each node is in, innermost level first

    def cores(self, node: int) -> int:
        """Of a node; 0: nobody knows."""
        node_type = type_of(node, dict(self.types)) if self.fewer_cores else NODE
        return dict(self.fewer_cores).get(node_type, self.most_cores)


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
    cores: Callable[[str, int], np.ndarray] | None = None  # (arguments, ranks) -> κ, which every rank keeps; None: one
    ranks: Callable[[str], int] | None = None  # of the arguments, where they say how many there are


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


def cores_of(spec: str, ranks: int) -> np.ndarray:
    """κ of every rank under a full spec: the cores that it keeps on its node."""
    layout, arguments = named(spec)
    return layout.cores(arguments, ranks) if layout.cores else np.ones(ranks, dtype=int)


def keeps_cores(spec: str) -> bool:
    """Whether a layout says which cores each rank keeps, so that ranks have to be bound to them."""
    return named(spec)[0].cores is not None


def ranks_of(spec: str) -> int | None:
    """How many ranks a layout places, where it says so."""
    layout, arguments = named(spec)
    return layout.ranks(arguments) if layout.ranks else None


def type_of(node: int, types: Mapping[str, int]) -> str:
    """The type of a node, where there are so many of each type, in the order of the nodes."""
    for name, count in types.items():
        if node < count:
            return name
        node -= count
    if types:
        raise UserError(f"found a node behind the {sum(types.values())} of the platform's types")
    return NODE


def processes_of(spec: str, ranks: int, types: Mapping[str, int]) -> list[str]:
    """The kind of every process under a full spec, which says how fast it is: `fat/6` on six cores of a node of type
    fat, `fat/gpu` with a GPU; `node/6` where nodes have no types."""
    kinds, cores = kinds_of(spec, ranks), cores_of(spec, ranks)
    on = ["gpu" if kinds is not None and kinds[rank] == ACCELERATOR else str(cores[rank]) for rank in range(ranks)]
    return [f"{type_of(int(node), types)}/{what}" for node, what in zip(place(spec, ranks), on, strict=True)]


def full(spec: str, defaults: Defaults, asked: int | None = None) -> str:
    """The full spec; `asked` are the ranks a node that were given beside it, which must agree."""
    layout, arguments = named(spec)
    if layout.per_node is None and asked:
        raise UserError(f"found '{spec}' beside ranks_per_node {asked}, wanted one of them: it says what a node holds")
    arguments = layout.full(arguments, defaults)
    if asked and asked != layout.per_node(arguments):
        raise UserError(f"found '{spec}' beside ranks_per_node {asked}; they do not agree")
    return f"{layout.name}:{arguments}"


def nodes_written(nodes: Iterable[int]) -> str:
    """The platform's nodes that a layout's stand for, as tables and names of files have them: `0+3`."""
    return "+".join(map(str, nodes))


def nodes_read(text: str) -> np.ndarray:
    return np.array(text.split("+"), dtype=int)


def nodes_of_case(case: Case) -> int:
    """The nodes that an allocation needs for it: the first ones, up to the last that it uses."""
    return max(case.where) + 1 if case.where else int(place(case.layout, case.ranks).max()) + 1
