"""Round trips between the nodes of a sample of pairs, of a small message and of a large one: which nodes are near each
other, and which are slower than their like. One rank on each node; while two of them are at it the others wait."""

from itertools import combinations

import numpy as np

from commodel.models.probes import PLAYER, Place, Plan, Probe, Schedule, Settings, Site

SMALL_SIZE = 8  # bytes
LARGE = 256 << 10  # at least
TRIPS = 8  # of the small message in a row: how far apart the two start counts little then
EACH = 8  # pairs that a node is in, at most
MOST_PAIRS = 4096  # pairs


def sampled(nodes: int) -> list[tuple[int, int]]:
    """All pairs of a few nodes; of more, each node with those that come 1, …, nodes / 2 places after it, at growing
    distances: nodes that are near each other mostly follow each other."""
    if nodes <= EACH + 1:
        return list(combinations(range(nodes), 2))
    kinds = max(min(EACH // 2, MOST_PAIRS // nodes), 1)
    steps = np.unique(np.geomspace(1, nodes // 2, kinds).round().astype(int)) if kinds > 1 else [1]
    pairs = {tuple(sorted((node, (node + int(step)) % nodes))) for step in steps for node in range(nodes)}
    return sorted(pairs)


def plan(site: Site, sizes: list[int]) -> Plan:
    place, groups = Place(site.nodes, "block:1"), site.levels.groups.values()
    order = np.lexsort([np.arange(site.nodes), *groups]).tolist()  # nodes of a group follow each other
    for one, two in ((order[one], order[two]) for one, two in (sampled(site.nodes) if site.nodes > 1 else ())):
        for size in (SMALL_SIZE, max(LARGE, *sizes)):
            trips = TRIPS if size == SMALL_SIZE else 1
            yield place, {"one": one, "two": two, "nodes": site.nodes, "trips": trips, "bytes": size}


def pattern(case: Settings) -> Schedule:
    one, two, steps = case["one"], case["two"], np.arange(2 * case["trips"])
    there = steps % 2 == 0
    src, dst = np.where(there, one, two), np.where(there, two, one)
    return Schedule.of(case["nodes"], steps, src, dst, case["bytes"], root=one)


PROBE = Probe(
    "nodepairs",
    "round trips between pairs of nodes",
    ("one", "two", "nodes", "trips", "bytes"),
    plan,
    program=PLAYER,
    optional=True,
    pattern=pattern,
)
