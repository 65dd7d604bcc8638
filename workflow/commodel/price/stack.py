"""Prices of stacks of schedules with 95 % intervals and doubts, under one parameter set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, nan

import numpy as np

from commodel.errors import UserError
from commodel.models import Array
from commodel.parameters import ParameterSet
from commodel.patterns.build import Sum
from commodel.patterns.repeated import Long
from commodel.patterns.schedule import Schedule
from commodel.price.alone import alone
from commodel.price.iterations import Answer, summed
from commodel.price.model import Model
from commodel.price.reach import doubts, widening
from commodel.price.status import PriceStatus
from commodel.price.waves import Cost, Stream
from commodel.progress import at

CELLS = 20_000_000  # draws × messages of one schedule; a very long one gets fewer draws, never none
FEWEST_DRAWS = 20  # draws
MOST_STACKED = 1_000_000  # sizes × messages of one stack
BLOCK = 4_000_000  # sizes × draws × messages priced at a time, or an array would be too large
STEP = 1 << 14  # of them in a step, on average: more would leave a processor's cache
ENDLESS = inf  # waves of a stream without end


@dataclass(frozen=True, eq=False)
class Prices:
    """Of one pattern at several sizes: seconds with their 95 % interval, NaN where the status says why."""

    seconds: Array
    low: Array
    high: Array
    alone: Array  # how many times as long as they are priced its messages took, each alone
    status: list[str]

    @classmethod
    def none(cls, sizes: int, why: str) -> Prices:
        return cls(*np.full((4, sizes), nan), [why] * sizes)

    def put(self, places: Sequence[int], prices: Prices) -> None:
        for name in ("seconds", "low", "high", "alone"):
            getattr(self, name)[places] = getattr(prices, name)
        for place, status in zip(places, prices.status, strict=True):
            self.status[place] = status


def pricer(
    parameters: ParameterSet, strict: bool = True, draws: int | None = None, cost: Cost | None = None
) -> Callable[[Schedule | Sum, float], Prices]:
    """What prices a stack of schedules with these parameters, which are read and completed once; of several waves the
    time between two. `draws`: at most so many of them for the interval. What the parameters cannot price is a
    UserError, or if not strict a price without a number whose status says why. `cost`: what is asked of the model in
    place of `Model.cost`."""
    if not parameters.values and not strict:
        reason = next(iter(parameters.missing.values()), "no values")
        return lambda pattern, waves: Prices.none(pattern.sizes, PriceStatus.NOT_FITTED.because(reason))
    model = Model.of_set(parameters, draws)

    def ask(pattern: Schedule, waves: float) -> Answer:
        costs = _costs(model, pattern, waves, cost or Model.cost)
        known = alone(parameters, pattern), doubts(model.estimate, parameters, pattern, waves)
        return costs, *known, widening(model.entry, parameters, pattern)

    def price(pattern: Schedule | Sum, waves: float) -> Prices:
        try:
            answer = summed(pattern, ask, waves) if isinstance(pattern, Sum) else ask(pattern, waves)
        except UserError as error:
            if strict:
                raise
            return Prices.none(pattern.sizes, PriceStatus.NOT_PRICED.because(error.message))
        costs, of_messages, status, wider = answer
        seconds, low, high = _with_interval(costs)
        times = np.stack([seconds, low / wider, high * wider])
        if parameters.draws and draws == 0:
            times[1:] = nan  # there is an interval, but nobody asked
        wrong = ~np.isfinite(seconds) | (seconds < 0)
        times[:, wrong] = nan
        for number in np.flatnonzero(wrong):
            status[number] = PriceStatus.NOT_PRICED.because("below 0" if seconds[number] < 0 else "no number")
        return Prices(*times, of_messages, status)

    return price


def _costs(model: Model, pattern: Schedule, waves: float, cost: Cost) -> Array:
    """(sizes, rows) of the cost, or of the time between waves."""
    width = pattern.messages if model.entry.by_message else pattern.width
    draws = min(model.rows - 1, max(FEWEST_DRAWS, CELLS // max(width, 1)))

    def ask(cost: Cost, schedule: Schedule) -> Array:
        return _in_blocks(cost, model, 1 + draws, schedule)

    return ask(cost, pattern) if waves == 1 else Stream(pattern).period(model.entry, ask, waves)


def _with_interval(costs: Array) -> tuple[Array, Array, Array]:
    """The estimate and its 95 % interval, a number for each size."""
    seconds = costs[:, 0]
    if costs.shape[1] == 1:
        return seconds, seconds, seconds
    low, high = np.percentile(costs[:, 1:], [2.5, 97.5], axis=-1)
    return seconds, np.minimum(low, seconds), np.maximum(high, seconds)


def _in_blocks(cost: Cost, model: Model, count: int, pattern: Schedule) -> Array:
    """(sizes, rows): a block of both at a time, of the rows a power of two where not all of them go."""
    sizes, messages = pattern.sizes, max(pattern.width, 1)
    steps = pattern.last_step + 1 if isinstance(pattern, Long) else len(pattern.steps)
    room = max(min(BLOCK, STEP * steps) // messages, 1)
    at_once = max(room // count, 1)
    together = count if room >= count else 1 << (room.bit_length() - 1)
    costs, starts = np.empty((sizes, count)), range(0, count, together)
    blocks = -(-sizes // at_once) * len(starts)
    for first in range(0, sizes, at_once):
        part = pattern
        if at_once < sizes:
            of_these = slice(first, first + at_once)
            part = pattern.resized(pattern.bytes[of_these], pattern.work.bytes[of_these])
        for number, start in enumerate(starts, 1 + first // at_once * len(starts)):
            stop = min(start + together, count)
            if blocks > 1:
                at(f"part {number} of {blocks}")
            block = cost(model.some(start, stop), part)
            alike = block.ndim == 1  # the size does not matter
            costs[slice(None) if alike else slice(first, first + at_once), start:stop] = block
        if alike:
            break
    return costs
