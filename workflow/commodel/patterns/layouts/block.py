"""Fills a node before the next: block:2 places ranks 0 1 | 2 3 | 4 5."""

import numpy as np

from commodel.patterns.layouts import Layout, or_spread, whole

FORM = "block:Q"


def per_node(arguments: str) -> int:
    return whole(arguments, FORM)


LAYOUT = Layout(
    name="block",
    form=FORM,
    title="consecutive ranks share a node, Q on each",
    place=lambda arguments, ranks: np.arange(ranks) // per_node(arguments),
    per_node=per_node,
    full=or_spread,
)
