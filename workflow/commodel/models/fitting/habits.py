"""What cases of probe `capacity` tell that are played and priced: which of two ways a network has."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from commodel.errors import UserError
from commodel.models import Array
from commodel.models.fitting.observed import Observed
from commodel.models.fitting.roundtrips import NEVER
from commodel.models.pricing.values import Values
from commodel.models.probes.capacity import pattern
from commodel.patterns.schedule import Schedule

DIFFERS = 1.2  # times as long, at least, where one way can be told from the other
CLEARLY = 1.15  # times as long as all that is known explains

Price = Callable[[Schedule, Values], Array]


def told(observed: Observed, how: str, ways: Mapping[Any, Values], price: Price) -> list[tuple[int, Any]]:
    """Of the cases that are made to tell several ways, and do, the size and which it is, the shortest first; none where
    nothing else was measured of their distance."""
    several = []
    for size, measured, played in _played(observed, how):
        computes = played.work.seconds.sum()
        try:
            prices = {way: played.cost(price(played, values))[0] - computes for way, values in ways.items()}
        except UserError:
            return []
        if max(prices.values()) > DIFFERS * min(prices.values()):
            several.append((size, min(prices, key=lambda way: abs(prices[way] - measured + computes))))
    return sorted(several)


def longest_sent(ways: list[tuple[int, float]]) -> float:
    """The longest message that leaves when it is sent, like all shorter ones, by which limit each speaks for."""
    held = [size for size, limit in ways if limit != NEVER]
    return float(max((size for size, _ in ways if size < held[0]), default=0)) if held else NEVER


def dearer(observed: Observed, how: str, known: Values, price: Price) -> bool:
    """Whether the longest messages of such cases take longer than all that is known explains."""
    longest = max(_played(observed, how), key=lambda case: case[0], default=None)
    if longest is None:
        return False
    _, measured, played = longest
    try:
        return bool(measured > CLEARLY * played.cost(price(played, known))[0])
    except UserError:
        return False


def _played(observed: Observed, how: str) -> Iterator[tuple[int, float, Schedule]]:
    """Size, seconds and pattern of each case."""
    for case in observed.probes.get("capacity", ()):
        if case.settings["how"] == how and len(case.seconds):
            nodes = np.array(str(case.settings["where"]).split("+"), dtype=int)
            yield int(case.settings["bytes"]), float(np.median(case.seconds)), pattern(case.settings).placed(nodes)
