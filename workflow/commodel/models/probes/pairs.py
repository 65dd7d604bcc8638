"""Ping-pongs between many pairs at once: how throughput is shared. Sizes of one packet at most, as in the cluster
model."""

import numpy as np

from commodel.models.probes import Plan, Probe, Schedule, Settings, Site, spread, up_to

MTU = 1500


def packets(sizes: list[int]) -> list[int]:
    """Sizes of a message that is one packet."""
    return sorted({*(size for size in sizes if size < MTU), MTU})


def plan(site: Site, sizes: list[int]) -> Plan:
    for pairs in up_to(min(site.ranks, 64) // 2):
        place = spread(site, 2 * pairs)
        yield from ((place, {"pairs": pairs, "bytes": size}) for size in packets(sizes))


def pattern(case: Settings) -> Schedule:
    pairs = case["pairs"]
    first, second = np.arange(pairs), np.arange(pairs, 2 * pairs)
    step, src, dst = np.repeat([0, 1], pairs), np.concatenate([first, second]), np.concatenate([second, first])
    return Schedule.of(2 * pairs, step, src, dst, case["bytes"])


PROBE = Probe("pairs", "ping-pongs between many pairs at once", ("pairs", "bytes"), plan, pattern=pattern)
