"""Latency and bandwidth factors between settings of one table (`estimate_factors`), and fits of a
model to a table of several settings (`fit_in_settings`).

The factors apply to a reference, measured or predicted (module `recalibration`). They minimise the
squares (Huber's loss for many points) of ln(time/reference time) − ln(prediction with
factors/without), and are positive. Predictions are nearly linear in both factors unless the
critical path changes, so a few Gauss-Newton steps suffice. The interval uses Student's
distribution, with one degree of freedom for each point beyond the number of factors. It is at least
as wide as the intervals of the times. Two points determine two factors only if the model's
residuals are known from elsewhere.

    >>> from commodel.models.parameter_sets import make_given_set
    >>> from commodel.predictions.predictions import predict
    >>> known = make_given_set("hockney", ["alpha=10us", "beta=1ns"])
    >>> points = [Point("", "bcast", "linear", "", "block:1", 2, size) for size in (1, 10, 10**6, 10**7)]
    >>> slower = make_given_set("hockney", ["alpha=20us", "beta=1.5ns"])
    >>> times = [[row.seconds for row in predict(parameters, points)] for parameters in (slower, known)]
    >>> factors = estimate_factors(known, points, np.log(times[0]) - np.log(times[1]))
    >>> f"{factors.latency.value:.3f} {factors.per_byte.value:.3f}"
    '2.000 1.500'

A table of several settings is fitted at one of them, the reference; the other settings get factors
against it. Residuals in the other settings widen the prediction intervals of the model.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress

import numpy as np

from commodel.errors import UserError, suggest_name
from commodel.fits.measured_tables import Measured
from commodel.fits.mpi_default_fits import fit_default
from commodel.fits.parameter_search import stack_parts
from commodel.fits.table_fits import fit_measured, predict_seconds
from commodel.models import Array
from commodel.models.evaluation.values import Values
from commodel.models.families import find_family
from commodel.parameters import ParameterSet, StoredResiduals
from commodel.patterns.schedule import Schedule
from commodel.predictions.model import Model
from commodel.predictions.mpi_default import SETTING_KEY
from commodel.predictions.places import Places
from commodel.predictions.recalibration import (
    Factor,
    RecalibrationFactors,
    can_recalibrate,
    format_factors,
    parse_factors,
    scale_values,
)
from commodel.predictions.residual_model import MeasuredResiduals, ResidualModel
from commodel.predictions.stored_residuals import load_residuals, store_residuals
from commodel.records import Point
from commodel.stats import MAD_TO_SIGMA, NORMAL_QUANTILE

SLOPE_STEP = 1e-4  # of a logarithm, for slopes
MAX_STEPS = 30
MIN_LOG_STEP = 1e-5  # of a logarithm; after a smaller step the search ends
MAX_LOG_FACTOR = 7.0  # factors are only searched within exp(±MAX_LOG_FACTOR)
MAX_LOG_STEP = 1.0  # of a logarithm; the largest step
# smallest share of the latency or of the time per byte in a prediction that determines its factor
MIN_FACTOR_SHARE = 0.02
# half-width of the interval of a logarithm, from which on two factors become a common one
MAX_LOG_HALF_WIDTH = 0.7
MANY_POINTS = 8  # points from which on outliers get lower weights
HUBER_SD = 1.345  # standard deviations beyond which a point gets a lower weight
MIN_NOISE = 1e-4  # relative standard deviation that each time has at least
# directions of the search in (ln f_L, ln f_B)
SEPARATE_FACTORS, COMMON_FACTOR = np.eye(2), np.ones((1, 2))


def estimate_factors(
    parameters: ParameterSet,
    points: Sequence[Point],
    logs: Array,
    noise: Array | float = 0.0,
    shared: float = 0.0,
) -> RecalibrationFactors:
    """Return the factors that change the predictions of the set by `logs`, ln(time/reference time)
    of each point. `noise` is the known standard deviation of each point, `shared` that of an error
    common to all points."""
    if not can_recalibrate(parameters):
        raise UserError(
            f"model {parameters.model} has no latency and no time per byte: recalibration does not change it"
        )
    logs = np.asarray(logs, dtype=float)
    effect = Effect(parameters, points)
    _, slopes = effect.with_slopes(np.zeros(2))
    is_determined = np.abs(slopes).max(axis=0, initial=0.0) >= MIN_FACTOR_SHARE
    deviations = np.hypot(np.broadcast_to(np.asarray(noise, dtype=float), logs.shape), MIN_NOISE)
    for directions in (
        [SEPARATE_FACTORS, COMMON_FACTOR]
        if is_determined.all()
        else [SEPARATE_FACTORS[is_determined]]
    ):
        if not 0 < len(directions) <= len(logs):
            continue
        best, half_widths, scatter = _solve_factors(effect, logs, directions, deviations, shared)
        if half_widths.max() < (MAX_LOG_HALF_WIDTH if len(directions) > 1 else np.inf):
            return _make_factors(best, half_widths, scatter, directions, len(logs))
    raise UserError(
        f"model {parameters.model}: found {len(logs)} points that do not determine the factors, wanted more"
    )


@dataclass(frozen=True, eq=False)
class Effect:
    """The effect of the factors on the predictions of points."""

    parameters: ParameterSet
    points: Sequence[Point]

    def __call__(self, logs: Array) -> Array:
        """Return ln(prediction with factors/without), (rows, points), for rows of logarithms of the
        factors."""
        return np.log(self._predict(np.exp(logs)) / self._without_factors)

    def with_slopes(self, logs: Array) -> tuple[Array, Array]:
        """Return the same for one pair of logarithms, (points,), and its derivatives, (points,
        factors)."""
        rows = self(logs + SLOPE_STEP * np.vstack([np.zeros(2), SEPARATE_FACTORS]))
        return rows[0], (rows[1:] - rows[0]).T / SLOPE_STEP

    def _predict(self, factors: Array) -> Array:
        """Return the predictions, (rows, points), for rows of factors."""
        family = find_family(self.parameters.model)
        values = {
            name: np.array([[estimate.value]]) for name, estimate in self.parameters.values.items()
        }
        scaled = scale_values(family, self.parameters.forms, values, factors[:, :1], factors[:, 1:])
        model = Model.of(family, Values(scaled, self.parameters.forms, self.parameters.settings))
        predictions = np.zeros((len(factors), len(self.points)))
        for numbers, pattern, count in self._parts:
            predictions[:, numbers] += (
                count * np.broadcast_to(model.cost(pattern), (len(numbers), len(factors))).T
            )
        return predictions

    @cached_property
    def _without_factors(self) -> Array:
        return self._predict(np.ones((1, 2)))

    @cached_property
    def _parts(self) -> list[tuple[list[int], Schedule, int]]:
        return list(stack_parts(self.points))


def _solve_factors(
    effect: Effect, logs: Array, directions: Array, noise: Array, shared: float
) -> tuple[Array, Array, float]:
    """Return the best logarithms along `directions`, the half-widths of their intervals, and the
    standard deviation of the residuals. Points are weighted by their precision."""
    # imported here since it loads slowly, and reports do not need it
    from scipy.special import stdtrit

    precision, best = noise.min() / noise, np.zeros(len(directions))
    for _ in range(MAX_STEPS):
        predicted, slopes = effect.with_slopes(best @ directions)
        slopes, residuals = slopes @ directions.T, logs - predicted
        weight = precision**2 * _weigh_huber(precision * residuals, len(directions))
        normal = (slopes * weight[:, None]).T @ slopes
        step = np.linalg.lstsq(normal, slopes.T @ (weight * residuals), rcond=None)[0]
        step *= min(1.0, MAX_LOG_STEP / max(np.abs(step).max(), MIN_LOG_STEP))
        best = np.clip(best + step, -MAX_LOG_FACTOR, MAX_LOG_FACTOR)
        if np.abs(step).max() < MIN_LOG_STEP:
            break
    inverse = np.linalg.pinv((slopes * (precision**2)[:, None]).T @ slopes)
    degrees_of_freedom = len(logs) - len(directions)
    if not degrees_of_freedom and not shared:
        # the fit of the factors to these points is unknown
        return best, np.full(len(directions), np.inf), 0.0
    scatter = (
        _estimate_scatter(precision * residuals, len(directions)) if degrees_of_freedom else 0.0
    )
    width = max(
        scatter * stdtrit(degrees_of_freedom, 0.975) if degrees_of_freedom else 0.0,
        NORMAL_QUANTILE * float(noise.min()),
    )
    return best, np.hypot(width * np.sqrt(np.diag(inverse)), NORMAL_QUANTILE * shared), scatter


def _weigh_huber(residuals: Array, parameters: int) -> Array:
    """Return Huber's weights if there are many points, else equal weights."""
    if len(residuals) < MANY_POINTS:
        return np.ones(len(residuals))
    return np.minimum(
        1.0,
        HUBER_SD
        * _estimate_deviation(residuals, parameters)
        / np.maximum(np.abs(residuals), MIN_NOISE * MIN_NOISE),
    )


