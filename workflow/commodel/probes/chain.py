"""A packet of 1 KiB down a row of ranks and back up: full round trip, heights up to 32 as in the TAN paper."""

from commodel.probes import PACKET, Probe, spread, up_to


def plan(site, sizes):
    place = spread(site, min(site.ranks, 33))
    return [(place, {"height": height, "bytes": PACKET}) for height in up_to(place.ranks - 1)]


PROBE = Probe("chain", "round trip down a row of ranks", ("height", "bytes"), plan)
