"""Messages of so many nodes at once across the boundary of a group: what a network's levels hold, and how they share.

A boundary is crossed from a group to another one (`pair`), from a group to all others of the next larger group (`out`),
or by every group to the next one (`all`); that of a node by messages of one rank to several nodes (`out`), of several
nodes to one (`in`) or of every node to the next one (`all`), and what is behind it by ranks of a node that send to each
other (`inside`). `ways` 2: as many come back at the same time.

Four more cases tell what goes on where messages meet. `eager`: a rank sends to another one, which takes a long message
from a third one first; whoever does not wait for that sends early. `start`: a rank sends another a message, which
computes first; whether it takes the message at once then says if that was on its way meanwhile. `order`: a rank sends
another so many messages, and gets an answer to the first; whether it comes soon says if they go one after the other.
`against`: a rank sends one message while many come to it from others; how soon that is through says if what comes back
for it, as acknowledgements do, is held up among those.
And `stride` sends from a group to nodes so many numbers apart.
"""

from collections.abc import Iterator

import numpy as np

from commodel.hierarchy import NODE
from commodel.models.probes import (
    HEADER,
    PLAYER,
    Place,
    Plan,
    Probe,
    Schedule,
    Settings,
    Site,
    list_counts,
    list_powers_of_two,
)
from commodel.patterns.rank_local_steps import rank_local
from commodel.patterns.schedule import Work
from commodel.stats import evenly

MOST_FLOWS = 64  # flows
TAKEN_FIRST = 1 << 20  # bytes: what a receiver takes first
EAGER = 1 << 10, 1 << 18  # bytes between which limits of eager messages lie
IN_A_ROW_BYTES, IN_A_ROW = 4096, 32  # how long, and how many, are sent in a row
AGAINST = 8  # messages that one goes against
TINY = 1  # bytes: what it takes is no matter of the line
SHORTEST_HELD = 1024  # bytes of the shortest of which it is seen what a line holds of them
STRIDES = 4, 6, 8, 12  # multiples of the numbers of links that switches have
COMPUTES = 2e-3  # seconds, before a rank takes a message
MEANWHILE = 256  # bytes of the shortest one
Crossing = tuple[int, int, tuple[int, ...]]  # flows, how many ranks further they go, and the nodes of the ranks