def _estimate_deviation(residuals: Array, parameters: int) -> float:
    typical = (
        MAD_TO_SIGMA
        * float(np.median(np.abs(residuals)))
        * np.sqrt(len(residuals) / (len(residuals) - parameters))
    )
    return max(typical, MIN_NOISE)


def _estimate_scatter(residuals: Array, parameters: int) -> float:
    """Return the standard deviation for intervals; for many points Huber's estimate (Huber 1981,
    7.6.3)."""
    degrees_of_freedom = len(residuals) - parameters
    if len(residuals) < MANY_POINTS:
        return float(np.sqrt(np.sum(residuals**2) / degrees_of_freedom))
    cut = HUBER_SD * _estimate_deviation(residuals, parameters)
    inside = float(np.mean(np.abs(residuals) <= cut))
    inside = max(inside, 1 / len(residuals))
    correction = 1 + parameters / len(residuals) * (1 - inside) / inside
    return float(
        correction
        * np.sqrt(np.sum(np.clip(residuals, -cut, cut) ** 2) / degrees_of_freedom)
        / inside
    )


def _make_factors(
    best: Array, half_widths: Array, scatter: float, directions: Array, points: int
) -> RecalibrationFactors:
    factors = [Factor(known=False)] * 2
    for direction, middle, half_width in zip(directions, best, half_widths, strict=True):
        factor, low, high = (
            float(np.exp(log)) for log in (middle, middle - half_width, middle + half_width)
        )
        fitted = Factor(factor, low, high)
        factors = [
            fitted if applies else other for applies, other in zip(direction, factors, strict=True)
        ]
    latency, per_byte = factors
    return RecalibrationFactors(
        latency, per_byte, bool(directions.sum() > len(directions)), points, scatter
    )


