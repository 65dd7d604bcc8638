"""Baselines of predictions and choices: rules without a model of communication, listed separately from the models.

`nearest point`: the time of the measured point of the same operation and alternative whose ranks and bytes are nearest,
in doublings, in the same setting if possible. `pmnf per algorithm`: a regression in the performance model normal form
for each operation and alternative; accurate within the measured range, inaccurate beyond it. `always one`: in every
workload of an operation the alternative that was best in the fitted workloads, by geometric mean. `library`: the
library default. `predict_baselines` returns the predictions of the first two, `score_choices` the quality of choices.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress

import numpy as np
import pandas as pd

from commodel.compare.comparison import add_errors
from commodel.compare.held_out import Split, list_points
from commodel.errors import UserError
from commodel.fits.measured_tables import Measured
from commodel.fits.settings import list_settings, select_setting
from commodel.fits.table_fits import fit_regression
from commodel.predictions.predictions import predict

NEAREST, REGRESSION = "nearest point", "pmnf per algorithm"
ALWAYS_SAME, LIBRARY = "always one", "library"
BASELINE = "baseline"  # in place of a prediction's validity
BASELINES = (NEAREST, REGRESSION, ALWAYS_SAME, LIBRARY)
OTHER_SETTING_DOUBLINGS = 1e3  # doublings: another setting is farther than any point of the same


def predict_baselines(parts: Split, reference: str) -> pd.DataFrame:
    """Return a row, like that of a model, for each held-out point and each baseline that predicts times; NaN without a
    prediction. The regression uses the points of the setting `reference`, as the models do."""
    points, fitted = list_points(parts.held_out), select_setting(parts.fitted, reference)
    times = {
        NEAREST: predict_by_nearest_point(parts.fitted, parts.held_out),
        REGRESSION: predict_by_regression(fitted, parts.held_out),
    }
    rows = [points.assign(family=name, predicted=predicted, validity=BASELINE) for name, predicted in times.items()]
    blank = {"predicted_low": np.nan, "predicted_high": np.nan}
    return add_errors(pd.concat(rows, ignore_index=True).assign(**blank)).assign(covered=np.nan)


def predict_by_nearest_point(fitted: Measured, held_out: Measured) -> np.ndarray:
    """Return the time of the nearest fitted point for each held-out one; NaN if no point of its operation and
    alternative was fitted."""
    times, seconds = np.full(len(held_out.points), np.nan), np.array(fitted.seconds)
    fitted_places, held_out_places = _locate_points(fitted), _locate_points(held_out)
    for fitted_numbers, held_out_numbers in _group_by_algorithm(fitted, held_out):
        distances = np.abs(fitted_places[fitted_numbers] - held_out_places[held_out_numbers, None]).sum(axis=-1)
        settings = [
            np.array(list_settings(part))[numbers]
            for part, numbers in ((fitted, fitted_numbers), (held_out, held_out_numbers))
        ]
        distances += OTHER_SETTING_DOUBLINGS * (settings[0] != settings[1][:, None])
        times[held_out_numbers] = seconds[fitted_numbers[distances.argmin(axis=1)]]
    return times


def predict_by_regression(fitted: Measured, held_out: Measured) -> np.ndarray:
    """Return the seconds of each held-out point by a regression over the fitted ones of its operation and alternative;
    NaN if there are too few."""
    times = np.full(len(held_out.points), np.nan)
    for fitted_numbers, held_out_numbers in _group_by_algorithm(fitted, held_out):
        with suppress(UserError):
            regression = fit_regression(
                [fitted.points[n] for n in fitted_numbers], [fitted.seconds[n] for n in fitted_numbers]
            )
            predictions = predict(regression, [held_out.points[n] for n in held_out_numbers], draws=0)
            times[held_out_numbers] = [prediction.seconds for prediction in predictions]
    return times


def _group_by_algorithm(fitted: Measured, held_out: Measured) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the numbers of the fitted and of the held-out points of each operation and alternative that has both."""
    numbers: tuple[dict[tuple[str, str, str], list[int]], dict[tuple[str, str, str], list[int]]] = {}, {}
    for groups, measured in zip(numbers, (fitted, held_out), strict=True):
        for number, point in enumerate(measured.points):
            groups.setdefault((point.operation, point.kind, point.alternative), []).append(number)
    for algorithm in (name for name in numbers[1] if name in numbers[0]):
        of_fitted, of_held_out = numbers
        yield np.array(of_fitted[algorithm]), np.array(of_held_out[algorithm])


