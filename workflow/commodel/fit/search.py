"""The search for a family's values whose prices of given schedules come nearest to given times. Values are positive:
their logarithms are searched, many rows of them at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from commodel.models import Array
from commodel.models.families import Family
from commodel.models.fitting.descent import Residuals, descend
from commodel.models.fitting.portable import exp, log
from commodel.models.pricing.values import Values
from commodel.patterns.schedule import Schedule
from commodel.price.model import Model

CELLS = 500_000  # of one array: sizes × draws × messages
FAR = 4.6  # how far starts lie from a guess, either way: a factor of 100
BOUND = 13.8  # how far a value may go: a factor of a million
MOVE = 1e-4  # of a logarithm, for difference quotients
STEP = {"move": MOVE, "longest": 1.5}
RESTS, SETTLED = 1e-4, 1e-10  # relative gain below which a step was the last: of a draw, and of the best
LAST, LONG, BRIEF = 120, 30, 10  # steps of it: of the best, from afar and from the best
REACH = np.round(np.geomspace(0.02, BOUND, 16), 6)  # from the best: where a value is put to see what others make up for


@dataclass(frozen=True, eq=False)
class Task:
    """Schedules with their times, stacked by shape once, and the names of the values that are sought."""

    family: Family
    names: Sequence[str]
    forms: Mapping[str, str]
    stacks: Sequence[tuple[list[int], Schedule, int]]  # the points of each, and how often they have it
    seconds: Array

    def prices(self, logs: Array) -> Array:
        """(draws, points) of logarithms (draws, values)."""
        prices, columns = np.zeros((len(logs), len(self.seconds))), exp(logs).T[..., None]
        model = Model.of(self.family, Values(dict(zip(self.names, columns, strict=True)), self.forms))
        for numbers, pattern, count in self.stacks:
            most = max(1, CELLS // max(pattern.sizes * pattern.width, 1))
            for first in range(0, len(logs), most):
                stop = min(first + most, len(logs))
                cost = model.some(first, stop).cost(pattern)
                prices[first:stop, numbers] += count * np.broadcast_to(cost, (len(numbers), stop - first)).T
        return prices

    def misfit(self, logs: Array) -> Array:
        return log(np.maximum(self.prices(logs), 1e-300) / self.seconds)

    def nearest(self, start: Array, target: Array, steps: int) -> tuple[Array, Array]:
        """From each row of `start` to misfits nearest to its row of `target`: logarithms, sums of squares."""
        return _descended(lambda rows, logs: self.misfit(logs) - target[rows], start, steps, RESTS)

    def without(self, seen: np.ndarray, best: Array) -> Array:
        """Of each row of flags, by the values near `best` that are nearest to the points that it says are seen,
        ln(time/price) of all points."""
        start = np.tile(best, (len(seen), 1))
        logs, _ = _descended(lambda rows, logs: self.misfit(logs) * seen[rows], start, BRIEF, RESTS)
        return -self.misfit(logs)

    def settled(self, start: Array, guess: Array, pull: float) -> tuple[Array, Array]:
        """From each row of `start` to the minimum, where being FAR from the guess costs `pull`."""
        share = np.sqrt(pull)
        return _descended(
            lambda _, logs: np.hstack([self.misfit(logs), share * (logs - guess) / FAR]), start, LAST, SETTLED
        )

    def profiled(self, best: Array, number: int) -> tuple[Array, Array]:
        """A value put at each of `REACH` below and above its best: how far that is, and the sum of squares that is left
        when the others have made up for it as well as they can."""
        offsets = np.concatenate([-REACH[::-1], REACH])
        start = np.tile(best, (len(offsets), 1))
        start[:, number] += offsets

        def residuals(rows: np.ndarray, logs: Array) -> Array:
            logs[:, number] = start[rows, number]
            return self.misfit(logs)

        bounds = best - 2 * BOUND, best + 2 * BOUND
        return offsets, descend(residuals, start, bounds, LONG, rests=RESTS, **STEP)[1]


def _descended(residuals: Residuals, start: Array, steps: int, rests: float) -> tuple[Array, Array]:
    bounds = start.min(axis=0) - BOUND, start.max(axis=0) + BOUND
    return descend(residuals, start, bounds, steps, rests=rests, **STEP)
