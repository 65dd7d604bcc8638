"""Prices of stacks of schedules with 95 % intervals and doubts, under one parameter set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan

import numpy as np

from commodel.errors import UserError
from commodel.models import Array
from commodel.models.families import family
from commodel.parameters import ParameterSet
from commodel.patterns.schedule import Schedule
from commodel.price.model import Model
from commodel.price.reach import doubts, widening
from commodel.price.status import PriceStatus

CELLS = 20_000_000  # draws × messages of one schedule; a very long one gets fewer draws, never none
FEWEST = 20  # draws
TOGETHER = 1_000_000  # sizes × messages of one stack
BLOCK = 4_000_000  # sizes × draws × messages priced at a time, or an array would be too large
STEP = 1 << 14  # of them in a step, on average: more would leave a processor's cache

Cost = Callable[[Model, Schedule], Array]  # of a pattern, or the time between two waves of it


@dataclass(frozen=True, eq=False)
class Prices:
    """Of one pattern at several sizes: seconds with their 95 % interval, NaN where the status says why."""

    seconds: Array
    low: Array
    high: Array
    status: list[str]

    @classmethod
    def none(cls, sizes: int, why: str) -> Prices:
        return cls(*np.full((3, sizes), nan), [why] * sizes)

    def put(self, places: Sequence[int], some: Prices) -> None:
        for name in ("seconds", "low", "high"):
            getattr(self, name)[places] = getattr(some, name)
        for place, status in zip(places, some.status, strict=True):
            self.status[place] = status


def pricer(
    parameters: ParameterSet, pipelined: bool = False, strict: bool = True, draws: int | None = None
) -> Callable[[Schedule], Prices]:
    """What prices a stack of schedules with these parameters, which are read and completed once. `pipelined`: the time
    between two waves. `draws`: at most so many of them for the interval. What the parameters cannot price is a
    UserError, or if not strict a price without a number whose status says why."""
    if pipelined and family(parameters.family).pipelined is None:
        raise UserError(f"family {parameters.family} says nothing about a stream of waves")
    if not parameters.values and not strict:
        reason = next(iter(parameters.missing.values()), "no values")
        return lambda pattern: Prices.none(len(pattern.bytes), PriceStatus.NOT_FITTED.because(reason))
    model = Model.of_set(parameters, draws)
    cost = Model.period if pipelined else Model.cost

    def price(pattern: Schedule) -> Prices:
        try:
            seconds, low, high = _with_interval(cost, model, pattern)
            status = doubts(model.estimate, parameters, pattern)
            wider = widening(model.entry, parameters, pattern)
        except UserError as error:
            if strict:
                raise
            return Prices.none(len(pattern.bytes), PriceStatus.NOT_PRICED.because(error.message))
        times = np.stack([seconds, low / wider, high * wider])
        if parameters.draws and draws == 0:
            times[1:] = nan  # there is an interval, but nobody asked
        wrong = ~np.isfinite(seconds) | (seconds < 0)
        times[:, wrong] = nan
        for number in np.flatnonzero(wrong):
            status[number] = PriceStatus.NOT_PRICED.because("below 0" if seconds[number] < 0 else "no number")
        return Prices(*times, status)

    return price


def _with_interval(cost: Cost, model: Model, pattern: Schedule) -> tuple[Array, Array, Array]:
    """Cost and its 95 % interval, a number for each size."""
    draws = min(model.rows - 1, max(FEWEST, CELLS // max(pattern.bytes.shape[-1], 1)))
    costs = _costs(cost, model, 1 + draws, pattern)
    seconds = costs[:, 0]
    if not draws:
        return seconds, seconds, seconds
    low, high = np.percentile(costs[:, 1:], [2.5, 97.5], axis=-1)
    return seconds, np.minimum(low, seconds), np.maximum(high, seconds)


def _costs(cost: Cost, model: Model, count: int, pattern: Schedule) -> Array:
    """(sizes, rows): a block of both at a time, of the rows a power of two where not all of them go."""
    sizes, messages = pattern.bytes.shape[0], max(pattern.bytes.shape[-1], 1)
    room = max(min(BLOCK, STEP * len(pattern.steps)) // messages, 1)
    several = max(room // count, 1)
    together = count if room >= count else 1 << (room.bit_length() - 1)
    costs = np.empty((sizes, count))
    for first in range(0, sizes, several):
        part = pattern
        if several < sizes:
            rest = slice(first, first + several)
            part = pattern.resized(pattern.bytes[rest], pattern.work.bytes[rest])
        for start in range(0, count, together):
            stop = min(start + together, count)
            block = cost(model.some(start, stop), part)
            alike = block.ndim == 1  # the size does not matter
            costs[slice(None) if alike else slice(first, first + several), start:stop] = block
        if alike:
            break
    return costs
