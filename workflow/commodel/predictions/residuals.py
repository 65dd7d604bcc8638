"""Residuals of held-out points, ln(measured/predicted), and how much a residual at one size informs another size.

Residuals are pooled by class: by operation if there are enough groups, else by its kind, else all together.

The residual at a short message informs little about that at a long one: latency dominates the first, bandwidth the
second. The distance of two sizes is therefore the difference of latency's share of the time, times
LATENCY_SHARE_DOUBLINGS, but at least their doublings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from commodel.hierarchy import describe_levels_crossed
from commodel.models import Array
from commodel.patterns.operations import find_base_name

MIN_GROUPS_OF_CLASS = 9  # groups of a class with a residual interval; the class of all operations needs 2
ALL, STREAMS = "all", "streams"
OPERATIONS_OF_KIND = {
    "one to all": ("bcast", "scatter"),
    "all to one": ("reduce", "gather"),
    "all to all": ("allreduce", "allgather", "alltoall", "reduce-scatter", "barrier"),
}
KIND_OF_OPERATION = {name: kind for kind, names in OPERATIONS_OF_KIND.items() for name in names}
STREAM = "stream of "
RANKS, BYTES, NODES = "ranks", "bytes", "nodes"
AXES = (RANKS, BYTES, NODES)
MIN_OF_AXIS = {
    RANKS: 0,
    BYTES: 0,
    NODES: 1,
}  # smallest value; at it the axis has no effect: 0 B have no payload, one node has no network
PLACEMENT_NAMES = {False: "within one node", True: "between nodes"}  # by whether ranks are on several nodes


@dataclass(frozen=True, eq=False)
class Residuals:
    """Residuals ln(measured/predicted) of one model at held-out points. Each has its operation, ranks, size, nodes,
    workload (group), and the allocation in which it was measured (empty if allocations do not differ). `left_out` has
    the residuals of fits without that size, number of ranks, number of nodes or operation."""

    logs: Array
    operation: np.ndarray
    group: np.ndarray
    allocation: np.ndarray
    axes: Mapping[str, Array]  # AXES; without nodes if their numbers are unknown
    left_out: Mapping[str, Array] = field(default_factory=dict)
    setting: np.ndarray | None = None  # None: no settings are named
    seconds: Array | None = None  # measured; None: unknown
    levels_crossed: np.ndarray | None = None  # `Point.reach` of each; None: the network has no levels

    def only(self, flags: np.ndarray) -> Residuals:
        """Return the residuals at the flagged points."""

        def select(rows: Array | Mapping[str, Array] | None) -> Array | dict[str, Array] | None:
            if isinstance(rows, Mapping):
                return {name: column[flags] for name, column in rows.items()}
            return None if rows is None else rows[flags]

        selected: dict[str, Any] = {entry.name: select(getattr(self, entry.name)) for entry in fields(self)}
        return replace(self, **selected)

    @property
    def placements(self) -> np.ndarray:
        """The placements of the messages: within a node, between nodes, or within a level of the network."""
        if NODES not in self.axes:
            return np.full(len(self.logs), "")
        several = self.axes[NODES] > MIN_OF_AXIS[NODES]
        names = np.where(several, PLACEMENT_NAMES[True], PLACEMENT_NAMES[False]).astype(object)
        for levels_crossed in (
            () if self.levels_crossed is None else filter(None, np.unique(self.levels_crossed).tolist())
        ):
            names[self.levels_crossed == levels_crossed] = describe_levels_crossed(levels_crossed)
        return names.astype(str)

    def left_out_logs(self, name: str) -> Array:
        return self.left_out.get(name, self.logs)


def find_operation_class(operation: str, waves: float = 1) -> str:
    return f"{STREAM if waves != 1 else ''}{find_base_name(operation)}"


def find_kind(operation: str) -> str:
    return STREAMS if operation.startswith(STREAM) else KIND_OF_OPERATION.get(operation, operation)


def name_placed_class(name: str, placement: str) -> str:
    """Return the name of a class that is restricted to one placement."""
    return f"{name} {placement}"


def list_classes(
    residuals: Residuals, operations: Sequence[str], wanted: Sequence[str] | None = None
) -> Iterator[tuple[str, Residuals]]:
    """Yield the classes of these operations that have enough groups: an operation's own first, then its kind, then all
    operations, with any number of groups.
    Messages within a node and between nodes take different paths, and messages between groups of nodes share links. If
    several placements were measured, each has classes of its own, which come first. `wanted` restricts the
    placements."""
    placements = residuals.placements
    measured = [placement for placement in np.unique(placements).tolist() if placement]
    for placement in measured if wanted is None else [placement for placement in wanted if placement in measured]:
        if len(measured) > 1:
            residuals_of_placement = residuals.only(placements == placement)
            yield from (
                (name_placed_class(name, placement), rows)
                for name, rows in _list_pools(residuals_of_placement, operations)
                if _has_enough_groups(rows)
            )
    yield from (
        level for level in _list_pools(residuals, operations) if level[0] == ALL or _has_enough_groups(level[1])
    )


def _list_pools(residuals: Residuals, operations: Sequence[str]) -> Iterator[tuple[str, Residuals]]:
    kinds = np.array([find_kind(name) for name in residuals.operation.tolist()])
    for name in operations:
        yield name, residuals.only(residuals.operation == name)
    for kind in dict.fromkeys(map(find_kind, operations)):
        yield kind, residuals.only(kinds == kind)
    yield ALL, residuals


def _has_enough_groups(rows: Residuals) -> bool:
    return len(np.unique(rows.group)) >= MIN_GROUPS_OF_CLASS


def number_labels(labels: np.ndarray) -> np.ndarray:
    return np.unique(labels, return_inverse=True)[1]


LATENCY_SHARE_DOUBLINGS = 20


def estimate_half_size(part: Residuals) -> float:
    """Return the size at which a message takes twice as long as an empty one (Hockney's n½): the median over operations
    measured at several sizes on equal ranks and nodes. 0 if no two sizes determine it."""
    has_payload = part.axes[BYTES] > 0
    if part.seconds is None or not has_payload.any():
        return 0.0
    size, logs, curve = (
        part.axes[BYTES][has_payload],
        np.log(part.seconds[has_payload]),
        number_labels(part.operation)[has_payload],
    )
    for name in (name for name in (RANKS, NODES) if name in part.axes):
        curve = number_labels(curve + 1j * part.axes[name][has_payload])
    cells, index = np.unique(curve + 1j * size, return_inverse=True)
    times = np.exp(np.bincount(index, logs) / np.bincount(index))
    curve, size = cells.real.astype(int), cells.imag
    halves = _fit_half_sizes(curve, size, times)[np.bincount(curve) > 1]
    half = float(np.median(halves)) if len(halves) else 0.0
    return half if np.isfinite(half) else 0.0


def _fit_half_sizes(curve: np.ndarray, size: Array, times: Array) -> Array:
    """Return n½ of each curve, from the line with the least squared relative error."""
    start, bytes = 1 / times, size / times
    a, b, c, d, e = (np.bincount(curve, row) for row in (start**2, start * bytes, bytes**2, start, bytes))
    empty, per_byte = np.maximum(d * c - e * b, 0), np.maximum(a * e - b * d, 0)
    return np.divide(empty, per_byte, out=np.full(len(a), np.inf), where=per_byte > 0)


def compute_latency_share(sizes: Array, half: float) -> Array:
    """Return the latency's share of the time of a message; 0 for all sizes if n½ is unknown (0)."""
    return half / (half + sizes) if half > 0 else np.zeros(np.shape(sizes))


def measure_size_distance(doublings: Array, latency_share: Array, other_latency_share: Array) -> Array:
    """Return the distance of two sizes in doublings, at least one, from their doublings and their latency shares."""
    return np.maximum(np.maximum(doublings, 1), LATENCY_SHARE_DOUBLINGS * np.abs(latency_share - other_latency_share))


def compute_matern(distances: Array, length: float) -> Array:
    """Return Matérn's correlation of order 3/2: a smoother one would underestimate the variance between two
    measurements."""
    scaled = np.sqrt(3) * np.abs(distances) / length
    return (1 + scaled) * np.exp(-scaled)
