"""The report on a folder of imported measurements, without an experiment: the MPI default and models
are fitted to its table, and their predictions are written with what was measured
(`report_imported`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from commodel.api.fits import Fit, fit_tables
from commodel.api.imports import FILES_NAME, TABLE_NAME
from commodel.api.predictions import predict
from commodel.errors import UserError
from commodel.files.tables import read_rows
from commodel.interchange.folders.tables import EvidenceTable
from commodel.parameters import ParameterSet
from commodel.progress import report_within
from commodel.records import DEFAULT_LABEL, LIBRARY
from commodel.reports import write_report
from commodel.reports.imported_report import ImportedMeasurements, build_imported_report
from commodel.units import format_bytes

MODELS = ("hockney", "loggp")  # fitted to the times of algorithms
MAX_POINTS = 3000  # to which models are fitted for a report: with more, the fits take minutes
BEYOND = (2, 4)  # times the largest number of ranks, for which the MPI default is predicted
MAX_SIZES = 7  # of an operation, in these predictions
MAX_EXPRESSION_LENGTH = 500
FILE_COLUMNS = ("file", "format", "rows", "placement from", "not used because")
POINT = ["operation", "algorithm", "layout", "ranks", "bytes"]


def report_imported(
    folder: Path, out: Path | None, pictures: Path | None, every_chart: bool
) -> list[Path]:
    """Write the report of a folder of imported measurements, and return the files."""
    table = folder / TABLE_NAME
    times = pd.DataFrame([row.cells for row in EvidenceTable.read(table).rows])
    if times.empty:
        raise UserError("found no measured time", file=table)
    fitted = _fit_all(table, times)
    imported = ImportedMeasurements(
        name=folder.absolute().name,
        times=times,
        files=_read_files(folder / FILES_NAME),
        sets=fitted.sets,
        held_out=fitted.held_out,
        hold_out="the largest number of ranks of each operation",
        predicted=fitted.predicted,
        remarks=fitted.remarks,
        commands=_list_commands(folder, times, fitted),
    )
    return write_report(build_imported_report(imported), out, pictures, every_chart)


def _read_files(path: Path) -> pd.DataFrame:
    """Return the files of the last import; no rows if the user has removed the table of them."""
    if not path.exists():
        return pd.DataFrame(
            columns=[*FILE_COLUMNS, "operation", "ranks", "nodes", "bytes", "library"]
        )
    return pd.DataFrame([row for _, row in read_rows(path, FILE_COLUMNS)])


@dataclass
class _Fitted:
    """What was fitted to a table: sets, their predictions of points that were held out and of
    larger numbers of ranks, and reasons for what is missing."""

    sets: list[ParameterSet] = field(default_factory=list)
    frames: list[pd.DataFrame] = field(default_factory=list)
    beyond: list[pd.DataFrame] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def held_out(self) -> pd.DataFrame:
        return pd.concat(self.frames, ignore_index=True) if self.frames else pd.DataFrame()

    @property
    def predicted(self) -> pd.DataFrame:
        return pd.concat(self.beyond, ignore_index=True) if self.beyond else pd.DataFrame()

    def add(self, fit: Fit) -> None:
        self.sets += fit.sets
        for remark in fit.remarks:
            text = remark.replace(f"{LIBRARY}: ", f"{DEFAULT_LABEL}: ", 1)
            # Times of the MPI default are fitted on their own here.
            if text not in self.remarks and f"--model {LIBRARY}" not in text:
                self.remarks.append(text)


def _fit_all(table: Path, times: pd.DataFrame) -> _Fitted:
    """Fit the MPI default to its times, and models to those of algorithms."""
    fitted = _Fitted()
    is_default = times["algorithm"] == LIBRARY
    for models, rows in (((LIBRARY,), times[is_default]), (MODELS, times[~is_default])):
        if rows.empty:
            continue
        # Models are fitted in the setting that has most points.
        counts = rows.drop_duplicates([*POINT, "setting"])["setting"].value_counts()
        if counts.sum() > MAX_POINTS:
            names = ", ".join(models)
            reason = f"{counts.sum():,} points, more than {MAX_POINTS:,}: use `commodel fit table`"
            fitted.remarks.append(f"not fitted: {names} to {reason}")
            continue
        expression = _list_largest_ranks(rows[rows["setting"] == counts.idxmax()])
        for model in models:
            _fit_model(fitted, table, model, expression)
    if is_default.all():
        fitted.remarks.append(
            "all times are of the MPI default: other alternatives are not compared with it without "
            "times of algorithms, ping-pongs or a data sheet"
        )
    default = [parameters for parameters in fitted.sets if parameters.model == LIBRARY]
    if default:
        _predict_beyond(fitted, default[0], times[is_default])
    return fitted


def _list_largest_ranks(rows: pd.DataFrame) -> str:
    """Return the expression that is true for the largest number of ranks of each operation; empty
    if no operation has two."""
    parts = []
    for operation, part in rows.groupby("operation"):
        if part["ranks"].nunique() > 1:
            parts.append(f"operation == '{operation}' and ranks == {part['ranks'].max()}")
    expression = " or ".join(parts)
    if len(expression) > MAX_EXPRESSION_LENGTH:
        return f"ranks == {rows['ranks'].max()}"
    return expression


def _fit_model(fitted: _Fitted, table: Path, model: str, expression: str) -> None:
    """Fit one model; if that is impossible, a remark says why."""
    try:
        fitted.add(fit_tables([table], [model], None, None, None, None))
        if expression:
            with report_within("held-out points"):
                held_out = fit_tables([table], [model], expression, None, None, None)
            fitted.frames += [held_out.held_out] if len(held_out.held_out) else []
    except UserError as error:
        name = DEFAULT_LABEL if model == LIBRARY else model
        fitted.remarks.append(f"{name}: {error.message}")


def _predict_beyond(fitted: _Fitted, default: ParameterSet, times: pd.DataFrame) -> None:
    """Predict the MPI default for larger numbers of ranks than the measured ones."""
    for operation, part in times.groupby("operation", sort=True):
        largest = int(part["ranks"].max())
        sizes = _choose_sizes(part["bytes"])
        try:
            prediction = predict(
                str(operation),
                [factor * largest for factor in BEYOND],
                sizes or None,
                algorithm=LIBRARY,
                parameters=default,
            )
        except UserError as error:
            fitted.remarks.append(f"no prediction of the MPI default, {operation}: {error.message}")
            continue
        fitted.beyond.append(prediction.frame.assign(alternative=LIBRARY))


def _choose_sizes(sizes: pd.Series) -> list[int]:
    """Return some of the measured sizes above 0, from the smallest to the largest."""
    measured = sorted({int(size) for size in sizes if size > 0})
    step = max(1, -(-len(measured) // MAX_SIZES))
    return measured[::-1][::step][::-1]


def _list_commands(folder: Path, times: pd.DataFrame, fitted: _Fitted) -> list[tuple[str, str]]:
    """Return questions that the report leaves open, and commands that answer them."""
    table = folder / TABLE_NAME
    last = times.sort_values(["ranks", "bytes"]).iloc[-1]
    size = format_bytes(int(last["bytes"])).replace(" ", "")
    workload = f"--operation {last['operation']} --ranks {2 * int(last['ranks'])} --bytes {size}"
    models = {parameters.model for parameters in fitted.sets}
    commands = []
    if LIBRARY in models:
        commands += [
            (
                "Keep the prediction of the MPI default:",
                f"commodel fit table {table} --model {LIBRARY} -o default.yaml",
            ),
            (
                "What will another workload take?",
                f"commodel predict --params default.yaml {workload}",
            ),
        ]
    if models - {LIBRARY}:
        workbook = f"reports/{folder.absolute().name}/{folder.absolute().name}.xlsx"
        question = "Which alternative is fastest?"
        commands.append((question, f"commodel advise --params {workbook} {workload}"))
    names = "all" if models - {LIBRARY} else LIBRARY
    accuracy = f"commodel fit table {table} --model {names} --hold-out 'ranks > N'"
    return [*commands, ("How accurate are predictions above N ranks?", accuracy)]
