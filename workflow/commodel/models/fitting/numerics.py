"""Numerics whose every bit is the same on all processors: exponentials, logarithms, random numbers, scalar products,
small linear systems, and nonlinear least squares.

They are made of additions, multiplications and divisions alone. numpy's own and BLAS's differ in the last bit with a
processor's features, and a search that turns at kinks may end elsewhere for one bit.

`descend` is damped Gauss-Newton (Levenberg-Marquardt) for many problems at once: one row is one problem; all take their
steps together, and those that have come to rest are not looked at again.
"""

from collections.abc import Callable

import numpy as np

from commodel.models import Array

LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
EXP_TERMS, LOG_TERMS = 16, 11  # of the series: the next one is below half a last bit
LARGEST = 700.0  # a logarithm whose exponential is still a number


def exp(x: Array) -> Array:
    """e^x = 2^n·e^r with |r| ≤ ln 2/2, e^r by its Taylor series."""
    x = np.clip(x, -LARGEST, LARGEST)
    n = np.rint(x / (LN2_HIGH + LN2_LOW))
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    return np.ldexp(1 + r * _series(r), n.astype(int))


def expm1(x: Array) -> Array:
    """e^x − 1, without cancellation near 0."""
    return np.where(np.abs(x) < 0.5, x * _series(x), exp(x) - 1)


def _series(r: Array) -> Array:
    """(e^r − 1)/r for a small r."""
    total = np.ones_like(r)
    for k in range(EXP_TERMS, 1, -1):
        total = 1 + total * r / k
    return total


def log(y: Array) -> Array:
    """ln y = n·ln 2 + ln m with √½ ≤ m < √2, ln m = 2·artanh s with s = (m−1)/(m+1)."""
    m, n = np.frexp(np.asarray(y, dtype=float))
    small = m < np.sqrt(0.5)
    m, n = np.where(small, 2 * m, m), n - small
    s = (m - 1) / (m + 1)
    square, total = s * s, np.zeros_like(s)
    for k in range(LOG_TERMS, -1, -1):
        total = 1 / (2 * k + 1) + total * square
    return n * LN2_HIGH + (2 * s * total + n * LN2_LOW)


def normals(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Normal random numbers; of the rare large ones the C library's logarithm decides the last bit."""
    return np.round(rng.standard_normal(shape), 10)


def products(columns: Array) -> Array:
    """Of columns (rows, values, cases) the scalar product of every two: (rows, values, values)."""
    count = columns.shape[1]
    scalars = np.empty((len(columns), count, count))
    for i in range(count):
        for j in range(i + 1):
            scalars[:, i, j] = scalars[:, j, i] = np.sum(columns[:, i] * columns[:, j], axis=-1)
    return scalars


def solve(matrix: Array, target: Array) -> Array:
    """x of matrix·x = target for symmetric positive definite matrices (rows, n, n) and targets (rows, n): Gauss, each
    unknown scaled to a diagonal of 1 first; such matrices need no pivoting."""
    scale = 1 / np.sqrt(np.diagonal(matrix, axis1=1, axis2=2))
    left, right = matrix * scale[:, :, None] * scale[:, None, :], target * scale
    count = left.shape[1]
    for k in range(count):
        for row in range(k + 1, count):
            share = left[:, row, k] / left[:, k, k]
            left[:, row, k:] -= share[:, None] * left[:, k, k:]
            right[:, row] -= share * right[:, k]
    for k in reversed(range(count)):
        right[:, k] = (right[:, k] - np.sum(left[:, k, k + 1 :] * right[:, k + 1 :], axis=-1)) / left[:, k, k]
    return right * scale


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
    """Return where each row of `start` (rows, values) ends, and its sum of squares. `residuals(rows, theta)` is about
    the problems of these numbers; slopes are difference quotients over `move`, no value changes by more than `longest`
    at once, and a row whose last step gained less than `rests` of its sum is done."""
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
