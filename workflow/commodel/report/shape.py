"""What a report is made of, scaled and named, with units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

import pandas as pd

from commodel.parameters import ParameterSet
from commodel.report.rows import Rows, kept
from commodel.report.tiling import Tiling
from commodel.report.values import plain

if TYPE_CHECKING:
    from commodel.report.front import Front
    from commodel.report.matrix import Matrix

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
