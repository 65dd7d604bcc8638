"""Measured collectives from a table of the user or of another tool: points and their times.

The columns are operation, algorithm or topology, ranks, bytes, seconds, layout if ranks share nodes, setting (see
`files/quantities.py`) and statistic: which ranks a time is of. Other columns are ignored. All points have one
statistic, the first of STATISTICS that all have, or the wanted one.

The meaning of `bytes` depends on the operation (see `operations`): for gather and allgather it is one block, not the
whole result. Rows of one point in one setting are samples, and the median is its time. Rows of the algorithm `library`
have no prediction. They are counted, and their times are a baseline of choices. Rows of several waves are only counted,
since their times are not those of one pattern.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from commodel.errors import Mistakes, UserError
from commodel.files.quantities import parse_setting, parse_statistic
from commodel.files.safe_paths import check_inside
from commodel.files.tables import add_line_to_errors, parse_cell, read_rows
from commodel.patterns.points import PlatformResources, make_point
from commodel.records import LIBRARY, ROOTED_OPERATIONS, Point, Statistic
from commodel.units import format_count, parse_bytes, parse_count, parse_number_of_seconds, parse_waves


def _check_spec(spec: str) -> str:
    check_inside(spec)
    return spec


IMPORT_ADVICE = "; convert a table with other column names: commodel import csv FILE --column NAME=COLUMN -o TABLE"
# Statistics from the best for a fit to the worst: what is nearest to the time until an operation is complete.
STATISTICS = (Statistic.COMPLETION, Statistic.LAST_RANK, Statistic.RANK_MEAN, Statistic.FIRST_RANK)
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
    statistic: Statistic = Statistic.COMPLETION  # of all times
    other_statistics: int = 0  # points that have only times of another statistic
    is_assumed: bool = False  # whether some rows do not state the statistic


def read_points(*paths: Path, statistic: Statistic | None = None) -> Measured:
    """Return the points of one or several tables. Rows of one point in several tables are samples of it. `statistic` is
    that of the rows to read, and of rows that state none; without it, such rows count as completions."""
    samples: dict[tuple[Point, str, Statistic], list[float]] = {}
    places: dict[Point, list[str]] = {}
    library: dict[tuple[str, str, Statistic], list[float]] = {}
    unpredicted = streams = 0
    assumed = statistic or Statistic.COMPLETION
    are_stated: set[bool] = set()
    mistakes = Mistakes()
    for path, line, row in _read_tables(paths):
        if row.get("algorithm") == LIBRARY:
            unpredicted += 1
            with suppress(UserError):  # mistakes in a row that is not fitted are ignored
                point, setting, stated, seconds = _read_row(row, assumed)
                if not _has_several_waves(row):
                    library.setdefault((point.workload, setting, stated), []).append(seconds)
            continue
        with add_line_to_errors(path, line, mistakes):
            if _has_several_waves(row):
                streams += 1
                continue
            point, setting, stated, seconds = _read_row(row, assumed)
            are_stated.add(_states_statistic(row))
            samples.setdefault((point, setting, stated), []).append(seconds)
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
    chosen = _choose_statistic(samples, statistic, paths[0])
    of_statistic = {(point, setting): times for (point, setting, stated), times in samples.items() if stated is chosen}
    default = {(workload, setting): times for (workload, setting, stated), times in library.items() if stated is chosen}
    return Measured(
        [point for point, _ in of_statistic],
        [median(times) for times in of_statistic.values()],
        unpredicted,
        streams,
        places,
        [setting for _, setting in of_statistic],
        {workload: median(times) for workload, times in default.items()},
        chosen,
        other_statistics=len({point for point, _, _ in samples} - {point for point, _ in of_statistic}),
        is_assumed=statistic is None and False in are_stated,
    )


def _choose_statistic(
    samples: Iterable[tuple[Point, str, Statistic]], wanted: Statistic | None, path: Path
) -> Statistic:
    """Return the statistic of the rows to read: the wanted one, else the best that all points have."""
    stated: dict[Statistic, set[Point]] = {}
    for point, _, name in samples:
        stated.setdefault(name, set()).add(point)
    if wanted and wanted not in stated:
        names = " and ".join(f"'{name}'" for name in stated)
        raise UserError(f"found times of {names}, wanted '{wanted}'", file=path, key="--statistic")
    points = set().union(*stated.values())
    complete = [name for name in STATISTICS if stated.get(name) == points]
    if not (wanted or complete):
        counts = ", ".join(f"{len(of_name)} points with '{name}'" for name, of_name in stated.items())
        raise UserError(f"found {counts}, wanted one statistic for all: give --statistic", file=path, key="statistic")
    return wanted or complete[0]


def _read_tables(paths: Iterable[Path]) -> Iterator[tuple[Path, int, dict[str, str]]]:
    """Yield the rows of all tables, each with its file and line."""
    for path in paths:
        for line, row in read_rows(path, ("operation", "seconds"), advice=IMPORT_ADVICE):
            yield path, line, row


def _has_several_waves(row: dict[str, str]) -> bool:
    return bool(row.get("waves")) and parse_cell(row, "waves", parse_waves) > 1


def _states_statistic(row: dict[str, str]) -> bool:
    return row.get("statistic", "") not in ("", Statistic.UNKNOWN)


def _read_row(row: dict[str, str], assumed: Statistic) -> tuple[Point, str, Statistic, float]:
    """Return the point, its setting and its time, of the `assumed` statistic if the row states none."""
    point = make_point(PlatformResources.unlimited(), _make_combination(row))
    seconds = parse_cell(row, "seconds", parse_number_of_seconds)
    setting = parse_cell(row, "setting", parse_setting) if row.get("setting") else ""
    if not seconds:
        raise UserError(f"found '{row['seconds']}', wanted a time above 0", key="seconds")
    stated = parse_cell(row, "statistic", parse_statistic) if _states_statistic(row) else assumed
    return point, setting, stated, seconds


def _make_combination(row: dict[str, str]) -> dict[str, Any]:
    if not row["operation"]:
        raise UserError("found nothing, wanted the name of an operation", key="operation")
    return {name: parse_cell(row, name, parse) for name, parse in COLUMNS.items() if row.get(name)}


def describe_assumed_statistic(measured: Measured) -> str:
    """Return a note if the times of rooted operations were taken for completions without the tables' saying so."""
    rooted = sorted({point.operation for point in measured.points} & ROOTED_OPERATIONS)
    if not measured.is_assumed or not rooted:
        return ""
    return (
        f"the statistic of some rows is unknown: times of {', '.join(rooted)} count as completions; "
        f"for those that OSU printed give --statistic '{Statistic.RANK_MEAN}'"
    )
