"""Prices of what is a sum, such as SUMMA's iterations: each part is begun by all ranks at once, so that their costs add
up (equation 11 of the τ–Lop paper). Parts that are alike are priced once, times how many there are."""

from collections.abc import Callable

import numpy as np

from commodel.errors import UserError
from commodel.models import Array
from commodel.patterns.build import Sum
from commodel.patterns.schedule import Schedule
from commodel.price.status import PriceStatus, foremost

# Costs (sizes, rows); by size how many times as long messages alone took, doubts, and how much wider the interval is.
Answer = tuple[Array, Array, list[str], Array]


def summed(pattern: Sum, ask: Callable[[Schedule, float], Answer], waves: float) -> Answer:
    """Row by row, so that an interval is that of the sum. What one part is doubted for, the sum is, too."""
    if waves != 1:
        name = pattern.shape.point.operation
        raise UserError(f"found several waves of '{name}', whose iterations all ranks begin at once; wanted one")
    total, wider, took = None, np.ones(pattern.sizes), np.zeros(pattern.sizes)
    status = pattern.sizes * [PriceStatus.OK.value]
    for count, part in pattern.counted():
        costs, alone, doubts, factor = ask(part, waves)
        total = count * costs if total is None else _added(total, count * costs)
        status = [foremost(*several) for several in zip(status, doubts, strict=True)]
        wider, took = np.maximum(wider, factor), took + count * costs[:, 0] * alone
    estimate = total[:, 0]
    return total, np.divide(took, estimate, out=np.ones_like(took), where=estimate > 0), status, wider


def _added(total: Array, costs: Array) -> Array:
    """Of as many draws as both have: a long schedule gets fewer."""
    rows = min(total.shape[1], costs.shape[1])
    return total[:, :rows] + costs[:, :rows]
