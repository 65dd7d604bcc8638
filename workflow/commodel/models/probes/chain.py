"""A packet of 1 KiB down a row of ranks and back up: full round trip, heights up to 32 as in the TAN paper."""

import numpy as np

from commodel.models.probes import PACKET, Plan, Probe, Schedule, Settings, Site, spread, up_to


def plan(site: Site, sizes: list[int]) -> Plan:
    place = spread(site, min(site.ranks, 33))
    return [(place, {"height": height, "bytes": PACKET}) for height in up_to(place.ranks - 1)]


def pattern(case: Settings) -> Schedule:
    height = case["height"]
    down, up = np.arange(height), np.arange(height, 0, -1)
    src, dst = np.concatenate([down, up]), np.concatenate([down + 1, up - 1])
    return Schedule.of(height + 1, np.arange(2 * height), src, dst, case["bytes"], root=0)


PROBE = Probe("chain", "round trip down a row of ranks", ("height", "bytes"), plan, pattern=pattern)
