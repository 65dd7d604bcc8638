"""The parts of a report that every writer renders (`Section`, `Table`, `Chart`, `Matrix`, `Tiling`,
`FirstScreen`), and the texts of their values: numbers, counts, lists, colours. `columns.csv` has
the columns of the tables: `make_table` looks them up by the table's name.

The rows of a table are stored by columns, each distinct text once. As tuples, the rows of a large
comparison would take a gigabyte.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeGuard, overload

import numpy as np
import pandas as pd

from commodel.errors import make_printable
from commodel.extensions import list_column_files
from commodel.parameters import ParameterSet
from commodel.records import PATH_PART
from commodel.units import format_bytes

MAX_TEXT_LENGTH = 2000


@overload
def to_plain_value(value: str) -> str: ...


@overload
def to_plain_value(value: object) -> Any: ...


def to_plain_value(value: object) -> Any:
    """Return a value from a frame or a YAML file as None, bool, int, float or safe one-line
    text."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value) if abs(int(value)) < 2**53 else str(int(value))
    if isinstance(value, float | np.floating):
        return float(value)
    return make_printable(value, MAX_TEXT_LENGTH)


def has_rank(value: object) -> TypeGuard[float]:
    """Return whether a value can be ordered: infinity can, n/a cannot."""
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)


def is_finite_number(value: object) -> TypeGuard[float]:
    return has_rank(value) and math.isfinite(value)


NUMBER_FORMATS = {
    "count": "#,##0",
    "figure": "#,##0",
    "percent": "#,##0.0",
    "signed": "+#,##0.0;-#,##0.0;0.0",
}
NUMBER_FORMATS |= {"ratio": "0.000", "times": "#,##0.00"}


def choose_number_format(kind: str, value: float) -> str:
    """Return the spreadsheet format of one number; `format_value` prints the same digits."""
    if kind in NUMBER_FORMATS:
        return NUMBER_FORMATS[kind]
    size = abs(value)
    if size and not 1e-3 <= size < 1e9:
        return "0.000E+00"
    digits = 3 if size == 0 else max(0, 3 - math.floor(math.log10(size)))
    return "#,##0." + "0" * digits if digits else "#,##0"


