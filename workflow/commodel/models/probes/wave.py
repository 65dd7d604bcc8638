"""The TAN paper's N-to-1 experiment (MRNetBench, number of waves): the root asks N leaves, all answer, and its clock
alone tells the round trip. Packets of 1 KiB either way, because half of it is taken for a way."""

from commodel.models.probes import PACKET, OnOverlay, Plan, Probe, Settings, Site, apart, up_to
from commodel.models.probes.fan import COLUMNS, MOST_RANKS, pattern


def plan(site: Site, sizes: list[int]) -> Plan:
    place = apart(site, MOST_RANKS)
    about = {"direction": "round", "how": "isend", "bytes": PACKET, "answer": PACKET}
    return [(place, {"n": n, **about}) for n in up_to(place.ranks - 1)]


def on_overlay(case: Settings) -> OnOverlay:
    return OnOverlay(f"flat:{case['n']}")


PROBE = Probe(
    "wave", "round trip of a wave from the root", COLUMNS, plan, program="fan", pattern=pattern, on_overlay=on_overlay
)
