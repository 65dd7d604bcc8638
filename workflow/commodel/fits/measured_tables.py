"""Measured collectives from a table of the user or of another tool: points and their times.

The columns are operation, algorithm or topology, ranks, bytes, seconds, layout if ranks share
nodes, setting (see `files/quantities.py`) and statistic: which ranks a time is of. Other columns
are ignored. Alternatives are compared, so all points of a workload have one statistic: the wanted
one, else that of most of its points, else the first of STATISTICS. Different workloads may have
different ones, such as single messages and collectives of OSU.

The meaning of `bytes` depends on the operation (see `operations`): for gather and allgather it is
one block, not the whole result. Rows of one point in one setting are samples, and the median is its
time. Rows of the algorithm `library` have no schedule. They are counted, and their times are a
baseline of choices; or they are read alone (`of_default`), to predict the MPI default from them.
Rows of several waves are only counted, since their times are not those of one pattern.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from commodel.errors import Mistakes, UserError
from commodel.files.quantities import parse_setting, parse_statistic
from commodel.files.safe_paths import check_inside
from commodel.files.tables import add_line_to_errors, parse_cell, read_rows
from commodel.patterns.points import PlatformResources, make_point
from commodel.records import LIBRARY, ROOTED_OPERATIONS, Point, Statistic
from commodel.units import (
    format_count,
    parse_bytes,
    parse_count,
    parse_number_of_seconds,
    parse_waves,
)


def _check_spec(spec: str) -> str:
    check_inside(spec)
    return spec


IMPORT_ADVICE = (
    "; convert a table with other column names: commodel import csv FILE --column NAME=COLUMN -o "
    "TABLE"
)
# Statistics from the best for a fit to the worst: what is nearest to the time until an operation is
# complete.
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
    """The measured points and their times, once for each setting and in the order of the table.
    Also the numbers of unused rows."""

    points: list[Point]
    seconds: list[float]
    unpredicted: int  # rows of the library default
    streams: int = 0  # rows of several waves
    # of each point in the tables, as `times.csv:3`
    places: dict[Point, list[str]] = field(default_factory=dict)
    # of each point, blank if it has none; empty list: no row has one
    settings: list[str] = field(default_factory=list)
    # of the library default, by workload, setting
    library: dict[tuple[str, str], float] = field(default_factory=dict)
    other_statistics: int = 0  # points without a time of the statistic of their workload
    is_assumed: bool = False  # whether some rows do not state the statistic
    # rows that state no layout: each rank counts as one on a node of its own
    without_layout: int = 0


def has_algorithms(*paths: Path) -> bool:
    """Return whether a table has rows of other alternatives than the MPI default."""
    return any(row.get("algorithm") != LIBRARY for _, _, row in _read_tables(paths))


def has_defaults(*paths: Path) -> bool:
    """Return whether a table has rows of the MPI default."""
    return any(row.get("algorithm") == LIBRARY for _, _, row in _read_tables(paths))


def read_points(
    *paths: Path, statistic: Statistic | None = None, of_default: bool = False
) -> Measured:
    """Return the points of one or several tables, or with `of_default` those of the MPI default.
    Rows of one point in several tables are samples of it. `statistic` is that of rows that state
    none, and the one to read where a workload has several; without it, such rows count as
    completions."""
    samples: dict[tuple[Point, str], list[float]] = {}
    places: dict[Point, list[str]] = {}
    library: dict[tuple[str, str, Statistic], list[float]] = {}
    unpredicted = streams = without_layout = 0
    assumed = statistic or Statistic.COMPLETION
    are_stated: set[bool] = set()
    mistakes = Mistakes()
    for path, line, row in _read_tables(paths):
        if of_default and row.get("algorithm") != LIBRARY:
            continue
        if row.get("algorithm") == LIBRARY and not of_default:
            unpredicted += 1
            with suppress(UserError):  # mistakes in a row that is not fitted are ignored
                point, setting, seconds = _read_row(row, assumed)
                if not _has_several_waves(row):
                    library.setdefault((point.workload, setting, point.statistic), []).append(
                        seconds
                    )
            continue
        with add_line_to_errors(path, line, mistakes):
            if _has_several_waves(row):
                streams += 1
                continue
            point, setting, seconds = _read_row(row, assumed)
            are_stated.add(_states_statistic(row))
            without_layout += not row.get("layout")
            samples.setdefault((point, setting), []).append(seconds)
            places.setdefault(point, []).append(f"{path.name}:{line}")
    mistakes.raise_any()
    if not samples:
        unused = []
        if unpredicted:
            rows = f"{format_count(unpredicted, 'row')} of algorithm '{LIBRARY}'"
            advice = f"`--model {LIBRARY}` predicts the MPI default from them"
            unused.append(f"{rows}, whose schedule is unknown: {advice}")
        if of_default and not streams:
            raise UserError(
                f"found no row of algorithm '{LIBRARY}', wanted its times", file=paths[0]
            )
        unused += (
            [f"{format_count(streams, 'row')} of several waves, which are not fitted"]
            if streams
            else []
        )
        raise UserError(f"found only {' and '.join(unused)}", file=paths[0])
    found = dict.fromkeys(point.statistic for point, _ in samples)
    if statistic and statistic not in found:
        names = " and ".join(f"'{name}'" for name in found)
        raise UserError(
            f"found times of {names}, wanted '{statistic}'", file=paths[0], key="--statistic"
        )
    chosen = _choose_statistics((point for point, _ in samples), statistic)
    read = {
        key: times for key, times in samples.items() if key[0].statistic is chosen[key[0].workload]
    }
    default = {
        (workload, setting): times
        for (workload, setting, stated), times in library.items()
        if stated is chosen.get(workload, stated)
    }
    return Measured(
        [point for point, _ in read],
        [median(times) for times in read.values()],
        unpredicted,
        streams,
        places,
        [setting for _, setting in read],
        {workload: median(times) for workload, times in default.items()},
        other_statistics=len(_forget_statistics(samples) - _forget_statistics(read)),
        is_assumed=statistic is None and False in are_stated,
        without_layout=without_layout,
    )


def _choose_statistics(points: Iterable[Point], wanted: Statistic | None) -> dict[str, Statistic]:
    """Return the statistic of the points to read, for each workload: the wanted one if it has that,
    else the one that most of its points have; of several, the first of STATISTICS."""
    counts: dict[str, Counter[Statistic]] = {}
    for point in set(points):
        counts.setdefault(point.workload, Counter())[point.statistic] += 1
    return {
        workload: wanted if wanted and wanted in count else max(STATISTICS, key=count.__getitem__)
        for workload, count in counts.items()
    }


def _forget_statistics(samples: Iterable[tuple[Point, str]]) -> set[Point]:
    return {replace(point, statistic=Statistic.COMPLETION) for point, _ in samples}


def _read_tables(paths: Iterable[Path]) -> Iterator[tuple[Path, int, dict[str, str]]]:
    """Yield the rows of all tables, each with its file and line."""
    for path in paths:
        for line, row in read_rows(path, ("operation", "seconds"), advice=IMPORT_ADVICE):
            yield path, line, row


def _has_several_waves(row: dict[str, str]) -> bool:
    return bool(row.get("waves")) and parse_cell(row, "waves", parse_waves) > 1


def _states_statistic(row: dict[str, str]) -> bool:
    return row.get("statistic", "") not in ("", Statistic.UNKNOWN)


def _read_row(row: dict[str, str], assumed: Statistic) -> tuple[Point, str, float]:
    """Return the point, its setting and its time, of the `assumed` statistic if the row states
    none."""
    point = make_point(PlatformResources.unlimited(), _make_combination(row))
    seconds = parse_cell(row, "seconds", parse_number_of_seconds)
    setting = parse_cell(row, "setting", parse_setting) if row.get("setting") else ""
    if not seconds:
        raise UserError(f"found '{row['seconds']}', wanted a time above 0", key="seconds")
    statistic = parse_cell(row, "statistic", parse_statistic) if _states_statistic(row) else assumed
    return replace(point, statistic=statistic), setting, seconds


def _make_combination(row: dict[str, str]) -> dict[str, Any]:
    if not row["operation"]:
        raise UserError("found nothing, wanted the name of an operation", key="operation")
    return {name: parse_cell(row, name, parse) for name, parse in COLUMNS.items() if row.get(name)}


def describe_statistics(points: Iterable[Point]) -> str:
    """Return how many points have times of which statistic, such as `20 points of completion, 4 of
    rank mean`."""
    counts = Counter(point.statistic for point in points)
    (first, count), *less_frequent = counts.most_common()
    return ", ".join(
        [
            f"{format_count(count, 'point')} of {first}",
            *(f"{count} of {name}" for name, count in less_frequent),
        ]
    )


def describe_assumed_statistic(measured: Measured) -> str:
    """Return a note if the times of rooted operations were taken for completions without the
    tables' saying so."""
    rooted = sorted({point.operation for point in measured.points} & ROOTED_OPERATIONS)
    if not measured.is_assumed or not rooted:
        return ""
    return (
        f"the statistic of some rows is unknown: times of {', '.join(rooted)} count as completions; "
        f"for those that OSU printed give --statistic '{Statistic.RANK_MEAN}'"
    )
