"""Fills one group of nodes after the other: pack:leaf:2 puts 2 ranks on each node of a leaf switch, then goes on to the
next. Where nodes are numbered by group that is block:2."""

import numpy as np

from commodel.patterns import grouped
from commodel.patterns.layouts import Layout


def place(arguments: str, ranks: int) -> np.ndarray:
    nodes = np.concatenate(grouped.groups(arguments))
    return grouped.roomy(np.repeat(nodes, grouped.per_node(arguments)), arguments, ranks)


LAYOUT = Layout(
    name="pack",
    form="pack:LEVEL or pack:LEVEL:Q",
    title="one group of nodes after the other, as on a leaf switch, is filled with Q on each node",
    place=place,
    per_node=grouped.per_node,
    full=grouped.full,
)
