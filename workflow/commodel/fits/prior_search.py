"""Fits of a model with many values to a table, by a prior for each value (`fit_with_priors`): model `shares`.

A table of collectives determines some values well and others hardly. Each value therefore has a prior: a typical value
and a factor, within which, either way, it lies with a probability of two thirds. The result maximises the product of
prior and likelihood. Where the table says nothing, it is the typical value, with the width of the prior.

The model replays all messages, so predictions are slow. Only a sample of the points is predicted: at most MAX_POINTS
with together at most MAX_MESSAGES messages, first a smaller one. Starts are drawn from the priors. Of these, the best
few are searched by Gauss–Newton steps. The eager limits change predictions in steps, so they are not searched by
slopes: starts differ in them, and between the steps they are the best of LIMITS.

Large residuals count less than their square, as in `parameter_search.py`. Intervals of values are from the curvature
at the best ones; an eager limit lies between the chosen power of two and the next one. There are no draws, since each
would take as long to predict as the estimate. The errors of points left out are those after one Gauss–Newton step from
the best values, without their own times: this needs no further prediction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from commodel.fits.parameter_search import stack_parts
from commodel.models import Array
from commodel.models.evaluation.values import Values
from commodel.models.families import Family, Prior
from commodel.models.fitting.numerics import exp, log, minimize_rows, multiply_columns, solve
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
STEP_OF_STARTS = 2  # of the eager limits, every second one has a start of its own
ROUGH_STEPS, FINE_STEPS = 5, 4  # Gauss–Newton steps between two choices of the eager limit
REWEIGHTINGS = 2
LIMITS = tuple(float(1 << power) for power in range(8, 21))  # bytes: eager limits that are tried, besides none
NEVER = 2.0**62  # bytes; an eager limit that no message exceeds
DIFFERENCE_STEP = 0.02  # of a logarithm: predictions have kinks, which a small step would see alone
MAX_CHANGE = 1.0  # of a logarithm in a step
HUBER_SD = 1.5  # standard deviations; see `parameter_search.py`
MIN_NOISE = 0.02  # of a logarithm: smallest standard deviation of the misfit


@dataclass(frozen=True, eq=False)
class PriorTask:
    """Schedules with their measured times, and the priors of the values to search. `limits` are the names of the
    eager limits, which change predictions in steps."""

    family: Family
    priors: Mapping[str, Prior]
    forms: Mapping[str, str]
    constants: Mapping[str, float]
    limits: Sequence[str]
    points: Sequence[Point]
    seconds: Array
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
        """Return ln(predicted/measured) for rows of logarithms and their eager limits: (rows, points)."""
        rows = dict(zip(self.names, exp(logs).T[..., None], strict=True))
        rows |= dict(zip(self.limits, limits.T[..., None], strict=True))
        constants = {name: np.array([[value]]) for name, value in self.constants.items()}
        model = Model.of(self.family, Values(rows | constants, dict(self.forms)))
        predicted = np.zeros((len(logs), len(self.seconds)))
        for numbers, pattern, count in self.stacks:
            cost = model.cost(pattern)
            predicted[:, numbers] += count * np.broadcast_to(cost, (len(numbers), len(logs))).T
        return log(np.maximum(predicted, 1e-300) / self.seconds)

    def residuals(self, logs: Array, limits: Array) -> Array:
        """Return the weighted misfits and the distances from the priors, whose squares add up to the loss."""
        distances = self.noise * (logs - self.centre) / self.widths
        return np.hstack([self.misfit(logs, limits) * np.sqrt(self.weights), distances])

    def losses(self, logs: Array, limits: Array) -> Array:
        """Return the robust loss of each row. It does not use the weights, which would hide what another limit
        explains."""
        bend = HUBER_SD * self.noise
        distances = np.sqrt(1 + np.square(self.misfit(logs, limits) / bend)) - 1
        from_priors = np.square(self.noise * (logs - self.centre) / self.widths)
        return 2 * bend**2 * distances.sum(axis=1) + from_priors.sum(axis=1)

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

    def list_limits(self) -> Array:
        """Return the eager limits that some of the messages exceed and others do not, and one that none exceeds."""
        ends = [np.ravel(end) for _, pattern, _ in self.stacks if pattern.messages for end in pattern.extremes()]
        sizes = np.concatenate([np.zeros(1), *ends])
        return np.array([*(limit for limit in LIMITS if sizes.min() <= limit < sizes.max()), NEVER])

    def choose_limits(self, logs: Array, limits: Array) -> Array:
        """Return the best eager limits of each row, found one after the other."""
        candidates = self.list_limits()
        for number in range(len(self.limits)):
            trials = np.repeat(limits, len(candidates), axis=0)
            trials[:, number] = np.tile(candidates, len(logs))
            losses = self.losses(np.repeat(logs, len(candidates), axis=0), trials).reshape(len(logs), -1)
            limits = limits.copy()
            limits[:, number] = candidates[losses.argmin(axis=1)]
        return limits

    def reweighted(self, logs: Array, limits: Array) -> PriorTask:
        """Return the task with the noise and the weights that follow from the misfits at one set of values."""
        misfit = self.misfit(logs[None], limits[None])[0]
        noise = max(MAD_TO_SIGMA * float(np.median(np.abs(misfit))), MIN_NOISE)
        task = replace(self, noise=noise, weights=1 / np.sqrt(1 + np.square(misfit / (HUBER_SD * noise))))
        task.__dict__["stacks"] = self.stacks  # where `cached_property` stores them
        return task

    def only(self, numbers: Sequence[int]) -> PriorTask:
        """Return the task of some of the points."""
        return replace(self, points=[self.points[number] for number in numbers], seconds=self.seconds[list(numbers)])


@dataclass(frozen=True, eq=False)
class PriorFit:
    """The best values, and what the sample says about their errors."""

    values: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    sample: list[int]  # numbers of the points that were predicted
    task: PriorTask
    best: Array
    limits: Array
    misfit: Array = field(repr=False)
    slopes: Array = field(repr=False)  # of the misfits in the logarithms: (values, points)

    def refit_without(self, included: np.ndarray) -> Array:
        """Return ln(measured/predicted) of the sample for each row of flags, after one Gauss–Newton step from the best
        values with the flagged points only."""
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
    # Values and eager limit are searched together: a wrong limit would be compensated by other wrong values.
    limits = rough.list_limits()[::STEP_OF_STARTS]
    draws = np.round(rng.standard_normal((RANDOM_STARTS, len(task.names))), 10)
    starts = np.vstack([np.tile(task.centre, (len(limits), 1)), task.centre + draws * task.widths])
    of_random_starts = np.resize(limits[-RANDOM_STARTS:], RANDOM_STARTS)
    limits = np.tile([*limits, *of_random_starts], (len(task.limits), 1)).T
    # Multiplying all times by a factor multiplies predictions by it.
    starts = starts - np.median(rough.misfit(starts, limits), axis=1, keepdims=True)
    report_step(f"the best of {len(starts)} starts")
    logs = rough.descend(starts, limits, ROUGH_STEPS)
    limits = rough.choose_limits(logs, limits)
    order = np.argsort(rough.losses(logs, limits), kind="stable")[:REFINED_STARTS]
    logs, limits = rough.descend(logs[order], limits[order], ROUGH_STEPS), limits[order]
    first = int(np.argmin(rough.losses(logs, limits)))
    best, limit = logs[first], limits[first]
    for number in range(REWEIGHTINGS):
        report_step(f"values by {len(sample)} points, step {number + 1} of {REWEIGHTINGS}")
        fine = fine.reweighted(best, limit)
        limit = fine.choose_limits(best[None], limit[None])[0]
        best = fine.descend(best[None], limit[None], FINE_STEPS)[0]
    return _describe_minimum(fine.reweighted(best, limit), best, limit, sample)


def _describe_minimum(task: PriorTask, best: Array, limit: Array, sample: list[int]) -> PriorFit:
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
    found = {name: value for name, value in zip(task.limits, limit.tolist(), strict=True) if value < NEVER}
    values |= found
    intervals = {name: (float(low[i]), float(high[i])) for i, name in enumerate(task.names)}
    intervals |= {name: (value, 2 * value) for name, value in found.items()}
    return PriorFit(values, intervals, sample, task, best, limit, misfit, slopes)


def _make_normal(slopes: Array, weights: Array, task: PriorTask) -> Array:
    """Return the matrix of the normal equations, with the priors."""
    return multiply_columns((slopes * np.sqrt(weights))[None])[0] + np.diag((task.noise / task.widths) ** 2)


def _solve_step(slopes: Array, weights: Array, misfit: Array, task: PriorTask, best: Array) -> Array:
    """Return the Gauss–Newton step of the logarithms for these weights."""
    of_priors = (task.noise / task.widths) ** 2 * (best - task.centre)
    gradient = np.sum(slopes * (weights * misfit), axis=1) + of_priors
    return -solve(_make_normal(slopes, weights, task)[None], gradient[None])[0]


def select_sample(points: Sequence[Point], most_points: int, most_messages: int, rng: np.random.Generator) -> list[int]:
    """Return the numbers of points in random order, as many as the limits of points and of messages allow. A point with
    very many messages is left out, unless all have."""
    candidates = rng.permutation(len(points))[: CANDIDATES_PER_POINT * most_points].tolist()
    stacks = stack_parts([points[number] for number in candidates])
    counts = np.zeros(len(candidates))
    for numbers, pattern, count in stacks:
        counts[numbers] += count * max(pattern.messages, 1)
    largest = max(MAX_SHARE_OF_POINT * most_messages, counts.min())
    chosen: list[int] = []
    used = 0.0
    for number, messages in zip(candidates, counts.tolist(), strict=True):
        if messages > largest or (chosen and used + messages > most_messages) or len(chosen) == most_points:
            continue
        chosen.append(number)
        used += messages
    return sorted(chosen)
