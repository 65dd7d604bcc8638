"""Ring_τ: every rank sends to the next and receives from the one before, τ at a time on each channel: on one node, and
dealt over two nodes so that every message crosses the network. Node types squared, not nodes squared."""

import numpy as np

from commodel.models.keys import Pair
from commodel.models.probes import (
    BETWEEN,
    PLAYER,
    Place,
    Plan,
    Probe,
    Schedule,
    Settings,
    Site,
    across,
    farther,
    together,
    up_to,
)


def plan(site: Site, sizes: list[int]) -> Plan:
    rings = [place for count in up_to(site.cores) if count > 1 for place in together(site, count)]
    rings += [place for count in up_to(site.cores) for place in across(site, count)]
    pair = str(Pair(site.type_of(0), site.type_of(0)))
    rings += [
        Place(2 * count, f"cyclic:{count}", nodes, pair) for nodes in farther(site, 1) for count in up_to(site.cores)
    ]
    for place in rings:
        yield from ((place, {"procs": place.ranks, "bytes": size}) for size in sorted({0, *sizes}))


def pattern(case: Settings) -> Schedule:
    ranks = np.arange(case["procs"])
    return Schedule.of(case["procs"], 0, ranks, (ranks + 1) % case["procs"], case["bytes"])


PROBE = Probe(
    "ring",
    "transfers at the same time, by channel",
    ("procs", "bytes"),
    plan,
    program=PLAYER,
    optional=True,
    classes=BETWEEN,
    pattern=pattern,
)
