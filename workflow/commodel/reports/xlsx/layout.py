"""Layout of a workbook: names, widths, colours, and fast writing of large sheets.

A sheet that no text turns into markup, and that takes rows by the hundred thousand: XlsxWriter's own way, some calls
and checks a cell, spends a minute on the eight million cells of a large comparison. It stands on parts of XlsxWriter
that are not documented; tests/reports/test_xlsx.py holds its cells against those of the documented way.

What Excel demands of names, and what readers demand of widths and colours.

A table of more rows than a sheet holds: all of it in a Parquet file beside the workbook, whose sheet has the first
rows and says so. (pyarrow is there anyway, for `commodel price`.)

Where the tables of a workbook and their rows have come to stand, for links to them.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import numpy as np
from xlsxwriter.format import Format
from xlsxwriter.utility import quote_sheetname, xl_col_to_name, xl_range, xl_rowcol_to_cell
from xlsxwriter.worksheet import Worksheet

from commodel.reports.shape import COLOURS, WORDS, Behind, Report, Scale, Section, Table
from commodel.reports.values import comparable, show


def inert(text: str) -> str:
    """XlsxWriter copies a text that begins and ends like a formatted one into the file as it is, well formed or not."""
    return f"{text} " if text.startswith("<r>") and text.endswith("</r>") else text


class Sheet(Worksheet):
    def __init__(self) -> None:
        super().__init__()
        self.heights: dict[int, float] = {}  # points of rows that are not as high as usual

    def set_row(self, row: int, height: float | None = None, *rest: object, **more: object) -> int:
        if height is not None:
            self.heights[row] = height
        return super().set_row(row, height, *rest, **more)

    def _write_string(self, row: int, col: int, string: str, cell_format: Format | None = None) -> int:
        return super()._write_string(row, col, inert(string), cell_format)

    def opening(self, look: Format) -> str:
        """What stands before a number in a cell of `write_rows`; behind it stands `</v></c>`."""
        return f' s="{look._get_xf_index()}"><v>'

    def text(self, text: str, look: Format) -> str:
        """A cell of `write_rows` that holds no number."""
        if not text:
            return f' s="{look._get_xf_index()}"/>'
        index = self.str_table._get_shared_string_index(inert(text))
        return f' s="{look._get_xf_index()}" t="s"><v>{index}</v></c>'

    def write_rows(self, first: int, columns: Sequence[Iterable[str]], heights: Iterable[float]) -> None:
        """Cells below all others of the sheet, from its first column on; a height of 0 is the usual one. The sheet has
        been added in constant memory."""
        self._write_single_row(first)  # those that came before
        names = [f'<c r="{xl_col_to_name(place)}' for place in range(len(columns))]
        last = first
        for last, (height, *cells) in enumerate(zip(heights, *columns, strict=True), first + 1):
            number = str(last)
            about = f' ht="{height:g}" customHeight="1"' if height else ""
            row = "".join([f'{name}{number}"{cell}' for name, cell in zip(names, cells, strict=True)])
            self.row_data_fh.write(f'<row r="{number}"{about}>{row}</row>')
        self._check_dimensions(last - 1, len(columns) - 1)

    def link(self, row: int, place: int, target: str) -> None:
        """Of a cell that is, or will be, written by `write_rows`."""
        self.ignore_write_string = True
        self.write_url(row, place, target)
        self.ignore_write_string = False


CREATED = datetime(2000, 1, 1)  # where nobody noted when it was measured; never when it was written
WIDEST = 52  # characters of a column


def colour_scale(scale: Scale) -> dict:
    """Excel wants the anchors in rising order."""
    if scale.only_bad:
        return {
            "type": "2_color_scale",
            "min_type": "num",
            "max_type": "num",
            "min_value": scale.good,
            "max_value": scale.bad,
            "min_color": "#FFFFFF",
            "max_color": COLOURS["bad"],
        }
    ends = [(scale.bad, COLOURS["bad"]), (scale.good, COLOURS["good"])]
    (low, cold), (high, warm) = sorted(ends)
    return {
        "type": "3_color_scale",
        "min_type": "num",
        "mid_type": "num",
        "max_type": "num",
        "min_value": low,
        "mid_value": scale.middle,
        "max_value": high,
        "min_color": cold,
        "mid_color": COLOURS["middle"],
        "max_color": warm,
    }


def column_widths(tables, alone: bool = True, filters: bool = True) -> list[int]:
    """Wide enough for every number and for the longest word of a header, with its filter button where it has one.

    Where tables share a sheet, text of a last column may run on over the empty cells beside it.
    """
    widths: list[int] = []
    for table in tables:
        for place, column in enumerate(table.columns):
            # Bold digits and the grouping of Excel's own formats need a little more than the text.
            longest = longest_text(column.kind, table.values(place)) * 1.1 + 3
            if not alone and column.kind == "text" and place + 1 == len(table.columns) and not table.grounds:
                longest = 0
            word = max(len(word) for word in f"{column.header} ".split(" ")) * 1.15 + (4 if filters else 1)
            width = min(WIDEST, int(max(longest, word, 7)) + 1)
            if place < len(widths):
                widths[place] = max(widths[place], width)
            else:
                widths.append(width)
    return widths


def longest_text(kind: str, values: list) -> int:
    """Characters of the longest value. Numbers between two powers of ten have one format."""
    numbers = np.array([value for value in values if isinstance(value, float) and math.isfinite(value)])
    texts = {(value.__class__, value) for value in values if not isinstance(value, float) or not math.isfinite(value)}
    with np.errstate(divide="ignore"):
        decades = np.floor(np.log10(np.abs(numbers)))
    for decade in np.unique(decades):
        same = numbers[decades == decade]
        texts |= {(float, same.min()), (float, same.max())}
    return max((len(show(kind, value)) for _, value in texts), default=0)


def header_lines(table: Table, widths: list[int]) -> int:
    """Lines the longest header takes in its column."""
    shared = zip(table.columns, widths, strict=False)  # tables above or below may be wider
    lines = [1 + int(len(column.header) * 1.15 + 3) // width for column, width in shared]
    return min(6, max(lines))


def wrapped_lines(values: tuple, widths: list[int]) -> int:
    """Lines the longest text of a row takes; the last column's runs on instead."""
    texts = [len(value) if isinstance(value, str) else 0 for value in values[:-1]]
    return max((1 + int(long * 1.05) // widths[place] for place, long in enumerate(texts) if long > WIDEST), default=1)


def set_widths(sheet, widths: list[int]) -> None:
    for place, width in enumerate(widths):
        sheet.set_column(place, place, width)


def legal(name: str, taken: set[str]) -> str:
    """A sheet name that Excel takes: 31 characters, none of []:*?/\\ , no apostrophe at its ends, used once."""
    stem = re.sub(r"[\[\]:*?/\\]", " ", name).strip("' ")[:31] or "Sheet"
    return once(stem, 31, taken)


def legal_table(name: str, taken: set[str]) -> str:
    return once(re.sub(r"\W", "_", f"T_{name}", flags=re.ASCII)[:200], 250, taken)


def once(stem: str, longest: int, taken: set[str]) -> str:
    name, number = stem, 1
    while name.lower() in taken:
        number += 1
        name = f"{stem[: longest - 1 - len(str(number))]}_{number}"
    taken.add(name.lower())
    return name


def unique(headers: list[str]) -> list[str]:
    """Excel refuses a table with two equal headers, or with a blank one."""
    taken: set[str] = set()
    return [once(inert(header[:240].strip()) or "column", 255, taken) for header in headers]


def ampersand(text: str) -> str:
    return text.replace("&", "&&")


def created(report: Report) -> datetime:
    """The last day of the measurements: a report of the same results is the same file, whenever it is written."""
    day = re.search(r"(\d{4})-(\d\d)-(\d\d)$", report.measured)
    try:
        return datetime(*map(int, day.groups())) if day else CREATED
    except ValueError:
        return CREATED


PIECE = 50_000  # rows
ROWS_SHOWN = 20_000  # rows that the sheet has


def file_name(section: str) -> str:
    return f"{re.sub(r'[^a-z0-9]+', '-', section.lower()).strip('-') or 'table'}.parquet"


def note(section: str, rows: int) -> str:
    beside = f"all are in {file_name(section)} beside this workbook; here the first {ROWS_SHOWN:,}."
    return f"{rows:,} rows, more than a sheet holds: {beside}"


def write_parquet(section: str, table: Table, folder: Path) -> Path:
    """Columns by the headers of the sheet; n/a and blanks are empty there, infinite values are."""
    import pyarrow as pa  # here, because few tables are so long

    from commodel.files.streams import piece, write_stream

    names = unique([column.header for column in table.columns])
    words = [column.kind in WORDS for column in table.columns]
    types = pa.schema([(name, pa.string() if text else pa.float64()) for name, text in zip(names, words, strict=True)])

    def pieces() -> Iterator[pa.Table]:
        for first in range(0, len(table.rows), PIECE):
            columns = {}
            for place, (name, column) in enumerate(zip(names, table.columns, strict=True)):
                values = table.values(place, first, first + PIECE)
                columns[name] = [
                    (show(column.kind, value) or None) if words[place] else float(value) if comparable(value) else None
                    for value in values
                ]
            yield piece(columns, types)

    path = folder / file_name(section)
    write_stream(path, types, pieces())
    return path


MAX_ROWS, HEAD = 1_048_576, 8  # rows of a sheet, and above a table at most


@dataclass(frozen=True, slots=True)
class Place:
    sheet: str
    row: int  # of the first of the rows
    rows: range
    table: Table


@dataclass
class Places:
    sheets: dict[str, str] = field(default_factory=dict)  # by section
    tables: dict[str, Place] = field(default_factory=dict)  # by name; of several sheets the first
    rows: dict[tuple, dict[tuple, tuple[int, int]]] = field(default_factory=dict)

    def sheet(self, section: str) -> str:
        """A link to the sheet of a section; empty where there is none."""
        return cell(self.sheets[section], 0, 0) if section in self.sheets else ""

    def behind(self, behind: Behind | None) -> str:
        """A link to the rows that a number comes from, or to one cell of the first of them."""
        if behind is None or (place := self.tables.get(behind.table)) is None:
            return ""
        keys = [column.key for column in place.table.columns]
        if not {key for key, _ in behind.where} <= set(keys):
            return ""
        first, last = self._rows(place, behind).get(tuple(value for _, value in behind.where), (-1, -1))
        if first not in place.rows:
            return ""
        down = place.row - place.rows.start
        if behind.column in keys:
            return cell(place.sheet, down + first, keys.index(behind.column))
        area = xl_range(down + first, 0, down + min(last, place.rows[-1]), len(keys) - 1)
        return f"internal:{quote_sheetname(place.sheet)}!{area}"

    def _rows(self, place: Place, behind: Behind) -> dict[tuple, tuple[int, int]]:
        """Of all values of these columns: the first row that has them, and the last of those right below it."""
        names = tuple(key for key, _ in behind.where)
        if (behind.table, names) not in self.rows:
            rows: dict[tuple, tuple[int, int]] = {}
            for at, values in enumerate(zip(*(place.table.column(key) for key in names), strict=True)):
                first, last = rows.get(values, (at, at - 1))
                rows[values] = first, at if last == at - 1 else last
            self.rows[behind.table, names] = rows
        return self.rows[behind.table, names]


def cell(sheet: str, row: int, column: int) -> str:
    return f"internal:{quote_sheetname(sheet)}!{xl_rowcol_to_cell(row, column)}"


def rows_of(report: Report, section: Section) -> dict[object, str]:
    """Links to the first row of each id, of a section that is one table and not yet written."""
    table, first = section.tables[0], 3 + bool(report.banner) + bool(section.note)
    shown = None if len(table.rows) <= MAX_ROWS - HEAD else ROWS_SHOWN
    rows: dict[object, int] = {}
    for at, point in enumerate(table.column("id")[:shown], first):
        rows.setdefault(point, at)
    return {point: cell(section.name, at, 0) for point, at in rows.items() if point}
