"""Probe `mixture`: patterns of all nodes, to which nothing is fitted. The error of a model's
prediction shows which effects of the network it does not model.

The patterns, by `turn`:

- Every rank sends to the rank half the machine away, as in the widest step of many algorithms.
- Shuffled destinations, always the same ones.
- Messages are passed on from node to node in several rounds. With rendezvous, each round takes as
  long as its slowest message; else only few ranks are delayed by it.
- From one node to a few others and back; a stream to one receiver; and round trips within a node.
  With several node types, the first two are also probed between every two types, in both
  directions: a fast port serves several slow ones, and several fast ones share a slow one.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np

from commodel.models.keys import Pair
from commodel.models.probes import (
    PLAYER,
    SIZE_RATIO,
    CasePlacement,
    Probe,
    ProbePlan,
    Schedule,
    Settings,
    Site,
)
from commodel.models.probes.node_pairs import MIN_NODES

MAX_RANKS = 128
MIN_BYTES = 64  # bytes; shorter messages never saturate a link
TURN_AROUND = 3  # the turn in which messages are passed on; turns 1 and 2 are shuffled
TURN_STREAM, TURN_WITHIN, TURN_FAN = 4, 5, 6  # turns: stream, within a node, one to others
REPEATED_MESSAGES = 8
FAN_RECEIVERS = 8  # receivers of one node
MAX_SHORT_BYTES = 64 << 10  # a single trip of a longer message is long enough to be timed


def plan(site: Site, sizes: list[int]) -> ProbePlan:
    if site.nodes < 2:
        return
    for per_node in sorted({1, site.cores}) if site.nodes >= MIN_NODES else ():
        count = min(site.nodes, max(MAX_RANKS // per_node, 2))
        nodes = np.unique(np.linspace(0, site.nodes - 1, count).round().astype(int)).tolist()
        nodes = [node for node in nodes if site.count_cores(site.find_type(node)) >= per_node]
        placement = CasePlacement(per_node * len(nodes), f"block:{per_node}", tuple(nodes))
        turns = (0, 1, 2)[: 3 if site.thinning == 1 else 2] + (
            (TURN_AROUND,) if per_node == 1 else ()
        )
        for turn in turns if len(nodes) > 1 else ():
            common = {"turn": turn, "each": per_node, "procs": placement.ranks}
            yield from (
                (placement, {**common, "bytes": size})
                for size in _list_sizes(max(sizes), site.thinning)
            )
    fan_ranks = min(1 + FAN_RECEIVERS, len(site.members()[site.find_type(0)]))  # of one type
    small_patterns = [(TURN_STREAM, CasePlacement(2, "block:1"))]
    small_patterns += [(TURN_FAN, CasePlacement(fan_ranks, "block:1"))] if fan_ranks > 2 else []
    small_patterns += (
        [(TURN_WITHIN, CasePlacement(2, "block:2"))]
        if site.count_cores(site.find_type(0)) > 1
        else []
    )
    small_patterns += list(_place_between_types(site))
    for turn, placement in small_patterns:
        common = {"turn": turn, "each": 1, "procs": placement.ranks}
        yield from (
            (placement, {**common, "bytes": size})
            for size in _list_sizes(max(sizes), site.thinning)
        )


def _place_between_types(site: Site) -> Iterator[tuple[int, CasePlacement]]:
    """Yield the cases of streams and fans between every two node types, except within the first
    type."""
    members = site.members()
    for sender_type, receiver_type in product(members, repeat=2):
        if sender_type == receiver_type == site.find_type(0):
            continue
        receivers = [
            node
            for node in members[receiver_type]
            if sender_type != receiver_type or node != members[sender_type][0]
        ][:FAN_RECEIVERS]
        pair = str(Pair(sender_type, receiver_type))
        if receivers:
            yield (
                TURN_STREAM,
                CasePlacement(2, "block:1", (members[sender_type][0], receivers[0]), pair),
            )
        if len(receivers) > 1:
            yield (
                TURN_FAN,
                CasePlacement(
                    1 + len(receivers), "block:1", (members[sender_type][0], *receivers), pair
                ),
            )


def _list_sizes(size: int, thinning: int) -> Iterator[int]:
    """Yield sizes from the largest down."""
    while size >= MIN_BYTES:
        yield size
        size //= SIZE_RATIO**thinning


def make_pattern(case: Settings) -> Schedule:
    """Return the schedule of a case."""
    ranks = np.arange(case["procs"])
    if case["turn"] == TURN_STREAM:
        return Schedule.of(2, np.arange(REPEATED_MESSAGES), 0, 1, case["bytes"])
    if case["turn"] in (TURN_WITHIN, TURN_FAN):
        steps = np.arange(2 * REPEATED_MESSAGES if case["bytes"] <= MAX_SHORT_BYTES else 2).repeat(
            len(ranks) - 1
        )
        partners = np.resize(ranks[1:], len(steps))
        ends = np.where(steps % 2, partners, 0), np.where(steps % 2, 0, partners)
        return Schedule.of(len(ranks), steps, *ends, case["bytes"], root=0)
    if case["turn"] == TURN_AROUND:
        rounds = np.repeat(np.arange(REPEATED_MESSAGES), len(ranks))
        src = np.tile(ranks, REPEATED_MESSAGES)
        return Schedule.of(len(ranks), rounds, src, (src + 1) % len(ranks), case["bytes"])
    if not case["turn"]:
        return Schedule.of(
            len(ranks), 0, ranks, (ranks + len(ranks) // 2) % len(ranks), case["bytes"]
        )
    # A cycle through all ranks: none sends to itself.
    around = np.random.default_rng(case["turn"]).permutation(len(ranks))
    return Schedule.of(len(ranks), 0, around, np.roll(around, 1), case["bytes"])


PROBE = Probe(
    "mixture",
    "messages of all nodes at once, of all ranks at once, and of a few",
    ("turn", "each", "procs", "bytes"),
    plan,
    program=PLAYER,
    optional=True,
    pattern=make_pattern,
)
