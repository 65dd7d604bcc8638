"""Prices points with a parameter set. Points of one shape are priced in one pass, whatever their sizes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING

from commodel.parameters import ParameterSet
from commodel.patterns.build import stacked
from commodel.price.intervals import PARAMETERS, Asked, banded
from commodel.price.stack import ENDLESS, MOST_STACKED, pricer
from commodel.price.status import PriceStatus
from commodel.price.waves import Cost
from commodel.progress import within
from commodel.records import Point
from commodel.units import format_bytes, over

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Prediction:
    """A price with its interval, what that rests on, and the one that the parameters alone leave open. `status` is the
    text of a `PriceStatus`."""

    family: str
    point: Point
    seconds: float
    low: float
    high: float
    status: str = PriceStatus.OK.value
    interval: str = PARAMETERS
    parameters_low: float = nan
    parameters_high: float = nan
    alone: float = 1.0  # as of `Prices`


def predict(
    parameters: ParameterSet,
    points: Iterable[Point],
    pipelined: bool = False,
    strict: bool = True,
    draws: int | None = None,
    cost: Cost | None = None,
) -> list[Prediction]:
    """A prediction for each point, in the order of the points; `pipelined`: the time between two waves of a stream
    without end; the rest as of `pricer`."""
    points = [point for point in points if point.priced or strict]  # of a plan those that can be priced
    price = pricer(parameters, strict, draws, cost)
    predictions: dict[int, Prediction] = {}
    for numbers, pattern in stacked(points, MOST_STACKED):
        first = points[numbers[0]]
        with within(_named(first, len(numbers), len(predictions), len(points))):
            prices = price(pattern, ENDLESS if pipelined else first.waves)
        sizes, levels = [points[number].bytes for number in numbers], parameters.settings.get("levels")
        asked = Asked.of(first, sizes, ENDLESS if pipelined else first.waves, levels)
        low, high, words = banded(parameters.errors, asked, prices)
        times = zip(*(map(float, column) for column in (prices.seconds, low, high)), strict=True)
        parts = zip(*(map(float, column) for column in (prices.low, prices.high, prices.alone)), strict=True)
        for number, *columns in zip(numbers, times, prices.status, words, parts, strict=True):
            priced, status, interval, others = columns
            predictions[number] = Prediction(parameters.family, points[number], *priced, status, interval, *others)
    return [predictions[number] for number in sorted(predictions)]


def _named(first: Point, sizes: int, done: int, count: int) -> str:
    """What is being priced, after how many of all prices."""
    size = format_bytes(first.bytes) if sizes == 1 else f"{sizes} sizes"
    text = f"{first.operation} {first.choice} over {over(first.leaves, first.ranks)}, {size}"
    return text if sizes == count else f"{text} ({done} of {count} prices done)"


def table(predictions: Iterable[Prediction]) -> pd.DataFrame:
    """Predictions as the comparison takes them, which makes intervals of its own from what the parameters alone say."""
    import pandas as pd

    rows = [
        (row.point.id, row.family, row.seconds, row.parameters_low, row.parameters_high, row.status, row.alone)
        for row in predictions
    ]
    return pd.DataFrame(
        rows, columns=["point", "family", "predicted", "predicted_low", "predicted_high", "status", "alone"]
    )