# keys in the provenance of a set
FACTORS_KEY, REASON_KEY = "paces", "why_not"
NO_NAME = "(none)"  # name of the setting of rows without one


def name_setting(setting: str) -> str:
    """Return a setting as text for messages."""
    return f"setting '{setting}'" if setting else f"setting {NO_NAME}"


def list_settings(measured: Measured) -> list[str]:
    """Return the setting of each point."""
    return measured.settings or [""] * len(measured.points)


def select_points(measured: Measured, flags: list[bool]) -> Measured:
    """Return the flagged points."""
    return replace(
        measured,
        points=list(compress(measured.points, flags)),
        seconds=list(compress(measured.seconds, flags)),
        settings=list(compress(list_settings(measured), flags)),
    )


def select_setting(measured: Measured, setting: str) -> Measured:
    return select_points(measured, [other == setting for other in list_settings(measured)])


def choose_reference(measured: Measured, wanted: str | None = None) -> str:
    """Return the wanted setting, else the first of those with most points."""
    counts = Counter(list_settings(measured))
    if wanted is not None and wanted not in counts:
        raise UserError(
            f"found no point of setting '{wanted}'; {suggest_name(wanted, counts)}", key="--setting"
        )
    return counts.most_common(1)[0][0] if wanted is None else wanted


