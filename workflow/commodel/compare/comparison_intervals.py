"""Prediction intervals of a comparison: `add_intervals` derives them from the residuals of each model at the other
points of the platform."""

from typing import Any

import numpy as np
import pandas as pd

from commodel.files.tables import COMPARISON, add_default_columns
from commodel.parameters import Errors
from commodel.predictions.prediction_intervals import (
    PARAMETERS_ONLY_TEXT,
    PointSeries,
    apply_residuals,
    contain_prediction,
    cross_validate,
    find_residual_interval,
    fit_residual_intervals,
)
from commodel.predictions.predictions import PredictedTimes
from commodel.predictions.residuals import BYTES, NODES, RANKS, Residuals, find_operation_class
from commodel.predictions.validity import Validity, have_weight


def add_intervals(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the comparison with the interval of each prediction, from residuals at other points. The parameter
    interval has separate columns."""
    frame = frame.reset_index(drop=True).assign(
        interval_basis=np.where(frame["predicted"].notna(), PARAMETERS_ONLY_TEXT, ""),
        parameters_low=frame["predicted_low"],
        parameters_high=frame["predicted_high"],
    )
    # Predictions that ignore message size form separate groups, whose residuals are not used for others.
    rows = frame[frame["family"] != ""]
    for _, rows_of_model in rows.groupby(["platform", "family", have_weight(rows["validity"])], sort=False):
        has_residual = _has_residual(rows_of_model)
        measured, unmeasured = (
            rows_of_model[has_residual],
            rows_of_model[~has_residual & rows_of_model["predicted"].gt(0) & rows_of_model["held_out"]],
        )
        if measured.empty:
            continue
        residuals, scaled = collect_residuals(measured), scale_predictions(measured)
        interval = cross_validate(residuals)
        lacks_residuals = np.array([not basis.of_residuals for basis in interval.bases])
        low, high = (scaled * np.exp(end) for end in (interval.low, interval.high))
        names = ("predicted_low", "predicted_high")
        for name, end in zip(names, contain_prediction(low, high, measured["predicted"]), strict=True):
            frame.loc[measured.index, name] = measured[name].where(lacks_residuals, end)
        frame.loc[measured.index, "interval_basis"] = [basis.text for basis in interval.bases]
        residual_intervals = fit_residual_intervals(residuals) if len(unmeasured) else {}
        for row in unmeasured.assign(expected=scale_predictions(unmeasured)).itertuples():
            times = row.predicted, row.predicted_low, row.predicted_high, row.expected / row.predicted
            seconds, low, high, ratio = np.array(times)[:, None]
            prediction = PredictedTimes(seconds, low, high, ratio, [Validity.parse(row.validity)], np.zeros(1))
            interval = apply_residuals(prediction, find_residual_interval(residual_intervals, _make_series(row)))
            cells = interval.low[0], interval.high[0], interval.bases[0].text
            frame.loc[row.Index, ["predicted_low", "predicted_high", "interval_basis"]] = cells
    return frame


def _make_series(row: Any) -> PointSeries:
    nodes = row.nodes if row.nodes == row.nodes else None  # NaN: unknown
    operation, sizes = find_operation_class(row.operation, float(row.waves)), np.array([row.bytes], dtype=float)
    return PointSeries(operation, float(row.leaves or row.ranks), sizes, nodes, row.levels_crossed)


def _has_residual(rows: pd.DataFrame) -> pd.Series:
    """Return which rows are held-out points with a prediction and a measurement."""
    finite = np.isfinite(rows["predicted"]) & np.isfinite(rows["measured"])
    return finite & (rows["predicted"] > 0) & (rows["measured"] > 0) & rows["held_out"]


def scale_predictions(rows: pd.DataFrame) -> pd.Series:
    """Return predictions scaled by the single-message ratio, if the table has it."""
    return rows["predicted"] * rows["single_message_ratio"].fillna(1.0)


def collect_residuals(rows: pd.DataFrame, logs: np.ndarray | None = None) -> Residuals:
    """Return the residuals of one model's rows. `logs` replaces them, such as by those of a combined prediction. A
    batch is measured in one allocation and setting. Allocations of a simulator do not differ: only settings count."""
    axes = {RANKS: rows["leaves"].where(rows["leaves"] > 0, rows["ranks"]), BYTES: rows["bytes"], NODES: rows["nodes"]}
    return Residuals(
        np.log(rows["measured"] / scale_predictions(rows)).to_numpy(float) if logs is None else logs,
        np.array([find_operation_class(*fields) for fields in zip(rows["operation"], rows["waves"], strict=True)]),
        rows["workload"].to_numpy(str),
        rows["setting"].where(rows["simulated"].astype(bool), rows["batch"] + " " + rows["setting"]).to_numpy(str),
        {name: column.to_numpy(float) for name, column in axes.items() if column.notna().all()},
        setting=rows["setting"].to_numpy(str),
        seconds=rows["measured"].to_numpy(float),
        levels_crossed=rows["levels_crossed"].to_numpy(str),
    )


def read_residuals(comparison: pd.DataFrame, platform: str, family: str) -> dict[str, Errors]:
    """Return the residual intervals of a model on a platform, as its validated set stores them."""
    rows = add_default_columns(comparison, COMPARISON)
    rows = rows[(rows["platform"] == platform) & (rows["family"] == family)]
    rows = rows[_has_residual(rows) & have_weight(rows["validity"])]
    return fit_residual_intervals(collect_residuals(rows)) if len(rows) else {}
