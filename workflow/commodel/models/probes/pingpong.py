"""Full round trip of one message between two ranks on different nodes. Not halved here: families halve it."""

from commodel.models.probes import (
    EVERYWHERE,
    PACKET,
    OnOverlay,
    Plan,
    Probe,
    Schedule,
    Settings,
    Site,
    elsewhere,
    round_trip,
    spread,
)


def plan(site: Site, sizes: list[int]) -> Plan:
    places = [spread(site, 2), *elsewhere(site)]
    return [(place, {"bytes": size}) for place in places for size in sorted({*sizes, PACKET})]


def pattern(case: Settings) -> Schedule:
    return round_trip(case["bytes"], case["bytes"])


def on_overlay(case: Settings) -> OnOverlay:
    """The layer below: one connection, without the tree."""
    return OnOverlay("flat:1", "pingpong")


PROBE = Probe(
    "pingpong",
    "round trip of one message",
    ("bytes",),
    plan,
    pattern=pattern,
    on_overlay=on_overlay,
    classes=EVERYWHERE,
)
