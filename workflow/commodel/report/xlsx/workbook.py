"""Writes a report as a workbook: native tables and charts, values only, byte-identical for equal reports."""

from pathlib import Path
from typing import IO

import xlsxwriter

from commodel.files.atomic import whole
from commodel.report.rawlinks import raw_link
from commodel.report.shape import (
    COLOURS,
    WORDS,
    Answer,
    Chart,
    Column,
    Report,
    Table,
    Text,
    comparable,
    finite,
    number_format,
    origin,
    show,
)
from commodel.report.xlsx import charts as xlsx_charts
from commodel.report.xlsx.layout import (
    WIDEST,
    ampersand,
    colour_scale,
    column_widths,
    created,
    header_lines,
    legal,
    legal_table,
    set_widths,
    unique,
    wrapped_lines,
)

MAX_ROWS = 1_048_576
MAX_LINKS = 65_530  # Excel's limit for a sheet
LONGEST_CELL = 32_000  # XlsxWriter drops a longer text without a word
BROAD, A3 = 20, 8  # a table of more columns is printed on A3, which is paper 8
TEXT_WIDTH = 150  # characters of a sentence across columns
INK, RULE = "#1F3A4D", "#D5DBE0"
LINK = "#0B5A8A"
TONES = {"simulated": "#8A3B00", "no": "#8A8A8A", "n/a": "#8A8A8A"}


def write_xlsx(report: Report, path: str | Path) -> None:
    with whole(Path(path)) as stream:
        book = Workbook(report, stream)
        for section in report.sections:
            book.add(section)
        book.close()


