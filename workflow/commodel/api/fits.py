"""Fits to measured collectives.

`fit_tables` fits one model after another, predicts the held-out points, writes each set as soon as
it is fitted, and keeps the sets of an earlier call that was stopped, if table, model and code are
the same. `read_data_sheet` derives the values from the data sheet in a platform file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from commodel import sources
from commodel.api.campaigns import tabulate_parameters
from commodel.api.charts import load_altair
from commodel.api.held_out_errors import NOTES, describe_best, format_errors, list_plain_rows
from commodel.api.result import Result, describe_sources
from commodel.compare.baselines import predict_baselines, score_choices
from commodel.compare.held_out import Split, fit_without_held_out, predict_held_out, split_points
from commodel.errors import UserError
from commodel.files.parameter_sets import read_parameters, write_parameters
from commodel.files.quantities import parse_statistic
from commodel.files.text_tables import format_answer, format_table
from commodel.fits.data_sheets import SheetTimes, make_set_from_sheets
from commodel.fits.measured_tables import (
    Measured,
    describe_assumed_statistic,
    describe_statistics,
    has_algorithms,
    has_defaults,
    read_points,
)
from commodel.fits.mpi_default_fits import describe_extrapolation
from commodel.fits.settings import (
    choose_reference,
    describe_factors,
    fit_default_in_setting,
    fit_in_settings,
    select_setting,
)
from commodel.fits.table_fits import describe_fit, list_fitted_by_collectives
from commodel.hierarchy import NODE
from commodel.models.families import find_family
from commodel.parameters import ParameterSet
from commodel.plan.config import load_platform
from commodel.progress import report_within
from commodel.records import LIBRARY, Statistic
from commodel.results.stage_files import (
    PATTERN_CONSTANTS,
    digest_files,
    digest_inputs,
    list_extension_code,
    list_model_code,
)
from commodel.units import format_count

if TYPE_CHECKING:
    import altair

FIT_DIGEST_KEY = "fitted_to"
MAX_NAMED_TABLES = 3  # in the name of a fit


@dataclass(frozen=True, eq=False, repr=False)
class Fit(Result):
    """Models fitted to measured collectives, and their predictions of the points that were held
    out.

    The rows are the errors at held-out points, of models and of simple rules (baselines); without
    such points, the fitted values.
    """

    sets: Sequence[ParameterSet]
    tables: str  # names of the tables
    # a row a point and model: predicted, measured, mu
    held_out: pd.DataFrame = field(default_factory=pd.DataFrame)
    parts: Split | None = None  # fitted and held-out points
    reference: str = ""  # the setting that was fitted
    remarks: Sequence[str] = ()  # on the table and on the fits

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The errors at held-out points; without such points, the fitted values."""
        if self.held_out.empty:
            return [row for parameters in self.sets for row in _list_values(parameters)]
        return list_plain_rows(self.held_out, self.baselines, self.choices)

    @property
    def sentence(self) -> str:
        """The most accurate model; without held-out points, what was fitted."""
        if not self.held_out.empty:
            return describe_best(self.held_out)
        if len(self.sets) == 1:
            return f"{self.sets[0].model}: {self.sets[0].source}."
        return f"{len(self.sets)} models fitted to {self.tables}."

    @property
    def notes(self) -> list[str]:
        """Remarks on the table and on the fits, and the meaning of the columns."""
        return [*(f"{remark}." for remark in self.remarks), *(NOTES if len(self.held_out) else ())]

    @property
    def provenance(self) -> list[Mapping[str, str]]:
        return describe_sources(self.sets)

    def text(self, verbose: bool = True) -> str:
        has_errors = not self.held_out.empty
        body = (
            format_errors(self.held_out, self.baselines, self.choices)
            if has_errors
            else format_table(self.rows)
        )
        return format_answer(self.sentence, body, self.notes, verbose)

    @cached_property
    def baselines(self) -> pd.DataFrame:
        """The predictions of the held-out points by simple rules, such as the nearest fitted
        point."""
        if self.parts is None or self.held_out.empty:
            return pd.DataFrame()
        compared = self._compared
        sets = [fitted for fitted in self.sets if fitted.model in set(compared["model"])]
        of_fitted = pd.concat(
            [predict_held_out(fitted, self.parts.fitted, draws=0) for fitted in sets]
        )
        return predict_baselines(self.parts, self.reference, of_fitted, compared)

    @cached_property
    def choices(self) -> pd.DataFrame:
        """The alternatives that each model and baseline chooses among held-out points: their time
        over the fastest."""
        if self.parts is None or self.held_out.empty:
            return pd.DataFrame()
        return score_choices(pd.concat([self._compared, self.baselines]), self.parts)

    @property
    def _compared(self) -> pd.DataFrame:
        """The rows of models that predict the same points: not those of the MPI default, if others
        were fitted."""
        of_models = self.held_out[self.held_out["model"] != LIBRARY]
        return of_models if len(of_models) else self.held_out

    @property
    def parameter_set(self) -> ParameterSet:
        """The set of the only model."""
        if len(self.sets) != 1:
            raise UserError(f"found {len(self.sets)} models, wanted one; `sets` has those of all")
        return self.sets[0]

    @property
    def parameters(self) -> pd.DataFrame:
        """The fitted values of the only model: value, 95 % interval and unit of each."""
        return tabulate_parameters(self.parameter_set)

    def parameter_sets(self, platform: str | None = None) -> list[ParameterSet]:
        """Return the sets of all models."""
        return list(self.sets)

    def save(self, path: str | Path) -> None:
        """Write the values of the only model to a file that `predict` and `advise` read."""
        write_parameters(Path(path), self.parameter_set)

    def plot(self) -> altair.Chart:
        """Return a chart of predicted over measured time of the held-out points, with 95 %
        prediction intervals."""
        if self.held_out.empty:
            raise UserError(
                "the fit has no held-out points to draw; wanted fit(..., hold_out=EXPRESSION)"
            )
        altair = load_altair()
        axis = {"scale": altair.Scale(type="log"), "axis": altair.Axis(format="~s")}
        measured = altair.X("measured", title="measured / s", **axis)
        predicted, low, identity = (
            altair.Y(column, title="predicted / s", **axis)
            for column in ("seconds", "low", "measured")
        )
        names = ", ".join(parameters.model for parameters in self.sets)
        points = altair.Chart(self.held_out, title=f"{names}: predicted and measured time")
        details = [
            "model",
            "operation",
            "alternative",
            "ranks",
            "bytes",
            "measured",
            "seconds",
            "mu",
        ]
        dots = points.mark_point(filled=True).encode(
            measured, predicted, color="operation", tooltip=details
        )
        intervals = points.mark_rule().encode(measured, low, y2="high", color="operation")
        diagonal = points.mark_line(color="grey", strokeDash=[4, 4]).encode(measured, identity)
        return diagonal + intervals + dots


