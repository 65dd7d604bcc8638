"""What a price waits for: the messages that answer for its seconds."""

from dataclasses import dataclass

import numpy as np

from commodel.models.pricing.critical import answered
from commodel.parameters import ParameterSet
from commodel.patterns.build import schedule
from commodel.price.model import Model
from commodel.records import Point


@dataclass(frozen=True, eq=False)
class Waits:
    """A point's price in seconds, and what of it each message and all local work answer for."""

    point: Point
    family: str
    price: float
    src: np.ndarray
    dst: np.ndarray
    seconds: np.ndarray
    work: float

    @property
    def messages(self) -> list[tuple[int, int, float]]:
        """Those that the price waits for: from, to, seconds."""
        columns = (column.tolist() for column in (self.src, self.dst, self.seconds))
        return [(src, dst, seconds) for src, dst, seconds in zip(*columns, strict=True) if seconds]


def waits(point: Point, parameters: ParameterSet) -> Waits | None:
    """None: the family does not replay messages, and does not tell."""
    pattern, model = schedule(point), Model.of_set(parameters)
    price = float(model.cost(pattern)[0])
    seconds, work = answered(len(pattern.src), lambda: model.cost(pattern))
    if not seconds.any():
        return None
    return Waits(point, parameters.family, price, pattern.src, pattern.dst, seconds, work)
