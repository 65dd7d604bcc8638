"""Layouts: which node each rank sits on. A spec is a name and arguments, e.g. `block:2` for 2 ranks a node.

A full spec says everything: `place(spec, ranks)` needs no platform. What a user writes may leave to the platform how
many ranks a node takes, which nodes are of which type, and what they are called; `full` fills that in. A rank may keep
several cores, or drive an accelerator: it is a process of a hybrid application. Most layouts give each rank one core.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass

import numpy as np

from commodel.errors import UserError
from commodel.patterns.arguments import Kind, Named
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


@dataclass(frozen=True)
class Layout(Named):
    """Functions take the values of the arguments of a full spec, behind the number of ranks where that matters."""

    _: KW_ONLY
    place: Callable[..., np.ndarray]  # the node of every rank
    full: Callable[[str, Defaults], str] = lambda arguments, defaults: arguments  # fills in what a spec leaves open
    per_node: Callable[..., int] | None = None  # of what is no plain Q
    kinds: Callable[..., np.ndarray] | None = None  # what every rank runs on
    cores: Callable[..., np.ndarray] | None = None  # κ, which every rank keeps; None: one
    ranks: Callable[..., int] | None = None  # where the arguments say how many there are

    def ranks_per_node(self, arguments: str) -> int | None:
        """Return Q of a full spec; None if the layout says what each node holds."""
        if self.per_node:
            return self.per_node(*self.read(arguments))
        values = zip(self.arguments, self.read(arguments), strict=True)
        of_kind = [value for argument, value in values if argument.kind is Kind.PER_NODE]
        return of_kind[0] if of_kind else None


def named(spec: str) -> tuple[Layout, str]:
    """Return the layout that a spec names, and its arguments."""
    name, _, arguments = spec.partition(":")
    return lookup("patterns.layouts", "LAYOUT", name.strip()), arguments.strip()


def place(spec: str, ranks: int) -> np.ndarray:
    """Return the node of every rank under a full spec; `block` and `cyclic` without a Q place one rank a node."""
    layout, arguments = named(spec)
    return layout.place(ranks, *layout.read(layout.full(arguments, Defaults())))


def kinds_of(spec: str, ranks: int) -> np.ndarray | None:
    """Return what every rank runs on under a full spec, where it says so."""
    layout, arguments = named(spec)
    return layout.kinds(ranks, *layout.read(arguments)) if layout.kinds else None


def cores_of(spec: str, ranks: int) -> np.ndarray:
    """Return κ of every rank under a full spec: the cores that it keeps on its node."""
    layout, arguments = named(spec)
    return layout.cores(ranks, *layout.read(arguments)) if layout.cores else np.ones(ranks, dtype=int)


def keeps_cores(spec: str) -> bool:
    """Return whether a layout says which cores each rank keeps, so that ranks have to be bound to them."""
    return named(spec)[0].cores is not None


def ranks_of(spec: str) -> int | None:
    """Return how many ranks a layout places, where it says so."""
    layout, arguments = named(spec)
    return layout.ranks(*layout.read(arguments)) if layout.ranks else None


def type_of(node: int, types: Mapping[str, int]) -> str:
    """Return the type of a node, where there are so many of each type, in the order of the nodes."""
    for name, count in types.items():
        if node < count:
            return name
        node -= count
    if types:
        raise UserError(f"found a node behind the {sum(types.values())} of the platform's types")
    return NODE


def processes_of(spec: str, ranks: int, types: Mapping[str, int]) -> list[str]:
    """Return the kind of every process under a full spec, which says how fast it is: `fat/6` on six cores of a node of
    type fat, `fat/gpu` with a GPU; `node/6` where nodes have no types."""
    kinds, cores = kinds_of(spec, ranks), cores_of(spec, ranks)
    on = ["gpu" if kinds is not None and kinds[rank] == ACCELERATOR else str(cores[rank]) for rank in range(ranks)]
    return [f"{type_of(int(node), types)}/{what}" for node, what in zip(place(spec, ranks), on, strict=True)]


def full(spec: str, defaults: Defaults, requested: int | None = None) -> str:
    """Return the full spec; `asked` are the ranks a node that were given beside it, which must agree."""
    layout, arguments = named(spec)
    arguments = layout.full(arguments, defaults)
    if requested and (per_node := layout.ranks_per_node(arguments)) != requested:
        why = "they do not agree" if per_node else "wanted one of them: it says what a node holds"
        raise UserError(f"found '{spec}' beside ranks_per_node {requested}; {why}")
    return f"{layout.name}:{arguments}"


def nodes_written(nodes: Iterable[int]) -> str:
    """Return the platform's nodes that a layout's stand for, as tables and names of files have them: `0+3`."""
    return "+".join(map(str, nodes))


def nodes_read(text: str) -> np.ndarray:
    return np.array(text.split("+"), dtype=int)


def nodes_of_case(case: Case) -> int:
    """Return the nodes that an allocation needs for it: the first ones, up to the last that it uses."""
    return max(case.where) + 1 if case.where else int(place(case.layout, case.ranks).max()) + 1
