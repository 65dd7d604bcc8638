"""What every fit needs: cases with their resamples, least squares over all draws at once, the choice of a form.

Row 0 of every array is the estimate, the rows below it are bootstrap draws. Two things make draws differ: the
samples of each case are resampled (noise), and where a form misses the cases by more than noise explains, the rest of
the misfit is put on again with random factors (wild bootstrap). So noise-free data that do not lie on the form still
get an interval.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from scipy.special import chdtri

from commodel.errors import UserError
from commodel.functions import FORMS
from commodel.records import Curve, Estimate
from commodel.stats import r_squared, resampled

DRAWS = 200
CHANCE = 0.1  # that noise alone makes a misfit which counts as one
MISFIT_SEED = 20_261  # the same for every fit, so that a fit is a pure function


@dataclass(frozen=True, eq=False)
class CaseSamples:
    """All valid raw samples of one case of a probe."""

    settings: Mapping[str, object]
    seconds: np.ndarray
    passes: np.ndarray  # which pass each sample was taken in
    counts: np.ndarray | None = None  # of a probe that counts what arrives


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
    types: Mapping[str, int] = field(default_factory=dict)  # nodes of each type, in order; empty: all are alike
    _resampled: dict = field(default_factory=dict)

    @property
    def placement(self) -> dict[str, object]:
        """What a set of parameters by type has to know: which nodes are of which."""
        return {"types": dict(self.types)} if self.types else {}

    def has(self, probe: str) -> bool:
        return bool(self.probes.get(probe))

    def cases(self, probe: str, statistic: str = "median", **where: object) -> Cases:
        """The cases of a probe whose settings equal `where`. A case has the same draws however it is asked for."""
        if not self.has(probe):
            raise UserError(f"no measurements of probe '{probe}'")
        rows = self._all(probe, statistic)
        known = self.probes[probe]
        kept = [
            number
            for number, case in enumerate(known)
            if all(case.settings[name] == value for name, value in where.items())
        ]
        if not kept:
            wanted = ", ".join(f"{name}={value}" for name, value in where.items())
            raise UserError(f"no measurements of probe '{probe}' with {wanted}")
        columns = {name: np.array([known[number].settings[name] for number in kept]) for name in known[0].settings}
        return Cases(columns, rows[kept].T)

    def counts(self, probe: str) -> Cases:
        """The same of a probe that counts: means of its counts in place of times."""
        if not self.has(probe):
            raise UserError(f"no measurements of probe '{probe}'")
        known = self.probes[probe]
        rng = np.random.default_rng([self.seed, sum(probe.encode())])
        rows = [resampled(case.counts, case.passes, "mean", DRAWS, rng) for case in known]
        columns = {name: np.array([case.settings[name] for case in known]) for name in known[0].settings}
        return Cases(columns, np.array(rows).T)

    def _all(self, probe: str, statistic: str) -> np.ndarray:
        key = (probe, statistic)
        if key not in self._resampled:
            rng = np.random.default_rng([self.seed, sum(probe.encode())])
            samples = ((case.seconds, case.passes) for case in self.probes[probe])
            self._resampled[key] = np.array([resampled(*each, statistic, DRAWS, rng) for each in samples])
        return self._resampled[key]


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a family's fit returns: draws by name, forms of functions, notes on doubtful values, and the evidence."""

    values: Mapping[str, np.ndarray]
    bytes_range: tuple[float, float]  # sizes that the values rest on; outside it a price is an extrapolation
    forms: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)  # values that the data cannot tell apart, and from what
    curves: tuple[Curve, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)  # parameters that could not be observed, and why


def estimate(draws: np.ndarray, unit: str, note: str = "", known: bool = True) -> Estimate:
    """The value of row 0 with the 95 % interval of the rows below it."""
    low, high = np.percentile(draws[1:], [2.5, 97.5])
    return Estimate(float(draws[0]), unit, float(min(low, draws[0])), float(max(high, draws[0])), note, known)


def sampled(name: str, sizes: Sequence[int], draws: np.ndarray) -> dict[str, np.ndarray]:
    """A function given by samples: `draws` is (1 + draws, sizes). Where noise makes it fall, it is levelled."""
    level = _rising(draws)
    return {f"{name}.{int(size)}": level[:, i] for i, size in enumerate(sizes)}


