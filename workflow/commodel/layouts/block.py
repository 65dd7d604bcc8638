"""Fills a node before the next: block:2 places ranks 0 1 | 2 3 | 4 5."""

import numpy as np

from commodel.layouts import Layout

LAYOUT = Layout(
    name="block",
    title="consecutive ranks share a node",
    place=lambda ranks, per_node: np.arange(ranks) // per_node,
)
