"""Numerics with identical bits on all processors: exponentials, logarithms, random numbers, scalar
products, small linear systems, and nonlinear least squares (`minimize_rows`).

They consist of additions, multiplications, divisions and square roots only. The last bit of numpy's
and BLAS's results depends on the processor. If the minimized function has kinks, one bit may decide
at which minimum a search ends.

`minimize_rows` is damped Gauss-Newton (Levenberg-Marquardt) for many problems at once, one problem
a row. All rows step together; converged rows are dropped.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from commodel.models import Array

LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
EXP_TERMS, LOG_TERMS = 16, 11  # of the series: the next term is below half of the last bit
MAX_EXP_ARGUMENT = 700.0  # largest argument; its exponential is finite


def exp(x: Array | float) -> Array:
    """Return e^x = 2^n·e^r with |r| ≤ ln 2/2, e^r by its Taylor series."""
    x = np.clip(x, -MAX_EXP_ARGUMENT, MAX_EXP_ARGUMENT)
    n = np.rint(x / (LN2_HIGH + LN2_LOW))
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    return np.ldexp(1 + r * _sum_series(r), n.astype(int))


def expm1(x: Array | float) -> Array:
    """Return e^x − 1, without cancellation near 0."""
    return np.where(np.abs(x) < 0.5, x * _sum_series(x), exp(x) - 1)


def _sum_series(r: Array | float) -> Array:
    """Return (e^r − 1)/r for a small r."""
    total = np.ones_like(r)
    for k in range(EXP_TERMS, 1, -1):
        total = 1 + total * r / k
    return total


def log(y: Array | float) -> Array:
    """Return ln y = n·ln 2 + ln m with √½ ≤ m < √2, ln m = 2·artanh s with s = (m−1)/(m+1)."""
    m, n = np.frexp(np.asarray(y, dtype=float))
    small = m < np.sqrt(0.5)
    m, n = np.where(small, 2 * m, m), n - small
    s = (m - 1) / (m + 1)
    square, total = s * s, np.zeros_like(s)
    for k in range(LOG_TERMS, -1, -1):
        total = 1 / (2 * k + 1) + total * square
    return n * LN2_HIGH + (2 * s * total + n * LN2_LOW)


def index_last_axis(indices: np.ndarray) -> tuple[Any, ...]:
    """Return the index of these entries of the last axis, for the method `at` of ufuncs."""
    return (..., indices)


def add_at(totals: Array, indices: np.ndarray, summands: Array) -> None:
    """Add summands to entries of the last axis, of which several may be the same one."""
    np.add.at(totals, index_last_axis(indices), summands)


def draw_normals(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return normal random numbers, rounded: for rare large ones, the C library's logarithm decides
    the last bit."""
    return np.round(rng.standard_normal(shape), 10)


def multiply_columns(columns: Array) -> Array:
    """Return the scalar product of every two columns: (rows, values, cases) to (rows, values,
    values)."""
    count = columns.shape[1]
    scalars = np.empty((len(columns), count, count))
    for i in range(count):
        for j in range(i + 1):
            scalars[:, i, j] = scalars[:, j, i] = np.sum(columns[:, i] * columns[:, j], axis=-1)
    return scalars


def solve(matrix: Array, target: Array) -> Array:
    """Return x of matrix·x = target for symmetric positive definite matrices (rows, n, n) and
    targets (rows, n).

    Gaussian elimination, with each unknown scaled to a diagonal of 1 first; such matrices need no
    pivoting.
    """
    scale = 1 / np.sqrt(np.diagonal(matrix, axis1=1, axis2=2))
    scaled, right = matrix * scale[:, :, None] * scale[:, None, :], target * scale
    count = scaled.shape[1]
    for k in range(count):
        for row in range(k + 1, count):
            share = scaled[:, row, k] / scaled[:, k, k]
            scaled[:, row, k:] -= share[:, None] * scaled[:, k, k:]
            right[:, row] -= share * right[:, k]
    for k in reversed(range(count)):
        right[:, k] = (
            right[:, k] - np.sum(scaled[:, k, k + 1 :] * right[:, k + 1 :], axis=-1)
        ) / scaled[:, k, k]
    return right * scale


MAX_DAMPING = 1e3  # above this damping the search of a row ends
# larger than rounding errors, so that values with equal effect remain determined
MIN_DAMPING = 1e-14
MIN_DIVISOR = 1e-300  # avoids division by 0

Residuals = Callable[[np.ndarray, Array], Array]


def minimize_rows(
    residuals: Residuals,
    start: Array,
    bounds: tuple[Array, Array],
    iterations: int,
    difference_step: float = 1e-5,
    max_change: float = np.inf,
    min_gain: float = 1e-6,
) -> tuple[Array, Array]:
    """Return the minimum of each row of `start` (rows, values), and its sum of squares.

    `residuals(rows, theta)` returns the residuals of the problems with these numbers.
    `difference_step` is that of difference quotients. No value changes by more than `max_change` in
    a step. A row is done if its last step reduced the sum by less than the share `min_gain`.
    """
    theta = np.clip(start, *bounds)
    residual = residuals(np.arange(len(theta)), theta)
    loss, damping = np.sum(residual**2, axis=-1), np.full(len(theta), 1e-3)
    active = np.arange(len(theta))
    for _ in range(iterations):
        if not len(active):
            break
        step = _gauss_newton_step(
            residuals, active, theta[active], residual[active], damping[active], difference_step
        )
        trial_theta = np.clip(theta[active] + np.clip(step, -max_change, max_change), *bounds)
        trial_residual = residuals(active, trial_theta)
        gain = (loss[active] - np.sum(trial_residual**2, axis=-1)) / np.maximum(
            loss[active], MIN_DIVISOR
        )
        better = gain > 0
        improved = active[better]
        theta[improved], residual[improved] = trial_theta[better], trial_residual[better]
        loss[improved] = np.sum(trial_residual[better] ** 2, axis=-1)
        damping[active] = np.maximum(damping[active] * np.where(better, 0.2, 4.0), MIN_DAMPING)
        active = active[np.where(better, gain > min_gain, damping[active] < MAX_DAMPING)]
    return theta, loss


def _gauss_newton_step(
    residuals: Residuals,
    rows: np.ndarray,
    theta: Array,
    residual: Array,
    damping: Array,
    difference_step: float,
) -> Array:
    """Return the damped Gauss-Newton step of each row."""
    count = theta.shape[1]
    shifted = (theta[:, None, :] + difference_step * np.eye(count)).reshape(-1, count)
    shifted_residual = residuals(np.repeat(rows, count), shifted).reshape(len(rows), count, -1)
    slope = (shifted_residual - residual[:, None, :]) / difference_step  # (rows, values, cases)
    normal = multiply_columns(slope)
    ridge = damping[:, None] * np.diagonal(normal, axis1=1, axis2=2)
    # for directions without effect
    ridge = ridge + (1e-12 * np.sum(residual**2, axis=-1) + MIN_DIVISOR)[:, None]
    target = np.sum(slope * residual[:, None, :], axis=-1)
    return -solve(normal + ridge[..., None] * np.eye(count), target)
