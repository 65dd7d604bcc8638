"""Round trips between nodes that are near and far: a few pairs of every distance class, spread over the machine. One of
them with more sizes, so that it is seen where protocols change."""

import numpy as np

from commodel.hierarchy import NODE
from commodel.models.probes import HEADER, PLAYER, Place, Plan, Probe, Schedule, Settings, Site, round_trip, steps

PAIRS = 3  # of a class
FROM = 64  # bytes: from there on a pair has every power of two, half as much again, and just below the next one


def plan(site: Site, sizes: list[int]) -> Plan:
    for apart, name in enumerate(site.levels.names):
        places = within(site) if name == NODE else pairs(site, apart)
        for place in places:
            densely = between(max(sizes)) if place == places[len(places) // 2] else ()
            yield from ((place, {"apart": name, "bytes": size}) for size in sorted({0, *sizes, *densely}))


def between(most: int) -> list[int]:
    just = [2 * power - HEADER for power in steps(4 * HEADER, most // 2)]
    return [*(size for power in steps(FROM, most) for size in (power, 3 * power // 2) if size <= most), *just]


def within(site: Site) -> list[Place]:
    """Two ranks of a node, on a few of the nodes."""
    nodes = [node for node in range(site.nodes) if site.cores_of(site.type_of(node)) > 1]
    return [Place(2, "block:2", (nodes[number],)) for number in _spread(len(nodes))]


def pairs(site: Site, apart: int) -> list[Place]:
    """The first node of each of a few pairs is anywhere on the machine, and so is the second among those that far."""
    nodes, places = np.arange(site.nodes), []
    for turn, number in enumerate(_spread(site.nodes)):
        others = nodes[site.levels.distance(number, nodes) == apart]
        if len(others):
            other = int(others[(2 * turn + 1) * len(others) // (2 * PAIRS)])
            places.append(Place(2, "block:1", (number, other)))
    return list(dict.fromkeys(places))


def _spread(count: int) -> list[int]:
    """The middles of as many equal parts."""
    return sorted({(2 * part + 1) * count // (2 * PAIRS) for part in range(PAIRS)}) if count else []


def pattern(case: Settings) -> Schedule:
    return round_trip(case["bytes"], case["bytes"])


PROBE = Probe("distance", "round trips near and far", ("apart", "bytes"), plan, program=PLAYER, pattern=pattern)
