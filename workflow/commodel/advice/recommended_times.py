"""Recommended predictions of points: `recommend_times` returns those to use where a campaign has measured errors,
beside those of its best model."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from commodel.advice.evidence import Evidence, find_placement
from commodel.compare.model_ranking import rank_models
from commodel.compare.recommended import Places, assess_recommended
from commodel.errors import UserError
from commodel.patterns.build import build_schedule, list_parts
from commodel.predictions.prediction_intervals import PointSeries
from commodel.predictions.predictions import Prediction, predict
from commodel.predictions.validity import Validity, ValidityKind
from commodel.records import RECOMMENDED, Point


def recommend_times(evidence: Evidence, points: Sequence[Point]) -> list[Prediction]:
    """Return for each point the recommended prediction, then that of the model with the lowest mean μ. Where too little
    was measured, the recommended prediction has no value."""
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
    best = next((name for name in rank_models(evidence.predicted_points())["family"] if name in sets), None)
    rows = [[recommended[number], *([by_family[best][number]] if best else [])] for number in range(len(points))]
    return [prediction for row in rows for prediction in row]


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
    predictions_of_placement = {name: [by_family[name][number] for number in numbers] for name in recommender.weights}
    times = {
        name: np.array([row.seconds * row.single_message_ratio if row.validity.has_weight else np.nan for row in rows])
        for name, rows in predictions_of_placement.items()
    }
    points = [row.point for row in next(iter(predictions_of_placement.values()))]
    corrections = recommender.correct(Places.of_points(points))
    stacked, factors = recommender.stack(times) * np.exp(corrections.logs), np.exp(corrections.half_width)
    bases = recommender.find_bases([PointSeries.of(point) for point in points])
    heaviest = predictions_of_placement[max(recommender.weights, key=recommender.weights.__getitem__)]
    predictions = []
    rows = zip(points, stacked.tolist(), factors.tolist(), bases, heaviest, strict=True)
    for point, seconds, factor, basis, model in rows:
        low, high = (seconds / factor, seconds * factor) if basis.of_residuals else (np.nan, np.nan)
        validity = assess_recommended(basis, model.validity_text)
        predictions.append(Prediction(RECOMMENDED, point, seconds, low, high, validity, basis, corrected=seconds))
    return predictions
