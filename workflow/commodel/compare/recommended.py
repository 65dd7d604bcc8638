"""The recommended prediction: a stack of models, corrected by the residuals of points that were measured nearby.

`Recommender.fit` takes the held-out points of one platform and placement.

- Stack: the weighted geometric mean of the models' predictions, each times its single-message ratio. Weights ≥ 0 sum up
  to 1 and are least squares (stacked regression, Breiman 1996): of the errors of points left out, to predict, and of
  their differences within a workload, to rank.
- Local correction: a Gaussian process over the residuals of the stack. Residuals are alike for an operation, an
  algorithm, and near sizes and numbers of ranks. It is applied only if it lowers the errors of points left out.
- Left out are, in turn: a workload, a size, a number of ranks and an operation. The same errors give the prediction
  interval (`predictions/prediction_intervals.py`).

`evaluate` returns the recommended prediction of every held-out point, from fits without the point's workload.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from commodel.compare.comparison import add_choices, add_errors, is_library_default
from commodel.compare.comparison_intervals import MAJORITY, collect_residuals, scale_predictions
from commodel.compare.model_ranking import COVER
from commodel.files.tables import COMPARISON, with_defaults
from commodel.models import Array
from commodel.parameters import Errors
from commodel.patterns.operations import base
from commodel.predictions.prediction_intervals import Interval, PointSeries, find_residuals, fit_bands
from commodel.predictions.residuals import (
    ABSENT_AT,
    BYTES,
    NODES,
    PLACEMENT_NAMES,
    RANKS,
    compute_matern,
    number_labels,
)
from commodel.predictions.validity import VALID, Validity, ValidityKind, have_weight
from commodel.records import Point

RECOMMENDED = "recommended"
FEWEST_WORKLOADS = 3  # measured: with fewer nothing can be left out
FEWEST_OF_OPERATION = 6  # points, from which on the bias of an operation is its own
MOST_POINTS = 400  # of a fit; of more, some workloads are left out
FOLDS = 10  # parts of the workloads that `evaluate` leaves out in turn
RANKING_WEIGHT = 2.0  # of squared differences within a workload: the variance of a difference is that of two errors
BIAS_SHARE = 0.1  # of the squares of uncorrected residuals: a bias may differ elsewhere
RIDGE = 1e-4  # added to mean squared errors: equal models share their weight
BYTES_REACH, RANKS_REACH = 4.0, 3.0  # doublings over which residuals are correlated
SURE = 1.0  # standard errors by which the local correction has to lower the squared errors of workloads
LEAST_GROWTH = 0.25  # of variances: the points left out are not all that will be predicted
MAX_DISAGREEMENT = 4.0  # of predicted times, between a model and the one with the largest weight
OPERATION = "operation"
WORKLOAD = "workload"


@dataclass(frozen=True)
class Scales:
    """Standard deviations of the parts of a residual, all logarithms."""

    operation: float
    algorithm: float
    everywhere: float = 0.1
    size: float = 0.1  # of an operation, at near sizes and ranks
    point: float = 0.03
    noise: float = 0.02


CANDIDATES = tuple(Scales(operation, algorithm) for operation in (0.1, 0.3) for algorithm in (0.03, 0.1, 0.3))


@dataclass(frozen=True, eq=False)
class Places:
    """Properties of points that correlate their residuals."""

    operation: np.ndarray
    alternative: np.ndarray
    layout: np.ndarray
    workload: np.ndarray
    ranks: Array
    bytes: Array

    @classmethod
    def of_rows(cls, rows: pd.DataFrame) -> Places:
        ranks = rows["leaves"].where(rows["leaves"] > 0, rows["ranks"])
        names = (rows["operation"].map(base), rows["alternative"], rows["layout"], rows["workload"])
        return cls(*(column.to_numpy(str) for column in names), *(c.to_numpy(float) for c in (ranks, rows["bytes"])))

    @classmethod
    def of_points(cls, points: Sequence[Point]) -> Places:
        names = [(base(point.operation), point.alternative, point.layout, point.workload) for point in points]
        amounts = [(point.leaves or point.ranks, point.bytes) for point in points]
        return cls(*np.array(names, dtype=str).reshape(-1, 4).T, *np.array(amounts, dtype=float).reshape(-1, 2).T)

    def labels(self) -> dict[str, np.ndarray]:
        """Return the labels by which points are left out in turn."""
        return {WORKLOAD: self.workload, BYTES: self.bytes, RANKS: self.ranks, OPERATION: self.operation}

    @cached_property
    def _names(self) -> dict[str, np.ndarray]:
        stem = np.char.partition(self.alternative, ":")[:, 0]
        names = {"operation": (self.operation,), "stem": (self.operation, stem)}
        names |= {"alternative": (self.operation, self.alternative)}
        names |= {"point": (self.workload, self.operation, self.alternative, self.layout)}
        return {name: _join(parts) for name, parts in names.items()}

    def compare_with(self, other: Places) -> Alike:
        """Return the correlations of the residuals of these points with those of other points."""
        same = {}
        for name, column in self._names.items():
            labels = number_labels(np.concatenate([column, other._names[name]]))
            same[name] = (labels[: len(column), None] == labels[len(column) :]).astype(float)
        sizes, ranks = (
            np.log2(np.maximum(getattr(self, name), 1))[:, None] - np.log2(np.maximum(getattr(other, name), 1))
            for name in (BYTES, RANKS)
        )
        near = compute_matern(sizes, BYTES_REACH) * compute_matern(ranks, RANKS_REACH)
        of_algorithm = near * (same["stem"] + same["alternative"]) / 2
        return Alike(same["operation"], same["operation"] * near, of_algorithm, same["point"])

    def covariance(self, other: Places, scales: Scales) -> Array:
        """Return the prior covariance of the residuals of these and other points."""
        return self.compare_with(other).covariance(scales)


@dataclass(frozen=True, eq=False)
class Alike:
    """Correlations of the parts of a residual, between some points and others."""

    operation: Array
    size: Array
    algorithm: Array
    point: Array

    def covariance(self, scales: Scales) -> Array:
        parts = (
            getattr(scales, name) ** 2 * getattr(self, name) for name in ("operation", "size", "algorithm", "point")
        )
        return scales.everywhere**2 + sum(parts)


def _join(parts: Sequence[np.ndarray]) -> np.ndarray:
    joined = parts[0]
    for part in parts[1:]:
        joined = np.char.add(np.char.add(joined, "\t"), part)
    return joined


@dataclass(frozen=True, eq=False)
class Corrections:
    """The local corrections of some points: logarithms, with the covariance of their errors."""

    logs: Array
    covariance: Array


@dataclass(frozen=True, eq=False)
class Recommender:
    """Weights of the models, and the residuals of their stack at measured points."""

    weights: Mapping[str, float]
    places: Places
    residuals: Array
    scales: Scales
    is_local: bool  # whether the local correction is applied
    left_out: Mapping[str, Array]  # errors of each point where its workload, size, ranks or operation is left out
    bands: Mapping[str, Errors]

    @classmethod
    def fit(cls, rows: pd.DataFrame, families: Collection[str] | None = None) -> Recommender | None:
        """Return the recommender of some models, or of all; None if too little was measured. `rows` are held-out rows
        of a comparison on one platform and placement, of single waves."""
        rows = _usable(rows)
        rows = rows if families is None else rows[rows["family"].isin(families)]
        if rows["workload"].nunique() < FEWEST_WORKLOADS:
            return None
        about, logs = _tabulate_residuals(_thin_out(rows))
        places = Places.of_rows(about)
        weights = _stack(logs, places)
        residuals = _combine(logs.to_numpy(), weights)
        enough = np.isfinite(residuals)
        about, residuals = about[enough], residuals[enough]
        places = Places.of_rows(about)
        if about["workload"].nunique() < FEWEST_WORKLOADS:
            return None
        scales, is_local, left_out = _choose_scales(places, residuals)
        bands = _fit_bands(about, left_out)
        named = {name: float(weight) for name, weight in zip(logs.columns, weights, strict=True) if weight > 0}
        return cls(named, places, residuals, scales, is_local, left_out, bands)

    def stack(self, predictions: Mapping[str, Array]) -> Array:
        """Return the weighted geometric mean of predictions, each times its single-message ratio. Where a model has
        none (NaN), the others share its weight; NaN where models with most of the weight have none."""
        logs = np.stack([np.log(predictions[name]) for name in self.weights], axis=-1)
        return np.exp(_combine(logs, np.array(list(self.weights.values()))))

    def correct_logs(self, places: Places) -> Array:
        """Return the logarithms of the local corrections of points; 0 if none is applied."""
        if not self.is_local:
            return np.zeros(len(places.workload))
        return places.covariance(self.places, self.scales) @ (self._inverse @ self.residuals)

    def correct(self, places: Places) -> Corrections:
        """Return the local corrections of points."""
        prior = places.covariance(places, self.scales)
        growth, own = self._growth(places), self._excess_within_workloads * np.eye(len(prior))
        if not self.is_local:
            return Corrections(np.zeros(len(prior)), prior * growth + own)
        across = places.covariance(self.places, self.scales) @ self._inverse
        covariance = prior - across @ self.places.covariance(places, self.scales)
        return Corrections(across @ self.residuals, (covariance + covariance.T) / 2 * growth + own)

    @cached_property
    def _inverse(self) -> Array:
        return _invert(self.places.covariance(self.places, self.scales), self.scales)

    def _growth(self, places: Places) -> float:
        """Return the factor of variances that points left out in the same respect show."""
        known = self.places.labels()
        respects = [
            WORKLOAD,
            *(n for n, v in places.labels().items() if n != WORKLOAD and not np.isin(v, known[n]).all()),
        ]
        growth = LEAST_GROWTH
        for name in respects:
            errors, variances = self.left_out[name], self._left_out_variances[name]
            growth = max(growth, float(np.mean(errors**2 / variances)))
        return growth

    @cached_property
    def _left_out_variances(self) -> dict[str, Array]:
        prior = self.places.covariance(self.places, self.scales)
        prior += self.scales.noise**2 * np.eye(len(prior))
        if not self.is_local:
            return dict.fromkeys(self.left_out, np.diag(prior))
        return {
            name: _leave_out(self._inverse, self.residuals, label)[1] for name, label in self.places.labels().items()
        }

    @cached_property
    def _excess_within_workloads(self) -> float:
        """Return the variance of errors within a left-out workload, minus the variance that the process predicts; at
        least 0."""
        errors, growth = self.left_out[WORKLOAD], self._growth(self.places)
        prior = self.places.covariance(self.places, self.scales) + self.scales.noise**2 * np.eye(len(errors))
        excess, count = 0.0, 0
        for name in np.unique(self.places.workload):
            out = np.flatnonzero(self.places.workload == name)
            block = np.ix_(out, out)
            covariance = np.linalg.inv(self._inverse[block]) if self.is_local else prior[block]
            predicted = np.trace(covariance) - covariance.sum() / len(out)
            excess += ((errors[out] - errors[out].mean()) ** 2).sum() - growth * predicted
            count += len(out) - 1
        return max(float(excess), 0.0) / max(count, 1)

    def find_interval(self, workload: PointSeries) -> Interval:
        """Return the range of the logarithm of measured over recommended time. If it excludes 0, the recommended time
        is moved to its end."""
        return find_residuals(self.bands, workload)


def _usable(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a residual and a weight."""
    rows = with_defaults(rows, COMPARISON)
    finite = (rows["predicted"] > 0) & (rows["measured"] > 0) & np.isfinite(rows["predicted"].astype(float))
    rows = rows[finite & rows["held_out"].astype(bool) & rows["family"].ne("") & ~is_library_default(rows)]
    return rows[have_weight(rows["validity"])]


