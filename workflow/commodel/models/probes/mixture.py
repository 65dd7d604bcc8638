"""All nodes at once, each sends to another one, near or far as chance has it. Nothing is fitted to it: what a family's
price of it is off by tells what the family does not know of the network.

To the one half of the nodes further, as in the widest step of many algorithms; and shuffled, always in the same ways.
"""

import numpy as np

from commodel.models.probes import PLAYER, Place, Plan, Probe, Schedule, Settings, Site
from commodel.models.probes.evenness import FEWEST

MOST = 128  # nodes
SHORT = 64  # bytes; shorter messages are never too many for a link
RUNGS = 16  # times the size before it
TURNS = 4  # of them all but one shuffled


def plan(site: Site, sizes: list[int]) -> Plan:
    if site.nodes < FEWEST:
        return
    nodes = np.unique(np.linspace(0, site.nodes - 1, min(site.nodes, MOST)).round().astype(int)).tolist()
    for turn in range(TURNS):
        size = max(sizes)
        while size >= SHORT:
            yield Place(len(nodes), "block:1", tuple(nodes)), {"turn": turn, "procs": len(nodes), "bytes": size}
            size //= RUNGS


def pattern(case: Settings) -> Schedule:
    ranks = np.arange(case["procs"])
    if not case["turn"]:
        return Schedule.of(len(ranks), 0, ranks, (ranks + len(ranks) // 2) % len(ranks), case["bytes"])
    around = np.random.default_rng(case["turn"]).permutation(len(ranks))  # a cycle through all: nobody sends to itself
    return Schedule.of(len(ranks), 0, around, np.roll(around, 1), case["bytes"])


PROBE = Probe(
    "mixture",
    "all nodes at once, each to another one",
    ("turn", "procs", "bytes"),
    plan,
    program=PLAYER,
    optional=True,
    pattern=pattern,
)
