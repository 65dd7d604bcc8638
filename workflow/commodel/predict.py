"""Prices points with a parameter set. Points of one shape are priced in one pass, whatever their sizes."""

from collections.abc import Callable, Iterable
from math import isfinite, nan

import numpy as np
import pandas as pd

from commodel.errors import UserError
from commodel.families import Family, complete, family
from commodel.patterns import shapes
from commodel.records import ParameterSet, Point, Prediction
from commodel.schedule import Schedule, stack
from commodel.units import format_bytes
from commodel.values import Values

CELLS = 4_000_000  # of one array: sizes × draws × messages


def predict(
    parameters: ParameterSet, points: Iterable[Point], pipelined: bool = False, strict: bool = True
) -> list[Prediction]:
    """A prediction for each point, in the order of the points; `pipelined`: of the time between two waves. What the
    parameters cannot price is a UserError, or if not strict a prediction without a time whose status says why."""
    entry = family(parameters.family)
    if pipelined and entry.pipelined is None:
        raise UserError(f"family {entry.name} says nothing about a stream of waves")
    points = [point for point in points if point.priced or strict]  # of a plan those that can be priced
    if not parameters.values and not strict:
        reason = next(iter(parameters.missing.values()), "no values")
        return [Prediction(entry.name, point, nan, nan, nan, f"not fitted: {reason}") for point in points]
    cost = entry.pipelined if pipelined else lambda pattern, *given: pattern.cost(entry.price(pattern, *given))
    exact = complete(entry, Values.exact(parameters))
    drawn = complete(entry, Values.drawn(parameters)) if parameters.draws else None
    found: dict[int, Prediction] = {}
    for numbers, schedules in shapes(points):
        members = [points[number] for number in numbers]
        try:
            seconds, low, high = _priced(cost, exact, drawn, stack(schedules))
        except UserError as error:
            if strict:
                raise
            for number, point in zip(numbers, members, strict=True):
                found[number] = Prediction(entry.name, point, nan, nan, nan, f"not priced: {error.message}")
            continue
        for i, (number, point) in enumerate(zip(numbers, members, strict=True)):
            price = float(seconds[i]), float(low[i]), float(high[i])
            if isfinite(price[0]) and price[0] >= 0:
                status = doubts(entry, parameters, exact, schedules[i])
            else:
                status = "not priced: " + ("below 0" if price[0] < 0 else "no number")
                price = nan, nan, nan
            found[number] = Prediction(entry.name, point, *price, status)
    return [found[number] for number in sorted(found)]


def table(predictions: Iterable[Prediction]) -> pd.DataFrame:
    """Predictions as the comparison takes them."""
    rows = [(found.point.id, found.family, found.seconds, found.low, found.high, found.status) for found in predictions]
    return pd.DataFrame(rows, columns=["point", "family", "predicted", "predicted_low", "predicted_high", "status"])


def _priced(cost: Callable, exact: Values, drawn: Values | None, pattern: Schedule):
    """Cost and its 95 % interval, a number for each size. A very long schedule gets fewer draws, never none."""
    sizes = pattern.bytes.shape[0]
    seconds = np.broadcast_to(cost(pattern, exact), (sizes, 1))[:, 0]
    if drawn is None:
        return seconds, seconds, seconds
    count = max(20, CELLS * 5 // max(pattern.bytes.size, 1))
    costs = cost(pattern, drawn.first(count))
    low, high = np.percentile(np.broadcast_to(costs, (sizes, costs.shape[-1])), [2.5, 97.5], axis=-1)
    return seconds, np.minimum(low, seconds), np.maximum(high, seconds)


def doubts(entry: Family, parameters: ParameterSet, values: Values, pattern: Schedule) -> str:
    """`ok`, or why the parameters do not reach this far."""
    if entry.doubts and (found := entry.doubts(pattern, values)):
        return found
    if not parameters.bytes_range or not pattern.bytes.size:
        return "ok"
    low, high = parameters.bytes_range
    smallest, largest = pattern.bytes.min(), pattern.bytes.max()
    if not entry.uses_bytes:
        if low <= smallest and largest <= high:
            return "ok"
        return f"blind to size: holds for {format_bytes(int(low))} to {format_bytes(int(high))}"
    if largest > high:
        return f"extrapolated: messages of {format_bytes(int(largest))}, probed up to {format_bytes(int(high))}"
    known = parameters.settings.get("ranks")
    if known and pattern.ranks > int(known):
        return f"extrapolated: {pattern.ranks} ranks, probed up to {known}"
    return "ok"
