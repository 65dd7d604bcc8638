"""Workbooks of other verbs: rows of one answer (`write_result`), a decision table
(`write_decision_workbook`), changes between two results, and a history of several
(`write_history`). `snapshot` reads the workbook of a report."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from math import isfinite, nan
from pathlib import Path
from typing import Any

import pandas as pd

from commodel.compare.snapshots import (
    CHANGED,
    PARAMETER,
    POINT,
    Change,
    HistoryLine,
    Snapshot,
    compare_provenance,
    describe_changes,
    list_parameter_quantities,
    select_measured_quantities,
)
from commodel.errors import UserError, make_printable
from commodel.files import tables
from commodel.files.tables import find_field
from commodel.predictions.interval_basis import IntervalBasis
from commodel.reports.charts import assign_colours, name_without_argument
from commodel.reports.elements import (
    MICRO,
    TIED_PREFIX,
    AnsweredQuestion,
    Axis,
    Block,
    Chart,
    Column,
    Report,
    Section,
    Series,
    Table,
    format_count,
    format_simulated,
    format_size,
    make_simulation_banner,
    make_table,
    select_columns,
    to_plain_value,
)
from commodel.reports.received_workbooks import (
    Formula,
    open_received,
    read_sheet_rows,
    read_stored_sets,
)
from commodel.reports.sections.evidence import SHOWN_UNITS
from commodel.reports.xlsx.workbook import write_xlsx

TIME_COLUMNS = ("seconds", "low", "high", "measured", "parameter_low", "parameter_high")


HEADS = {"seconds": "time"}


def write_result(
    name: str,
    frame: pd.DataFrame,
    sentences: list[str],
    provenance: list[Mapping[str, str]],
    path: Path,
) -> None:
    """Write the answer to one question: its rows without empty columns, the sentences on them, and
    the sources of the values. Times of the frame are in seconds. An answer without rows has no
    sheet of rows."""
    filled = [key for key in frame if (frame[key].notna() & frame[key].ne("")).any()]
    shown = frame[filled]
    times = [key for key in TIME_COLUMNS if key in shown]
    scaled = shown.assign(**{key: MICRO * shown[key].astype(float) for key in times})
    columns = [
        _make_result_column(key, "number" if key in times else _find_kind(shown[key]))
        for key in shown
    ]
    sources = pd.DataFrame(provenance, columns=list(provenance[0]) if provenance else ["model"])
    source_columns = [Column(key, key) for key in sources]
    rows = (Section(name, "", (make_table(name, name, scaled, columns),)),) if columns else ()
    sections = (
        *rows,
        Section("Notes", "", (AnsweredQuestion("Notes", tuple(sentences)),)),
        Section(
            "Provenance",
            "",
            (make_table("Provenance", "Sources of the values", sources, source_columns),),
        ),
    )
    write_xlsx(
        Report(experiment="commodel", title=sentences[0].rstrip("."), banner="", sections=sections),
        path,
    )


def _make_result_column(key: str, kind: str) -> Column:
    head = HEADS.get(key, key).replace("_", " ")
    return Column(
        key, f"{head} [µs]" if kind == "number" else "bytes [B]" if key == "bytes" else head, kind
    )


def _find_kind(column: pd.Series) -> str:
    return "count" if column.dtype.kind == "i" else "text"


MAX_WEIGHT_SETS = 3  # sets of weights, each in a sentence


def write_decision_workbook(decided: pd.DataFrame, remarks: Sequence[str], path: Path) -> None:
    """Write the workbook of a decision table, with `remarks` on all of it."""
    simulated = bool(decided["simulated"].any())
    platform_names = (
        ", ".join(sorted(set(decided["platform"]) - {""})) or "a platform without a name"
    )
    platforms = f"{platform_names} (simulated)" if simulated else platform_names
    banner = (
        f"SIMULATED: all data of {platform_names} come from a simulator, not from hardware."
        if simulated
        else ""
    )
    operations = decided.groupby("operation", sort=False)
    sections = [
        Section("Decisions", "", (describe_basis(decided, remarks), tabulate_decisions(decided)))
    ]
    sections += [
        Section(name, "", tabulate_best_alternatives(name, rows)) for name, rows in operations
    ]
    write_xlsx(
        Report(
            experiment="commodel advise",
            title=f"What to use on {platforms}",
            banner=banner,
            sections=tuple(sections),
        ),
        path,
    )


def describe_basis(decided: pd.DataFrame, remarks: Sequence[str]) -> AnsweredQuestion:
    """Return the basis of the table: predictions, intervals and weights."""
    lines = [
        f"{format_count(len(decided), 'workload')}, each with the alternative of the least expected regret.",
        "`library`: the MPI default is kept; its time is measured, or interpolated. All other times are predicted.",
        *_describe_intervals(decided["basis"]),
        "Statistically tied: the difference is within its 95 % interval, or at most 1 %.",
    ]
    for name, rows in decided.groupby("operation", sort=False):
        weights = Counter(rows["weights"]).most_common()
        for text, workloads in weights[:MAX_WEIGHT_SETS]:
            share = (
                ""
                if len(weights) == 1
                else f" at {workloads} of {format_count(len(rows), 'workload')}"
            )
            lines.append(f"Weights for {name}{share}: {text}.")
        if len(weights) > MAX_WEIGHT_SETS:
            lines.append(
                f"Weights for {name} at other workloads: {len(weights) - MAX_WEIGHT_SETS} more sets."
            )
    return AnsweredQuestion("Basis", (*lines, *(f"{remark}." for remark in remarks)))


def _describe_intervals(basis_texts: pd.Series) -> list[str]:
    """Return a sentence for each kind of interval and the number of its workloads. For intervals of
    residuals, the sentence is that of the most frequent basis."""
    lines = []
    bases = basis_texts.map(IntervalBasis.parse)
    kinds = bases.map(lambda basis: "" if basis.of_residuals else basis.sentence)
    for _, rows in bases.groupby(kinds, sort=False):
        (basis, _), *_ = Counter(rows).most_common(1)
        scope = (
            ""
            if len(rows) == len(basis_texts)
            else f" at {len(rows)} of {format_count(len(basis_texts), 'workload')}"
        )
        lines.append(f"Low and high{scope}: {basis.sentence}.")
    return lines


def tabulate_decisions(decided: pd.DataFrame) -> Table:
    times = {name: decided[name] * MICRO for name in ("seconds", "low", "high")}
    shown = decided.assign(**times, size=[format_size(number) for number in decided["bytes"]])
    columns = select_columns("Decisions", without=() if decided["leaves"].any() else ("leaves",))
    colours = assign_colours(decided["algorithm"])
    backgrounds = {
        "algorithm": [colours[name_without_argument(name)] for name in decided["algorithm"]]
    }
    return make_table(
        "Decisions", "Workloads", shown, columns, fixed=len(columns) - 8, backgrounds=backgrounds
    )


def tabulate_best_alternatives(name: str, rows: pd.DataFrame) -> tuple[Table, Table]:
    """Return the alternatives to use, and their predicted times: ranks (or leaves) × message
    sizes."""
    count_key = "leaves" if rows["leaves"].any() else "ranks"
    layouts = sorted({layout.partition(":")[0] for layout in rows["layout"]})
    alternatives = rows["algorithm"] + (", " + rows["layout"] if len(layouts) > 1 else "")
    colours = assign_colours(rows["algorithm"])
    cells = rows.assign(
        alternative_label=rows["as_good"].map(lambda ties: TIED_PREFIX * bool(ties)) + alternatives,
        time=rows["seconds"] * MICRO,
        colour=[colours[name_without_argument(name)] for name in rows["algorithm"]],
    )
    rows_at = {(getattr(row, count_key), row.bytes): row for row in cells.itertuples()}
    sizes = sorted(set(rows["bytes"]))
    counts = sorted(set(rows[count_key]))
    backgrounds = {}
    for length in sizes:
        rows_of_size = [rows_at.get((number, length)) for number in counts]
        backgrounds[f"= {length}"] = [getattr(row, "colour", "") for row in rows_of_size]

    def tabulate(title: str, key: str, kind: str, note: str) -> Table:
        further = (Column(f"= {length}", format_size(length), kind) for length in sizes)
        columns = (Column("over", count_key, "count"), *further)
        values = []
        for number in counts:
            rows_of_count = [rows_at.get((number, length)) for length in sizes]
            values.append((number, *(getattr(row, key, None) for row in rows_of_count)))
        return make_table(
            f"{name} {key}", title, values, columns, note=note, backgrounds=backgrounds
        )

    note = (
        f"{TIED_PREFIX.strip()}: statistically tied with others, which the sheet Decisions lists."
    )
    note += "" if len(layouts) > 1 else f" Layout: {layouts[0]}."
    return (
        tabulate(
            f"What to use for {name}, by {count_key} and message size",
            "alternative_label",
            "text",
            note,
        ),
        tabulate(
            "Predicted time [µs]",
            "time",
            "number",
            "A colour for each algorithm, with any argument.",
        ),
    )


RATIO_NOTE = (
    "Ratio: new over old, with the 95 % interval of two independent measurements. If the interval includes 1, or "
    "the ratio is within 1 % of it, the verdict is `same`."
)


def write_difference(old: Snapshot, new: Snapshot, changed: Sequence[Change], path: Path) -> None:
    answer = AnsweredQuestion("In short", (*describe_changes(old, new, changed), RATIO_NOTE))
    significant = [change for change in changed if change.verdict in CHANGED]
    sections = [
        Section(
            "Summary", "", (answer, tabulate_changes(significant, "Changes", "Significant changes"))
        )
    ]
    for kind, name in ((POINT, "Points"), (PARAMETER, "Parameters")):
        changes_of_kind = [change for change in changed if change.kind == kind]
        if changes_of_kind:
            sections.append(
                Section(name, RATIO_NOTE, (tabulate_changes(changes_of_kind, name, name),))
            )
    differences = make_table("Provenance", "", list(compare_provenance(old, new)), fixed=2)
    sections.append(Section("Provenance", "Differences.", (differences,)))
    title = f"Changes from {to_plain_value(old.name)} to {to_plain_value(new.name)}"
    write_xlsx(
        Report(
            experiment=f"{old.name} {new.name}",
            title=title,
            banner=_make_banner(old, new),
            sections=tuple(sections),
        ),
        path,
    )


def tabulate_changes(changed: Sequence[Change], name: str, title: str) -> Table:
    rows = []
    for change in changed:
        unit, factor = SHOWN_UNITS.get(change.unit, (change.unit, 1.0))
        values = (
            None if math.isnan(value) else value * factor for value in (change.old, change.new)
        )
        ratios = (
            None if math.isnan(value) else value
            for value in (change.ratio, change.low, change.high)
        )
        rows.append((change.platform, change.label, unit, *values, *ratios, change.verdict))
    return make_table(name, title, rows, select_columns("Changes"))


def write_history(snapshots: Sequence[Snapshot], lines: Sequence[HistoryLine], path: Path) -> None:
    """Write the ratios of several snapshots to the first one: means over the points of an
    operation, and single parameters."""
    names = [f"{number}. {snapshot.name}" for number, snapshot in enumerate(snapshots, 1)]
    further = (Column(f"at {number}", name, "ratio") for number, name in enumerate(names, 1))
    columns = [*select_columns("History"), *further]
    rows = [(line.kind, line.platform, line.label, *line.ratios) for line in lines]
    note = (
        "Ratio to the first result; of points, the geometric mean over the points of an operation "
        "in both."
    )
    blocks: list[Block] = [
        make_table("History", "Ratios to the first", rows, columns, note=note, fixed=3)
    ]
    for kind, title in ((POINT, "Measured points"), (PARAMETER, "Parameters")):
        most_changed = sorted(
            (line for line in lines if line.kind == kind), key=lambda line: -line.change
        )
        series = [
            Series(
                to_plain_value(f"{line.platform} {line.label}"),
                *_drop_nan(line.ratios),
                "both",
                row,
            )
            for row, line in enumerate(most_changed[:MAX_HISTORY_LINES])
        ]
        if series:
            note = (
                f"The {MAX_HISTORY_LINES} that changed most"
                if len(most_changed) > MAX_HISTORY_LINES
                else ""
            )
            axes = (
                Axis("number of the result", log=False),
                Axis("ratio to the first [×]", log=False),
            )
            blocks.append(Chart(f"History {kind}", title, *axes, tuple(series), note))
    heading = AnsweredQuestion("The results, from the oldest on", tuple(names))
    title = "The network over time"
    write_xlsx(
        Report(
            experiment="history",
            title=title,
            banner=_make_banner(*snapshots),
            sections=(Section("Summary", "", (heading, *blocks)),),
        ),
        path,
    )


MAX_HISTORY_LINES = 8  # lines of a chart: those that changed most


def _drop_nan(values: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    shown = [
        (float(number), value) for number, value in enumerate(values, 1) if not math.isnan(value)
    ]
    return tuple(number for number, _ in shown), tuple(value for _, value in shown)


def _make_banner(*snapshots: Snapshot) -> str:
    return make_simulation_banner(
        {to_plain_value(name) for snapshot in snapshots for name in snapshot.simulated}
    )


COMPARISON_SHEET = "Comparison"
MAX_COMPARISON_ROWS = 1 << 20
MAX_COMPARISON_COLUMNS = 80
NUMBER_LIMIT = 1e15  # numbers in a sheet are below this


@dataclass(frozen=True)
class ComparisonRow:
    """A row of the sheet Comparison. Fields have the names of the columns of a comparison table."""

    platform: str = ""
    simulated: str = ""
    operation: str = ""
    alternative: str = ""
    layout: str = ""
    point: str = ""
    ranks: int = 0
    leaves: int = 0
    bytes: int = 0
    waves: int = 1
    measured: float = nan  # seconds
    measured_low: float = nan
    measured_high: float = nan


TYPES = {field.name: field.type for field in fields(ComparisonRow)}
HEADERS = {name: find_field(tables.COMPARISON, name).title for name in TYPES}


def read_snapshot(path: Path) -> Snapshot:
    with open_received(path) as book:
        if COMPARISON_SHEET not in book.sheetnames:
            raise UserError(
                f"found no sheet {COMPARISON_SHEET} in it, wanted a report's workbook", file=path
            )
        points = list({row.point: row for row in _read_rows(book[COMPARISON_SHEET], path)}.values())
        sets = read_stored_sets(book, path)
    quantities = select_measured_quantities(points)
    for parameters in sets:
        quantities |= dict(list_parameter_quantities(parameters))
    simulated = {row.platform for row in points if row.simulated == format_simulated(True)}
    simulated |= {parameters.platform for parameters in sets if parameters.simulated}
    return Snapshot(
        name=make_printable(path.name, 80),
        quantities=quantities,
        texts={},
        simulated=frozenset(simulated),
    )


def _read_rows(sheet, path: Path) -> Iterator[ComparisonRow]:
    cells = enumerate(read_sheet_rows(sheet, MAX_COMPARISON_ROWS, MAX_COMPARISON_COLUMNS, path), 1)
    headers = next(
        (row for _, row in cells if {"platform", "simulated", "operation"} <= set(row)), ()
    )
    column_indices = {}
    for name, title in HEADERS.items():
        if title in headers:
            column_indices[name] = headers.index(title)
        elif name != "waves":
            raise UserError(f"found no column '{title}' in it", file=path, key=COMPARISON_SHEET)
    for number, row in cells:
        values = {
            name: row[index]
            for name, index in column_indices.items()
            if index < len(row) and row[index] is not None
        }
        if "point" not in values:
            return
        parsed: dict[str, Any] = {
            name: _parse_value(value, name, number, path) for name, value in values.items()
        }
        yield ComparisonRow(**parsed)


def _parse_value(value: Any, name: str, row: int, path: Path) -> str | float:
    """Return the text, count or time in seconds of a cell."""
    if TYPES[name] is str:
        return make_printable(value, 200)
    if value == "n/a" and TYPES[name] is float:
        return nan
    is_number = isinstance(value, int | float) and not isinstance(value, bool | Formula)
    if not (is_number and isfinite(value) and 0 <= value < NUMBER_LIMIT):
        location = f"{COMPARISON_SHEET}, row {row}, {HEADERS[name]}"
        raise UserError(
            f"found '{make_printable(value, 40)}', wanted a number", file=path, key=location
        )
    return int(value) if TYPES[name] is int else value / MICRO
