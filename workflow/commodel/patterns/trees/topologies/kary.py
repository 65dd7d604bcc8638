"""Every inner node has K children, every leaf is H levels down: kary:2^4 is the full binary tree with 16 leaves."""

from commodel.errors import UserError
from commodel.patterns.arguments import whole_numbers
from commodel.patterns.trees.topologies import Topology
from commodel.patterns.trees.tree import Tree, by_levels

FORM = "kary:FANOUT^HEIGHT"


def build(text: str) -> Tree:
    numbers = whole_numbers(text, "^", FORM)
    if len(numbers) != 2:
        raise UserError(f"found 'kary:{text}', wanted {FORM}")
    if numbers[1] > 64 * (numbers[0] == 1) + 24:
        raise UserError(f"found 'kary:{text}', wanted {FORM} of a tree that fits in memory")
    return by_levels([numbers[0]] * numbers[1])


TOPOLOGY = Topology(name="kary", form=FORM, title="full tree of one fan-out", build=build)
