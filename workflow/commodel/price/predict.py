"""Prices points with a parameter set. Points of one shape are priced in one pass, whatever their sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING

import numpy as np

from commodel.errors import UserError
from commodel.models.families import complete, family
from commodel.models.pricing.values import Values
from commodel.patterns.build import stacked
from commodel.patterns.schedule import Schedule
from commodel.price.reach import doubts, widening
from commodel.records import ParameterSet, Point, Prediction

if TYPE_CHECKING:
    import pandas as pd

CELLS = 20_000_000  # draws × messages of one schedule; a very long one gets fewer draws, never none
FEWEST = 20  # draws
TOGETHER = 1_000_000  # sizes × messages of one stack
BLOCK = 4_000_000  # sizes × draws × messages priced at a time, or an array would be too large
STEP = 1 << 14  # of them in a step, on average: more would leave a processor's cache


@dataclass(frozen=True, eq=False)
class Prices:
    """Of one pattern at several sizes: seconds with their 95 % interval, NaN where the status says why."""

    seconds: np.ndarray
    low: np.ndarray
    high: np.ndarray
    status: list[str]

    @classmethod
    def none(cls, sizes: int, why: str) -> Prices:
        return cls(*np.full((3, sizes), nan), [why] * sizes)

    def put(self, places: list[int], some: Prices) -> None:
        for name in ("seconds", "low", "high"):
            getattr(self, name)[places] = getattr(some, name)
        for place, status in zip(places, some.status, strict=True):
            self.status[place] = status


def predict(
    parameters: ParameterSet, points: Iterable[Point], pipelined: bool = False, strict: bool = True
) -> list[Prediction]:
    """A prediction for each point, in the order of the points; `pipelined`: of the time between two waves. What the
    parameters cannot price is a UserError, or if not strict a prediction without a time whose status says why."""
    points = [point for point in points if point.priced or strict]  # of a plan those that can be priced
    price = pricer(parameters, pipelined, strict)
    found: dict[int, Prediction] = {}
    for numbers, pattern in stacked(points, TOGETHER):
        prices = price(pattern)
        rows = zip(numbers, prices.seconds, prices.low, prices.high, prices.status, strict=True)
        for number, seconds, low, high, status in rows:
            times = float(seconds), float(low), float(high)
            found[number] = Prediction(parameters.family, points[number], *times, status)
    return [found[number] for number in sorted(found)]


def table(predictions: Iterable[Prediction]) -> pd.DataFrame:
    """Predictions as the comparison takes them."""
    import pandas as pd

    rows = [(found.point.id, found.family, found.seconds, found.low, found.high, found.status) for found in predictions]
    return pd.DataFrame(rows, columns=["point", "family", "predicted", "predicted_low", "predicted_high", "status"])


def pricer(
    parameters: ParameterSet, pipelined: bool = False, strict: bool = True, draws: int | None = None
) -> Callable[[Schedule], Prices]:
    """What prices a stack of schedules with these parameters, which are read and completed once. `draws`: at most so
    many of them for the interval."""
    entry = family(parameters.family)
    if pipelined and entry.pipelined is None:
        raise UserError(f"family {entry.name} says nothing about a stream of waves")
    if not parameters.values and not strict:
        reason = next(iter(parameters.missing.values()), "no values")
        return lambda pattern: Prices.none(len(pattern.bytes), f"not fitted: {reason}")
    cost = entry.pipelined if pipelined else lambda pattern, values: pattern.cost(entry.price(pattern, values))
    exact = Draws(complete(entry, Values.exact(parameters)))
    drawn = None
    if parameters.draws and draws != 0:
        every = complete(entry, Values.drawn(parameters))
        drawn = Draws(every if draws is None else every.some(0, draws))

    def price(pattern: Schedule) -> Prices:
        try:
            seconds, low, high = _priced(cost, exact, drawn, pattern)
            status = doubts(entry, parameters, exact.values, pattern)
            wider = widening(entry, parameters, pattern)
        except UserError as error:
            if strict:
                raise
            return Prices.none(len(pattern.bytes), f"not priced: {error.message}")
        times = np.stack([seconds, low / wider, high * wider])
        if parameters.draws and drawn is None:
            times[1:] = nan  # there is an interval, but nobody asked
        wrong = ~np.isfinite(seconds) | (seconds < 0)
        times[:, wrong] = nan
        for number in np.flatnonzero(wrong):
            status[number] = "not priced: " + ("below 0" if seconds[number] < 0 else "no number")
        return Prices(*times, status)

    return price


class Draws:
    """Values, and blocks of their draws, each made once: what a family works out of its samples stays with them."""

    def __init__(self, values: Values):
        self.values, self.count = values, values.lead[0]
        self._blocks = {(0, self.count): values}

    def some(self, start: int, stop: int) -> Values:
        stop = min(stop, self.count)
        if (start, stop) not in self._blocks:
            self._blocks[start, stop] = self.values.some(start, stop)
        return self._blocks[start, stop]


def _priced(cost: Callable, exact: Draws, drawn: Draws | None, pattern: Schedule):
    """Cost and its 95 % interval, a number for each size."""
    seconds = _costs(cost, exact, 1, pattern)[:, 0]
    if drawn is None:
        return seconds, seconds, seconds
    count = min(drawn.count, max(FEWEST, CELLS // max(pattern.bytes.shape[-1], 1)))
    low, high = np.percentile(_costs(cost, drawn, count, pattern), [2.5, 97.5], axis=-1)
    return seconds, np.minimum(low, seconds), np.maximum(high, seconds)


def _costs(cost: Callable, values: Draws, count: int, pattern: Schedule) -> np.ndarray:
    """(sizes, draws): a block of both at a time, of the draws a power of two where not all of them go."""
    sizes, rows = pattern.bytes.shape[0], max(pattern.bytes.shape[-1], 1)
    room = max(min(BLOCK, STEP * len(pattern.steps)) // rows, 1)
    several = max(room // count, 1)
    draws = count if room >= count else 1 << (room.bit_length() - 1)
    found = np.empty((sizes, count))
    for first in range(0, sizes, several):
        part = pattern
        if several < sizes:
            rest = slice(first, first + several)
            part = pattern.resized(pattern.bytes[rest], pattern.work.bytes[rest])
        for start in range(0, count, draws):
            stop = min(start + draws, count)
            costs = cost(part, values.some(start, stop))
            alike = costs.ndim == 1  # the size does not matter
            found[slice(None) if alike else slice(first, first + several), start:stop] = costs
        if alike:
            break
    return found
