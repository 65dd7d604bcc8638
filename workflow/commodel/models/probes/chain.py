"""A packet of 1 KiB down a row of ranks and back up: full round trip, every height up to 32 as in the TAN paper. Ranks
are dealt in turn over the nodes, so that every hop crosses the network, even where several share a node."""

import numpy as np

from commodel.models.probes import PACKET, OnOverlay, Plan, Probe, Schedule, Settings, Site, dealt

HIGHEST = 32


def plan(site: Site, sizes: list[int]) -> Plan:
    place = dealt(site, min(site.ranks, HIGHEST + 1))
    return [(place, {"height": height, "bytes": PACKET}) for height in range(1, place.ranks)]


def pattern(case: Settings) -> Schedule:
    height = case["height"]
    down, up = np.arange(height), np.arange(height, 0, -1)
    src, dst = np.concatenate([down, up]), np.concatenate([down + 1, up - 1])
    return Schedule.of(height + 1, np.arange(2 * height), src, dst, case["bytes"], root=0)


def on_overlay(case: Settings) -> OnOverlay:
    return OnOverlay(f"chain:{case['height']}")


PROBE = Probe(
    "chain", "round trip down a row of ranks", ("height", "bytes"), plan, pattern=pattern, on_overlay=on_overlay
)
