"""Probes of round trips between two nodes: distance classes and slow nodes.

`distance` has a few pairs of every distance class, `evenness` pairs all over a machine without
named levels, and `nodepairs` a sample of all pairs.
"""

from itertools import combinations

import numpy as np

from commodel.hierarchy import NODE
from commodel.models.probes import (
    HEADER_BYTES,
    PLAYER,
    CasePlacement,
    Probe,
    ProbePlan,
    Settings,
    Site,
    list_powers_of_two,
    make_round_trip,
    place_on_node_pairs,
)
from commodel.patterns.schedule import Schedule

PAIRS_PER_CLASS = 3  # pairs of each distance class, or of each distance in nodes
MIN_DENSE_BYTES = 64  # smallest of the closely spaced sizes of `list_dense_sizes`
MIN_NODES = 4
TYPE_PAIRS_STEP = 0  # distance of the pairs that compare node types
SMALL_BYTES = 8  # bytes
LARGE_BYTES = 256 << 10  # minimum of the large message
SMALL_TRIPS = 8  # successive round trips of the small message, so that skew is negligible
MAX_LARGE_PAIRS_PER_NODE = 8  # of the large message, maximum
MAX_PAIRS = 4096  # of the small message: all pairs of 91 nodes
MAX_LARGE_PAIRS = 1024  # of the large message; one pair is measured after another


