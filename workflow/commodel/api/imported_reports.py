"""The report on a folder of imported measurements, without an experiment: models are fitted to its
table, and their predictions are written with what was measured (`report_imported`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from commodel.api.fits import Fit, fit_tables
from commodel.api.imports import FILES_NAME, TABLE_NAME
from commodel.errors import UserError
from commodel.files.tables import read_rows
from commodel.interchange.folders.tables import EvidenceTable
from commodel.parameters import ParameterSet
from commodel.progress import report_within
from commodel.records import LIBRARY
from commodel.reports import write_report
from commodel.reports.imported_report import ImportedMeasurements, build_imported_report
from commodel.units import format_bytes

MODELS = ("hockney", "loggp")  # fitted to the times of algorithms
MAX_POINTS = 3000  # to which models are fitted for a report: with more, the fits take minutes
FILE_COLUMNS = ("file", "format", "rows", "placement from", "not used because")


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
        hold_out=", ".join(dict.fromkeys(fitted.expressions)),
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
    """The models fitted to all points, and their predictions of points that were held out."""

    sets: list[ParameterSet] = field(default_factory=list)
    frames: list[pd.DataFrame] = field(default_factory=list)
    expressions: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def held_out(self) -> pd.DataFrame:
        return pd.concat(self.frames, ignore_index=True) if self.frames else pd.DataFrame()

    def add(self, fit: Fit) -> None:
        self.sets += fit.sets
        self.remarks += [remark for remark in fit.remarks if remark not in self.remarks]

    def add_held_out(self, fit: Fit, expression: str) -> None:
        if not fit.held_out.empty:
            self.frames.append(fit.held_out)
            self.expressions.append(expression)


def _fit_all(table: Path, times: pd.DataFrame) -> _Fitted:
    """Fit models to the times of algorithms, with and without the largest number of ranks."""
    fitted = _Fitted()
    of_algorithms = times[times["algorithm"] != LIBRARY]
    if of_algorithms.empty:
        fitted.remarks.append(
            "all times are of the MPI default: alternatives cannot be compared without times of "
            "algorithms, ping-pongs or a data sheet"
        )
        return fitted
    points = of_algorithms.drop_duplicates(["operation", "algorithm", "layout", "ranks", "bytes"])
    if len(points) > MAX_POINTS:
        fitted.remarks.append(
            f"no model is fitted to {len(points):,} points, more than {MAX_POINTS:,}: `commodel fit "
            "table` fits them"
        )
        return fitted
    ranks = sorted(points["ranks"].unique())
    expression = f"ranks == {ranks[-1]}" if len(ranks) > 1 else None
    for model in MODELS:
        _fit_model(fitted, table, model, expression)
    return fitted


def _fit_model(fitted: _Fitted, table: Path, model: str, expression: str | None) -> None:
    """Fit one model; if that is impossible, a remark says why."""
    try:
        fitted.add(fit_tables([table], [model], None, None, None, None))
        if expression:
            with report_within("held-out points"):
                held_out = fit_tables([table], [model], expression, None, None, None)
            fitted.add_held_out(held_out, expression)
    except UserError as error:
        fitted.remarks.append(f"{model}: {error.message}")


def _list_commands(folder: Path, times: pd.DataFrame, fitted: _Fitted) -> list[tuple[str, str]]:
    """Return questions that the report leaves open, and commands that answer them."""
    table = folder / TABLE_NAME
    last = times.sort_values(["ranks", "bytes"]).iloc[-1]
    workload = (
        f"--operation {last['operation']} --ranks {2 * int(last['ranks'])} "
        f"--bytes {format_bytes(int(last['bytes'])).replace(' ', '')}"
    )
    commands = [
        ("How accurate is another model?", f"commodel fit table {table} --model all -o models")
    ]
    if fitted.sets:
        workbook = f"reports/{folder.absolute().name}/{folder.absolute().name}.xlsx"
        commands.append(
            ("Which alternative is fastest?", f"commodel advise --params {workbook} {workload}")
        )
    return commands
