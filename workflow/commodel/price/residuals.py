"""How far off prices were at points that their family's fit has not seen, and which of them are of one class: those of
an operation, where there are groups enough, else of its kind, else all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from commodel.hierarchy import reached
from commodel.models import Array
from commodel.patterns.operations import base

FEWEST_GROUPS = 9  # groups of one operation
ALL, STREAMS = "all", "streams"
KINDS = {
    "one to all": ("bcast", "scatter"),
    "all to one": ("reduce", "gather"),
    "all to all": ("allreduce", "allgather", "alltoall", "reduce-scatter", "barrier"),
}
KIND = {name: kind for kind, names in KINDS.items() for name in names}
STREAM = "stream of "
RANKS, BYTES, NODES = "ranks", "bytes", "nodes"
AXES = (RANKS, BYTES, NODES)
WITHOUT = {RANKS: 0, BYTES: 0, NODES: 1}  # up to where something is not more or less of it, but without it
SIDES = {False: "within one node", True: "between nodes"}  # whether there are several


@dataclass(frozen=True, eq=False)
class Residuals:
    """ln(measured/price) of one family at points that its fit has not seen: what each is of, the job that it belongs to
    and the allocation that it was measured in. `left`: the same from fits that have seen nothing of that size, of that
    number of ranks or of that operation, where there are such."""

    logs: Array
    operation: np.ndarray
    group: np.ndarray
    allocation: np.ndarray
    axes: Mapping[str, Array]  # AXES; an older table says nothing of nodes
    left: Mapping[str, Array] = field(default_factory=dict)
    job: np.ndarray | None = None  # the setting, where people tell jobs apart; None: nobody does
    seconds: Array | None = None  # measured; None: nobody says
    reach: np.ndarray | None = None  # as of a `Point`; None: there are no levels

    def only(self, flags: np.ndarray) -> Residuals:
        named = {name: getattr(self, name)[flags] for name in ("logs", "operation", "group", "allocation")}
        tables = {name: {key: row[flags] for key, row in getattr(self, name).items()} for name in ("axes", "left")}
        rest = {"job": self.job, "seconds": self.seconds, "reach": self.reach}
        rest = {name: None if row is None else row[flags] for name, row in rest.items()}
        return replace(self, **named, **tables, **rest)

    @property
    def sides(self) -> np.ndarray:
        """How far messages went: within a node, between nodes, or, where there are levels, within which."""
        if NODES not in self.axes:
            return np.full(len(self.logs), "")
        far = np.where(self.axes[NODES] > WITHOUT[NODES], SIDES[True], SIDES[False]).astype(object)
        for reach in () if self.reach is None else filter(None, np.unique(self.reach).tolist()):
            far[self.reach == reach] = reached(reach)
        return far.astype(str)

    def of_axis(self, name: str) -> Array:
        return self.left.get(name, self.logs)


def operation_class(operation: str, waves: float = 1) -> str:
    return f"{STREAM if waves != 1 else ''}{base(operation)}"


def kind_of(operation: str) -> str:
    return STREAMS if operation.startswith(STREAM) else KIND.get(operation, operation)


def of_side(name: str, side: str) -> str:
    """What a class is called of which only points on one side are looked at."""
    return f"{name} {side}"


def classes(
    residuals: Residuals, operations: Sequence[str], sides: Sequence[str] | None = None
) -> Iterator[tuple[str, Residuals]]:
    """Every class of these operations with enough groups, an operation's own first, then all of its kind, then all.
    Messages within a node and between nodes go ways that have nothing to do with each other, and those between groups
    of nodes share links: where several such sides were measured, those of each are a class of their own, before those
    of all. `sides`: no others are asked for."""
    own = residuals.sides
    measured = [side for side in np.unique(own).tolist() if side]
    for side in measured if sides is None else [side for side in sides if side in measured]:
        if len(measured) > 1:
            part = residuals.only(own == side)
            yield from ((of_side(name, side), rows) for name, rows in _levels(part, operations) if _enough(rows))
    yield from (level for level in _levels(residuals, operations) if level[0] == ALL or _enough(level[1]))


def _levels(residuals: Residuals, operations: Sequence[str]) -> Iterator[tuple[str, Residuals]]:
    kinds = np.array([kind_of(name) for name in residuals.operation.tolist()])
    for name in operations:
        yield name, residuals.only(residuals.operation == name)
    for kind in dict.fromkeys(map(kind_of, operations)):
        yield kind, residuals.only(kinds == kind)
    yield ALL, residuals


def _enough(rows: Residuals) -> bool:
    return len(np.unique(rows.group)) >= FEWEST_GROUPS


def numbered(labels: np.ndarray) -> np.ndarray:
    return np.unique(labels, return_inverse=True)[1]