def plan(site: Site, sizes: list[int]) -> Plan:
    size = max(sizes)

    def cases(
        level: str, how: str, flows: int, place: Place, step: int = 1, ways: tuple[int, ...] = (1, 2), bytes: int = size
    ) -> Plan:
        about = {"level": level, "how": how, "procs": place.ranks, "flows": flows, "step": step, "bytes": bytes}
        return [(place, {**about, "ways": count}) for count in ways]

    for ranks in list_counts(site.cores)[1:]:
        if roomy := [node for node in range(site.nodes) if site.cores_of(site.type_of(node)) >= ranks]:
            place = Place(ranks, f"block:{ranks}", (roomy[len(roomy) // 2],))
            shorter = [length for length in sizes if IN_A_ROW_BYTES <= length < size]  # they stay in caches
            for length in (size, *(shorter if ranks == site.cores else ())):
                yield from cases(NODE, "inside", ranks, place, ways=(1,), bytes=length)
    ports = dict(_ports(site))
    for flows, where in ports.items():
        yield from cases(NODE, "out", flows, Place(len(where), "block:1", where))
    medium = [
        length
        for power in list_powers_of_two(SHORTEST_HELD, size)
        for length in (power, 2 * power - HEADER)
        if length < size
    ]
    medium = [TINY, *medium] if medium else []
    if (most := max(ports, default=1)) > 1:
        place = Place(len(ports[most]), "block:1", ports[most])
        far = Place(most + 1, "block:1", _far(site, most))
        for length in (*medium, size):
            yield from cases(NODE, "in", most, far, ways=(1,), bytes=length)
        for length in medium:
            yield from cases(NODE, "out", most, place, ways=(1,), bytes=length)
    if 2 in ports:
        for limit in _limits(size):
            yield from cases(NODE, "eager", 1, Place(3, "block:1", ports[2]), ways=(1,), bytes=limit)
        yield from cases(NODE, "against", AGAINST, place, ways=(1,))
    if 1 in ports:
        for limit in sorted({min(size, MEANWHILE), *_limits(size)}):
            yield from cases(NODE, "start", 1, Place(2, "block:1", ports[1]), ways=(1,), bytes=limit)
    for flows, step, where in _all(site, 1):
        if flows > 2:
            yield from cases(NODE, "all", flows, Place(len(where), "block:1", where), step, ways=(1,))
    if 1 in ports and size >= IN_A_ROW_BYTES:
        yield from cases(NODE, "order", IN_A_ROW, Place(2, "block:1", ports[1]), ways=(1,), bytes=IN_A_ROW_BYTES)
    for apart, name in enumerate(site.levels.groups, 2):
        for flows, stride, where in _strided(site, apart):
            yield from cases(name, "stride", flows, Place(len(where), "block:1", where), stride, ways=(1,))
        for how, of in (("pair", _pairs), ("out", _out), ("all", _all)):
            crossings = list(of(site, apart))
            for flows, step, where in crossings:
                yield from cases(name, how, flows, Place(len(where), "block:1", where), step)
            for flows, step, where in crossings[-1:] if crossings and crossings[-1][0] > 1 else ():
                for length in medium:
                    yield from cases(name, how, flows, Place(len(where), "block:1", where), step, (1,), length)


def _limits(most: int) -> Iterator[int]:
    """Of each power of two itself, half as much again, and just below the next one."""
    low, high = EAGER
    for power in list_powers_of_two(low, min(most, high)):
        yield from (power, 3 * power // 2, 2 * power - HEADER)


def _ports(site: Site) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield a node in the middle, and several that are as near as any."""
    node, nodes = site.nodes // 2, np.arange(site.nodes)
    near = nodes[np.argsort(site.levels.distance(node, nodes), kind="stable")][1:9]
    for flows in _powers(len(near)):
        yield flows, (node, *near[:flows].tolist())


def _far(site: Site, several: int) -> tuple[int, ...]:
    """Return a node in the middle, and several all over those that are as far as any."""
    node, nodes = site.nodes // 2, np.arange(site.nodes)
    apart = site.levels.distance(node, nodes)
    others = nodes[(nodes != node) & (apart == apart.max())]
    chosen = others[evenly(len(others), several)]
    near = [int(other) for other in nodes if other != node and other not in chosen]  # where too few are as far
    return (node, *chosen.tolist(), *near[: several - len(chosen)])


def _powers(most: int) -> list[int]:
    return sorted({1 << power for power in range(most.bit_length())} | {most}) if most else []


def _siblings(site: Site, apart: int) -> list[list[np.ndarray]]:
    """Return the groups whose boundary is crossed by messages of this class, as nodes, by the next larger group."""
    columns = [np.arange(site.nodes), *site.levels.columns, np.zeros(site.nodes, dtype=int)]
    inner, outer = columns[apart - 1], columns[apart]
    parents = [np.unique(inner[outer == parent]) for parent in np.unique(outer)]
    groups = [[np.flatnonzero(inner == group) for group in parent] for parent in parents]
    return [parent for parent in groups if len(parent) > 1]


def _pairs(site: Site, apart: int) -> Iterator[Crossing]:
    """Two groups, once near the beginning of the machine and once near its end."""
    parents = _siblings(site, apart)
    places = {(0, 0, len(parents[0]) // 2), (len(parents) - 1, 0, len(parents[-1]) - 1)} if parents else ()
    for number, first, second in sorted(places):
        senders, receivers = parents[number][first], parents[number][second]
        for flows in _powers(min(len(senders), len(receivers), MOST_FLOWS)):
            yield flows, 1, (*senders[:flows].tolist(), *receivers[:flows].tolist())


def _out(site: Site, apart: int) -> Iterator[Crossing]:
    """Yield all nodes of a group, each to a node of another group, the groups and the places in them in turn: where a
    receiver's place tells which link a message takes, all are taken."""
    for parent in _siblings(site, apart)[:1]:
        senders, others = parent[len(parent) // 2], [g for n, g in enumerate(parent) if n != len(parent) // 2]
        flows = min(len(senders), *map(len, others), MOST_FLOWS)
        receivers = [int(others[flow % len(others)][flow]) for flow in range(flows)]
        yield flows, 1, (*senders[:flows].tolist(), *receivers)


def _strided(site: Site, apart: int) -> Iterator[Crossing]:
    """Nodes of a group to others whose numbers leave the same remainder: where that tells which of several links a
    message takes, all take the same."""
    for parent in _siblings(site, apart)[:1]:
        senders = parent[len(parent) // 2]
        others = np.concatenate([group for number, group in enumerate(parent) if number != len(parent) // 2])
        for stride in STRIDES:
            alike = others[others % stride == others[0] % stride][: min(len(senders), 8)]
            if len(alike) > 2:
                yield len(alike), stride, (*senders[: len(alike)].tolist(), *alike.tolist())


def _all(site: Site, apart: int) -> Iterator[Crossing]:
    """As many nodes of each group of the first larger one, each to a node of the next group; of single nodes at most
    MOST_FLOWS."""
    for groups in _siblings(site, apart)[:1]:
        groups = groups[:MOST_FLOWS] if apart == 1 else groups
        alike = min(map(len, groups))
        yield alike * len(groups), alike, tuple(int(node) for group in groups for node in group[:alike])


def pattern(case: Settings) -> Schedule:
    flows, ranks = np.arange(case["flows"]), case["procs"]
    if case["how"] == "eager":
        return rank_local(3, [2, 0], [1, 1], [TAKEN_FIRST, case["bytes"]], 0, 0, [0, 1], [0, 1], root=0)
    if case["how"] == "start":
        work = Work.compute(0, np.array([1]), np.array([0.0, COMPUTES]))
        return rank_local(2, 0, 1, case["bytes"], 0, 0, 1, 1, work=work, root=1)
    if case["how"] == "order":
        sent, rest = np.zeros(len(flows), dtype=int), np.minimum(flows, 1)
        src, dst, bytes = ([*column, last] for column, last in ((sent, 1), (sent + 1, 0), (sent + case["bytes"], 0)))
        ends = [*sent, 1], [*sent + 1, 1], [*sent, 1], [*rest, 1]
        return rank_local(2, src, dst, bytes, *ends, root=0)
    if case["how"] == "against":
        src, dst = [*(1 + flows % (ranks - 2)), 0], [*(0 * flows), ranks - 1]
        return Schedule.of(ranks, 0, src, dst, case["bytes"], root=ranks - 1)
    if case["how"] in ("inside", "all"):
        src, dst = flows, (flows + case["step"]) % ranks
    elif case["how"] == "in":
        src, dst = 1 + flows, 0 * flows
    elif case["level"] == NODE:
        src, dst = 0 * flows, 1 + flows
    else:
        src, dst = flows, len(flows) + flows
    if case["ways"] == 2:
        src, dst = np.concatenate([src, dst]), np.concatenate([dst, src])
    return Schedule.of(ranks, 0, src, dst, case["bytes"])


COLUMNS = ("level", "how", "procs", "flows", "step", "ways", "bytes")
PROBE = Probe("capacity", "what a boundary holds", COLUMNS, plan, program=PLAYER, optional=True, pattern=pattern)
