"""What every fit needs: cases with their resamples, least squares over all draws at once, the choice of a form.

Row 0 of every array is the estimate, the rows below it are bootstrap draws. Two things make draws differ: the
samples of each case are resampled (noise), and where a form misses the cases by more than noise explains, the rest of
the misfit is put on again with random factors (wild bootstrap). So noise-free data that do not lie on the form still
get an interval.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from commodel.errors import UserError
from commodel.functions import FORMS
from commodel.records import Curve, Estimate
from commodel.stats import r_squared, resampled

DRAWS = 200
MISFIT_SEED = 20_261  # the same for every fit, so that a fit is a pure function


@dataclass(frozen=True, eq=False)
class CaseSamples:
    """All valid raw samples of one case of a probe."""

    settings: Mapping[str, object]
    seconds: np.ndarray
    passes: np.ndarray  # which pass each sample was taken in


@dataclass(frozen=True, eq=False)
class Cases:
    """Cases of one probe: their settings as columns, their times as (1 + draws, cases)."""

    columns: Mapping[str, np.ndarray]
    seconds: np.ndarray

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def __len__(self) -> int:
        return self.seconds.shape[1]

    def pick(self, chosen: np.ndarray) -> "Cases":
        columns = {name: column[chosen] for name, column in self.columns.items()}
        return Cases(columns, self.seconds[:, chosen])


@dataclass(frozen=True, eq=False)
class Observed:
    """Everything measured on one platform by the probes; what a family's fit gets."""

    probes: Mapping[str, Sequence[CaseSamples]]
    seed: int = 1

    def cases(self, probe: str, statistic: str = "median", **where: object) -> Cases:
        """The cases of a probe whose settings equal `where`. A case has the same draws however it is asked for."""
        if probe not in self.probes:
            raise UserError(f"no measurements of probe '{probe}'")
        rng = np.random.default_rng([self.seed, sum(probe.encode())])
        kept, rows = [], []
        for case in self.probes[probe]:
            row = resampled(case.seconds, case.passes, statistic, DRAWS, rng)
            if all(case.settings[name] == value for name, value in where.items()):
                kept.append(case.settings)
                rows.append(row)
        if not kept:
            wanted = ", ".join(f"{name}={value}" for name, value in where.items())
            raise UserError(f"no measurements of probe '{probe}' with {wanted}")
        columns = {name: np.array([settings[name] for settings in kept]) for name in kept[0]}
        return Cases(columns, np.array(rows).T)


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a family's fit returns: draws by name, forms of functions, notes on doubtful values, and the evidence."""

    values: Mapping[str, np.ndarray]
    bytes_range: tuple[float, float]  # sizes that the values rest on; outside it a price is an extrapolation
    forms: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    curves: tuple[Curve, ...] = ()


def estimate(draws: np.ndarray, unit: str, note: str = "") -> Estimate:
    """The value of row 0 with the 95 % interval of the rows below it."""
    low, high = np.percentile(draws[1:], [2.5, 97.5])
    return Estimate(float(draws[0]), unit, float(min(low, draws[0])), float(max(high, draws[0])), note)


