"""Prediction intervals of a comparison: `add_intervals` derives them from the residuals of each
model at the other points of the platform."""

import numpy as np
import pandas as pd

from commodel.files.tables import COMPARISON, add_default_columns
from commodel.parameters import StoredResiduals
from commodel.predictions.interval_basis import PARAMETERS_ONLY_TEXT, IntervalBasis
from commodel.predictions.places import Places
from commodel.predictions.predictions import PredictedTimes, apply_corrections
from commodel.predictions.residual_model import MeasuredResiduals, ResidualModel
from commodel.predictions.stored_residuals import store_residuals
from commodel.predictions.validity import Validity, have_weight
from commodel.stats import find_noise_of_interval


def add_intervals(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the comparison with the interval of each prediction, from residuals at other points.
    The parameter interval has separate columns."""
    frame = frame.reset_index(drop=True).assign(
        basis=np.where(frame["seconds"].notna(), PARAMETERS_ONLY_TEXT, ""),
        low=frame["parameter_low"],
        high=frame["parameter_high"],
    )
    # Predictions that ignore message size form separate groups, whose residuals are not used for
    # others.
    rows = frame[frame["model"] != ""]
    for _, rows_of_model in rows.groupby(
        ["platform", "model", have_weight(rows["validity"])], sort=False
    ):
        has_residual = _has_residual(rows_of_model)
        measured = rows_of_model[has_residual]
        model = ResidualModel.fit(collect_residuals(measured))
        if model is None:
            continue
        # All measured rows have an interval, also those at sizes that the model ignores: their
        # group is their own.
        _put_intervals(frame, measured.assign(validity=""), *model.predict_left_out())
        unmeasured = rows_of_model[
            ~has_residual & rows_of_model["seconds"].gt(0) & rows_of_model["held_out"]
        ]
        if len(unmeasured):
            places = Places.of_rows(unmeasured)
            _put_intervals(
                frame, unmeasured, *model.predict_singly(places), model.find_bases(places)
            )
    return frame


def _put_intervals(
    frame: pd.DataFrame,
    rows: pd.DataFrame,
    logs: np.ndarray,
    half_width: np.ndarray,
    bases: list[IntervalBasis],
) -> None:
    """Put the intervals of some rows into the comparison."""
    seconds, low, high = (
        rows[name].to_numpy(float) for name in ("seconds", "parameter_low", "parameter_high")
    )
    validity = [Validity.parse(text) for text in rows["validity"]]
    times = PredictedTimes(
        seconds=seconds,
        low=low,
        high=high,
        single_message_ratio=np.ones(len(rows)),
        validity=validity,
        message_seconds=np.zeros(len(rows)),
    )
    interval = apply_corrections(times, logs, half_width, bases)
    frame.loc[rows.index, "low"] = interval.low
    frame.loc[rows.index, "high"] = interval.high
    frame.loc[rows.index, "basis"] = [basis.text for basis in interval.bases]


def _has_residual(rows: pd.DataFrame) -> pd.Series:
    """Return which rows are held-out points with a prediction and a measurement."""
    finite = np.isfinite(rows["seconds"]) & np.isfinite(rows["measured"])
    return finite & (rows["seconds"] > 0) & (rows["measured"] > 0) & rows["held_out"]


def collect_residuals(
    rows: pd.DataFrame, logs: np.ndarray | None = None, places: Places | None = None
) -> MeasuredResiduals:
    """Return the residuals of one model's rows. `logs` replaces them, such as by those of a
    combined prediction; `places` are those of the rows, where they are known. A batch is measured
    in one allocation and setting. Allocations of a simulator do not differ: only settings count."""
    if logs is None:
        logs = np.log(rows["measured"] / rows["seconds"]).to_numpy(float)
    noise = find_noise_of_interval(
        rows["measured_low"].to_numpy(float), rows["measured_high"].to_numpy(float)
    )
    allocation = rows["setting"].where(
        rows["simulated"].astype(bool), rows["batch"] + " " + rows["setting"]
    )
    return MeasuredResiduals.of(
        Places.of_rows(rows) if places is None else places,
        logs,
        noise**2,
        allocation.to_numpy(str),
    )


def read_residuals(comparison: pd.DataFrame, platform: str, model: str) -> StoredResiduals | None:
    """Return the residuals of a model on a platform, as its validated set stores them."""
    rows = add_default_columns(comparison, COMPARISON)
    rows = rows[(rows["platform"] == platform) & (rows["model"] == model)]
    rows = rows[_has_residual(rows) & have_weight(rows["validity"])]
    residuals = ResidualModel.fit(collect_residuals(rows))
    return store_residuals(residuals) if residuals else None
