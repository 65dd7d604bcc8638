"""Writes a report as a workbook: native tables and charts, and calculators, byte-identical for equal reports.

A sheet is printed fitted to the page's width, its head repeated, and by its first rows. No text is computed."""

import re
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import IO

import xlsxwriter
from xlsxwriter.worksheet import Worksheet

from commodel.files.atomic import temporary_folder, write_atomically
from commodel.files.streams import return_freed_memory
from commodel.reports import received_workbooks
from commodel.reports.shape import (
    COLOURS,
    TEXT_KINDS,
    Answer,
    Chart,
    Matrix,
    Report,
    Section,
    Table,
    Text,
    Tiling,
    choose_number_format,
    describe_origin,
    format_value,
    has_rank,
    is_finite_number,
    make_raw_link,
    to_plain_value,
)
from commodel.reports.xlsx import charts, layout
from commodel.reports.xlsx.calculator import sheet as calculator
from commodel.reports.xlsx.layout import LONGEST_TABLE, WIDEST, Place, Places, Sheet, cell
from commodel.reports.xlsx.overview import SHEET as OVERVIEW
from commodel.reports.xlsx.overview import Overview

LONGEST_CELL = 32_000  # XlsxWriter drops a longer text silently
BROAD, A3 = 20, 8  # tables with more columns are printed on A3 (paper 8 of Excel), with long texts cut off
LEGIBLE = 22  # columns printed on A3
PRINTED = 200  # rows printed of a sheet, except of those in FIRST
FIRST = ("Summary", "Standings", "What to use")
TEXT_WIDTH = 150  # characters of a sentence across columns
RAW = "Raw summary"
INK, RULE, LINK, MUTED = "#1F3A4D", "#D5DBE0", "#0B5A8A", "#555555"
TONES = {"simulated": "#8A3B00", "no": "#8A8A8A", "n/a": "#8A8A8A"}
platform_of = attrgetter("platform")


class PlainFormulas(Worksheet):
    """A sheet whose cells use no function that Excel got after 2010. XlsxWriter would search each formula for 29 of
    them: a tenth of the time of a report."""

    def _prepare_formula(self, formula: str, expand_future_functions: bool = False) -> str:
        if expand_future_functions:
            return super()._prepare_formula(formula, expand_future_functions)
        return formula.removeprefix("=")


def write_xlsx(report: Report, path: str | Path) -> list[Path]:
    """Write the workbook, and files of tables that are too long for a sheet; return all paths."""
    path = Path(path)
    return_freed_memory()  # the memory that building the report took
    with write_atomically(path) as stream, temporary_folder(path) as scratch:
        book = Workbook(report, stream, scratch)
        book.add_overviews()
        for section in report.sections:
            book.add_section(section)
            if section.name == "Summary":
                book.add_calculators()
            if section.name == RAW and report.samples:
                book.add_section(report.samples)
        book.close()
    return [path, *(layout.write_parquet(name, table, path.parent) for name, table in book.beyond.items())]


PLAIN_NAME = re.compile(r"(?!.*_x)[\w.-]+", re.ASCII)  # a platform that the name of a sheet contains