def plan_distance(site: Site, sizes: list[int]) -> ProbePlan:
    """Yield round trips at every distance class. One pair of each class has more sizes, to show
    protocol changes; if there are types of nodes, one of each two types, since a slow port hides
    them."""
    for distance, name in enumerate(site.levels.names):
        placements = (
            place_pairs_within_nodes(site)
            if name == NODE
            else place_pairs_at_distance(site, distance)
        )
        # The middle pair is the last one, and replaces others of the same types.
        by_types = {
            frozenset(map(site.find_type, placement.nodes)): placement
            for placement in [*placements, *placements[len(placements) // 2 :][:1]]
        }
        for placement in placements:
            dense_sizes = list_dense_sizes(max(sizes)) if placement in by_types.values() else ()
            yield from (
                (placement, {"apart": name, "bytes": size})
                for size in sorted({0, *sizes, *dense_sizes})
            )


def list_dense_sizes(largest: int) -> list[int]:
    """Return closely spaced sizes, which show protocol changes: powers of two, 1.5 times these, and
    powers of two minus a header."""
    below = [
        2 * power - HEADER_BYTES for power in list_powers_of_two(4 * HEADER_BYTES, largest // 2)
    ]
    return [
        *(
            size
            for power in list_powers_of_two(MIN_DENSE_BYTES, largest)
            for size in (power, 3 * power // 2)
            if size <= largest
        ),
        *below,
    ]


def place_pairs_within_nodes(site: Site) -> list[CasePlacement]:
    """Return two ranks of a node, on a few of the nodes."""
    nodes = [node for node in range(site.nodes) if site.count_cores(site.find_type(node)) > 1]
    return [
        CasePlacement(2, "block:2", (nodes[number],))
        for number in sorted(set(find_middles(len(nodes))))
    ]


def place_pairs_at_distance(site: Site, distance: int) -> list[CasePlacement]:
    """Return a few pairs of nodes at a distance, spread over the machine."""
    nodes, placements = np.arange(site.nodes), []
    for index, number in enumerate(sorted(set(find_middles(site.nodes)))):
        at_distance = nodes[site.levels.distance(number, nodes) == distance]
        if len(at_distance):
            placements.append(
                CasePlacement(
                    2, "block:1", (number, int(at_distance[find_middles(len(at_distance))[index]]))
                )
            )
    return list(dict.fromkeys(placements))


def find_middles(count: int) -> list[int]:
    """Return the middles of PAIRS_PER_CLASS equal parts of `count` places."""
    return (
        [(2 * part + 1) * count // (2 * PAIRS_PER_CLASS) for part in range(PAIRS_PER_CLASS)]
        if count
        else []
    )


def plan_uniformity(site: Site, sizes: list[int]) -> ProbePlan:
    """Yield round trips between nodes at distances 1, 2, 4, … and half the machine, in the order of
    the nodes.

    If nodes are ordered by switch, near and far pairs differ. Pairs of node types are included.
    """
    if site.levels.groups:
        return
    nodes = list(site.members()[site.find_type(0)])
    pairs = []
    if len(nodes) >= MIN_NODES:
        pairs = [
            (step, nodes[one], nodes[two]) for step, one, two in list_pairs_by_step(len(nodes))
        ]
    for placement in place_on_node_pairs(site) if len(site.types) > 1 else ():
        one, two = placement.nodes
        pairs.append((TYPE_PAIRS_STEP, one, two))
    for step, one, two in pairs:
        common = {"one": one, "two": two, "nodes": site.nodes, "step": step}
        for size, trips in dict.fromkeys(((SMALL_BYTES, SMALL_TRIPS), (max(sizes), 1))):
            yield CasePlacement(site.nodes, "block:1"), {**common, "trips": trips, "bytes": size}


def list_pairs_by_step(count: int) -> list[tuple[int, int, int]]:
    """Return the distance and the two nodes of each pair; the first two nodes, on which most probes
    run, are included."""
    distances = {1 << power for power in range((count // 2).bit_length())} | {count // 2}
    pairs = {
        (step, begin, (begin + step) % count) for step in distances for begin in find_middles(count)
    } | {(1, 0, 1)}
    return sorted({(step, min(one, two), max(one, two)) for step, one, two in pairs})


def plan_node_pairs(site: Site, sizes: list[int]) -> ProbePlan:
    """Yield round trips of a small message between all pairs of nodes, or a sample of them, and of
    a large message between a few pairs of each node. One rank runs on each node. Small messages of
    several pairs run at the same time; a large message runs alone."""
    placement, groups = CasePlacement(site.nodes, "block:1"), site.levels.groups.values()
    # nodes of a group follow each other
    order = np.lexsort([np.arange(site.nodes), *groups]).tolist()
    large = max(LARGE_BYTES, *sizes)
    small_pairs = sample_pairs(site.nodes, site.nodes, MAX_PAIRS) if site.nodes > 1 else []
    large_pairs = (
        sample_pairs(site.nodes, MAX_LARGE_PAIRS_PER_NODE, MAX_LARGE_PAIRS)
        if site.nodes > 1
        else []
    )
    for bytes, trips, pairs in ((SMALL_BYTES, SMALL_TRIPS, small_pairs), (large, 1, large_pairs)):
        for one, two in pairs:
            settings = {"one": order[one], "two": order[two], "nodes": site.nodes}
            yield (
                placement,
                {**settings, "trips": trips, "bytes": bytes, "alone": int(bytes == large)},
            )


def sample_pairs(nodes: int, per_node: int, max_pairs: int) -> list[tuple[int, int]]:
    """Return all pairs of nodes if there are few, else a sample.

    The sample pairs each node with the nodes at some distances after it. These distances grow
    geometrically from 1 to half the number of nodes. A node is in about `per_node` pairs. There are
    at most `max_pairs`, or one pair a node.
    """
    if nodes <= per_node + 1 and nodes * (nodes - 1) // 2 <= max_pairs:
        return list(combinations(range(nodes), 2))
    distance_count = max(min(per_node // 2, max_pairs // nodes), 1)
    distances = (
        np.unique(np.geomspace(1, nodes // 2, distance_count).round().astype(int))
        if distance_count > 1
        else [1]
    )
    ends = ((node, (node + int(step)) % nodes) for step in distances for node in range(nodes))
    return sorted({(min(one, two), max(one, two)) for one, two in ends})


def build_round_trips(case: Settings) -> Schedule:
    """Return the schedule of successive round trips between two ranks."""
    one, two, step = case["one"], case["two"], np.arange(2 * case["trips"])
    forward = step % 2 == 0
    src, dst = np.where(forward, one, two), np.where(forward, two, one)
    return Schedule.of(case["nodes"], step, src, dst, case["bytes"], root=one)


DISTANCE_PROBE = Probe(
    "distance",
    "round trips at each distance class",
    ("apart", "bytes"),
    plan_distance,
    program=PLAYER,
    pattern=lambda case: make_round_trip(case["bytes"]),
)
UNIFORMITY_PROBE = Probe(
    "evenness",
    "round trips between nodes across the machine, to check uniformity",
    ("one", "two", "nodes", "step", "trips", "bytes"),
    plan_uniformity,
    program=PLAYER,
    optional=True,
    pattern=build_round_trips,
)
NODE_PAIRS_PROBE = Probe(
    "nodepairs",
    "round trips between pairs of nodes",
    ("one", "two", "nodes", "trips", "bytes", "alone"),
    plan_node_pairs,
    optional=True,
    samples=8,
    pattern=build_round_trips,
)