def _list_values(parameters: ParameterSet) -> list[dict[str, Any]]:
    """Return a row for each fitted value, with its 95 % interval."""
    return [
        {
            "model": parameters.model,
            "parameter": name,
            "value": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
            "unit": estimate.unit,
        }
        for name, estimate in parameters.values.items()
    ]


def fit(
    table: str | Path | Sequence[str | Path] | pd.DataFrame,
    model: str | Sequence[str] = (),
    *,
    hold_out: str | None = None,
    setting: str | None = None,
    statistic: str | None = None,
    out: str | Path | None = None,
) -> Fit:
    """Fit one model, or several, to measured collectives: columns operation, algorithm or topology,
    ranks, bytes, seconds. Printed, the result is what `commodel fit table` prints.

    `table` is a file, several files or a DataFrame. `model` is a name, several names, or `"all"`.
    The model `library` predicts the MPI default from its own times; it is the default for a table
    that has no others.
    `hold_out` is an expression such as `"ranks > 32"`: points for which it is true are predicted,
    not fitted. `setting` names the setting to fit if the table has several. `statistic` says which
    ranks the times are of, such as `"rank mean"` for OSU's, if the table does not state it. `out`
    is a file for the values, or a folder for those of several models.

    >>> fit("collectives.csv", "loggp", hold_out="ranks > 32").held_out["mu"].mean()  # doctest: +SKIP
    """
    models = [model] if isinstance(model, str) else list(model)
    target = Path(out) if out else None
    if isinstance(table, pd.DataFrame):
        with tempfile.TemporaryDirectory(prefix="commodel-") as folder:
            file = Path(folder) / "a DataFrame.csv"
            table.to_csv(file, index=False)
            return fit_tables([file], models, hold_out, setting, statistic, target)
    files = [Path(table)] if isinstance(table, str | Path) else [Path(path) for path in table]
    if not files:
        raise UserError("found no table of measured collectives")
    return fit_tables(files, models, hold_out, setting, statistic, target)


