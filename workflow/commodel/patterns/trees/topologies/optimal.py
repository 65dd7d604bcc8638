"""The tree over which a broadcast is optimal for given L, o and g of LogP (Karp, Sahay, Santos and Schauser, SPAA
1993): a message is there L + 2·o after its start, and the next may start max(g, o) later. Times such as 5us, or
three numbers: only their ratios count."""

from fractions import Fraction

from commodel.errors import UserError
from commodel.patterns.arguments import before_nodes
from commodel.patterns.trees.soonest import soonest
from commodel.patterns.trees.topologies import Topology
from commodel.patterns.trees.tree import Tree
from commodel.units import bare_number, parse_number, parse_seconds

FORM = "optimal:L,o,g@NODES"


def build(text: str) -> Tree:
    written, nodes = before_nodes(text, FORM)
    times = written.split(",")
    if len(times) != 3:
        raise UserError(f"found 'optimal:{text}', wanted {FORM} with times such as 5us")
    alone = all(bare_number(time) is not None for time in times)
    L, o, g = (Fraction(str((parse_number if alone else parse_seconds)(time.strip()))) for time in times)
    if not L + 2 * o:
        raise UserError(f"found 'optimal:{text}', wanted L or o above 0")
    return soonest(nodes, L + 2 * o, max(g, o))


TOPOLOGY = Topology(name="optimal", form=FORM, title="optimal broadcast tree under LogP", build=build)
