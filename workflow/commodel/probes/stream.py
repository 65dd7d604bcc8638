"""Many ranks send streams of packets to one: two lengths, so that their difference is the gap between receptions."""

from commodel.probes import Probe, spread
from commodel.probes.pairs import packets

EACH = (4, 12)
SENDERS = 8


def plan(site, sizes):
    place = spread(site, min(site.ranks, SENDERS + 1))
    senders = place.ranks - 1
    shapes = [{"senders": senders, "each": each, "bytes": size} for each in EACH for size in packets(sizes)]
    return [(place, shape) for shape in shapes]


PROBE = Probe("stream", "streams of packets to one rank", ("senders", "each", "bytes"), plan)
