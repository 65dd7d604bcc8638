"""A message from one rank to one or two others, and an empty answer from each: what LMO tells a processor's part from
the network's by. On every type of node in turn."""

from commodel.models.keys import SAME, Pair
from commodel.models.probes import BETWEEN, Place, Plan, Probe, Site, across, farther
from commodel.models.probes.fan import COLUMNS, pattern


def plan(site: Site, sizes: list[int]) -> Plan:
    about = {"direction": "round", "how": "isend", "answer": 0}
    for first, nodes in site.members().items():
        far = [Place(3, "block:1", where, str(Pair(first, first))) for where in farther(site, 2)]
        for place in (*triplets(site, first, nodes), *far):
            for n in (1, 2):
                yield from ((place, {"n": n, "bytes": size, **about}) for size in sorted({0, *sizes}))


def triplets(site: Site, first: str, nodes: range) -> list[Place]:
    """Three ranks whose root sits on a node of the type: three nodes where there are, else one."""
    if len(nodes) >= 3:
        return [Place(3, "block:1", tuple(nodes[:3]), str(Pair(first, first)))]
    if site.cores >= 3:
        return [Place(3, "block:3", (nodes[0],), str(Pair(first, SAME)))]
    others = [node for node in range(site.nodes) if node not in nodes][:2]
    if len(others) == 2 and across(site):
        return [Place(3, "block:1", (nodes[0], *others), str(Pair(first, site.type_of(others[0]))))]
    return []


TITLE = "one-to-two round trips"
PROBE = Probe("triplet", TITLE, COLUMNS, plan, program="fan", optional=True, pattern=pattern, classes=BETWEEN)