def _locate_points(measured: Measured) -> np.ndarray:
    return np.log2([(point.leaves or point.ranks, max(point.bytes, 1)) for point in measured.points]).reshape(-1, 2)


def score_choices(rows: pd.DataFrame, parts: Split) -> pd.DataFrame:
    """Return the quality of the choices of each model and baseline: the number of held-out workloads with alternatives
    in which it chooses, how often the choice is the fastest, and its time over the fastest. `rows` are the held-out
    rows of both."""
    table = []
    for name, ratios in [*_choose_by_prediction(rows), *_choose_by_rule(parts.fitted, parts.held_out)]:
        if len(times := np.array(ratios)):
            mean, worst = float(np.exp(np.log(times).mean())), float(times.max())
            table.append((name, name in BASELINES, len(times), float(np.mean(times <= 1)), mean, worst))
    columns = ["family", "baseline", "workloads", "fastest", "over_fastest", "over_fastest_worst"]
    return pd.DataFrame(table, columns=columns)


def _choose_by_prediction(rows: pd.DataFrame) -> Iterator[tuple[str, list[float]]]:
    points = rows.drop_duplicates(["workload", "alternative", "kind", "layout"])
    fastest = points.groupby("workload")["measured"].min()[points.groupby("workload").size() > 1]
    for name, rows_of_model in (
        rows[rows["workload"].isin(fastest.index)].dropna(subset=["predicted"]).groupby("family", sort=False)
    ):
        chosen = rows_of_model.loc[rows_of_model.groupby("workload")["predicted"].idxmin()]
        yield str(name), (chosen["measured"] / chosen["workload"].map(fastest)).tolist()


def _choose_by_rule(fitted: Measured, held_out: Measured) -> Iterator[tuple[str, list[float]]]:
    fitted_workloads = _group_by_workload(fitted)
    workloads = {key: times for key, times in _group_by_workload(held_out).items() if len(times) > 1}
    best_on_average = {
        operation: _find_best_on_average(fitted_workloads, operation) for operation in {key[0] for key in workloads}
    }
    same: dict[tuple[str, str, str], float] = {}
    for key, times in workloads.items():
        alternative = best_on_average[key[0]]
        if alternative in times:
            same[key] = times[alternative]
    defaults = {key: held_out.library[key[1:]] for key in workloads if key[1:] in held_out.library}
    for name, chosen in ((ALWAYS_SAME, same), (LIBRARY, defaults)):
        yield name, [seconds / min(workloads[key].values()) for key, seconds in chosen.items()]


def _group_by_workload(measured: Measured) -> dict[tuple[str, str, str], dict[tuple[str, str], float]]:
    """Return for each operation, workload and setting the time of each alternative, with its fastest layout."""
    workloads: dict[tuple[str, str, str], dict[tuple[str, str], float]] = {}
    for point, seconds, setting in zip(measured.points, measured.seconds, list_settings(measured), strict=True):
        times = workloads.setdefault((point.operation, point.workload, setting), {})
        choice = point.kind, point.alternative
        times[choice] = min(seconds, times.get(choice, np.inf))
    return workloads


def _find_best_on_average(workloads: Mapping[tuple, Mapping[tuple, float]], operation: str) -> tuple[str, str] | None:
    """Return the alternative with the smallest geometric mean of its times over the fastest ones. Alternatives measured
    in less than half as many workloads as the most frequent one are ignored."""
    losses: dict[tuple[str, str], list[float]] = {}
    for (name, _, _), times in workloads.items():
        for choice, seconds in times.items() if name == operation and len(times) > 1 else ():
            losses.setdefault(choice, []).append(float(np.log(seconds / min(times.values()))))
    largest = max(map(len, losses.values()), default=0)
    mean_losses = {choice: np.mean(values) for choice, values in losses.items() if 2 * len(values) >= largest}
    return min(mean_losses, key=lambda choice: mean_losses[choice]) if mean_losses else None
