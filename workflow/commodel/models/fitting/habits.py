"""What cases of probe `capacity` tell that are played and priced: which of two ways a network has."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from commodel.errors import UserError
from commodel.hierarchy import NODE
from commodel.models import Array
from commodel.models.fitting.observed import Observed
from commodel.models.fitting.roundtrips import NEVER
from commodel.models.pricing.values import Values
from commodel.models.probes.capacity import pattern
from commodel.patterns.layouts import nodes_read
from commodel.patterns.schedule import Schedule

DIFFERS = 1.2  # times as long, at least, where one way can be told from the other
CLEARLY = 1.15  # times as long as all that is known explains

Price = Callable[[Schedule, Values], Array]


def ways_seen(
    observed: Observed, how: str, ways: Mapping[Any, Values], price: Price, level: str = NODE
) -> list[tuple[int, Any]]:
    """Of the cases that are made to tell several ways, and do, the size and which it is, the shortest first; none where
    nothing else was measured of their distance."""
    nearest = []
    for size, measured, played in _played(observed, how, level):
        computes = played.work.seconds.sum()
        try:
            prices = {way: played.cost(price(played, values))[0] - computes for way, values in ways.items()}
        except UserError:
            return []
        if max(prices.values()) > DIFFERS * min(prices.values()):
            nearest.append((size, min(prices, key=lambda way: abs(prices[way] - measured + computes))))
    return sorted(nearest)


def longest_sent(ways: list[tuple[int, float]]) -> float:
    """The longest message that leaves when it is sent, like all shorter ones, by which limit each speaks for."""
    held = [size for size, limit in ways if limit != NEVER]
    return float(max((size for size, _ in ways if size < held[0]), default=0)) if held else NEVER


def dearer(observed: Observed, how: str, known: Values, price: Price) -> bool:
    """Whether any of such cases takes longer than all that is known explains."""
    try:
        return any(
            measured > CLEARLY * played.cost(price(played, known))[0] for _, measured, played in _played(observed, how)
        )
    except UserError:
        return False


def _played(observed: Observed, how: str, level: str = NODE) -> Iterator[tuple[int, float, Schedule]]:
    """Size, seconds and pattern of each case."""
    for case in observed.probes.get("capacity", ()):
        if (case.settings["how"], case.settings["level"]) == (how, level) and len(case.seconds):
            nodes = nodes_read(str(case.settings["where"]))
            yield int(case.settings["bytes"]), float(np.median(case.seconds)), pattern(case.settings).placed(nodes)


def by_destination(observed: Observed, known: Values, links: Mapping[str, int], price: Price) -> dict[str, int]:
    """The levels of which the destination of a message tells which of so many links out of a group it takes."""
    told_apart = {}
    for level, most in links.items():
        ways = {count: replace(known, settings={**known.settings, "links": {level: count}}) for count in (1, most)}
        seen = [count for _, count in ways_seen(observed, "stride", ways, price, level)]
        if seen and seen.count(most) > len(seen) / 2:
            told_apart[level] = most
    return told_apart
