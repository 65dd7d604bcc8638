"""Prices points with a parameter set. Points of one shape are priced in one pass, whatever their sizes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commodel.parameters import ParameterSet
from commodel.patterns.build import stacked
from commodel.price.prices import TOGETHER, pricer
from commodel.price.status import PriceStatus
from commodel.records import Point

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Prediction:
    """A price with its interval. `status` is the text of a `PriceStatus`."""

    family: str
    point: Point
    seconds: float
    low: float
    high: float
    status: str = PriceStatus.OK.value


def predict(
    parameters: ParameterSet, points: Iterable[Point], pipelined: bool = False, strict: bool = True
) -> list[Prediction]:
    """A prediction for each point, in the order of the points; `pipelined` and `strict` as of `pricer`."""
    points = [point for point in points if point.priced or strict]  # of a plan those that can be priced
    price = pricer(parameters, pipelined, strict)
    predictions: dict[int, Prediction] = {}
    for numbers, pattern in stacked(points, TOGETHER):
        prices = price(pattern)
        rows = zip(numbers, prices.seconds, prices.low, prices.high, prices.status, strict=True)
        for number, seconds, low, high, status in rows:
            times = float(seconds), float(low), float(high)
            predictions[number] = Prediction(parameters.family, points[number], *times, status)
    return [predictions[number] for number in sorted(predictions)]


def table(predictions: Iterable[Prediction]) -> pd.DataFrame:
    """Predictions as the comparison takes them."""
    import pandas as pd

    rows = [(row.point.id, row.family, row.seconds, row.low, row.high, row.status) for row in predictions]
    return pd.DataFrame(rows, columns=["point", "family", "predicted", "predicted_low", "predicted_high", "status"])
