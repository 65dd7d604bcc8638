"""Formats of files of other tools, one module each. The `FORMAT` of a module has a reader of
measured times or of a parameter set, or names a format that is only written.

This module has the shared parts of readers: measured times (`MeasuredTime`, `ImportedTimes`),
limits, and the parsing of numbers from unknown sources. A measured time is that of a collective
operation of commodel. If a file has several statistics of a point, each is a row. Half a round trip
of two ranks is stored as a linear broadcast over two ranks, which is one message, a bandwidth or
message rate as the time of a window of the operation `pairs`. The library default has the algorithm
`library`: its times can be reported, not predicted. Modules about patterns are imported inside
functions, since shell completion imports every format for its title and has to be fast.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from commodel.errors import UserError
from commodel.files.rank_counts import (
    NO_PLACEMENT,
    NO_RANKS,
    NamedRanks,
    RankCounts,
    read_ranks_in_name,
)
from commodel.files.safe_paths import check_inside
from commodel.files.safe_reading import MIB, read_lines
from commodel.records import LIBRARY, Repetitions, Statistic
from commodel.units import MAX_BYTES, MAX_COUNT, MAX_SECONDS, format_count, show_value

if TYPE_CHECKING:
    from commodel.parameters import ParameterSet

MAX_FILE_BYTES = 256 * MIB
MAX_LISTED_NAMES = 12  # at most, of operations and algorithms that are left out, in a message
WANTED_STATISTIC = (
    "give --statistic 'rank mean' for means over the ranks, as OSU prints, or completion, 'last "
    "rank', 'first rank'"
)
UNKNOWN_RANKS = "of an unknown number of ranks"  # of rows that are left out
COMMON_OPTIONS = ("algorithm", "ranks", "layout")  # of most formats
# operation, algorithm and ranks by which one message is stored
SINGLE_MESSAGE = ("bcast", "linear", 2)
OPERATIONS = {  # by the tools' names in lower case, without separators
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
class PrintedTime:
    """A time that a benchmark prints: which ranks it is of, and how its repetitions became one
    time."""

    seconds: float
    statistic: Statistic
    repetitions: Repetitions


@dataclass(frozen=True, slots=True)
class Window:
    """The messages that a benchmark sends between the ranks of each pair before it waits."""

    messages: int
    directions: int  # 2: in both directions
    algorithm: str = "at-once"

    @property
    def operation(self) -> str:
        from commodel.patterns.operations import canonicalize_operation

        return canonicalize_operation(
            f"pairs:messages={self.messages}:directions={self.directions}"
        )

    def find_seconds(self, rate: float, pairs: int = 1) -> float:
        """Return the time of a window from the number of all messages per second."""
        return self.directions * self.messages * pairs / rate if rate else inf


ROUND_TRIP = Window(1, 2, "in-turn")  # of each pair


@dataclass(frozen=True, slots=True)
class MeasuredTime:
    """A row of a table of measured collectives, with its source."""

    operation: str
    algorithm: str
    layout: str
    ranks: int
    bytes: int
    seconds: float
    statistic: Statistic
    repetitions: Repetitions
    setting: str  # the name of the circumstances of the measurement: docs/calibrate.md
    source: str


@dataclass(frozen=True)
class StatedProperties:
    """Properties of the measurements that the user states because a file lacks them; empty or 0:
    not stated."""

    operation: str = ""
    algorithm: str = ""
    layout: str = ""
    statistic: str | None = None
    ranks: int = 0
    named_ranks: NamedRanks = NO_RANKS  # the number in the file's name
    columns: tuple[str, ...] = ()  # NAME=COLUMN or NAME=COLUMN:UNIT
    # whether rows of an unknown number of ranks are left out, not refused
    omits_unknown_ranks: bool = False
    metadata: str = ""  # the file that describes the measurements


@dataclass
class ImportedTimes:
    """The measured times of files, and the number of rows left out: those of operations or
    algorithms that commodel lacks."""

    times: list[MeasuredTime] = field(default_factory=list)
    left_out: Counter = field(default_factory=Counter)
    remarks: list[str] = field(default_factory=list)  # for the user, one line each
    uses_name: bool = False  # whether the number of ranks is that of the file's name

    def add_collective(
        self,
        source_row: SourceRow,
        name: str,
        algorithm_name: str,
        ranks: int,
        size: int,
        *times: PrintedTime,
    ) -> None:
        """Add a collective with its times, a row each, or count it as left out.

        `algorithm_name` is empty for the library default. With 0 bytes to move, a library returns
        at once, so such a row is not used.
        """
        from commodel.patterns.operations import find_base_name, has_size, list_operations

        operation = OPERATIONS.get(
            normalize_operation(name), name if find_base_name(name) in list_operations() else ""
        )
        if operation and has_size(operation) and not size and algorithm_name in ("", LIBRARY):
            self.left_out[f"{name} of 0 bytes"] += 1
            return
        algorithm_name = source_row.stated.algorithm or algorithm_name or LIBRARY
        if not operation or (
            algorithm_name != LIBRARY and not _has_algorithm(operation, algorithm_name)
        ):
            self.left_out[name if algorithm_name == LIBRARY else f"{name} {algorithm_name}"] += 1
            return
        if source_row.stated.omits_unknown_ranks and not source_row.choose_ranks(ranks):
            self.left_out[f"{name} {UNKNOWN_RANKS}"] += 1
            return
        ranks = self.find_ranks(source_row, ranks)
        size = size if has_size(operation) else 0
        for time in times:
            if time.statistic is Statistic.FIRST_RANK and not time.seconds and len(times) > 1:
                self.left_out[f"{name} whose first rank takes 0 s"] += 1  # rounded
            else:
                self._add(source_row, operation, algorithm_name, ranks, size, time)

    def find_ranks(self, source_row: SourceRow, found: int) -> int:
        """Return the number of ranks that the file states, else the user, else the file's name."""
        self.uses_name |= not (found or source_row.stated.ranks)
        ranks = source_row.choose_ranks(found)
        if not ranks:
            raise source_row.error(
                "found no number of ranks in the file, none or several in its name; give --ranks"
            )
        return ranks

    def add_message(
        self, source_row: SourceRow, size: int, seconds: float, repetitions: Repetitions
    ) -> None:
        """Add half a round trip of two ranks, as one message."""
        self._add(
            source_row,
            *SINGLE_MESSAGE,
            size,
            PrintedTime(seconds, Statistic.COMPLETION, repetitions),
        )

    def add_pairs(
        self, source_row: SourceRow, window: Window, ranks: int, size: int, seconds: float
    ) -> None:
        """Add the time in which all pairs of ranks exchange a window of messages, a mean over
        repetitions."""
        time = PrintedTime(seconds, Statistic.COMPLETION, Repetitions.MEAN)
        try:
            operation = window.operation
        except UserError as error:  # an impossible number of messages
            raise source_row.error(error.message) from None
        self._add(source_row, operation, window.algorithm, ranks, size, time)

    def _add(
        self,
        source_row: SourceRow,
        operation: str,
        algorithm_name: str,
        ranks: int,
        size: int,
        time: PrintedTime,
    ) -> None:
        seconds = time.seconds
        if not (isfinite(seconds) and 0 < seconds <= MAX_SECONDS):
            raise source_row.error(f"found a time of {seconds:g} s, wanted one above 0")
        if not 0 <= size <= MAX_BYTES:
            raise source_row.error(f"found a size of {size} bytes, wanted 0 to {MAX_BYTES}")
        if not 2 <= ranks <= MAX_COUNT:
            raise source_row.error(f"found {ranks} ranks, wanted 2 to {MAX_COUNT}")
        layout = source_row.stated.layout or source_row.layout
        reason = _explain_refusal("layout", layout) or _explain_refusal("operation", operation)
        if reason:
            raise source_row.error(reason)
        self.times.append(
            MeasuredTime(
                operation=operation,
                algorithm=algorithm_name,
                layout=layout,
                ranks=ranks,
                bytes=size,
                seconds=seconds,
                statistic=time.statistic,
                repetitions=time.repetitions,
                setting=source_row.setting,
                source=source_row.name,
            )
        )