class Workbook:
    """An open file: a report's sections as sheets, and the formats and names already used in it."""

    def __init__(self, report: Report, stream: IO[bytes], scratch: str = ""):
        """Start a workbook. `scratch` is a folder for sheets while they are packed; without it they are kept in
        memory."""
        options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
        options |= {"tmpdir": scratch, "in_memory": not scratch, "nan_inf_to_errors": False}
        self.report = report
        self.book = xlsxwriter.Workbook(stream, options)
        self.book.worksheet_class = Sheet
        about = {"title": report.title[:250], "created": layout.find_creation_date(report), "author": "commodel"}
        self.book.set_properties(about)
        self.formats: dict[tuple, object] = {}
        self.looks: dict[tuple, object] = {}
        self.names: set[str] = set()
        self.places = Places()
        self.first_sheets: list[Overview] = []
        self.beyond: dict[str, Table] = {}  # by section: too long for a sheet
        by_platform = groupby(sorted(report.sets, key=platform_of), key=platform_of)
        known = [(platform, *calculator.calculable(list(sets))) for platform, sets in by_platform]
        order = {front.platform: place for place, front in enumerate(report.fronts)}
        known.sort(key=lambda entry: order.get(to_plain_value(entry[0]), len(order)))  # as the first sheets
        self.calculable = [entry for entry in known if entry[1]]
        self.platforms = {*order, *(to_plain_value(entry[0]) for entry in self.calculable)}
        self.calculator_of: dict[str, tuple[str, str]] = {}  # by platform: links to it, and to L's factor
        self.chart_data = charts.ChartData(self.book, 4 if report.banner else 3)  # the row that `sheet` returns

    def form(self, **properties: object) -> object:
        key = tuple(sorted(properties.items()))
        if key not in self.formats:
            usual = {"font_name": "Calibri", "font_size": 10, "valign": "vcenter"}
            self.formats[key] = self.book.add_format(usual | properties)
        return self.formats[key]

    def sheet(self, name: str, note: str, platform: str = ""):
        """Add a sheet with title, banner (if anything is simulated) and note; return it and the next free row. A sheet
        of one platform has its name if there are several."""
        several = len(self.platforms) > 1 and PLAIN_NAME.fullmatch(platform)
        named = f"{name} {platform}" if several else name
        sheet = self.book.add_worksheet(layout.make_sheet_name(named, self.names), worksheet_class=PlainFormulas)
        sheet.hide_gridlines(2)
        sheet.set_landscape()
        sheet.set_paper(9)
        sheet.fit_to_pages(1, 0)
        sheet.set_margins(0.4, 0.4, 0.6, 0.6)
        sheet.set_footer(self.footer())
        leading = name in ("Summary", OVERVIEW)
        title = self.report.title if leading else f"{name}: {self.report.title}"
        sheet.write_string(0, 0, title, self.form(bold=True, font_size=15, font_color=INK))
        sheet.set_row(0, 22)
        row = 1
        if self.report.banner:
            sheet.set_header("&C&B SIMULATED measurements")
            sheet.write_string(row, 0, self.report.banner, self.form(bold=True, font_color="#8A3B00"))
            sheet.set_tab_color("#E8935F")
            row += 1
        if note := note or (describe_origin(self.report) if leading else ""):
            sheet.write_string(row, 0, note, self.form(italic=True, font_color=MUTED))
            row += 1
        if self.first_sheets:
            look = self.form(font_color=LINK, underline=1)
            sheet.write_url(row, 0, cell(self.first_sheets[0].name), look, string=f"← {OVERVIEW}")
        return sheet, row + 1

    def footer(self, printed: str = "") -> str:
        return f"&L{self.report.experiment.replace('&', '&&')[:100]}&C&A{printed}&R&P of &N"

    def print_first(self, sheet, rows: int, columns: int) -> None:
        """Limit printing to the first rows and to as many columns as can be read; the footer says so. A reader can
        remove the print area."""
        sheet.print_area(0, 0, min(PRINTED, rows) - 1, min(columns, LEGIBLE) - 1)
        parts = [f"{PRINTED:,} of {rows:,} rows"] if rows > PRINTED else []
        parts += [f"{LEGIBLE} of {columns} columns"] if columns > LEGIBLE else []
        sheet.set_footer(self.footer(f": {' and '.join(parts)}"))

    def add_overviews(self) -> None:
        """Add the first sheet of each platform, in front of all others; it is filled when these are written."""
        for front in self.report.fronts:
            sheet, row = self.sheet(OVERVIEW, describe_origin(self.report), front.platform)
            self.first_sheets.append(Overview(self, front, sheet, row))

    def add_calculators(self) -> None:
        """Add a calculator for each platform that has values of models with formulas."""
        for platform, sets, refused in self.calculable:
            note = f"{to_plain_value(platform)}: change a yellow cell and all predictions follow. "
            note += "Intervals are in Comparison."
            sheet, row = self.sheet(calculator.SHEET, note, to_plain_value(platform))
            writer = calculator.Sheet(self, sheet, row, sets, refused)
            writer.write()
            factor = cell(sheet.get_name(), *writer.latency) if writer.latency else ""
            self.calculator_of[to_plain_value(platform)] = cell(sheet.get_name()), factor

    def add_section(self, section: Section) -> None:
        """Add the sheet of a section. If it is a single table, its header and first columns are frozen."""
        tables, text = section.tables, section.note
        alone = len(section.blocks) == 1 and bool(tables)
        if alone and (count := len(tables[0].rows)) > LONGEST_TABLE:
            self.beyond[section.name], text = tables[0], layout.note(section.name, count)
        sheet, row = self.sheet(section.name, text)
        self.places.sheets.setdefault(section.name, sheet.get_name())
        filters = section.name not in (*FIRST, "Errors")
        matrices = [block for block in section.blocks if isinstance(block, Matrix)]
        widths = charts.matrix_widths(matrices) if matrices else layout.column_widths(tables, alone, filters)
        folded = tables[0].folded if alone else 0
        for place, width in enumerate(widths):
            hidden = {"level": 1, "hidden": True} if place >= len(widths) - folded else {}
            sheet.set_column(place, place, width, None, hidden)
        if folded:
            sheet.set_column(len(widths), len(widths), None, None, {"collapsed": True})
        columns = max((len(table.columns) for table in tables), default=0)
        if columns > BROAD:
            sheet.set_paper(A3)
        if alone:
            sheet.freeze_panes(row + 1, tables[0].fixed)
            sheet.repeat_rows(row)
            end = self.table(sheet, row, tables[0])
        else:
            end = self.add_blocks(sheet, row, section, widths, filters)
            across = charts.CHARACTERS if section.charts else TEXT_WIDTH
            columns = max(len(widths), layout.count_columns(widths, across)[0])
        if (end > PRINTED and section.name not in FIRST) or (alone and columns > LEGIBLE):
            self.print_first(sheet, end, columns)

    def add_blocks(self, sheet, row: int, section: Section, widths: list[int], filters: bool) -> int:
        """Write the blocks of a section and return the next free row."""
        for drawn, blocks in groupby(section.blocks, key=lambda block: isinstance(block, Chart)):
            if drawn:
                row = self.chart_data.insert(sheet, row, list(blocks))
                continue
            for block in blocks:
                match block:
                    case Answer():
                        row = self.answer(sheet, row, block, widths)
                    case Table():
                        row = self.heading(sheet, row, block.title, block.note)
                        row = self.table(sheet, row, block, filters) + 2
                    case Matrix():
                        row = charts.write_matrix(self, sheet, row, block)
                    case Tiling():
                        row = charts.write_tiling(self, sheet, row, block)
                    case Text():
                        row = self.text(sheet, row, block)
        return row

    def close(self) -> None:
        own = [(overview.front.platform, cell(overview.name)) for overview in self.first_sheets]
        for overview in self.first_sheets:
            calculator_at = self.calculator_of.get(overview.front.platform, ("", ""))
            overview.write(self.places, self.chart_data, own, calculator_at)
        if self.report.sets:  # as text, from which they can be read back
            note = "commodel predict --params reads these, and what a calculator changes."
            sheet, first = self.sheet(received_workbooks.SETS, note)
            for row, (number, line) in enumerate(received_workbooks.list_set_lines(self.report.sets), first):
                sheet.write_number(row, 0, number)
                sheet.write_string(row, 1, line[:LONGEST_CELL])
            sheet.hide()
        if self.chart_data.columns:
            sheet, _ = self.sheet(charts.SHEET, "What the charts draw; change a value and its chart follows.")
            self.chart_data.write(sheet, self.form(bold=True))
            sheet.hide()  # from paper, too, where its numbers would fill pages; charts draw what a hidden sheet holds
        self.book.close()

    def heading(self, sheet, row: int, title: str, note: str = "") -> int:
        sheet.write_string(row, 0, title, self.form(bold=True, font_size=12, font_color=INK))
        if note:
            sheet.write_string(row + 1, 0, note, self.form(italic=True, font_color=MUTED))
        return row + 1 + bool(note)

    def text(self, sheet, row: int, text: Text) -> int:
        """Write a text, one line a row, over the empty cells beside it. Return the next free row."""
        row = self.heading(sheet, row, text.title)
        for at, line in enumerate(text.lines, row):
            sheet.write_string(at, 0, line, self.form(font_name="Consolas", font_size=9))
        return row + len(text.lines) + 1

    def answer(self, sheet, row: int, answer: Answer, widths: list[int]) -> int:
        """Write sentences over as many columns as make a readable line, and return the next free row. Row heights are
        set, because programs do not set those of merged cells."""
        row = self.heading(sheet, row, answer.question)
        columns, characters = layout.count_columns(widths, TEXT_WIDTH)
        form = self.form(text_wrap=True, font_size=11)
        for sentence in answer.sentences:
            sheet.merge_range(row, 0, row, columns - 1, "", form)
            sheet.write_string(row, 0, f"• {sentence}"[:LONGEST_CELL], form)
            sheet.set_row(row, 15 * (1 + int(len(sentence) * 0.9) // characters) + 2)
            row += 1
        return row + 1

    def table(self, sheet, row: int, table: Table, filters: bool = True) -> int:
        """Write the header and the first rows as an Excel table. Return the next free row."""
        head = {"bold": True, "text_wrap": True, "bg_color": INK, "font_color": "#FFFFFF", "valign": "vcenter"}
        header, number = self.form(**head, align="left", indent=1), self.form(**head, align="center")
        rows = layout.shown(table)
        if not rows:
            for place, column in enumerate(table.columns):
                sheet.write_string(row, place, column.header, header)
            sheet.write_string(row + 1, 0, "none", self.form(italic=True, font_color=MUTED))
            return row + 2
        self.places.tables.setdefault(table.name, Place(sheet.get_name(), row + 1, rows, table))
        titles = layout.make_headers([column.header for column in table.columns])
        last = row + len(rows)
        columns = [
            {"header": title, "header_format": header if column.kind in TEXT_KINDS else number}
            for title, column in zip(titles, table.columns, strict=True)
        ]
        name = layout.make_unique(layout.table_name(table), 250, self.names)
        about = {"name": name, "style": "Table Style Light 1", "autofilter": filters, "columns": columns}
        sheet.add_table(row, 0, last, len(titles) - 1, about)
        for at, values in enumerate(table.rows[: len(rows)]):
            for place, value in enumerate(values):
                self.write_cell(sheet, row + 1 + at, table, at, place, value)
        for place, column in enumerate(table.columns):
            if column.scale is not None:
                sheet.conditional_format(row + 1, place, last, place, layout.colour_scale(column.scale))
        return last + 1

    def write_cell(self, sheet, row: int, table: Table, at: int, place: int, value: object) -> None:
        column, marked, background = (
            table.columns[place],
            (at, place) in table.marks,
            table.backgrounds.get((at, place), ""),
        )
        if is_finite_number(value):
            sheet.write_number(
                row, place, value, self.look(choose_number_format(column.kind, value), marked, background=background)
            )
            return
        text, wordy = format_value(column.kind, value), column.kind in TEXT_KINDS
        target = self.target(column.key, column.kind, value)
        if target:
            sheet.write_url(row, place, target, self.look("", marked, wordy, LINK, background=background), string=text)
            return
        endless = has_rank(value)  # Excel has no infinity: a text, which sorts after every number
        tone = "" if endless or (wordy and text not in TONES) else TONES.get(text, "#8A8A8A")
        background = COLOURS["bad"] if endless and column.scale is not None else background  # colour scales skip texts
        runs_on = len(table.columns) > BROAD or place + 1 == len(table.columns)
        look = self.look("", marked, wordy, tone, len(text) > WIDEST and not runs_on, background)
        if text:
            sheet.write_string(row, place, text, look)
        else:
            sheet.write_blank(row, place, None, look)

    def target(self, key: str, kind: str, value: object) -> str:
        """Return the link of a cell: from a raw file to its samples, from a point to its raw summary."""
        if kind == "file" and value:
            link = make_raw_link(self.report.results, value)
            stem = PurePosixPath(value).name.partition(".")[0]
            return self.sample_rows.get(stem) or (link and f"external:{link}")
        return self.raw_rows.get(value, "") if key == "point" else ""

    @cached_property
    def raw_rows(self) -> dict[object, str]:
        """Links to the rows of points in the raw summary, which is written later at a known place: its sheet starts as
        all do."""
        sections = [section for section in self.report.sections if section.name == RAW]
        return layout.rows_of(self.report, sections[0]) if sections else {}

    @cached_property
    def sample_rows(self) -> dict[object, str]:
        return layout.rows_of(self.report, self.report.samples) if self.report.samples else {}

    def look(
        self, numbers: str, marked: bool, wordy: bool = False, tone: str = "", wrap: bool = False, background: str = ""
    ) -> object:
        """Return the format of a cell. Every cell of a large table needs one, so formats are cached."""
        key = (numbers, marked, wordy, tone, wrap, background)
        if key not in self.looks:
            look: dict[str, object] = {"bottom": 4, "bottom_color": RULE}
            look |= {"num_format": numbers} if numbers else {}
            look |= {"bg_color": background} if background else {}
            look |= {"bold": True, "bg_color": "#CFE8E0"} if marked else {}
            look |= {"align": "left", "indent": 1} if wordy else {"align": "right"}
            look |= {"font_color": tone} if tone else {}
            look |= {"underline": 1} if tone == LINK else {}
            look |= {"text_wrap": True} if wrap else {}
            self.looks[key] = self.form(**look)
        return self.looks[key]
