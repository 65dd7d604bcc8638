"""One rank with n partners: all send to it (in), or it sends to all (out). Packets of 1 KiB, as in the TAN paper."""

from commodel.probes import PACKET, Probe, spread, up_to

COLUMNS = ("direction", "how", "n", "bytes", "answer")


def plan(site, sizes):
    place = spread(site, min(site.ranks, 129))
    about = {"how": "isend", "bytes": PACKET, "answer": 0}
    return [(place, {"direction": way, "n": n, **about}) for way in ("in", "out") for n in up_to(place.ranks - 1)]


PROBE = Probe("fan", "N-to-1 and 1-to-N", COLUMNS, plan)
