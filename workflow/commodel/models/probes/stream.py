"""Many ranks send streams of packets to one: two lengths, so that their difference is the gap between receptions."""

import numpy as np

from commodel.models.probes import Plan, Probe, Schedule, Settings, Site, spread
from commodel.models.probes.pairs import packets

EACH = (4, 12)
SENDERS = 8


def plan(site: Site, sizes: list[int]) -> Plan:
    place = spread(site, min(site.ranks, SENDERS + 1))
    senders = place.ranks - 1
    shapes = [{"senders": senders, "each": each, "bytes": size} for each in EACH for size in packets(sizes)]
    return [(place, shape) for shape in shapes]


def pattern(case: Settings) -> Schedule:
    senders = np.tile(np.arange(1, case["senders"] + 1), case["each"])
    return Schedule.of(case["senders"] + 1, 0, senders, 0, case["bytes"], root=0)


PROBE = Probe("stream", "streams of packets to one rank", ("senders", "each", "bytes"), plan, pattern=pattern)
