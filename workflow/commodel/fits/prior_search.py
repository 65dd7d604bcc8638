"""Fits of a model to a table by a prior for each value (`fit_with_priors`): models `shares` and
`taulop`.

A table of collectives determines some values well and others hardly. Each value therefore has a
prior: a typical value and a factor, within which, either way, it lies with a probability of two
thirds. The result maximises the product of prior and likelihood. Where the table says nothing, it
is the typical value, with the width of the prior.

The model replays all messages, so predictions are slow. Only a sample of the points is predicted:
at most MAX_POINTS with together at most MAX_MESSAGES messages, first a smaller one. Starts are
drawn from the priors. Of these, the best few are searched by Gauss–Newton steps. Predictions have
kinks, at which these steps may end. The search is therefore repeated with each value moved.

Eager limits change predictions in steps, so they are not searched by slopes. Few points depend on
them, and a random sample has too few of these. Their own search (`LimitSearch`) uses those points
of the whole table whose predictions change most if their messages are eager or not. It tries all
combinations of LIMITS. Values and limits are searched in turn: the limits again after every few
steps of the values.

Large residuals count less than their square, as in `parameter_search.py`. Intervals of values are
from the curvature at the best ones. That of an eager limit contains all limits whose loss is not
significantly above the least; the end is the next power of two. If all are as good, the limit is
missing. There are no draws, since each would take as long to predict as the estimate. The errors of
points left out are those after one Gauss–Newton step from the best values, without their own times:
this needs no further prediction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import product

import numpy as np

from commodel.fits.parameter_search import CHI_SQUARED_95, stack_parts
from commodel.models import Array
from commodel.models.evaluation.values import Values
from commodel.models.families import Family, Prior
from commodel.models.fitting.numerics import exp, log, minimize_rows, multiply_columns, solve
from commodel.patterns.build import group_by_shape
from commodel.patterns.schedule import Schedule
from commodel.predictions.model import Model
from commodel.progress import report_step
from commodel.records import Point
from commodel.stats import MAD_TO_SIGMA

MAX_POINTS, MAX_MESSAGES = 300, 80_000  # of the sample
ROUGH_POINTS, ROUGH_MESSAGES = 100, 15_000  # of the first, smaller sample
MAX_SHARE_OF_POINT = 0.05  # of the messages of a sample, in one point
CANDIDATES_PER_POINT = 3  # points whose messages are counted, for each one of the sample
RANDOM_STARTS, REFINED_STARTS = 3, 2
# messages of a point that shows a limit; such points for each limit
MAX_LIMIT_MESSAGES, MIN_LIMIT_POINTS = 1000, 100
ROUGH_STEPS, FINE_STEPS = 5, 4  # Gauss–Newton steps between two choices of the eager limit
REWEIGHTINGS = 2
# Of the search behind kinks: steps, and the noise, with which priors count little.
FURTHER_STEPS, FURTHER_NOISE = 3, 0.1
# bytes: eager limits that are tried, besides none
LIMITS = tuple(float(1 << power) for power in range(8, 21))
NEVER = 2.0**62  # bytes; an eager limit that no message exceeds
DIFFERENCE_STEP = 0.02  # of a logarithm: predictions have kinks, which a small step would see alone
MAX_CHANGE = 1.0  # of a logarithm in a step
HUBER_SD = 1.5  # standard deviations; see `parameter_search.py`
NO_LIMIT_NOTE = "no message of the points is slower for waiting for its receiver"
UNDETERMINED_NOTE = "the times of the points do not depend on it"
MIN_NOISE = 0.02  # of a logarithm: smallest standard deviation of the misfit


@dataclass(frozen=True, eq=False)
class PriorTask:
    """Schedules with their measured times, and the priors of the values to search. `limits` are the
    names of the eager limits, which change predictions in steps."""

    model: Family
    priors: Mapping[str, Prior]
    forms: Mapping[str, str]
    constants: Mapping[str, float]
    limits: Sequence[str]
    points: Sequence[Point]
    seconds: Array
    settings: Mapping[str, str] = field(default_factory=dict)
    weights: Array | float = 1.0
    noise: float = 0.3  # standard deviation of the misfit, which relates it to the priors

    @cached_property
    def stacks(self) -> list[tuple[list[int], Schedule, int]]:
        return list(stack_parts(self.points))

    @property
    def names(self) -> list[str]:
        return list(self.priors)

    @property
    def centre(self) -> Array:
        return log(np.array([prior.typical for prior in self.priors.values()]))

    @property
    def widths(self) -> Array:
        return log(np.array([prior.factor for prior in self.priors.values()]))

    def misfit(self, logs: Array, limits: Array) -> Array:
        """Return ln(predicted/measured) for rows of logarithms and their eager limits: (rows,
        points)."""
        rows = dict(zip(self.names, exp(logs).T[..., None], strict=True))
        rows |= dict(zip(self.limits, limits.T[..., None], strict=True))
        constants = {name: np.full((len(logs), 1), value) for name, value in self.constants.items()}
        model = Model.of(
            self.model, Values(rows | constants, dict(self.forms), dict(self.settings))
        )
        predicted = np.zeros((len(logs), len(self.seconds)))
        for numbers, pattern, count in self.stacks:
            cost = model.cost(pattern)
            predicted[:, numbers] += count * np.broadcast_to(cost, (len(numbers), len(logs))).T
        return log(np.maximum(predicted, 1e-300) / self.seconds)

    def residuals(self, logs: Array, limits: Array) -> Array:
        """Return the weighted misfits and the distances from the priors, whose squares add up to
        the loss."""
        distances = self.noise * (logs - self.centre) / self.widths
        return np.hstack([self.misfit(logs, limits) * np.sqrt(self.weights), distances])

    def losses(self, logs: Array, limits: Array) -> Array:
        """Return the robust loss of each row. It does not use the weights, which would hide what
        another limit explains."""
        from_priors = np.square(self.noise * (logs - self.centre) / self.widths)
        return self.bend(self.misfit(logs, limits)).sum(axis=1) + from_priors.sum(axis=1)

    def bend(self, misfit: Array) -> Array:
        """Return the robust loss of each misfit."""
        bend = HUBER_SD * self.noise
        return 2 * bend**2 * (np.sqrt(1 + np.square(misfit / bend)) - 1)

    def predict_cases(self, logs: Array) -> Array:
        """Return the misfits if no messages or all are eager. There is an axis for each limit, of
        length 2."""
        cases = np.array(list(product((0.0, NEVER), repeat=len(self.limits))))
        misfit = self.misfit(np.tile(logs, (len(cases), 1)), cases)
        return misfit.reshape(*[2] * len(self.limits), -1)

    def descend(self, logs: Array, limits: Array, steps: int) -> Array:
        """Return the logarithms after some Gauss–Newton steps from each row."""
        reach = 4 * self.widths
        return minimize_rows(
            lambda rows, moved: self.residuals(moved, limits[rows]),
            logs,
            (self.centre - reach, self.centre + reach),
            steps,
            difference_step=DIFFERENCE_STEP,
            max_change=MAX_CHANGE,
            min_gain=1e-3,
        )[0]

    def reweighted(self, logs: Array, limits: Array) -> PriorTask:
        """Return the task with the noise and the weights that follow from the misfits at one set of
        values."""
        misfit = self.misfit(logs[None], limits[None])[0]
        noise = max(MAD_TO_SIGMA * float(np.median(np.abs(misfit))), MIN_NOISE)
        return self.with_noise(noise, 1 / np.sqrt(1 + np.square(misfit / (HUBER_SD * noise))))

    def with_noise(self, noise: float, weights: Array | float = 1.0) -> PriorTask:
        task = replace(self, noise=noise, weights=weights)
        task.__dict__["stacks"] = self.stacks  # where `cached_property` stores them
        return task

    @property
    def sizes(self) -> Array:
        """The bytes of the messages of each point; 0 if it has none, or messages of several
        sizes."""
        low, high = np.full(len(self.points), np.inf), np.zeros(len(self.points))
        for numbers, pattern, _ in self.stacks:
            if pattern.messages:
                smallest, largest = (np.ravel(end) for end in pattern.extremes())
                low[numbers], high[numbers] = (
                    np.minimum(low[numbers], smallest),
                    np.maximum(high[numbers], largest),
                )
        return np.where(low == high, high, 0.0)

    def only(self, numbers: Sequence[int] | np.ndarray) -> PriorTask:
        """Return the task of some of the points."""
        return replace(
            self,
            points=[self.points[number] for number in numbers],
            seconds=self.seconds[list(numbers)],
        )


@dataclass(frozen=True, eq=False)
class LimitSearch:
    """Search for the eager limits by the points that depend on them most.

    All messages of such a point have the same size. A limit therefore makes all of them eager or
    none, and predictions of these cases suffice for all limits.
    """

    task: PriorTask
    sizes: Array  # bytes of the messages of each point

    @classmethod
    def of(cls, task: PriorTask, logs: Array) -> LimitSearch:
        """Return the points whose times depend most on whether messages are eager, at these values.

        Shapes of points, which differ in sizes only, are compared at their middle size. All sizes
        of the best are taken, since the time over the size shows the limit.
        """
        shapes = [
            numbers
            for numbers, shape in group_by_shape(task.points)
            if shape.point.ranks <= MAX_LIMIT_MESSAGES
        ]
        middles = task.only([numbers[len(numbers) // 2] for numbers in shapes])
        is_suitable = (middles.sizes > 0) & (count_messages(middles.points) <= MAX_LIMIT_MESSAGES)
        shapes = [
            numbers for numbers, suitable in zip(shapes, is_suitable, strict=True) if suitable
        ]
        if not shapes:
            return cls(task.only([]), np.zeros(0))
        cases = middles.only(np.flatnonzero(is_suitable)).predict_cases(logs)
        chosen: set[int] = set()
        for number in range(len(task.limits)):
            changes = np.abs(np.diff(cases, axis=number)).reshape(-1, len(shapes)).max(axis=0)
            order = np.argsort(-changes, kind="stable")
            points_before = np.cumsum([0, *(len(shapes[shape]) for shape in order)])
            for shape in order[points_before[:-1] < MIN_LIMIT_POINTS]:
                chosen.update(shapes[shape])
        points = task.only(sorted(chosen))
        points = points.only(np.flatnonzero(points.sizes > 0))
        return cls(points, points.sizes)

    def list_limits(self) -> Array:
        """Return the eager limits to try: all that some messages exceed, and one that none
        exceeds."""
        smallest, largest = self.sizes.min(initial=NEVER), self.sizes.max(initial=0)
        return np.array([*(limit for limit in LIMITS if smallest / 2 <= limit < largest), NEVER])

    def losses(self, logs: Array) -> Array:
        """Return the robust loss of all combinations of eager limits, with an axis for each of
        them."""
        losses, count = self.task.bend(self.task.predict_cases(logs)), len(self.task.limits)
        is_eager = (self.sizes <= self.list_limits()[:, None]).astype(int)
        cases = [
            np.expand_dims(is_eager, [axis for axis in range(count) if axis != number])
            for number in range(count)
        ]
        return losses[(*cases, np.arange(len(self.sizes)))].sum(axis=-1)

    def with_noise(self, noise: float) -> LimitSearch:
        return replace(self, task=self.task.with_noise(noise))

    def choose(self, logs: Array) -> Array:
        """Return the best eager limits for each row of values."""
        losses = [self.losses(row) for row in logs]
        best = [np.unravel_index(loss.argmin(), loss.shape) for loss in losses]
        return self.list_limits()[
            np.array(best, dtype=int).reshape(len(logs), len(self.task.limits))
        ]

    def find_good_limits(self, logs: Array) -> list[list[float]]:
        """Return for each eager limit all values whose loss is not significantly above the least
        one."""
        losses, limits = self.losses(logs), self.list_limits()
        is_good = losses <= losses.min() + CHI_SQUARED_95 * self.task.noise**2
        return [
            limits[np.moveaxis(is_good, number, 0).reshape(len(limits), -1).any(axis=1)].tolist()
            for number in range(len(self.task.limits))
        ]


@dataclass(frozen=True, eq=False)
class PriorFit:
    """The best values, and what the sample says about their errors."""

    values: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    missing: dict[str, str]  # eager limits without a value, with the reason
    sample: list[int]  # numbers of the points that were predicted
    task: PriorTask
    best: Array
    limits: Array
    misfit: Array = field(repr=False)
    slopes: Array = field(repr=False)  # of the misfits in the logarithms: (values, points)

    def refit_without(self, included: np.ndarray) -> Array:
        """Return ln(measured/predicted) of the sample for each row of flags, after one Gauss–Newton
        step from the best values with the flagged points only."""
        logs = []
        for flags in included:
            weights = np.broadcast_to(self.task.weights, self.misfit.shape) * flags
            step = _solve_step(self.slopes, weights, self.misfit, self.task, self.best)
            logs.append(-(self.misfit + np.sum(step[:, None] * self.slopes, axis=0)))
        return np.array(logs)


def fit_with_priors(task: PriorTask, rng: np.random.Generator) -> PriorFit:
    """Return the best values of a task."""
    sample = select_sample(task.points, MAX_POINTS, MAX_MESSAGES, rng)
    fine = task.only(sample)
    rough = fine.only(select_sample(fine.points, ROUGH_POINTS, ROUGH_MESSAGES, rng))
    draws = np.round(rng.standard_normal((RANDOM_STARTS, len(task.names))), 10)
    starts = np.vstack([task.centre, task.centre + draws * task.widths])
    # Multiplying all times by a factor multiplies predictions by it.
    all_eager = np.full((len(starts), len(task.limits)), NEVER)
    starts = starts - np.median(rough.misfit(starts, all_eager), axis=1, keepdims=True)
    report_step("which points depend on eager limits")
    search = LimitSearch.of(task, starts[0])
    report_step(f"the best of {len(starts)} starts")
    # Values and limits are searched in turn: a wrong limit would be compensated by other wrong
    # values.
    limits = search.choose(starts)
    for kept_count in (len(starts), REFINED_STARTS):
        order = np.argsort(rough.losses(starts, limits), kind="stable")[:kept_count]
        starts = rough.descend(starts[order], limits[order], ROUGH_STEPS)
        limits = search.choose(starts)
    first = int(np.argmin(rough.losses(starts, limits)))
    best, limit = starts[first], limits[first]
    report_step("values behind kinks of the predictions")
    best = _search_behind_kinks(rough.with_noise(FURTHER_NOISE), best, limit)
    limit = search.choose(best[None])[0]
    for number in range(REWEIGHTINGS):
        report_step(f"values by {len(sample)} points, step {number + 1} of {REWEIGHTINGS}")
        fine = fine.reweighted(best, limit)
        search = search.with_noise(fine.noise)
        best = fine.descend(best[None], limit[None], FINE_STEPS)[0]
        limit = search.choose(best[None])[0]
    return _describe_minimum(fine.reweighted(best, limit), best, limit, sample, search)


def _search_behind_kinks(task: PriorTask, best: Array, limit: Array) -> Array:
    """Return the best values that are found from `best`, or from there with one value moved by the
    factor of its prior. Predictions have kinks, behind which slopes do not show."""
    shift = np.diag(task.widths)
    starts = np.vstack([best, best + shift, best - shift])
    limits = np.tile(limit, (len(starts), 1))
    found = task.descend(starts, limits, FURTHER_STEPS)
    candidates = np.vstack([best, found])
    losses = task.losses(candidates, np.vstack([limit, limits]))
    return candidates[int(np.argmin(losses))]


def _describe_minimum(
    task: PriorTask, best: Array, limit: Array, sample: list[int], search: LimitSearch
) -> PriorFit:
    shifted = np.vstack([best, best + DIFFERENCE_STEP * np.eye(len(best))])
    misfit_rows = task.misfit(shifted, np.tile(limit, (len(shifted), 1)))
    misfit, slopes = misfit_rows[0], (misfit_rows[1:] - misfit_rows[0]) / DIFFERENCE_STEP
    weights = np.broadcast_to(task.weights, misfit.shape)
    covariance = task.noise**2 * solve(
        np.tile(_make_normal(slopes, weights, task), (len(best), 1, 1)), np.eye(len(best))
    )
    half_widths = 1.96 * np.sqrt(np.diagonal(covariance))
    low, high = exp(best - half_widths), exp(best + half_widths)
    values = dict(zip(task.names, exp(best).tolist(), strict=True))
    intervals = {name: (float(low[i]), float(high[i])) for i, name in enumerate(task.names)}
    missing = {}
    for name, value, good in zip(
        task.limits, limit.tolist(), search.find_good_limits(best), strict=True
    ):
        if len(good) == len(search.list_limits()):
            missing[name] = UNDETERMINED_NOTE
        elif value == NEVER:
            missing[name] = NO_LIMIT_NOTE
        else:
            values[name] = value
            intervals[name] = (good[0], min(2 * good[-1], NEVER))
    return PriorFit(values, intervals, missing, sample, task, best, limit, misfit, slopes)


def _make_normal(slopes: Array, weights: Array, task: PriorTask) -> Array:
    """Return the matrix of the normal equations, with the priors."""
    return multiply_columns((slopes * np.sqrt(weights))[None])[0] + np.diag(
        (task.noise / task.widths) ** 2
    )


def _solve_step(
    slopes: Array, weights: Array, misfit: Array, task: PriorTask, best: Array
) -> Array:
    """Return the Gauss–Newton step of the logarithms for these weights."""
    of_priors = (task.noise / task.widths) ** 2 * (best - task.centre)
    gradient = np.sum(slopes * (weights * misfit), axis=1) + of_priors
    return -solve(_make_normal(slopes, weights, task)[None], gradient[None])[0]


def count_messages(points: Sequence[Point]) -> Array:
    """Return the messages of each point, at least 1. Of points that differ in their size, those
    between two of equal counts are not built."""
    counts = np.ones(len(points))
    for numbers, _ in group_by_shape(points):
        by_size = sorted(numbers, key=lambda number: points[number].bytes)
        ends = [_count_messages(points[number]) for number in (by_size[0], by_size[-1])]
        is_constant = ends[0] == ends[1]
        for number in numbers:
            counts[number] = max(ends[0] if is_constant else _count_messages(points[number]), 1)
    return counts


@lru_cache(maxsize=1 << 14)  # the same points are fitted by many models
def _count_messages(point: Point) -> int:
    return sum(count * pattern.messages for _, pattern, count in stack_parts([point]))


def select_sample(
    points: Sequence[Point], most_points: int, most_messages: int, rng: np.random.Generator
) -> list[int]:
    """Return the numbers of points in random order, as many as the limits of points and of messages
    allow. A point with very many messages is left out, unless all have."""
    candidates = rng.permutation(len(points))[: CANDIDATES_PER_POINT * most_points].tolist()
    counts = count_messages([points[number] for number in candidates])
    largest = max(MAX_SHARE_OF_POINT * most_messages, counts.min())
    chosen: list[int] = []
    used = 0.0
    for number, messages in zip(candidates, counts.tolist(), strict=True):
        if (
            messages > largest
            or (chosen and used + messages > most_messages)
            or len(chosen) == most_points
        ):
            continue
        chosen.append(number)
        used += messages
    return sorted(chosen)
