"""Workbooks of what changed: between two times, and over several.

What a report's workbook says, to be laid beside another: who got it by mail has no folder of results."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path

from commodel.compare.snapshots import (
    CHANGED,
    PARAMETER,
    POINT,
    Change,
    Line,
    Snapshot,
    points_of,
    provenance,
    sentences,
    values_of,
)
from commodel.errors import UserError, one_line
from commodel.files import tables
from commodel.files.tables import field_of
from commodel.reports.received_workbooks import Formula, received, rows, written_sets
from commodel.reports.sections.evidence import UNITS
from commodel.reports.shape import MICRO, Answer, Axis, Chart, Column, Report, Section, Series, Table
from commodel.reports.values import plain, simulation
from commodel.reports.xlsx.workbook import write_xlsx

MEANT = (
    "Ratio: new over old. Its interval is that of two independent measurements; where it holds 1, the change is "
    "explained by noise, and the verdict is `same`."
)


def write_difference(old: Snapshot, new: Snapshot, changed: Sequence[Change], path: Path) -> None:
    in_short = Answer("In short", (*sentences(old, new, changed), MEANT))
    sections = [Section("Summary", "", (in_short, table([change for change in changed if change.verdict in CHANGED])))]
    for kind, name in ((POINT, "Points"), (PARAMETER, "Parameters")):
        if of_kind := [change for change in changed if change.kind == kind]:
            sections.append(Section(name, MEANT, (table(of_kind, name),)))
    titles = [Column(key, key) for key in ("platform", "what", "old", "new")]
    rows = tuple(tuple(plain(text) for text in row) for row in provenance(old, new))
    sections.append(Section("Provenance", "What differs.", (Table("Provenance", "", tuple(titles), rows, fixed=2),)))
    title = f"What changed from {plain(old.name)} to {plain(new.name)}"
    write_xlsx(Report(f"{old.name} {new.name}", title, _banner(old, new), tuple(sections)), path)


def table(changed: Sequence[Change], name: str = "Changes") -> Table:
    columns = [Column(key, key) for key in ("platform", "name", "unit")]
    columns += [Column(key, key, "number") for key in ("old", "new")]
    columns += [Column(key, head, "ratio") for key, head in (("ratio", "new / old"), ("low", "low"), ("high", "high"))]
    columns.append(Column("verdict", "verdict"))
    rows = []
    for change in changed:
        unit, factor = UNITS.get(change.unit, (change.unit, 1.0))
        values = (None if math.isnan(value) else value * factor for value in (change.old, change.new))
        ratios = (None if math.isnan(value) else value for value in (change.ratio, change.low, change.high))
        rows.append((plain(change.platform), plain(change.name), plain(unit), *values, *ratios, change.verdict))
    return Table(name, "What changed beyond its interval" if name == "Changes" else name, tuple(columns), tuple(rows))


def write_history(snapshots: Sequence[Snapshot], lines: Sequence[Line], path: Path) -> None:
    """Average ratios of the points of an operation, and single parameters, drawn in a row."""
    names = [f"{number}. {snapshot.name}" for number, snapshot in enumerate(snapshots, 1)]
    columns = [Column(key, key) for key in ("kind", "platform", "what")]
    columns += [Column(f"at {number}", name, "ratio") for number, name in enumerate(names, 1)]
    rows = tuple((line.kind, plain(line.platform), plain(line.name), *line.ratios) for line in lines)
    note = "Over the first; of points the geometric mean of all that an operation has in common with it."
    blocks = [Table("History", "Ratios to the first", tuple(columns), rows, note=note, fixed=3)]
    for kind, title in ((POINT, "Measured points"), (PARAMETER, "Parameters")):
        drawn = sorted((line for line in lines if line.kind == kind), key=lambda line: -line.change)
        series = [
            Series(plain(f"{line.platform} {line.name}"), *_drawn(line.ratios), "both", place)
            for place, line in enumerate(drawn[:MOST_LINES])
        ]
        if series:
            note = f"The {MOST_LINES} that changed most" if len(drawn) > MOST_LINES else ""
            axes = Axis("number of the result", log=False), Axis("ratio to the first [×]", log=False)
            blocks.append(Chart(f"History {kind}", title, *axes, tuple(series), note))
    about = Answer("The results, from the oldest on", tuple(names))
    title = "The network over time"
    write_xlsx(Report("history", title, _banner(*snapshots), (Section("Summary", "", (about, *blocks)),)), path)


MOST_LINES = 8


def _drawn(values: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    shown = [(float(number), value) for number, value in enumerate(values, 1) if not math.isnan(value)]
    return tuple(number for number, _ in shown), tuple(value for _, value in shown)


def _banner(*snapshots: Snapshot) -> str:
    names = ", ".join(sorted({plain(name) for snapshot in snapshots for name in snapshot.simulated}))
    return f"SIMULATED: every measurement on {names} comes from a simulator, not from hardware." if names else ""


COMPARISON, MOST_ROWS, MOST_COLUMNS = "Comparison", 1 << 20, 80
LARGEST = 1e15
TEXTS = ("platform", "simulated", "operation", "choice", "layout", "point")  # as the columns are called
COUNTS, TIMES = ("ranks", "leaves", "bytes", "waves"), ("measured", "measured_low", "measured_high")
HEADS = {name: field_of(tables.COMPARISON, name).title for name in (*TEXTS, *COUNTS, *TIMES)}
OPTIONAL = {"waves"}


@dataclass(frozen=True)
class Row:
    """Of the sheet, with the names of a comparison's columns."""

    platform: str
    simulated: str
    operation: str
    choice: str
    layout: str
    point: str
    ranks: int = 0
    leaves: int = 0
    bytes: int = 0
    waves: int = 1
    measured: float = nan
    measured_low: float = nan
    measured_high: float = nan


