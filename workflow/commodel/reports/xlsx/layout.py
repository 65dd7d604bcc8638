"""Layout of a workbook: names that Excel accepts, widths and colours, and the places of tables, for
links (`TablePlaces`).

If a table has more than 20,000 rows, its sheet has the first 1,000 with a note, and the table is
written to a Parquet file beside the workbook (`write_parquet`; `commodel predict matrix` needs
pyarrow, too).
"""

import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from xlsxwriter.format import Format
from xlsxwriter.utility import quote_sheetname, xl_range, xl_rowcol_to_cell
from xlsxwriter.worksheet import Worksheet

from commodel.reports.elements import (
    COLOURS,
    TEXT_KINDS,
    Report,
    Scale,
    Section,
    SourceRows,
    Table,
    format_value,
    has_rank,
)

HEADER_COLOUR, RULE_COLOUR, LINK_COLOUR, NOTE_COLOUR = "#1F3A4D", "#D5DBE0", "#0B5A8A", "#555555"
HIGHLIGHT_COLOUR = "#8A3B00"  # of texts about simulated platforms, and of marked labels
DEFAULT_CREATION_DATE = datetime(2000, 1, 1)  # of a report without a measurement date
MAX_COLUMN_WIDTH = 52  # characters of a column
MAX_SHARED_WIDTH = 28  # characters of a column of several tables
BUTTON_WIDTH = 4  # characters of the filter button in a header
DEFAULT_WIDTH = 9  # characters of a column without a set width
BOLD_WIDTH = 1.15  # mean width of a bold letter, in characters
MAX_HEADER_LINES = 3  # unless its words need more
LINE_HEIGHT_PT = 15.0
FIRST_ROW = 4  # of a sheet's contents, from 0: below title, banner, note and link to the overview
ROW_HEIGHT_PT = 14.25
ROW_HEIGHT_PX = 19  # of a row; not the default, which some programs change
A3_PAPER = 8  # Excel's number of the paper size
# Pixels within the margins of a landscape page: width and height. A little less than the true
# height, since programs scale pages by different widths of letters.
PAGE_SIZES_PX = {9: (1045, 650), A3_PAPER: (1511, 970)}  # by paper size
MAX_TABLE_ROWS = 20_000  # a sheet has all rows of a table up to this length
LONG_TABLE_SHOWN_ROWS = 1_000  # rows on the sheet of a longer table
MAX_SHRINKAGE = 1.5  # by which a sheet is made smaller to print all of it
PARQUET_PIECE_ROWS = 10_000  # rows of one write to a Parquet file


class Sheet(Worksheet):
    """A sheet that escapes texts which begin and end like rich-text markup: XlsxWriter copies these
    into the file unchecked. Formulas are not searched for functions newer than Excel 2010, because
    ours use none and the search takes a tenth of the time of a report."""

    def print_pages(
        self, rows: int, columns: int, unbroken_ranges: Sequence[tuple[int, int]], max_pages: int
    ) -> int:
        """Print the first rows and columns on at most so many pages, and return the number of these
        rows. A page ends before a range of rows that it would cut. If the last page were less than
        half full, all pages are made smaller by blank columns at the right, because programs ignore
        page breaks if a height is set. `unbroken_ranges` are pairs of first row and end, in
        order."""
        page_width, page_height = PAGE_SIZES_PX[self.paper_size]
        height = page_height * max(1.0, sum(map(self._size_col, range(columns))) / page_width)
        sizes = [self._size_row(row) for row in range(rows)]
        end = rows
        if sum(sizes) > max_pages * height * MAX_SHRINKAGE:
            end = find_page_end(sizes, max_pages * height, unbroken_ranges)
        sizes = sizes[:end]
        pages = min(max_pages, math.ceil(sum(sizes) / height))
        starts, filled = break_pages(sizes, height, unbroken_ranges)
        while len(starts) > pages or (filled < height / 2 and len(starts) > 1):
            height *= 1.02
            starts, filled = break_pages(sizes, height, unbroken_ranges)
        while sum(map(self._size_col, range(columns))) < page_width * height / page_height:
            columns += 1
        self.print_area(0, 0, end - 1, columns - 1)
        self.fit_to_pages(1, 0)
        self.set_h_pagebreaks(starts[1:])
        return end

    def _write_string(
        self, row: int, col: int, string: str, cell_format: Format | None = None
    ) -> int:
        return super()._write_string(row, col, escape_markup(string), cell_format)

    def _prepare_formula(self, formula: str, expand_future_functions: bool = False) -> str:
        if expand_future_functions:
            return super()._prepare_formula(formula, expand_future_functions)
        return formula.removeprefix("=")


