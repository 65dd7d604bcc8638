"""Copies within a rank's memory: cache to cache, cache to memory, memory to memory. Simulated platforms take no time
for them, and say 0."""

from commodel.models.probes import Plan, Probe, Site, spread

PATHS = ("ctc", "ctm", "mtm")


def plan(site: Site, sizes: list[int]) -> Plan:
    sizes = sorted({size for size in sizes if size >= 64} or {1024})
    return [(spread(site, 2), {"path": path, "bytes": size}) for path in PATHS for size in sizes]


PROBE = Probe("memcopy", "memory copies", ("path", "bytes"), plan)
