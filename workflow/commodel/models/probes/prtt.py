"""Parametrised round trips: n messages out, one back, with delays between the sends or before the receive."""

from commodel.models.fitting.round_trips import KINDS
from commodel.models.probes import EVERYWHERE, Plan, Probe, Schedule, Settings, Site, elsewhere, round_trip, spread

COLUMNS = ("n", "delay", "late", "bytes")


def settings(sizes: list[int]) -> list[Settings]:
    return [{"n": n, "delay": delay, "late": late, "bytes": size} for n, delay, late in KINDS for size in sizes]


def plan(site: Site, sizes: list[int]) -> Plan:
    return [(place, about) for place in (spread(site, 2), *elsewhere(site)) for about in settings(sizes)]


def pattern(case: Settings) -> Schedule | None:
    """Delays are in no schedule."""
    plain = case["n"] == 1 and not case["delay"] and not case["late"]
    return round_trip(case["bytes"], case["bytes"]) if plain else None


TITLE = "round trip of a burst, with delays: LogGP value by value"
PROBE = Probe("prtt", TITLE, COLUMNS, plan, pattern=pattern, classes=EVERYWHERE)
