"""Probe `capacity`: concurrent messages across the boundary of a node or group, which show the
capacity of each level.

Boundaries are crossed from one group to another (`pair`), from a group to all others of the next
larger group (`out`), or by every group to the next one (`all`). In cases `each`, one group sends to
all others. The boundary of a node is crossed from one rank to several near nodes (`out`) or to
nodes at the largest distance (`far`), from the ranks of a node to those of another (`pair`), from
several nodes to one (`in`), or from every node to the next one (`all`). Within a node, its ranks
send to each other (`inside`). With `ways` 2, as many messages go in the opposite direction.

Further cases show how concurrent messages are treated:

- `eager`: a rank sends to another, which takes a long message of a third one first. A sender that
  does not wait sends eagerly.
- `start`: a rank sends to another, which computes first. If it then takes the message at once, the
  message was in flight meanwhile.
- `order`: a rank sends many messages to another, and gets a reply to the first. An early reply
  shows that messages go one after the other.
- `unequal`: a rank sends to a near node and to a distant one. Equal shares delay the near message
  more than shares that depend on latency, unless the near one is done before the distant one has
  reached the port.
- `against`: a rank sends one message while it receives many. Its delay shows whether
  acknowledgements are slowed down by messages in their direction.
- `stride`: a group sends to nodes with equal distances of their numbers, which may use the same of
  several links.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from commodel.hierarchy import NODE
from commodel.models.probes import (
    HEADER_BYTES,
    PLAYER,
    CasePlacement,
    Probe,
    ProbePlan,
    Schedule,
    Settings,
    Site,
    list_counts,
    list_powers_of_two,
)
from commodel.patterns.rank_local_steps import make_rank_local_schedule
from commodel.patterns.schedule import Work
from commodel.stats import select_evenly

MAX_GROUPS = 128  # groups of a level; with more, single groups are not compared
MAX_FLOWS = 64  # concurrent messages
FIRST_RECEIVED_BYTES = 1 << 20  # bytes of the message that a receiver takes first
EAGER_RANGE = 1 << 10, 1 << 18  # bytes: range of the limits of eager messages
SUCCESSIVE_BYTES, SUCCESSIVE_MESSAGES = 4096, 32  # size and number of messages in a row
OPPOSITE_MESSAGES = 8  # messages in the direction opposite to a single message
TINY_BYTES = 1  # bytes: its time does not depend on the link
MIN_CAPACITY_BYTES = 1024  # smallest message for which capacities are measured
STRIDE_FACTORS = 4, 6, 8, 12  # multiples of usual numbers of parallel links
MAX_PORT_FLOWS = 8  # nodes with which the rank of a node communicates at a time
MAX_DISTANT_NODES = 3  # distant nodes of cases `unequal`
COMPUTE_SECONDS = 2e-3  # computation of a rank before it receives a message
MIN_START_BYTES = 256  # smallest message of case `start`
BOTH_WAYS = 1, 2  # messages in one direction, and in both


class Crossing(NamedTuple):
    """Messages from some nodes to others."""

    flows: int  # number of messages
    nodes: tuple[int, ...]  # of the ranks
    step: int = 1  # distance of sender and receiver in ranks; of `stride`: of the receivers' nodes


def plan(site: Site, sizes: list[int]) -> ProbePlan:
    size = max(sizes)

    def cases(
        level: str,
        how: str,
        crossing: Crossing,
        bytes: int = size,
        per_node: int = 1,
        directions: tuple[int, ...] = (1,),
    ) -> ProbePlan:
        placement = CasePlacement(
            per_node * len(crossing.nodes), f"block:{per_node}", crossing.nodes
        )
        common = {"level": level, "how": how, "procs": placement.ranks, "flows": crossing.flows}
        common |= {"step": crossing.step, "bytes": bytes}
        return [(placement, {**common, "ways": count}) for count in directions]

    for ranks in list_counts(site.cores)[1:]:
        large_nodes = [
            node for node in range(site.nodes) if site.count_cores(site.find_type(node)) >= ranks
        ]
        if large_nodes:
            within_node = Crossing(ranks, (large_nodes[len(large_nodes) // 2],))
            # they fit into caches
            shorter = [length for length in sizes if SUCCESSIVE_BYTES <= length < size]
            for length in (size, *(shorter if ranks == site.cores else ())):
                yield from cases(NODE, "inside", within_node, length, ranks)
    ports = {crossing.flows: crossing for crossing in _choose_port_nodes(site)}
    for crossing in ports.values():
        yield from cases(NODE, "out", crossing, directions=BOTH_WAYS)
    medium = [
        length
        for power in list_powers_of_two(MIN_CAPACITY_BYTES, size)[:: site.thinning]
        for length in (power, 2 * power - HEADER_BYTES)
        if length < size
    ]
    medium = [TINY_BYTES, *medium] if medium else []
    largest = max(ports, default=1)
    if largest > 1:
        farthest = _pair_farthest(site, min(MAX_PORT_FLOWS, site.nodes - 1))
        for length in (*medium, size):
            yield from cases(NODE, "in", farthest, length)
        for length in medium:
            yield from cases(NODE, "out", ports[largest], length)
        for length in (*medium, size) if site.levels.groups else ():
            yield from cases(NODE, "far", farthest, length)
        for distant in farthest.nodes[1 : 1 + MAX_DISTANT_NODES] if site.levels.groups else ():
            for length in (*medium, size) if distant == farthest.nodes[1] else (size,):
                yield from cases(NODE, "unequal", Crossing(1, (*ports[1].nodes, distant)), length)
    if (
        1 in ports
        and (ranks := min(map(site.count_cores, map(site.find_type, ports[1].nodes)))) > 1
    ):
        for length in (*medium, size):
            yield from cases(NODE, "pair", Crossing(ranks, ports[1].nodes), length, ranks)
    if 2 in ports:
        for limit in _list_eager_limits(size):
            yield from cases(NODE, "eager", Crossing(1, ports[2].nodes), limit)
        yield from cases(NODE, "against", Crossing(OPPOSITE_MESSAGES, ports[largest].nodes))
    if 1 in ports:
        for limit in sorted({min(size, MIN_START_BYTES), *_list_eager_limits(size)}):
            yield from cases(NODE, "start", ports[1], limit)
    for crossing in _pair_all_groups(site, 1):
        if crossing.flows > 2:
            yield from cases(NODE, "all", crossing)
    if 1 in ports and size >= SUCCESSIVE_BYTES:
        yield from cases(
            NODE, "order", Crossing(SUCCESSIVE_MESSAGES, ports[1].nodes), SUCCESSIVE_BYTES
        )
    for distance, name in enumerate(site.levels.groups, 2):
        for how, list_crossings in (("stride", _pair_same_remainder), ("each", _pair_each_group)):
            for crossing in list_crossings(site, distance):
                yield from cases(name, how, crossing)
        for how, list_crossings in (
            ("pair", _pair_two_groups),
            ("out", _pair_one_group),
            ("all", _pair_all_groups),
        ):
            crossings = list(list_crossings(site, distance))
            for crossing in crossings:
                yield from cases(name, how, crossing, directions=BOTH_WAYS)
            for crossing in crossings[-1:]:
                for length in medium if crossing.flows > 1 else ():
                    yield from cases(name, how, crossing, length)


def _list_eager_limits(largest: int) -> Iterator[int]:
    """Yield each power of two, one and a half times that, and just below the next power."""
    low, high = EAGER_RANGE
    for power in list_powers_of_two(low, min(largest, high)):
        yield from (power, 3 * power // 2, 2 * power - HEADER_BYTES)


def _choose_port_nodes(site: Site) -> Iterator[Crossing]:
    """Yield a node in the middle, and several at the smallest distance; if there is only one, the
    nearest ones."""
    node, nodes = site.nodes // 2, np.arange(site.nodes)
    distances = site.levels.distance(node, nodes)
    neighbours = nodes[np.argsort(distances, kind="stable")][1 : 1 + MAX_PORT_FLOWS]
    nearest = (
        neighbours[distances[neighbours] == distances[neighbours].min()]
        if len(neighbours)
        else neighbours
    )
    neighbours = nearest if len(nearest) > 1 else neighbours
    for flows in _list_powers(len(neighbours)):
        yield Crossing(flows, (node, *neighbours[:flows].tolist()))


def _pair_farthest(site: Site, count: int) -> Crossing:
    """Return a node in the middle, and `count` nodes spread over those at the largest distance."""
    node, nodes = site.nodes // 2, np.arange(site.nodes)
    distances = site.levels.distance(node, nodes)
    farthest = nodes[(nodes != node) & (distances == distances.max())]
    chosen = farthest[select_evenly(len(farthest), count)]
    # if too few nodes are at the largest distance
    nearer = [other for other in nodes.tolist() if other != node and other not in chosen]
    return Crossing(count, (node, *chosen.tolist(), *nearer[: count - len(chosen)]))


def _list_powers(largest: int) -> list[int]:
    """Return powers of two up to `largest`, and `largest`."""
    return (
        sorted({1 << power for power in range(largest.bit_length())} | {largest}) if largest else []
    )


def _list_sibling_groups(site: Site, distance: int) -> list[list[np.ndarray]]:
    """Return the groups whose boundary is crossed by messages of this distance, as nodes, by the
    next larger group."""
    columns = [np.arange(site.nodes), *site.levels.columns, np.zeros(site.nodes, dtype=int)]
    inner, outer = columns[distance - 1], columns[distance]
    parents = [np.unique(inner[outer == parent]) for parent in np.unique(outer)]
    groups = [[np.flatnonzero(inner == group) for group in parent] for parent in parents]
    return [parent for parent in groups if len(parent) > 1]


def _split_middle(groups: list[np.ndarray]) -> list[np.ndarray]:
    """Return the middle group, and then all others."""
    middle = len(groups) // 2
    return [groups[middle], *groups[:middle], *groups[middle + 1 :]]


def _pair_two_groups(site: Site, distance: int) -> Iterator[Crossing]:
    """Yield two groups, near the beginning of the machine and near its end."""
    parents = _list_sibling_groups(site, distance)
    group_pairs = (
        {(0, 0, len(parents[0]) // 2), (len(parents) - 1, 0, len(parents[-1]) - 1)}
        if parents
        else ()
    )
    for number, first, second in sorted(group_pairs):
        senders, receivers = parents[number][first], parents[number][second]
        for flows in _list_powers(min(len(senders), len(receivers), MAX_FLOWS)):
            yield Crossing(flows, (*senders[:flows].tolist(), *receivers[:flows].tolist()))


def _pair_one_group(site: Site, distance: int) -> Iterator[Crossing]:
    """Yield all nodes of a group, each with a node of another group.

    Groups and places in them alternate, so that all links are used if a receiver's place selects
    the link.
    """
    for parent in _list_sibling_groups(site, distance)[:1]:
        senders, *other_groups = _split_middle(parent)
        flows = min(len(senders), *map(len, other_groups), MAX_FLOWS)
        receivers = [int(other_groups[flow % len(other_groups)][flow]) for flow in range(flows)]
        yield Crossing(flows, (*senders[:flows].tolist(), *receivers))


def _pair_each_group(site: Site, distance: int) -> Iterator[Crossing]:
    """Yield the nodes of each group, each with a node of another group, if there are not too many
    groups.

    Receivers are of the senders' type if there are enough of them, so that a slower type does not
    hide the link.
    """
    parents = _list_sibling_groups(site, distance)
    if sum(map(len, parents)) > MAX_GROUPS:
        return
    for parent in parents:
        for number, senders in enumerate(parent):
            other_nodes = np.concatenate([*parent[number + 1 :], *parent[:number]])
            flows = min(len(senders), len(other_nodes), MAX_FLOWS)
            sender_type = site.members()[site.find_type(int(senders[0]))]
            same_type = other_nodes[np.isin(other_nodes, sender_type)]
            other_nodes = same_type if len(same_type) >= flows else other_nodes
            if flows > 1:
                receivers = other_nodes[select_evenly(len(other_nodes), flows)]
                yield Crossing(flows, (*senders[:flows].tolist(), *receivers.tolist()))


def _pair_same_remainder(site: Site, distance: int) -> Iterator[Crossing]:
    """Yield nodes of a group with others whose numbers have the same remainder.

    If the remainder selects one of several links, all messages use the same one.
    """
    for parent in _list_sibling_groups(site, distance)[:1]:
        senders, *other_groups = _split_middle(parent)
        other_nodes = np.concatenate(other_groups)
        for stride in STRIDE_FACTORS:
            receivers = other_nodes[other_nodes % stride == other_nodes[0] % stride][
                : min(len(senders), 8)
            ]
            flows = len(receivers)
            if flows > 2:
                yield Crossing(flows, (*senders[:flows].tolist(), *receivers.tolist()), stride)


def _pair_all_groups(site: Site, distance: int) -> Iterator[Crossing]:
    """Yield equally many nodes of each group, each with a node of the next group; of single nodes
    at most MAX_FLOWS."""
    for groups in _list_sibling_groups(site, distance)[:1]:
        groups = groups[:MAX_FLOWS] if distance == 1 else groups
        per_group = min(map(len, groups))
        nodes = tuple(int(node) for group in groups for node in group[:per_group])
        yield Crossing(len(nodes), nodes, per_group)


def make_pattern(case: Settings) -> Schedule:
    """Return the schedule of a case."""
    flows, ranks = np.arange(case["flows"]), case["procs"]
    if case["how"] == "eager":
        return make_rank_local_schedule(
            3, [2, 0], [1, 1], [FIRST_RECEIVED_BYTES, case["bytes"]], 0, 0, [0, 1], [0, 1], root=0
        )
    if case["how"] == "start":
        work = Work.compute(0, np.array([1]), np.array([0.0, COMPUTE_SECONDS]))
        return make_rank_local_schedule(2, 0, 1, case["bytes"], 0, 0, 1, 1, work=work, root=1)
    if case["how"] == "order":
        zeros, second_ends = np.zeros(len(flows), dtype=int), np.minimum(flows, 1)
        src, dst, bytes = (
            [*column, last]
            for column, last in ((zeros, 1), (zeros + 1, 0), (zeros + case["bytes"], 0))
        )
        steps = [*zeros, 1], [*zeros + 1, 1], [*zeros, 1], [*second_ends, 1]
        return make_rank_local_schedule(2, src, dst, bytes, *steps, root=0)
    if case["how"] == "unequal":
        return Schedule.of(3, 0, [0, 0], [1, 2], case["bytes"], root=1)
    if case["how"] == "against":
        src, dst = [*(1 + flows % (ranks - 2)), 0], [*(0 * flows), ranks - 1]
        return Schedule.of(ranks, 0, src, dst, case["bytes"], root=ranks - 1)
    if case["how"] in ("inside", "all"):
        senders, receivers = flows, (flows + case["step"]) % ranks
    elif case["how"] == "in":
        senders, receivers = 1 + flows, 0 * flows
    elif case["level"] == NODE and case["how"] != "pair":
        senders, receivers = 0 * flows, 1 + flows
    else:
        senders, receivers = flows, len(flows) + flows
    if case["ways"] == 2:
        senders, receivers = (
            np.concatenate([senders, receivers]),
            np.concatenate([receivers, senders]),
        )
    return Schedule.of(ranks, 0, senders, receivers, case["bytes"])


COLUMNS = ("level", "how", "procs", "flows", "step", "ways", "bytes")
PROBE = Probe(
    "capacity",
    "capacity of a boundary",
    COLUMNS,
    plan,
    program=PLAYER,
    optional=True,
    pattern=make_pattern,
)
