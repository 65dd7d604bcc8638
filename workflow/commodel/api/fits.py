"""Fits from Python: `fit` fits a model to a table of measured collectives and predicts the held-out points."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from commodel.api.campaigns import load_altair, tabulate_parameters
from commodel.compare.held_out import fit_seen, predict_held_out, split
from commodel.files.parameter_sets import write_parameters
from commodel.fits.measured_tables import Measured, read_points
from commodel.fits.settings import fit_in_settings
from commodel.models.families import family
from commodel.parameters import ParameterSet

if TYPE_CHECKING:
    import altair


@dataclass(frozen=True, eq=False)
class Fit:
    """A model fitted to measured collectives, and its predictions of the points that were held out."""

    parameter_set: ParameterSet
    held_out: pd.DataFrame = field(default_factory=pd.DataFrame)  # a row a point: predicted, measured, mu, interval

    @property
    def parameters(self) -> pd.DataFrame:
        """The fitted values: value, 95 % interval and unit of each."""
        return tabulate_parameters(self.parameter_set)

    def parameter_sets(self, platform: str | None = None) -> list[ParameterSet]:
        return [self.parameter_set]

    def save(self, path: str | Path) -> None:
        """Write the values to a file that `predict` and `advise` read."""
        write_parameters(Path(path), self.parameter_set)

    def plot(self) -> altair.Chart:
        """Return a chart of predicted over measured time of the held-out points, with 95 % prediction intervals."""
        altair = load_altair()
        axis = {"scale": altair.Scale(type="log"), "axis": altair.Axis(format="~s")}
        measured = altair.X("measured", title="measured / s", **axis)
        predicted, low, same = (
            altair.Y(column, title="predicted / s", **axis) for column in ("predicted", "predicted_low", "measured")
        )
        points = altair.Chart(self.held_out, title=f"{self.parameter_set.family}: predicted and measured time")
        details = ["operation", "choice", "ranks", "bytes", "measured", "predicted", "mu"]
        dots = points.mark_point(filled=True).encode(measured, predicted, color="operation", tooltip=details)
        intervals = points.mark_rule().encode(measured, low, y2="predicted_high", color="operation")
        identity = points.mark_line(color="grey", strokeDash=[4, 4]).encode(measured, same)
        return identity + intervals + dots

    def __repr__(self) -> str:
        errors = f", mean μ {self.held_out['mu'].mean():.3f} on {len(self.held_out)} held-out points"
        return f"Fit of {self.parameter_set.family}: {self.parameter_set.source}{errors if len(self.held_out) else ''}"


def fit(
    table: str | Path | pd.DataFrame, model: str, *, hold_out: str | None = None, setting: str | None = None
) -> Fit:
    """Fit a model to measured collectives: columns operation, algorithm or topology, ranks, bytes, seconds.

    `hold_out` is an expression such as `"ranks > 32"`: points for which it is true are predicted, not fitted.
    `setting` names the setting to fit if the table has several.

    >>> fit("collectives.csv", "loggp", hold_out="ranks > 32").held_out["mu"].mean()  # doctest: +SKIP
    """
    name = family(model).name
    measured, source = _read(table)
    if hold_out is None:
        return Fit(fit_in_settings(measured, name, source, setting))
    parts = split(measured, hold_out)
    parameters = fit_seen(parts, name, source, setting)
    return Fit(parameters, predict_held_out(parameters, parts.unseen))


def _read(table: str | Path | pd.DataFrame) -> tuple[Measured, str]:
    """Return the points of a table, whose values are checked as those of a file are, and what the table is called."""
    if not isinstance(table, pd.DataFrame):
        return read_points(Path(table)), Path(table).name
    with tempfile.NamedTemporaryFile("w", suffix=".csv", encoding="utf-8") as file:
        table.to_csv(file, index=False)
        file.flush()
        return read_points(Path(file.name)), "a DataFrame"
