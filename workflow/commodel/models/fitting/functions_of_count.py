"""Functions of a count, fitted with draws: LoP's functions of the number of partners, which first
fall and then rise (`fit_pipeline`), and TAN's overhead of a node as a function of its number of
messages (`fit_trees`).

`fit_pipeline`: f(x) = a + b/(c + x) + d·(1 − exp(e·(x − f))), section 3 of the LoP paper; the form
`pipeline` ends after b. Given c and e the rest is linear, so only these two are searched (variable
projection): on one grid for all draws, which finds the best of several minima, then by descent for
each. The data determine only a + d and d·exp(−e·f): f is set to the smallest x measured, where f(x)
is a + b/(c + x). Bounds: b ≥ 0, c > −1, the last term does not fall.

    >>> x = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    >>> fitted = fit_pipeline("o", x, (1 + 2 / (0.5 + x))[None], np.ones(5), "pipeline")
    >>> {name: round(float(draws[0]), 6) for name, draws in fitted.values.items()}
    {'o.a': 1.0, 'o.b': 2.0, 'o.c': 0.5}

`fit_trees`: the time of a wave along a chain and from N leaves to a root together, both by TAN's
equation 1:

    chain of height h:  C + h·(L + o(2))            N-to-1:  C + L + o(N+1) = C + (L + o(2)) + (shape(N+1) − shape(2))

Both share C, the time of a level, and the shape of o. L and the constant of o only occur as a sum,
so the time of a level is fitted; if L is known from elsewhere, the rest is o's. All are ≥ 0, so
that no prediction falls.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from commodel.models import Array
from commodel.models.evaluation.values import evaluate
from commodel.models.fitting.numerics import (
    MIN_DIVISOR,
    exp,
    expm1,
    log,
    minimize_rows,
    multiply_columns,
)
from commodel.models.fitting.regression import (
    MIN_AICC_GAIN,
    add_misfit_draws,
    compute_aicc,
    fit_mean,
)
from commodel.models.keys import make_key

MIN_COUNTS = {"saturating": 7, "pipeline": 4}  # different x: more than identifiable coefficients
NOT_SEPARABLE = (
    "only a + d and d·exp(−e·f) are determined: f is set to the smallest number measured"
)
GRID_STARTS = 15  # points of the grid of starts, in each direction
MAX_STEEPNESS = 20.0  # |e|·(x_max − x_min), above which the exponential is a step
# |e|·(x_max − x_min), below which the exponential is a line, and only e·d matters
MIN_STEEPNESS = 0.1
MAX_ITERATIONS = 40


@dataclass(frozen=True, eq=False)
class CountFunction:
    """A fitted function: its form, its coefficients (draws,), and notes."""

    name: str
    form: str
    values: Mapping[str, Array]
    notes: Mapping[str, str] = field(default_factory=dict)
    unidentified: Mapping[str, str] = field(default_factory=dict)

    def at(self, x: ArrayLike) -> Array:
        """Return the function: (draws, x)."""
        columns = {name: draws[:, None] for name, draws in self.values.items()}
        return evaluate(self.form, self.name, columns, np.asarray(x, dtype=float))


def fit_pipeline(
    name: str, x: Array, y: Array, weights: Array, form: str = "saturating"
) -> CountFunction:
    """Fit the function `name` to y (draws, cases) at x. If there are too few different x for
    `form`, a simpler form is used."""
    distinct = len(np.unique(x))
    requested = form
    notes: dict[str, str] = {}
    unidentified: dict[str, str] = {}
    while form != "constant" and distinct < MIN_COUNTS[form]:
        form = "pipeline" if form == "saturating" else "constant"
    if form != requested:
        notes[name] = f"{form}, not {requested}: measured at {distinct} number(s) only"
    if form == "constant":
        return CountFunction(
            name, form, {make_key(name, "a"): fit_mean(y, weights)}, notes, unidentified
        )
    search = _Search(np.asarray(x, dtype=float), weights, form == "saturating")
    best = search.fit(y[:1])
    misfit = y[0] - search.evaluate(y[:1], best)[0]
    draws = add_misfit_draws(y, misfit, weights, 5 if search.has_rise else 3)
    coefficients = search.find_coefficients(draws, np.concatenate([best, search.fit(draws[1:])]))
    if search.has_rise:
        unidentified = {make_key(name, letter): NOT_SEPARABLE for letter in "adf"}
    return CountFunction(
        name,
        form,
        {make_key(name, letter): column for letter, column in coefficients.items()},
        notes,
        unidentified,
    )


class _Search:
    """Search of θ = (ln(c + x_min), e·(x_max − x_min)) for each row of y. The form `pipeline` has
    only the first value."""

    def __init__(self, x: Array, weights: Array, has_rise: bool) -> None:
        self.x, self.low, self.has_rise = x, x.min(), has_rise
        self.range = x.max() - x.min()
        self.weights = weights / weights.sum()
        least = max(self.low, 1.0) - 0.98  # c > −0.98: predictions need f(1) whatever was measured
        bend = log(np.array([least, 3 * x.max()]))
        self.bounds = np.array([bend, (-MAX_STEEPNESS, MAX_STEEPNESS)][: 2 if has_rise else 1]).T

    def compute_features(self, theta: Array) -> Array:
        """Return the two features (…, 2, cases): 1 at x_min and falling, and 0 at x_min and rising
        to 1."""
        bend = exp(theta[..., :1])
        falling = bend / (bend + self.x - self.low)
        if not self.has_rise:
            return np.stack([falling, np.zeros_like(falling)], axis=-2)
        steep = np.where(np.abs(theta[..., 1:]) < 1e-6, 1e-6, theta[..., 1:])
        rising = expm1(steep * (self.x - self.low) / self.range) / expm1(steep)
        return np.stack([falling, rising], axis=-2)

    def subtract_average(self, columns: Array) -> Array:
        """Return columns minus their average, which eliminates the constant a."""
        return columns - self.compute_average(columns)

    def compute_average(self, columns: Array) -> Array:
        return np.sum(columns * self.weights, axis=-1, keepdims=True)

    def fit(self, y: Array) -> Array:
        """Return θ of every row: the best of the grid, then the nearest minimum."""
        start = self.find_start(y)
        theta, _ = minimize_rows(
            lambda rows, theta: self.compute_residuals(y[rows], theta),
            start,
            (self.bounds[0], self.bounds[1]),
            MAX_ITERATIONS,
        )
        if self.has_rise:
            steep = theta[:, 1]
            theta[:, 1] = np.where(
                np.abs(steep) < MIN_STEEPNESS,
                np.where(steep < 0, -MIN_STEEPNESS, MIN_STEEPNESS),
                steep,
            )
        return theta

    def find_start(self, y: Array) -> Array:
        """Return the best point of a grid of θ for every row."""
        grid = np.linspace(self.bounds[0, 0], self.bounds[1, 0], GRID_STARTS)[:, None]
        if self.has_rise:
            max_asinh = np.arcsinh(2 * MAX_STEEPNESS)
            steep = np.sinh(np.linspace(-max_asinh, max_asinh, GRID_STARTS)) / 2
            steep = np.round(steep, 10)  # identical bits on all processors
            grid = np.array([(bend, slope) for bend in grid[:, 0] for slope in steep])
        features = self.subtract_average(self.compute_features(grid))
        gram = multiply_columns(features * np.sqrt(self.weights))
        weighted_y = self.weights * self.subtract_average(y)
        target = np.sum(features[:, :, None] * weighted_y, axis=-1)  # (grid, 2, rows)
        pair = _solve_two_nonnegative(gram[..., None], target)
        explained = np.sum(pair * target, axis=1)
        return grid[np.argmax(explained, axis=0)]

    def solve_linear(self, y: Array, theta: Array) -> tuple[Array, Array]:
        """Return the two coefficients of every row, (rows, 2), and their features."""
        features = self.compute_features(theta)
        middle = self.subtract_average(features)
        gram = np.moveaxis(multiply_columns(middle * np.sqrt(self.weights)), 0, -1)
        target = np.sum(middle * (self.weights * self.subtract_average(y))[:, None], axis=-1).T
        return _solve_two_nonnegative(gram[None], target[None])[0].T, features

    def compute_residuals(self, y: Array, theta: Array) -> Array:
        pair, features = self.solve_linear(y, theta)
        return self.subtract_average(y - _sum_features(pair, features)) * np.sqrt(self.weights)

    def evaluate(self, y: Array, theta: Array) -> Array:
        pair, features = self.solve_linear(y, theta)
        shape = _sum_features(pair, features)
        return shape + self.compute_average(y - shape)

    def find_coefficients(self, y: Array, theta: Array) -> dict[str, Array]:
        pair, features = self.solve_linear(y, theta)
        constant = self.compute_average(y - _sum_features(pair, features))[:, 0]
        bend = exp(theta[:, 0])
        b = pair[:, 0] * bend
        values = {"a": constant, "b": b, "c": np.where(b == 0, 0.0, bend - self.low)}
        if self.has_rise:
            steep = theta[:, 1]
            values |= {
                "d": -pair[:, 1] / expm1(steep),
                "e": steep / self.range,
                "f": np.full(len(y), self.low),
            }
        return values


def _sum_features(pair: Array, features: Array) -> Array:
    """Return Σ coefficient·feature of every row: (rows, cases)."""
    return np.sum(pair[..., None] * features, axis=1)


def _solve_two_nonnegative(gram: Array, target: Array) -> Array:
    """Return the least-squares solution of two coefficients ≥ 0: the unconstrained one if it is
    nonnegative, else the better one of those with a single coefficient.

    The normal matrix has the shape (…, 2, 2, rows), right-hand sides (…, 2, rows).
    """
    gram_11, gram_12, gram_22 = gram[..., 0, 0, :], gram[..., 0, 1, :], gram[..., 1, 1, :]
    first, second = target[..., 0, :], target[..., 1, :]
    determinant = gram_11 * gram_22 - gram_12**2
    safe = np.where(determinant > 1e-14 * gram_11 * gram_22, determinant, np.inf)
    unconstrained = (
        np.stack([gram_22 * first - gram_12 * second, gram_11 * second - gram_12 * first], axis=-2)
        / safe[..., None, :]
    )
    allowed = np.isfinite(safe) & np.all(unconstrained >= 0, axis=-2)
    single = np.stack(
        [first / np.maximum(gram_11, MIN_DIVISOR), second / np.maximum(gram_22, MIN_DIVISOR)],
        axis=-2,
    )
    single = np.maximum(single, 0.0)
    gains = np.stack([single[..., 0, :] * first, single[..., 1, :] * second], axis=-2)
    chosen = gains == gains.max(axis=-2, keepdims=True)
    chosen[..., 1, :] &= ~chosen[..., 0, :]
    return np.where(allowed[..., None, :], unconstrained, np.where(chosen, single, 0.0))


SHAPES = ("linear", "logarithmic", "quadratic", "exponential")
# of c·x in an exponential, at the largest x; MAX_STEEPNESS bounds it from above
MIN_SHAPE_STEEPNESS = 1e-3
GRID_CANDIDATES = 60  # candidate values of c for the draws
TIE_TOLERANCE = 1e-9  # relative difference of two sums of squares that counts as rounding


@dataclass(frozen=True, eq=False)
class Trees:
    """A fit of TAN's trees, one value for each draw; `shape` has a column for each coefficient of o
    besides its constant."""

    form: str  # constant if the data do not determine the growth with leaves
    C: Array
    level: Array  # L + o(2)
    shape: Array
    shape_at_two: Array  # shape(2); the constant of o is level − L − shape_at_two
    chain: Array  # prediction of row 0 at every height
    fan: Array  # prediction of row 0 at every number of leaves


def fit_trees(height: Array, chain: Array, leaves: Array, fan: Array) -> Trees:
    """Fit half the round trips along chains and the times from N leaves to one, (draws, cases)
    each.

    The shape has the smallest AICc, of equal ones the first. Shapes with several coefficients need
    enough cases.
    """
    return _fit_trees(
        *(_Column(np.asarray(column, dtype=float)) for column in (height, chain, leaves, fan))
    )


class _Column:
    """An array that equals another one of the same shape and content, so that results can be
    kept."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.key = array.shape, array.tobytes()

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Column) and self.key == other.key


