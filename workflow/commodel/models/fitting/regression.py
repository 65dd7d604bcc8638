"""Regression over all draws at once: least squares, lines, lines with change points
(`fit_piecewise`), the choice of a form by AICc (`choose_form`), isotonic regression of samples
(`make_nondecreasing`), and the evidence as a curve (`make_curve`).

Row 0 of every y is the estimate, the other rows are bootstrap draws. Draws differ for two reasons:
the samples of each case are resampled (noise), and a misfit larger than noise is added with random
factors (wild bootstrap, `add_misfit_draws`). Noise-free data that do not follow the form therefore
still have an interval."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from commodel.models import Array
from commodel.models.evaluation.values import FORMS, TABLE, format_form
from commodel.models.fitting.numerics import draw_normals, exp, expm1, log
from commodel.models.keys import make_key, make_sample_key
from commodel.parameters import Curve
from commodel.stats import NEGLIGIBLE_DIFFERENCE, compute_r_squared
from commodel.units import format_seconds

# probability of a misfit by noise alone, above which the misfit counts as noise
CHANCE_PROBABILITY = 0.1
COLLINEAR_SHARE = 1e-10  # share of the largest singular value, below which features count as equal
SMALLEST_SHARE = 1e-9  # of the largest time: shorter times are weighted as if they were as long
# reduction of AICc from which a later form or cut is chosen, so that rounding does not decide
MIN_AICC_GAIN = 1e-6
CHANGE_NOTE = "found in the data; the change lies between this size and the next one probed"
MISFIT_SEED = 20_261  # constant, so that a fit is reproducible


def make_sample_values(
    name: str, sizes: Iterable[int], draws: Array, at_once: int | None = None
) -> dict[str, Array]:
    """Return a function given by samples, or a surface at one level of concurrency, made
    non-decreasing. `draws` is (1 + draws, sizes)."""
    level = make_nondecreasing(draws)
    return {make_sample_key(name, size, at_once): level[:, i] for i, size in enumerate(sizes)}


def describe_changed_samples(
    keys: Sequence[str], measured: Array, predicted: Array, abscissa: str = "size"
) -> dict[str, str]:
    """Return notes on samples that were changed to make the function non-decreasing over the
    abscissa."""
    return {
        key: f"samples fall with the {abscissa}, which the model excludes: "
        f"measured {format_seconds(raw)}, fitted {format_seconds(level)}"
        for key, raw, level in zip(keys, measured, predicted, strict=True)
        if abs(level - raw) > NEGLIGIBLE_DIFFERENCE * max(abs(raw), abs(level))
    }


def make_nondecreasing(y: Array) -> Array:
    """Return the nearest non-decreasing columns for every draw (isotonic regression, by its max-min
    formula).

    Columns are weighted by 1/variance, so that a noisy one does not lower those before it.
    """
    variance = y[1:].var(axis=0) if len(y) > 1 else np.zeros(y.shape[1])
    # the variance of exact simulations, which must not determine weights
    rounding = (1e-9 * np.abs(y[0]).max()) ** 2
    least = max(rounding, 1e-12 * variance.max())
    weights = 1 / np.maximum(variance, least) if least else np.ones(y.shape[1])
    result = np.full_like(y, -np.inf)
    for first in range(y.shape[1]):
        weights_from = weights[first:]
        mean = np.cumsum(weights_from * y[:, first:], axis=-1) / np.cumsum(weights_from)
        lowest_mean = np.minimum.accumulate(mean[:, ::-1], axis=-1)[:, ::-1]
        result[:, first:] = np.maximum(result[:, first:], lowest_mean)
    return result


def weigh_inversely(times: Array) -> Array:
    """Return weights for which misfits relative to the times are minimized, at most those of a
    billionth of the largest time.

    A time may be 0: an exact simulation has no overhead of messages that a network card sends by
    itself.
    """
    least = SMALLEST_SHARE * np.max(times)
    return 1 / np.maximum(times, least) ** 2 if least > 0 else np.ones(len(times))


def fit_least_squares(features: Sequence[Array], y: Array, weights: Array) -> Array:
    """Return the coefficients (draws, features) of y ≈ Σ coefficient·feature by weighted least
    squares.

    All draws are solved together. Features are scaled first, since bytes and constants differ by
    many orders of magnitude.
    """
    columns = np.stack(
        [np.broadcast_to(feature, y.shape[1:]) for feature in features], axis=-1
    ).astype(float)
    scale = np.abs(columns).max(axis=0)
    scale[scale == 0] = 1.0
    root = np.sqrt(weights / np.max(weights))
    solver = np.linalg.pinv(columns / scale * root[:, None], rcond=COLLINEAR_SHARE)
    misfit = y[0] - columns / scale @ (solver @ (y[0] * root))
    return (add_misfit_draws(y, misfit, weights, columns.shape[1]) * root) @ solver.T / scale


def add_misfit_draws(y: Array, misfit: Array, weights: Array, terms: int) -> Array:
    """Return the draws of y plus the part of the misfit that noise does not explain, with random
    factors."""
    cases, total = len(misfit), np.sum(weights * misfit**2)
    if len(y) == 1 or cases <= terms or total == 0:
        return y
    noise = np.sum(weights * y[1:].var(axis=0)) * (cases - terms) / cases
    if is_by_chance(total, noise, cases - terms):
        return y
    share = max(0.0, 1 - noise / total)
    signs = draw_normals(np.random.default_rng(MISFIT_SEED), (len(y) - 1, cases))
    return np.concatenate(
        [y[:1], y[1:] + np.sqrt(share * cases / (cases - terms)) * misfit * signs]
    )


def is_by_chance(total: float, noise: float, degrees: int) -> bool:
    """Return whether noise alone makes such a misfit: a χ² with `degrees` degrees of freedom
    exceeds it with a probability above CHANCE_PROBABILITY."""
    if total < noise or noise <= 0:  # χ² is above its mean in at least three cases of ten
        return bool(total < noise)
    from scipy.special import chdtrc  # here, because it takes longer to load than most verbs to run

    return bool(chdtrc(degrees, float(total) * degrees / float(noise)) > CHANCE_PROBABILITY)


def fit_mean(y: Array, weights: Array | float = 1.0) -> Array:
    """Return the weighted mean of the cases, one for each draw.

    Means are of times, so no draw is below 0, however large its misfit.
    """
    return np.maximum(
        fit_least_squares([np.ones(y.shape[1])], y, weights * np.ones(y.shape[1]))[:, 0], 0
    )


def fit_line(
    x: Array, y: Array, weights: Array, ceiling: Array | float = np.inf
) -> tuple[Array, Array]:
    """Return the intercept (0 to `ceiling`) and the slope (≥ 0) of a line.

    If the best line violates a bound, the result is the best line with its intercept on the bound,
    or the best constant.
    """
    intercept, slope = fit_least_squares([np.ones(len(x)), x], y, weights).T
    bounded = np.clip(intercept, 0, ceiling)
    bounded_slope = fit_least_squares([x], y - bounded[:, None], weights)[:, 0]
    slope = np.where(bounded == intercept, slope, bounded_slope)
    flat = slope < 0
    return np.where(flat, np.clip(fit_mean(y, weights), 0, ceiling), bounded), np.where(
        flat, 0.0, slope
    )


def fit_shape_coefficients(
    form: str, x: Array, y: Array, weights: Array, constant: bool = False
) -> Array:
    """Return the coefficients (draws, n) of a form's shape: ≥ 0, without a constant term.

    With `constant`, the first one is a constant term, and coefficients may be negative.
    """
    if form == "exponential":
        return _fit_exponential(x, y, weights)
    features = [np.ones(len(x))] if constant else []
    features += {"constant": [], "linear": [x], "logarithmic": [np.log(x)], "quadratic": [x, x**2]}[
        form
    ]
    if not features:
        return np.empty((len(y), 0))
    coefficients = fit_least_squares(features, y, weights)
    if constant:
        return coefficients
    if form == "quadratic":  # if one coefficient would be below 0, only the other is fitted
        for free, bounded in ((0, 1), (1, 0)):
            single = np.zeros_like(coefficients)
            single[:, free] = fit_least_squares([features[free]], y, weights)[:, 0]
            coefficients = np.where(coefficients[:, [bounded]] < 0, single, coefficients)
    return np.maximum(coefficients, 0)


def _fit_exponential(x: Array, y: Array, weights: Array) -> Array:
    """Return b and c of b·(e^{cx} − 1): for a given c the best b is linear, so only c is searched,
    up to c·x = 20."""
    # here, because it takes longer to load than most verbs to run
    from scipy.optimize import minimize_scalar

    def best_b(c: float, times: Array) -> float:
        grown = expm1(c * x)
        return max(np.sum(weights * grown * times) / np.sum(weights * grown**2), 0.0)

    def loss(log_c: float, times: Array) -> float:
        c = float(exp(log_c))
        return np.sum(weights * (times - best_b(c, times) * expm1(c * x)) ** 2)

    def best(times: Array) -> tuple[float, float]:
        search = minimize_scalar(
            loss, bounds=bounds, args=(times,), method="bounded", options={"xatol": 1e-9}
        )
        c = float(exp(search.x))
        return best_b(c, times), c

    bounds = (log(1e-3 / x.max()), log(20.0 / x.max()))
    b, c = best(y[0])
    draws = add_misfit_draws(y, y[0] - b * expm1(c * x), weights, 2)
    return np.array([(b, c), *(best(times) for times in draws[1:])])


def choose_form(
    forms: Sequence[str], x: Array, y: Array, weights: Array, constant: bool = False
) -> tuple[str, dict[str, float]]:
    """Return the form with the smallest AICc on row 0, of equal ones the first, and the AICc of
    each.

    `constant`: with a constant term. A form with too many coefficients for the data is not
    considered.
    """
    scores = {}
    for form in forms:
        coefficients = fit_shape_coefficients(form, x, y[:1], weights, constant)[0]
        terms = len(coefficients) + 1  # the error's variance counts as one
        if len(x) - terms - 1 <= 0:
            continue
        a, shape = (coefficients[0], coefficients[1:]) if constant else (0.0, coefficients)
        misfit = np.sum(weights * (y[0] - a - FORMS[form].shape(x, *shape)) ** 2) / len(x)
        scores[form] = compute_aicc(misfit, len(x), terms, np.mean(weights * y[0] ** 2))
    if not scores:
        return forms[0], {}
    least = min(scores.values()) + MIN_AICC_GAIN
    return next(form for form, score in scores.items() if score <= least), scores


def compute_aicc(misfit: float, count: int, terms: int, signal: float) -> float:
    """Return AICc of a mean squared misfit.

    Noise-free simulations fit to the last bit, so misfits below 1e-24 of `signal`, a mean square
    too, count as equal.
    """
    if count - terms - 1 <= 0:
        return np.inf
    floor = max(1e-24 * signal, 1e-300)
    return (
        count * np.log(max(misfit, floor))
        + 2 * terms
        + 2 * terms * (terms + 1) / (count - terms - 1)
    )


SIZE_AXES = ("message / B", "time / s")  # default labels of the axes
ROUNDING_SECONDS = 1e-15  # seconds: rounding errors of exact simulations


_has_left_out_errors: ContextVar[bool] = ContextVar("has_left_out_errors", default=True)


@contextmanager
def omit_left_out_errors() -> Iterator[None]:
    """Let curves have no error at held-out samples (NaN), which takes long: for fits of which only
    the values are used."""
    token = _has_left_out_errors.set(False)
    try:
        yield
    finally:
        _has_left_out_errors.reset(token)


def make_curve(
    title: str,
    x: ArrayLike,
    measured: ArrayLike,
    fitted: ArrayLike,
    form: str,
    terms: int = 1,
    labels: tuple[str, str] = SIZE_AXES,
    refit: Callable[[np.ndarray], Array] | None = None,
) -> Curve:
    """Return the evidence of a regression with `terms` coefficients, in SI units.

    `refit(keep)` fits the kept samples only and returns its values at all samples; this gives the
    error at held-out samples.
    """
    x, measured, fitted = (np.asarray(column, dtype=float) for column in (x, measured, fitted))
    measured, fitted = (
        np.where(np.abs(column) < ROUNDING_SECONDS, 0.0, column) for column in (measured, fitted)
    )
    scale = np.where(measured == 0, 1.0, measured)
    relative = (fitted - measured) / scale
    aic = compute_aicc(float(np.mean(relative**2)), len(x), terms + 1, 1.0)
    left_out = np.nan
    if refit is not None and len(x) > terms + 1 and _has_left_out_errors.get():
        errors = []
        for number in range(len(x)):
            keep = np.arange(len(x)) != number
            errors.append((refit(keep)[number] - measured[number]) / scale[number])
        left_out = float(np.sqrt(np.mean(np.square(errors))))
    xs, ys, fitted_ys = (
        tuple(float(value) for value in column) for column in (x, measured, fitted)
    )
    return Curve(
        title,
        *labels,
        xs,
        ys,
        fitted_ys,
        form,
        compute_r_squared(measured, fitted),
        float(aic),
        left_out,
    )


def make_line_curve(
    title: str,
    x: Array,
    y: Array,
    a: Array,
    b: Array,
    form: str,
    labels: tuple[str, str] = SIZE_AXES,
) -> Curve:
    """Return the evidence of a line fitted with weights 1/y²."""

    def refit(keep: np.ndarray) -> Array:
        first, slope = fit_line(x[keep], y[:1, keep], 1 / np.maximum(y[0, keep], 1e-15) ** 2)
        return first[0] + slope[0] * x

    return make_curve(title, x, y[0], a[0] + b[0] * x, form, 2, labels, refit)


def make_sampled_curve(title: str, x: ArrayLike, y: Array, predicted: Array) -> Curve:
    """Return the evidence of a function given by samples: measured and predicted times, which
    differ where samples were levelled.

    The error at a held-out sample is that of interpolation between its neighbours.
    """
    x = np.asarray(x, dtype=float)
    predicted = np.where(
        np.isclose(predicted, y[0], rtol=1e-12, atol=ROUNDING_SECONDS), y[0], predicted
    )
    return make_curve(
        title,
        x,
        y[0],
        predicted,
        format_form(TABLE),
        0,
        refit=lambda keep: np.interp(x, x[keep], make_nondecreasing(y[:, keep])[0]),
    )


MIN_SIZES = 3  # minimum number of sizes of a piece
FEW_SIZES = 8  # number of sizes, above which a cut has an additional penalty
NEGLIGIBLE_MISFIT = 1e-24  # of the sum of squares of all measurements
CLEAR_DROP = 0.05  # of the time from one piece to the next, relative
# largest over smallest size of a piece, below which a protocol change may explain its slope
NARROW_RANGE = 2.0
EQUAL_DEVIATIONS = 3  # standard deviations of noise within which times count as equal
TIE_TOLERANCE = 1e-7  # relative reduction of the misfit from which a later cut is better


def find_segments(x: Array, y: Array, weights: Array, max_pieces: int = 3) -> list[np.ndarray]:
    """Return the cases of each piece of a piecewise line, with change points of the smallest AICc.

    A piece has at least three sizes. Change points count as parameters, with a higher penalty if
    there are many possible places. Of equal cuts the first is chosen.
    """
    places, squares = np.unique(x), weights * y[0] ** 2
    line_misfits = _fit_lines_to_ranges(places, x, y[0], weights)
    line_misfits[line_misfits < NEGLIGIBLE_MISFIT * squares.sum()] = 0.0
    # With many possible cuts, one fits well by chance.
    penalty = 2 * np.log(max(len(places) / FEW_SIZES, 1))
    best = np.inf
    chosen: list[np.ndarray] = [np.argsort(x, kind="stable")]
    for cuts, misfit in _find_best_cuts(line_misfits, max_pieces):
        score = compute_aicc(
            misfit / len(x), len(x), 3 * (len(cuts) + 1), np.mean(squares)
        ) + penalty * len(cuts)
        if score < best - MIN_AICC_GAIN:
            edges = [places[0], *places[cuts], np.inf]
            best, chosen = (
                score,
                [np.flatnonzero((x >= low) & (x < high)) for low, high in pairwise(edges)],
            )
    return chosen


def _fit_lines_to_ranges(places: Array, x: Array, y: Array, weights: Array) -> Array:
    """Return the weighted sum of squares of the best line (see `fit_line`) through each range of
    sizes; ∞ if it has too few."""
    count = len(places)
    misfit = np.full((count, count + 1), np.inf)
    if count < MIN_SIZES:
        misfit[0, count] = 0.0
        return misfit
    first, last = np.triu_indices(count - MIN_SIZES + 1)
    last = last + MIN_SIZES
    index = np.searchsorted(places, x)
    weight = weights * ((index >= first[:, None]) & (index < last[:, None]))

    def weighted_sum(column: Array) -> Array:
        return np.sum(weight * column, axis=1, keepdims=True)

    total = weighted_sum(np.ones(len(x)))
    middle, level = weighted_sum(x) / total, weighted_sum(y) / total
    slope = weighted_sum((x - middle) * (y - level)) / weighted_sum((x - middle) ** 2)
    below = level < slope * middle
    slope = np.where(below, weighted_sum(x * y) / weighted_sum(x * x), slope)
    intercept = np.where(below, 0.0, level - slope * middle)
    flat = slope < 0
    slope, intercept = np.where(flat, 0.0, slope), np.where(flat, level, intercept)
    misfit[first, last] = weighted_sum((y - intercept - slope * x) ** 2)[:, 0]
    return misfit


def _find_best_cuts(line_misfits: Array, max_pieces: int) -> list[tuple[list[int], float]]:
    """Return the best cuts and their misfit, for one piece, two pieces, and so on up to
    `max_pieces`."""
    count = len(line_misfits)
    # misfit from each place on, in the current number of pieces
    best_misfit = line_misfits[:, count]
    piece_ends: list[np.ndarray] = []  # end of the piece that begins at each place
    best: list[tuple[list[int], float]] = [([], float(best_misfit[0]))]
    for _ in range(1, max_pieces):
        candidates = line_misfits[:, :count] + best_misfit
        best_misfit = candidates.min(axis=1)
        with np.errstate(invalid="ignore"):
            piece_ends.insert(
                0, (candidates <= best_misfit[:, None] * (1 + TIE_TOLERANCE)).argmax(axis=1)
            )
        if np.isinf(best_misfit[0]):
            break
        cuts = [0]
        for ends in piece_ends:
            cuts.append(int(ends[cuts[-1]]))
        best.append((cuts[1:], float(best_misfit[0])))
    return best


def fit_piecewise(
    name: str, x: Array, y: Array, weights: Array, max_pieces: int = 3
) -> tuple[str, dict[str, Array]]:
    """Return the form and the coefficients of a line, or of several with change points.

    A piece begins at the end of the piece before it or above, unless the time clearly drops there
    (CLEAR_DROP).
    """
    pieces = find_segments(x, y, weights, max_pieces)
    values: dict[str, Array] = {}
    previous = None
    for number, piece in enumerate(pieces):
        a, b = fit_line(x[piece], y[:, piece], weights[piece])
        suffix = str(number) if number else ""
        if previous is not None:
            edge = float(x[pieces[number - 1]].max())
            end = previous[0] + previous[1] * edge
            if x[piece].max() < NARROW_RANGE * x[piece].min() and a[0] > previous[0][0]:
                a = previous[0]
                b = fit_mean((y[:, piece] - a[:, None]) / x[piece], weights[piece] * x[piece] ** 2)
            if a[0] + b[0] * edge > (1 - CLEAR_DROP) * end[0]:
                a = np.maximum(a, end - b * edge)
            values[make_key(name, f"x{number}")] = np.full(len(y), edge)
        values |= {make_key(name, f"a{suffix}"): a, make_key(name, f"b{suffix}"): b}
        previous = (a, b)
    return ("piecewise" if len(pieces) > 1 else "linear"), values
