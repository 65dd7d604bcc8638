"""Figure 4: a balanced tree and an unbalanced one with 16 back-ends, and what LogP says of a broadcast over them."""

import numpy as np

from commodel.patterns.algorithms import over_tree
from commodel.patterns.trees.tree import Tree
from commodel.price.papers import Figure, Numbers, Row, exact, price
from commodel.price.stack import ENDLESS

g, o, L = 10e-6, 4e-6, 20e-6  # the paper leaves them open; of any with g above o the terms can be told apart
BALANCED = Tree(np.array([-1, *[0] * 4, *(1 + leaf // 4 for leaf in range(16))]))
# A binomial tree of four nodes, 0 to 3, and four back-ends at each: the root has six children.
UNBALANCED = Tree(np.array([-1, 0, 0, 1, *(leaf // 4 for leaf in range(16))]))


def topologies() -> Figure:
    logp = exact("logp", {"L": L, "o": o, "g": g})
    trees = {"balanced": (BALANCED, 8 * g + 4 * o + 2 * L, 4 * g), "unbalanced": (UNBALANCED, float("nan"), 6 * g)}
    casts = {name: over_tree("bcast").build(tree, 1) for name, (tree, _, _) in trees.items()}
    single = [Row((name,), printed, (price(logp, casts[name]),)) for name, (_, printed, _) in trees.items()]
    stream = [Row((name,), least, (price(logp, casts[name], ENDLESS),)) for name, (_, _, least) in trees.items()]
    about, values = ("tree",), f"with g = {g * 1e6:g}, o = {o * 1e6:g} and L = {L * 1e6:g} µs"
    return Figure(
        "Figure 4",
        "balanced or not, by LogP",
        "A broadcast to 16 back-ends over a tree with four children a node, and over a binomial tree of four nodes "
        "with four back-ends each. The paper has formulas and no values.",
        "the paper counts a gap after the last child of either level as well, 8·g, and LogP's last child is sent to "
        "after three: 6·g.",
        (
            Numbers("One broadcast", about, ("priced",), f"8·g + 4·o + 2·L, {values}", tuple(single)),
            Numbers("Between two broadcasts", about, ("priced",), f"4·g and at least 6·g, {values}", tuple(stream)),
        ),
    )