# many fits with a case left out have the same cases here: another probe's is left out
@lru_cache(maxsize=16)
def _fit_trees(*columns: _Column) -> Trees:
    height, chain, leaves, fan = (column.array for column in columns)
    y = np.concatenate([chain, fan], axis=-1)
    weights = 1 / y[0] ** 2
    tree_sizes = len(set(leaves[leaves > 1].tolist()))
    forms = [
        form for form in SHAPES if tree_sizes >= (1 if form in ("linear", "logarithmic") else 3)
    ] or ["constant"]
    fits = {form: _ShapeFit(form, height, leaves, y, weights) for form in forms}
    scores = {form: fit.score for form, fit in fits.items()}
    least = min(scores.values()) + MIN_AICC_GAIN
    chosen = next(fit for form, fit in fits.items() if scores[form] <= least or len(fits) == 1)
    return chosen.make_trees()


class _ShapeFit:
    """A fit of one shape to all cases: coefficients C, level and the shape's, all ≥ 0."""

    def __init__(self, form: str, height: Array, leaves: Array, y: Array, weights: Array) -> None:
        self.form, self.height, self.leaves, self.y, self.weights = form, height, leaves, y, weights
        self.c = self._find_best_c() if form == "exponential" else 0.0
        columns = self.make_columns(self.c)
        self.misfit = y[0] - _solve_nonnegative(columns, y[:1], weights)[0] @ columns.T
        terms = columns.shape[1] + (form == "exponential")
        signal = float(np.mean(weights * y[0] ** 2))
        self.score = compute_aicc(
            float(np.mean(weights * self.misfit**2)), y.shape[1], terms + 1, signal
        )
        self.terms = terms

    def evaluate_basis(self, x: Array, c: float) -> list[Array]:
        shapes = {
            "linear": [x],
            "logarithmic": [log(x)],
            "quadratic": [x, x**2],
            "exponential": [expm1(c * x)],
        }
        return shapes.get(self.form, [])

    def make_columns(self, c: float) -> Array:
        """Return the columns of all cases, those of the chain first: the factors of C, of a level,
        and of the shape beyond x = 2."""
        messages, two_messages = self.leaves + 1.0, np.array([2.0])
        pairs = zip(
            self.evaluate_basis(messages, c), self.evaluate_basis(two_messages, c), strict=True
        )
        zeros = np.zeros(len(self.height))
        shape_columns = [
            np.concatenate([zeros, at_handled - at_two]) for at_handled, at_two in pairs
        ]
        level = np.concatenate([self.height, np.ones(len(self.leaves))])
        return np.stack([np.ones(len(level)), level, *shape_columns], axis=-1)

    def _loss(self, c: float, y: Array) -> Array:
        columns = self.make_columns(c)
        return np.sum(
            self.weights * (y - _solve_nonnegative(columns, y, self.weights) @ columns.T) ** 2,
            axis=-1,
        )

    def _find_best_c(self) -> float:
        from scipy.optimize import minimize_scalar  # imported here since it loads slowly

        max_leaves = self.leaves.max() + 1.0
        self.bounds = MIN_SHAPE_STEEPNESS / max_leaves, MAX_STEEPNESS / max_leaves
        best = minimize_scalar(
            lambda power: self._loss(float(np.exp(power)), self.y[:1])[0],
            bounds=tuple(np.log(self.bounds)),
            method="bounded",
            options={"xatol": 1e-9},
        )
        return float(np.exp(best.x))

    def make_trees(self) -> Trees:
        y = add_misfit_draws(self.y, self.misfit, self.weights, self.terms)
        c = np.full(len(y), self.c)
        if self.form == "exponential":  # c of the draws is on a grid around that of row 0
            grid = np.clip(np.geomspace(self.c / 5, self.c * 5, GRID_CANDIDATES), *self.bounds)
            c = grid[np.argmin([self._loss(value, y) for value in grid], axis=0)]
            c[0] = self.c
        coefficients = np.empty((len(y), self.make_columns(self.c).shape[1]))
        for value in np.unique(c):
            rows = c == value
            coefficients[rows] = _solve_nonnegative(self.make_columns(value), y[rows], self.weights)
        shape = coefficients[:, 2:]
        shape_at_two = sum(
            (part * at for part, at in zip(shape.T, self._evaluate_at_two(c), strict=True)),
            np.zeros(len(y)),
        )
        if self.form == "exponential":
            shape = np.stack([shape[:, 0], c], axis=-1)
        predicted = self.make_columns(self.c) @ coefficients[0]
        count = len(self.height)
        return Trees(
            self.form,
            coefficients[:, 0],
            coefficients[:, 1],
            shape,
            shape_at_two,
            predicted[:count],
            predicted[count:],
        )

    def _evaluate_at_two(self, c: Array) -> list[Array]:
        if self.form == "exponential":
            return [expm1(2 * c)]
        return [np.full(len(c), at[0]) for at in self.evaluate_basis(np.array([2.0]), 0.0)]


