"""Copies within a rank's memory: cache to cache, cache to memory, memory to memory. Simulated platforms take no time
for them, and say 0.

Vectors that are longer than any message of the probes are copied within the same two buffers only, as the player does
it. Where some are so long that malloc maps memory for each anew, copies into such memory are measured, too.
"""

from commodel.models.probes import BEYOND_CACHES, PACKET, Plan, Probe, Site, spread, up_to_vectors

AGAIN, ANEW = "ctc", "anew"  # into the same buffer every time, into one that is mapped for it
PATHS = (AGAIN, "ctm", "mtm")
MAPPED = 32 << 20  # bytes from which on glibc never keeps what is freed


def plan(site: Site, sizes: list[int]) -> Plan:
    messages = sorted({size for size in sizes if size >= 64} or {PACKET})
    cases = [(path, size) for path in PATHS for size in messages]
    cases += [(AGAIN, size) for size in up_to_vectors(site, sizes, "copy") if size not in messages]
    longest = min(max(*site.vectors.values(), *messages), BEYOND_CACHES)
    if longest >= MAPPED and not site.simulated:
        cases += [(ANEW, size) for size in sorted({MAPPED, longest})]
    return [(spread(site, 2), {"path": path, "bytes": size}) for path, size in cases]


PROBE = Probe("memcopy", "memory copies", ("path", "bytes"), plan)
