"""One rank deals packets to several others in turn: two lengths, so that their difference is the gap between sends. To
one receiver it would be the receiver's pace where that is the slower one."""

import numpy as np

from commodel.models.probes import PLAYER, Plan, Probe, Schedule, Settings, Site, spread
from commodel.models.probes.pairs import packets
from commodel.models.probes.stream import EACH

RECEIVERS = 8


def plan(site: Site, sizes: list[int]) -> Plan:
    place = spread(site, min(site.ranks, RECEIVERS + 1))
    receivers = place.ranks - 1
    lengths = [each * RECEIVERS // receivers for each in EACH]  # of few receivers each gets more
    return [(place, {"n": receivers, "each": each, "bytes": size}) for each in lengths for size in packets(sizes)]


def pattern(case: Settings) -> Schedule:
    receivers = np.tile(np.arange(1, case["n"] + 1), case["each"])
    return Schedule.of(case["n"] + 1, 0, 0, receivers, case["bytes"])


PROBE = Probe(
    "deal", "packets from one rank to several in turn", ("n", "each", "bytes"), plan, program=PLAYER, pattern=pattern
)
