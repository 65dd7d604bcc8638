"""Files of other tools, one file a format: `FORMAT` says how it is read, as measured times or as a parameter set, or
that it is only written. What readers share is here: a measured time, limits, and how numbers of strangers are read.

Times are of collectives as commodel names them; half a round trip of two ranks is a linear broadcast over the two,
which is one message. A library's own choice of algorithm is called `library`: such times can be reported, not
predicted. What knows patterns is imported where it is used: TAB asks every format for its title, and is to be quick."""

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
    """One row of a table of measured collectives, and where it stands; `statistic` is what the seconds are."""

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
    """What the user says about a file that does not say it itself; empty or 0: nothing."""

    operation: str = ""
    algorithm: str = ""
    layout: str = ""
    ranks: int = 0
    columns: tuple[str, ...] = ()  # NAME=COLUMN or NAME=COLUMN:UNIT
    metadata: str = ""  # the file that says what was measured


@dataclass
class Readings:
    """Times, and how many rows were left out because commodel has no such operation or algorithm."""

    times: list[Time] = field(default_factory=list)
    left_out: Counter = field(default_factory=Counter)
    remarks: list[str] = field(default_factory=list)  # a line each

    def take(self, place: Place, name: str, chosen: str, ranks: int, size: int, seconds: float, statistic: str) -> None:
        """One row of a collective; `chosen` is its algorithm, or empty where the library chose. A library that has
        0 bytes to move returns at once: no sample of anything."""
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
        """One message between two ranks: half a round trip."""
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
    """Where a row stands, for messages and for the table; and what the user said about the file."""

    file: Path
    line: int  # 0: of a file in an archive, which is what it is called
    given: Given
    layout: str = ""
    called: str = ""  # what the tool calls the algorithm, where several of its names mean one of ours
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
    """`times` reads measured collectives, `parameters` a parameter set; a format with neither is only written."""

    name: str
    title: str
    times: Callable[[Path, Given], Readings] | None = None
    parameters: Callable[..., ParameterSet] | None = None
    asks: tuple[str, ...] = ()  # what of `Given` it can use beside algorithm, layout and ranks


def read_times(entry: Format, files: Iterable[Path], given: Given) -> Readings:
    """Return all times of some files; a file without any is refused, never taken for an empty one."""
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
    """Return which rows were left out: `3 rows (2 exscan, 1 allgather sparbit)`."""
    count, more = readings.left_out.total(), len(readings.left_out) - MOST_NAMED
    names = [f"{rows} {name}" for name, rows in readings.left_out.most_common(MOST_NAMED)]
    names += [f"and {more} other names"] if more > 0 else []
    return f"{count} row{'s' if count > 1 else ''} ({', '.join(names)})"


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Return the lines of a text file with their numbers. A byte that is not UTF-8 is replaced: only names can hold
    one."""
    return read_lines(path, MAX_FILE, "a table of times", strict=False)


def placed_lines(path: Path, given: Given) -> Iterator[tuple[Place, str]]:
    """Yield the lines with the place where each stands."""
    for number, line in lines(path):
        yield Place(path, number, given), line


def plain(name: str) -> str:
    """Return an operation's name without what tools differ in: MPI_Reduce_scatter and All-to-All Personalized
    Exchange."""
    name = name.removeprefix("MPI_").removesuffix(" Personalized Exchange")
    return re.sub(r"[^a-z]", "", name.lower())


@lru_cache
def _refusal(of: str, spec: str) -> str:
    """Return why a layout or an operation of a file is refused; empty: it is not."""
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
