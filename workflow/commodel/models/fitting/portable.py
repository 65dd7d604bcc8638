"""Exponentials, logarithms, random numbers and small linear systems whose every bit is the same on all processors: of
additions, multiplications and divisions alone. numpy's own and BLAS's differ in the last bit with a processor's
features, and a search that turns at kinks may end elsewhere for one bit.
"""

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
