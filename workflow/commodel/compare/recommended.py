"""The recommended prediction: a stack of models, corrected by the residuals of points that were
measured nearby.

`Recommender.fit` takes the held-out points of one platform and placement.

- Stack: the weighted geometric mean of the models' predictions. Weights ≥ 0 sum up to 1 and are
  least squares (stacked regression, Breiman 1996): of the errors of points left out, to predict,
  and of their differences within a workload, to rank. Left out are, in turn: a workload, an
  operation, an algorithm, a size, a place and a setting.
- The residual model (`predictions/residual_model.py`) corrects the stack, and has the prediction
  interval.

`recommend_points` returns the recommended prediction of every point of a comparison: that of a
measured one from fits without the point's workload. `add_recommended` puts these rows before those
of the models, `split_recommended` is the reverse."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from commodel.compare.comparison import add_choices, add_errors, is_library_default
from commodel.compare.comparison_intervals import collect_residuals
from commodel.compare.model_ranking import MIN_SHARE_OF_POINTS
from commodel.files.tables import COMPARISON, add_default_columns
from commodel.models import Array
from commodel.parallel import map_in_processes
from commodel.parameters import ParameterSet
from commodel.predictions.interval_basis import IntervalBasis
from commodel.predictions.places import Places, name_placement, number_labels
from commodel.predictions.predictions import PredictedTimes, apply_corrections
from commodel.predictions.residual_model import MAX_FITTED_POINTS, ResidualModel, Scales
from commodel.predictions.stored_residuals import load_residuals
from commodel.predictions.validity import VALID, Validity, ValidityKind, have_weight
from commodel.records import RECOMMENDED

# share of the weights; models with this share or less give no combined prediction
MIN_TOTAL_WEIGHT = 0.5
# measured workloads of a set whose residuals count, and of a comparison whose points are predicted
# one workload after the other from all others
MIN_WORKLOADS = 3
# points; with fewer, the bias of an operation is that of all operations
MIN_POINTS_OF_OPERATION_BIAS = 6
FOLDS = 10  # parts of the workloads, each left out once by `recommend_points`
# of squared differences within a workload: the variance of a difference is that of two errors
RANKING_WEIGHT = 2.0
# weight of the squares of uncorrected residuals, since a bias may differ elsewhere
BIAS_SHARE = 0.1
RIDGE = 1e-4  # added to mean squared errors: equal models share their weight
# standard errors by which the stack has to lower the squared errors of workloads
MIN_GAIN_ERRORS = 1.5
# ratio of predicted times, between a model and the one with the largest weight
MAX_DISAGREEMENT = 4.0
# Columns of a comparison that decide about the recommended prediction. All others would be copied
# with every fold.
PLACE_COLUMNS = [
    "point",
    "workload",
    "operation",
    "alternative",
    "layout",
    "ranks",
    "leaves",
    "bytes",
    "nodes",
]
PLACE_COLUMNS += [
    "levels_crossed",
    "waves",
    "batch",
    "setting",
    "simulated",
    "measured",
    "measured_low",
]
PLACE_COLUMNS += ["measured_high", "held_out"]
MODEL_COLUMNS = ["model", "seconds", "validity"]


@dataclass(frozen=True, eq=False)
class Recommender:
    """Weights of the models, and the residuals of their stack at measured points."""

    weights: Mapping[str, float]
    residuals: ResidualModel

    @classmethod
    def fit(cls, rows: pd.DataFrame, models: Collection[str] | None = None) -> Recommender | None:
        """Return the recommender of some models, or of all; None if too little was measured. `rows`
        are held-out rows of a comparison on one platform and placement, of single waves."""
        rows = _select_usable(rows)
        rows = rows if models is None else rows[rows["model"].isin(models)]
        return cls.fit_usable(PredictedPoints.of_rows(rows))

    @classmethod
    def fit_usable(
        cls, points: PredictedPoints, scales: Mapping[str, Scales] | None = None
    ) -> Recommender | None:
        """Return the recommender from predictions that all have a residual and a weight. With
        `scales`, its residual model has these."""
        if not len(points.rows):
            return None
        points = points.drop_rare_models()
        weights = _fit_weights(points.only(points.places.select_evenly(MAX_FITTED_POINTS)))
        residuals = _combine_logs(points.residuals, weights)
        has_stack = np.isfinite(residuals)
        measured = collect_residuals(points.rows, residuals, points.places).only(has_stack)
        if not len(measured):
            return None
        weight_of_model = {
            name: float(weight)
            for name, weight in zip(points.models, weights, strict=True)
            if weight > 0
        }
        model = ResidualModel.fit(measured, scales)
        return cls(weight_of_model, model) if model else None

    @classmethod
    def of_sets(cls, sets: Iterable[ParameterSet], placement: str) -> Recommender | None:
        """Return the recommender of parameter sets that store their residuals: the one with the
        smallest error at left-out workloads, corrected; None if none was measured at this
        placement."""
        candidates: list[tuple[float, str, ResidualModel]] = []
        for parameters in sets:
            if parameters.residuals is not None:
                model = load_residuals(parameters.residuals)
                if model.measures(placement, MIN_WORKLOADS):
                    candidates.append((model.error, parameters.model, model))
        if not candidates:
            return None
        _, family, model = min(candidates, key=lambda candidate: candidate[:2])
        return cls({family: 1.0}, model)

    def stack(self, predictions: Mapping[str, Array]) -> Array:
        """Return the weighted geometric mean of predictions. Where a model has none (NaN), the
        others share its weight; NaN where models with most of the weight have none."""
        logs = np.stack([np.log(predictions[name]) for name in self.weights], axis=-1)
        return np.exp(_combine_logs(logs, np.array(list(self.weights.values()))))


@dataclass(frozen=True, eq=False)
class PredictedPoints:
    """Points with the predictions of all models, as matrices of points × models."""

    rows: pd.DataFrame  # one a point, which is its index; columns: PLACE_COLUMNS
    places: Places
    models: list[str]
    seconds: Array  # NaN without a prediction
    validity: np.ndarray  # texts

    @classmethod
    def of_rows(cls, rows: pd.DataFrame) -> PredictedPoints:
        """Return the points of the rows of a comparison, in their order. If a model predicts a
        point twice, its first prediction counts."""
        points = rows[PLACE_COLUMNS].drop_duplicates("point").set_index("point", drop=False)
        predicted = rows["seconds"].notna().to_numpy(bool)
        point = points.index.get_indexer(rows["point"])[predicted][::-1]
        names = rows["model"].to_numpy(object)[predicted][::-1]
        model, models = pd.factorize(names, sort=True)
        seconds = np.full((len(points), len(models)), np.nan)
        validity = np.full(seconds.shape, "", dtype=object)
        seconds[point, model] = rows["seconds"].to_numpy(float)[predicted][::-1]
        validity[point, model] = rows["validity"].to_numpy(object)[predicted][::-1]
        return cls(points, Places.of_rows(points), list(models), seconds, validity)

    def only(self, flags: np.ndarray) -> PredictedPoints:
        """Return some of the points."""
        return PredictedPoints(
            rows=self.rows[flags],
            places=self.places.only(flags),
            models=self.models,
            seconds=self.seconds[flags],
            validity=self.validity[flags],
        )

    def only_models(self, models: Collection[str]) -> PredictedPoints:
        """Return the points with the predictions of some models, in this order; NaN for one that
        predicts none."""
        columns = [self.models.index(name) if name in self.models else -1 for name in models]
        none = np.full((len(self.rows), 1), np.nan)
        return replace(
            self,
            models=list(models),
            seconds=np.hstack([self.seconds, none])[:, columns],
            validity=np.hstack([self.validity, none.astype(str).astype(object)])[:, columns],
        )

    def drop_rare_models(self) -> PredictedPoints:
        """Return the points without the models that predict few of them."""
        shares = np.isfinite(self.seconds).mean(axis=0)
        enough = shares >= MIN_SHARE_OF_POINTS * shares.max(initial=0.0)
        return self.only_models(
            [name for name, is_used in zip(self.models, enough, strict=True) if is_used]
        )

    @property
    def residuals(self) -> Array:
        """The logarithms of measured over predicted times."""
        logs = np.log(self.rows["measured"].to_numpy(float)[:, None] / self.seconds)
        # Sums over models have the same last digit for any number of points.
        return np.ascontiguousarray(logs)


def _select_usable(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a residual and a weight."""
    rows = add_default_columns(rows, COMPARISON)
    finite = (
        (rows["seconds"] > 0) & (rows["measured"] > 0) & np.isfinite(rows["seconds"].astype(float))
    )
    rows = rows[
        finite & rows["held_out"].astype(bool) & rows["model"].ne("") & ~is_library_default(rows)
    ]
    return rows[have_weight(rows["validity"])]


