"""Writes a report as a workbook: native tables and charts, and calculators, byte-identical for equal reports."""

from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import IO

from commodel.files.atomic import beside, whole
from commodel.files.streams import give_back
from commodel.reports import received_workbooks
from commodel.reports.shape import Answer, Chart, Matrix, Report, Table, Text, Tiling, origin
from commodel.reports.values import plain
from commodel.reports.xlsx import charts as xlsx_charts
from commodel.reports.xlsx import charts as xlsx_tiling
from commodel.reports.xlsx import layout, pages
from commodel.reports.xlsx import overview as xlsx_matrix
from commodel.reports.xlsx.book import A3, BROAD, LEGIBLE, RAW, Book
from commodel.reports.xlsx.calculator import sheet as calculator
from commodel.reports.xlsx.calculator.sheet import calculable
from commodel.reports.xlsx.layout import HEAD, MAX_ROWS, cell, column_widths, set_widths
from commodel.reports.xlsx.overview import SHEET as OVERVIEW
from commodel.reports.xlsx.overview import Overview
from commodel.reports.xlsx.pages import TEXT_WIDTH, Unit

LONG_TABLE = 20_000  # rows of a table
PRINTED = 200  # rows of a sheet; all of the first ones
FIRST = ("Summary", "Standings", "What to use")
LONGEST_CELL = 32_000  # XlsxWriter drops a longer text without a word
whose = attrgetter("platform")


def write_xlsx(report: Report, path: str | Path) -> list[Path]:
    """Returns what was written: the workbook, and files of tables that no sheet can hold."""
    path = Path(path)
    give_back()  # what it took to build the report
    with whole(path) as stream, beside(path) as scratch:
        book = Workbook(report, stream, scratch)
        book.overviews()
        for section in report.sections:
            book.add(section)
            if section.name == "Summary":
                book.calculators()
            if section.name == RAW and report.samples:
                book.add(report.samples)
        book.close()
    return [path, *(layout.write_parquet(name, table, path.parent) for name, table in book.beyond.items())]


