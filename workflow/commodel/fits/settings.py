"""Latency and bandwidth factors between settings of one table (`estimate_factors`), and fits of a model to a table of
several settings (`fit_in_settings`).

The factors apply to a reference, measured or predicted (module `recalibration`). They minimise the squares (Huber's
loss for many points) of ln(time/reference time) − ln(prediction with factors/without), and are positive. Predictions
are nearly linear in both factors, less so where another chain of messages becomes the longest: a few Gauss-Newton steps
suffice. The interval is Student's, with as many degrees of freedom as points beyond the factors, and at least as wide
as the times' own intervals. Two points determine two factors only if the residuals of the model are known otherwise.

    >>> from commodel.models.parameter_sets import set_given
    >>> from commodel.predictions.predictions import predict
    >>> known = set_given("hockney", ["alpha=10us", "beta=1ns"])
    >>> points = [Point("", "bcast", "linear", "", "block:1", 2, size) for size in (1, 10, 10**6, 10**7)]
    >>> slower = set_given("hockney", ["alpha=20us", "beta=1.5ns"])
    >>> times = [[row.seconds for row in predict(parameters, points)] for parameters in (slower, known)]
    >>> factors = estimate_factors(known, points, np.log(times[0]) - np.log(times[1]))
    >>> f"{factors.latency.value:.3f} {factors.per_byte.value:.3f}"
    '2.000 1.500'

A table of several settings is fitted at one of them, the reference; the other settings get factors against it.
Residuals in the other settings widen the prediction intervals of the model.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress

import numpy as np

from commodel.errors import UserError, suggest
from commodel.fits.measured_tables import Measured
from commodel.fits.table_fits import fit_measured, in_parts, predict_seconds
from commodel.models import Array
from commodel.models.evaluation.values import Values
from commodel.models.families import family
from commodel.parameters import Errors, ParameterSet
from commodel.patterns.schedule import Schedule
from commodel.predictions.model import Model
from commodel.predictions.prediction_intervals import measure_widening
from commodel.predictions.recalibration import (
    Factor,
    RecalibrationFactors,
    as_json,
    can_recalibrate,
    from_json,
    scale_values,
)
from commodel.predictions.residuals import ALL, kind_of, operation_class
from commodel.records import Point
from commodel.stats import MAD_TO_SIGMA, NORMAL_QUANTILE

SLOPE_STEP = 0.01  # of a logarithm, for slopes
MAX_STEPS = 30
MIN_LOG_STEP = 1e-7  # of a logarithm: no further step
MAX_LOG_FACTOR = 7.0  # factors are only searched within exp(±MAX_LOG_FACTOR)
MAX_LOG_STEP = 1.0  # of a logarithm, that a step may be
# least of a factor's largest share in a prediction; a smaller share does not determine it
MIN_FACTOR_SHARE = 0.02
MAX_LOG_HALF_WIDTH = 0.7  # half an interval of a logarithm, from which on a factor counts as not determined
MANY_POINTS = 8  # points, from which on outliers are expected
HUBER_SD = 1.345  # standard deviations, beyond which a point counts less
MIN_NOISE = 1e-4  # of a time: no measurement is more precise
BOTH, COMMON = np.eye(2), np.ones((1, 2))


def estimate_factors(
    parameters: ParameterSet, points: Sequence[Point], logs: Array, noise: Array | float = 0.0, shared: float = 0.0
) -> RecalibrationFactors:
    """Return the factors that change the predictions of the set by `logs`, ln(time there/time elsewhere). `noise` is
    the known standard deviation of each point, `shared` the one that all points have in common."""
    if not can_recalibrate(parameters):
        raise UserError(f"family {parameters.family} has no values of latency or of time per byte: no factor moves it")
    logs = np.asarray(logs, dtype=float)
    effect = Effect(parameters, points)
    moves = np.abs(effect.slopes(np.zeros(2))).max(axis=0, initial=0.0) >= MIN_FACTOR_SHARE
    noise = np.hypot(np.broadcast_to(np.asarray(noise, dtype=float), logs.shape), MIN_NOISE)
    for ways in [BOTH, COMMON] if moves.all() else [BOTH[moves]]:
        if not 0 < len(ways) <= len(logs):
            continue
        best, half, scatter = _solve_factors(effect, logs, ways, noise, shared)
        if half.max() < (MAX_LOG_HALF_WIDTH if len(ways) > 1 else np.inf):
            return _make_factors(best, half, scatter, ways, len(logs))
    raise UserError(f"family {parameters.family}: found {len(logs)} points, wanted some that determine the factors")


@dataclass(frozen=True, eq=False)
class Effect:
    """The effect of the factors on the predictions of points."""

    parameters: ParameterSet
    points: Sequence[Point]

    def __call__(self, logs: Array) -> Array:
        """Return ln(prediction with factors/without), (rows, points), for rows of logarithms of the factors."""
        entry, rows = family(self.parameters.family), np.exp(np.vstack([np.zeros(2), logs]))
        numbers = {name: np.array([[estimate.value]]) for name, estimate in self.parameters.values.items()}
        moved = scale_values(entry, self.parameters.forms, numbers, rows[:, :1], rows[:, 1:])
        model = Model.of(entry, Values(moved, self.parameters.forms, self.parameters.settings))
        predictions = np.zeros((len(rows), len(self.points)))
        for numbers, pattern, count in self._parts:
            predictions[:, numbers] += count * np.broadcast_to(model.cost(pattern), (len(numbers), len(rows))).T
        return np.log(predictions[1:] / predictions[0])

    @cached_property
    def _parts(self) -> list[tuple[list[int], Schedule, int]]:
        return list(in_parts(self.points))

    def slopes(self, at: Array) -> Array:
        """Return the derivatives, (points, factors)."""
        ends = self(at + SLOPE_STEP * np.vstack([BOTH, -BOTH]))
        return (ends[:2] - ends[2:]).T / (2 * SLOPE_STEP)


def _solve_factors(effect: Effect, logs: Array, ways: Array, noise: Array, shared: float) -> tuple[Array, Array, float]:
    """Return the best logarithms along `ways`, half their intervals, and the standard deviation of the residuals.
    Points are weighted by their own precision."""
    from scipy.special import stdtrit  # here, because it is slow to load and reports need nothing else of this file

    trust, best = noise.min() / noise, np.zeros(len(ways))
    for _ in range(MAX_STEPS):
        slopes, left = effect.slopes(best @ ways) @ ways.T, logs - effect(best @ ways[None])[0]
        weight = trust**2 * _weigh_huber(trust * left, len(ways))
        normal = (slopes * weight[:, None]).T @ slopes
        step = np.linalg.lstsq(normal, slopes.T @ (weight * left), rcond=None)[0]
        step *= min(1.0, MAX_LOG_STEP / max(np.abs(step).max(), MIN_LOG_STEP))
        best = np.clip(best + step, -MAX_LOG_FACTOR, MAX_LOG_FACTOR)
        if np.abs(step).max() < MIN_LOG_STEP:
            break
    inverse = np.linalg.pinv((slopes * (trust**2)[:, None]).T @ slopes)
    spare = len(logs) - len(ways)
    if not spare and not shared:
        return best, np.full(len(ways), np.inf), 0.0  # the fit of the factors to these points is unknown
    scatter = _estimate_scatter(trust * left, len(ways)) if spare else 0.0
    reach = max(scatter * stdtrit(spare, 0.975) if spare else 0.0, NORMAL_QUANTILE * float(noise.min()))
    return best, np.hypot(reach * np.sqrt(np.diag(inverse)), NORMAL_QUANTILE * shared), scatter


def _weigh_huber(left: Array, free: int) -> Array:
    """Return Huber's weights if there are many points, else equal weights."""
    if len(left) < MANY_POINTS:
        return np.ones(len(left))
    return np.minimum(1.0, HUBER_SD * _estimate_deviation(left, free) / np.maximum(np.abs(left), MIN_NOISE * MIN_NOISE))


