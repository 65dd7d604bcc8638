"""Deals ranks round robin over ranks/Q nodes: cyclic:2 places ranks 0 3 | 1 4 | 2 5."""

from functools import partial

import numpy as np

from commodel.patterns.arguments import whole_number
from commodel.patterns.layouts import Layout, or_spread

FORM = "cyclic:Q"
per_node = partial(whole_number, wanted=FORM)

LAYOUT = Layout(
    name="cyclic",
    form=FORM,
    title="ranks are dealt round robin, Q on each node",
    place=lambda arguments, ranks: np.arange(ranks) % -(-ranks // per_node(arguments)),
    per_node=per_node,
    full=or_spread,
)