def least_squares(features: Sequence[np.ndarray], y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Coefficients (draws, features) of y ≈ Σ coefficient·feature, the square of each case's residual weighed; every
    draw in one batched solve. Features are scaled first: bytes and constants differ by many orders of magnitude."""
    columns = np.stack([np.broadcast_to(feature, y.shape[1:]) for feature in features], axis=-1).astype(float)
    scale = np.abs(columns).max(axis=0)
    scale[scale == 0] = 1.0
    root = np.sqrt(weights / np.max(weights))
    solver = np.linalg.pinv(columns / scale * root[:, None])
    misfit = y[0] - columns / scale @ (solver @ (y[0] * root))
    return (_with_misfit(y, misfit, weights, columns.shape[1]) * root) @ solver.T / scale


def _with_misfit(y: np.ndarray, misfit: np.ndarray, weights: np.ndarray, terms: int) -> np.ndarray:
    """The draws of y with the part of the misfit put on that noise does not explain."""
    cases, total = len(misfit), np.sum(weights * misfit**2)
    if len(y) == 1 or cases <= terms or total == 0:
        return y
    noise = np.sum(weights * y[1:].var(axis=0)) * (cases - terms) / cases
    share = max(0.0, 1 - noise / total)
    signs = np.random.default_rng(MISFIT_SEED).standard_normal((len(y) - 1, cases))
    return np.concatenate([y[:1], y[1:] + np.sqrt(share * cases / (cases - terms)) * misfit * signs])


def mean(y: np.ndarray, weights: np.ndarray | float = 1.0) -> np.ndarray:
    """Weighted mean over the cases, one for each draw."""
    return least_squares([np.ones(y.shape[1])], y, weights * np.ones(y.shape[1]))[:, 0]


def line(
    x: np.ndarray, y: np.ndarray, weights: np.ndarray, ceiling: np.ndarray | float = np.inf
) -> tuple[np.ndarray, np.ndarray]:
    """Intercept (0 to `ceiling`) and slope (0 or more). Where the best line leaves those bounds, the best one with its
    intercept on the bound, or the best constant, is the answer."""
    intercept, slope = least_squares([np.ones(len(x)), x], y, weights).T
    bounded = np.clip(intercept, 0, ceiling)
    slope_there = least_squares([x], y - bounded[:, None], weights)[:, 0]
    slope = np.where(bounded == intercept, slope, slope_there)
    flat = slope < 0
    return np.where(flat, np.clip(mean(y, weights), 0, ceiling), bounded), np.where(flat, 0.0, slope)


def shape_coefficients(form: str, x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Coefficients (draws, n) of a form's shape, without a constant term."""
    if form == "constant":
        return np.empty((len(y), 0))
    if form == "exponential":
        return _exponential(x, y, weights)
    features = {"linear": [x], "logarithmic": [np.log(x)], "quadratic": [x, x**2]}[form]
    return least_squares(features, y, weights)


def _exponential(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """b·(e^{cx} − 1): for a given c the best b is linear, so only c is searched, |c·x| up to 20."""
    from scipy.optimize import minimize_scalar  # here, because it takes longer to load than most verbs to run

    def best_b(c: float, times: np.ndarray) -> float:
        grown = np.expm1(c * x)
        return np.sum(weights * grown * times) / np.sum(weights * grown**2)

    def loss(log_c: float, times: np.ndarray) -> float:
        c = np.exp(log_c)
        return np.sum(weights * (times - best_b(c, times) * np.expm1(c * x)) ** 2)

    def best(times: np.ndarray) -> tuple[float, float]:
        c = float(np.exp(minimize_scalar(loss, bounds=bounds, args=(times,), method="bounded").x))
        return best_b(c, times), c

    bounds = (np.log(1e-3 / x.max()), np.log(20.0 / x.max()))
    b, c = best(y[0])
    draws = _with_misfit(y, y[0] - b * np.expm1(c * x), weights, 2)
    return np.array([(b, c), *(best(times) for times in draws[1:])])


def choose_form(
    forms: Sequence[str], x: np.ndarray, y: np.ndarray, weights: np.ndarray
) -> tuple[str, dict[str, float]]:
    """The form with the smallest AICc on row 0, and the AICc of each. A form with too many coefficients for the data
    is not considered."""
    scores = {}
    for form in forms:
        coefficients = shape_coefficients(form, x, y[:1], weights)[0]
        terms = len(coefficients) + 1  # the error's variance counts as one
        if len(x) - terms - 1 <= 0:
            continue
        misfit = np.sum(weights * (y[0] - FORMS[form].shape(x, *coefficients)) ** 2) / len(x)
        correction = 2 * terms * (terms + 1) / (len(x) - terms - 1)
        # Noise-free simulations fit to the last bit: below 1e-12 of the signal a smaller misfit means nothing.
        floor = 1e-24 * np.mean(weights * y[0] ** 2)
        scores[form] = len(x) * np.log(max(misfit, floor, 1e-300)) + 2 * terms + correction
    if not scores:
        return forms[0], {}
    return min(scores, key=scores.get), scores


def curve(title: str, labels: tuple[str, str], x, measured, fitted, form: str) -> Curve:
    """The evidence of one regression, in SI units."""
    measured, fitted = np.asarray(measured, dtype=float), np.asarray(fitted, dtype=float)
    points = (tuple(float(value) for value in column) for column in (x, measured, fitted))
    return Curve(title, *labels, *points, form, r_squared(measured, fitted))


def per_byte(cases: Cases) -> np.ndarray:
    """Seconds per byte of local work, every size counting alike."""
    return mean(cases.seconds / cases["bytes"])
