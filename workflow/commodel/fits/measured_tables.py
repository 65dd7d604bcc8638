"""Measured collectives from a table of the user or of another tool: points and their times.

The columns are operation, algorithm or topology, ranks, bytes, seconds, layout if ranks share nodes, and setting (see
`files/quantities.py`). Other columns are ignored. The meaning of `bytes` depends on the operation (see `operations`):
for gather and allgather it is one block, not the whole result. Rows of one point in one setting are samples, and the
median is its time. Rows of the algorithm `library` have no prediction. They are counted, and their times are a
baseline of choices. Rows of several waves are only counted, since their times are not those of one pattern.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from commodel.errors import Mistakes, UserError
from commodel.files.quantities import parse_setting
from commodel.files.safe_paths import check_inside
from commodel.files.tables import add_line_to_errors, parse_cell, read_rows
from commodel.patterns.points import PlatformResources, make_point
from commodel.records import LIBRARY, Point
from commodel.units import format_count, parse_bytes, parse_count, parse_number_of_seconds, parse_waves


def _check_spec(spec: str) -> str:
    check_inside(spec)
    return spec


IMPORT_ADVICE = "; convert a table with other column names: commodel import csv FILE --column NAME=COLUMN -o TABLE"
COLUMNS: dict[str, Callable] = {
    "operation": _check_spec,
    "algorithm": str,
    "topology": _check_spec,
    "layout": _check_spec,
    "ranks": parse_count,
    "bytes": parse_bytes,
}


@dataclass(frozen=True)
class Measured:
    """The measured points and their times, once for each setting and in the order of the table. Also the numbers of
    unused rows."""

    points: list[Point]
    seconds: list[float]
    unpredicted: int  # rows of the library default
    streams: int = 0  # rows of several waves
    places: dict[Point, list[str]] = field(default_factory=dict)  # of each point in the tables, as `times.csv:3`
    settings: list[str] = field(default_factory=list)  # of each point, blank if it has none; empty list: no row has one
    library: dict[tuple[str, str], float] = field(default_factory=dict)  # of the library default, by workload, setting


def read_points(*paths: Path) -> Measured:
    """Return the points of one or several tables. Rows of one point in several tables are samples of it."""
    samples: dict[tuple[Point, str], list[float]] = {}
    places: dict[Point, list[str]] = {}
    library: dict[tuple[str, str], list[float]] = {}
    unpredicted = streams = 0
    mistakes = Mistakes()
    for path, line, row in _read_tables(paths):
        if row.get("algorithm") == LIBRARY:
            unpredicted += 1
            with suppress(UserError):  # mistakes in a row that is not fitted are ignored
                point, setting, seconds = _read_row(row)
                if not _has_several_waves(row):
                    library.setdefault((point.workload, setting), []).append(seconds)
            continue
        with add_line_to_errors(path, line, mistakes):
            if _has_several_waves(row):
                streams += 1
                continue
            point, setting, seconds = _read_row(row)
            samples.setdefault((point, setting), []).append(seconds)
            places.setdefault(point, []).append(f"{path.name}:{line}")
    mistakes.raise_any()
    if not samples:
        unused = (
            [f"{format_count(unpredicted, 'row')} of algorithm '{LIBRARY}', whose schedule is unknown"]
            if unpredicted
            else []
        )
        unused += [f"{format_count(streams, 'row')} of several waves, which are not fitted"] if streams else []
        raise UserError(f"found only {' and '.join(unused)}", file=paths[0])
    points, settings = [point for point, _ in samples], [setting for _, setting in samples]
    medians = [median(times) for times in samples.values()]
    library_seconds = {workload: median(times) for workload, times in library.items()}
    return Measured(points, medians, unpredicted, streams, places, settings, library_seconds)


def _read_tables(paths: Iterable[Path]) -> Iterator[tuple[Path, int, dict[str, str]]]:
    """Yield the rows of all tables, each with its file and line."""
    for path in paths:
        for line, row in read_rows(path, ("operation", "seconds"), advice=IMPORT_ADVICE):
            yield path, line, row


def _has_several_waves(row: dict[str, str]) -> bool:
    return bool(row.get("waves")) and parse_cell(row, "waves", parse_waves) > 1


def _read_row(row: dict[str, str]) -> tuple[Point, str, float]:
    point = make_point(PlatformResources.unlimited(), _make_combination(row))
    seconds = parse_cell(row, "seconds", parse_number_of_seconds)
    setting = parse_cell(row, "setting", parse_setting) if row.get("setting") else ""
    if not seconds:
        raise UserError(f"found '{row['seconds']}', wanted a time above 0", key="seconds")
    return point, setting, seconds


def _make_combination(row: dict[str, str]) -> dict[str, Any]:
    if not row["operation"]:
        raise UserError("found nothing, wanted the name of an operation", key="operation")
    return {name: parse_cell(row, name, parse) for name, parse in COLUMNS.items() if row.get(name)}