def _rising(y: np.ndarray) -> np.ndarray:
    """The nearest columns that never fall (isotonic regression, by its max-min formula), for every draw. A column
    counts by how sure it is: one that noise has spoilt must not pull down those before it."""
    variance = y[1:].var(axis=0) if len(y) > 1 else np.zeros(y.shape[1])
    weights = 1 / np.maximum(variance, 1e-12 * variance.max()) if variance.any() else np.ones(y.shape[1])
    found = np.full_like(y, -np.inf)
    for first in range(y.shape[1]):
        part = weights[first:]
        mean = np.cumsum(part * y[:, first:], axis=-1) / np.cumsum(part)
        lowest = np.minimum.accumulate(mean[:, ::-1], axis=-1)[:, ::-1]
        found[:, first:] = np.maximum(found[:, first:], lowest)
    return found


def least_squares(features: Sequence[np.ndarray], y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Coefficients (draws, features) of y ≈ Σ coefficient·feature, the square of each case's residual weighed; every
    draw in one batched solve. Features are scaled first: bytes and constants differ by many orders of magnitude."""
    columns = np.stack([np.broadcast_to(feature, y.shape[1:]) for feature in features], axis=-1).astype(float)
    scale = np.abs(columns).max(axis=0)
    scale[scale == 0] = 1.0
    root = np.sqrt(weights / np.max(weights))
    solver = np.linalg.pinv(columns / scale * root[:, None])
    misfit = y[0] - columns / scale @ (solver @ (y[0] * root))
    return (with_misfit(y, misfit, weights, columns.shape[1]) * root) @ solver.T / scale


def with_misfit(y: np.ndarray, misfit: np.ndarray, weights: np.ndarray, terms: int) -> np.ndarray:
    """The draws of y with the part of the misfit put on that noise does not explain."""
    cases, total = len(misfit), np.sum(weights * misfit**2)
    if len(y) == 1 or cases <= terms or total == 0:
        return y
    noise = np.sum(weights * y[1:].var(axis=0)) * (cases - terms) / cases
    free = cases - terms
    if total * free < noise * chdtri(free, CHANCE):
        return y  # noise alone may well do that
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


def shape_coefficients(
    form: str, x: np.ndarray, y: np.ndarray, weights: np.ndarray, constant: bool = False
) -> np.ndarray:
    """Coefficients (draws, n) of a form's shape, without a constant term; with it, before the others, where `constant`
    asks for it."""
    if form == "exponential":
        return _exponential(x, y, weights)
    features = [np.ones(len(x))] if constant else []
    features += {"constant": [], "linear": [x], "logarithmic": [np.log(x)], "quadratic": [x, x**2]}[form]
    return least_squares(features, y, weights) if features else np.empty((len(y), 0))


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
    draws = with_misfit(y, y[0] - b * np.expm1(c * x), weights, 2)
    return np.array([(b, c), *(best(times) for times in draws[1:])])


def choose_form(
    forms: Sequence[str], x: np.ndarray, y: np.ndarray, weights: np.ndarray, constant: bool = False
) -> tuple[str, dict[str, float]]:
    """The form with the smallest AICc on row 0, and the AICc of each; `constant`: with a constant term of its own. A
    form with too many coefficients for the data is not considered."""
    scores = {}
    for form in forms:
        coefficients = shape_coefficients(form, x, y[:1], weights, constant)[0]
        terms = len(coefficients) + 1  # the error's variance counts as one
        if len(x) - terms - 1 <= 0:
            continue
        a, shape = (coefficients[0], coefficients[1:]) if constant else (0.0, coefficients)
        misfit = np.sum(weights * (y[0] - a - FORMS[form].shape(x, *shape)) ** 2) / len(x)
        scores[form] = _aicc(misfit, len(x), terms, np.mean(weights * y[0] ** 2))
    if not scores:
        return forms[0], {}
    return min(scores, key=scores.get), scores


def segments(x: np.ndarray, y: np.ndarray, weights: np.ndarray, most: int = 3) -> list[np.ndarray]:
    """Where a line changes: the cases of each piece, so that straight lines through them have the smallest AICc. A
    piece has at least three sizes; the change points count as parameters."""
    order = np.argsort(x, kind="stable")
    places = np.unique(x)
    best, chosen = np.inf, [order]
    for cuts in _cuts(len(places), most):
        edges = [places[0], *(places[cut] for cut in cuts), np.inf]
        pieces = [np.flatnonzero((x >= low) & (x < high)) for low, high in pairwise(edges)]
        misfit = 0.0
        for piece in pieces:
            a, b = line(x[piece], y[:1, piece], weights[piece])
            misfit += np.sum(weights[piece] * (y[0, piece] - a[0] - b[0] * x[piece]) ** 2)
        score = _aicc(misfit / len(x), len(x), 3 * len(pieces), np.mean(weights * y[0] ** 2))
        if score < best:
            best, chosen = score, pieces
    return chosen


def _cuts(count: int, most: int):
    yield ()
    for cut in range(3, count - 2):
        yield (cut,)
        if most > 2:
            yield from ((cut, second) for second in range(cut + 3, count - 2))


def _aicc(misfit: float, count: int, terms: int, signal: float) -> float:
    """Of a mean squared misfit. Noise-free simulations fit to the last bit: below 1e-12 of the signal a smaller misfit
    means nothing."""
    if count - terms - 1 <= 0:
        return np.inf
    floor = max(1e-24 * signal, 1e-300)
    return count * np.log(max(misfit, floor)) + 2 * terms + 2 * terms * (terms + 1) / (count - terms - 1)


def piecewise(
    name: str, x: np.ndarray, y: np.ndarray, weights: np.ndarray, most: int = 3
) -> tuple[str, dict[str, np.ndarray]]:
    """A line through the cases, or several with the change points found: the form and its coefficients. A piece never
    begins below the end of the piece before it."""
    pieces = segments(x, y, weights, most)
    values: dict[str, np.ndarray] = {}
    before = None
    for number, piece in enumerate(pieces):
        a, b = line(x[piece], y[:, piece], weights[piece])
        tail = str(number) if number else ""
        if before is not None:
            edge = float(x[pieces[number - 1]].max())
            a = np.maximum(a, before[0] + before[1] * edge - b * edge)
            values[f"{name}.x{number}"] = np.full(len(y), edge)
        values |= {f"{name}.a{tail}": a, f"{name}.b{tail}": b}
        before = (a, b)
    return ("piecewise" if len(pieces) > 1 else "linear"), values


def curve(
    title: str,
    labels: tuple[str, str],
    x,
    measured,
    fitted,
    form: str,
    terms: int = 1,
    refit: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Curve:
    """The evidence of one regression with `terms` coefficients, in SI units. `refit(keep)` fits the kept samples only
    and returns its values at all of them: from it comes the error at samples that a fit has not seen."""
    x, measured, fitted = (np.asarray(column, dtype=float) for column in (x, measured, fitted))
    scale = np.where(measured == 0, 1.0, measured)
    relative = (fitted - measured) / scale
    aic = _aicc(float(np.mean(relative**2)), len(x), terms + 1, 1.0)
    left_out = np.nan
    if refit is not None and len(x) > terms + 1:
        errors = []
        for number in range(len(x)):
            keep = np.arange(len(x)) != number
            errors.append((refit(keep)[number] - measured[number]) / scale[number])
        left_out = float(np.sqrt(np.mean(np.square(errors))))
    points = (tuple(float(value) for value in column) for column in (x, measured, fitted))
    return Curve(title, *labels, *points, form, r_squared(measured, fitted), float(aic), left_out)


def line_curve(title: str, labels: tuple[str, str], x, y, a, b, form: str) -> Curve:
    """The evidence of a straight line fitted with weights 1/y²."""

    def refit(keep):
        first, slope = line(x[keep], y[:1, keep], 1 / np.maximum(y[0, keep], 1e-15) ** 2)
        return first[0] + slope[0] * x

    return curve(title, labels, x, y[0], a[0] + b[0] * x, form, 2, refit)


def sampled_curve(title: str, labels: tuple[str, str], x, y, form: str = "samples, linear in between") -> Curve:
    """The evidence of a function given by its samples: it passes through all; each left out, it is guessed from its
    neighbours."""
    x = np.asarray(x, dtype=float)
    return curve(title, labels, x, y[0], y[0], form, 0, lambda keep: np.interp(x, x[keep], y[0, keep]))


def per_byte(cases: Cases) -> np.ndarray:
    """Seconds per byte of local work, every size counting alike."""
    return mean(cases.seconds / cases["bytes"])
