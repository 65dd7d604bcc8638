"""Parts of a report that every writer renders: sections, tables, charts, matrices, tilings, the first screen.

What a report is made of, scaled and named, with units.

What a reader sees first of one platform: four answers, what to use, whom to trust, and what is odd. `sections/front`
fills it in; the writers draw it.

A matrix of numbers between things of one kind, as a picture: near ones are green, far ones orange, by the logarithm.
How a value is coloured and written, the same in every writer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType

import pandas as pd

from commodel.parameters import ParameterSet
from commodel.reports.values import Rows, finite, kept, plain

MOST_RECTANGLES = 400  # rectangles that anybody can look at
SMALLEST_NUMBER = 8.0  # pixels of a number that can be read


@dataclass(frozen=True, slots=True)
class Rectangle:
    """In units of the square, y downwards."""

    label: str
    x: int
    y: int
    width: int
    height: int
    fill: str
    about: str = ""  # shown when it is pointed at

    def letters(self, unit: float) -> float:
        """The size in which its label fits, where a unit of the square has so many pixels; 0: none does."""
        size = min(15.0, 0.7 * self.height * unit, 1.3 * self.width * unit / max(1, len(self.label)))
        return size if size >= SMALLEST_NUMBER else 0.0


@dataclass(frozen=True, slots=True)
class Tiling:
    name: str
    title: str
    side: int
    rectangles: tuple[Rectangle, ...]
    legend: tuple[tuple[str, str], ...]  # colours and what they mean
    note: str = ""
    alt: str = ""  # what the picture shows, in words


MICRO = 1e6  # seconds are shown in µs; scaling happens here and nowhere else
WORDS = ("text", "flag", "file")  # kinds of columns that hold no numbers


@dataclass(frozen=True, slots=True)
class Scale:
    """Three anchors of a colour scale. With `good` at the middle only what is bad takes colour."""

    bad: float
    middle: float
    good: float

    @property
    def only_bad(self) -> bool:
        return self.middle == self.good


MU = Scale(bad=2.0, middle=1.25, good=1.0)
REGRET = Scale(bad=50.0, middle=0.0, good=0.0)  # %
COLOURS = {"bad": "#E8935F", "middle": "#FBF4DC", "good": "#6DB9A8"}


@dataclass(frozen=True, slots=True)
class Column:
    """`kind` is text, flag, count, number (4 digits), percent, signed (percent with sign), ratio, times (×), figure
    (the number of a chart), or file (its path below the folder of the results)."""

    key: str
    header: str
    kind: str = "text"
    note: str = ""
    scale: Scale | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of plain values: None is blank, NaN reads n/a. The first `fixed` columns name the row."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: Rows | tuple[tuple[object, ...], ...]
    note: str = ""
    fixed: int = 1
    marks: frozenset[tuple[int, int]] = frozenset()  # (row, column) of the values to stand out
    grounds: Mapping[tuple[int, int], str] = field(default_factory=dict)  # colours behind values

    def column(self, key: str) -> list:
        return self.values([column.key for column in self.columns].index(key))

    def values(self, place: int, first: int = 0, end: int | None = None) -> list:
        """Of a column, in some of the rows."""
        if isinstance(self.rows, Rows):
            return list(self.rows.columns[place][first:end])
        return [row[place] for row in self.rows[first:end]]

    def value(self, at: int, place: int) -> object:
        return self.rows.columns[place][at] if isinstance(self.rows, Rows) else self.rows[at][place]


@dataclass(frozen=True, slots=True)
class Series:
    """One line or cloud of a chart. `labels` say what each dot is, `low` and `high` are error bars."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    style: str = "dots"  # dots, line, both, dashed, bars; walk: a line through its points as they are given
    colour: int = 0
    labels: tuple[str, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Axis:
    label: str
    log: bool = True
    bytes: bool = False  # ticks at powers of 16, written 4 KiB
    low: float | None = None
    high: float | None = None
    whole: bool = False  # ticks at whole numbers from 0 on, such as levels of a tree
    names: tuple[str, ...] = ()  # of what stands at 0, 1, 2, …; bars have such an axis

    @property
    def step(self) -> int:
        """Between ticks at whole numbers: some twenty are what can be read."""
        return max(1, round((self.high or 0) / 20))


@dataclass(frozen=True, slots=True)
class Chart:
    name: str
    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    note: str = ""
    number: int = 0  # by which a table refers to it; 0: none does
    band: float = 0.0  # a share by which prices may be off: a strip along the identity line


@dataclass(frozen=True, slots=True)
class Answer:
    """A question of the reader and the sentences that answer it."""

    question: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """A file as its author wrote it, line by line."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """One sheet of the workbook, one section of the page."""

    name: str
    note: str
    blocks: tuple[Table | Chart | Answer | Text | Matrix | Tiling, ...]

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
    banner: str  # says what is simulated; empty where nothing is
    sections: tuple[Section, ...]
    measured: str = ""  # when: first and last day
    results: str = ""  # the folder of the results, as seen from the report's own; empty where links cannot lead there
    sets: tuple[ParameterSet, ...] = ()  # which the workbook calculates with
    fronts: tuple[Front, ...] = ()  # the first screen, of each platform
    samples: Section | None = None  # all of them, for the workbook alone

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
        return tuple(block for section in self.sections for block in section.blocks if isinstance(block, Tiling))


def origin(report: Report) -> str:
    """The line below the title: which experiment, and when it was measured."""
    return f"experiment {report.experiment}" + (f", {report.measured}" if report.measured else "")


def table(
    name: str,
    title: str,
    columns: list[Column],
    frame: pd.DataFrame,
    blank: Mapping[str, pd.Series] = MappingProxyType({}),
    **more,
) -> Table:
    """A table from a frame that has a column for every key; where `blank` is true a column shows nothing."""
    masks = {key: mask.to_numpy(bool) for key, mask in blank.items()}
    values = [kept(frame[column.key], plain, masks.get(column.key)) for column in columns]
    return Table(name, title, tuple(columns), Rows(values), **more)


@dataclass(frozen=True, slots=True)
class Behind:
    """What a number of the first screen was taken from: rows of a table, by what stands in some of their columns."""

    table: str
    where: tuple[tuple[str, object], ...]
    column: str = ""  # of the one cell; empty: the rows as a whole


@dataclass(frozen=True, slots=True)
class Tile:
    """A question, the number or the bar that answers it, and one sentence."""

    question: str
    figure: str
    sentence: str
    shares: tuple[tuple[str, int], ...] = ()  # a bar instead: how many are of which kind
    behind: Behind | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    row: int
    column: int
    text: str
    fill: str  # a colour on which dark letters can be read
    about: str  # in words, for who points at it
    marked: bool = False  # outlined
    picks: tuple[tuple[str, str], ...] = ()  # what a click chooses: names of filters and their values
    behind: Behind | None = None


@dataclass(frozen=True, slots=True)
class Grid:
    """Coloured cells with words in them; rows are in groups."""

    name: str
    title: str
    note: str
    rows: tuple[tuple[str, str], ...]  # group and label
    columns: tuple[str, ...]
    cells: tuple[Cell, ...]
    corner: str = ""  # what the columns are
    side: str = ""  # what the rows are

    def text(self, row: int, column: int) -> str:
        return next((cell.text for cell in self.cells if (cell.row, cell.column) == (row, column)), "")


@dataclass(frozen=True, slots=True)
class Front:
    platform: str
    simulated: bool
    origin: str  # how and when it was measured
    tiles: tuple[Tile, ...]
    use: Grid
    trust: Grid
    odd: tuple[str, ...]
    scatter: Chart | None = None
    times: Chart | None = None


SHADES = 24  # a workbook has a format of each
EMPTY = "#F1F3F4"
PALE = 0.35  # of the colour, where nothing was measured
LEAST_SPAN = 2.0  # from the best to the worst colour: what differs by a few percent looks alike


@dataclass(frozen=True)
class Matrix:
    name: str
    title: str
    labels: tuple[str, ...]  # of rows and columns alike
    groups: tuple[int, ...]  # of every label; those of one group lie beside each other
    values: tuple[tuple[float, ...], ...]  # NaN: not measured
    unit: str
    high_is_good: bool = False
    note: str = ""
    marks: frozenset[int] = frozenset()  # labels to stand out
    alt: str = ""  # what the picture shows, in words
    expected: tuple[tuple[float, ...], ...] = ()  # between groups, in their order: for pairs that were not measured

    @cached_property
    def ends(self) -> tuple[float, float]:
        known = [value for row in self.values for value in row if finite(value) and value > 0]
        return (min(known), max(known)) if known else (1.0, 1.0)

    @property
    def borders(self) -> tuple[int, ...]:
        """Places of the first labels of the groups but the first."""
        return tuple(place for place in range(1, len(self.groups)) if self.groups[place] != self.groups[place - 1])

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """The first place of every group, and the one behind its last."""
        edges = (0, *self.borders, len(self.groups))
        return tuple(pairwise(edges))

    def colour(self, value: float, pale: bool = False) -> str:
        if not (finite(value) and value > 0):
            return EMPTY
        worse = self.ends[1] / value if self.high_is_good else value / self.ends[0]
        return shade(math.log(worse) / math.log(max(self.ends[1] / self.ends[0], LEAST_SPAN)), pale)


def shade(share: float, pale: bool = False) -> str:
    """From good, 0, over the middle to bad, 1."""
    share = round(min(max(share, 0.0), 1.0) * SHADES) / SHADES
    first, second = ("good", "middle") if share < 0.5 else ("middle", "bad")
    part = 2 * share if share < 0.5 else 2 * share - 1
    parts = zip(_parts(COLOURS[first]), _parts(COLOURS[second]), strict=True)
    mixed = (one + (two - one) * part for one, two in parts)
    return "#" + "".join(f"{round(255 - (255 - tone) * (PALE if pale else 1)):02X}" for tone in mixed)


def _parts(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[place : place + 2], 16) for place in (1, 3, 5))


def digits(value: float) -> str:
    """Three significant digits, or n/a."""
    if not finite(value):
        return "n/a"
    places = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:,.{places}f}"