def _select_unmeasured(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a prediction that has a weight, at points without a measured time."""
    rows = rows[
        rows["measured"].isna() & (rows["seconds"] > 0) & np.isfinite(rows["seconds"].astype(float))
    ]
    return rows[have_weight(rows["validity"])]


def _list_points(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the first row of each point, with the point as index."""
    return rows.drop_duplicates("point").set_index("point", drop=False)


def _fit_weights(points: PredictedPoints) -> Array:
    """Return the weights, fitted to the points that all models predict. If the stack is not clearly
    better than the best model, the best model has weight 1. A point that was measured in several
    settings counts once; its alternatives are compared in the same setting."""
    from scipy.optimize import nnls  # here, because it is slow to load

    complete: np.ndarray = np.all(np.isfinite(points.seconds), axis=1)
    if not complete.any():
        return np.full(len(points.models), 1 / len(points.models))
    points = points.only(complete)
    values = points.residuals
    places = points.places
    operation = places.operation
    workloads = number_labels(places.workload)
    labels = list(places.labels().values())
    labels = [label for label in labels if len(np.unique(label)) > 1] or labels[:1]
    groups = number_labels(points.rows["workload"].to_numpy(str))
    errors = [np.sqrt(BIAS_SHARE) * values]
    for label in labels:
        left_out = _subtract_bias(values, label, operation) / np.sqrt(len(labels))
        sums = np.zeros((groups.max() + 1, values.shape[1]))
        np.add.at(sums, groups, left_out)
        within = left_out - (sums / np.bincount(groups)[:, None])[groups]
        errors += [left_out, np.sqrt(RANKING_WEIGHT) * within]
    share = _share_between_settings(places, points.rows["layout"])
    all_errors = (
        np.concatenate(errors) * np.sqrt(np.resize(share, len(values) * len(errors)))[:, None]
    )
    squares = all_errors.T @ all_errors / share.sum() + RIDGE * np.eye(values.shape[1])
    large = 1e3 * np.sqrt(np.trace(squares))
    system = np.vstack([np.linalg.cholesky(squares).T, np.full(len(squares), large)])
    weights = nnls(system, np.array([*np.zeros(len(squares)), large]))[0].round(9)
    weights /= weights.sum()
    best = np.arange(len(squares)) == squares.diagonal().round(9).argmin()
    gains = (all_errors @ best) ** 2 - (all_errors @ weights) ** 2
    return (
        weights if _exceeds_scatter(gains, np.resize(workloads, len(gains))) else best.astype(float)
    )


def _share_between_settings(places: Places, layouts: Iterable[str]) -> Array:
    """Return the weight of each point: 1 over the number of settings in which it was measured."""
    names = zip(places.workload.tolist(), places.algorithm.tolist(), layouts, strict=True)
    number = number_labels(np.array(["\0".join(parts) for parts in names]))
    return 1 / np.bincount(number)[number]


def _exceeds_scatter(gains: Array, groups: np.ndarray) -> bool:
    """Return whether the mean gain of workloads is above 0 by more than MIN_GAIN_ERRORS standard
    errors."""
    sums = np.bincount(groups, gains)
    return len(sums) > 1 and bool(
        sums.mean() > MIN_GAIN_ERRORS * sums.std(ddof=1) / np.sqrt(len(sums))
    )


def _combine_logs(logs: Array, weights: Array) -> Array:
    """Return the weighted mean of each row of logarithms, by model. Models are limited to
    MAX_DISAGREEMENT around the heaviest one: beyond the fitted range, a regression may be wrong by
    orders of magnitude."""
    is_predicted = np.isfinite(logs)
    column = [weights.argmax()]
    heaviest = np.where(is_predicted[:, column], logs[:, column], 0.0)
    limit = np.where(is_predicted[:, column], np.log(MAX_DISAGREEMENT), np.inf)
    limited = np.clip(np.where(is_predicted, logs, 0.0), heaviest - limit, heaviest + limit)
    share = np.where(is_predicted, weights, 0.0)
    total = share.sum(axis=1)
    mean = (limited * share).sum(axis=1) / np.maximum(total, MIN_TOTAL_WEIGHT)
    return np.where(total > MIN_TOTAL_WEIGHT, mean, np.nan)


def _subtract_bias(values: Array, label: np.ndarray, operation: np.ndarray) -> Array:
    """Return residuals minus the median of the residuals with other labels, of the same operation
    if it has enough."""
    errors = values.copy()
    for value in np.unique(label):
        left_out = label == value
        for name in np.unique(operation[left_out]):
            of_same_operation = ~left_out & (operation == name)
            is_reference = (
                of_same_operation
                if of_same_operation.sum() >= MIN_POINTS_OF_OPERATION_BIAS
                else ~left_out
            )
            if is_reference.any():
                errors[left_out & (operation == name)] -= np.median(values[is_reference], axis=0)
    return errors


def recommend_points(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a comparison for the recommended prediction of each point that models with
    most of the weight predict: with its interval, error and choices. Fits leave out the point's
    workload, so that its own residual never helps. Only the scales of the residual model are those
    of all points. Points that were not measured are predicted from all that were."""
    rows = add_default_columns(comparison, COMPARISON)
    rows = rows[rows["waves"] == 1]
    usable, unmeasured = _select_usable(rows), _select_unmeasured(rows)
    parts = []
    for _, of_placement in usable.groupby(["platform", _find_placements(usable)], sort=False):
        points = PredictedPoints.of_rows(of_placement)
        if len(np.unique(points.places.workload)) < MIN_WORKLOADS:
            continue
        recommender = Recommender.fit_usable(points)
        if recommender is None:
            continue
        parts.append(_evaluate_folds(points, of_placement, recommender.residuals.scales))
        wanted = unmeasured[_find_placements(unmeasured).eq(_find_placements(of_placement).iloc[0])]
        wanted = wanted[wanted["platform"] == of_placement["platform"].iloc[0]]
        if len(wanted):
            parts.append(recommend_rows(recommender, wanted))
    parts = [part.dropna(subset="seconds") for part in parts]
    if not any(map(len, parts)):
        return rows.iloc[:0]
    defaults = rows[is_library_default(rows)]
    evaluated = add_choices(add_errors(pd.concat([*parts, defaults], ignore_index=True)))
    return evaluated[~is_library_default(evaluated)].reset_index(drop=True)


def evaluate_recommended(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return the recommended prediction of each held-out point that was measured."""
    rows = recommend_points(comparison)
    return rows[rows["measured"].notna()]


def add_recommended(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return the comparison with the rows of the recommended prediction before those of the
    models."""
    recommended = recommend_points(comparison)
    columns = list(comparison.columns)
    return (
        pd.concat([recommended[columns], comparison], ignore_index=True)
        if len(recommended)
        else comparison
    )


def split_recommended(comparison: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows of the models, and those of the recommended prediction."""
    is_recommended = comparison["model"].eq(RECOMMENDED)
    return comparison[~is_recommended], comparison[is_recommended]


SUMMARY = ("points", "mu_mean", "mu_max", "regret_mean", "regret_max", "coverage", "width")


def summarize_recommended(recommended: pd.DataFrame, comparison: pd.DataFrame) -> pd.DataFrame:
    """Return two rows a platform: the recommended prediction, and the model with the lowest mean μ
    at the same points, if a model predicts most of them. Columns: errors, regret of choices, the
    share of medians inside the interval, and its median width (high over low)."""
    rows = []
    for platform, rows_of_platform in recommended.groupby("platform", sort=False):
        rows.append(
            {"platform": platform, "prediction": RECOMMENDED} | summarize_points(rows_of_platform)
        )
        usable = _select_usable(comparison[comparison["platform"] == platform])
        models = usable[usable["point"].isin(rows_of_platform["point"])].groupby("model")
        complete = [
            (name, rows_of_model)
            for name, rows_of_model in models
            if rows_of_model["point"].nunique() >= MIN_SHARE_OF_POINTS * len(rows_of_platform)
        ]
        if complete:
            name, rows_of_model = min(
                complete,
                key=lambda entry: (round(entry[1]["mu"].mean(), 9), len(entry[0]), entry[0]),
            )
            rows.append(
                {"platform": platform, "prediction": name} | summarize_points(rows_of_model)
            )
    return pd.DataFrame(rows, columns=["platform", "prediction", *SUMMARY])


def summarize_points(rows: pd.DataFrame) -> dict[str, float]:
    regrets = rows.loc[rows["chosen"], "regret"]
    width = (rows["high"] / rows["low"]).median()
    errors = (rows["mu"].mean(), rows["mu"].max(), regrets.mean(), regrets.max())
    return dict(zip(SUMMARY, (len(rows), *errors, rows["covered"].mean(), width), strict=True))


def _find_placements(rows: pd.DataFrame) -> pd.Series:
    """Return the placement of each row; empty if the number of nodes is unknown."""
    return rows["nodes"].map(name_placement).where(rows["nodes"].notna(), "")


def _evaluate_folds(
    points: PredictedPoints, rows: pd.DataFrame, scales: Mapping[str, Scales]
) -> pd.DataFrame:
    """Return the rows of all points, each predicted by a fit without its workload, with these
    scales."""
    fold = number_labels(points.places.workload) % FOLDS

    def predict_fold(number: int) -> pd.DataFrame | None:
        recommender = Recommender.fit_usable(points.only(fold != number), scales)
        left_out = points.only(fold == number)
        return None if recommender is None else _predict_points(recommender, left_out)

    folds = map_in_processes(predict_fold, range(fold.max() + 1))
    predicted = [left_out for left_out in folds if left_out is not None]
    return _replace_predictions(rows, pd.concat(predicted)) if predicted else rows.iloc[:0]


def recommend_rows(recommender: Recommender, rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each point with the recommended prediction in place of those of models."""
    rows = add_default_columns(rows, COMPARISON)
    predicted = _predict_points(recommender, PredictedPoints.of_rows(rows))
    return _replace_predictions(rows, predicted)


def _replace_predictions(rows: pd.DataFrame, recommended: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each point of `recommended`, with all columns."""
    points = _list_points(rows)
    of_models = dict.fromkeys(("single_message_ratio", "parameter_low", "parameter_high"), np.nan)
    return points.loc[recommended.index].assign(
        **of_models, **recommended, model=RECOMMENDED, held_out=True
    )


def _predict_points(recommender: Recommender, points: PredictedPoints) -> pd.DataFrame:
    """Return the recommended prediction of each point (index), with its interval and validity."""
    weights = recommender.weights
    points = points.only_models(weights)
    stacked = recommender.stack(dict(zip(points.models, points.seconds.T, strict=True)))
    places = points.places
    logs, half_width = recommender.residuals.predict_singly(places)
    # A comparison has no times of shortest messages.
    times = PredictedTimes.of_corrected(stacked * np.exp(logs), np.zeros(len(places)))
    bases = recommender.residuals.find_bases(places)
    interval = apply_corrections(times, np.zeros(len(places)), half_width, bases)
    has_interval = np.array([basis.of_residuals for basis in bases], dtype=bool)
    counts = recommender.residuals.count_deviations(places)
    is_predicted = np.isfinite(points.seconds)
    share = np.where(is_predicted, list(weights.values()), -1.0)
    heaviest = points.validity[np.arange(len(share)), share.argmax(axis=1)]
    columns = {
        "seconds": times.seconds,
        "low": interval.low,
        "high": interval.high,
        "basis": [basis.text for basis in bases],
        "weights": _describe_weights(is_predicted, weights),
        "stack": stacked,
        "correction": np.exp(logs),
        "interval_factor": np.where(has_interval, np.exp(half_width), np.nan),
        "deviation": np.where(has_interval, half_width / counts, np.nan),
        "deviations": np.where(has_interval, counts, np.nan),
        "validity": [
            assess_recommended(basis, v).text for basis, v in zip(bases, heaviest, strict=True)
        ],
    }
    return pd.DataFrame(columns, points.rows.index)


def _describe_weights(is_predicted: np.ndarray, weights: Mapping[str, float]) -> list[str]:
    """Return the weights of the models that predict each point, the largest first: `0.7 plogp + 0.3
    loggp`."""
    names = sorted(weights, key=lambda name: -weights[name])
    columns = [list(weights).index(name) for name in names]
    texts = []
    for flags in is_predicted[:, columns]:
        counting = [name for name, flag in zip(names, flags, strict=True) if flag]
        total = sum(weights[name] for name in counting)
        texts.append(" + ".join(f"{weights[name] / total:.6g} {name}" for name in counting))
    return texts


def assess_recommended(basis: IntervalBasis, heaviest: str) -> Validity:
    """Return the validity of a recommended prediction: extrapolated beyond the measured sizes,
    ranks or segments; valid where its errors were measured; else that of the model with the largest weight."""
    if basis.is_extrapolated:
        return Validity(
            ValidityKind.EXTRAPOLATED,
            f"{' and '.join(basis.extents)} beyond the other measured points",
        )
    return VALID if basis.of_residuals else Validity.parse(heaviest)
