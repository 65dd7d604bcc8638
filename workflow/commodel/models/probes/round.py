"""One byte from a rank to n partners, and one back from each: sent one by one, posted as a list, or put into the
partner's memory. What LoP is made of."""

from commodel.models.probes import Plan, Probe, Site, apart, up_to
from commodel.models.probes.fan import COLUMNS, pattern

WAYS = ("isend", "list", "put")
PARTNERS = 64  # as many as the paper's cluster had


def plan(site: Site, sizes: list[int]) -> Plan:
    place = apart(site, PARTNERS + 1)
    about = {"direction": "round", "bytes": 1, "answer": 1}
    return [(place, {"how": how, "n": n, **about}) for how in WAYS for n in up_to(place.ranks - 1)]


PROBE = Probe("round", "1-to-n and n-to-1 round trip", COLUMNS, plan, program="fan", pattern=pattern)
