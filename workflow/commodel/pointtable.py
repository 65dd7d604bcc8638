"""Measured collectives from a table that a person or another tool wrote: points, and how long each took.

Columns operation, algorithm or topology, ranks, bytes, seconds, and layout if ranks share nodes; any others are not
looked at. `bytes` means what it means for the operation here (see `operations`): a block, not the whole
result, of gather and allgather. Rows of one point are samples of it: its time is their median.
"""

from collections.abc import Callable
from pathlib import Path
from statistics import median

from commodel.errors import UserError
from commodel.points import Setting, make_point
from commodel.records import LIBRARY, Point
from commodel.tables import read_rows
from commodel.units import parse_bytes, parse_count, parse_seconds

COLUMNS: dict[str, Callable] = {
    "operation": str,
    "algorithm": str,
    "topology": str,
    "layout": str,
    "ranks": parse_count,
    "bytes": parse_bytes,
}


def read_points(path: Path) -> tuple[list[Point], list[float]]:
    """Every point of the table once, in the order of its first row."""
    samples: dict[Point, list[float]] = {}
    for line, row in read_rows(path, ("operation", "seconds")):
        try:
            point = make_point(Setting.unlimited(), _combination(row))
            if not point.priced:
                raise UserError(
                    f"found '{LIBRARY}', whose messages no family knows: leave the row out", key="algorithm"
                )
            seconds = _read(row, "seconds", parse_seconds)
            if not seconds:
                raise UserError(f"found '{row['seconds']}', wanted a time above 0", key="seconds")
        except UserError as error:
            raise UserError(error.found, file=path, line=line, key=error.key) from None
        samples.setdefault(point, []).append(seconds)
    return list(samples), [median(times) for times in samples.values()]


def _combination(row: dict[str, str]) -> dict[str, object]:
    if not row["operation"]:
        raise UserError("found nothing, wanted the name of an operation", key="operation")
    return {name: _read(row, name, parse) for name, parse in COLUMNS.items() if row.get(name)}


def _read(row: dict[str, str], column: str, parse: Callable):
    try:
        return parse(row[column])
    except UserError as error:
        raise UserError(error.found, key=column) from None