class Workbook:
    """An open file and the formats and names already used in it."""

    def __init__(self, report: Report, stream: IO[bytes]):
        options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
        self.report = report
        self.book = xlsxwriter.Workbook(stream, options | {"nan_inf_to_errors": False})
        self.book.set_properties({"title": report.title[:250], "created": created(report), "author": "commodel"})
        self.formats: dict[tuple, object] = {}
        self.looks: dict[tuple, object] = {}
        self.names: set[str] = set()
        self.links: dict[str, int] = {}  # how many a sheet has
        self.chart_data = xlsx_charts.ChartData(self.book, 4 if report.banner else 3)  # the row that `sheet` returns

    def close(self) -> None:
        if self.report.charts:
            sheet, _ = self.sheet(xlsx_charts.SHEET, "What the charts draw; change a value and its chart follows.")
            self.chart_data.write(sheet, self.form(bold=True))
            sheet.print_area(0, 0, 2, 9)  # its numbers are for the charts, not for paper
        self.book.close()

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
        sheet.set_footer(f"&L{ampersand(self.report.experiment)[:100]}&C&A&R&P of &N")
        title = self.report.title if name == "Summary" else f"{name}: {self.report.title}"
        sheet.write_string(0, 0, title, self.form(bold=True, font_size=15, font_color=INK))
        sheet.set_row(0, 22)
        row = 1
        if self.report.banner:
            sheet.set_header("&C&B SIMULATED measurements")
            sheet.write_string(row, 0, self.report.banner, self.form(bold=True, font_color="#8A3B00"))
            sheet.set_tab_color("#E8935F")
            row += 1
        if note := note or (origin(self.report) if name == "Summary" else ""):
            sheet.write_string(row, 0, note, self.form(italic=True, font_color="#555555"))
            row += 1
        return sheet, row + 1

    def text(self, sheet, row: int, text: Text) -> int:
        """A line a row, over the empty cells beside it."""
        row = self.heading(sheet, row, text.title, "")
        form = self.form(font_name="Consolas", font_size=9)
        for line in text.lines:
            sheet.write_string(row, 0, line, form)
            row += 1
        return row + 1

    def add(self, section) -> None:
        tables = section.tables
        if len(section.blocks) == 1 and tables:
            self.big_table(section, tables[0])
            return
        sheet, row = self.sheet(section.name, section.note)
        filters = section.name not in ("Summary", "Errors")
        widths = column_widths(tables, False, filters)
        set_widths(sheet, widths)
        if max((len(table.columns) for table in tables), default=0) > BROAD:
            sheet.set_paper(A3)
        pending: list[Chart] = []
        for block in (*section.blocks, None):
            if pending and not isinstance(block, Chart):
                row = self.chart_data.insert(sheet, row, pending)
                pending = []
            match block:
                case Chart():
                    pending.append(block)
                case Text():
                    row = self.text(sheet, row, block)
                case Answer():
                    row = self.answer(sheet, row, block, widths)
                case Table():
                    row = self.heading(sheet, row, block.title, block.note)
                    row = self.table(sheet, row, block, block.rows, 0, widths, filters) + 2

    def big_table(self, section, table: Table) -> None:
        """A table with a sheet of its own, or several where one cannot hold it: header and first columns frozen."""
        room, widths = MAX_ROWS - 8, column_widths((table,))
        for start in range(0, max(1, len(table.rows)), room):
            name = section.name if start == 0 else f"{section.name} {start // room + 1}"
            sheet, row = self.sheet(name, section.note)
            set_widths(sheet, widths)
            if len(table.columns) > BROAD:
                sheet.set_paper(A3)
            self.table(sheet, row, table, table.rows[start : start + room], start, widths)
            sheet.freeze_panes(row + 1, table.fixed)
            sheet.repeat_rows(row)

    def heading(self, sheet, row: int, title: str, note: str) -> int:
        sheet.write_string(row, 0, title, self.form(bold=True, font_size=12, font_color=INK))
        if note:
            sheet.write_string(row + 1, 0, note, self.form(italic=True, font_color="#555555"))
        return row + 1 + bool(note)

    def answer(self, sheet, row: int, answer: Answer, widths: list[int]) -> int:
        """Sentences over as many columns as make a readable line."""
        row = self.heading(sheet, row, answer.question, "")
        last, total = 0, 0
        while total < TEXT_WIDTH and last < 40:
            total += widths[last] if last < len(widths) else 9
            last += 1
        form = self.form(text_wrap=True, font_size=11)
        for sentence in answer.sentences:
            sheet.merge_range(row, 0, row, last - 1, "", form)
            sheet.write_string(row, 0, f"• {sentence}"[:LONGEST_CELL], form)
            sheet.set_row(row, 15 * (1 + int(len(sentence) * 0.9) // total) + 2)
            row += 1
        return row + 1

    def table(
        self, sheet, row: int, table: Table, rows: tuple, start: int, widths: list[int], filters: bool = True
    ) -> int:
        """Header and rows as an Excel table. Returns the next free row."""
        head = {"bold": True, "text_wrap": True, "bg_color": INK, "font_color": "#FFFFFF", "valign": "vcenter"}
        header, number = self.form(**head, align="left", indent=1), self.form(**head, align="center")
        if not rows:
            for place, column in enumerate(table.columns):
                sheet.write_string(row, place, column.header, header)
            sheet.write_string(row + 1, 0, "none", self.form(italic=True, font_color="#555555"))
            return row + 2
        titles = unique([column.header for column in table.columns])
        last, dense = row + len(rows), len(table.columns) > BROAD  # a line a row: long texts are cut off
        sheet.add_table(
            row,
            0,
            last,
            len(titles) - 1,
            {
                "name": legal_table(table.name, self.names),
                "style": "Table Style Light 1",
                "autofilter": filters,
                "columns": [
                    {"header": title, "header_format": number if column.kind not in WORDS else header}
                    for title, column in zip(titles, table.columns, strict=True)
                ],
            },
        )
        sheet.set_row(row, 15 * header_lines(table, widths) + 3)
        for at, values in enumerate(rows):
            if not dense and (lines := wrapped_lines(values, widths)) > 1:
                sheet.set_row(row + 1 + at, 13.5 * lines)
            for place, (column, value) in enumerate(zip(table.columns, values, strict=True)):
                marked = (start + at, place) in table.marks
                runs_on = dense or place + 1 == len(table.columns)
                ground = table.grounds.get((start + at, place), "")
                self.cell(sheet, row + 1 + at, place, column, value, marked, runs_on, ground)
        for place, column in enumerate(table.columns):
            if column.scale is not None:
                sheet.conditional_format(row + 1, place, last, place, colour_scale(column.scale))
        return last + 1

    def cell(
        self, sheet, row: int, place: int, column: Column, value: object, marked: bool, runs_on: bool, ground: str = ""
    ) -> None:
        kind = column.kind
        if finite(value):
            sheet.write_number(row, place, value, self.look(number_format(kind, value), marked, ground=ground))
            return
        text, wordy = show(kind, value), kind in WORDS
        if kind == "file" and (target := self.link(sheet, text)):
            look = self.look("", marked, wordy, LINK, ground=ground)
            sheet.write_url(row, place, f"external:{target}", look, string=text)
            return
        endless = comparable(value)  # Excel has no infinity: a text, which sorts after every number
        tone = "" if endless or (wordy and text not in TONES) else TONES.get(text, "#8A8A8A")
        ground = COLOURS["bad"] if endless and column.scale is not None else ground  # colour scales skip texts
        look = self.look("", marked, wordy, tone, len(text) > WIDEST and not runs_on, ground)
        if text:
            sheet.write_string(row, place, text, look)
        else:
            sheet.write_blank(row, place, None, look)

    def link(self, sheet, text: str) -> str:
        """Where the file is, if the sheet has room for one more link."""
        target, links = raw_link(self.report.results, text), self.links.get(sheet.name, 0)
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
