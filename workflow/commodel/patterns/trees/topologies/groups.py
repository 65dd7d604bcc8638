"""Unbalanced two-level trees: groups:6,6,5 has three inner nodes with 6, 6 and 5 leaves; 12x7 means 12, seven times."""

import numpy as np

from commodel.errors import UserError
from commodel.patterns.arguments import whole_numbers
from commodel.patterns.trees.topologies import Topology
from commodel.patterns.trees.tree import Tree, check_size

FORM = "groups:SIZE[xTIMES],SIZE[xTIMES],…"


def build(text: str) -> Tree:
    sizes = []
    for part in text.split(","):
        numbers = whole_numbers(part.strip(), "x", FORM)
        if len(numbers) > 2:
            raise UserError(f"found '{part}' in 'groups:{text}', wanted {FORM}")
        size, times = (*numbers, 1)[:2]
        check_size(size * times + len(sizes))
        sizes += [size] * times
    check_size(sum(sizes) + len(sizes) + 1)
    inner = np.arange(1, len(sizes) + 1)
    return Tree(np.concatenate([[-1], np.zeros(len(sizes), dtype=int), np.repeat(inner, sizes)]))


TOPOLOGY = Topology(name="groups", form=FORM, title="inner nodes of the given sizes under the root", build=build)
