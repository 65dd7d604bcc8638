"""What a report's workbook says, to be laid beside another: who got it by mail has no folder of results."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path

from commodel.compare.snapshot import Snapshot, points_of, values_of
from commodel.errors import UserError, one_line
from commodel.report.editedsets import written_sets
from commodel.report.received import Formula, received, rows
from commodel.report.shape import MICRO
from commodel.report.words import simulation

COMPARISON, MOST_ROWS, MOST_COLUMNS = "Comparison", 1 << 20, 80
LARGEST = 1e15
TEXTS = ("platform", "simulated", "operation", "choice", "layout", "point")  # as the columns are called
COUNTS = {"ranks": "ranks", "leaves": "leaves", "bytes": "bytes [B]", "waves": "waves"}
TIMES = {"measured": "measured [µs]", "measured_low": "measured low [µs]", "measured_high": "measured high [µs]"}
HEADS = {name: name for name in TEXTS} | COUNTS | TIMES
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
