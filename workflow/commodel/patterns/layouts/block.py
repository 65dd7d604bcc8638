"""Fills a node before the next: block:2 places ranks 0 1 | 2 3 | 4 5."""

from functools import partial

import numpy as np

from commodel.patterns.arguments import whole_number
from commodel.patterns.layouts import Layout, or_spread

FORM = "block:Q"
per_node = partial(whole_number, wanted=FORM)

LAYOUT = Layout(
    name="block",
    form=FORM,
    title="consecutive ranks share a node, Q on each",
    place=lambda arguments, ranks: np.arange(ranks) // per_node(arguments),
    per_node=per_node,
    full=or_spread,
)
