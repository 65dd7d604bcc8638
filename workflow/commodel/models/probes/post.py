"""The time that posting n operations takes a rank, without what they then do: the overheads of LoP."""

from commodel.models.probes import Plan, Probe, Site, apart, up_to
from commodel.models.probes.round import PARTNERS, WAYS


def plan(site: Site, sizes: list[int]) -> Plan:
    place = apart(site, PARTNERS + 1)
    return [(place, {"how": how, "n": n, "bytes": 1}) for how in (*WAYS, "irecv") for n in up_to(place.ranks - 1)]


PROBE = Probe("post", "posting n operations", ("how", "n", "bytes"), plan)
