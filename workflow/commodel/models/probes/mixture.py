"""All nodes at once, each sends to another one, near or far as chance has it; then all ranks. Nothing is fitted to it;
what a family's price of it is off by tells what the family does not know of the network.

To the one half of the machine further, as in the widest step of many algorithms; and shuffled, always in the same ways.
And from node to node all around, passed on in several rounds: where messages wait for their receivers each round takes
as long as the farthest of them, and else only few ranks are held up by that one. At last one after the other from the
first of a few nodes to the last: where they wait for their receivers none is under way before the last one is there.
"""

from collections.abc import Iterator

import numpy as np

from commodel.models.probes import PLAYER, RUNG, Place, Plan, Probe, Schedule, Settings, Site
from commodel.models.probes.evenness import FEWEST_NODES
from commodel.stats import evenly

MOST_RANKS = 128  # ranks
SMALLEST_SIZE = 64  # bytes; shorter messages are never too many for a link
AROUND, CHAIN = 3, 4  # turns in which messages are passed on; of those before them all but the first are shuffled
ROUNDS = 8
LINKED = 4  # nodes of the chain


def plan(site: Site, sizes: list[int]) -> Plan:
    if site.nodes < FEWEST_NODES:
        return
    for per_node in sorted({1, site.cores}):
        nodes = evenly(site.nodes, max(MOST_RANKS // per_node, 2))
        nodes = [node for node in nodes if site.cores_of(site.type_of(node)) >= per_node]
        place = Place(per_node * len(nodes), f"block:{per_node}", tuple(nodes))
        for turn in range((CHAIN + 1 if per_node == 1 else AROUND) if len(nodes) > 1 else 0):
            about = {"turn": turn, "each": per_node, "procs": place.ranks}
            yield from ((place, {**about, "bytes": size}) for size in _rungs(max(sizes)))


def _rungs(size: int) -> Iterator[int]:
    while size >= SMALLEST_SIZE:
        yield size
        size //= RUNG


def pattern(case: Settings) -> Schedule:
    ranks = np.arange(case["procs"])
    if case["turn"] == CHAIN:
        linked = np.unique(np.linspace(0, len(ranks) - 1, LINKED).astype(int))
        number, place = np.divmod(np.arange(ROUNDS * (len(linked) - 1)), len(linked) - 1)
        return Schedule.of(len(ranks), number + place, linked[place], linked[place + 1], case["bytes"])
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
    "all nodes at once, each to another one, and all ranks",
    ("turn", "each", "procs", "bytes"),
    plan,
    program=PLAYER,
    optional=True,
    pattern=pattern,
)
