"""Fits functions of a count that fall at first and rise in the end: the forms `pipeline` and `saturating` of LoP.

f(x) = a + b/(c + x) + d·(1 − exp(e·(x − f))), section 3 of the LoP paper; `pipeline` ends after b. Given c and e the
rest is linear, so that only these two are searched (variable projection): on one grid for all draws, which finds the
best of the several minima, then by damped Gauss-Newton for each. Only a + d and d·exp(−e·f) are in the data: f is put
at the smallest x measured, where a + b/(c + x) is then all of f(x). Bounds: b ≥ 0, c + x > 0, the last term does not
fall.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from commodel.fitting import mean, with_misfit
from commodel.functions import evaluate

FEWEST = {"saturating": 7, "pipeline": 4}  # different x: more than the form has coefficients that data can tell
FREE = "only a + d and d·exp(−e·f) are determined: f is put at the smallest number measured"
STARTS = 15  # in each direction of the grid
STEEPEST = 20.0  # |e|·(x_max − x_min): from there on the exponential is a step
FLATTEST = 0.1  # below, it is a line, and e and d only enter together
ITERATIONS = 40
MOVE = 1e-5  # of a difference quotient
SMALL = 1e-300  # a divisor that is not 0


@dataclass(frozen=True, eq=False)
class Pipeline:
    """A fitted function: its form, its coefficients (draws,), and what to say of it."""

    name: str
    form: str
    values: Mapping[str, np.ndarray]
    notes: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)

    def at(self, x) -> np.ndarray:
        """(draws, x)."""
        columns = {name: draws[:, None] for name, draws in self.values.items()}
        return np.broadcast_to(evaluate(self.form, self.name, columns, np.asarray(x, dtype=float)), self._shape(x))

    def _shape(self, x) -> tuple[int, int]:
        return len(next(iter(self.values.values()))), len(x)


def fit_pipeline(name: str, x: np.ndarray, y: np.ndarray, weights: np.ndarray, form: str = "saturating") -> Pipeline:
    """The function `name` through y (draws, cases) at x, in `form` or the nearest one that so many x can carry."""
    places = len(np.unique(x))
    asked, notes, unknown = form, {}, {}
    while form != "constant" and places < FEWEST[form]:
        form = "pipeline" if form == "saturating" else "constant"
    if form != asked:
        notes[name] = f"{form}, not {asked}: measured at {places} number(s) only"
    if form == "constant":
        return Pipeline(name, form, {f"{name}.a": mean(y, weights)}, notes, unknown)
    search = _Search(np.asarray(x, dtype=float), weights, form == "saturating")
    best = search.fit(y[:1])
    misfit = y[0] - search.values_at(y[:1], best)[0]
    draws = with_misfit(y, misfit, weights, 5 if search.rises else 3)
    coefficients = search.coefficients(draws, np.concatenate([best, search.fit(draws[1:])]))
    if search.rises:
        unknown = {f"{name}.{letter}": FREE for letter in "adf"}
    return Pipeline(name, form, {f"{name}.{key}": column for key, column in coefficients.items()}, notes, unknown)


class _Search:
    """Finds θ = (ln(c + x_min), e·(x_max − x_min)) of every row of y."""

    def __init__(self, x: np.ndarray, weights: np.ndarray, rises: bool):
        self.x, self.low, self.rises = x, x.min(), rises
        self.wide = x.max() - x.min()
        self.weights = weights / weights.sum()
        bend = np.log([0.02 * max(self.low, 1.0), 3 * x.max()])
        self.bounds = np.array([bend, (-STEEPEST, STEEPEST)]).T

    def features(self, theta: np.ndarray) -> np.ndarray:
        """(…, 2, cases): 1 at x_min and falling; 0 at x_min and rising to 1."""
        bend, steep = np.exp(theta[..., :1]), theta[..., 1:]
        falling = bend / (bend + self.x - self.low)
        if not self.rises:
            return np.stack([falling, np.zeros_like(falling)], axis=-2)
        steep = np.where(np.abs(steep) < 1e-6, 1e-6, steep)
        rising = np.expm1(steep * (self.x - self.low) / self.wide) / np.expm1(steep)
        return np.stack([falling, rising], axis=-2)

    def centred(self, columns: np.ndarray) -> np.ndarray:
        """Without the constant: a is eliminated."""
        return columns - (columns @ self.weights)[..., None]

    def fit(self, y: np.ndarray) -> np.ndarray:
        """θ of every row: the best of the grid, then Gauss-Newton with as much damping as each row needs."""
        theta = self.start(y)
        residual = self.residuals(y, theta)
        loss, damping = np.sum(residual**2, axis=-1), np.full(len(y), 1e-3)
        moving = np.arange(len(y))
        for _ in range(ITERATIONS):
            tried = self.step(y[moving], theta[moving], residual[moving], damping[moving])
            found = self.residuals(y[moving], tried)
            gain = (loss[moving] - np.sum(found**2, axis=-1)) / np.maximum(loss[moving], SMALL)
            better = gain > 0
            kept = moving[better]
            theta[kept], residual[kept] = tried[better], found[better]
            loss[kept] = np.sum(found[better] ** 2, axis=-1)
            damping[moving] *= np.where(better, 0.2, 4.0)
            moving = moving[np.where(better, gain > 1e-6, damping[moving] < 1e3)]
            if not len(moving):
                break
        steep = theta[:, 1]
        theta[:, 1] = np.where(np.abs(steep) < FLATTEST, np.where(steep < 0, -FLATTEST, FLATTEST), steep)
        return theta

    def step(self, y, theta, residual, damping) -> np.ndarray:
        """The next θ to try, within the bounds."""
        moves = 2 if self.rises else 1
        slope = np.stack([(self.residuals(y, _moved(theta, i)) - residual) / MOVE for i in range(moves)], axis=-1)
        normal = np.swapaxes(slope, 1, 2) @ slope
        ridge = damping[:, None] * (np.diagonal(normal, axis1=1, axis2=2) + SMALL)
        ridge += 1e-12 * np.sum(residual**2, axis=-1)[:, None] + SMALL  # where a direction changes nothing
        target = np.swapaxes(slope, 1, 2) @ residual[..., None]
        change = np.linalg.solve(normal + ridge[..., None] * np.eye(moves), target)[..., 0]
        tried = theta.copy()
        tried[:, :moves] = np.clip(theta[:, :moves] - change, *self.bounds[:, :moves])
        return tried

    def start(self, y: np.ndarray) -> np.ndarray:
        bend = np.linspace(*self.bounds[:, 0], STARTS)
        reach = np.arcsinh(2 * STEEPEST)
        steep = np.sinh(np.linspace(-reach, reach, STARTS)) / 2 if self.rises else [FLATTEST]
        grid = np.array([(one, other) for one in bend for other in steep])
        features = self.centred(self.features(grid))
        gram = (features * self.weights) @ np.swapaxes(features, 1, 2)
        target = features @ (self.weights * self.centred(y)).T  # (grid, 2, rows)
        found = _positive(gram[..., None], target)
        explained = np.sum(found * target, axis=1)
        return grid[np.argmax(explained, axis=0)]

    def linear(self, y: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The two coefficients of every row, (rows, 2), and their features."""
        features = self.features(theta)
        middle = self.centred(features)
        gram = np.moveaxis((middle * self.weights) @ np.swapaxes(middle, 1, 2), 0, -1)
        target = np.einsum("rkx,rx->kr", middle, self.weights * self.centred(y))
        return _positive(gram[None], target[None])[0].T, features

    def residuals(self, y: np.ndarray, theta: np.ndarray) -> np.ndarray:
        found, features = self.linear(y, theta)
        return self.centred(y - np.einsum("rk,rkx->rx", found, features)) * np.sqrt(self.weights)

    def values_at(self, y: np.ndarray, theta: np.ndarray) -> np.ndarray:
        found, features = self.linear(y, theta)
        shape = np.einsum("rk,rkx->rx", found, features)
        return shape + ((y - shape) @ self.weights)[:, None]

    def coefficients(self, y: np.ndarray, theta: np.ndarray) -> dict[str, np.ndarray]:
        found, features = self.linear(y, theta)
        constant = (y - np.einsum("rk,rkx->rx", found, features)) @ self.weights
        bend = np.exp(theta[:, 0])
        b = found[:, 0] * bend
        values = {"a": constant, "b": b, "c": np.where(b == 0, 0.0, bend - self.low)}
        if self.rises:
            steep = theta[:, 1]
            values |= {"d": -found[:, 1] / np.expm1(steep), "e": steep / self.wide, "f": np.full(len(y), self.low)}
        return values


def _moved(theta: np.ndarray, direction: int) -> np.ndarray:
    moved = theta.copy()
    moved[:, direction] += MOVE
    return moved


def _positive(gram: np.ndarray, target: np.ndarray) -> np.ndarray:
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