def format_value(kind: str, value: object) -> str:
    """Return the text of one value."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value)
    if math.isnan(value):
        return "n/a"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    form = choose_number_format(kind, value)
    if "E" in form:
        return f"{value:.3e}".upper()
    digits = len(form.split(";")[0].partition(".")[2])
    text = f"{value:,.{digits}f}"
    if kind == "signed":
        return "0.0" if value == 0 else f"{value:+,.1f}"
    return text


MAX_TALLIED_WORDS = 4  # words that are counted one by one
ALL_OPERATIONS = "all"  # operations together
TIED_PREFIX = "≈ "  # before an alternative that is statistically tied with others


def format_simulated(simulated: bool) -> str:
    """Return the text of the column that separates simulated rows from measured ones."""
    return "simulated" if simulated else "no"


def make_simulation_banner(names: Iterable[str]) -> str:
    """Return the banner of a report with simulated platforms; empty without any."""
    name_list = ", ".join(sorted(names))
    return (
        f"SIMULATED: every measurement on {name_list} comes from a simulator, not from hardware."
        if name_list
        else ""
    )


def label_platform(platform: str, simulated: set[str]) -> str:
    return f"{platform} (simulated)" if platform in simulated else platform


def format_size_range(first: int, last: int) -> str:
    return (
        f"at {format_size(first)}"
        if first == last
        else f"from {format_size(first)} to {format_size(last)}"
    )


def format_size(number: int) -> str:
    """Return a message size that no line break separates from its unit."""
    return format_bytes(int(number)).replace(" ", "\N{NO-BREAK SPACE}")


def format_factor_range(low: float, high: float) -> str:
    """Return a range of factors, such as `1.62–3.2×`."""
    ends = dict.fromkeys(
        f"{value:.{2 if value < 2 else 1 if value < 9.95 else 0}f}" for value in (low, high)
    )
    return f"{'–'.join(ends)}×"


def count_by_frequency(words: Iterable[str]) -> list[tuple[str, int]]:
    """Return each word with its count, the most frequent first."""
    return sorted(Counter(words).items(), key=lambda item: (-item[1], item[0]))


def format_tally(words: Iterable[str]) -> str:
    """Return words with their counts, the most frequent first: `a 7, b 2, 3 other`."""
    counts = count_by_frequency(words)
    shown = [f"{word} {number}" for word, number in counts[:MAX_TALLIED_WORDS]]
    other_count = sum(number for _, number in counts[MAX_TALLIED_WORDS:])
    return ", ".join([*shown, f"{other_count} other"] if other_count else shown)


def format_count(number: float, noun: str, plural: str = "s") -> str:
    return f"{int(number)} {noun}{'' if number == 1 else plural}"


PLURAL_VERBS = {"has": "have", "is": "are", "was": "were", "lacks": "lack"}


def count_with_verb(number: int, noun: str, verb: str, attribute: str = "") -> str:
    """Return a subject with its verb, such as `2 points of loggp have`."""
    return f"{format_count(number, noun)}{attribute} {verb if number == 1 else PLURAL_VERBS[verb]}"


def shorten_list(words: list[str], limit: int = 6) -> str:
    """Return a list of words with at most so many entries: `a, b and 3 more`."""
    return join_words(
        words if len(words) <= limit else [*words[: limit - 1], f"{len(words) - limit + 1} more"]
    )


def format_ratio(value: float) -> str:
    if value == math.inf:
        return "∞"
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def join_words(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


def format_percent(share: float, sign: bool = False) -> str:
    """Return a share in percent with a digit after the point only below 10 %: 3.4 %, 57 %, 1240
    %."""
    if not math.isfinite(share):
        return "n/a"
    value = 100 * share
    digits = 1 if abs(value) < 9.95 else 0
    return f"{value:+.{digits}f} %" if sign else f"{value:.{digits}f} %"


def format_error(mu: float) -> str:
    """Return the mean error of a mean μ: in percent below a factor of two, else the factor."""
    if mu == math.inf:
        return "factor ∞"
    return f"{float(f'{100 * (mu - 1):.2g}'):g} %" if mu < 2 else f"factor {format_digits(mu)}"


MAX_SPREADSHEET_INTEGER = 2**53  # a spreadsheet stores all whole numbers below it exactly


class NumberColumn(Sequence):
    """A column of numbers or flags, with None where `blank` is true."""

    def __init__(self, values: np.ndarray, blank: np.ndarray | None = None):
        self.values = values
        self.blank = blank if blank is not None and blank.any() else None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, at):
        if isinstance(at, slice):
            part = NumberColumn(self.values[at], None if self.blank is None else self.blank[at])
            return list(part)
        return None if self.blank is not None and self.blank[at] else self.values[at].item()

    def __iter__(self) -> Iterator:
        values = self.values.tolist()
        for index in np.flatnonzero(self.blank) if self.blank is not None else ():
            values[index] = None
        return iter(values)


class TextColumn(Sequence[Any]):
    """A column that holds each distinct text once: `codes` are the numbers of the rows' texts."""

    def __init__(self, codes: np.ndarray, texts: Sequence[str | None]):
        self.codes = codes.astype(np.min_scalar_type(len(texts)))
        self.texts = np.array(texts, dtype=object)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, at):
        texts = self.texts[self.codes[at]]
        return texts.tolist() if isinstance(at, slice) else texts

    def __iter__(self) -> Iterator[str | None]:
        return iter(self[:])


class Rows(Sequence[Any]):
    """A sequence of tuples that is stored by columns. It equals a tuple of equal rows."""

    def __init__(self, columns: Sequence[Sequence]):
        self.columns = tuple(columns)

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def __getitem__(self, at):
        if isinstance(at, slice):
            return tuple(zip(*(column[at] for column in self.columns), strict=True))
        return tuple(column[at] for column in self.columns)

    def __iter__(self) -> Iterator[tuple]:
        return zip(*self.columns, strict=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows | tuple) and tuple(self) == tuple(other)

    def __repr__(self) -> str:
        return repr(tuple(self))


def store_column(column: pd.Series, blank: np.ndarray | None = None) -> Sequence:
    """Return a column for `Rows`: numbers unchanged, other values made plain, equal texts stored
    once."""
    kind = column.dtype.kind
    if kind in "bf" or (
        kind == "i" and (column.empty or column.abs().max() < MAX_SPREADSHEET_INTEGER)
    ):
        return NumberColumn(column.to_numpy(), blank)
    if pd.api.types.infer_dtype(column, skipna=False) == "string" and column.notna().all():
        codes, texts = pd.factorize(column)
        if blank is not None:
            codes[blank] = len(texts)
        plain_texts = [to_plain_value(text) for text in texts]
        return TextColumn(codes, [*plain_texts, None])
    values: list[Any] = [to_plain_value(value) for value in column.tolist()]
    for index in np.flatnonzero(blank).tolist() if blank is not None else ():
        values[index] = None
    return values


