"""Nonlinear least squares of many problems at once: damped Gauss-Newton (Levenberg-Marquardt) over rows.

One row is one problem; all take their steps together, and those that have come to rest are not looked at again. The
arithmetic is the same on every processor (see `portable`): where residuals are, so is the end.
"""

from collections.abc import Callable

import numpy as np

from commodel.models import Array
from commodel.models.fitting.portable import products, solve

STUCK = 1e3  # damping above which no step helps
LEAST_DAMPING = 1e-14  # damping that still tells values that do the same from each other: rounding is below it
SMALL = 1e-300  # a divisor that is not 0

Residuals = Callable[[np.ndarray, Array], Array]


def descend(
    residuals: Residuals,
    start: Array,
    bounds: tuple[Array, Array],
    iterations: int,
    move: float = 1e-5,
    longest: float = np.inf,
    rests: float = 1e-6,
) -> tuple[Array, Array]:
    """Where each row of `start` (rows, values) ends, and its sum of squares. `residuals(rows, theta)` is about the
    problems of these numbers; slopes are difference quotients over `move`, no value changes by more than `longest` at
    once, and a row whose last step gained less than `rests` of its sum is done."""
    theta = np.clip(start, *bounds)
    residual = residuals(np.arange(len(theta)), theta)
    loss, damping = np.sum(residual**2, axis=-1), np.full(len(theta), 1e-3)
    moving = np.arange(len(theta))
    for _ in range(iterations):
        if not len(moving):
            break
        change = _change(residuals, moving, theta[moving], residual[moving], damping[moving], move)
        tried = np.clip(theta[moving] + np.clip(change, -longest, longest), *bounds)
        trial = residuals(moving, tried)
        gain = (loss[moving] - np.sum(trial**2, axis=-1)) / np.maximum(loss[moving], SMALL)
        better = gain > 0
        kept = moving[better]
        theta[kept], residual[kept] = tried[better], trial[better]
        loss[kept] = np.sum(trial[better] ** 2, axis=-1)
        damping[moving] = np.maximum(damping[moving] * np.where(better, 0.2, 4.0), LEAST_DAMPING)
        moving = moving[np.where(better, gain > rests, damping[moving] < STUCK)]
    return theta, loss


def _change(
    residuals: Residuals, rows: np.ndarray, theta: Array, residual: Array, damping: Array, move: float
) -> Array:
    count = theta.shape[1]
    moved = (theta[:, None, :] + move * np.eye(count)).reshape(-1, count)
    there = residuals(np.repeat(rows, count), moved).reshape(len(rows), count, -1)
    slope = (there - residual[:, None, :]) / move  # (rows, values, cases)
    normal = products(slope)
    ridge = damping[:, None] * np.diagonal(normal, axis1=1, axis2=2)
    ridge = ridge + (1e-12 * np.sum(residual**2, axis=-1) + SMALL)[:, None]  # where a direction changes nothing
    target = np.sum(slope * residual[:, None, :], axis=-1)
    return -solve(normal + ridge[..., None] * np.eye(count), target)
