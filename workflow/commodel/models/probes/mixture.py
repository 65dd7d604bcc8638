"""All nodes at once, each sends to another one, near or far as chance has it; then all ranks. Nothing is fitted to it;
what a family's prediction of it is off by tells what the family does not know of the network.

To the one half of the machine further, as in the widest step of many algorithms; and shuffled, always in the same ways.
And from node to node all around, passed on in several rounds: where messages wait for their receivers each round takes
as long as the farthest of them, and else only few ranks are held up by that one. Then from one node to a few others
and back, and two ranks alone: in a row to a receiver that takes one after the other, as in streams, and within a node
to and fro. If there are several types of nodes, the fan and the row are also probed between every two of them, in both
directions: a fast port serves several slow ones at a time, and a slow one is shared by several fast ones.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np

from commodel.models.keys import Pair
from commodel.models.probes import PLAYER, RUNG, Place, Plan, Probe, Schedule, Settings, Site
from commodel.models.probes.node_pairs import FEWEST_NODES

MOST_RANKS = 128  # ranks
SMALLEST_SIZE = 64  # bytes; shorter messages are never too many for a link
AROUND = 3  # the turn in which messages are passed on; of those before it all but the first are shuffled
IN_A_ROW, WITHIN, FAN = 4, 5, 6  # turns, too
ROUNDS = 8
OTHERS = 8  # nodes that one sends to
SHORT_BYTES = 64 << 10  # of longer messages one trip takes long enough to be timed


def plan(site: Site, sizes: list[int]) -> Plan:
    if site.nodes < 2:
        return
    for per_node in sorted({1, site.cores}) if site.nodes >= FEWEST_NODES else ():
        count = min(site.nodes, max(MOST_RANKS // per_node, 2))
        nodes = np.unique(np.linspace(0, site.nodes - 1, count).round().astype(int)).tolist()
        nodes = [node for node in nodes if site.cores_of(site.type_of(node)) >= per_node]
        place = Place(per_node * len(nodes), f"block:{per_node}", tuple(nodes))
        for turn in range((AROUND + (per_node == 1)) if len(nodes) > 1 else 0):
            about = {"turn": turn, "each": per_node, "procs": place.ranks}
            yield from ((place, {**about, "bytes": size}) for size in _rungs(max(sizes)))
    few = min(1 + OTHERS, len(site.members()[site.type_of(0)]))  # of one type
    alone = [(IN_A_ROW, Place(2, "block:1"))]
    alone += [(FAN, Place(few, "block:1"))] if few > 2 else []
    alone += [(WITHIN, Place(2, "block:2"))] if site.cores_of(site.type_of(0)) > 1 else []
    alone += list(_between_types(site))
    for turn, place in alone:
        about = {"turn": turn, "each": 1, "procs": place.ranks}
        yield from ((place, {**about, "bytes": size}) for size in _rungs(max(sizes)))


def _between_types(site: Site) -> Iterator[tuple[int, Place]]:
    """Yield the fans and rows whose ends are not both of the first type."""
    members = site.members()
    for hub, other in product(members, repeat=2):
        if hub == other == site.type_of(0):
            continue
        others = [node for node in members[other] if hub != other or node != members[hub][0]][:OTHERS]
        pair = str(Pair(hub, other))
        if others:
            yield IN_A_ROW, Place(2, "block:1", (members[hub][0], others[0]), pair)
        if len(others) > 1:
            yield FAN, Place(1 + len(others), "block:1", (members[hub][0], *others), pair)


def _rungs(size: int) -> Iterator[int]:
    while size >= SMALLEST_SIZE:
        yield size
        size //= RUNG


def pattern(case: Settings) -> Schedule:
    ranks = np.arange(case["procs"])
    if case["turn"] == IN_A_ROW:
        return Schedule.of(2, np.arange(ROUNDS), 0, 1, case["bytes"])
    if case["turn"] in (WITHIN, FAN):
        steps = np.arange(2 * ROUNDS if case["bytes"] <= SHORT_BYTES else 2).repeat(len(ranks) - 1)
        others = np.resize(ranks[1:], len(steps))
        ends = np.where(steps % 2, others, 0), np.where(steps % 2, 0, others)
        return Schedule.of(len(ranks), steps, *ends, case["bytes"], root=0)
    if case["turn"] == AROUND:
        rounds = np.repeat(np.arange(ROUNDS), len(ranks))
        src = np.tile(ranks, ROUNDS)
        return Schedule.of(len(ranks), rounds, src, (src + 1) % len(ranks), case["bytes"])
    if not case["turn"]:
        return Schedule.of(len(ranks), 0, ranks, (ranks + len(ranks) // 2) % len(ranks), case["bytes"])
    around = np.random.default_rng(case["turn"]).permutation(len(ranks))  # a cycle through all: nobody sends to itself
    return Schedule.of(len(ranks), 0, around, np.roll(around, 1), case["bytes"])


PROBE = Probe(
    "mixture",
    "messages of all nodes at once, of all ranks at once, and of a few",
    ("turn", "each", "procs", "bytes"),
    plan,
    program=PLAYER,
    optional=True,
    pattern=pattern,
)
