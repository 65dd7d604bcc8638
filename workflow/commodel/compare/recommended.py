"""The recommended prediction: a stack of models, corrected by the residuals of points that were measured nearby.

`Recommender.fit` takes the held-out points of one platform and placement.

- Stack: the weighted geometric mean of the models' predictions, each times its single-message ratio. Weights ≥ 0 sum up
  to 1 and are least squares (stacked regression, Breiman 1996): of the errors of points left out, to predict, and of
  their differences within a workload, to rank.
- Local correction: a Gaussian process over the residuals of the stack. Residuals are alike for an operation, an
  algorithm, and near sizes and numbers of ranks. Its scales have the largest marginal likelihood (Rasmussen and
  Williams 2006, chapter 5). It is applied only if it lowers the errors of points left out.
- Left out are, in turn: a workload, a size, a number of ranks, an algorithm and an operation.
- Prediction interval: the standard deviation of the process at the point, times the factor that covers 95 % of the
  points left out. It is wider where less was measured nearby.

`evaluate_recommended` returns the recommended prediction of every held-out point, from fits without the point's
workload."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import pandas as pd

from commodel.compare.comparison import add_choices, add_errors, is_library_default
from commodel.compare.comparison_intervals import collect_residuals, scale_predictions
from commodel.compare.model_ranking import MIN_SHARE_OF_POINTS
from commodel.files.tables import COMPARISON, add_default_columns
from commodel.models import Array
from commodel.parameters import Errors
from commodel.patterns.operations import find_base_name
from commodel.predictions.prediction_intervals import (
    COVERAGE,
    IntervalBasis,
    PointSeries,
    cover_labels,
    find_residual_interval,
    outline_residual_intervals,
)
from commodel.predictions.residuals import (
    BYTES,
    MIN_OF_AXIS,
    NODES,
    PLACEMENT_NAMES,
    RANKS,
    compute_matern,
    number_labels,
)
from commodel.predictions.validity import VALID, Validity, ValidityKind, have_weight
from commodel.records import RECOMMENDED, Point
from commodel.stats import NORMAL_QUANTILE

MIN_TOTAL_WEIGHT = 0.5  # share of the weights; models with this share or less give no combined prediction
MIN_WORKLOADS = 3  # measured workloads; with fewer, none can be left out
MIN_POINTS_OF_OPERATION_BIAS = 6  # points; with fewer, the bias of an operation is that of all operations
MAX_FITTED_POINTS = 400  # points of a fit; with more, only evenly spread workloads are used
FOLDS = 10  # parts of the workloads, each left out once by `evaluate_recommended`
RANKING_WEIGHT = 2.0  # of squared differences within a workload: the variance of a difference is that of two errors
BIAS_SHARE = 0.1  # weight of the squares of uncorrected residuals, since a bias may differ elsewhere
RIDGE = 1e-4  # added to mean squared errors: equal models share their weight
RANKS_CORRELATION_DOUBLINGS, PER_NODE_CORRELATION_DOUBLINGS = 6.0, 6.0  # doublings over which residuals are correlated
EXTRAPOLATION_DEVIATIONS = {
    "bytes": 0.1,
    "ranks": 0.1,
    "per_node": 0.5,
}  # standard deviation at the first doubling beyond the measured points
MIN_GAIN_ERRORS = (
    1.5  # standard errors by which the stack, and the local correction, have to lower squared errors of workloads
)
RESIDUAL_NOISE = 0.02  # of a residual, in the unit of `Scales`
MIN_DEVIATION = 1e-3  # standard deviation of residuals; a smaller one is rounding
MAX_DISAGREEMENT = 4.0  # ratio of predicted times, between a model and the one with the largest weight
# Columns of a comparison that decide about the recommended prediction. All others would be copied with every fold.
PLACE_COLUMNS = ["point", "workload", "operation", "alternative", "layout", "ranks", "leaves", "bytes", "nodes"]
PLACE_COLUMNS += ["levels_crossed", "waves", "batch", "setting", "simulated", "measured", "held_out"]
MODEL_COLUMNS = ["family", "predicted", "single_message_ratio", "validity"]
OPERATION = "operation"
WORKLOAD, ALGORITHM = "workload", "algorithm"


@dataclass(frozen=True)
class Scales:
    """Standard deviations of the parts of a residual, all logarithms, in units of `unit`."""

    operation: float
    size: float  # of an operation, at similar sizes and ranks
    algorithm: float  # at similar sizes and ranks
    point: float
    correlation_length: float  # doublings of the size over which residuals are correlated
    everywhere: float = 0.1
    unit: float = 1.0


CANDIDATES = tuple(
    Scales(operation, size, algorithm, point, correlation_length)
    for operation in (0.1, 0.3)
    for size in (0.1, 0.3)
    for algorithm in (0.05, 0.15, 0.4, 0.8)
    for point in (0.03, 0.15)
    for correlation_length in (4.0, 8.0, 16.0)
)


@dataclass(frozen=True, eq=False)
class Places:
    """Properties of points that correlate their residuals."""

    operation: np.ndarray
    alternative: np.ndarray
    layout: np.ndarray
    workload: np.ndarray
    ranks: Array
    bytes: Array
    per_node: Array  # ranks of a node; 1 if unknown

    @classmethod
    def of_rows(cls, rows: pd.DataFrame) -> Places:
        ranks = rows["leaves"].where(rows["leaves"] > 0, rows["ranks"])
        names = (rows["operation"].map(find_base_name), rows["alternative"], rows["layout"], rows["workload"])
        per_node = (rows["ranks"] / rows[NODES]).where(rows[NODES] > 0, 1.0)
        amounts = (column.to_numpy(float) for column in (ranks, rows["bytes"], per_node))
        return cls(*(column.to_numpy(str) for column in names), *amounts)

    @classmethod
    def of_points(cls, points: Sequence[Point]) -> Places:
        names = [(find_base_name(point.operation), point.alternative, point.layout, point.workload) for point in points]
        amounts = [(point.leaves or point.ranks, point.bytes, point.ranks / point.nodes) for point in points]
        return cls(*np.array(names, dtype=str).reshape(-1, 4).T, *np.array(amounts, dtype=float).reshape(-1, 3).T)

    def labels(self) -> dict[str, np.ndarray]:
        """Return the labels by which points are left out in turn."""
        names = {WORKLOAD: self.workload, OPERATION: self.operation, ALGORITHM: self._names["alternative"]}
        return names | {BYTES: self.bytes, RANKS: self.ranks}

    @cached_property
    def _names(self) -> dict[str, np.ndarray]:
        stem = np.char.partition(self.alternative, ":")[:, 0]
        names = {"operation": (self.operation,), "stem": (self.operation, stem)}
        names |= {"alternative": (self.operation, self.alternative)}
        names |= {"point": (self.workload, self.operation, self.alternative, self.layout)}
        return {name: _join_labels(parts) for name, parts in names.items()}

    def compare_with(self, other: Places, correlation_length: float) -> Correlations:
        """Return the correlations of the residuals of these points with those of other points."""
        equal_labels = {}
        for name, column in self._names.items():
            labels = number_labels(np.concatenate([column, other._names[name]]))
            equal_labels[name] = (labels[: len(column), None] == labels[len(column) :]).astype(float)
        similarity = np.ones((len(self.ranks), len(other.ranks)))
        for name, doublings in (
            (BYTES, correlation_length),
            (RANKS, RANKS_CORRELATION_DOUBLINGS),
            ("per_node", PER_NODE_CORRELATION_DOUBLINGS),
        ):
            similarity *= compute_matern(self._log2(name)[:, None] - other._log2(name), doublings)
        of_algorithm = similarity * (equal_labels["stem"] + equal_labels["alternative"]) / 2
        return Correlations(
            equal_labels["operation"], equal_labels["operation"] * similarity, of_algorithm, equal_labels["point"]
        )

    def covariance(self, other: Places, scales: Scales) -> Array:
        """Return the prior covariance of the residuals of these and other points."""
        return self.compare_with(other, scales.correlation_length).covariance(scales)

    def only(self, flags: np.ndarray) -> Places:
        """Return some of the points."""
        return Places(*(getattr(self, entry.name)[flags] for entry in fields(self)))

    def extrapolate(self, measured: Places) -> Array:
        """Return the variance that extrapolation beyond the measured points adds to the residual of each point."""
        variances = np.zeros(len(self.workload))
        for name, deviation in EXTRAPOLATION_DEVIATIONS.items():
            log_values, of_measured = self._log2(name), measured._log2(name)
            doublings = np.maximum(log_values - of_measured.max(), of_measured.min() - log_values)
            variances += deviation**2 * np.maximum(doublings, 0.0)
        return variances

    def _log2(self, name: str) -> Array:
        """Return the logarithm to base 2 of ranks, bytes or ranks per node, which count as at least 1."""
        return np.log2(np.maximum(getattr(self, name), 1))


@dataclass(frozen=True, eq=False)
class Correlations:
    """Correlations of the parts of a residual, between some points and others."""

    operation: Array
    size: Array
    algorithm: Array
    point: Array

    def covariance(self, scales: Scales) -> Array:
        parts = (
            getattr(scales, name) ** 2 * getattr(self, name) for name in ("operation", "size", "algorithm", "point")
        )
        return scales.unit**2 * (scales.everywhere**2 + sum(parts))


def _join_labels(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return one label for each point, joined from several."""
    joined = parts[0]
    for part in parts[1:]:
        joined = np.char.add(np.char.add(joined, "\t"), part)
    return joined