def join_names(paths: Sequence[Path]) -> str:
    """Return the names of files as one text, such as `a.csv, b.csv`; of many, the first ones."""
    names = [path.name for path in paths[:MAX_NAMED_TABLES]]
    if len(paths) > len(names):
        names.append(f"and {len(paths) - len(names)} more")
    return ", ".join(names)


def digest_fit_inputs(tables: Sequence[Path], model: str, *options: str | None) -> str:
    """Return a digest of the tables and of everything else that a fit depends on: options, the
    model's code, and the messages of algorithms."""
    modules = ["fits.mpi_default_fits"] if model == LIBRARY else []
    code = {
        Path(path)
        for path in (
            *list_model_code(model, "fits.settings", *modules),
            *list_extension_code(*PATTERN_CONSTANTS),
        )
    }
    # algorithms are found by folder, not by import
    code.update((sources.PACKAGE / "patterns").rglob("*.py"))
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


def fit_tables(
    tables: Sequence[Path],
    models: Sequence[str],
    hold_out: str | None,
    setting: str | None,
    statistic: str | None,
    out: Path | None,
    progress: Callable[[str], None] = lambda text: None,
) -> Fit:
    """Fit each model to all tables together and write its set into the file, or into a folder if
    there are several models. Without a model, the MPI default is fitted to a table that has no
    other rows. `hold_out` is an expression that selects the held-out points. `progress` gets a line
    for each set that is kept."""
    names = _list_models(tables, models)
    if len(names) > 1 and out and out.is_file():
        raise UserError(
            f"found a file, wanted a folder for the sets of {len(names)} models", file=out
        )
    stated = parse_statistic(statistic) if statistic else None
    request = _TableRequest(tables, names, hold_out, setting, stated, out, progress)
    of_algorithms = [name for name in names if name != LIBRARY]
    results = [request.fit(of_algorithms)] if of_algorithms else []
    if LIBRARY in names:
        results.append(request.fit([LIBRARY]))
    if len(results) == 1:
        return results[0]
    models_fit, default_fit = results
    return replace(
        models_fit,
        sets=[*models_fit.sets, *default_fit.sets],
        held_out=pd.concat([models_fit.held_out, default_fit.held_out], ignore_index=True),
        remarks=[*models_fit.remarks, *default_fit.remarks],
    )


def _list_models(tables: Sequence[Path], models: Sequence[str]) -> list[str]:
    """Return the names of the models to fit: the given ones, all that the tables allow, or the MPI
    default if the tables have nothing else."""
    if models and "all" not in models:
        return list(
            dict.fromkeys(name if name == LIBRARY else find_family(name).name for name in models)
        )
    if not has_algorithms(*tables):
        return [LIBRARY]
    if not models:
        raise UserError(
            "found rows of algorithms and no model, wanted models such as loggp, or all",
            key="--model",
        )
    names = list_fitted_by_collectives()
    return [*names, LIBRARY] if has_defaults(*tables) else names