def break_pages(
    sizes: Sequence[float], height: float, unbroken_ranges: Sequence[tuple[int, int]]
) -> tuple[list[int], float]:
    """Return the first row of each page, and how much of the last page is filled. A range that is
    longer than a page is cut."""
    end_of = {first: end for first, end in unbroken_ranges if sum(sizes[first:end]) <= height}
    starts = [0]
    used = 0.0
    row = 0
    while row < len(sizes):
        end = min(end_of.get(row, row + 1), len(sizes))
        size = sum(sizes[row:end])
        if used and used + size > height:
            starts.append(row)
            used = 0.0
        used += size
        row = end
    return starts, used


def find_page_end(
    sizes: Sequence[float], height: float, unbroken_ranges: Sequence[tuple[int, int]]
) -> int:
    """Return the number of rows that have this height together, without a part of an unbroken
    range."""
    total, end = 0.0, 0
    while end < len(sizes) and total + sizes[end] <= height:
        total += sizes[end]
        end += 1
    return next((first for first, range_end in unbroken_ranges if 0 < first < end < range_end), end)


def escape_markup(text: str) -> str:
    return f"{text} " if text.startswith("<r>") and text.endswith("</r>") else text


def make_colour_scale(scale: Scale) -> dict[str, str | float]:
    """Return a conditional format; Excel wants the anchors in rising order."""
    if scale.only_bad:
        anchors = {"min": (scale.good, "#FFFFFF"), "max": (scale.bad, COLOURS["bad"])}
    else:
        low, high = sorted([(scale.bad, COLOURS["bad"]), (scale.good, COLOURS["good"])])
        anchors = {"min": low, "mid": (scale.middle, COLOURS["middle"]), "max": high}
    options: dict[str, str | float] = {"type": f"{len(anchors)}_color_scale"}
    for name, (value, colour) in anchors.items():
        options |= {f"{name}_type": "num", f"{name}_value": value, f"{name}_color": colour}
    return options


def choose_column_widths(tables: tuple[Table, ...], only_tables: bool = True) -> list[int]:
    """Return widths in characters: enough for every value, and for a header of few lines with its
    filter button.

    If tables share a sheet, text of a last column may continue over the empty cells to its right.
    """
    widths: list[int] = []
    longest = MAX_COLUMN_WIDTH if only_tables else MAX_SHARED_WIDTH
    for table in tables:
        widths += [0] * (len(table.columns) - len(widths))
        for index, column in enumerate(table.columns):
            # Bold digits and the grouping of Excel's own formats need a little more than the text.
            text_width = (
                max(
                    (len(format_value(column.kind, value)) for value in set(table.values(index))),
                    default=0,
                )
                * 1.1
                + 3
            )
            if (
                not only_tables
                and column.kind == "text"
                and index + 1 == len(table.columns)
                and not table.backgrounds
            ):
                text_width = 0
            letters = max(
                len(column.header) / MAX_HEADER_LINES, *map(len, column.header.split(" "))
            )
            header_width = letters * BOLD_WIDTH + BUTTON_WIDTH
            widths[index] = max(
                widths[index], min(longest, int(max(text_width, header_width, 7)) + 1)
            )
    return widths


def compute_header_height(headers: Sequence[str], widths: Sequence[float]) -> float:
    """Return the height in points of a row of wrapped headers. Programs do not adapt the rows of a
    finished workbook to their texts."""
    lines = (
        textwrap.wrap(
            header, max(1, int((width - BUTTON_WIDTH) / BOLD_WIDTH)), break_long_words=False
        )
        for header, width in zip(headers, widths, strict=False)
    )
    return LINE_HEIGHT_PT * max(map(len, lines), default=1)


def count_columns(widths: Sequence[float], characters: float) -> tuple[int, float]:
    """Return the number of columns that together have this width in characters, and their width."""
    columns, total = 0, 0.0
    while total < characters:
        total += widths[columns] if columns < len(widths) else DEFAULT_WIDTH
        columns += 1
    return columns, total


def make_sheet_name(name: str, used_names: set[str]) -> str:
    """Return a valid, unused sheet name of at most 31 characters: no brackets, slashes or :*?, no
    outer apostrophes."""
    stem = re.sub(r"[\[\]:*?/\\]", " ", name).strip("' ")[:31] or "Sheet"
    return make_unique(stem, 31, used_names)


def make_unique(stem: str, longest: int, used_names: set[str]) -> str:
    name = stem
    number = 1
    while name.lower() in used_names:
        number += 1
        name = f"{stem[: longest - 1 - len(str(number))]}_{number}"
    used_names.add(name.lower())
    return name


def make_table_name(table: Table) -> str:
    return re.sub(r"\W", "_", f"T_{table.name}", flags=re.ASCII)[:200]


def make_headers(headers: list[str]) -> list[str]:
    """Return distinct headers without blanks: Excel refuses a table with two equal headers, or with
    a blank one."""
    used_names: set[str] = set()
    return [
        make_unique(escape_markup(header[:240].strip()) or "column", 255, used_names)
        for header in headers
    ]