class Workbook(Book):
    """A report's sections as sheets."""

    def __init__(self, report: Report, stream: IO[bytes], scratch: str = ""):
        super().__init__(report, stream, scratch)
        by_platform = groupby(sorted(report.sets, key=whose), key=whose)
        known = [(platform, *calculable(list(sets))) for platform, sets in by_platform]
        order = {front.platform: place for place, front in enumerate(report.fronts)}
        known.sort(key=lambda entry: order.get(plain(entry[0]), len(order)))  # as the first sheets
        self.calculable = [entry for entry in known if entry[1]]
        self.beyond: dict[str, Table] = {}  # by section: too long for a sheet
        self.first_sheets: list[Overview] = []
        self.calculator_of: dict[str, tuple[str, str]] = {}  # by platform: links to it, and to L's factor
        self.chart_data = xlsx_charts.ChartData(self.book, 4 if report.banner else 3)  # the row that `sheet` returns

    def overviews(self) -> None:
        """A first sheet for each platform: in front, though they are filled when all others stand."""
        for front in self.report.fronts:
            sheet, row = self.sheet(OVERVIEW, origin(self.report))
            self.first_sheets.append(Overview(self, front, sheet, row))
            self.first = self.first_sheets[0].name

    def close(self) -> None:
        own = [(overview.front.platform, cell(overview.name, 0, 0)) for overview in self.first_sheets]
        for overview in self.first_sheets:
            calculator_at = self.calculator_of.get(overview.front.platform, ("", ""))
            overview.write(self.places, self.chart_data, own, calculator_at)
        self.sets()
        if self.chart_data.columns:
            sheet, _ = self.sheet(xlsx_charts.SHEET, "What the charts draw; change a value and its chart follows.")
            self.chart_data.write(sheet, self.form(bold=True))
            sheet.hide()  # from paper, too, where its numbers would fill pages; charts draw what a hidden sheet holds
        self.book.close()

    def text(self, sheet, row: int, text: Text) -> int:
        """A line a row, over the empty cells beside it."""
        row = self.heading(sheet, row, text.title, "")
        form = self.form(font_name="Consolas", font_size=9)
        for line in text.lines:
            sheet.write_string(row, 0, line, form)
            row += 1
        return row + 1

    def calculators(self) -> None:
        """A sheet for each platform of which there are values with known formulas."""
        for platform, sets, refused in self.calculable:
            note = f"{plain(platform)}: change a yellow cell and everything follows. No intervals: see Comparison."
            sheet, row = self.sheet(calculator.SHEET, note)
            writer = calculator.Sheet(self, sheet, row, sets, refused)
            writer.write()
            factor = cell(sheet.get_name(), *writer.latency) if writer.latency else ""
            self.calculator_of[plain(platform)] = cell(sheet.get_name(), 0, 0), factor

    def sets(self) -> None:
        """The parameter sets as text, from which they can be read back."""
        if self.report.sets:
            note = "commodel predict --params reads these, and what a calculator changes."
            sheet, first = self.sheet(received_workbooks.SETS, note)
            for row, (number, line) in enumerate(received_workbooks.lines(self.report.sets), first):
                sheet.write_number(row, 0, number)
                sheet.write_string(row, 1, line[:LONGEST_CELL])
            sheet.hide()

    def add(self, section) -> None:
        tables = section.tables
        if len(section.blocks) == 1 and tables:
            self.big_table(section, tables[0])
            return
        sheet, row = self.sheet(section.name, section.note)
        self.places.sheets.setdefault(section.name, sheet.get_name())
        filters = section.name not in (*FIRST, "Errors")
        matrices = [block for block in section.blocks if isinstance(block, Matrix)]
        widths = xlsx_matrix.widths(matrices) if matrices else column_widths(tables, False, filters)
        set_widths(sheet, widths)
        if max((len(table.columns) for table in tables), default=0) > BROAD:
            sheet.set_paper(A3)
        pending: list[Chart] = []
        units: list[Unit] = []
        before = None  # the last block that is no chart
        for block in (*section.blocks, None):
            if pending and not isinstance(block, Chart):
                top, row = row, self.chart_data.insert(sheet, row, pending)
                units += pages.chart_lines(top, len(pending), units.pop() if isinstance(before, Answer) else None)
                pending = []
            first = row
            match block:
                case Chart():
                    pending.append(block)
                case Matrix():
                    row = xlsx_matrix.write(self, sheet, row, block)
                case Tiling():
                    row = xlsx_tiling.write(self, sheet, row, block)
                case Text():
                    row = self.text(sheet, row, block)
                case Answer():
                    row = self.answer(sheet, row, block, widths)
                case Table():
                    row = self.heading(sheet, row, block.title, block.note)
                    row = self.table(sheet, row, block, range(len(block.rows)), widths, filters) + 2
            if row > first:
                units.append(Unit(first, row))
            before = block if not isinstance(block, Chart) else before
        self.paged(sheet, section, units, row, widths)

    def paged(self, sheet, section, units: list[Unit], rows: int, widths: list[int]) -> None:
        """On paper: all columns side by side, and no block cut that can stand on one page."""
        wide = [*widths, *[pages.COLUMN] * (pages.columns(section, widths) - len(widths))]
        shown = rows
        if rows > PRINTED and section.name not in FIRST:
            ends = [unit.end for unit in units if PRINTED / 2 < unit.end <= PRINTED]
            shown = max(ends, default=PRINTED)
            self.printed(sheet, shown, rows, len(wide))
        else:
            sheet.print_area(0, 0, max(rows, 1) - 1, len(wide) - 1)
        percent = pages.scale(wide, sheet.paper_size)
        kept = [unit for unit in units if unit.end <= shown]
        sheet.set_h_pagebreaks(pages.breaks(kept, sheet.heights, percent, sheet.paper_size))

    def big_table(self, section, table: Table) -> None:
        """A table with a sheet of its own: header and first columns frozen. Where no sheet can hold it the first rows,
        and a file beside the workbook has all."""
        shown, text = range(len(table.rows)), section.note
        if len(shown) > MAX_ROWS - HEAD:
            shown, text = shown[: layout.ROWS_SHOWN], layout.note(section.name, len(shown))
            self.beyond[section.name] = table
        # Rows of long tables go to a file as they come: in memory each of their cells would take 200 bytes.
        self.book.constant_memory = len(shown) > LONG_TABLE
        widths = column_widths((table,))
        sheet, row = self.sheet(section.name, text)
        self.places.sheets.setdefault(section.name, sheet.get_name())
        set_widths(sheet, widths)
        if len(table.columns) > BROAD:
            sheet.set_paper(A3)
        end = self.table(sheet, row, table, shown, widths)
        if end > PRINTED or len(table.columns) > LEGIBLE:
            self.printed(sheet, min(PRINTED, end), end, len(table.columns))
        sheet.freeze_panes(row + 1, table.fixed)
        sheet.repeat_rows(row)
        self.book.constant_memory = False

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
