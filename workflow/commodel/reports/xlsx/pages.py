"""Where a printed sheet of several tables and charts goes on on the next page: before a chart that would be cut, and
before a table that would, if little of a page is left."""

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from commodel.reports.shape import Answer, Chart, Section, Text
from commodel.reports.xlsx.charts import GAP, WIDTH
from commodel.reports.xlsx.charts import rows_of as charts_rows
from commodel.reports.xlsx.layout import WIDEST, longest_text

A4, A3 = 9, 8  # Excel's numbers of papers
PAPERS = {A4: (842.0, 595.0), A3: (1191.0, 842.0)}  # points, landscape
SIDES, ENDS = 0.8 * 72, 1.2 * 72  # margins, both together
SPARE = 0.97  # programs do not agree on the width of a letter
ROW = 15.0  # points, unless a row says otherwise
PIXELS = 7  # of a character
LETTER, EDGE = PIXELS * 0.75, 5 * 0.75  # points of a column: for each character, and beside them
LEAST_ZOOM, MOST_ZOOM = 10, 100  # % that paper shows of a sheet's size
LITTLE = 0.4  # of a page, that may stay empty below a table
TEXT_WIDTH = 150  # characters of a sentence across columns
COLUMN = 8.43  # characters of a column that nobody has set
FEWEST_COLUMNS = 12  # columns, as titles run over
RUNNING = 0.75  # characters of a column that one of a note or a sentence takes, on average
LONGEST_TEXT = 200  # of these: longer ones are cut off


class Unit(NamedTuple):
    """Rows that belong together; `head` of them stay so in any case."""

    first: int
    end: int
    head: int = 6  # title, note, header and three rows


def chart_lines(first: int, charts: int, before: Unit | None) -> list[Unit]:
    """Of charts from a row on, two to a line; what stands before the first line stays with it."""
    rows = charts_rows()
    lines = [Unit(top, top + rows, rows) for top in range(first, first + -(-charts // 2) * rows, rows)]
    if before is not None:
        top, end = before.first, lines[0].end
        lines[0] = Unit(top, end, end - top)
    return lines


def columns(section: Section, widths: Sequence[float]) -> int:
    """How many columns take all that a section writes or draws across them."""
    texts = [line for block in section.blocks if isinstance(block, Text) for line in block.lines]
    notes = [section.note, *(getattr(block, "note", "") for block in section.blocks if not isinstance(block, Chart))]
    wide = max(RUNNING * min(LONGEST_TEXT, max(map(len, notes))), min(TEXT_WIDTH, max(map(len, texts), default=0)))
    if any(isinstance(block, Chart) for block in section.blocks):
        wide = max(wide, (2 * WIDTH + GAP) / PIXELS)
    if any(isinstance(block, Answer) for block in section.blocks):
        wide = max(wide, TEXT_WIDTH)
    for table in section.tables:  # the text of a last column runs on
        place = len(table.columns) - 1
        if table.columns[place].kind == "text":
            wide = max(wide, sum(widths[:place]) + min(WIDEST, longest_text("text", table.values(place))))
    number, missing = len(widths), wide - sum(widths)
    return max(FEWEST_COLUMNS, number + max(0, math.ceil(missing / COLUMN)))


def scale(widths: Iterable[float], paper: int) -> int:
    """At which all columns fit side by side."""
    width = sum(LETTER * letters + EDGE for letters in widths)
    return max(LEAST_ZOOM, min(MOST_ZOOM, int(100 * SPARE * (PAPERS[paper][0] - SIDES) / max(width, 1.0))))


def breaks(units: Sequence[Unit], heights: dict[int, float], percent: int, paper: int) -> list[int]:
    """The rows that pages begin with by us; elsewhere a page goes on until it is full."""
    room = SPARE * (PAPERS[paper][1] - ENDS) * 100 / percent
    last = max((unit.end for unit in units), default=0)
    tops = [0.0, *accumulate(heights.get(row, ROW) for row in range(last))]
    first, rows = 0, []
    for unit in units:
        left, whole = room - (tops[unit.first] - tops[first]), tops[unit.end] - tops[unit.first]
        head = tops[min(unit.end, unit.first + unit.head)] - tops[unit.first]
        if unit is not units[0] and left < (whole if left < LITTLE * room and whole <= room else min(head, room)):
            rows.append(unit.first)
            first = unit.first
        for row in range(unit.first, unit.end):
            if tops[row + 1] - tops[first] > room:  # the program's own break
                first = row
    return rows