@lru_cache(maxsize=256)  # most subsets of columns do not depend on c
def _invert(features: _Column) -> Array:
    return np.asarray(np.linalg.pinv(features.array), dtype=float)


def _solve_nonnegative(columns: Array, y: Array, weights: Array) -> Array:
    """Return the least-squares coefficients ≥ 0 of every draw.

    It is the best of all subsets of nonzero coefficients, which are few; of equal ones the
    smallest.
    """
    root = np.sqrt(weights / np.max(weights))
    scale = np.abs(columns).max(axis=0)
    scale[scale == 0] = 1.0
    scaled, target = columns / scale * root[:, None], y * root
    best = np.zeros((len(y), columns.shape[1]))
    smallest_loss = np.sum(target**2, axis=-1)
    rounding = 1e-20 * smallest_loss  # residual of exact simulations
    for subset in sorted(product((False, True), repeat=columns.shape[1]), key=sum):
        chosen = np.array(subset)
        if not chosen.any():
            continue
        features = scaled[:, chosen]
        solved = target @ _invert(_Column(features)).T
        loss = np.sum((target - solved @ features.T) ** 2, axis=-1)
        is_better = (solved >= 0).all(axis=-1) & (
            loss < smallest_loss * (1 - TIE_TOLERANCE) - rounding
        )
        smallest_loss = np.where(is_better, loss, smallest_loss)
        best[is_better] = 0.0
        best[np.ix_(is_better, chosen)] = solved[is_better]
    return best / scale
