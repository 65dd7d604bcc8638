"""Fits what a wave takes along a chain and from N leaves to a root together, as TAN's equation 1 has both:

    chain of height h:  C + h·(L + o(2))            N-to-1:  C + L + o(N+1) = C + (L + o(2)) + (shape(N+1) − shape(2))

Both share C, what a level takes, and the shape of o. L and the constant of o occur together only, so a level's time is
what is fitted; where L is known from elsewhere, the rest is o's. Nothing of it may be below 0, so that no price falls.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from commodel.models import Array
from commodel.models.fitting.numerics import expm1, log
from commodel.models.fitting.regression import BETTER, aicc, with_misfit

SHAPES = ("linear", "logarithmic", "quadratic", "exponential")
STEEPEST, FLATTEST = 20.0, 1e-3  # of c·x in an exponential, at the largest x
GRID = 60  # values of c that a draw may have
SAME = 1e-9  # of two sums of squares, relatively: rounding must not choose


@dataclass(frozen=True, eq=False)
class Trees:
    """One value a draw each; `shape` has the coefficients of o beside its constant, a column each."""

    form: str
    C: Array
    level: Array  # L + o(2)
    shape: Array
    below: Array  # shape(2): o's constant is level − L − below
    chain: Array  # what row 0 comes to at every height
    fan: Array  # and at every number of leaves
    seen: bool  # whether growth could be told at all


def fit_trees(height: Array, chain: Array, leaves: Array, fan: Array) -> Trees:
    """From half the round trips along chains and the times from N leaves to one, (draws, cases) each. The shape of the
    smallest AICc, of equal ones the first; those with more than one coefficient only where there are cases to spare."""
    y = np.concatenate([chain, fan], axis=-1)
    weights = 1 / y[0] ** 2
    tree_sizes = len(set(leaves[leaves > 1].tolist()))
    forms = [form for form in SHAPES if tree_sizes >= (1 if form in ("linear", "logarithmic") else 3)] or ["constant"]
    fits = {form: _Form(form, height, leaves, y, weights) for form in forms}
    scores = {form: fit.score for form, fit in fits.items()}
    least = min(scores.values()) + BETTER
    chosen = next(fit for form, fit in fits.items() if scores[form] <= least or len(fits) == 1)
    return chosen.fitted()


class _Form:
    """One shape on all cases: coefficients C, level and the shape's, none below 0."""

    def __init__(self, form: str, height: Array, leaves: Array, y: Array, weights: Array) -> None:
        self.form, self.height, self.leaves, self.y, self.weights = form, height, leaves, y, weights
        self.c = self._best_c() if form == "exponential" else 0.0
        columns = self.columns(self.c)
        self.misfit = y[0] - _nonnegative(columns, y[:1], weights)[0] @ columns.T
        terms = columns.shape[1] + (form == "exponential")
        signal = float(np.mean(weights * y[0] ** 2))
        self.score = aicc(float(np.mean(weights * self.misfit**2)), y.shape[1], terms + 1, signal)
        self.terms = terms

    def basis(self, x: Array, c: float) -> list[Array]:
        shapes = {"linear": [x], "logarithmic": [log(x)], "quadratic": [x, x**2], "exponential": [expm1(c * x)]}
        return shapes.get(self.form, [])

    def columns(self, c: float) -> Array:
        """Over all cases, those of the chain first: how often C, a level, and each part of the shape beyond x = 2."""
        handled, two = self.leaves + 1.0, np.array([2.0])
        grown = zip(self.basis(handled, c), self.basis(two, c), strict=True)
        nothing = np.zeros(len(self.height))
        parts = [np.concatenate([nothing, there - here]) for there, here in grown]
        level = np.concatenate([self.height, np.ones(len(self.leaves))])
        return np.stack([np.ones(len(level)), level, *parts], axis=-1)

    def _loss(self, c: float, y: Array) -> Array:
        columns = self.columns(c)
        return np.sum(self.weights * (y - _nonnegative(columns, y, self.weights) @ columns.T) ** 2, axis=-1)

    def _best_c(self) -> float:
        from scipy.optimize import minimize_scalar  # here, because it takes longer to load than most verbs to run

        most = self.leaves.max() + 1.0
        self.bounds = FLATTEST / most, STEEPEST / most
        best = minimize_scalar(
            lambda power: self._loss(float(np.exp(power)), self.y[:1])[0],
            bounds=tuple(np.log(self.bounds)),
            method="bounded",
            options={"xatol": 1e-9},
        )
        return float(np.exp(best.x))

    def fitted(self) -> Trees:
        y = with_misfit(self.y, self.misfit, self.weights, self.terms)
        c = np.full(len(y), self.c)
        if self.form == "exponential":  # of the draws on a grid around it
            grid = np.clip(np.geomspace(self.c / 5, self.c * 5, GRID), *self.bounds)
            c = grid[np.argmin([self._loss(value, y) for value in grid], axis=0)]
            c[0] = self.c
        coefficients = np.empty((len(y), self.columns(self.c).shape[1]))
        for value in np.unique(c):
            rows = c == value
            coefficients[rows] = _nonnegative(self.columns(value), y[rows], self.weights)
        shape = coefficients[:, 2:]
        below = sum((part * at for part, at in zip(shape.T, self._at_two(c), strict=True)), np.zeros(len(y)))
        if self.form == "exponential":
            shape = np.stack([shape[:, 0], c], axis=-1)
        priced = self.columns(self.c) @ coefficients[0]
        count = len(self.height)
        return Trees(
            self.form,
            coefficients[:, 0],
            coefficients[:, 1],
            shape,
            below,
            priced[:count],
            priced[count:],
            self.form != "constant",
        )

    def _at_two(self, c: Array) -> list[Array]:
        if self.form == "exponential":
            return [expm1(2 * c)]
        return [np.full(len(c), at[0]) for at in self.basis(np.array([2.0]), 0.0)]


def _nonnegative(columns: Array, y: Array, weights: Array) -> Array:
    """Least squares of every draw with no coefficient below 0: the best of all choices of those that are not 0, which
    are few; of equally good ones the fewest."""
    root = np.sqrt(weights / np.max(weights))
    scale = np.abs(columns).max(axis=0)
    scale[scale == 0] = 1.0
    scaled, target = columns / scale * root[:, None], y * root
    best = np.zeros((len(y), columns.shape[1]))
    least = np.sum(target**2, axis=-1)
    rounding = 1e-20 * least  # what it leaves of exact simulations
    for kept in sorted(product((False, True), repeat=columns.shape[1]), key=sum):
        chosen = np.array(kept)
        if not chosen.any():
            continue
        part = scaled[:, chosen]
        solved = target @ np.linalg.pinv(part).T
        loss = np.sum((target - solved @ part.T) ** 2, axis=-1)
        better = (solved >= 0).all(axis=-1) & (loss < least * (1 - SAME) - rounding)
        least = np.where(better, loss, least)
        best[better] = 0.0
        best[np.ix_(better, chosen)] = solved[better]
    return best / scale
