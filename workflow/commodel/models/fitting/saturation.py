"""Fits functions of a count that fall at first and rise in the end: the forms `pipeline` and `saturating` of LoP.

f(x) = a + b/(c + x) + d·(1 − exp(e·(x − f))), section 3 of the LoP paper; `pipeline` ends after b. Given c and e the
rest is linear, so that only these two are searched (variable projection): on one grid for all draws, which finds the
best of the several minima, then by descent for each. Only a + d and d·exp(−e·f) are in the data: f is put
at the smallest x measured, where a + b/(c + x) is then all of f(x). Bounds: b ≥ 0, c > −1, the last term does not fall.

    >>> x = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    >>> fitted = fit_pipeline("o", x, (1 + 2 / (0.5 + x))[None], np.ones(5), "pipeline")
    >>> {name: round(float(draws[0]), 6) for name, draws in fitted.values.items()}
    {'o.a': 1.0, 'o.b': 2.0, 'o.c': 0.5}
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from commodel.models import Array
from commodel.models.fitting.numerics import SMALL, descend, exp, expm1, log, products
from commodel.models.fitting.regression import mean, with_misfit
from commodel.models.keys import key
from commodel.models.pricing.values import evaluate

FEWEST = {"saturating": 7, "pipeline": 4}  # different x: more than the form has coefficients that data can tell
FREE = "only a + d and d·exp(−e·f) are determined: f is put at the smallest number measured"
STARTS = 15  # in each direction of the grid
STEEPEST = 20.0  # |e|·(x_max − x_min): from there on the exponential is a step
FLATTEST = 0.1  # below, it is a line, and e and d only enter together
ITERATIONS = 40


@dataclass(frozen=True, eq=False)
class Pipeline:
    """A fitted function: its form, its coefficients (draws,), and what to say of it."""

    name: str
    form: str
    values: Mapping[str, Array]
    notes: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)

    def at(self, x: ArrayLike) -> Array:
        """(draws, x)."""
        columns = {name: draws[:, None] for name, draws in self.values.items()}
        return evaluate(self.form, self.name, columns, np.asarray(x, dtype=float))


def fit_pipeline(name: str, x: Array, y: Array, weights: Array, form: str = "saturating") -> Pipeline:
    """The function `name` through y (draws, cases) at x, in `form` or the nearest one that so many x can carry."""
    places = len(np.unique(x))
    asked, notes, unknown = form, {}, {}
    while form != "constant" and places < FEWEST[form]:
        form = "pipeline" if form == "saturating" else "constant"
    if form != asked:
        notes[name] = f"{form}, not {asked}: measured at {places} number(s) only"
    if form == "constant":
        return Pipeline(name, form, {key(name, "a"): mean(y, weights)}, notes, unknown)
    search = _Search(np.asarray(x, dtype=float), weights, form == "saturating")
    best = search.fit(y[:1])
    misfit = y[0] - search.values_at(y[:1], best)[0]
    draws = with_misfit(y, misfit, weights, 5 if search.rises else 3)
    coefficients = search.coefficients(draws, np.concatenate([best, search.fit(draws[1:])]))
    if search.rises:
        unknown = {key(name, letter): FREE for letter in "adf"}
    return Pipeline(name, form, {key(name, letter): column for letter, column in coefficients.items()}, notes, unknown)


class _Search:
    """Finds θ = (ln(c + x_min), e·(x_max − x_min)) of every row of y; only the first of a `pipeline`."""

    def __init__(self, x: Array, weights: Array, rises: bool) -> None:
        self.x, self.low, self.rises = x, x.min(), rises
        self.wide = x.max() - x.min()
        self.weights = weights / weights.sum()
        least = max(self.low, 1.0) - 0.98  # c > −0.98: prices ask for f(1) whatever was measured
        bend = log(np.array([least, 3 * x.max()]))
        self.bounds = np.array([bend, (-STEEPEST, STEEPEST)][: 2 if rises else 1]).T

    def features(self, theta: Array) -> Array:
        """(…, 2, cases): 1 at x_min and falling; 0 at x_min and rising to 1."""
        bend = exp(theta[..., :1])
        falling = bend / (bend + self.x - self.low)
        if not self.rises:
            return np.stack([falling, np.zeros_like(falling)], axis=-2)
        steep = np.where(np.abs(theta[..., 1:]) < 1e-6, 1e-6, theta[..., 1:])
        rising = expm1(steep * (self.x - self.low) / self.wide) / expm1(steep)
        return np.stack([falling, rising], axis=-2)

    def centred(self, columns: Array) -> Array:
        """Without the constant: a is eliminated."""
        return columns - self.average(columns)

    def average(self, columns: Array) -> Array:
        return np.sum(columns * self.weights, axis=-1, keepdims=True)

    def fit(self, y: Array) -> Array:
        """θ of every row: the best of the grid, then the nearest minimum."""
        start = self.start(y)
        theta, _ = descend(lambda rows, theta: self.residuals(y[rows], theta), start, self.bounds, ITERATIONS)
        if self.rises:
            steep = theta[:, 1]
            theta[:, 1] = np.where(np.abs(steep) < FLATTEST, np.where(steep < 0, -FLATTEST, FLATTEST), steep)
        return theta

    def start(self, y: Array) -> Array:
        grid = np.linspace(*self.bounds[:, 0], STARTS)[:, None]
        if self.rises:
            reach = np.arcsinh(2 * STEEPEST)
            steep = np.round(np.sinh(np.linspace(-reach, reach, STARTS)) / 2, 10)  # the same bits everywhere
            grid = np.array([(bend, slope) for bend in grid[:, 0] for slope in steep])
        features = self.centred(self.features(grid))
        gram = products(features * np.sqrt(self.weights))
        right = self.weights * self.centred(y)
        target = np.sum(features[:, :, None] * right, axis=-1)  # (grid, 2, rows)
        pair = _positive(gram[..., None], target)
        explained = np.sum(pair * target, axis=1)
        return grid[np.argmax(explained, axis=0)]

    def linear(self, y: Array, theta: Array) -> tuple[Array, Array]:
        """The two coefficients of every row, (rows, 2), and their features."""
        features = self.features(theta)
        middle = self.centred(features)
        gram = np.moveaxis(products(middle * np.sqrt(self.weights)), 0, -1)
        target = np.sum(middle * (self.weights * self.centred(y))[:, None], axis=-1).T
        return _positive(gram[None], target[None])[0].T, features

    def residuals(self, y: Array, theta: Array) -> Array:
        pair, features = self.linear(y, theta)
        return self.centred(y - _shape(pair, features)) * np.sqrt(self.weights)

    def values_at(self, y: Array, theta: Array) -> Array:
        pair, features = self.linear(y, theta)
        shape = _shape(pair, features)
        return shape + self.average(y - shape)

    def coefficients(self, y: Array, theta: Array) -> dict[str, Array]:
        pair, features = self.linear(y, theta)
        constant = self.average(y - _shape(pair, features))[:, 0]
        bend = exp(theta[:, 0])
        b = pair[:, 0] * bend
        values = {"a": constant, "b": b, "c": np.where(b == 0, 0.0, bend - self.low)}
        if self.rises:
            steep = theta[:, 1]
            values |= {"d": -pair[:, 1] / expm1(steep), "e": steep / self.wide, "f": np.full(len(y), self.low)}
        return values


def _shape(pair: Array, features: Array) -> Array:
    """Σ coefficient·feature of every row, (rows, cases)."""
    return np.sum(pair[..., None] * features, axis=1)


def _positive(gram: Array, target: Array) -> Array:
    """Least squares of two coefficients, neither below 0: of the normal matrix (…, 2, 2, rows) and right-hand sides
    (…, 2, rows). Both free if that is allowed, else the one that explains more."""
    one, both, other = gram[..., 0, 0, :], gram[..., 0, 1, :], gram[..., 1, 1, :]
    first, second = target[..., 0, :], target[..., 1, :]
    determinant = one * other - both**2
    safe = np.where(determinant > 1e-14 * one * other, determinant, np.inf)
    free = np.stack([other * first - both * second, one * second - both * first], axis=-2) / safe[..., None, :]
    allowed = np.isfinite(safe) & np.all(free >= 0, axis=-2)
    alone = np.stack([first / np.maximum(one, SMALL), second / np.maximum(other, SMALL)], axis=-2)
    alone = np.maximum(alone, 0.0)
    gains = np.stack([alone[..., 0, :] * first, alone[..., 1, :] * second], axis=-2)
    kept = gains == gains.max(axis=-2, keepdims=True)
    kept[..., 1, :] &= ~kept[..., 0, :]
    return np.where(allowed[..., None, :], free, np.where(kept, alone, 0.0))
