"""Fits a latency that grows with ranks, with bytes, and with how far all pairs together exceed a network's capacity.

L(m, p) = L_0 + L_p·p + L_m·m·max(1, throughput/capacity). Given the capacity the rest is linear, so that only the
capacity is searched.
"""

from collections.abc import Callable, Sequence

import numpy as np

from commodel.models import Array
from commodel.models.fitting.regression import ALIKE, least_squares


def fit_sharing(
    ranks: Array, size: Array, throughput: Array, left: Array, weights: Array
) -> tuple[Array, Array, Array]:
    """For every draw of `left` (draws, cases) the capacity, and L_0, L_p and L_m (draws, 3), none below 0; and what the
    first row comes to at each case. The capacity is infinite where none explains more than no limit does."""

    def terms(capacity: float) -> list[Array]:
        return [np.ones(len(size)), ranks, size * np.maximum(1, throughput / capacity)]

    root = np.sqrt(weights / weights.max())

    def misfits(candidates: Sequence[float], rows: slice) -> Array:
        """(candidates, rows)"""
        sums = []
        for candidate in candidates:
            columns = np.stack(terms(candidate), axis=-1) * root[:, None]
            scale = np.abs(columns).max(axis=0)
            solver = np.linalg.pinv(columns / scale, rcond=ALIKE)
            missed = left[rows] * root - left[rows] * root @ solver.T @ (columns / scale).T
            sums.append(np.sum(missed**2, axis=-1))
        return np.array(sums)

    capacity = _searched(misfits, throughput, 1e-12 * np.sum((left[0] * root) ** 2), len(left))
    L = np.empty((len(left), 3))
    for value in np.unique(capacity):
        # Row 0 goes along: what a line misses is put on its draws again.
        rows = np.concatenate([[0], np.flatnonzero(capacity == value)])
        L[rows[1:]] = least_squares(terms(value), left[rows], weights)[1:]
    L[0] = least_squares(terms(capacity[0]), left[:1], weights)
    L = np.maximum(L, 0)
    return capacity, L, sum(value * term for value, term in zip(L[0], terms(capacity[0]), strict=True))


def _searched(
    misfits: Callable[[Sequence[float], slice], Array], throughput: Array, nothing: float, draws: int
) -> Array:
    """The capacity with the smallest misfit: of row 0 exactly, of the draws on a fine grid around it."""
    from scipy.optimize import minimize_scalar  # here, because it takes longer to load than most verbs to run

    def misfit(log: float) -> float:
        return misfits([np.exp(log)], slice(1))[0, 0]

    coarse = np.geomspace(throughput[throughput > 0].min(), throughput.max(), 40)
    scores = misfits(coarse, slice(1))[:, 0]
    best = int(np.argmin(scores))
    if scores[best] > 0.7 * misfit(np.inf) - nothing:
        return np.full(draws, np.inf)
    ends = coarse[max(best - 1, 0)], coarse[min(best + 1, len(coarse) - 1)]
    fine = np.geomspace(*ends, 60)
    capacity = fine[np.argmin(misfits(fine, slice(None)), axis=0)]
    exact = minimize_scalar(misfit, bounds=np.log(ends), method="bounded", options={"xatol": 1e-9})
    capacity[0] = np.exp(exact.x)
    return capacity