def fit_in_settings(
    measured: Measured, name: str, table: str, wanted: str | None = None
) -> ParameterSet:
    """Fit a model to the points of one setting of a table, the reference. If there are several
    settings, the provenance names the reference and has the factors of the others."""
    reference = choose_reference(measured, wanted)
    reference_points = select_setting(measured, reference)
    parameters = fit_measured(reference_points.points, reference_points.seconds, name, table)
    other_settings = [
        setting for setting in dict.fromkeys(list_settings(measured)) if setting != reference
    ]
    if not other_settings:
        of_reference = {SETTING_KEY: reference} if reference else {}
        return replace(parameters, provenance={**parameters.provenance, **of_reference})
    factors_of_others = []
    for setting in other_settings:
        try:
            factors = _estimate_against_reference(
                parameters, select_setting(measured, setting), reference_points
            )
            factors_of_others.append(format_factors(factors, setting))
        except UserError as error:
            factors_of_others.append({SETTING_KEY: setting, REASON_KEY: error.message})
    return replace(
        parameters,
        source=f"{parameters.source}, of {name_setting(reference)}",
        residuals=_add_residuals_of_settings(parameters, measured, reference),
        provenance={
            **parameters.provenance,
            SETTING_KEY: reference,
            FACTORS_KEY: factors_of_others,
        },
    )


def fit_default_in_setting(
    measured: Measured, name: str, table: str, wanted: str | None = None
) -> ParameterSet:
    """Fit the MPI default to its points of one setting of a table. Other settings are left out."""
    reference = choose_reference(measured, wanted)
    used = select_setting(measured, reference)
    parameters = fit_default(used.points, used.seconds, table)
    if not reference:
        return parameters
    return replace(
        parameters,
        source=f"{parameters.source}, of {name_setting(reference)}",
        provenance={**parameters.provenance, SETTING_KEY: reference},
    )


def describe_factors(parameters: ParameterSet) -> Iterator[str]:
    """Yield a line for each other setting: its factors, or the reason why it has none."""
    reference = name_setting(str(parameters.provenance.get(SETTING_KEY, "")))
    for entry in parameters.provenance.get(FACTORS_KEY, ()):
        name = name_setting(entry[SETTING_KEY])
        if REASON_KEY in entry:
            yield f"{name} has no factors: {entry[REASON_KEY]}"
        else:
            yield f"{name} against {reference}: {parse_factors(entry).text}; {entry['points']} points"


def _estimate_against_reference(
    parameters: ParameterSet, other: Measured, reference: Measured
) -> RecalibrationFactors:
    """Return the factors of one setting. Points that were also measured in the reference setting
    are compared with those times, other points with predictions."""
    times = dict(zip(reference.points, reference.seconds, strict=True))
    predictions = predict_seconds(parameters, other.points)
    reference_times = np.array(
        [
            times.get(point, prediction)
            for point, prediction in zip(other.points, predictions, strict=True)
        ]
    )
    predicted = np.isfinite(reference_times) & np.isfinite(predictions)
    points = list(compress(other.points, predicted))
    return estimate_factors(
        parameters, points, np.log(np.array(other.seconds)[predicted] / reference_times[predicted])
    )


def _add_residuals_of_settings(
    parameters: ParameterSet, measured: Measured, reference: str
) -> StoredResiduals | None:
    """Return the residuals of a set, with those of its predictions in the other settings."""
    other = select_points(measured, [setting != reference for setting in list_settings(measured)])
    logs = np.log(np.array(other.seconds) / predict_seconds(parameters, other.points))
    setting = np.array(list_settings(other), dtype=str)
    places = Places.of_points(other.points, setting)
    # An allocation has a name.
    allocation = np.where(setting == "", NO_NAME, setting)
    of_others = MeasuredResiduals.of(places, logs, 0.0, allocation)
    of_others = of_others.only(np.isfinite(logs))
    if parameters.residuals is not None:
        of_reference = load_residuals(parameters.residuals).residuals
        in_reference = np.full(len(of_reference), reference)
        named = replace(of_reference.places, setting=in_reference)
        of_reference = replace(of_reference, places=named)
        of_others = of_reference.join(of_others)
    model = ResidualModel.fit(of_others)
    return store_residuals(model) if model else parameters.residuals
