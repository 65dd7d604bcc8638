"""Formats of files of other tools, one module each. The `FORMAT` of a module reads measured times or a parameter set,
or names a format that is only written.

This module has what readers share: a measured time (`Time`, `Readings`), limits, and the parsing of numbers from
unknown sources. Times are of collectives by their names in commodel. Half a round trip of two ranks is a linear
broadcast over the two, which is one message. The library default has the algorithm `library`: its times can be
reported, not predicted. Modules about patterns are imported inside functions, since shell completion asks every format
for its title and has to be fast.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from commodel.errors import UserError
from commodel.files.safe_paths import check_inside
from commodel.files.safe_reading import MIB, read_lines
from commodel.records import LIBRARY
from commodel.units import MAX_BYTES, MAX_COUNT, MAX_SECONDS, shown

if TYPE_CHECKING:
    from commodel.parameters import ParameterSet

MAX_FILE = 256 * MIB
MOST_NAMED = 12  # of what was left out, in a message
ONE_MESSAGE = ("bcast", "linear", 2)
SLOWEST = "mean of the slowest rank"  # statistics; for a collective's end the nearest that tools print
MPI_NAMES = {  # as tools write them, lower case and without separators
    "bcast": "bcast",
    "broadcast": "bcast",
    "scatter": "scatter",
    "gather": "gather",
    "reduce": "reduce",
    "allreduce": "allreduce",
    "reducescatter": "reduce-scatter",
    "reducescatterblock": "reduce-scatter",
    "allgather": "allgather",
    "alltoall": "alltoall",
    "barrier": "barrier",
}


@dataclass(frozen=True, slots=True)
class Time:
    """A row of a table of measured collectives, with its source; `statistic` names what `seconds` is, such as a
    median."""

    operation: str
    algorithm: str
    layout: str
    ranks: int
    bytes: int
    seconds: float
    statistic: str
    setting: str  # name of the circumstances of the measurement, see `files/quantities.py`
    source: str


@dataclass(frozen=True)
class Given:
    """Properties of the measurements that the user states because a file lacks them; empty or 0: not stated."""

    operation: str = ""
    algorithm: str = ""
    layout: str = ""
    ranks: int = 0
    columns: tuple[str, ...] = ()  # NAME=COLUMN or NAME=COLUMN:UNIT
    metadata: str = ""  # the file that describes the measurements


@dataclass
class Readings:
    """The times of files, and the number of rows left out because commodel has no such operation or algorithm."""

    times: list[Time] = field(default_factory=list)
    left_out: Counter = field(default_factory=Counter)
    remarks: list[str] = field(default_factory=list)  # a line each

    def take(self, place: Place, name: str, chosen: str, ranks: int, size: int, seconds: float, statistic: str) -> None:
        """Add a row of a collective, or count it as left out.

        `chosen` is its algorithm, empty for the library default. With 0 bytes to move, a library returns at once, so
        such a row is no sample.
        """
        from commodel.patterns.operations import base, operations, sized

        operation = MPI_NAMES.get(plain(name), name if base(name) in operations() else "")
        if operation and sized(operation) and not size and chosen in ("", LIBRARY):
            self.left_out[f"{name} of 0 bytes"] += 1
            return
        chosen = place.given.algorithm or chosen or LIBRARY
        if not operation or (chosen != LIBRARY and not _has_algorithm(operation, chosen)):
            self.left_out[name if chosen == LIBRARY else f"{name} {chosen}"] += 1
            return
        ranks = place.given.ranks or ranks
        if not ranks:
            raise place.error("the file does not say how many ranks there were; give --ranks")
        size = size if sized(operation) else 0
        self._add(place, operation, chosen, ranks, size, seconds, statistic)

    def take_message(self, place: Place, size: int, seconds: float, statistic: str) -> None:
        """Add half a round trip of two ranks, as one message."""
        self._add(place, *ONE_MESSAGE, size, seconds, statistic)

    def _add(
        self, place: Place, operation: str, chosen: str, ranks: int, size: int, seconds: float, statistic: str
    ) -> None:
        if not (isfinite(seconds) and 0 < seconds <= MAX_SECONDS):
            raise place.error(f"found a time of {seconds:g} s, wanted one above 0")
        if not 0 <= size <= MAX_BYTES:
            raise place.error(f"found a size of {size} bytes, wanted 0 to {MAX_BYTES}")
        if not 2 <= ranks <= MAX_COUNT:
            raise place.error(f"found {ranks} ranks, wanted 2 to {MAX_COUNT}")
        layout = place.given.layout or place.layout
        if problem := _refusal("layout", layout) or _refusal("operation", operation):
            raise place.error(problem)
        self.times.append(Time(operation, chosen, layout, ranks, size, seconds, statistic, place.setting, place.name))


@dataclass(frozen=True)
class Place:
    """The place of a row, for messages and for the table, and what the user stated about the file."""

    file: Path
    line: int  # 0: the place is a file in an archive, named by `called`
    given: Given
    layout: str = ""
    called: str = ""  # the tool's name of the algorithm, if several of its names mean one of ours
    setting: str = ""

    @property
    def name(self) -> str:
        return f"{self.file.name}{f':{self.line}' if self.line else ''} {self.called}".rstrip()

    def error(self, message: str) -> UserError:
        if not self.line:
            message = f"{self.called}: {message}"
        return UserError(message, file=self.file, line=self.line or None)

    def row(self, columns: Sequence[str], cells: Sequence[str], *, what: str = "numbers") -> dict[str, str]:
        """Return the cells by column; there have to be as many."""
        if len(cells) != len(columns):
            raise self.error(f"found {len(cells)} {what}, wanted {' '.join(columns)}")
        return dict(zip(columns, cells, strict=True))

    def number(self, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise self.error(f"found {shown(text)}, wanted a number") from None

    def whole(self, text: str) -> int:
        number = self.number(text)
        if not isfinite(number) or number != int(number) or number < 0:
            raise self.error(f"found {shown(text)}, wanted a whole number")
        return int(number)


@dataclass(frozen=True)
class Format:
    """A format: `times` reads measured collectives, `parameters` a parameter set; a format with neither is only
    written."""

    name: str
    title: str
    times: Callable[[Path, Given], Readings] | None = None
    parameters: Callable[..., ParameterSet] | None = None
    asks: tuple[str, ...] = ()  # fields of `Given` that it uses besides algorithm, layout and ranks


def read_times(entry: Format, files: Iterable[Path], given: Given) -> Readings:
    """Return all times of some files; a file without any time is refused, since it may have another format."""
    together = Readings()
    for file in files:
        readings = entry.times(file, given)
        if not readings.times:
            what = f", only {left_out(readings)}" if readings.left_out else f"; is it a file of {entry.title}?"
            raise UserError(f"found no time of an operation and algorithm known here{what}", file=file)
        together.times += readings.times
        together.left_out += readings.left_out
        together.remarks += readings.remarks
    return together


def left_out(readings: Readings) -> str:
    """Return a summary of the rows left out, such as `3 rows (2 exscan, 1 allgather sparbit)`."""
    count, more = readings.left_out.total(), len(readings.left_out) - MOST_NAMED
    names = [f"{rows} {name}" for name, rows in readings.left_out.most_common(MOST_NAMED)]
    names += [f"and {more} other names"] if more > 0 else []
    return f"{count} row{'s' if count > 1 else ''} ({', '.join(names)})"


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Return the lines of a text file with their numbers. Invalid UTF-8 is replaced, since only names can have it."""
    return read_lines(path, MAX_FILE, "a table of times", strict=False)


def placed_lines(path: Path, given: Given) -> Iterator[tuple[Place, str]]:
    """Yield the lines of a text file, each with its place."""
    for number, line in lines(path):
        yield Place(path, number, given), line


def plain(name: str) -> str:
    """Return an operation's name in lower case, without prefixes and separators that differ between tools."""
    name = name.removeprefix("MPI_").removesuffix(" Personalized Exchange")
    return re.sub(r"[^a-z]", "", name.lower())


@lru_cache
def _refusal(of: str, spec: str) -> str:
    """Return why a layout or an operation from a file is refused; empty if it is not."""
    from commodel.patterns.layouts import Defaults, full

    try:
        check_inside(spec)  # parameters may name a file
        if of == "layout":
            full(spec or "block", Defaults())
    except UserError as error:
        return error.message
    return ""


@lru_cache
def _has_algorithm(operation: str, chosen: str) -> bool:
    from commodel.patterns.algorithms import algorithm

    try:
        algorithm(operation, chosen)
    except UserError:
        return False
    return True
