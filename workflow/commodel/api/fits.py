"""Fits to measured collectives.

`fit` fits one model to a table and predicts the held-out points. `fit_collectives` fits one model after another, writes
each set as soon as it is fitted, and keeps the sets of an earlier call that was stopped, if table, model and code are
the same. `read_data_sheet` derives the values from the data sheet in a platform file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from commodel import sources
from commodel.api.campaigns import load_altair, tabulate_parameters
from commodel.compare.baselines import predict_baselines, score_choices
from commodel.compare.held_out import fit_without_held_out, predict_held_out, split_points
from commodel.errors import UserError
from commodel.files.parameter_sets import read_parameters, write_parameters
from commodel.files.quantities import parse_statistic
from commodel.fits.data_sheets import SheetTimes, make_set_from_sheets
from commodel.fits.measured_tables import Measured, describe_assumed_statistic, describe_statistics, read_points
from commodel.fits.settings import choose_reference, describe_factors, fit_in_settings, select_setting
from commodel.fits.table_fits import describe_fit, list_fitted_by_collectives
from commodel.models.families import find_family
from commodel.parameters import ParameterSet
from commodel.plan.config import load_platform
from commodel.progress import report_within
from commodel.records import Statistic
from commodel.results.stage_files import digest_files, digest_inputs
from commodel.units import format_count

if TYPE_CHECKING:
    import altair

FIT_DIGEST_KEY = "fitted_to"
MAX_NAMED_TABLES = 3  # in the name of a fit


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
        if self.held_out.empty:
            raise UserError("the fit has no held-out points to draw; wanted fit(..., hold_out=EXPRESSION)")
        altair = load_altair()
        axis = {"scale": altair.Scale(type="log"), "axis": altair.Axis(format="~s")}
        measured = altair.X("measured", title="measured / s", **axis)
        predicted, low, identity = (
            altair.Y(column, title="predicted / s", **axis) for column in ("predicted", "predicted_low", "measured")
        )
        points = altair.Chart(self.held_out, title=f"{self.parameter_set.family}: predicted and measured time")
        details = ["operation", "alternative", "ranks", "bytes", "measured", "predicted", "mu"]
        dots = points.mark_point(filled=True).encode(measured, predicted, color="operation", tooltip=details)
        intervals = points.mark_rule().encode(measured, low, y2="predicted_high", color="operation")
        diagonal = points.mark_line(color="grey", strokeDash=[4, 4]).encode(measured, identity)
        return diagonal + intervals + dots

    def __repr__(self) -> str:
        text = f"Fit of {self.parameter_set.family}: {self.parameter_set.source}"
        if self.held_out.empty:
            return text
        return f"{text}, mean μ {self.held_out['mu'].mean():.3f} on {len(self.held_out)} held-out points"


def fit(
    table: str | Path | Sequence[str | Path] | pd.DataFrame,
    model: str,
    *,
    hold_out: str | None = None,
    setting: str | None = None,
    statistic: str | None = None,
) -> Fit:
    """Fit a model to measured collectives: columns operation, algorithm or topology, ranks, bytes, seconds.

    `table` is a file, several files or a DataFrame.
    `hold_out` is an expression such as `"ranks > 32"`: points for which it is true are predicted, not fitted.
    `setting` names the setting to fit if the table has several.
    `statistic` says which ranks the times are of, such as `"rank mean"` for OSU's, if the table does not state it.

    >>> fit("collectives.csv", "loggp", hold_out="ranks > 32").held_out["mu"].mean()  # doctest: +SKIP
    """
    name = find_family(model).name
    measured, source = _read_measured(table, parse_statistic(statistic) if statistic else None)
    if hold_out is None:
        return Fit(fit_in_settings(measured, name, source, setting))
    parts = split_points(measured, hold_out)
    parameters = fit_without_held_out(parts, name, source, setting)
    return Fit(parameters, predict_held_out(parameters, parts.held_out))


def _read_measured(
    table: str | Path | Sequence[str | Path] | pd.DataFrame, statistic: Statistic | None
) -> tuple[Measured, str]:
    """Return the checked points of a table, and the name of the table."""
    if not isinstance(table, pd.DataFrame):
        paths = [Path(table)] if isinstance(table, str | Path) else [Path(path) for path in table]
        if not paths:
            raise UserError("found no table of measured collectives")
        return read_points(*paths, statistic=statistic), join_names(paths)
    with tempfile.NamedTemporaryFile("w", suffix=".csv", encoding="utf-8") as file:
        table.to_csv(file, index=False)
        file.flush()
        return read_points(Path(file.name), statistic=statistic), "a DataFrame"


def join_names(paths: Sequence[Path]) -> str:
    """Return the names of files as one text, such as `a.csv, b.csv`; of many, the first ones."""
    names = [path.name for path in paths[:MAX_NAMED_TABLES]]
    if len(paths) > len(names):
        names.append(f"and {len(paths) - len(names)} more")
    return ", ".join(names)


@dataclass(frozen=True, eq=False)
class FitEvaluation:
    """The fitted sets, predictions of models and baselines at held-out points, and the regret of their choices."""

    sets: list[ParameterSet]
    rows: pd.DataFrame
    baselines: pd.DataFrame
    choices: pd.DataFrame


def digest_fit_inputs(tables: Sequence[Path], family: str, *options: str | None) -> str:
    """Return a digest of the tables and of everything else that a fit depends on: options, the model's code, and the
    messages of algorithms."""
    code = {Path(path) for path in sources.list_source_files("fits.settings", f"models.families.{family}")}
    code.update((sources.PACKAGE / "patterns").rglob("*.py"))  # algorithms are found by folder, not by import
    return digest_inputs(code, digest_files(tables), *options)


def _read_earlier_fit(path: Path, digest: str) -> ParameterSet | None:
    """Return the set in a file if its fit had the same inputs, by their digest; else None."""
    if not path.is_file():
        return None
    try:
        parameters = read_parameters(path)
    except UserError:  # the file is not a parameter set
        return None
    return parameters if parameters.provenance.get(FIT_DIGEST_KEY) == digest else None


def fit_collectives(
    tables: Sequence[Path],
    families: Sequence[str],
    hold_out: str | None,
    setting: str | None,
    out: Path | None,
    print_note: Callable[[str], None],
    statistic: Statistic | None = None,
) -> FitEvaluation:
    """Fit each model to all tables together and write its set into the file, or into a folder if there are several
    models. `hold_out` is an expression that selects the held-out points. `print_note` prints a line of progress."""
    names = (
        list_fitted_by_collectives()
        if "all" in families
        else [find_family(name).name for name in dict.fromkeys(families)]
    )
    several = len(names) > 1
    if several and out and out.is_file():
        raise UserError(f"found a file, wanted a folder for the sets of {len(names)} families", file=out)
    measured, table_names = read_points(*tables, statistic=statistic), join_names(tables)
    if measured.unpredicted:
        print_note(f"left out {format_count(measured.unpredicted, 'row')} of algorithm 'library': no prediction")
    if measured.streams:
        print_note(f"left out {format_count(measured.streams, 'row')} of several waves: one wave is fitted")
    if measured.other_statistics:
        count = format_count(measured.other_statistics, "point")
        print_note(f"left out {count} without a time of the statistic of the other alternatives: these are compared")
    if any(point.statistic is not Statistic.COMPLETION for point in measured.points):
        print_note(f"the times are those of {describe_statistics(measured.points)}")
    parts = split_points(measured, hold_out) if hold_out else None
    fitted_points = parts.fitted if parts else measured
    reference = choose_reference(fitted_points, setting)
    fit = partial(fit_without_held_out, parts) if parts else partial(fit_in_settings, measured)
    sets, rows = [], []
    for number, name in enumerate(names, 1):
        digest = digest_fit_inputs(tables, name, hold_out, reference, statistic)
        path = out / f"{name}.yaml" if several and out else out
        with report_within(f"{name}, family {number} of {len(names)}" if several else name):
            try:
                fitted = _read_earlier_fit(path, digest) if several and path else None
                if fitted:
                    print_note(f"{name}: the set fitted to {table_names} before is kept; remove it to fit again")
                else:
                    fitted = fit(name, table_names, setting)
            except UserError as error:
                if not several:
                    raise
                print_note(error.message)
                continue
            if path and FIT_DIGEST_KEY not in fitted.provenance:
                write_parameters(path, replace(fitted, provenance={**fitted.provenance, FIT_DIGEST_KEY: digest}))
            notes = describe_fit(fitted, select_setting(fitted_points, reference), table_names)
            for note in (*describe_factors(fitted), *notes):
                print_note(f"{name}: {note}")
            sets.append(fitted)
            if parts:
                rows.append(predict_held_out(fitted, parts.held_out))
    note = describe_assumed_statistic(measured)
    if sets and note:
        print_note(note)
    if sets and measured.without_layout:
        count = format_count(measured.without_layout, "row")
        print_note(f"{count} without a layout: each rank is assumed to have a node of its own")
    if not rows or parts is None:
        return FitEvaluation(sets, *(pd.DataFrame() for _ in range(3)))
    predicted = pd.concat(rows, ignore_index=True)
    with report_within("baselines"):
        of_fitted = pd.concat([predict_held_out(fitted, parts.fitted, draws=0) for fitted in sets])
        baselines = predict_baselines(parts, reference, of_fitted, predicted)
    choices = score_choices(pd.concat([predicted, baselines]), parts)
    return FitEvaluation(sets, predicted, baselines, choices)


def read_data_sheet(family: str, platform_file: Path) -> ParameterSet:
    """Return the data sheet of a platform's network, from its file, as the parameters of a model."""
    platform = load_platform(platform_file)
    if (sheet := platform.data_sheet) is None:
        raise UserError("found no section data_sheet, wanted one with the links of the network", file=platform_file)
    single_message, shared_links = sheet.compute_message_costs(platform.hierarchy)
    times = SheetTimes(platform.hierarchy, single_message, shared_links, sheet.overhead or 0.0, sheet.eager)
    return make_set_from_sheets(family, platform_file.stem, times)