def snapshot(path: Path) -> Snapshot:
    with received(path) as book:
        if COMPARISON not in book.sheetnames:
            raise UserError(f"found no sheet {COMPARISON} in it, wanted a report's workbook", file=path)
        points = list({row.point: row for row in _rows(book[COMPARISON], path)}.values())
        sets = written_sets(book, path)
    quantities = points_of(points)
    for parameters in sets:
        quantities |= dict(values_of(parameters))
    simulated = {row.platform for row in points if row.simulated == simulation(True)}
    simulated |= {parameters.platform for parameters in sets if parameters.simulated}
    return Snapshot(one_line(path.name, 80), quantities, {}, frozenset(simulated))


def _rows(sheet, path: Path) -> Iterator[Row]:
    cells = enumerate(rows(sheet, MOST_ROWS, MOST_COLUMNS, path), 1)
    heads = next((row for _, row in cells if row[:2] == TEXTS[:2]), ())
    places = {name: heads.index(head) for name, head in HEADS.items() if head in heads}
    if missing := [HEADS[name] for name in HEADS if name not in places and name not in OPTIONAL]:
        raise UserError(f"found no column '{missing[0]}' in it", file=path, key=COMPARISON)
    for number, row in cells:
        values = {name: row[place] for name, place in places.items() if place < len(row) and row[place] is not None}
        if "point" not in values:
            return
        texts = {name: one_line(values.get(name, ""), 200) for name in TEXTS}
        numbers = {name: _number(value, name, number, path) for name, value in values.items() if name not in TEXTS}
        counts = {name: int(value) for name, value in numbers.items() if name in COUNTS}
        yield Row(**texts, **counts, **{name: value / MICRO for name, value in numbers.items() if name in TIMES})


def _number(value: object, name: str, row: int, path: Path) -> float:
    if value == "n/a" and name in TIMES:
        return nan
    plain = isinstance(value, int | float) and not isinstance(value, bool | Formula)
    if not (plain and isfinite(value) and 0 <= value < LARGEST):
        where = f"{COMPARISON}, row {row}, {HEADS[name]}"
        raise UserError(f"found '{one_line(value, 40)}', wanted a number", file=path, key=where)
    return float(value)
