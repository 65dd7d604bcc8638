"""What people should know of a fit to measured collectives: rows that it cannot explain, and that LogGP has become
Hockney."""

from collections.abc import Iterator
from math import exp, log

import numpy as np

from commodel.fit.pointtable import Measured
from commodel.models import Array
from commodel.parameters import Estimate, ParameterSet
from commodel.patterns.build import stacked
from commodel.price.stack import pricer
from commodel.price.status import PriceStatus
from commodel.records import Point
from commodel.stats import TYPICAL
from commodel.units import format_bytes, format_seconds

UNEXPLAINED = 4.0  # typical misfits, from which on a row is not explained: one of 10,000 normal ones is as far
NEAREST_ODD = log(2)  # and never what is nearer than this
MOST_NAMED = 5
SAME_PRICES = 0.02  # of prices: as little tells no two families apart


def remarks(parameters: ParameterSet, measured: Measured, table: str) -> Iterator[str]:
    """A line each."""
    prices = _prices(parameters, measured.points)
    yield from _unexplained(prices, measured, table)
    if parameters.family == "loggp":
        yield from _collapsed(parameters, prices, measured.points)


def _unexplained(prices: Array, measured: Measured, table: str) -> Iterator[str]:
    """Rows whose factor between time and price is far from that of most. Medians, which such rows do not move, say what
    is far."""
    factors = np.log(np.array(measured.seconds) / prices)
    priced = np.isfinite(factors)
    if not priced.any():
        return
    middle = np.median(factors[priced])
    far = np.abs(factors - middle)
    allowed = max(NEAREST_ODD, UNEXPLAINED * TYPICAL * float(np.median(far[priced])))
    unexplained = [number for number in np.argsort(-np.where(priced, far, 0), kind="stable") if far[number] > allowed]
    for number in unexplained[:MOST_NAMED]:
        point, factor = measured.points[number], exp(factors[number])
        lines = ",".join(map(str, measured.lines.get(point, ())))
        what = f"{point.operation} {point.algorithm or point.topology}, {point.ranks} ranks"
        size = format_bytes(point.bytes)
        yield f"{table}:{lines}: {what}, {size}: took {factor:.3g} times its price, not explained"
    if len(unexplained) > MOST_NAMED:
        yield f"{table}: {len(unexplained) - MOST_NAMED} more rows are not explained"


def _collapsed(parameters: ParameterSet, prices: Array, points: list[Point]) -> Iterator[str]:
    """LogGP whose overheads and gap make no difference is Hockney with α = o_s + L + o_r and β = G."""
    values = parameters.numbers
    alpha, beta = values["o_s"] + values["L"] + values["o_r"], values["G"]
    numbers = {"alpha.a": (alpha, "s"), "beta.a": (beta, "s/B"), "gamma": (values.get("gamma", 0.0), "s/B")}
    estimates = {name: Estimate(value, unit, value, value) for name, (value, unit) in numbers.items()}
    hockney = ParameterSet(family="hockney", platform="", source="", values=estimates)
    apart = float(np.nanmax(np.abs(np.log(_prices(hockney, points) / prices))))
    if apart < SAME_PRICES:
        what = f"α = {format_seconds(alpha)}, β = {beta:.3g} s/B"
        yield f"loggp has collapsed to Hockney, whose prices with {what} are its own within {100 * apart:.1g} %"


def _prices(parameters: ParameterSet, points: list[Point]) -> Array:
    """NaN where a family does not see the size of a point."""
    price, seconds = pricer(parameters, strict=False, draws=0), np.full(len(points), np.nan)
    for numbers, pattern in stacked(points):
        prices = price(pattern, 1)
        votes = [PriceStatus.votes(status) for status in prices.status]
        seconds[numbers] = np.where(votes, prices.seconds, np.nan)
    return seconds
