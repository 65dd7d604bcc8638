"""Baselines of predictions and choices: simple rules, listed separately from the models.

Three need no model:

- `nearest point`: the time of the measured point of the same operation and alternative whose ranks
  and bytes are nearest, in doublings, in the same setting if possible;
- `interpolation`: linear in the logarithms of time and bytes at the two nearest numbers of ranks,
  then in that of the ranks; beyond the measured sizes or ranks with the last slope;
- `pmnf per algorithm`: a regression in the performance model normal form for each operation and
  alternative; accurate within the measured range, inaccurate beyond it.

`MODEL × nearest ratio` is the prediction of a model times measured over predicted time at the
nearest measured point. `always one`: in every workload of an operation the alternative that was
best in the fitted workloads, by geometric mean. `library`: the MPI default. `predict_baselines`
returns the predictions of those that predict times, `choose_by_rule` the choices of the last two,
`score_choices` the quality of all choices, `summarize_baselines` the errors at the points of a
campaign.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from commodel.compare.comparison import add_choices, add_errors
from commodel.compare.held_out import Split, list_points
from commodel.compare.recommended import FOLDS, SUMMARY, summarize_points, summarize_recommended
from commodel.errors import UserError
from commodel.fits.measured_tables import Measured
from commodel.fits.settings import list_settings, select_points, select_setting
from commodel.fits.table_fits import fit_regression
from commodel.models import Array
from commodel.predictions.places import name_in_setting, number_labels
from commodel.predictions.predictions import predict
from commodel.predictions.validity import have_weight
from commodel.records import Point

NEAREST = "nearest point"
INTERPOLATION = "interpolation"
REGRESSION = "pmnf per algorithm"
NEAREST_RATIO = " × nearest ratio"  # after the name of a model
ALWAYS_SAME = "always one"
LIBRARY = "library"
BASELINE = "baseline"  # in place of a prediction's validity
# without those that correct a model
BASELINES = (NEAREST, INTERPOLATION, REGRESSION, ALWAYS_SAME, LIBRARY)
# Columns of a comparison that decide about errors and choices. All others would be copied with every
# baseline.
EVALUATED_COLUMNS = ["workload", "point", "algorithm", "held_out", "measured"]
OTHER_SETTING_DOUBLINGS = 1e3  # doublings: another setting is farther than any point of the same
# doublings: of equally near points, one of the same layout is nearest
OTHER_LAYOUT_DOUBLINGS = 1e-3


def is_baseline(name: str) -> bool:
    return name in BASELINES or name.endswith(NEAREST_RATIO)


def predict_baselines(
    parts: Split,
    reference: str,
    of_fitted: pd.DataFrame | None = None,
    of_held_out: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return a row, like that of a model, for each held-out point and each baseline that predicts
    times; NaN without a prediction. The regression uses the points of the setting `reference`, as
    the models do. `of_fitted` and `of_held_out` are the rows of models at all fitted and held-out
    points (`predict_held_out`)."""
    points = list_points(parts.held_out)
    fitted = select_setting(parts.fitted, reference)
    times = {
        NEAREST: predict_by_nearest_point(parts.fitted, parts.held_out),
        INTERPOLATION: predict_by_interpolation(parts.fitted, parts.held_out),
        REGRESSION: predict_by_regression(fitted, parts.held_out),
    }
    if of_fitted is not None and of_held_out is not None:
        rows_at_fitted = dict(iter(of_fitted.groupby("model", sort=False)))
        for name, rows_of_model in of_held_out.groupby("model", sort=False):
            predicted = predict_by_nearest_ratio(parts, rows_at_fitted[name], rows_of_model)
            times[f"{name}{NEAREST_RATIO}"] = predicted
    rows = [
        points.assign(model=name, seconds=predicted, validity=BASELINE)
        for name, predicted in times.items()
    ]
    blank = {"low": np.nan, "high": np.nan}
    return add_errors(pd.concat(rows, ignore_index=True).assign(**blank)).assign(covered=np.nan)


