"""Recommended predictions of points: `recommend_times` returns those to use where a campaign has measured errors,
beside those of models. `recommend` computes them from the predictions of the models, also for the advice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from commodel.advice.evidence import Evidence, find_placement
from commodel.compare.model_ranking import rank_models
from commodel.compare.recommended import Places, Recommender, assess_recommended
from commodel.errors import UserError
from commodel.models import Array
from commodel.patterns.build import build_schedule, list_parts
from commodel.predictions.prediction_intervals import PointSeries
from commodel.predictions.predictions import Prediction, predict
from commodel.predictions.validity import Validity, ValidityKind
from commodel.records import RECOMMENDED, Point


@dataclass(frozen=True, eq=False)
class ModelTimes:
    """Predictions of one model for some points: seconds times the single-message ratio (NaN: the model has none), the
    time of a shortest message alone (0: unknown), and the texts of the validity."""

    scaled: Array
    message_seconds: Array
    validity: Sequence[str]

    @classmethod
    def of(cls, predictions: Sequence[Prediction]) -> ModelTimes:
        scaled = [row.seconds * row.single_message_ratio if row.validity.has_weight else np.nan for row in predictions]
        bounds = [row.message_seconds for row in predictions]
        return cls(np.array(scaled), np.array(bounds), [row.validity_text for row in predictions])


def recommend(
    recommender: Recommender, points: Sequence[Point], of_models: Mapping[str, ModelTimes]
) -> tuple[list[Prediction], Array]:
    """Return the recommended predictions of points at one placement, without a value where models with most of the
    weight have none, and the covariance of the errors of their logarithms."""
    weighted = [of_models[name] for name in recommender.weights]
    stacked = recommender.stack({name: of_models[name].scaled for name in recommender.weights})
    corrections = recommender.correct(Places.of_points(points))
    bounds = np.array([np.where(times.message_seconds > 0, times.message_seconds, np.inf) for times in weighted])
    bounds = np.nan_to_num(bounds.min(axis=0), posinf=0.0)
    bases = recommender.find_bases([PointSeries.of(point) for point in points])
    heaviest = of_models[max(recommender.weights, key=recommender.weights.__getitem__)]
    times, factors = stacked * np.exp(corrections.logs), np.exp(corrections.half_width)
    columns = (points, times.tolist(), factors.tolist(), bounds.tolist(), bases, heaviest.validity)
    predictions = []
    for point, seconds, factor, bound, basis, validity_text in zip(*columns, strict=True):
        if seconds != seconds:
            validity = Validity(ValidityKind.NO_PREDICTION, "the models with most of the weight have none")
            predictions.append(Prediction(RECOMMENDED, point, np.nan, np.nan, np.nan, validity))
            continue
        low, high = np.nan, np.nan
        if basis.of_residuals:
            low, high = max(seconds / factor, min(bound, seconds)), seconds * factor
        validity = assess_recommended(basis, validity_text)
        predictions.append(Prediction(RECOMMENDED, point, seconds, low, high, validity, basis))
    return predictions, corrections.covariance


def recommend_times(
    evidence: Evidence, points: Sequence[Point], models: Collection[str] | None = None
) -> list[Prediction]:
    """Return for each point the recommended prediction, then those of the models; None: of the one with the lowest mean
    μ. Where too little was measured, the recommended prediction has no value."""
    sets = evidence.by_family()
    recommended: dict[int, Prediction] = {}
    by_family = {name: predict(parameters, points, strict=False) for name, parameters in sets.items()}
    for placement in dict.fromkeys(map(find_placement, points)):
        numbers = [number for number, point in enumerate(points) if find_placement(point) == placement]
        recommended |= dict(zip(numbers, _recommend(evidence, placement, numbers, by_family), strict=True))
    for number, other in enumerate(_find_equal_points(evidence, points)):
        recommended[number] = replace(recommended[other], point=points[number])
    if not any(row.seconds == row.seconds for row in recommended.values()):
        ranks = ", ".join(map(str, sorted({point.ranks for point in points})))
        reason = recommended[0].validity.reason
        raise UserError(f"found {ranks}, for which {reason} to recommend a prediction; give --params FILE", key="ranks")
    if models is None:
        ranked = rank_models(evidence.predicted_points())["family"]
        models = [name for name in ranked if name in sets][:1]
    return [
        prediction
        for number in range(len(points))
        for prediction in (recommended[number], *(by_family[name][number] for name in models))
    ]


def _find_equal_points(evidence: Evidence, points: Sequence[Point]) -> list[int]:
    """Return for each point the number of the point whose recommended prediction it gets: the same messages take the
    same time under every name."""
    chosen, workloads = list(range(len(points))), defaultdict(list)
    for number, point in enumerate(points):
        if len(list_parts(point)) == 1:
            workloads[point.operation, point.ranks, point.bytes, point.layout, point.waves].append(number)
    for numbers in workloads.values():
        same_workload = [points[number] for number in numbers]
        if len(numbers) > 1:
            patterns = [build_schedule(point) for point in same_workload]
            equal = evidence.choose_among_equal(same_workload, patterns, evidence.find_measured(same_workload))
            for number, other in zip(numbers, equal, strict=True):
                chosen[number] = numbers[other]
    return chosen


def _recommend(
    evidence: Evidence, placement: str, numbers: Sequence[int], by_family: dict[str, list[Prediction]]
) -> list[Prediction]:
    """Return the recommended predictions of the points of one placement."""
    recommender = evidence.find_recommender(list(by_family), placement)
    if recommender is None:
        validity = Validity(ValidityKind.NO_PREDICTION, f"too few workloads were measured {placement}")
        points = [next(iter(by_family.values()))[number].point for number in numbers]
        return [Prediction(RECOMMENDED, point, np.nan, np.nan, np.nan, validity) for point in points]
    of_placement = {name: [by_family[name][number] for number in numbers] for name in recommender.weights}
    points = [row.point for row in next(iter(of_placement.values()))]
    return recommend(recommender, points, {name: ModelTimes.of(rows) for name, rows in of_placement.items()})[0]
