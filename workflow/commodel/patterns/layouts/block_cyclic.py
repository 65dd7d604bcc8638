"""Deals blocks of B consecutive ranks round robin over ranks/Q nodes: block-cyclic:4x2 places 0 1 4 5 | 2 3 6 7."""

import numpy as np

from commodel.errors import UserError
from commodel.patterns.arguments import whole_number
from commodel.patterns.layouts import Layout

FORM = "block-cyclic:QxB"


def split(arguments: str) -> tuple[int, int]:
    written, _, block = arguments.partition("x")
    per_node, size = whole_number(written, FORM), whole_number(block, FORM)
    if per_node % size:
        raise UserError(f"found 'block-cyclic:{arguments}', wanted {FORM} with blocks of B that fill a node of Q")
    return per_node, size


def place(arguments: str, ranks: int) -> np.ndarray:
    per_node, size = split(arguments)
    return np.arange(ranks) // size % -(-ranks // per_node)


LAYOUT = Layout(
    name="block-cyclic",
    form=FORM,
    title="blocks of B ranks are dealt round robin, Q ranks on each node",
    place=place,
    per_node=lambda arguments: split(arguments)[0],
)