def summarize_baselines(recommended: pd.DataFrame, comparison: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each platform and baseline, as `summarize_recommended` does for the
    recommended prediction, at its points. Times of a point's workload are left out. The nearest
    ratio is that of the best single model."""
    rows = []
    for platform, points in recommended.groupby("platform", sort=False):
        of_platform = comparison[comparison["platform"] == platform]
        for name, predicted in _predict_folds(points, of_platform).items():
            evaluated = points[EVALUATED_COLUMNS].assign(
                model=name, seconds=predicted, low=np.nan, high=np.nan
            )
            evaluated = add_choices(add_errors(evaluated).assign(covered=np.nan)).dropna(
                subset="seconds"
            )
            if len(evaluated):
                rows.append(
                    {"platform": platform, "prediction": name} | summarize_points(evaluated)
                )
    return pd.DataFrame(rows, columns=["platform", "prediction", *SUMMARY])


def _predict_folds(points: pd.DataFrame, comparison: pd.DataFrame) -> dict[str, Array]:
    """Return the times of these points by each baseline, from the points of other folds of
    workloads."""
    measured = Measured(
        [_make_point(row) for row in points.itertuples()], points["measured"].tolist(), 0
    )
    ratios = np.full(len(points), np.nan)
    name = ""
    best = summarize_recommended(points, comparison)["prediction"].iloc[1:]
    if len(best):
        name = best.iloc[0]
        of_model = (
            comparison[comparison["model"] == name].drop_duplicates("point").set_index("point")
        )
        predicted = _select_valid_times(of_model.reindex(points["point"]))
        ratios = np.array(measured.seconds) / predicted
    times = {
        rule: np.full(len(points), np.nan)
        for rule in (NEAREST, INTERPOLATION, f"{name}{NEAREST_RATIO}")
    }
    fold = number_labels(points["workload"].to_numpy(str)) % FOLDS
    for number in np.unique(fold):
        is_left_out = fold == number
        fitted, left_out = (
            select_points(measured, flags.tolist()) for flags in (~is_left_out, is_left_out)
        )
        if not fitted.points:
            continue
        times[NEAREST][is_left_out] = predict_by_nearest_point(fitted, left_out)
        times[INTERPOLATION][is_left_out] = predict_by_interpolation(fitted, left_out)
        if name:
            nearest = _take_nearest(fitted, left_out, ratios[~is_left_out])
            times[f"{name}{NEAREST_RATIO}"][is_left_out] = nearest * predicted[is_left_out]
    return times


def _make_point(row: Any) -> Point:
    names = {"algorithm": row.algorithm, "topology": row.topology, "layout": row.layout}
    return Point(
        "",
        row.operation,
        ranks=int(row.ranks),
        bytes=int(row.bytes),
        leaves=int(row.leaves),
        **names,
    )


def predict_by_nearest_point(fitted: Measured, held_out: Measured) -> np.ndarray:
    """Return the time of the nearest fitted point for each held-out one; NaN if no point of its
    operation and alternative was fitted."""
    return _take_nearest(fitted, held_out, np.array(fitted.seconds))


def predict_by_nearest_ratio(
    parts: Split, of_fitted: pd.DataFrame, of_held_out: pd.DataFrame
) -> np.ndarray:
    """Return a model's prediction of each held-out point times measured over predicted time at the
    nearest fitted point; NaN if the model predicts no fitted point of its operation and
    alternative, or not the point itself. The rows are those of one model."""
    predicted_fitted = _select_valid_times(of_fitted)
    predicted = _select_valid_times(of_held_out)
    return (
        _take_nearest(
            parts.fitted, parts.held_out, np.array(parts.fitted.seconds) / predicted_fitted
        )
        * predicted
    )


def _select_valid_times(rows: pd.DataFrame) -> Array:
    """Return the predicted times; NaN where a prediction has no weight, such as that of a size not
    modelled."""
    is_valid = have_weight(rows["validity"]) & (rows["seconds"] > 0)
    return rows["seconds"].where(is_valid).to_numpy(float)


def _take_nearest(fitted: Measured, held_out: Measured, values: Array) -> Array:
    """Return for each held-out point the value of the nearest fitted point that has one. Of equally
    near points, it is that of the same layout, then that of the fewest ranks, then that of the
    fewest bytes."""
    values_of_nearest = np.full(len(held_out.points), np.nan)
    fitted_places = _locate_points(fitted)
    held_out_places = _locate_points(held_out)
    fitted_names = _name_settings_and_layouts(fitted)
    held_out_names = _name_settings_and_layouts(held_out)
    for numbers, held_out_numbers in _group_by_algorithm(fitted, held_out):
        with_value = numbers[np.isfinite(values[numbers])]
        if not len(with_value):
            continue
        ordered = with_value[np.lexsort(fitted_places[with_value].T[::-1])]
        distances = np.abs(fitted_places[ordered] - held_out_places[held_out_numbers, None]).sum(
            axis=-1
        )
        differs = fitted_names[ordered] != held_out_names[held_out_numbers, None]
        distances += differs @ np.array([OTHER_SETTING_DOUBLINGS, OTHER_LAYOUT_DOUBLINGS])
        # Rounded, so that points that are equally near remain so.
        values_of_nearest[held_out_numbers] = values[ordered[distances.round(6).argmin(axis=1)]]
    return values_of_nearest


def _name_settings_and_layouts(measured: Measured) -> np.ndarray:
    names = zip(list_settings(measured), (point.layout for point in measured.points), strict=True)
    return np.array(list(names), dtype=object).reshape(-1, 2)


def predict_by_interpolation(fitted: Measured, held_out: Measured) -> np.ndarray:
    """Return the time of each held-out point, interpolated between the fitted points of its
    operation and alternative: those of the same setting and layout if there are any, else those of
    the same setting, else all. NaN without any."""
    times = np.full(len(held_out.points), np.nan)
    fitted_places = _locate_points(fitted)
    held_out_places = _locate_points(held_out)
    fitted_names = _name_settings_and_layouts(fitted)
    held_out_names = _name_settings_and_layouts(held_out)
    logs = np.log(fitted.seconds)
    for numbers, held_out_numbers in _group_by_algorithm(fitted, held_out):
        curves: dict[tuple[str, str], dict[float, Curve]] = {}
        for number in held_out_numbers:
            setting, layout = held_out_names[number]
            if (setting, layout) not in curves:
                is_same = fitted_names[numbers] == (setting, layout)
                both_same = is_same.all(axis=1)
                selected = both_same if both_same.any() else is_same[:, 0]
                used = numbers[selected] if selected.any() else numbers
                curves[setting, layout] = _make_curves(fitted_places[used], logs[used])
            with np.errstate(over="ignore"):
                seconds = np.exp(
                    _interpolate_curves(curves[setting, layout], *held_out_places[number])
                )
            times[number] = seconds if np.isfinite(seconds) and seconds > 0 else np.nan
    return times


Curve = tuple[Array, Array]  # log2 of sizes, increasing, and logarithms of times


def _make_curves(places: Array, logs: Array) -> dict[float, Curve]:
    """Return the times over the sizes for each number of ranks (log2). Several points of one size
    have their median."""
    samples: dict[tuple[float, float], list[float]] = {}
    for (ranks, size), log in zip(places.tolist(), logs.tolist(), strict=True):
        samples.setdefault((ranks, size), []).append(log)
    curves: dict[float, dict[float, float]] = {}
    for ranks, size in sorted(samples):
        curves.setdefault(ranks, {})[size] = median(samples[ranks, size])
    return {
        ranks: (np.array(list(curve)), np.array(list(curve.values())))
        for ranks, curve in curves.items()
    }


def _interpolate_curves(curves: Mapping[float, Curve], ranks: float, size: float) -> float:
    if ranks in curves:
        return _interpolate(*curves[ranks], size)
    counts = np.array(sorted(curves))
    first = _find_segment(counts, ranks)
    nearest = counts[first : first + 2]
    return _interpolate(
        nearest, np.array([_interpolate(*curves[count], size) for count in nearest]), ranks
    )


def _interpolate(x: Array, y: Array, at: float) -> float:
    """Return the value at a place: linear between two neighbours, beyond the ends with the last
    slope. A single value holds everywhere."""
    if len(x) == 1:
        return float(y[0])
    first = _find_segment(x, at)
    slope = (y[first + 1] - y[first]) / (x[first + 1] - x[first])
    return float(y[first] + slope * (at - x[first]))


def _find_segment(x: Array, at: float) -> int:
    """Return the number of the first of the two neighbouring places; beyond the ends, of the two
    last ones."""
    return int(np.clip(np.searchsorted(x, at) - 1, 0, max(len(x) - 2, 0)))


def predict_by_regression(fitted: Measured, held_out: Measured) -> np.ndarray:
    """Return the seconds of each held-out point by a regression over the fitted ones of its
    operation and alternative; NaN if there are too few."""
    times = np.full(len(held_out.points), np.nan)
    for fitted_numbers, held_out_numbers in _group_by_algorithm(fitted, held_out):
        with suppress(UserError):
            regression = fit_regression(
                [fitted.points[n] for n in fitted_numbers],
                [fitted.seconds[n] for n in fitted_numbers],
            )
            predictions = predict(
                regression, [held_out.points[n] for n in held_out_numbers], draws=0
            )
            times[held_out_numbers] = [prediction.seconds for prediction in predictions]
    return times


def _group_by_algorithm(
    fitted: Measured, held_out: Measured
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the numbers of the fitted and of the held-out points of each operation, alternative and
    statistic that has both."""
    numbers: tuple[dict[tuple[str, ...], list[int]], dict[tuple[str, ...], list[int]]] = {}, {}
    for groups, measured in zip(numbers, (fitted, held_out), strict=True):
        for number, point in enumerate(measured.points):
            names = point.operation, point.kind, point.alternative, point.statistic
            groups.setdefault(names, []).append(number)
    for algorithm in (name for name in numbers[1] if name in numbers[0]):
        of_fitted, of_held_out = numbers
        yield np.array(of_fitted[algorithm]), np.array(of_held_out[algorithm])


def _locate_points(measured: Measured) -> np.ndarray:
    return np.log2(
        [(point.leaves or point.ranks, max(point.bytes, 1)) for point in measured.points]
    ).reshape(-1, 2)


def score_choices(rows: pd.DataFrame, parts: Split) -> pd.DataFrame:
    """Return the quality of the choices of each model and baseline: the number of held-out
    workloads with alternatives in which it chooses, how often the choice is the fastest, and its
    time over the fastest. `rows` are the held-out rows of both."""
    table = []
    by_rule = choose_by_rule(parts)
    ratios_by_rule = (
        (str(name), (chosen["measured"] / chosen["fastest"]).tolist())
        for name, chosen in by_rule.groupby("model")
    )
    for name, ratios in [*_choose_by_prediction(rows), *ratios_by_rule]:
        times = np.array(ratios)
        if len(times):
            mean = float(np.exp(np.log(times).mean()))
            worst = float(times.max())
            table.append(
                (name, is_baseline(name), len(times), float(np.mean(times <= 1)), mean, worst)
            )
    columns = ["model", "baseline", "workloads", "fastest", "over_fastest", "over_fastest_worst"]
    return pd.DataFrame(table, columns=columns)


def _choose_by_prediction(rows: pd.DataFrame) -> Iterator[tuple[str, list[float]]]:
    points = rows.drop_duplicates(["workload", "alternative", "kind", "layout"])
    fastest = points.groupby("workload")["measured"].min()[points.groupby("workload").size() > 1]
    for name, rows_of_model in (
        rows[rows["workload"].isin(fastest.index)]
        .dropna(subset=["seconds"])
        .groupby("model", sort=False)
    ):
        chosen = rows_of_model.loc[rows_of_model.groupby("workload")["seconds"].idxmin()]
        yield str(name), (chosen["measured"] / chosen["workload"].map(fastest)).tolist()


def choose_by_rule(parts: Split) -> pd.DataFrame:
    """Return a row for each held-out workload with alternatives and each of the baselines `always
    one` and `library`: the measured time of its choice and that of the fastest alternative. A
    workload has no row if the alternative or the MPI default was not measured there."""
    fitted_workloads = _group_by_workload(parts.fitted)
    held_out = parts.held_out
    workloads = {
        key: times for key, times in _group_by_workload(held_out).items() if len(times) > 1
    }
    operations = {operation for operation, _, _ in workloads}
    best_on_average = {name: _find_best_on_average(fitted_workloads, name) for name in operations}
    chosen: list[tuple[str, tuple[str, str, str], float]] = []
    for key, times in workloads.items():
        alternative = best_on_average[key[0]]
        if alternative in times:
            chosen.append((ALWAYS_SAME, key, times[alternative]))
    chosen += [
        (LIBRARY, key, held_out.library[key[1:]])
        for key in workloads
        if key[1:] in held_out.library
    ]
    rows = [
        (
            name,
            name_in_setting(workload, setting),
            seconds,
            min(workloads[operation, workload, setting].values()),
        )
        for name, (operation, workload, setting), seconds in chosen
    ]
    return pd.DataFrame(rows, columns=["model", "workload", "measured", "fastest"])


def _group_by_workload(
    measured: Measured,
) -> dict[tuple[str, str, str], dict[tuple[str, str], float]]:
    """Return for each operation, workload and setting the time of each alternative, with its
    fastest layout."""
    workloads: dict[tuple[str, str, str], dict[tuple[str, str], float]] = {}
    for point, seconds, setting in zip(
        measured.points, measured.seconds, list_settings(measured), strict=True
    ):
        times = workloads.setdefault((point.operation, point.workload, setting), {})
        choice = point.kind, point.alternative
        times[choice] = min(seconds, times.get(choice, np.inf))
    return workloads


def _find_best_on_average(
    workloads: Mapping[tuple, Mapping[tuple, float]], operation: str
) -> tuple[str, str] | None:
    """Return the alternative with the smallest geometric mean of its times over the fastest ones.
    Alternatives measured in less than half as many workloads as the most frequent one are
    ignored."""
    losses: dict[tuple[str, str], list[float]] = {}
    for (name, _, _), times in workloads.items():
        for choice, seconds in times.items() if name == operation and len(times) > 1 else ():
            losses.setdefault(choice, []).append(float(np.log(seconds / min(times.values()))))
    largest = max(map(len, losses.values()), default=0)
    mean_losses = {
        choice: np.mean(values) for choice, values in losses.items() if 2 * len(values) >= largest
    }
    return min(mean_losses, key=lambda choice: mean_losses[choice]) if mean_losses else None
