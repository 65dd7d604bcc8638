"""Recommended predictions of points: `recommend_times` returns those to use where a campaign has
measured errors, beside those of models. `recommend` computes them from the predictions of the
models, and `average_models` where too little was measured for that, both also for the advice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from commodel.advice.evidence import Evidence, find_placement
from commodel.compare.combined_prediction import weigh_equally
from commodel.compare.model_ranking import rank_models
from commodel.compare.recommended import Recommender, assess_recommended
from commodel.models import Array
from commodel.patterns.build import build_schedule, list_parts
from commodel.predictions.interval_basis import IntervalBasis
from commodel.predictions.places import Places
from commodel.predictions.predictions import PredictedTimes, Prediction, apply_corrections, predict
from commodel.predictions.validity import Validity, ValidityKind
from commodel.records import RECOMMENDED, Point


@dataclass(frozen=True, eq=False)
class ModelTimes:
    """Predictions of one model for some points: seconds (NaN: the model has none), the time of a
    shortest message alone (0: unknown), and the texts of the validity."""

    seconds: Array
    message_seconds: Array
    validity: Sequence[str]

    @classmethod
    def of(cls, predictions: Sequence[Prediction]) -> ModelTimes:
        seconds = [row.seconds if row.validity.has_weight else np.nan for row in predictions]
        bounds = [row.message_seconds for row in predictions]
        return cls(np.array(seconds), np.array(bounds), [row.validity_text for row in predictions])


def recommend(
    recommender: Recommender, points: Sequence[Point], of_models: Mapping[str, ModelTimes]
) -> tuple[list[Prediction], Array]:
    """Return the recommended predictions of points at one placement, without a value where models
    with most of the weight have none, and the covariance of the errors of their logarithms."""
    weighted = [of_models[name] for name in recommender.weights]
    stacked = recommender.stack({name: of_models[name].seconds for name in recommender.weights})
    places = Places.of_points(points)
    corrections = recommender.residuals.predict(places)
    bounds = np.array(
        [np.where(times.message_seconds > 0, times.message_seconds, np.inf) for times in weighted]
    )
    bounds = np.nan_to_num(bounds.min(axis=0), posinf=0.0)
    bases = recommender.residuals.find_bases(places)
    heaviest = of_models[max(recommender.weights, key=recommender.weights.__getitem__)]
    times = PredictedTimes.of_corrected(stacked * np.exp(corrections.logs), bounds)
    interval = apply_corrections(times, np.zeros(len(points)), corrections.half_width, bases)
    ends = (column.tolist() for column in (times.seconds, interval.low, interval.high))
    columns = (points, *ends, bases, heaviest.validity)
    predictions = []
    for point, seconds, low, high, basis, validity_text in zip(*columns, strict=True):
        if seconds != seconds:
            validity = Validity(
                ValidityKind.NO_PREDICTION, "the models with most of the weight have none"
            )
            predictions.append(
                Prediction(
                    model=RECOMMENDED,
                    point=point,
                    seconds=np.nan,
                    low=np.nan,
                    high=np.nan,
                    validity=validity,
                )
            )
            continue
        validity = assess_recommended(basis, validity_text)
        predictions.append(
            Prediction(
                model=RECOMMENDED,
                point=point,
                seconds=seconds,
                low=low,
                high=high,
                validity=validity,
                basis=basis,
            )
        )
    return predictions, corrections.covariance


class ModelInterval(Protocol):
    """The interval of one model's prediction: its prediction interval, or that of its parameters
    alone."""

    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def parameter_low(self) -> float: ...
    @property
    def parameter_high(self) -> float: ...
    @property
    def basis(self) -> IntervalBasis: ...


def average_models(
    weights: Sequence[float], seconds: Sequence[float], intervals: Sequence[ModelInterval]
) -> tuple[float, float, float, IntervalBasis]:
    """Return the weighted geometric mean of the predictions of several models, of the ends of their
    intervals, and the basis of these. If a model with a weight has no prediction interval, the ends
    are those of the parameter intervals."""
    shares = np.array(weights) / np.sum(weights)
    counting = [interval for interval, share in zip(intervals, shares, strict=True) if share > 0]
    without_residuals = [interval for interval in counting if not interval.basis.of_residuals]
    basis = (
        without_residuals[-1].basis if without_residuals else intervals[int(shares.argmax())].basis
    )
    if without_residuals:
        low = [interval.parameter_low for interval in intervals]
        high = [interval.parameter_high for interval in intervals]
    else:
        low = [interval.low for interval in intervals]
        high = [interval.high for interval in intervals]
    return _average(shares, seconds), _average(shares, low), _average(shares, high), basis


def _average(shares: Array, values: Sequence[float]) -> float:
    """Return the weighted geometric mean. A single value is returned unchanged, without
    rounding."""
    counting = shares > 0
    if counting.sum() == 1:
        return float(np.array(values)[counting][0])
    return float(np.exp(np.dot(shares[counting], np.log(np.array(values)[counting]))))


def recommend_times(
    evidence: Evidence, points: Sequence[Point], models: Collection[str] | None = None
) -> list[Prediction]:
    """Return for each point the recommended prediction, then those of the models; None: of the one
    with the lowest mean μ, or of all if nothing was measured. Where too little was measured, the
    recommended prediction is the weighted mean of the models, as in the advice."""
    sets = evidence.by_model()
    recommended: dict[int, Prediction] = {}
    by_model = {
        name: predict(parameters, points, strict=False) for name, parameters in sets.items()
    }
    for placement in dict.fromkeys(map(find_placement, points)):
        numbers = [
            number for number, point in enumerate(points) if find_placement(point) == placement
        ]
        recommended |= dict(
            zip(numbers, _recommend(evidence, placement, numbers, by_model), strict=True)
        )
    for number, other in enumerate(_find_equal_points(evidence, points)):
        recommended[number] = replace(recommended[other], point=points[number])
    if models is None:
        ranked = rank_models(evidence.predicted_points())["model"]
        models = [name for name in ranked if name in sets][:1] or list(sets)
    predictions = []
    for number in range(len(points)):
        predictions.append(recommended[number])
        predictions += [by_model[name][number] for name in models]
    return predictions


def _find_equal_points(evidence: Evidence, points: Sequence[Point]) -> list[int]:
    """Return for each point the number of the point whose recommended prediction it gets: the same
    messages take the same time under every name."""
    chosen = list(range(len(points)))
    workloads = defaultdict(list)
    for number, point in enumerate(points):
        if len(list_parts(point)) == 1:
            workloads[point.operation, point.ranks, point.bytes, point.layout, point.waves].append(
                number
            )
    for numbers in workloads.values():
        same_workload = [points[number] for number in numbers]
        if len(numbers) > 1:
            patterns = [build_schedule(point) for point in same_workload]
            equal = evidence.choose_among_equal(
                same_workload, patterns, evidence.find_measured(same_workload)
            )
            for number, other in zip(numbers, equal, strict=True):
                chosen[number] = numbers[other]
    return chosen


def _recommend(
    evidence: Evidence,
    placement: str,
    numbers: Sequence[int],
    by_model: dict[str, list[Prediction]],
) -> list[Prediction]:
    """Return the recommended predictions of the points of one placement."""
    recommender = evidence.find_recommender(list(by_model), placement)
    if recommender is None:
        return _average_equally(numbers, by_model)
    points = [next(iter(by_model.values()))[number].point for number in numbers]
    of_models = {}
    for name in recommender.weights:
        of_models[name] = ModelTimes.of([by_model[name][number] for number in numbers])
    return recommend(recommender, points, of_models)[0]


def _average_equally(
    numbers: Sequence[int], by_model: dict[str, list[Prediction]]
) -> list[Prediction]:
    """Return the means of the models' predictions of the points of one placement, where too little
    was measured for a recommender. A model without a prediction of a point does not count there."""

    def has_value(row: Prediction) -> bool:
        return row.validity.has_weight and row.seconds > 0

    def is_unprobed(row: Prediction) -> bool:
        return row.validity.kind is ValidityKind.NOT_PROBED

    predicted = {}
    for name, rows in by_model.items():
        predicted[name] = [number for number in numbers if has_value(rows[number])]
    complete = [name for name in by_model if len(predicted[name]) == len(numbers)]
    counting = complete or [name for name in by_model if predicted[name]]
    unprobed = []
    for name in counting:
        if any(is_unprobed(by_model[name][number]) for number in numbers):
            unprobed.append(name)
    predictions = []
    for number in numbers:
        point = next(iter(by_model.values()))[number].point
        rows = [by_model[name][number] for name in counting if number in predicted[name]]
        if not rows:
            validity = Validity(ValidityKind.NO_PREDICTION, "no model has one")
            predictions.append(
                Prediction(
                    model=RECOMMENDED,
                    point=point,
                    seconds=np.nan,
                    low=np.nan,
                    high=np.nan,
                    validity=validity,
                )
            )
            continue
        weights = list(weigh_equally([row.model for row in rows], unprobed).values())
        seconds, low, high, basis = average_models(weights, [row.seconds for row in rows], rows)
        heaviest = rows[int(np.argmax(weights))]
        predictions.append(
            Prediction(
                model=RECOMMENDED,
                point=point,
                seconds=seconds,
                low=low,
                high=high,
                validity=heaviest.validity,
                basis=basis,
            )
        )
    return predictions
