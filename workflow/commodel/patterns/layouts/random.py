"""Shuffles the ranks over the nodes that block:Q would fill. The same seed gives the same layout."""

import numpy as np

from commodel.patterns.arguments import with_seed
from commodel.patterns.layouts import Layout

FORM = "random:Q@SEED"


def place(arguments: str, ranks: int) -> np.ndarray:
    per_node, seed = with_seed(arguments, FORM)
    numbers = np.random.Generator(np.random.PCG64(seed))
    return numbers.permutation(np.arange(ranks) // per_node)


LAYOUT = Layout(
    name="random",
    form=FORM,
    title="ranks are shuffled over the nodes, Q on each",
    place=place,
    per_node=lambda arguments: with_seed(arguments, FORM)[0],
)