MAX_RECTANGLES = 400  # rectangles that can be read
MIN_LETTER_PIXELS = 8.0  # pixels of a number that can be read


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A rectangle in units of the square, y downwards."""

    label: str
    x: int
    y: int
    width: int
    height: int
    fill: str
    tooltip: str = ""

    def font_size(self, unit: float) -> float:
        """Return the font size of the label in pixels, if a unit of the square has `unit` pixels; 0
        if it does not fit."""
        size = min(
            15.0, 0.7 * self.height * unit, 1.3 * self.width * unit / max(1, len(self.label))
        )
        return size if size >= MIN_LETTER_PIXELS else 0.0


@dataclass(frozen=True, slots=True)
class Tiling:
    name: str
    title: str
    side: int
    rectangles: tuple[Rectangle, ...]
    legend: tuple[tuple[str, str], ...]  # colours and their meaning
    note: str = ""
    alt: str = ""  # what the picture shows, in words


MICRO = 1e6  # from seconds to the µs of reports
TEXT_KINDS = ("text", "flag", "file")  # kinds of columns that hold no numbers


@dataclass(frozen=True, slots=True)
class Scale:
    """Three anchors of a colour scale. If `good` is the middle, only bad values are coloured."""

    bad: float
    middle: float
    good: float

    @property
    def only_bad(self) -> bool:
        return self.middle == self.good


MU_SCALE = Scale(bad=2.0, middle=1.25, good=1.0)
REGRET_SCALE = Scale(bad=50.0, middle=0.0, good=0.0)  # %
COLOURS = {"bad": "#E8935F", "middle": "#FBF4DC", "good": "#6DB9A8"}


@dataclass(frozen=True, slots=True)
class Column:
    """`kind` is text, flag, count, number (4 digits), percent, signed (percent with sign), ratio,
    times (×), figure (the number of a chart), or file (its path below the folder of the
    results)."""

    key: str
    header: str
    kind: str = "text"
    note: str = ""
    scale: Scale | None = None


SCALES = {"": None, "mu": MU_SCALE}
SCHEMA = Path(__file__).with_name("columns.csv")


@cache
def read_columns() -> dict[str, dict[str, Column]]:
    """Return the header, kind, note and scale of each column of the report's tables, by table and
    key."""
    tables: dict[str, dict[str, Column]] = {}
    for path in (SCHEMA, *list_column_files()):
        with path.open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                column = Column(
                    row["key"], row["header"], row["kind"], row["note"], SCALES[row["scale"]]
                )
                tables.setdefault(row["table"], {})[column.key] = column
    return tables


def select_columns(*tables: str, without: Collection[str] = ()) -> tuple[Column, ...]:
    """Return the columns of one or several tables in their order, except those with the keys
    `without`."""
    columns: list[Column] = []
    for table in tables:
        columns += read_columns()[table].values()
    return tuple(column for column in columns if column.key not in without)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of plain values: None is blank, NaN reads n/a. The first `fixed` columns name the row.
    The last `folded` columns have a single value each, which the note repeats; a sheet hides them
    in an outline group."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: Rows | tuple[tuple[object, ...], ...]
    note: str = ""
    fixed: int = 1
    folded: int = 0
    marks: frozenset[tuple[int, int]] = frozenset()  # (row, column) of highlighted values
    # background colours by (row, column)
    backgrounds: Mapping[tuple[int, int], str] = field(default_factory=dict)

    def column(self, key: str) -> list:
        return self.values([column.key for column in self.columns].index(key))

    def values(self, column: int, first: int = 0, end: int | None = None) -> list:
        """Return the values of a column, of all rows or of some."""
        if isinstance(self.rows, Rows):
            return list(self.rows.columns[column][first:end])
        return [row[column] for row in self.rows[first:end]]

    def value(self, at: int, column: int) -> object:
        return (
            self.rows.columns[column][at] if isinstance(self.rows, Rows) else self.rows[at][column]
        )


@dataclass(frozen=True, slots=True)
class Series:
    """One line or cloud of a chart. `labels` describe the dots, `low` and `high` are error bars."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    # dots, line, both, dashed, bars; wide: a broad line below the others, with dots; walk: a line
    # through its points in the given order
    style: str = "dots"
    colour: int = 0
    labels: tuple[str, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Axis:
    label: str
    log: bool = True
    bytes: bool = False  # ticks at powers of 16 or 4, written 4 KiB
    low: float | None = None
    high: float | None = None
    whole_numbers: bool = False  # ticks at whole numbers from 0 on, such as levels of a tree
    names: tuple[str, ...] = ()  # of the labels at 0, 1, 2, …; bars have such an axis

    @property
    def step(self) -> int:
        """The distance of ticks at whole numbers: some twenty can be read."""
        return max(1, round((self.high or 0) / 20))


@dataclass(frozen=True, slots=True)
class Chart:
    name: str
    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    note: str = ""
    number: int = 0  # of the figure, for tables that refer to it; 0: none does
    band: float = 0.0  # μ − 1 at the edges of the strip along the identity line; 0: no strip


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """A question of the reader and the sentences that answer it."""

    question: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a file, line by line."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """One sheet of the workbook, one section of the page."""

    name: str
    note: str
    blocks: tuple[Block, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(block for block in self.blocks if isinstance(block, Table))

    @property
    def charts(self) -> tuple[Chart, ...]:
        return tuple(block for block in self.blocks if isinstance(block, Chart))


@dataclass(frozen=True, slots=True)
class Report:
    experiment: str
    title: str
    banner: str  # names simulated platforms; empty without any
    sections: tuple[Section, ...]
    measured: str = ""  # first and last day of measurements
    results: str = ""  # path of the results, relative to the report; empty: no links to them
    sets: tuple[ParameterSet, ...] = ()  # of the workbook's calculators
    screens: tuple[FirstScreen, ...] = ()  # the first screen, of each platform
    samples: Section | None = None  # all samples, for the workbook only
    source: str = "experiment"  # what `experiment` names
    incomplete: str = ""  # how much is measured; empty: all

    def section(self, name: str) -> Section:
        return next(section for section in self.sections if section.name == name)

    @property
    def charts(self) -> tuple[Chart, ...]:
        return tuple(chart for section in self.sections for chart in section.charts)

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(table for section in self.sections for table in section.tables)

    @property
    def tilings(self) -> tuple[Tiling, ...]:
        return tuple(
            block
            for section in self.sections
            for block in section.blocks
            if isinstance(block, Tiling)
        )


def describe_origin(report: Report) -> str:
    """Return the line below the title: the experiment, and the dates of its measurement."""
    dates = f", {report.measured}" if report.measured else ""
    return f"{report.source} {report.experiment}{dates}"


class Remark(NamedTuple):
    """A sentence about a platform, which does not repeat the platform's name."""

    platform: str
    text: str


def make_table(
    name: str,
    title: str,
    rows: pd.DataFrame | Sequence[Mapping | tuple],
    columns: Sequence[Column] | None = None,
    blank: Mapping[str, pd.Series] = MappingProxyType({}),
    marks: Mapping[str, Sequence[bool]] = MappingProxyType({}),
    backgrounds: Mapping[str, Sequence[str]] = MappingProxyType({}),
    **properties,
) -> Table:
    """Return a table from a frame with a column for every key, or from mappings or tuples. Without
    `columns` it has those of its name in `columns.csv`. Where `blank` is true a column shows
    nothing; where `marks` is true a value is highlighted; `backgrounds` are colours, or empty."""
    columns = tuple(columns or select_columns(name))
    # objects: with types that pandas infers, a missing text would become NaN
    if not isinstance(rows, pd.DataFrame):
        rows = pd.DataFrame(rows, columns=[column.key for column in columns], dtype=object)
    values = []
    for column in columns:
        cells = (
            rows[column.key].map(format_simulated)
            if column.key == "simulated"
            else rows[column.key]
        )
        values.append(
            store_column(cells, blank[column.key].to_numpy(bool) if column.key in blank else None)
        )
    marked = set()
    fills = {}
    for index, column in enumerate(columns):
        if column.key in marks:
            marked |= {(row, index) for row in np.flatnonzero(marks[column.key]).tolist()}
        for row, colour in enumerate(backgrounds.get(column.key, ())):
            if colour:
                fills[row, index] = colour
    return Table(
        name=name,
        title=title,
        columns=columns,
        rows=Rows(values),
        marks=frozenset(marked),
        backgrounds=fills,
        **properties,
    )


@dataclass(frozen=True, slots=True)
class SourceRows:
    """The source of a number on the first screen: rows of a table, by the cells of some of their
    columns."""

    table: str
    where: tuple[tuple[str, object], ...]
    column: str = ""  # of the one cell; empty: the rows as a whole


def link_rows(table: str, column: str = "", **cells: object) -> SourceRows:
    return SourceRows(table, tuple(cells.items()), column)


@dataclass(frozen=True, slots=True)
class Tile:
    """A question, its answer as a headline, perhaps a bar, and a few sentences."""

    question: str
    headline: str
    sentence: str
    shares: tuple[tuple[str, int], ...] = ()  # a bar below the headline: kinds and their counts
    source: SourceRows | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    row: int
    column: int
    text: str
    fill: str  # background colour, for dark letters
    tooltip: str  # text of the tooltip
    marked: bool = False  # outlined
    filters: tuple[tuple[str, str], ...] = ()  # filters that a click sets: names and values
    source: SourceRows | None = None


@dataclass(frozen=True, slots=True)
class Grid:
    """Coloured cells with words in them; rows are in groups."""

    name: str
    title: str
    note: str
    rows: tuple[tuple[str, str], ...]  # group and label
    columns: tuple[str, ...]
    cells: tuple[Cell, ...]
    corner: str = ""  # heading of the columns
    side: str = ""  # heading of the rows


@dataclass(frozen=True, slots=True)
class FirstScreen:
    platform: str
    simulated: bool
    origin: str  # dates, hosts, ranks, MPI, container and commit of the measurement
    tiles: tuple[Tile, ...]
    fastest: Grid  # by operation, ranks and message size
    errors: Grid  # by model and operation
    anomalies: tuple[str, ...]
    scatter: Chart | None = None
    times: Chart | None = None


SHADE_COUNT = 24  # steps of the colour scale; a workbook needs a format for each
EMPTY = "#F1F3F4"
PALE_SHARE = 0.35  # of the colour, in cells without a measurement
# of the values with the worst and the best colour: small differences are not coloured
MIN_COLOUR_RATIO = 2.0


@dataclass(frozen=True)
class Matrix:
    name: str
    title: str
    labels: tuple[str, ...]  # of rows and columns alike
    groups: tuple[int, ...]  # of every label; labels of one group are adjacent
    values: tuple[tuple[float, ...], ...]  # NaN: not measured
    unit: str
    high_is_good: bool = False
    note: str = ""
    marks: frozenset[int] = frozenset()  # indices of highlighted labels
    alt: str = ""  # description of the picture in words
    # value between two groups, for pairs that were not measured
    expected: tuple[tuple[float, ...], ...] = ()

    @cached_property
    def value_range(self) -> tuple[float, float]:
        positive = [
            value for row in self.values for value in row if is_finite_number(value) and value > 0
        ]
        return (min(positive), max(positive)) if positive else (1.0, 1.0)

    @property
    def borders(self) -> tuple[int, ...]:
        """Indices of the first labels of all groups except the first."""
        return tuple(
            index
            for index in range(1, len(self.groups))
            if self.groups[index] != self.groups[index - 1]
        )

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """The index of the first label of every group, and the index after its last."""
        edges = (0, *self.borders, len(self.groups))
        return tuple(pairwise(edges))

    def colour(self, value: float, pale: bool = False) -> str:
        if not (is_finite_number(value) and value > 0):
            return EMPTY
        worse = self.value_range[1] / value if self.high_is_good else value / self.value_range[0]
        return mix_scale_colour(
            math.log(worse)
            / math.log(max(self.value_range[1] / self.value_range[0], MIN_COLOUR_RATIO)),
            pale,
        )


def mix_scale_colour(share: float, pale: bool = False) -> str:
    """Return the colour between good (0) and bad (1)."""
    share = round(min(max(share, 0.0), 1.0) * SHADE_COUNT) / SHADE_COUNT
    first, second = ("good", "middle") if share < 0.5 else ("middle", "bad")
    share_of_half = 2 * share if share < 0.5 else 2 * share - 1
    parts = zip(_parse_colour(COLOURS[first]), _parse_colour(COLOURS[second]), strict=True)
    mixed = (low + (high - low) * share_of_half for low, high in parts)
    return "#" + "".join(
        f"{round(255 - (255 - tone) * (PALE_SHARE if pale else 1)):02X}" for tone in mixed
    )


def _parse_colour(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[index : index + 2], 16) for index in (1, 3, 5))


def format_digits(value: float) -> str:
    """Return a number with three significant digits, or n/a."""
    if not is_finite_number(value):
        return "n/a"
    places = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:,.{places}f}"


NAME = PATH_PART.pattern
RESULTS_PATH = re.compile(rf"(\.\./){{0,20}}(\.|\.\.|{NAME}(/{NAME})?)")
RAW_FILE_PATH = re.compile(rf"raw/{NAME}/{NAME}\.csv")


def make_raw_link(results: str, path: str) -> str:
    """Return the path of a file of samples, relative to the report; empty for other files, and in
    reports without links."""
    return (
        f"{results}/{path}"
        if RESULTS_PATH.fullmatch(results) and RAW_FILE_PATH.fullmatch(path)
        else ""
    )


Block = Table | Chart | AnsweredQuestion | Text | Matrix | Tiling  # of a section
