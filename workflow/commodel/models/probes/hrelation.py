"""A superstep: every rank sends h messages of 1 KiB and receives h, then all wait for all; h = 0 is waiting alone."""

import numpy as np

from commodel.models.probes import PACKET, Plan, Probe, Schedule, Settings, Site, spread

MESSAGES = (0, 1, 2, 4, 8)
RANKS = 64


def plan(site: Site, sizes: list[int]) -> Plan:
    most = min(site.ranks, RANKS)
    for procs in sorted({1 << power for power in range(1, most.bit_length())} | {most}):
        place = spread(site, procs)
        yield from ((place, {"procs": procs, "h": h, "bytes": PACKET}) for h in MESSAGES)


def pattern(case: Settings) -> Schedule | None:
    """One superstep; the waiting is not in a schedule, so only a model with supersteps can price it."""
    procs, h = case["procs"], case["h"]
    if not h:
        return None
    rank, turn = np.repeat(np.arange(procs), h), np.tile(np.arange(h), procs)
    return Schedule.of(procs, 0, rank, (rank + 1 + turn % (procs - 1)) % procs, case["bytes"])


PROBE = Probe("hrelation", "supersteps of h messages a rank", ("procs", "h", "bytes"), plan, pattern=pattern)
