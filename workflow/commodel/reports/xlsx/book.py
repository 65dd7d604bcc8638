"""The sheets of a workbook: their looks, tables and cells. Equal texts make equal bytes, and no text is computed."""

from functools import cached_property
from pathlib import PurePosixPath
from typing import IO

import xlsxwriter

from commodel.reports.machine_names import raw_link
from commodel.reports.shape import (
    COLOURS,
    WORDS,
    Report,
    Table,
    origin,
)
from commodel.reports.values import comparable, finite, number_format, show
from commodel.reports.xlsx.layout import (
    WIDEST,
    Place,
    Places,
    Sheet,
    ampersand,
    cell,
    colour_scale,
    created,
    header_lines,
    legal,
    legal_table,
    rows_of,
    unique,
    wrapped_lines,
)
from commodel.reports.xlsx.overview import SHEET as OVERVIEW

MAX_LINKS = 65_530  # Excel's limit for a sheet
PIECE = 500  # rows of a long table that are made at a time
LINE = 13.5  # points of a row's height
BROAD, A3 = 20, 8  # a table of more columns is printed on A3, which is paper 8, a line a row: long texts are cut off
LEGIBLE = 22  # columns on A3
INK, RULE = "#1F3A4D", "#D5DBE0"
LINK = "#0B5A8A"
RAW = "Raw summary"
TONES = {"simulated": "#8A3B00", "no": "#8A8A8A", "n/a": "#8A8A8A"}


