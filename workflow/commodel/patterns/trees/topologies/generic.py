"""Any tree by the number of children of every node, level by level: in generic:2:8,4 the root has 2 children, the first
of which has 8 and the second 4. One number alone is that of every node of its level."""

import re

import numpy as np

from commodel.errors import UserError
from commodel.patterns.trees.topologies import Topology
from commodel.patterns.trees.tree import Tree, check_size

FORM = "generic:CHILDREN[,CHILDREN…]:…"
NUMBERS = re.compile(r"[0-9]{1,8}(,[0-9]{1,8})*")


def build(text: str) -> Tree:
    parents, first, width = [np.array([-1])], 0, 1
    for depth, level in enumerate(text.split(":")):
        if not NUMBERS.fullmatch(level):
            raise UserError(f"found '{level}' in 'generic:{text}', wanted {FORM}")
        children = np.array([int(number) for number in level.split(",")])
        if len(children) not in (1, width):
            raise UserError(
                f"found '{level}' in 'generic:{text}', wanted 1 number or {width}, as level {depth} has that many nodes"
            )
        children = np.broadcast_to(children, width)
        if not children.any():
            raise UserError(f"found '{level}' in 'generic:{text}', wanted a level with children")
        check_size(first + width + int(children.sum()))
        parents.append(np.repeat(np.arange(first, first + width), children))
        first, width = first + width, int(children.sum())
    return Tree(np.concatenate(parents))


TOPOLOGY = Topology(name="generic", form=FORM, title="children of every node, level by level", build=build)