def _thin_out(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of evenly spread workloads with at most MOST_POINTS points."""
    if (points := rows["point"].nunique()) <= MOST_POINTS:
        return rows
    groups = rows["workload"].drop_duplicates().to_numpy()
    kept = groups[np.linspace(0, len(groups) - 1, max(len(groups) * MOST_POINTS // points, 1)).astype(int)]
    return rows[rows["workload"].isin(kept)]


def _tabulate_residuals(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return one row a point, and its residuals by model; NaN without a prediction. Models that predict few of the
    points are left out."""
    logs = np.log(rows["measured"] / scale_predictions(rows))
    about = rows.drop_duplicates("point").set_index("point", drop=False)
    wide = logs.groupby([rows["point"], rows["family"]]).first().unstack().reindex(about.index)
    shares = wide.notna().mean()
    return about, wide.loc[:, shares >= COVER * shares.max()]


def _stack(logs: pd.DataFrame, places: Places) -> Array:
    """Return the weights, by the points that all models predict."""
    from scipy.optimize import nnls

    whole = logs.notna().all(axis=1).to_numpy()
    if not whole.any():
        return np.full(logs.shape[1], 1 / logs.shape[1])
    values, operation, workload = logs.to_numpy()[whole], places.operation[whole], places.workload[whole]
    squares = np.zeros((values.shape[1],) * 2)
    labels = [label[whole] for label in places.labels().values()]
    labels = [label for label in labels if len(np.unique(label)) > 1] or labels[:1]
    groups = number_labels(workload)
    for label in labels:
        errors = _subtract_bias(values, label, operation)
        sums = np.zeros((groups.max() + 1, errors.shape[1]))
        np.add.at(sums, groups, errors)
        within = errors - (sums / np.bincount(groups)[:, None])[groups]
        squares += (errors.T @ errors + RANKING_WEIGHT * within.T @ within) / len(errors)
    squares = squares / len(labels) + BIAS_SHARE * values.T @ values / len(values) + RIDGE * np.eye(len(squares))
    large = 1e3 * np.sqrt(np.trace(squares))
    system = np.vstack([np.linalg.cholesky(squares).T, np.full(len(squares), large)])
    weights = nnls(system, np.array([*np.zeros(len(squares)), large]))[0].round(9)
    return weights / weights.sum()


def _combine(logs: Array, weights: Array) -> Array:
    """Return the weighted mean of each row of logarithms, by model. Models are limited to MAX_DISAGREEMENT around the
    heaviest one: beyond the fitted range, a regression may be wrong by orders of magnitude."""
    known = np.isfinite(logs)
    heaviest = np.where(known[:, [weights.argmax()]], logs[:, [weights.argmax()]], 0.0)
    limit = np.where(known[:, [weights.argmax()]], np.log(MAX_DISAGREEMENT), np.inf)
    limited = np.clip(np.where(known, logs, 0.0), heaviest - limit, heaviest + limit)
    share = np.where(known, weights, 0.0)
    total = share.sum(axis=1)
    return np.where(total > MAJORITY, (limited * share).sum(axis=1) / np.maximum(total, MAJORITY), np.nan)


def _subtract_bias(values: Array, label: np.ndarray, operation: np.ndarray) -> Array:
    """Return residuals minus the median of those with other labels: of the same operation, if there are enough."""
    errors = values.copy()
    for value in np.unique(label):
        out = label == value
        for name in np.unique(operation[out]):
            same = ~out & (operation == name)
            others = same if same.sum() >= FEWEST_OF_OPERATION else ~out
            if others.any():
                errors[out & (operation == name)] -= np.median(values[others], axis=0)
    return errors


def _invert(covariance: Array, scales: Scales) -> Array:
    return np.linalg.inv(covariance + scales.noise**2 * np.eye(len(covariance)))


def _leave_out(inverse: Array, residuals: Array, label: np.ndarray) -> tuple[Array, Array]:
    """Return the error of the correction of each point, and its variance, if all points of its label are left out; in
    closed form."""
    scaled, errors, variances = inverse @ residuals, residuals.copy(), np.zeros(len(residuals))
    for value in np.unique(label):
        out = np.flatnonzero(label == value)
        covariance = np.linalg.inv(inverse[np.ix_(out, out)])
        errors[out], variances[out] = covariance @ scaled[out], np.diag(covariance)
    return errors, variances


def _choose_scales(places: Places, residuals: Array) -> tuple[Scales, bool, dict[str, Array]]:
    """Return the scales with the least errors of points left out, whether correcting helps, and these errors."""
    labels, alike = places.labels(), places.compare_with(places)
    found = []
    for scales in CANDIDATES:
        inverse = _invert(alike.covariance(scales), scales)
        left_out = {name: _leave_out(inverse, residuals, label)[0] for name, label in labels.items()}
        found.append((float(f"{_mean_square(left_out, places):.4g}"), scales, left_out))
    _, scales, left_out = min(found, key=lambda entry: entry[0])
    without = dict.fromkeys(labels, residuals)
    is_local = _helps(left_out, without, places)
    return scales, is_local, left_out if is_local else without


def _mean_square(left_out: Mapping[str, Array], places: Places) -> float:
    return float(np.mean(_square_errors(left_out, places)))


def _square_errors(left_out: Mapping[str, Array], places: Places) -> Array:
    """Return the mean squared error of each point, over all kinds of labels that have at least two values."""
    several = [name for name, label in places.labels().items() if len(np.unique(label)) > 1]
    return np.mean([left_out[name] ** 2 for name in several or [WORKLOAD]], axis=0)


def _helps(corrected: Mapping[str, Array], without: Mapping[str, Array], places: Places) -> bool:
    """Return whether correcting lowers the squared errors of workloads, by more than their scatter."""
    groups = number_labels(places.workload)
    gains = _square_errors(without, places) - _square_errors(corrected, places)
    gains = np.bincount(groups, gains) / np.bincount(groups)
    return bool(gains.mean() > SURE * gains.std(ddof=1) / np.sqrt(len(gains)))


def _fit_bands(about: pd.DataFrame, left_out: Mapping[str, Array]) -> dict[str, Errors]:
    """Return the bands of the errors of points left out. The recommended time needs no further correction, unless the
    band excludes it."""
    known = collect_residuals(about, left_out[WORKLOAD])
    left = {BYTES: left_out[BYTES], RANKS: left_out[RANKS], NODES: left_out[RANKS], OPERATION: left_out[OPERATION]}
    bands = fit_bands(replace(known, left_out=left))
    return {name: replace(band, median=0.0) for name, band in bands.items()}


def evaluate(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a comparison for the recommended prediction of each held-out point: with its interval, error
    and choices. Fits leave out the point's workload, so that its own residual never helps."""
    rows = with_defaults(comparison, COMPARISON)
    rows = rows[(rows["waves"] == 1) & rows["measured"].notna()]
    usable = _usable(rows)
    parts = [part for _, part in usable.groupby(["platform", _find_sides(usable)], sort=False)]
    made = [made for part in parts for made in _evaluate_folds(part)]
    if not made:
        return rows.iloc[:0]
    library = rows[is_library_default(rows)]
    found = add_choices(add_errors(pd.concat([*made, library], ignore_index=True)))
    return found[~is_library_default(found)].reset_index(drop=True)


SUMMARY = ("points", "mu_mean", "mu_max", "regret_mean", "regret_max", "coverage", "width")


def summarize_recommended(recommended: pd.DataFrame, comparison: pd.DataFrame) -> pd.DataFrame:
    """Return two rows a platform: the recommended prediction, and the model with the lowest mean μ at the same points.
    Errors, regret of choices, the share of medians inside the interval, and its median width (high over low)."""
    rows = []
    for platform, part in recommended.groupby("platform", sort=False):
        rows.append({"platform": platform, "prediction": RECOMMENDED} | _summarize_points(part))
        usable = _usable(comparison[comparison["platform"] == platform])
        models = usable[usable["point"].isin(part["point"])].groupby("family")
        complete = [(name, own) for name, own in models if own["point"].nunique() >= COVER * len(part)]
        if complete:
            name, own = min(complete, key=lambda entry: (round(entry[1]["mu"].mean(), 9), len(entry[0]), entry[0]))
            rows.append({"platform": platform, "prediction": name} | _summarize_points(own))
    return pd.DataFrame(rows, columns=["platform", "prediction", *SUMMARY])


def _summarize_points(rows: pd.DataFrame) -> dict[str, float]:
    regrets = rows.loc[rows["chosen"], "regret"]
    width = (rows["predicted_high"] / rows["predicted_low"]).median()
    figures = (
        len(rows),
        rows["mu"].mean(),
        rows["mu"].max(),
        regrets.mean(),
        regrets.max(),
        rows["covered"].mean(),
        width,
    )
    return dict(zip(SUMMARY, figures, strict=True))


def _find_sides(rows: pd.DataFrame) -> pd.Series:
    """Return the placement of each row; empty in older tables."""
    sides = (rows[NODES] > ABSENT_AT[NODES]).map(PLACEMENT_NAMES)
    return sides.where(rows[NODES].notna(), "")


def _evaluate_folds(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    fold = number_labels(rows["workload"].to_numpy(str)) % FOLDS
    for number in range(fold.max() + 1):
        if (recommender := Recommender.fit(rows[fold != number])) is not None:
            yield recommend_rows(recommender, rows[fold == number])


def recommend_rows(recommender: Recommender, rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each point with the recommended prediction in place of those of models."""
    rows = with_defaults(rows, COMPARISON)
    about = rows.drop_duplicates("point").set_index("point", drop=False)
    scaled = scale_predictions(rows).groupby([rows["point"], rows["family"]]).first().unstack().reindex(about.index)
    scaled = scaled.reindex(columns=list(recommender.weights))
    stacked = recommender.stack({name: scaled[name].to_numpy(float) for name in scaled})
    seconds = stacked * np.exp(recommender.correct_logs(Places.of_rows(about)))
    nodes = about[NODES].where(about[NODES].notna(), None)
    intervals = [
        recommender.find_interval(
            PointSeries(
                row.operation, float(row.leaves or row.ranks), np.array([float(row.bytes)]), n, row.levels_crossed
            )
        )
        for row, n in zip(about.assign(operation=about["operation"].map(base)).itertuples(), nodes, strict=True)
    ]
    low, high, moved = (
        seconds * np.exp([getattr(i, end)[0] for i in intervals]) for end in ("low", "high", "corrected")
    )
    validity = rows.assign(share=rows["family"].map(recommender.weights)).sort_values("share", ascending=False)
    heaviest = validity.drop_duplicates("point").set_index("point")["validity"].reindex(about.index)
    return about.assign(
        family=RECOMMENDED,
        predicted=moved,
        corrected=moved,
        predicted_low=np.where([i.bases[0].of_residuals for i in intervals], low, np.nan),
        predicted_high=np.where([i.bases[0].of_residuals for i in intervals], high, np.nan),
        interval_basis=[i.bases[0].text for i in intervals],
        validity=[assess_recommended(i, v).text for i, v in zip(intervals, heaviest, strict=True)],
        held_out=True,
    )


def assess_recommended(interval: Interval, heaviest: str) -> Validity:
    """Return the validity of a recommended prediction: extrapolated beyond the measured sizes or ranks; valid where its
    errors were measured; else that of the model with the largest weight."""
    basis = interval.bases[0]
    if basis.is_extrapolated:
        return Validity(ValidityKind.EXTRAPOLATED, f"{basis.doublings:.1f} doublings beyond the measured points")
    return VALID if basis.of_residuals else Validity.parse(heaviest)
