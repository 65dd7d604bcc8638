"""Which node each rank sits on: `spec` is `name:Q`, Q ranks a node. One file each."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from commodel.errors import UserError
from commodel.registry import lookup


@dataclass(frozen=True)
class Layout:
    name: str
    title: str
    place: Callable[[int, int], np.ndarray]  # (ranks, ranks a node) -> node of every rank


def parse(spec: str) -> tuple[Layout, int | None]:
    """The layout and its Q, None where the spec leaves it open."""
    name, _, per_node = spec.partition(":")
    layout = lookup("layouts", "LAYOUT", name.strip())
    if not per_node:
        return layout, None
    if not (per_node.isascii() and per_node.isdigit() and int(per_node[:9]) > 0 and len(per_node) < 9):
        raise UserError(f"found '{spec}', wanted {layout.name}:RANKS_PER_NODE")
    return layout, int(per_node)


def place(spec: str, ranks: int) -> np.ndarray:
    """Node of every rank under a full spec such as `block:2`; without a Q, one rank a node."""
    layout, per_node = parse(spec)
    return layout.place(ranks, per_node or 1)
