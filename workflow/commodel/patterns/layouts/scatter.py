"""Deals ranks over groups of nodes: with scatter:leaf:2 ranks 0, 1, 2, … are on different leaf switches, and nodes of
each are filled with 2 ranks, one after the other."""

import numpy as np

from commodel.patterns import grouped
from commodel.patterns.layouts import Layout


def place(arguments: str, ranks: int) -> np.ndarray:
    """A group that is full is passed over."""
    slots = [np.repeat(nodes, grouped.per_node(arguments)) for nodes in grouped.groups(arguments)]
    turn = np.concatenate([np.arange(len(free)) for free in slots])
    group = np.repeat(np.arange(len(slots)), [len(free) for free in slots])
    return grouped.roomy(np.concatenate(slots)[np.lexsort((group, turn))], arguments, ranks)


LAYOUT = Layout(
    name="scatter",
    form="scatter:LEVEL or scatter:LEVEL:Q",
    title="ranks are dealt over groups of nodes, as on leaf switches, Q on each node",
    place=place,
    per_node=grouped.per_node,
    full=grouped.full,
)
