"""A superstep: every rank sends h messages of 1 KiB and receives h, then all wait for all; h = 0 is waiting alone."""

from commodel.probes import PACKET, Probe, spread

MESSAGES = (0, 1, 2, 4, 8)
RANKS = 64


def plan(site, sizes):
    most = min(site.ranks, RANKS)
    for procs in sorted({1 << power for power in range(1, most.bit_length())} | {most}):
        place = spread(site, procs)
        yield from ((place, {"procs": procs, "h": h, "bytes": PACKET}) for h in MESSAGES)


PROBE = Probe("hrelation", "supersteps of h messages a rank", ("procs", "h", "bytes"), plan)
