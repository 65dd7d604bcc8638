"""Shuffles the ranks over the nodes that block:Q would fill. The same seed gives the same layout."""

import numpy as np

from commodel.errors import UserError
from commodel.patterns.layouts import Layout, whole
from commodel.units import parse_count

FORM = "random:Q@SEED"


def split(arguments: str) -> tuple[int, int]:
    per_node, _, seed = arguments.partition("@")
    try:
        return whole(per_node, FORM), parse_count(seed, 0, 2**63 - 1)
    except UserError:
        raise UserError(f"found 'random:{arguments}', wanted {FORM}, a whole number of 0 or more as seed") from None


def place(arguments: str, ranks: int) -> np.ndarray:
    per_node, seed = split(arguments)
    numbers = np.random.Generator(np.random.PCG64(seed))
    return numbers.permutation(np.arange(ranks) // per_node)


LAYOUT = Layout(
    name="random",
    form=FORM,
    title="ranks are shuffled over the nodes, Q on each",
    place=place,
    per_node=lambda arguments: split(arguments)[0],
)