@dataclass(frozen=True, eq=False)
class Corrections:
    """The local corrections of some points: logarithms, with the covariance of their errors, and the half width of
    their prediction intervals."""

    logs: Array
    covariance: Array
    half_width: Array


@dataclass(frozen=True, eq=False)
class Recommender:
    """Weights of the models, and the residuals of their stack at measured points."""

    weights: Mapping[str, float]
    places: Places
    residuals: Array
    scales: Scales
    is_local: bool  # whether the local correction is applied
    factors: Mapping[str, float]  # number of standard deviations that covers 95 % of the left-out points, by label
    measured_classes: Mapping[str, Errors]  # measured points of each class, without widths

    @classmethod
    def fit(cls, rows: pd.DataFrame, families: Collection[str] | None = None) -> Recommender | None:
        """Return the recommender of some models, or of all; None if too little was measured. `rows` are held-out rows
        of a comparison on one platform and placement, of single waves."""
        rows = _select_usable(rows)[PLACE_COLUMNS + MODEL_COLUMNS]
        return cls.fit_usable(rows if families is None else rows[rows["family"].isin(families)])

    @classmethod
    def fit_usable(cls, rows: pd.DataFrame) -> Recommender | None:
        """Return the recommender from rows that all have a residual and a weight."""
        if rows["workload"].nunique() < MIN_WORKLOADS:
            return None
        points, logs = _tabulate_residuals(_thin_out(rows))
        places = Places.of_rows(points)
        weights = _fit_weights(logs, places)
        residuals = _combine_logs(logs.to_numpy(), weights)
        if not (has_stack := np.isfinite(residuals)).all():
            points, residuals, places = points[has_stack], residuals[has_stack], places.only(has_stack)
        if points["workload"].nunique() < MIN_WORKLOADS:
            return None
        from scipy.special import stdtrit  # here, because it is slow to load

        scales = choose_scales(places, residuals)
        is_local, left_out = _leave_out_all(places, residuals, scales)
        groups = number_labels(places.workload)
        student = (
            float(stdtrit(groups.max(), (1 + COVERAGE) / 2)) / NORMAL_QUANTILE
        )  # a quantile of few workloads is too low
        factors = {
            name: student * cover_labels(np.abs(errors_of_label) / deviation, groups)
            for name, (errors_of_label, deviation) in left_out.items()
        }
        measured_classes = outline_residual_intervals(collect_residuals(points, residuals))
        weight_of_model = {
            name: float(weight) for name, weight in zip(logs.columns, weights, strict=True) if weight > 0
        }
        return cls(weight_of_model, places, residuals, scales, is_local, factors, measured_classes)

    def stack(self, predictions: Mapping[str, Array]) -> Array:
        """Return the weighted geometric mean of predictions, each times its single-message ratio. Where a model has
        none (NaN), the others share its weight; NaN where models with most of the weight have none."""
        logs = np.stack([np.log(predictions[name]) for name in self.weights], axis=-1)
        return np.exp(_combine_logs(logs, np.array(list(self.weights.values()))))

    def correct(self, places: Places) -> Corrections:
        """Return the local corrections of points; 0 if none is applied."""
        prior, logs = places.covariance(places, self.scales), np.zeros(len(places.workload))
        if self.is_local:
            cross_covariance = places.covariance(self.places, self.scales)
            logs = cross_covariance @ (self._inverse @ self.residuals)
            prior = prior - cross_covariance @ self._inverse @ cross_covariance.T
        independent = places.extrapolate(self.places) + (RESIDUAL_NOISE * self.scales.unit) ** 2
        covariance = (prior + prior.T) / 2 + np.diag(independent)
        factors, known_labels = np.full(len(logs), self.factors[WORKLOAD]), self.places.labels()
        for name, label in places.labels().items():
            if name != WORKLOAD:
                factors = np.maximum(factors, np.where(np.isin(label, known_labels[name]), 0.0, self.factors[name]))
        half_width = factors * np.sqrt(np.diag(covariance))
        return Corrections(logs, covariance * np.outer(factors, factors) / NORMAL_QUANTILE**2, half_width)

    @cached_property
    def _inverse(self) -> Array:
        return _invert(self.places.covariance(self.places, self.scales), self.scales)

    def find_bases(self, workloads: Sequence[PointSeries]) -> list[IntervalBasis]:
        """Return which measured points the interval of each workload rests on."""
        return [find_residual_interval(self.measured_classes, workload).bases[0] for workload in workloads]


