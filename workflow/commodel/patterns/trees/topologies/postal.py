"""The optimal broadcast tree of the postal model: a message is there LAMBDA units after its start, and a node starts
one each unit (Bar-Noy and Kipnis, SPAA 1992). LAMBDA 1 makes it binomial, and 2 grow like Fibonacci's numbers."""

from fractions import Fraction

from commodel.errors import UserError
from commodel.patterns.arguments import before_nodes
from commodel.patterns.trees.soonest import soonest
from commodel.patterns.trees.topologies import Topology
from commodel.patterns.trees.tree import Tree
from commodel.units import parse_number

FORM = "postal:LAMBDA@NODES"


def build(text: str) -> Tree:
    written, nodes = before_nodes(text, FORM)
    latency = Fraction(str(parse_number(written)))
    if latency < 1:
        raise UserError(f"found 'postal:{text}', wanted {FORM} with a LAMBDA of 1 or more")
    return soonest(nodes, latency, Fraction(1))


TOPOLOGY = Topology(name="postal", form=FORM, title="optimal broadcast tree of the postal model", build=build)
