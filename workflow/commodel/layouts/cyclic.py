"""Deals ranks round robin over ranks/Q nodes: cyclic:2 places ranks 0 3 | 1 4 | 2 5."""

import numpy as np

from commodel.layouts import Layout

LAYOUT = Layout(
    name="cyclic",
    title="consecutive ranks sit on different nodes",
    place=lambda ranks, per_node: np.arange(ranks) % -(-ranks // per_node),
)