def find_creation_date(report: Report) -> datetime:
    """Return the last day of the measurements. The date of writing would make two reports of the
    same results differ."""
    day = re.search(r"(\d{4})-(\d\d)-(\d\d)$", report.measured)
    try:
        return datetime(int(day[1]), int(day[2]), int(day[3])) if day else DEFAULT_CREATION_DATE
    except ValueError:
        return DEFAULT_CREATION_DATE


def select_shown_rows(table: Table) -> range:
    """Return the range of table rows that the sheet shows."""
    return range(len(table.rows) if len(table.rows) <= MAX_TABLE_ROWS else LONG_TABLE_SHOWN_ROWS)


def make_file_name(name: str) -> str:
    return f"{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-') or 'table'}.parquet"


def make_long_table_note(name: str, rows: int) -> str:
    note = (
        f"all are in {make_file_name(name)} beside this workbook; here the first "
        f"{LONG_TABLE_SHOWN_ROWS:,}."
    )
    return f"{rows:,} rows, more than can be read on a sheet: {note}"


def write_parquet(label: str, table: Table, folder: Path) -> Path:
    """Write a table with the headers of its sheet and return the path. n/a and blanks are null;
    infinite values are kept."""
    import pyarrow as pa  # slow to load, and only long tables need it

    from commodel.files.streamed_tables import make_piece, write_stream

    names = make_headers([column.header for column in table.columns])
    is_text = [column.kind in TEXT_KINDS for column in table.columns]
    types = pa.schema(
        [
            (name, pa.string() if text else pa.float64())
            for name, text in zip(names, is_text, strict=True)
        ]
    )

    def pieces() -> Iterator[pa.Table]:
        for first in range(0, len(table.rows), PARQUET_PIECE_ROWS):
            columns = {}
            for index, (name, column) in enumerate(zip(names, table.columns, strict=True)):
                values = table.values(index, first, first + PARQUET_PIECE_ROWS)
                columns[name] = [
                    (format_value(column.kind, value) or None)
                    if is_text[index]
                    else float(value)
                    if has_rank(value)
                    else None
                    for value in values
                ]
            yield make_piece(columns, types)

    path = folder / make_file_name(label)
    write_stream(path, types, pieces())
    return path


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a table: `row` of its sheet has the first of `rows`, the shown rows of the
    table."""

    sheet: str
    row: int
    rows: range
    table: Table


@dataclass
class TablePlaces:
    """The places of a workbook's tables and their rows, for links to them."""

    sheets: dict[str, str] = field(default_factory=dict)  # by section
    # by name; a table on several sheets has its first place
    tables: dict[str, Place] = field(default_factory=dict)
    rows: dict[tuple, dict[tuple, tuple[int, int]]] = field(default_factory=dict)

    def link_source(self, source: SourceRows | None) -> str:
        """Return a link to the rows that a number was computed from, or, if `source` names a
        column, to its cell in the first of these rows."""
        table_place = self.tables.get(source.table) if source else None
        if source is None or table_place is None:
            return ""
        keys = [column.key for column in table_place.table.columns]
        if not {key for key, _ in source.where} <= set(keys):
            return ""
        first, last = self._rows(table_place, source).get(
            tuple(value for _, value in source.where), (-1, -1)
        )
        if first not in table_place.rows:
            return ""
        row_offset = table_place.row - table_place.rows.start
        if source.column in keys:
            return link_cell(table_place.sheet, row_offset + first, keys.index(source.column))
        cell_range = xl_range(
            row_offset + first, 0, row_offset + min(last, table_place.rows[-1]), len(keys) - 1
        )
        return f"internal:{quote_sheetname(table_place.sheet)}!{cell_range}"

    def _rows(self, table_place: Place, source: SourceRows) -> dict[tuple, tuple[int, int]]:
        """Return the first and last row of the first block of consecutive rows with the same values
        in the columns of `source`, by these values."""
        names = tuple(key for key, _ in source.where)
        if (source.table, names) not in self.rows:
            rows: dict[tuple, tuple[int, int]] = {}
            for at, values in enumerate(
                zip(*(table_place.table.column(key) for key in names), strict=True)
            ):
                first, last = rows.get(values, (at, at - 1))
                rows[values] = first, at if last == at - 1 else last
            self.rows[source.table, names] = rows
        return self.rows[source.table, names]


def link_cell(sheet: str, row: int = 0, column: int = 0) -> str:
    return f"internal:{quote_sheetname(sheet)}!{xl_rowcol_to_cell(row, column)}"


def link_first_rows(section: Section) -> dict[object, str]:
    """Return a link to the first row of each id, for a section with a single table that is written
    later."""
    table = section.tables[0]
    first = FIRST_ROW + 1
    rows: dict[object, int] = {}
    for at, point in enumerate(table.column("id")[: len(select_shown_rows(table))], first):
        rows.setdefault(point, at)
    return {point: link_cell(section.name, at) for point, at in rows.items() if point}
