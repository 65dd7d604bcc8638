"""Round trips between a few pairs of nodes all over the machine, where its file names no levels: whether all nodes are
as far from each other as those that the other probes ran on.

Nodes 1, 2, 4, … places from each other, and half the machine: of nodes that hang on switches in their order, the last
of these are on different ones, whatever a switch holds. All of these are of the first type. Where there are several
types, a pair of every two of them is timed beside them.
"""

from commodel.models.probes import PLAYER, Place, Plan, Probe, Site, across
from commodel.models.probes.nodepairs import SMALL_SIZE, TRIPS, pattern

FEWEST_NODES = 4  # nodes
STARTS = 3  # pairs of each distance
OF_TYPES = 0  # the distance of pairs that are about the types of their nodes


def plan(site: Site, sizes: list[int]) -> Plan:
    if site.levels.groups:
        return
    nodes = list(site.members()[site.type_of(0)])
    timed = (
        [(step, nodes[one], nodes[two]) for step, one, two in pairs(len(nodes))] if len(nodes) >= FEWEST_NODES else []
    )
    timed += [(OF_TYPES, *place.where) for place in across(site)] if len(site.types) > 1 else []
    for step, one, two in timed:
        about = {"one": one, "two": two, "nodes": site.nodes, "step": step}
        for size, trips in dict.fromkeys(((SMALL_SIZE, TRIPS), (max(sizes), 1))):
            yield Place(site.nodes, "block:1"), {**about, "trips": trips, "bytes": size}


def pairs(count: int) -> list[tuple[int, int, int]]:
    """How far from each other, and the two nodes; the first two too, on which most probes run."""
    steps = {1 << power for power in range((count // 2).bit_length())} | {count // 2}
    begins = [(2 * part + 1) * count // (2 * STARTS) for part in range(STARTS)]
    ends = {(step, begin, (begin + step) % count) for step in steps for begin in begins} | {(1, 0, 1)}
    return sorted({(step, min(one, two), max(one, two)) for step, one, two in ends})


PROBE = Probe(
    "evenness",
    "round trips all over the machine",
    ("one", "two", "nodes", "step", "trips", "bytes"),
    plan,
    program=PLAYER,
    optional=True,
    pattern=pattern,
)