@dataclass(frozen=True)
class SourceRow:
    """The file and line of a row, for errors and the column `source`, and the properties that the
    user states."""

    file: Path
    line: int  # 0: the row is from the file `tool_name` in an archive
    stated: StatedProperties
    layout: str = ""
    # the tool's name of the algorithm, if commodel has one algorithm for several of the tool's
    tool_name: str = ""
    setting: str = ""
    placement: RankCounts = NO_PLACEMENT  # that the file states for this row

    @property
    def name(self) -> str:
        return f"{self.file.name}{f':{self.line}' if self.line else ''} {self.tool_name}".rstrip()

    def placed(self, layout: str) -> SourceRow:
        """Return the row with the layout that its file states."""
        return replace(self, layout=layout)

    def of_run(self, placement: RankCounts, setting: str) -> SourceRow:
        """Return the row with the placement and setting of its run."""
        return replace(self, placement=placement, layout=placement.layout, setting=setting)

    def error(self, message: str) -> UserError:
        if not self.line:
            message = f"{self.tool_name}: {message}"
        return UserError(message, file=self.file, line=self.line or None)

    def choose_ranks(self, found: int) -> int:
        """Return the number of ranks that the file states, else the user, else the file's name; 0
        if it is unknown. Refuse two that differ."""
        stated, named = self.stated.ranks, self.stated.named_ranks
        if found and stated not in (0, found):
            raise self.error(
                f"found {found} ranks in the file and --ranks {stated}; leave --ranks out"
            )
        if found and named.certain and named.count != found:
            raise self.error(
                f"found {found} ranks in the file and {named.count} in its name; rename the file"
            )
        return found or stated or named.count

    def split(
        self, columns: Sequence[str], cells: Sequence[str], *, cell_name: str = "numbers"
    ) -> dict[str, str]:
        """Return the cells by column; refuse a row with more or fewer cells than columns."""
        if len(cells) != len(columns):
            raise self.error(f"found {len(cells)} {cell_name}, wanted {' '.join(columns)}")
        return dict(zip(columns, cells, strict=True))

    def parse_number(self, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise self.error(f"found {show_value(text)}, wanted a number") from None

    def parse_whole(self, text: str) -> int:
        number = self.parse_number(text)
        if not isfinite(number) or number != int(number) or number < 0:
            raise self.error(f"found {show_value(text)}, wanted a whole number")
        return int(number)


@dataclass(frozen=True)
class Format:
    """A format, with the reader of measured times or of a parameter set. A format without a reader
    is only written."""

    name: str
    title: str
    read_times: Callable[[Path, StatedProperties], ImportedTimes] | None = None
    read_parameters: Callable[..., ParameterSet] | None = None
    # regular expression that the first lines of a file of times contain, by which `import folder`
    # recognises it; empty: it does not
    mark: str = ""
    reads_archives: bool = False  # whether it also reads archives, which have no such lines
    # whether a folder as a whole is a measurement of the format; None: no folder is
    recognizes_folder: Callable[[Path], bool] | None = None
    has_groups: bool = False  # whether a run also measures with some of its first ranks
    options: tuple[str, ...] = COMMON_OPTIONS  # fields of `StatedProperties` that it uses
    examples: tuple[str, ...] = ()  # arguments of `commodel import`, for its help


def read_all_times(
    file_format: Format, files: Sequence[Path], stated: StatedProperties, ranks: Sequence[int] = ()
) -> ImportedTimes:
    """Return all times of some files; a file without any time is refused, since it may have another
    format.

    `ranks` has the number of ranks of all files, or that of each file.
    """
    joined = ImportedTimes()
    by_name: dict[str, NamedRanks] = {}
    assert file_format.read_times is not None
    for file, count in zip(
        files, _choose_stated_ranks(files, ranks or [stated.ranks]), strict=True
    ):
        named = read_ranks_in_name(file)
        imported = file_format.read_times(file, replace(stated, ranks=count, named_ranks=named))
        if not imported.times:
            explanation = (
                f", only {describe_left_out(imported)}"
                if imported.left_out
                else f"; is it a file of {file_format.title}?"
            )
            raise UserError(
                f"found no time of a known operation and algorithm{explanation}", file=file
            )
        joined.times += imported.times
        joined.left_out += imported.left_out
        joined.remarks += imported.remarks
        if imported.uses_name:
            by_name[file.name] = named
    if by_name:
        joined.remarks.append(_describe_ranks_by_name(by_name))
    unknown = sum(time.statistic is Statistic.UNKNOWN for time in joined.times)
    if unknown:
        joined.remarks.append(
            f"the statistic of {format_count(unknown, 'time')} is unknown; {WANTED_STATISTIC}"
        )
    return joined


def _choose_stated_ranks(files: Sequence[Path], ranks: Sequence[int]) -> Sequence[int]:
    """Return the number of ranks that the user states for each file, 0 for none. Refuse numbers
    that contradict the files' names."""
    if len(ranks) not in (1, len(files)):
        raise UserError(
            f"found {len(ranks)} values of --ranks for {len(files)} files, wanted one for each file"
        )
    counts = ranks if len(ranks) == len(files) else [*ranks] * len(files)
    names = [read_ranks_in_name(file) for file in files]
    numbers = {named.count for named in names if named.count}
    if len(ranks) == 1 and ranks[0] and len(numbers) > 1:
        numbers_text = ", ".join(map(str, sorted(numbers)[:MAX_LISTED_NAMES]))
        complaint = (
            f"found --ranks {ranks[0]} for files with different numbers in their names "
            f"({numbers_text})"
        )
        raise UserError(f"{complaint}; leave --ranks out, or give one for each file in their order")
    for file, named, count in zip(files, names, counts, strict=True):
        if count and named.contradicts(count):
            complaint = f"found --ranks {count}, but {named.count} in the file's name"
            raise UserError(f"{complaint}; leave --ranks out, or rename the file", file=file)
    return counts


def _describe_ranks_by_name(by_name: Mapping[str, NamedRanks]) -> str:
    texts = [f"{name} {named.count}" for name, named in list(by_name.items())[:MAX_LISTED_NAMES]]
    hidden = len(by_name) - len(texts)
    texts += [f"and {hidden} more"] if hidden else []
    hint = (
        ""
        if all(named.certain for named in by_name.values())
        else "; if they are wrong, give --ranks for each file"
    )
    return f"numbers of ranks by the files' names: {', '.join(texts)}{hint}"


def describe_left_out(imported: ImportedTimes) -> str:
    """Return a summary of the rows left out, such as `3 rows (2 exscan, 1 allgather sparbit)`."""
    count = imported.left_out.total()
    hidden = len(imported.left_out) - MAX_LISTED_NAMES
    names = [f"{rows} {name}" for name, rows in imported.left_out.most_common(MAX_LISTED_NAMES)]
    names += [f"and {hidden} other names"] if hidden > 0 else []
    return f"{count} row{'s' if count > 1 else ''} ({', '.join(names)})"


def read_text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Return the lines of a text file with their numbers. Invalid UTF-8 is replaced, since only
    names can have it."""
    return read_lines(path, MAX_FILE_BYTES, "a table of times", strict=False)


def read_source_rows(path: Path, stated: StatedProperties) -> Iterator[tuple[SourceRow, str]]:
    """Yield the lines of a text file, each with its file and line number."""
    for number, line in read_text_lines(path):
        yield SourceRow(path, number, stated), line


def normalize_operation(name: str) -> str:
    """Return an operation's name in lower case, without prefixes and separators that differ between
    tools."""
    name = name.removeprefix("MPI_").removesuffix(" Personalized Exchange")
    return re.sub(r"[^a-z]", "", name.lower())


@lru_cache
def _explain_refusal(kind: str, spec: str) -> str:
    """Return why a layout or an operation from a file is refused; empty if it is not."""
    from commodel.patterns.layouts import PlatformDefaults, complete_spec

    try:
        check_inside(spec)  # parameters may name a file
        if kind == "layout":
            complete_spec(spec or "block", PlatformDefaults())
    except UserError as error:
        return error.message
    return ""


@lru_cache
def _has_algorithm(operation: str, algorithm_name: str) -> bool:
    from commodel.patterns.algorithms import find_algorithm

    try:
        find_algorithm(operation, algorithm_name)
    except UserError:
        return False
    return True