class Book:
    """An open file, and the formats, names and links already used in it."""

    def __init__(self, report: Report, stream: IO[bytes], scratch: str = ""):
        """`scratch` is a folder for sheets while they are written; without it they are kept in memory."""
        options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
        self.report = report
        options |= {"tmpdir": scratch} if scratch else {"in_memory": True}
        self.book = xlsxwriter.Workbook(stream, options | {"nan_inf_to_errors": False})
        self.book.worksheet_class = Sheet
        self.book.set_properties({"title": report.title[:250], "created": created(report), "author": "commodel"})
        self.formats: dict[tuple, object] = {}
        self.looks: dict[tuple, object] = {}
        self.names: set[str] = set()
        self.links: dict[str, int] = {}  # how many a sheet has
        self.places = Places()
        self.first = ""  # the first sheet, to which the others lead back

    def form(self, **properties) -> object:
        key = tuple(sorted(properties.items()))
        if key not in self.formats:
            self.formats[key] = self.book.add_format(
                {"font_name": "Calibri", "font_size": 10, "valign": "vcenter"} | properties
            )
        return self.formats[key]

    def sheet(self, name: str, note: str):
        """A sheet with title, banner (where anything is simulated) and note. Returns it and the next free row."""
        sheet = self.book.add_worksheet(legal(name, self.names))
        sheet.hide_gridlines(2)
        sheet.set_landscape()
        sheet.set_paper(9)
        sheet.fit_to_pages(1, 0)
        sheet.set_margins(0.4, 0.4, 0.6, 0.6)
        sheet.set_footer(self.footer())
        title = self.report.title if name in ("Summary", OVERVIEW) else f"{name}: {self.report.title}"
        sheet.write_string(0, 0, title, self.form(bold=True, font_size=15, font_color=INK))
        sheet.set_row(0, 22)
        row = 1
        if self.report.banner:
            sheet.set_header("&C&B SIMULATED measurements")
            sheet.write_string(row, 0, self.report.banner, self.form(bold=True, font_color="#8A3B00"))
            sheet.set_tab_color("#E8935F")
            row += 1
        if note := note or (origin(self.report) if name in ("Summary", OVERVIEW) else ""):
            sheet.write_string(row, 0, note, self.form(italic=True, font_color="#555555"))
            row += 1
        if self.first:
            look = self.form(font_color=LINK, underline=1)
            sheet.write_url(row, 0, cell(self.first, 0, 0), look, string=f"← {OVERVIEW}")
        return sheet, row + 1

    def footer(self, printed: str = "") -> str:
        return f"&L{ampersand(self.report.experiment)[:100]}&C&A{printed}&R&P of &N"

    def printed(self, sheet, shown: int, rows: int, columns: int) -> None:
        """Paper gets so many of the rows and says so; of columns as many as can be read. For all, remove the area."""
        sheet.print_area(0, 0, shown - 1, min(columns, LEGIBLE) - 1)
        parts = [f"{shown:,} of {rows:,} rows"] if shown < rows else []
        parts += [f"{LEGIBLE} of {columns} columns"] if columns > LEGIBLE else []
        sheet.set_footer(self.footer(f": {' and '.join(parts)}"))

    @cached_property
    def raw_rows(self) -> dict[object, str]:
        """Links to the rows of points in the raw summary, which is written later: its sheet begins as all do."""
        return next((rows_of(self.report, section) for section in self.report.sections if section.name == RAW), {})

    @cached_property
    def sample_rows(self) -> dict[object, str]:
        return rows_of(self.report, self.report.samples) if self.report.samples else {}

    def heading(self, sheet, row: int, title: str, note: str) -> int:
        sheet.write_string(row, 0, title, self.form(bold=True, font_size=12, font_color=INK))
        if note:
            sheet.write_string(row + 1, 0, note, self.form(italic=True, font_color="#555555"))
        return row + 1 + bool(note)

    def table(self, sheet, row: int, table: Table, rows: range, widths: list[int], filters: bool = True) -> int:
        """Header and some of the rows as an Excel table. Returns the next free row."""
        head = {"bold": True, "text_wrap": True, "bg_color": INK, "font_color": "#FFFFFF", "valign": "vcenter"}
        header, number = self.form(**head, align="left", indent=1), self.form(**head, align="center")
        if not rows:
            for place, column in enumerate(table.columns):
                sheet.write_string(row, place, column.header, header)
            sheet.write_string(row + 1, 0, "none", self.form(italic=True, font_color="#555555"))
            return row + 2
        self.places.tables.setdefault(table.name, Place(sheet.get_name(), row + 1, rows, table))
        titles = unique([column.header for column in table.columns])
        last = row + len(rows)
        sheet.set_row(row, 15 * header_lines(table, widths) + 3)
        formats = [number if column.kind not in WORDS else header for column in table.columns]
        if sheet.constant_memory:  # such a sheet can have a filter, but no table
            for place, (title, look) in enumerate(zip(titles, formats, strict=True)):
                sheet.write_string(row, place, title, look)
            sheet.autofilter(row, 0, last, len(titles) - 1)
            self.long_rows(sheet, row + 1, table, rows, widths)
        else:
            columns = [{"header": title, "header_format": look} for title, look in zip(titles, formats, strict=True)]
            name = legal_table(table.name, self.names)
            about = {"name": name, "style": "Table Style Light 1", "autofilter": filters, "columns": columns}
            sheet.add_table(row, 0, last, len(titles) - 1, about)
            self.rows(sheet, row + 1, table, rows, widths)
        for place, column in enumerate(table.columns):
            if column.scale is not None:
                sheet.conditional_format(row + 1, place, last, place, colour_scale(column.scale))
        return last + 1

    def rows(self, sheet, row: int, table: Table, rows: range, widths: list[int]) -> None:
        dense = len(table.columns) > BROAD
        for below, values in enumerate(table.rows[rows.start : rows.stop], row):
            if not dense and (lines := wrapped_lines(values, widths)) > 1:
                sheet.set_row(below, LINE * lines)
            for place, value in enumerate(values):
                text, look, target = self.cell(sheet, table, rows.start + below - row, place, value)
                if target:
                    sheet.write_url(below, place, target, look, string=text)
                elif text is None:
                    sheet.write_number(below, place, value, look)
                elif text:
                    sheet.write_string(below, place, text, look)
                else:
                    sheet.write_blank(below, place, None, look)

    def long_rows(self, sheet, row: int, table: Table, rows: range, widths: list[int]) -> None:
        """The same cells, some hundred rows at a time, column by column: what stands in many cells is made once."""
        made: list[dict] = [{} for _ in table.columns]
        for first in rows[::PIECE]:
            end, below = min(first + PIECE, rows.stop), row + first - rows.start
            columns = [table.values(place, first, end) for place in range(len(table.columns))]
            cells = [
                self.long_column(sheet, below, table, first, place, values, made[place])
                for place, values in enumerate(columns)
            ]
            heights = [0.0] * (end - first)
            if len(table.columns) <= BROAD:
                lines = [wrapped_lines(values, widths) for values in zip(*columns, strict=True)]
                heights = [LINE * many if many > 1 else 0.0 for many in lines]
            sheet.write_rows(below, cells, heights)

    def long_column(
        self, sheet, row: int, table: Table, first: int, place: int, values: list, made: dict[tuple, str]
    ) -> list[str]:
        """A piece of it. Numbers are told apart by their format alone, texts and flags by what they say."""
        kind, cells = table.columns[place].kind, []
        single = kind == "file" or table.marks or table.grounds  # a cell may be unlike others of its value
        for at, value in enumerate(values):
            number = finite(value)
            key = number_format(kind, value) if number else value if isinstance(value, str) else (show(kind, value),)
            cell = None if single else made.get((number, key))
            if cell is None:
                text, look, target = self.cell(sheet, table, first + at, place, value)
                if target:
                    sheet.link(row + at, place, target)
                cell = made[number, key] = sheet.opening(look) if number else sheet.text(text, look)
            cells.append(f"{cell}{value:.16G}</v></c>" if number else cell)
        return cells

    def cell(self, sheet, table: Table, at: int, place: int, value: object) -> tuple[str | None, object, str]:
        """Of a value in a row of a table: its text, None for a number, its format, and what it is a link to."""
        column, marked, ground = table.columns[place], (at, place) in table.marks, table.grounds.get((at, place), "")
        kind = column.kind
        if finite(value):
            return None, self.look(number_format(kind, value), marked, ground=ground), ""
        text, wordy = show(kind, value), kind in WORDS
        if kind == "file" and (target := self.link(sheet, text)):
            return text, self.look("", marked, wordy, LINK, ground=ground), target
        if column.key == "point" and not sheet.constant_memory and (target := self.raw_rows.get(value)):
            return text, self.look("", marked, wordy, LINK, ground=ground), target
        endless = comparable(value)  # Excel has no infinity: a text, which sorts after every number
        tone = "" if endless or (wordy and text not in TONES) else TONES.get(text, "#8A8A8A")
        ground = COLOURS["bad"] if endless and column.scale is not None else ground  # colour scales skip texts
        runs_on = len(table.columns) > BROAD or place + 1 == len(table.columns)
        return text, self.look("", marked, wordy, tone, len(text) > WIDEST and not runs_on, ground), ""

    def link(self, sheet, text: str) -> str:
        """Where its samples are, on a sheet or in the file, if the sheet has room for one more link."""
        target, links = raw_link(self.report.results, text), self.links.get(sheet.name, 0)
        target = self.sample_rows.get(PurePosixPath(text).name.partition(".")[0]) or (target and f"external:{target}")
        if not target or links >= MAX_LINKS:
            return ""
        self.links[sheet.name] = links + 1
        return target

    def look(
        self, numbers: str, marked: bool, wordy: bool = False, tone: str = "", wrap: bool = False, ground: str = ""
    ):
        """The format of a cell. Asked for every cell of large tables, so what was built once is found fast."""
        key = (numbers, marked, wordy, tone, wrap, ground)
        if key not in self.looks:
            look: dict[str, object] = {"bottom": 4, "bottom_color": RULE}
            look |= {"num_format": numbers} if numbers else {}
            look |= {"bg_color": ground} if ground else {}
            look |= {"bold": True, "bg_color": "#CFE8E0"} if marked else {}
            look |= {"align": "left", "indent": 1} if wordy else {"align": "right"}
            look |= {"font_color": tone} if tone else {}
            look |= {"underline": 1} if tone == LINK else {}
            look |= {"text_wrap": True} if wrap else {}
            self.looks[key] = self.form(**look)
        return self.looks[key]
