"""The times of the candidates for a workload: recommended predictions where enough was measured,
else combined predictions of the models."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from commodel.advice.alternatives import AlternativePredictions, Assessment
from commodel.advice.candidates import Candidates
from commodel.advice.evidence import Evidence, select_placement
from commodel.advice.recommended_times import ModelTimes, average_models, recommend
from commodel.compare.combined_prediction import (
    CombinedPrediction,
    arrange_weights,
    combine_predictions,
    find_pareto_front,
    weigh_equally,
)
from commodel.compare.recommended import Recommender
from commodel.predictions.interval_basis import PARAMETERS_ONLY


@dataclass(frozen=True)
class ModelWeights:
    """The weights of the models at each placement of candidates, and a sentence for each model with
    weight 0: why."""

    by_placement: dict[str, dict[str, float]]
    zero_reasons: tuple[str, ...]

    @classmethod
    def of(cls, candidates: Candidates, recommended: RecommendedAlternatives) -> ModelWeights:
        """Return the weights of the recommended predictions, or equal ones where there are none."""
        predictions = candidates.predictions
        placements = candidates.placements
        weights = {}
        reasons = [f"{name} has weight 0: {why}" for name, why in predictions.missing.items()]
        for placement in dict.fromkeys(placements):
            unprobed = predictions.unprobed(
                [number for number, other in enumerate(placements) if other == placement]
            )
            of_placement = _find_weights(
                candidates.models, recommended.recommenders.get(placement), unprobed
            )
            for name, why in unprobed.items():
                if not of_placement[name]:
                    reasons.append(f"{name} has weight 0 {placement}: {why}")
            weights[placement] = of_placement
        return cls(weights, tuple(reasons))


@dataclass(frozen=True, eq=False)
class CandidateTimes:
    """The times of the candidates, with their intervals, and what the errors that they share say
    about the best one."""

    seconds: np.ndarray
    low: np.ndarray  # NaN without an interval, as `high`
    high: np.ndarray
    bases: np.ndarray  # of IntervalBasis
    errors: CombinedPrediction
    period: np.ndarray  # between two waves of a stream; NaN: unknown
    # weights of the models from measured streams; None without any
    stream_weights: Mapping[str, float] | None

    @classmethod
    def of(
        cls,
        evidence: Evidence,
        candidates: Candidates,
        recommended: RecommendedAlternatives,
        weights: ModelWeights,
    ) -> CandidateTimes:
        predictions = candidates.predictions
        weights_of_points = arrange_weights(weights.by_placement, candidates.placements)
        weighted = _combine_models(predictions, weights_of_points)
        has_value = recommended.has_value
        seconds = np.where(has_value, recommended.seconds, weighted.seconds)
        low = np.where(has_value, recommended.low, weighted.low)
        high = np.where(has_value, recommended.high, weighted.high)
        has_interval = low < high
        # Draws of the models' parameters are around the times of the candidates.
        draws = {
            name: times * (seconds / weighted.seconds)
            for name, times in predictions.values("seconds").items()
        }
        errors = combine_predictions(
            draws, weights_of_points, recommended.covariance, predictions.values("widening")
        )
        of_streams = select_placement(
            evidence.predicted_points(streams=True), candidates.placements
        )
        streamed = Recommender.fit(of_streams, candidates.models)
        weights_of_streams = (
            _find_weights(candidates.models, streamed, ()) if streamed else weights_of_points
        )
        return cls(
            seconds=seconds,
            low=np.where(has_interval, low, np.nan),
            high=np.where(has_interval, high, np.nan),
            bases=np.where(has_value, recommended.bases, weighted.bases),
            errors=errors,
            period=predictions.period(weights_of_streams),
            stream_weights=streamed.weights if streamed else None,
        )

    @property
    def is_on_front(self) -> np.ndarray:
        """Which candidates are Pareto-optimal, of those that have a time between waves."""
        is_known = np.isfinite(self.period)
        front = np.zeros(len(self.seconds), dtype=bool)
        front[is_known] = find_pareto_front(self.errors.seconds[is_known], self.period[is_known])
        return front


def _find_weights(
    models: Collection[str], recommender: Recommender | None, unprobed: Collection[str]
) -> dict[str, float]:
    """Return the weights of models: those of the recommended prediction, or equal ones."""
    if recommender is None or not any(recommender.weights.get(name) for name in models):
        return weigh_equally(models, unprobed)
    return {name: recommender.weights.get(name, 0.0) for name in models}


@dataclass(frozen=True, eq=False)
class RecommendedAlternatives:
    """The recommended predictions of alternatives, with the recommender of each placement. Without
    one, or where it predicts nothing, alternatives have NaN. `is_left_out`: others at the placement
    have a value."""

    recommenders: Mapping[str, Recommender]
    seconds: np.ndarray
    low: np.ndarray
    high: np.ndarray
    bases: np.ndarray  # of IntervalBasis
    is_left_out: np.ndarray
    covariance: np.ndarray  # of the logarithms

    @property
    def has_value(self) -> np.ndarray:
        return np.isfinite(self.seconds)

    def only(self, numbers: Sequence[int]) -> RecommendedAlternatives:
        columns = {
            name: getattr(self, name)[numbers]
            for name in ("seconds", "low", "high", "bases", "is_left_out")
        }
        return replace(self, **columns, covariance=self.covariance[np.ix_(numbers, numbers)])


def recommend_candidates(evidence: Evidence, candidates: Candidates) -> RecommendedAlternatives:
    """Return the recommended predictions, which are those of `commodel predict`."""
    points = candidates.points
    of_models_and_points = candidates.predictions.assessments
    placements = np.array(candidates.placements)
    seconds, low, high = np.full((3, len(points)), np.nan)
    bases = np.full(len(points), PARAMETERS_ONLY, dtype=object)
    covariance = np.zeros((len(points), len(points)))
    is_left_out = np.zeros(len(points), dtype=bool)
    recommenders = {}
    for placement in dict.fromkeys(placements.tolist()):
        recommender = evidence.find_recommender(list(evidence.by_model()), placement)
        if recommender is None or not of_models_and_points.keys() >= recommender.weights.keys():
            continue
        numbers = np.flatnonzero(placements == placement).tolist()
        of_models = {}
        for name in recommender.weights:
            assessments = of_models_and_points[name]
            of_models[name] = _list_model_times([assessments[number] for number in numbers])
        predictions, covariance[np.ix_(numbers, numbers)] = recommend(
            recommender, [points[number] for number in numbers], of_models
        )
        for number, prediction in zip(numbers, predictions, strict=True):
            seconds[number] = prediction.seconds
            low[number] = prediction.low
            high[number] = prediction.high
            bases[number] = prediction.basis
        if np.isfinite(seconds[numbers]).any():
            recommenders[placement] = recommender
            is_left_out[numbers] = np.isnan(seconds[numbers])
    return RecommendedAlternatives(
        recommenders=recommenders,
        seconds=seconds,
        low=low,
        high=high,
        bases=bases,
        is_left_out=is_left_out,
        covariance=covariance,
    )


def _list_model_times(assessments: Sequence[Assessment | None]) -> ModelTimes:
    seconds = [float(assessment.seconds[0]) if assessment else np.nan for assessment in assessments]
    bounds = [assessment.message_seconds if assessment else 0.0 for assessment in assessments]
    return ModelTimes(
        np.array(seconds),
        np.array(bounds),
        [assessment.validity.text if assessment else "" for assessment in assessments],
    )


@dataclass(frozen=True, eq=False)
class WeightedPrediction:
    """The weighted geometric mean of the models' own predictions and of the ends of their
    intervals."""

    seconds: np.ndarray
    low: np.ndarray
    high: np.ndarray
    bases: np.ndarray  # of IntervalBasis


def _combine_models(
    predictions: AlternativePredictions, weights: Mapping[str, np.ndarray]
) -> WeightedPrediction:
    """Return the combination of the models."""
    weights_of_points = np.array([weights[name] for name in predictions.models]).T
    seconds, low, high = np.empty((3, len(weights_of_points)))
    bases = np.empty(len(weights_of_points), dtype=object)
    for number, of_models in enumerate(weights_of_points):
        entries = [assessments[number] for assessments in predictions.models.values()]
        estimates = [float(assessment.seconds[0]) for assessment in entries]
        seconds[number], low[number], high[number], bases[number] = average_models(
            of_models, estimates, entries
        )
    return WeightedPrediction(seconds=seconds, low=low, high=high, bases=bases)