def _estimate_deviation(left: Array, free: int) -> float:
    typical = MAD_TO_SIGMA * float(np.median(np.abs(left))) * np.sqrt(len(left) / (len(left) - free))
    return max(typical, MIN_NOISE)


def _estimate_scatter(left: Array, free: int) -> float:
    """Return the standard deviation for intervals; for many points Huber's estimate (Huber 1981, 7.6.3)."""
    spare = len(left) - free
    if len(left) < MANY_POINTS:
        return float(np.sqrt(np.sum(left**2) / spare))
    cut = HUBER_SD * _estimate_deviation(left, free)
    inside = float(np.mean(np.abs(left) <= cut))
    inside = max(inside, 1 / len(left))
    more = 1 + free / len(left) * (1 - inside) / inside
    return float(more * np.sqrt(np.sum(np.clip(left, -cut, cut) ** 2) / spare) / inside)


def _make_factors(best: Array, half: Array, scatter: float, ways: Array, points: int) -> RecalibrationFactors:
    factors = [Factor(known=False)] * 2
    for moves, middle, reach in zip(ways, best, half, strict=True):
        ends = (float(np.exp(log)) for log in (middle, middle - reach, middle + reach))
        fitted = Factor(*ends)
        factors = [fitted if moved else factor for moved, factor in zip(moves, factors, strict=True)]
    return RecalibrationFactors(*factors, bool(ways.sum() > len(ways)), points, scatter)


