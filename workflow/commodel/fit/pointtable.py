"""Measured collectives from a table that a person or another tool wrote: points, and how long each took.

Columns operation, algorithm or topology, ranks, bytes, seconds, and layout if ranks share nodes; any others are not
looked at. `bytes` means what it means for the operation here (see `operations`): a block, not the whole
result, of gather and allgather. Rows of one point are samples of it: its time is their median. Rows of the algorithm
`library`, which is whatever an MPI library chose, have no price and are only counted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from commodel.errors import UserError
from commodel.files.project import check_inside
from commodel.files.tables import cell, read_rows
from commodel.patterns.points import Setting, make_point
from commodel.records import LIBRARY, Point
from commodel.units import parse_bytes, parse_count, parse_number_of_seconds


def _own(spec: str) -> str:
    check_inside(spec)
    return spec


COLUMNS: dict[str, Callable] = {
    "operation": str,
    "algorithm": str,
    "topology": _own,
    "layout": _own,
    "ranks": parse_count,
    "bytes": parse_bytes,
}


@dataclass(frozen=True)
class Measured:
    """Every point of a table once, in the order of its first row, its time, and how many rows had no price."""

    points: list[Point]
    seconds: list[float]
    unpriced: int


def read_points(path: Path) -> Measured:
    samples: dict[Point, list[float]] = {}
    unpriced = 0
    for line, row in read_rows(path, ("operation", "seconds")):
        if row.get("algorithm") == LIBRARY:
            unpriced += 1
            continue
        try:
            point = make_point(Setting.unlimited(), _combination(row))
            seconds = cell(row, "seconds", parse_number_of_seconds)
            if not seconds:
                raise UserError(f"found '{row['seconds']}', wanted a time above 0", key="seconds")
        except UserError as error:
            raise UserError(error.found, file=path, line=line, key=error.key) from None
        samples.setdefault(point, []).append(seconds)
    if not samples:
        raise UserError(f"found {unpriced} rows of algorithm '{LIBRARY}' only: what it does is not known", file=path)
    return Measured(list(samples), [median(times) for times in samples.values()], unpriced)


def _combination(row: dict[str, str]) -> dict[str, object]:
    if not row["operation"]:
        raise UserError("found nothing, wanted the name of an operation", key="operation")
    return {name: cell(row, name, parse) for name, parse in COLUMNS.items() if row.get(name)}
