"""What a reader sees first of one platform: four answers, what to use, whom to trust, and what is odd. `sections/front`
fills it in; the writers draw it."""

from __future__ import annotations

from dataclasses import dataclass

from commodel.report.shape import Chart


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