@dataclass(frozen=True)
class _TableRequest:
    """The tables, models and options of `fit_tables`."""

    tables: Sequence[Path]
    models: Sequence[str]
    hold_out: str | None
    setting: str | None
    statistic: Statistic | None
    out: Path | None
    progress: Callable[[str], None]

    @property
    def is_of_several(self) -> bool:
        return len(self.models) > 1

    def fit(self, names: Sequence[str]) -> Fit:
        """Fit some of the models: those of algorithms, or the MPI default."""
        of_default = LIBRARY in names
        measured = read_points(*self.tables, statistic=self.statistic, of_default=of_default)
        table_names = join_names(self.tables)
        remarks = _describe_left_out(measured, LIBRARY not in self.models)
        parts = split_points(measured, self.hold_out) if self.hold_out else None
        fitted_points = parts.fitted if parts else measured
        reference = choose_reference(fitted_points, self.setting)
        if parts:
            fit = partial(fit_without_held_out, parts)
        else:
            fit = partial(fit_default_in_setting if of_default else fit_in_settings, measured)
        sets, rows = [], []
        for name in names:
            fitted = self._fit_or_keep(fit, name, reference, remarks)
            if fitted is None:
                continue
            points = select_setting(fitted_points, reference)
            remarks += [f"{name}: {note}" for note in _describe_set(fitted, points, table_names)]
            if of_default and len(points.points) < len(fitted_points.points):
                others = len(fitted_points.points) - len(points.points)
                remarks.append(
                    f"{name}: left out {format_count(others, 'point')} of other settings"
                )
            sets.append(fitted)
            if parts:
                rows.append(predict_held_out(fitted, parts.held_out))
        note = describe_assumed_statistic(measured)
        if sets and note:
            remarks.append(note)
        if sets and measured.without_layout:
            count = format_count(measured.without_layout, "row")
            remarks.append(
                f"{count} without a layout: each rank is assumed to have a node of its own"
            )
        held_out = pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()
        return Fit(sets, table_names, held_out, parts, reference, remarks)

    def _fit_or_keep(
        self,
        fit: Callable[[str, str, str | None], ParameterSet],
        name: str,
        reference: str,
        remarks: list[str],
    ) -> ParameterSet | None:
        """Fit a model and write its set, or return the set of an earlier fit with the same inputs.
        If one of several models cannot be fitted, a remark says why."""
        table_names = join_names(self.tables)
        digest = digest_fit_inputs(self.tables, name, self.hold_out, reference, self.statistic)
        path = self.out / f"{name}.yaml" if self.is_of_several and self.out else self.out
        progress = f"{name}, model {self.models.index(name) + 1} of {len(self.models)}"
        with report_within(progress if self.is_of_several else name):
            try:
                fitted = _read_earlier_fit(path, digest) if self.is_of_several and path else None
                if fitted:
                    self.progress(
                        f"{name}: the set fitted to {table_names} before is kept; remove it to fit again"
                    )
                else:
                    fitted = fit(name, table_names, self.setting)
            except UserError as error:
                if not self.is_of_several:
                    raise
                remarks.append(error.message)
                return None
            if path and FIT_DIGEST_KEY not in fitted.provenance:
                write_parameters(
                    path, replace(fitted, provenance={**fitted.provenance, FIT_DIGEST_KEY: digest})
                )
        return fitted


def _describe_left_out(measured: Measured, leaves_default_out: bool) -> list[str]:
    """Return remarks on the rows that are not fitted, and on the statistic of the others."""
    remarks = []
    if measured.unpredicted and leaves_default_out:
        remarks.append(
            f"left out {format_count(measured.unpredicted, 'row')} of algorithm '{LIBRARY}': "
            f"`--model {LIBRARY}` predicts the MPI default from them"
        )
    if measured.streams:
        remarks.append(
            f"left out {format_count(measured.streams, 'row')} of several waves: one wave is fitted"
        )
    if measured.other_statistics:
        count = format_count(measured.other_statistics, "point")
        remarks.append(
            f"left out {count} without a time of the statistic of the other alternatives: these are compared"
        )
    if any(point.statistic is not Statistic.COMPLETION for point in measured.points):
        remarks.append(f"the times are those of {describe_statistics(measured.points)}")
    return remarks


def _describe_set(fitted: ParameterSet, points: Measured, table_names: str) -> list[str]:
    """Return remarks on a fitted set."""
    if fitted.model == LIBRARY:
        return list(describe_extrapolation(fitted))
    return [*describe_factors(fitted), *describe_fit(fitted, points, table_names)]


def read_data_sheet(model: str, platform_file: Path) -> ParameterSet:
    """Return the data sheet of a platform's network, from its file, as the parameters of a
    model."""
    platform = load_platform(platform_file)
    sheet = platform.data_sheet
    if sheet is None:
        raise UserError(
            "found no section data_sheet, wanted one with the links of the network",
            file=platform_file,
        )
    single_message, shared_links = sheet.compute_message_costs(platform.hierarchy)
    memory = sheet.memory
    times = SheetTimes(
        levels=platform.hierarchy,
        single_message=single_message,
        shared=shared_links,
        overhead=sheet.overhead or 0.0,
        eager=sheet.eager,
        memory_totals={NODE: memory.total} if memory and memory.total else {},
    )
    if sheet.sockets and memory and memory.between:
        between = memory.between
        of_message = between.latency, 1 / between.bandwidth
        times = times.divide_nodes(platform.nodes, sheet.sockets, of_message, between.total)
    return make_set_from_sheets(model, platform_file.stem, times)
