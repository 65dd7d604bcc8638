"""Recalibration of parameter sets by a few new measurements, and drift since they were fitted.

A few points measured in a new allocation give a latency factor and a bandwidth factor for
predictions fitted elsewhere. The module selects the points that determine the factors best, fits
them, and compares residuals before and after at held-out points. A point that the campaign measured
too is compared with its time there, so that a constant residual of the model cancels. Without a
campaign, single messages are compared with their predictions.

Drift is the spread of such factors between allocations. It is estimated from recalibrations of a
campaign and from its own batches, by the model with the smallest residuals. Batches have no points
in common, so residuals that grow with ranks or nodes look like drift. Batches are therefore grouped
by setting; without settings, by allocation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from math import inf, nan
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd

from commodel.errors import UserError
from commodel.files.tables import COMPARISON, add_default_columns
from commodel.fits.settings import Effect, estimate_factors
from commodel.hierarchy import Hierarchy
from commodel.parameters import ParameterSet, StoredResiduals
from commodel.patterns.layouts import place_ranks
from commodel.patterns.points import PlatformResources, make_point
from commodel.predictions.places import Places
from commodel.predictions.predictions import Prediction, predict
from commodel.predictions.recalibration import (
    RecalibrationFactors,
    has_latency_and_bandwidth,
    scale_set,
)
from commodel.predictions.stored_residuals import load_residuals
from commodel.predictions.validity import have_weight
from commodel.records import Plan, Point
from commodel.results.recalibrations import Calibration, RecordedFactors
from commodel.stats import (
    NEGLIGIBLE_DIFFERENCE,
    NORMAL_QUANTILE,
    compute_median_interval,
    find_noise_of_interval,
    select_evenly,
)

MIN_POINTS_OF_FACTORS = 2  # points; fewer do not determine two factors
SINGLE_MESSAGE = {"operation": "bcast", "algorithm": "linear", "ranks": 2}
# bytes of single messages, the most informative first
MESSAGE_SIZES = ((8, 1 << 20), (64, 1 << 18), (1, 1 << 19))
# held-out points without a campaign
HELD_OUT_PATTERNS = (("bcast", "binomial"), ("allgather", "ring"))
MAX_HELD_OUT_RANKS = 8
HELD_OUT_SIZES = (1 << 10, 1 << 16)  # ranks and bytes of held-out points
MAX_CANDIDATE_POINTS = 400  # points of a campaign among which calibration points are selected
MAX_MEASURED_SECONDS = 0.1  # seconds: slower points are not measured again
MIN_RELATIVE_SHARE = (
    # of the largest share of latency, or of time per byte; points above it are equally informative
    0.9
)
# share of a prediction that no factor scales: points with more are less informative
MAX_UNSCALED_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class CalibrationPoint:
    """A point to measure in the new allocation; `noise` is the standard deviation of the logarithm
    of `seconds`."""

    point: Point
    seconds: float = nan  # in the campaign
    noise: float = 0.0

    @property
    def known(self) -> bool:
        """Whether the campaign measured the point."""
        return self.seconds == self.seconds


@dataclass(frozen=True, slots=True)
class CalibrationTime:
    """The time of a point in the new allocation, in seconds, and the standard deviation of its
    logarithm."""

    calibration_point: CalibrationPoint
    seconds: float
    noise: float


@dataclass(frozen=True, slots=True)
class RecalibratedSet:
    """A parameter set recalibrated to the new allocation, and its factors. `before` and `after` are
    its mean μ at the held-out points without and with the factors; `checked` is the number of these
    points."""

    parameters: ParameterSet
    factors: RecalibrationFactors
    before: float
    after: float
    checked: int


def list_campaign_points(
    points: Sequence[Point], comparison: pd.DataFrame, nodes: int
) -> list[CalibrationPoint]:
    """Return the points of a campaign that can be measured again on this number of nodes."""
    rows = comparison[
        comparison["held_out"]
        & comparison["measured"].between(0, MAX_MEASURED_SECONDS, inclusive="neither")
    ]
    rows = (
        rows[(rows["seconds"] > 0) & (rows["waves"] == 1)]
        .drop_duplicates("point")
        .set_index("point")
    )
    candidates = [
        CalibrationPoint(
            point,
            rows.at[point.id, "measured"],
            float(find_noise_of_interval(*rows.loc[point.id, ["measured_low", "measured_high"]])),
        )
        for point in points
        if point.predictable and point.nodes <= nodes and point.id in rows.index
    ]
    return candidates[:: max(-(-len(candidates) // MAX_CANDIDATE_POINTS), 1)]


def list_single_messages(
    resources: PlatformResources,
) -> tuple[list[CalibrationPoint], list[CalibrationPoint]]:
    """Return single messages, a short and a long one at every distance of the platform, then more;
    and collectives as held-out points."""
    layouts = [
        f"scatter:{name}" for name, groups in reversed(resources.levels) if len(set(groups)) > 1
    ]
    layouts += ["block:1"] if resources.nodes > 1 else []
    layouts += ["block:2"] if resources.cores > 1 else []
    if not layouts:
        raise UserError(f"platform '{resources.name}' has room for one rank alone, wanted two")
    points = []
    for pair in MESSAGE_SIZES:
        for layout, size in product(layouts, pair):
            message = {**SINGLE_MESSAGE, "layout": layout, "bytes": size}
            points.append(CalibrationPoint(make_point(resources, message)))
    ranks = min(MAX_HELD_OUT_RANKS, resources.nodes if resources.nodes > 1 else resources.cores)
    held_out = []
    for name, choice in HELD_OUT_PATTERNS:
        for size in HELD_OUT_SIZES:
            pattern = {"operation": name, "algorithm": choice, "ranks": ranks, "bytes": size}
            held_out.append(CalibrationPoint(make_point(resources, pattern)))
    return points, held_out


def select_calibration_points(
    candidates: Sequence[CalibrationPoint],
    sets: Sequence[ParameterSet],
    levels: Hierarchy,
    count: int,
    held_out_count: int,
) -> tuple[list[CalibrationPoint], list[CalibrationPoint]]:
    """Return the points from which factors are fitted, and the held-out points, spread over
    operations and sizes.

    Points are selected by the predictions of the first set with a latency and a time per byte. If
    there are few points, some are still held out."""
    count = min(
        count, max(len(candidates) - held_out_count, MIN_POINTS_OF_FACTORS, len(candidates) // 2)
    )
    parameters = next(
        (fitted for fitted in sets if fitted.values and has_latency_and_bandwidth(fitted)), None
    )
    if parameters is None:
        raise UserError(
            "found no model with a latency and a time per byte, wanted one by which points are selected"
        )
    used = select_informative(candidates, parameters, levels, count)
    order = attrgetter("point.operation", "point.bytes", "point.id")
    remaining = sorted(set(candidates) - set(used), key=order)
    return used, [remaining[index] for index in select_evenly(len(remaining), held_out_count)]


def select_informative(
    candidates: Sequence[CalibrationPoint], parameters: ParameterSet, levels: Hierarchy, count: int
) -> list[CalibrationPoint]:
    """Return the points that determine the factors best: for every distance class, one whose
    predicted time is mostly latency and one whose predicted time is mostly time per byte. Of
    equally good points the fastest is selected. This repeats until there are `count` points."""
    effect = Effect(parameters, [candidate.point for candidate in candidates])
    _, shares = effect.with_slopes(np.zeros(2))
    is_scaled = shares.sum(axis=1) > 1 - MAX_UNSCALED_SHARE
    remaining: list[int] = list(
        np.flatnonzero(is_scaled).tolist()
        if np.count_nonzero(is_scaled) >= count
        else range(len(candidates))
    )
    distance = [
        max(levels.classes(place_ranks(candidate.point.layout, candidate.point.ranks)))
        for candidate in candidates
    ]
    selected: list[int] = []
    while remaining and len(selected) < count:
        for distance_class, factor in product(sorted(set(distance)), (0, 1)):
            in_class = [number for number in remaining if distance[number] == distance_class]
            if in_class and len(selected) < count:
                largest_share = max(shares[number, factor] for number in in_class)
                nearly_largest = [
                    number
                    for number in in_class
                    if shares[number, factor] >= MIN_RELATIVE_SHARE * largest_share
                ]
                selected.append(min(nearly_largest, key=lambda number: candidates[number].seconds))
                remaining.remove(selected[-1])
    return [candidates[number] for number in selected]


def summarize_samples(
    calibration_point: CalibrationPoint, samples: Sequence[Mapping[str, Any]]
) -> CalibrationTime | None:
    """Return the median of the samples and its noise; None if no sample is valid."""
    valid = np.array([sample["seconds"] for sample in samples if sample["valid"]], dtype=float)
    if not len(valid):
        return None
    middle, low, high = compute_median_interval(valid)
    return (
        CalibrationTime(calibration_point, middle, float(find_noise_of_interval(low, high)))
        if middle > 0
        else None
    )


def recalibrate_set(
    parameters: ParameterSet,
    used: Sequence[CalibrationTime],
    held_out_times: Sequence[CalibrationTime],
    setting: str,
    residuals: StoredResiduals | None,
) -> RecalibratedSet:
    """Return a set scaled to the new setting by the points `used`, with its error at the points of
    `held_out_times`. `residuals` are those of its predictions elsewhere."""
    predicted = _pair_with_predictions(parameters, used)
    logs = [
        np.log(
            timed.seconds
            / (timed.calibration_point.seconds if timed.calibration_point.known else row.seconds)
        )
        for timed, row in predicted
    ]
    noise = [np.hypot(timed.noise, timed.calibration_point.noise) for timed, _ in predicted]
    separate_factors = len(predicted) > MIN_POINTS_OF_FACTORS and all(
        timed.calibration_point.known for timed, _ in predicted
    )
    model_error = (
        0.0
        if separate_factors
        else _compute_model_error(residuals, [prediction for _, prediction in predicted])
    )
    factors = estimate_factors(
        parameters,
        [timed.calibration_point.point for timed, _ in predicted],
        np.array(logs),
        np.array(noise),
        model_error,
    )
    scaled = scale_set(
        replace(parameters, residuals=residuals),
        factors,
        setting,
        f"{setting} by {len(predicted)} points",
    )

    def list_error_factors(set_used: ParameterSet) -> list[float]:
        pairs = _pair_with_predictions(set_used, held_out_times)
        return [max(row.seconds / time.seconds, time.seconds / row.seconds) for time, row in pairs]

    before = list_error_factors(parameters)
    after = list_error_factors(scaled)
    mean_before = float(np.mean(before)) if before else nan
    mean_after = float(np.mean(after)) if after else nan
    return RecalibratedSet(
        parameters=scaled, factors=factors, before=mean_before, after=mean_after, checked=len(after)
    )


def _pair_with_predictions(
    parameters: ParameterSet, times: Sequence[CalibrationTime]
) -> list[tuple[CalibrationTime, Prediction]]:
    """Return the measured times with their predictions, without points whose prediction has no
    weight."""
    predictions = predict(
        parameters, [timed.calibration_point.point for timed in times], strict=False, draws=0
    )
    times_with_predictions = zip(times, predictions, strict=True)
    return [
        (timed, row)
        for timed, row in times_with_predictions
        if row.seconds > 0 and row.validity.has_weight
    ]


def _compute_model_error(
    residuals: StoredResiduals | None, predictions: Sequence[Prediction]
) -> float:
    """Return the standard deviation of the residuals of these predictions. A smaller difference
    between settings is not significant."""
    if residuals is None or not predictions:
        return 0.0
    model = load_residuals(residuals)
    places = Places.of_points([row.point for row in predictions])
    logs, half_width = model.predict_singly(places)
    largest = np.maximum(np.abs(logs - half_width), np.abs(logs + half_width))
    has_interval = [basis.of_residuals for basis in model.find_bases(places)]
    return float(np.median(largest[has_interval])) / NORMAL_QUANTILE if any(has_interval) else 0.0


def recalibrate_sets(
    sets: Sequence[ParameterSet],
    used: Sequence[CalibrationTime],
    held_out_times: Sequence[CalibrationTime],
    setting: str,
    residuals: Mapping[str, StoredResiduals | None],
) -> tuple[list[RecalibratedSet], dict[str, str]]:
    """Return every set that can be scaled, the one with the smallest error afterwards first; and
    the reason for each model that cannot be scaled."""
    calibrated = []
    reasons = {}
    for parameters in sets:
        try:
            if not parameters.values:
                raise UserError(f"model {parameters.model} has no values")
            calibrated.append(
                recalibrate_set(
                    parameters,
                    used,
                    held_out_times,
                    setting,
                    residuals.get(parameters.model, parameters.residuals),
                )
            )
        except UserError as error:
            reasons[parameters.model] = error.message
    return sorted(
        calibrated,
        key=lambda recalibrated: recalibrated.after if recalibrated.checked else float("inf"),
    ), reasons


# the times with which new times are compared
BASIS_SAME_POINTS, BASIS_PREDICTIONS = "same points", "predictions"
FACTOR_FIELDS = ("value", "low", "high")
COLUMNS = [
    *("platform", "simulated", "allocation", "date", "compared_with", "model"),
    *(f"{name}_{end}" for name in ("latency", "per_byte") for end in FACTOR_FIELDS),
    *("points", "before", "after", "checked"),
]
MIN_POINTS_FOR_DRIFT = 4  # points of a batch
MAX_DRIFT_POINTS = 400  # points of a platform


def measure_drift(
    plan: Plan,
    comparison: pd.DataFrame,
    sets: Sequence[ParameterSet],
    calibrations: Mapping[str, Calibration],
) -> pd.DataFrame:
    """Return the drift: a row for each recalibration, and for each allocation of a campaign that
    has at least two."""
    rows = [*_list_calibrated(calibrations), *_compare_batches(plan, comparison, sets)]
    return pd.DataFrame(rows, columns=COLUMNS)


def _list_calibrated(calibrations: Mapping[str, Calibration]) -> Iterator[dict]:
    for record in calibrations.values():
        if record.models:
            family, factors = min(record.models.items(), key=lambda entry: entry[1].after or inf)
            name = record.setting + (
                f", on {record.measured_on}" if record.measured_on != record.platform else ""
            )
            in_campaign = all(point.elsewhere is not None for point in record.points if point.used)
            yield {
                "platform": record.platform,
                "simulated": record.simulated,
                "allocation": name,
                "date": record.date,
                "compared_with": BASIS_SAME_POINTS if in_campaign else BASIS_PREDICTIONS,
                "model": family,
                **_make_factor_columns(factors),
                **{key: getattr(factors, key) for key in ("points", "before", "after", "checked")},
            }


def _compare_batches(
    plan: Plan, comparison: pd.DataFrame, sets: Sequence[ParameterSet]
) -> Iterator[dict]:
    points = {point.id: point for point in plan.points}
    comparison = add_default_columns(comparison, COMPARISON)
    usable = comparison[
        comparison["held_out"] & (comparison["measured"] > 0) & (comparison["seconds"] > 0)
    ]
    usable = usable[have_weight(usable["validity"]) & (usable["waves"] == 1)]
    for platform, rows_of_platform in usable.groupby("platform"):
        best = rows_of_platform.groupby("model")["mu"].mean().idxmin()
        rows = rows_of_platform.assign(allocation=_name_allocations(rows_of_platform))[
            rows_of_platform["model"] == best
        ]
        counts = rows.groupby("allocation").size()
        allocations = counts.index[counts >= MIN_POINTS_FOR_DRIFT]
        parameters = next(
            (fitted for fitted in sets if (fitted.model, fitted.platform) == (best, platform)), None
        )
        if len(allocations) < 2 or parameters is None:
            continue
        rows = rows.iloc[:: max(-(-len(rows) // MAX_DRIFT_POINTS), 1)]
        for name in allocations:
            rows_of_allocation = rows[rows["allocation"] == name]
            logs = np.log(rows_of_allocation["measured"] / rows_of_allocation["seconds"]).to_numpy(
                float
            )
            # the model has no factors, or the points do not determine them
            with suppress(UserError):
                factors = estimate_factors(
                    parameters, [points[case] for case in rows_of_allocation["point"]], logs
                )
                yield {
                    "platform": platform,
                    "simulated": bool(rows_of_allocation["simulated"].iloc[0]),
                    "allocation": name,
                    "date": "",
                    "compared_with": BASIS_PREDICTIONS,
                    "model": best,
                    **_make_factor_columns(factors),
                    "points": len(rows_of_allocation),
                    "before": np.nan,
                    "after": np.nan,
                    "checked": 0,
                }


def _name_allocations(rows: pd.DataFrame) -> pd.Series:
    """Return the names of the allocations of a platform, row by row; empty if only one can be
    distinguished."""
    if rows["setting"].nunique() > 1:
        return rows["setting"].replace("", "(none)")
    return pd.Series("", index=rows.index) if rows["simulated"].any() else rows["batch"]


def _make_factor_columns(factors: RecalibrationFactors | RecordedFactors) -> dict[str, float]:
    columns = {}
    for part, factor in (("latency", factors.latency), ("per_byte", factors.per_byte)):
        for end in FACTOR_FIELDS:
            columns[f"{part}_{end}"] = getattr(factor, end) if factor.known else np.nan
    return columns


def differs_from_one(low: float, high: float) -> bool:
    """Return whether a factor differs from 1 significantly and by enough to matter."""
    return low > 1 + NEGLIGIBLE_DIFFERENCE or high < 1 - NEGLIGIBLE_DIFFERENCE
