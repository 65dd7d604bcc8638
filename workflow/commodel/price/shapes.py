"""Prices shapes with many parameter sets, as a stream of columns. A schedule is built once, for all sets and draws."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from commodel.errors import UserError
from commodel.parameters import ParameterSet
from commodel.patterns.build import Shape, stacks
from commodel.price.intervals import Asked, banded
from commodel.price.stack import MOST_STACKED, Prices, pricer
from commodel.price.status import PriceStatus


def price(
    shapes: Iterable[Shape], sets: Mapping[str, ParameterSet], draws: int | None = None
) -> Iterator[dict[str, object]]:
    """The prices of a shape under a set, sizes in the order of the matrix, sets in theirs, shape after shape: columns,
    a single value standing for a whole one. `sets` by what the column `parameters` is to call them;
    `draws`: at most so many for an interval."""
    pricers = {name: pricer(parameters, strict=False, draws=draws) for name, parameters in sets.items()}
    for shape in shapes:
        sizes, point = np.array(shape.sizes), shape.point
        names = {name: getattr(point, name) or None for name in ("operation", "algorithm", "topology", "layout")}
        priced = {name: Prices.none(len(sizes), "") for name in sets}
        try:
            for places, pattern in stacks(shape, MOST_STACKED):
                for name, price_stack in pricers.items():
                    priced[name].put(places, price_stack(pattern, point.waves))
        except UserError as error:
            priced = dict.fromkeys(sets, Prices.none(len(sizes), PriceStatus.NOT_PRICED.because(error.message)))
        for name, prices in priced.items():
            which = {"ranks": point.ranks, "bytes": sizes, "waves": point.waves}
            asked = Asked.of(point, sizes, levels=sets[name].settings.get("levels"))
            low, high, words = banded(sets[name].errors, asked, prices)
            parts = {"parameters_low": prices.low, "parameters_high": prices.high, "interval": words}
            ends = {"low": low, "high": high} | parts
            yield names | which | {"family": sets[name].family, "parameters": name} | vars(prices) | ends
