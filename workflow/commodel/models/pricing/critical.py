"""What a price rests on: how many of its seconds each message answers for.

A price that is replayed is made of sums and maxima of what messages and local work cost, so all of these twice as
dear makes it twice as dear. By Euler's theorem it is then the sum of its slopes: message k answers for c_k · ∂T/∂c_k,
which is nothing unless the finish time waits for it. Where two ways end at the same time, as in trees that are
symmetric, one of them is taken: costs are told apart by less than a millionth.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

from commodel.models import Array

if TYPE_CHECKING:
    from commodel.models.pricing.replay import Costs

_FACTORS: ContextVar[tuple[Array, Array] | None] = ContextVar("factors", default=None)  # of messages, and of work
APART, STEP = 1e-6, 1e-9  # of a cost
NOTHING = 1e-3  # of a cost: below it a slope is rounding


def answered(messages: int, cost: Callable[[], Array]) -> tuple[Array, float]:
    """Seconds of each message, and of all local work, in a price: `cost` asks for it anew, of one row of values. All
    are zero for a family that does not replay."""
    apart = 1 + APART * np.random.default_rng(1).random(messages)
    factors = np.tile(apart, (messages + 2, 1))
    factors[np.arange(messages), np.arange(messages)] *= 1 + STEP
    work = np.ones((messages + 2, 1))
    work[messages] += STEP
    token = _FACTORS.set((factors, work))
    try:
        prices = np.broadcast_to(cost(), messages + 2)
    finally:
        _FACTORS.reset(token)
    slopes = (prices[:-1] - prices[-1]) / STEP
    slopes = np.where(np.abs(slopes) < NOTHING * prices[-1] / max(messages, 1), 0.0, slopes)
    return slopes[:-1], float(slopes[-1])


def stretched(costs: Costs, work_seconds: Array) -> tuple[Costs, Array]:
    """What a replay is to take for them while it is asked so."""
    if (factors := _FACTORS.get()) is None:
        return costs, work_seconds
    messages, work = factors
    columns = (getattr(costs, entry.name) for entry in fields(costs))
    longer = [column if column is None or callable(column) else column * messages for column in columns]
    return type(costs)(*longer), work_seconds * work