SETTING, PACES, WHY_NOT = "setting", "paces", "why_not"  # in the provenance of a set
NO_NAME = "(none)"  # name of the setting of rows without one


def name_setting(setting: str) -> str:
    """Return a setting as text for messages."""
    return f"setting '{setting}'" if setting else f"setting {NO_NAME}"


def list_settings(measured: Measured) -> list[str]:
    """Return the setting of each point."""
    return measured.settings or [""] * len(measured.points)


def select_points(measured: Measured, flags: list[bool]) -> Measured:
    """Return the flagged points."""
    columns = (measured.points, measured.seconds, list_settings(measured))
    points, seconds, settings = (list(compress(column, flags)) for column in columns)
    return replace(measured, points=points, seconds=seconds, settings=settings)


def select_setting(measured: Measured, setting: str) -> Measured:
    """Return the points of one setting."""
    return select_points(measured, [own == setting for own in list_settings(measured)])


def choose_reference(measured: Measured, requested: str | None = None) -> str:
    """Return the requested setting, else the one with most points; of equals the first."""
    counts = Counter(list_settings(measured))
    if requested is not None and requested not in counts:
        raise UserError(f"found no point of setting '{requested}'; {suggest(requested, counts)}", key="--setting")
    return counts.most_common(1)[0][0] if requested is None else requested


def fit_in_settings(measured: Measured, name: str, where: str, requested: str | None = None) -> ParameterSet:
    """Fit a model to the points of one setting. If there are several, the provenance names it and has the factors of
    the others."""
    reference = choose_reference(measured, requested)
    seen = select_setting(measured, reference)
    parameters = fit_measured(seen.points, seen.seconds, name, where)
    others = [other for other in dict.fromkeys(list_settings(measured)) if other != reference]
    if not others:
        return replace(parameters, provenance={**parameters.provenance, **({SETTING: reference} if reference else {})})
    paces = []
    for other in others:
        try:
            paces.append(as_json(_recalibration(parameters, select_setting(measured, other), seen), other))
        except UserError as error:
            paces.append({SETTING: other, WHY_NOT: error.message})
    return replace(
        parameters,
        source=f"{parameters.source}, of {name_setting(reference)}",
        errors=_widen_bands(parameters, measured, others),
        provenance={**parameters.provenance, SETTING: reference, PACES: paces},
    )


def describe_factors(parameters: ParameterSet) -> Iterator[str]:
    """Yield a line for each other setting: its factors, or why it has none."""
    reference = name_setting(str(parameters.provenance.get(SETTING, "")))
    for entry in parameters.provenance.get(PACES, ()):
        name = name_setting(entry[SETTING])
        if WHY_NOT in entry:
            yield f"{name} has no factors: {entry[WHY_NOT]}"
        else:
            yield f"{name} against {reference}: {from_json(entry).text}; {entry['points']} points"


def _recalibration(parameters: ParameterSet, there: Measured, seen: Measured) -> RecalibrationFactors:
    """Return the factors of one setting. Points that the reference also has are compared with their times there, the
    others with their predictions."""
    times = dict(zip(seen.points, seen.seconds, strict=True))
    predictions = predict_seconds(parameters, there.points)
    usual = np.array(
        [times.get(point, prediction) for point, prediction in zip(there.points, predictions, strict=True)]
    )
    predicted = np.isfinite(usual) & np.isfinite(predictions)
    points = list(compress(there.points, predicted))
    return estimate_factors(parameters, points, np.log(np.array(there.seconds)[predicted] / usual[predicted]))


def _widen_bands(parameters: ParameterSet, measured: Measured, others: list[str]) -> dict[str, Errors]:
    """Return the residual bands, widened at both ends until they cover 95 % of the points of other settings, each
    setting with equal weight."""
    there = select_points(measured, [setting in others for setting in list_settings(measured)])
    logs = np.log(np.array(there.seconds) / predict_seconds(parameters, there.points))
    named = [operation_class(point.operation) for point in there.points]
    setting, bands = np.array(list_settings(there)), {}
    for name, band in parameters.errors.items():
        of_kind = np.array([name in (operation, kind_of(operation), ALL) for operation in named]) & np.isfinite(logs)
        more = measure_widening(logs[of_kind], setting[of_kind], band.low, band.high) if of_kind.any() else 0.0
        allocations = band.allocations + len(np.unique(setting[of_kind]))
        beyond = {end: (low - more, high + more, growth) for end, (low, high, growth) in band.beyond.items()}
        bands[name] = replace(band, low=band.low - more, high=band.high + more, allocations=allocations, beyond=beyond)
    return bands
