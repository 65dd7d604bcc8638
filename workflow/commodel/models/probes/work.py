"""Local reduction of a vector: no message at all. Simulated platforms take no time for it, and say 0."""

from commodel.models.probes import PACKET, Probe, spread


def plan(site, sizes):
    return [(spread(site, 2), {"bytes": size}) for size in sorted({*(s for s in sizes if s >= 64), PACKET})]


PROBE = Probe("work", "local reduction", ("bytes",), plan)