def _select_usable(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a residual and a weight."""
    rows = add_default_columns(rows, COMPARISON)
    finite = (rows["predicted"] > 0) & (rows["measured"] > 0) & np.isfinite(rows["predicted"].astype(float))
    rows = rows[finite & rows["held_out"].astype(bool) & rows["family"].ne("") & ~is_library_default(rows)]
    return rows[have_weight(rows["validity"])]


def _thin_out(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of evenly spread workloads with about MAX_FITTED_POINTS points; all rows if there are fewer."""
    if (points := rows["point"].nunique()) <= MAX_FITTED_POINTS:
        return rows
    groups = rows["workload"].drop_duplicates().to_numpy()
    kept_workloads = groups[
        np.linspace(0, len(groups) - 1, max(len(groups) * MAX_FITTED_POINTS // points, 1)).astype(int)
    ]
    return rows[rows["workload"].isin(kept_workloads)]


def _tabulate_residuals(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return one row a point, and its residuals by model; NaN without a prediction. Models that predict few of the
    points are left out."""
    points, wide = _pivot_by_model(rows, np.log(rows["measured"] / scale_predictions(rows)))
    shares = wide.notna().mean()
    return points, wide.loc[:, shares >= MIN_SHARE_OF_POINTS * shares.max()]


def _list_points(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the first row of each point, with the point as index."""
    return rows.drop_duplicates("point").set_index("point", drop=False)


def _pivot_by_model(rows: pd.DataFrame, values: pd.Series) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return one row a point, and its values by model; NaN without one."""
    points = _list_points(rows)
    return points, values.groupby([rows["point"], rows["family"]]).first().unstack().reindex(points.index)


def _fit_weights(logs: pd.DataFrame, places: Places) -> Array:
    """Return the weights, fitted to the points that all models predict. If the stack is not clearly better than the
    best model, the best model has weight 1."""
    from scipy.optimize import nnls  # here, because it is slow to load

    complete = logs.notna().all(axis=1).to_numpy()
    if not complete.any():
        return np.full(logs.shape[1], 1 / logs.shape[1])
    values, operation, workload = logs.to_numpy()[complete], places.operation[complete], places.workload[complete]
    labels = [label[complete] for label in places.labels().values()]
    labels = [label for label in labels if len(np.unique(label)) > 1] or labels[:1]
    groups, errors = number_labels(workload), [np.sqrt(BIAS_SHARE) * values]
    for label in labels:
        left_out = _subtract_bias(values, label, operation) / np.sqrt(len(labels))
        sums = np.zeros((groups.max() + 1, values.shape[1]))
        np.add.at(sums, groups, left_out)
        within = left_out - (sums / np.bincount(groups)[:, None])[groups]
        errors += [left_out, np.sqrt(RANKING_WEIGHT) * within]
    all_errors = np.concatenate(errors)
    squares = all_errors.T @ all_errors / len(values) + RIDGE * np.eye(values.shape[1])
    large = 1e3 * np.sqrt(np.trace(squares))
    system = np.vstack([np.linalg.cholesky(squares).T, np.full(len(squares), large)])
    weights = nnls(system, np.array([*np.zeros(len(squares)), large]))[0].round(9)
    weights /= weights.sum()
    best = np.arange(len(squares)) == squares.diagonal().round(9).argmin()
    gains = (all_errors @ best) ** 2 - (all_errors @ weights) ** 2
    return weights if _exceeds_scatter(gains, np.resize(groups, len(gains))) else best.astype(float)


def _exceeds_scatter(gains: Array, groups: np.ndarray) -> bool:
    """Return whether the mean gain of workloads is above 0 by more than MIN_GAIN_ERRORS standard errors."""
    sums = np.bincount(groups, gains)
    return bool(sums.mean() > MIN_GAIN_ERRORS * sums.std(ddof=1) / np.sqrt(len(sums)))


def _combine_logs(logs: Array, weights: Array) -> Array:
    """Return the weighted mean of each row of logarithms, by model. Models are limited to MAX_DISAGREEMENT around the
    heaviest one: beyond the fitted range, a regression may be wrong by orders of magnitude."""
    is_predicted, column = np.isfinite(logs), [weights.argmax()]
    heaviest = np.where(is_predicted[:, column], logs[:, column], 0.0)
    limit = np.where(is_predicted[:, column], np.log(MAX_DISAGREEMENT), np.inf)
    limited = np.clip(np.where(is_predicted, logs, 0.0), heaviest - limit, heaviest + limit)
    share = np.where(is_predicted, weights, 0.0)
    total = share.sum(axis=1)
    mean = (limited * share).sum(axis=1) / np.maximum(total, MIN_TOTAL_WEIGHT)
    return np.where(total > MIN_TOTAL_WEIGHT, mean, np.nan)


def _subtract_bias(values: Array, label: np.ndarray, operation: np.ndarray) -> Array:
    """Return residuals minus the median of the residuals with other labels, of the same operation if it has enough."""
    errors = values.copy()
    for value in np.unique(label):
        left_out = label == value
        for name in np.unique(operation[left_out]):
            of_same_operation = ~left_out & (operation == name)
            is_reference = of_same_operation if of_same_operation.sum() >= MIN_POINTS_OF_OPERATION_BIAS else ~left_out
            if is_reference.any():
                errors[left_out & (operation == name)] -= np.median(values[is_reference], axis=0)
    return errors


def choose_scales(places: Places, residuals: Array) -> Scales:
    """Return the scales with the largest marginal likelihood; their unit in closed form."""
    from scipy.linalg.lapack import dtrtrs  # here, because it is slow to load

    similarity = {
        correlation_length: places.compare_with(places, correlation_length)
        for correlation_length in {scales.correlation_length for scales in CANDIDATES}
    }
    scored, eye = [], np.eye(len(residuals))
    for number, scales in enumerate(CANDIDATES):
        factor = np.linalg.cholesky(similarity[scales.correlation_length].covariance(scales) + RESIDUAL_NOISE**2 * eye)
        white = dtrtrs(factor.T, residuals, lower=0, trans=1)[0]
        unit = max(float(np.sqrt(np.mean(white**2))), MIN_DEVIATION)
        length = len(residuals) * np.log(unit) + np.sum(white**2) / (2 * unit**2) + np.sum(np.log(np.diag(factor)))
        scored.append((float(f"{length:.6g}"), number, replace(scales, unit=float(f"{unit:.6g}"))))
    return min(scored)[2]


def _invert(covariance: Array, scales: Scales) -> np.ndarray:
    return np.linalg.inv(covariance + (RESIDUAL_NOISE * scales.unit) ** 2 * np.eye(len(covariance)))


def _leave_out_all(places: Places, residuals: Array, scales: Scales) -> tuple[bool, dict[str, tuple[Array, Array]]]:
    """Return whether correcting helps; and the error of each point and its standard deviation if all points of its
    workload, size, number of ranks, algorithm or operation are left out."""
    inverse, labels = _invert(places.covariance(places, scales), scales), places.labels()
    corrected = {name: _leave_out(inverse, residuals, label) for name, label in labels.items()}
    if is_local := _improves_errors({name: errors for name, (errors, _) in corrected.items()}, residuals, places):
        error_of_label = corrected
    else:
        prior = np.diag(places.covariance(places, scales)) + (RESIDUAL_NOISE * scales.unit) ** 2
        error_of_label = dict.fromkeys(labels, (residuals, prior))
    extra_variance = {name: _extrapolate_left_out(places, label) for name, label in labels.items()}
    return is_local, {
        name: (errors, np.sqrt(variances + extra_variance[name]))
        for name, (errors, variances) in error_of_label.items()
    }


def _leave_out(inverse: Array, residuals: Array, label: np.ndarray) -> tuple[Array, Array]:
    """Return the error of the correction of each point, and its variance, if all points of its label are left out; in
    closed form."""
    scaled, errors, variances = inverse @ residuals, residuals.copy(), np.zeros(len(residuals))
    for value in np.unique(label):
        rows = np.flatnonzero(label == value)
        covariance = np.linalg.inv(inverse[np.ix_(rows, rows)])
        errors[rows], variances[rows] = covariance @ scaled[rows], np.diag(covariance)
    return errors, variances


def _extrapolate_left_out(places: Places, label: np.ndarray) -> Array:
    """Return the variance that extrapolation beyond the points with other labels adds at each point."""
    variances = np.zeros(len(label))
    for value in np.unique(label):
        left_out = label == value
        if not left_out.all():
            variances[left_out] = places.only(left_out).extrapolate(places.only(~left_out))
    return variances


def _improves_errors(corrected: Mapping[str, Array], residuals: Array, places: Places) -> bool:
    """Return whether correcting lowers the squared errors of workloads, by more than their scatter. Errors are means
    over all kinds of labels that have at least two values."""
    groups = number_labels(places.workload)
    varied_labels = [name for name, label in places.labels().items() if len(np.unique(label)) > 1]
    gains = residuals**2 - np.mean([corrected[name] ** 2 for name in varied_labels or [WORKLOAD]], axis=0)
    return _exceeds_scatter(gains / np.bincount(groups)[groups], groups)


def evaluate_recommended(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a comparison for the recommended prediction of each held-out point that models with most of
    the weight predict: with its interval, error and choices. Fits leave out the point's workload, so that its own
    residual never helps."""
    rows = add_default_columns(comparison, COMPARISON)
    rows = rows[(rows["waves"] == 1) & rows["measured"].notna()]
    usable = _select_usable(rows)
    by_placement = usable.groupby(["platform", _find_placements(usable)], sort=False)
    folds = [_evaluate_folds(rows_of_placement).dropna(subset="predicted") for _, rows_of_placement in by_placement]
    if not any(map(len, folds)):
        return rows.iloc[:0]
    defaults = rows[is_library_default(rows)]
    evaluated = add_choices(add_errors(pd.concat([*folds, defaults], ignore_index=True)))
    return evaluated[~is_library_default(evaluated)].reset_index(drop=True)


SUMMARY = ("points", "mu_mean", "mu_max", "regret_mean", "regret_max", "coverage", "width")


def summarize_recommended(recommended: pd.DataFrame, comparison: pd.DataFrame) -> pd.DataFrame:
    """Return two rows a platform: the recommended prediction, and the model with the lowest mean μ at the same points,
    if a model predicts most of them. Columns: errors, regret of choices, the share of medians inside the interval, and
    its median width (high over low)."""
    rows = []
    for platform, rows_of_platform in recommended.groupby("platform", sort=False):
        rows.append({"platform": platform, "prediction": RECOMMENDED} | summarize_points(rows_of_platform))
        usable = _select_usable(comparison[comparison["platform"] == platform])
        models = usable[usable["point"].isin(rows_of_platform["point"])].groupby("family")
        complete = [
            (name, rows_of_model)
            for name, rows_of_model in models
            if rows_of_model["point"].nunique() >= MIN_SHARE_OF_POINTS * len(rows_of_platform)
        ]
        if complete:
            name, rows_of_model = min(
                complete, key=lambda entry: (round(entry[1]["mu"].mean(), 9), len(entry[0]), entry[0])
            )
            rows.append({"platform": platform, "prediction": name} | summarize_points(rows_of_model))
    return pd.DataFrame(rows, columns=["platform", "prediction", *SUMMARY])


def summarize_points(rows: pd.DataFrame) -> dict[str, float]:
    regrets = rows.loc[rows["chosen"], "regret"]
    width = (rows["predicted_high"] / rows["predicted_low"]).median()
    errors = (rows["mu"].mean(), rows["mu"].max(), regrets.mean(), regrets.max())
    return dict(zip(SUMMARY, (len(rows), *errors, rows["covered"].mean(), width), strict=True))


def _find_placements(rows: pd.DataFrame) -> pd.Series:
    """Return the placement of each row; empty if the number of nodes is unknown."""
    placements = (rows[NODES] > MIN_OF_AXIS[NODES]).map(PLACEMENT_NAMES)
    return placements.where(rows[NODES].notna(), "")


def _evaluate_folds(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of all points, each predicted by a fit without its workload."""
    fold, used = number_labels(rows["workload"].to_numpy(str)) % FOLDS, rows[PLACE_COLUMNS + MODEL_COLUMNS]
    folds = range(fold.max() + 1)
    fits = ((Recommender.fit_usable(used[fold != number]), used[fold == number]) for number in folds)
    predicted = [_predict_rows(recommender, left_out) for recommender, left_out in fits if recommender is not None]
    return _replace_predictions(rows, pd.concat(predicted)) if predicted else rows.iloc[:0]


def recommend_rows(recommender: Recommender, rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each point with the recommended prediction in place of those of models."""
    rows = add_default_columns(rows, COMPARISON)
    return _replace_predictions(rows, _predict_rows(recommender, rows[PLACE_COLUMNS + MODEL_COLUMNS]))


def _replace_predictions(rows: pd.DataFrame, recommended: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each point of `recommended`, with all columns."""
    points = _list_points(rows)
    return points.loc[recommended.index].assign(**recommended, family=RECOMMENDED, held_out=True)


def _predict_rows(recommender: Recommender, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the recommended prediction of each point (index), with its interval and validity."""
    points, scaled = _pivot_by_model(rows, scale_predictions(rows))
    scaled = scaled.reindex(columns=list(recommender.weights))
    stacked = recommender.stack({name: scaled[name].to_numpy(float) for name in scaled})
    corrections = recommender.correct(Places.of_rows(points))
    seconds, factor = stacked * np.exp(corrections.logs), np.exp(corrections.half_width)
    nodes = points[NODES].where(points[NODES].notna(), None)
    bases = recommender.find_bases(
        [
            PointSeries(
                row.operation, float(row.leaves or row.ranks), np.array([float(row.bytes)]), n, row.levels_crossed
            )
            for row, n in zip(
                points.assign(operation=points["operation"].map(find_base_name)).itertuples(), nodes, strict=True
            )
        ]
    )
    has_interval = [basis.of_residuals for basis in bases]
    validity = rows.assign(share=rows["family"].map(recommender.weights)).sort_values("share", ascending=False)
    heaviest = validity.drop_duplicates("point").set_index("point")["validity"].reindex(points.index)
    columns = {
        "predicted": seconds,
        "predicted_low": np.where(has_interval, seconds / factor, np.nan),
        "predicted_high": np.where(has_interval, seconds * factor, np.nan),
        "interval_basis": [basis.text for basis in bases],
        "validity": [assess_recommended(basis, v).text for basis, v in zip(bases, heaviest, strict=True)],
    }
    return pd.DataFrame(columns, points.index)


def assess_recommended(basis: IntervalBasis, heaviest: str) -> Validity:
    """Return the validity of a recommended prediction: extrapolated beyond the measured sizes or ranks; valid where its
    errors were measured; else that of the model with the largest weight."""
    if basis.is_extrapolated:
        return Validity(ValidityKind.EXTRAPOLATED, f"{basis.doublings:.1f} doublings beyond the measured points")
    return VALID if basis.of_residuals else Validity.parse(heaviest)
