"""Shuffles the ranks over the nodes that block:Q would fill. The same seed gives the same layout."""

import numpy as np

from commodel.layouts import Layout, whole
from commodel.units import parse_count

FORM = "random:Q@SEED"


def per_node(arguments: str) -> int:
    return whole(arguments.partition("@")[0], FORM)


def place(arguments: str, ranks: int) -> np.ndarray:
    seed = parse_count(arguments.partition("@")[2], 0, 2**63 - 1)
    numbers = np.random.Generator(np.random.PCG64(seed))
    return numbers.permutation(np.arange(ranks) // per_node(arguments))


LAYOUT = Layout(
    name="random",
    form=FORM,
    title="ranks are shuffled over the nodes, Q on each",
    place=place,
    per_node=per_node,
)
