"""Local reduction of a vector: no message at all. Simulated platforms take no time for it, and say 0. It reaches what
points copy, too: most families take copies for reductions."""

from commodel.models.probes import PACKET, Plan, Probe, Site, spread, up_to_vectors


def plan(site: Site, sizes: list[int]) -> Plan:
    return [
        (spread(site, 2), {"bytes": size}) for size in sorted({*up_to_vectors(site, sizes, "reduce", "copy"), PACKET})
    ]


PROBE = Probe("work", "local reduction", ("bytes",), plan)
