"""The binomial tree B_K: 2^K nodes, half of them leaves; its root has the children B_(K-1), …, B_0."""

from commodel.errors import UserError
from commodel.patterns.arguments import whole_number
from commodel.patterns.trees.topologies import Topology
from commodel.patterns.trees.topologies.knomial import knomial
from commodel.patterns.trees.tree import Tree


def build(text: str) -> Tree:
    order = whole_number(text, "binomial:ORDER")
    if order > 24:
        raise UserError(f"found 'binomial:{text}', wanted an order up to 24")
    return knomial(2, 1 << order)


TOPOLOGY = Topology(name="binomial", form="binomial:ORDER", title="binomial tree of 2^ORDER nodes", build=build)
