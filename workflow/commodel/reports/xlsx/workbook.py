"""Writes a report as a workbook: native tables and charts, and calculators, byte-identical for
equal reports.

A sheet is printed at the page's width with its header row repeated; of a long sheet only the first
rows are printed. Texts that look like formulas remain texts."""

import re
import textwrap
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from itertools import groupby, zip_longest
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

import xlsxwriter
from xlsxwriter.worksheet import Worksheet

from commodel.extensions import list_sections
from commodel.files.atomic import make_temporary_folder, write_atomically
from commodel.files.streamed_tables import return_freed_memory
from commodel.reports.elements import (
    COLOURS,
    TEXT_KINDS,
    AnsweredQuestion,
    Block,
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
from commodel.reports.xlsx import calculator, charts, layout
from commodel.reports.xlsx.layout import (
    A3_PAPER,
    FIRST_ROW,
    HEADER_COLOUR,
    HIGHLIGHT_COLOUR,
    LINE_HEIGHT_PT,
    LINK_COLOUR,
    MAX_COLUMN_WIDTH,
    MAX_TABLE_ROWS,
    NOTE_COLOUR,
    RULE_COLOUR,
    Place,
    Sheet,
    TablePlaces,
    link_cell,
)
from commodel.reports.xlsx.overview import OVERVIEW_SHEET, Overview

MAX_CELL_LENGTH = 32_000  # XlsxWriter drops a longer text silently
MAX_A4_COLUMNS = 20  # tables with more columns are printed on A3, with long texts cut off
MAX_PRINTED_COLUMNS = 18  # columns printed on A3
MAX_PRINTED_PAGES = 2  # of a sheet
# of a block, which a page does not part: heading, note, header, and the first rows
HEADING_ROWS = 5
MAX_WRAPPED_LENGTH = 300  # characters of a cell; a longer text is cut off on paper
SENTENCE_WIDTH = 150  # characters in a line of a sentence, which spans columns
RAW_SECTION = "Raw summary"
MAX_CACHED_CELLS = 10_000  # of a table
TEXT_COLOURS = {"simulated": HIGHLIGHT_COLOUR, "no": "#8A8A8A", "n/a": "#8A8A8A"}


class Cell(NamedTuple):
    """How a sheet writes a cell, after its row and column, and the lines of its text."""

    write: Callable[..., object]
    arguments: tuple[object, ...]
    lines: int = 1


def write_xlsx(report: Report, path: str | Path) -> list[Path]:
    """Write the workbook, and files of tables that are too long for a sheet; return all paths."""
    path = Path(path)
    return_freed_memory()  # the memory that building the report took
    with write_atomically(path) as stream, make_temporary_folder(path) as scratch:
        book = Workbook(report, stream, scratch)
        book.add_overviews()
        for section in merge_sections(report):
            book.add_section(section)
        book.add_calculator()
        book.close()
    return [
        path,
        *(
            layout.write_parquet(name, table, path.parent)
            for name, table in book.long_tables.items()
        ),
    ]


# Sheets of a campaign, and the sections on each in their order. Other sections, such as figures of
# a paper, have sheets of their own before these.
SHEETS: dict[str, tuple[str, ...]] = {
    "What to use": (
        "Summary",
        "What to use",
        "Selection",
        "Choices by model",
        "Trees",
        "Findings",
    ),
    "Comparison": ("Comparison",),
    "Errors": ("Errors", "Standings", "Container overhead"),
    "Models": ("Models", "Parameters", "Allocations"),
    "Fits": ("Fits",),
    "Network": ("Network", "Distances", "Memory", "Latency"),
    RAW_SECTION: (RAW_SECTION,),
    "Samples": ("Samples",),
    "Provenance": ("Provenance", "Not measured", "Inputs"),
    "Glossary": ("Glossary",),
}
PRINTED_PAGES = {
    "What to use": 3,
    calculator.CALCULATOR_SHEET: 1,
    "Network": 1,
    RAW_SECTION: 1,
    "Samples": 1,
    "Provenance": 1,
    "Glossary": 3,
}


def merge_sections(report: Report) -> list[Section]:
    """Return a section for each sheet. A section with another name than its sheet begins with its
    name and note."""
    # the answer of another verb
    if all(section.name != "Comparison" for section in report.sections):
        return list(report.sections)
    sections = {
        section.name: section for section in (*report.sections, *filter(None, [report.samples]))
    }
    brought = list_sections()
    merged = []
    for sheet, names in SHEETS.items():
        appended = [name for name, section in brought.items() if section.sheet == sheet]
        present = [sections.pop(name) for name in (*names, *appended) if name in sections]
        if present:
            blocks: list[Block] = []
            for section in present:
                if section.name != sheet:
                    blocks.append(
                        AnsweredQuestion(section.name, (section.note,) if section.note else ())
                    )
                blocks += section.blocks
            note = present[0].note if present[0].name == sheet else ""
            merged.append(Section(sheet, note, tuple(blocks)))
    return [*sections.values(), *merged]


# platform names that a sheet name may contain
PLAIN_NAME = re.compile(r"(?!.*_x)[\w.-]+", re.ASCII)


class Workbook:
    """An open file: a report's sections as sheets, and the formats and names already used in it."""

    def __init__(self, report: Report, stream: IO[bytes], scratch: str = ""):
        """Start a workbook. `scratch` is a folder for temporary files of the sheets; if empty, the
        sheets are kept in memory."""
        options: dict[str, str | bool] = {
            "strings_to_formulas": False,
            "strings_to_urls": False,
            "strings_to_numbers": False,
        }
        options |= {"tmpdir": scratch, "in_memory": not scratch, "nan_inf_to_errors": False}
        self.report = report
        self.book = xlsxwriter.Workbook(stream, options)
        self.book.worksheet_class = Sheet
        properties = {
            "title": report.title[:250],
            "created": layout.find_creation_date(report),
            "author": "commodel",
        }
        self.book.set_properties(properties)
        self.formats: dict[tuple, object] = {}
        self.cell_formats: dict[tuple, object] = {}
        self.names: set[str] = set()
        self.places = TablePlaces()
        self.first_sheets: list[Overview] = []
        self.max_text_width = MAX_COLUMN_WIDTH  # characters of a line of wrapped text on the sheet
        # first row and end of what a page of the sheet does not part
        self.unbroken_ranges: list[tuple[int, int]] = []
        self.long_tables: dict[str, Table] = {}  # too long for a sheet, by name of their file
        order = {screen.platform: rank for rank, screen in enumerate(report.screens)}
        sets = sorted(
            report.sets, key=lambda fitted: order.get(to_plain_value(fitted.platform), len(order))
        )
        self.calculable, self.refused = calculator.select_calculable(sets)  # as the first sheets
        self.platforms = {
            *order,
            *(to_plain_value(forms.parameters.platform) for forms in self.calculable),
        }
        simulated = {screen.platform for screen in report.screens if screen.simulated}
        simulated |= {
            to_plain_value(parameters.platform)
            for parameters in report.sets
            if parameters.simulated
        }
        self.measured_platforms = self.platforms - simulated
        names = f" on {', '.join(sorted(simulated))}" if self.measured_platforms else ""
        self.simulation_header = f"&C&B SIMULATED measurements{names.replace('&', '&&')[:150]}"
        self.calculator_link = ""
        # to the factor of a latency in the calculator, by platform
        self.latency_links: dict[str, str] = {}
        self.chart_data = charts.ChartData(self.book, FIRST_ROW)

    def make_format(self, **properties: object) -> object:
        key = tuple(sorted(properties.items()))
        if key not in self.formats:
            defaults = {"font_name": "Calibri", "font_size": 10, "valign": "vcenter"}
            self.formats[key] = self.book.add_format(defaults | properties)
        return self.formats[key]

    def add_sheet(self, name: str, note: str, platform: str = ""):
        """Add a sheet with title, banner (if anything is simulated) and note; return it and the
        next free row. If there are several platforms, the sheet name ends with the name of its
        platform."""
        names_platform = len(self.platforms) > 1 and PLAIN_NAME.fullmatch(platform)
        sheet_name = f"{name} {platform}" if names_platform else name
        is_leading = name == OVERVIEW_SHEET or not self.book.worksheets()
        sheet = self.book.add_worksheet(layout.make_sheet_name(sheet_name, self.names))
        sheet.hide_gridlines(2)
        sheet.set_default_row(layout.ROW_HEIGHT_PT)
        sheet.set_landscape()
        sheet.set_paper(9)
        sheet.fit_to_pages(1, 0)
        sheet.set_margins(0.4, 0.4, 0.6, 0.6)
        sheet.set_footer(self.format_footer())
        title = self.report.title if is_leading else f"{name}: {self.report.title}"
        sheet.write_string(
            0, 0, title, self.make_format(bold=True, font_size=15, font_color=HEADER_COLOUR)
        )
        sheet.set_row(0, 22)
        # Every sheet has its first table at the same row.
        if self.report.banner:
            if platform not in self.measured_platforms:
                sheet.set_header(self.simulation_header)
                sheet.set_tab_color(COLOURS["bad"])
            sheet.write_string(
                1, 0, self.report.banner, self.make_format(bold=True, font_color=HIGHLIGHT_COLOUR)
            )
        note = note or (describe_origin(self.report) if is_leading else "")
        if note:
            sheet.write_string(2, 0, note, self.make_format(italic=True, font_color=NOTE_COLOUR))
        if self.first_sheets:
            cell_format = self.make_format(font_color=LINK_COLOUR, underline=1)
            sheet.write_url(
                3,
                0,
                link_cell(self.first_sheets[0].name),
                cell_format,
                string=f"← {OVERVIEW_SHEET}",
            )
        return sheet, FIRST_ROW

    def format_footer(self, printed: str = "") -> str:
        return f"&L{self.report.experiment.replace('&', '&&')[:100]}&C&A{printed}&R&P of &N"

    def print_sheet(self, sheet, name: str, rows: int, columns: int, head_rows: int = 0) -> None:
        """Limit printing to the first pages, and state in the footer how many rows and columns are
        printed. `head_rows` are the rows of the sheet above those of its table, which the footer
        counts. A reader can remove the print area."""
        shown_columns = min(columns, MAX_PRINTED_COLUMNS)
        end = sheet.print_pages(
            rows, shown_columns, self.unbroken_ranges, PRINTED_PAGES.get(name, MAX_PRINTED_PAGES)
        )
        parts = [f"{end - head_rows:,} of {rows - head_rows:,} rows"] if end < rows else []
        parts += [f"{shown_columns} of {columns} columns"] if shown_columns < columns else []
        if parts:
            sheet.set_footer(self.format_footer(f": {' and '.join(parts)}"))

    def add_overviews(self) -> None:
        """Add the overview sheet of each platform before all other sheets. It is filled after them,
        because it links to them."""
        for screen in self.report.screens:
            sheet, row = self.add_sheet(
                OVERVIEW_SHEET, describe_origin(self.report), screen.platform
            )
            self.first_sheets.append(Overview(self, screen, sheet, row))

    def add_calculator(self) -> None:
        """Add the calculator, if formulas can use a parameter set."""
        if self.calculable:
            note = (
                "Change a yellow cell and all predictions follow. They are of whole messages and without intervals; "
                "commodel predict has segments, as in chain:4KiB, intervals, and the recommended prediction."
            )
            sheet, row = self.add_sheet(calculator.CALCULATOR_SHEET, note)
            writer = calculator.Calculator(self, sheet, row, self.calculable)
            end, columns = writer.write(self.refused)
            self.unbroken_ranges = []
            self.print_sheet(sheet, calculator.CALCULATOR_SHEET, end, columns)
            self.calculator_link = link_cell(sheet.get_name())
            cells = writer.latencies.items()
            self.latency_links = {
                platform: link_cell(sheet.get_name(), *cell) for platform, cell in cells
            }

    def add_section(self, section: Section) -> None:
        """Add the sheet of a section. If it is a single table, its header and first columns are
        frozen."""
        tables = section.tables
        text = section.note
        single_block = len(section.blocks) == 1 and bool(tables)
        if single_block:
            text = self.add_long_table(section.name, tables[0]) or text
        sheet, row = self.add_sheet(section.name, text)
        self.places.sheets.setdefault(section.name, sheet.get_name())
        matrices = [block for block in section.blocks if isinstance(block, Matrix)]
        table_widths = layout.choose_column_widths(tables, single_block)
        matrix_widths = charts.choose_matrix_widths(matrices) if matrices else []
        widths = [max(pair) for pair in zip_longest(table_widths, matrix_widths, fillvalue=0)]
        self.max_text_width = layout.MAX_COLUMN_WIDTH if single_block else layout.MAX_SHARED_WIDTH
        self.unbroken_ranges = []
        folded = tables[0].folded if single_block else 0
        for column, width in enumerate(widths):
            hidden = {"level": 1, "hidden": True} if column >= len(widths) - folded else {}
            sheet.set_column(column, column, width, None, hidden)
        if folded:
            sheet.set_column(len(widths), len(widths), None, None, {"collapsed": True})
        columns = max((len(table.columns) for table in tables), default=0)
        if columns > MAX_A4_COLUMNS:
            sheet.set_paper(A3_PAPER)
        if single_block:
            sheet.freeze_panes(row + 1, tables[0].fixed)
            sheet.repeat_rows(row)
            end = self.write_table(sheet, row, tables[0], widths)
            self.print_sheet(sheet, section.name, end, columns, row + 1)
        else:
            sheet.repeat_rows(0)
            end = self.add_blocks(sheet, row, section, widths)
            characters = charts.CHART_ROW_WIDTH if section.charts else SENTENCE_WIDTH
            columns = max(len(widths), layout.count_columns(widths, characters)[0])
            self.print_sheet(sheet, section.name, end, columns)

    def add_long_table(self, name: str, table: Table) -> str:
        """Add the table to those that get a file if it is too long for a sheet. Return the note
        that says so."""
        if len(table.rows) <= MAX_TABLE_ROWS:
            return ""
        self.long_tables[name] = table
        return layout.make_long_table_note(name, len(table.rows))

    def add_blocks(self, sheet, row: int, section: Section, widths: Sequence[float]) -> int:
        """Write the blocks of a section and return the next free row. `unbroken_ranges` gets the
        rows that a page keeps together: lines of charts, and headings with what follows."""
        heading = -1
        for are_charts, blocks in groupby(
            section.blocks, key=lambda block: isinstance(block, Chart)
        ):
            if are_charts:
                first = row
                drawn = [block for block in blocks if isinstance(block, Chart)]
                row = self.chart_data.insert(
                    sheet, row, drawn, in_line=charts.count_charts_in_line(widths)
                )
                ends = range(first + charts.count_rows(), row, charts.count_rows())
                self.unbroken_ranges += [(end - charts.count_rows(), end) for end in ends]
                if heading >= 0 and first - heading <= HEADING_ROWS:
                    self.unbroken_ranges[-len(ends)] = heading, ends[0]
                elif heading >= 0:
                    self.unbroken_ranges.insert(-len(ends), (heading, heading + HEADING_ROWS))
                heading = -1
                continue
            for block in blocks:
                if heading >= 0:
                    self.unbroken_ranges.append((heading, min(row, heading + HEADING_ROWS)))
                heading = row
                match block:
                    case AnsweredQuestion():
                        row = self.write_answer(sheet, row, block, widths)
                    case Table():
                        notes = block.note, self.add_long_table(block.title, block)
                        row = self.write_heading(
                            sheet, row, block.title, " ".join(filter(None, notes))
                        )
                        row = self.write_table(sheet, row, block, widths) + 2
                    case Matrix():
                        row = charts.write_matrix(self, sheet, row, block)
                    case Tiling():
                        row = charts.write_tiling(self, sheet, row, block)
                    case Text():
                        row = self.write_text(sheet, row, block)
        if heading >= 0:
            self.unbroken_ranges.append((heading, min(row, heading + HEADING_ROWS)))
        return row

    def close(self) -> None:
        overview_links = [
            (overview.screen.platform, link_cell(overview.name)) for overview in self.first_sheets
        ]
        for overview in self.first_sheets:
            latency_link = self.latency_links.get(overview.screen.platform, "")
            overview.write(
                self.places, self.chart_data, overview_links, (self.calculator_link, latency_link)
            )
        if self.chart_data.columns:
            sheet, _ = self.add_sheet(
                charts.CHART_DATA_SHEET,
                "What the charts draw; change a value and its chart follows.",
            )
            self.chart_data.write(sheet, self.make_format(bold=True))
            sheet.hide()  # hidden sheets are not printed, and charts still draw their data
        self.book.close()

    def write_heading(self, sheet, row: int, title: str, note: str = "") -> int:
        sheet.write_string(
            row, 0, title, self.make_format(bold=True, font_size=12, font_color=HEADER_COLOUR)
        )
        # A longer line would widen the printed page.
        lines = textwrap.wrap(note.replace(" %", "\N{NO-BREAK SPACE}%"), SENTENCE_WIDTH)
        for at, line in enumerate(lines, row + 1):
            sheet.write_string(at, 0, line, self.make_format(italic=True, font_color=NOTE_COLOUR))
        return row + 1 + len(lines)

    def write_text(self, sheet, row: int, text: Text) -> int:
        """Write a text, one line a row, over the empty cells beside it. Return the next free
        row."""
        row = self.write_heading(sheet, row, text.title)
        for at, line in enumerate(text.lines, row):
            sheet.write_string(at, 0, line, self.make_format(font_name="Consolas", font_size=9))
        return row + len(text.lines) + 1

    def write_answer(
        self, sheet, row: int, answer: AnsweredQuestion, widths: Sequence[float]
    ) -> int:
        """Write sentences over as many columns as make a readable line, and return the next free
        row. Row heights are set, because programs do not set those of merged cells."""
        row = self.write_heading(sheet, row, answer.question)
        columns, characters = layout.count_columns(widths, SENTENCE_WIDTH)
        form = self.make_format(text_wrap=True, font_size=11)
        for sentence in answer.sentences:
            sheet.merge_range(row, 0, row, columns - 1, "", form)
            sheet.write_string(row, 0, f"• {sentence}"[:MAX_CELL_LENGTH], form)
            sheet.set_row(row, 15 * (1 + int(len(sentence) * 0.9) // characters) + 2)
            row += 1
        return row + 1

    def write_table(self, sheet, row: int, table: Table, widths: Sequence[float]) -> int:
        """Write the header and the first rows as an Excel table. Return the next free row."""
        headers = [column.header for column in table.columns]
        sheet.set_row(row, layout.compute_header_height(headers, widths))
        head = {
            "bold": True,
            "text_wrap": True,
            "bg_color": HEADER_COLOUR,
            "font_color": "#FFFFFF",
            "valign": "vcenter",
        }
        header = self.make_format(**head, align="left", indent=1)
        number = self.make_format(**head, align="center")
        rows = layout.select_shown_rows(table)
        if not rows:
            for index, column in enumerate(table.columns):
                sheet.write_string(row, index, column.header, header)
            sheet.write_string(
                row + 1, 0, "none", self.make_format(italic=True, font_color=NOTE_COLOUR)
            )
            return row + 2
        self.places.tables.setdefault(
            table.name, Place(sheet=sheet.get_name(), row=row + 1, rows=rows, table=table)
        )
        titles = layout.make_headers(headers)
        last = row + len(rows)
        columns = [
            {"header": title, "header_format": header if column.kind in TEXT_KINDS else number}
            for title, column in zip(titles, table.columns, strict=True)
        ]
        name = layout.make_unique(layout.make_table_name(table), 250, self.names)
        options = {"name": name, "style": "Table Style Light 1", "columns": columns}
        sheet.add_table(row, 0, last, len(titles) - 1, options)
        # most values of a table repeat
        make_cell = lru_cache(MAX_CACHED_CELLS, typed=True)(partial(self.make_cell, table))
        for at, values in enumerate(table.rows[: len(rows)]):
            lines = 1
            for index, value in enumerate(values):
                is_marked = (at, index) in table.marks
                background = table.backgrounds.get((at, index), "")
                cell = make_cell(index, value, is_marked, background)
                cell.write(sheet, row + 1 + at, index, *cell.arguments)
                lines = max(lines, cell.lines)
            if lines > 1:
                sheet.set_row(row + 1 + at, LINE_HEIGHT_PT * lines)
        for index, column in enumerate(table.columns):
            if column.scale is not None:
                sheet.conditional_format(
                    row + 1, index, last, index, layout.make_colour_scale(column.scale)
                )
        return last + 1

    def make_cell(
        self, table: Table, column_index: int, value: object, is_marked: bool, background: str
    ) -> Cell:
        """Return a cell of a column, without its place."""
        column = table.columns[column_index]
        if is_finite_number(value):
            numbers = choose_number_format(column.kind, value)
            form = self.make_cell_format(numbers, is_marked, background=background)
            return Cell(Worksheet.write_number, (value, form))
        text = format_value(column.kind, value)
        is_text = column.kind in TEXT_KINDS
        target = self.find_link(column.key, column.kind, value)
        if target:
            form = self.make_cell_format("", is_marked, is_text, LINK_COLOUR, background=background)
            return Cell(Worksheet.write_url, (target, form, text))
        # Excel has no infinity: a text, which sorts after every number
        is_infinite = has_rank(value)
        font_colour = (
            ""
            if is_infinite or (is_text and text not in TEXT_COLOURS)
            else TEXT_COLOURS.get(text, "#8A8A8A")
        )
        # colour scales skip texts
        background = COLOURS["bad"] if is_infinite and column.scale is not None else background
        may_overflow = len(table.columns) > MAX_A4_COLUMNS or column_index + 1 == len(table.columns)
        wraps = self.max_text_width < len(text) <= MAX_WRAPPED_LENGTH and not may_overflow
        form = self.make_cell_format("", is_marked, is_text, font_colour, wraps, background)
        lines = len(textwrap.wrap(text, self.max_text_width)) if wraps else 1
        if text:
            return Cell(Worksheet.write_string, (text, form), lines)
        return Cell(Worksheet.write_blank, (None, form))

    def find_link(self, key: str, kind: str, value: Any) -> str:
        """Return the link of a cell: from a raw file to its samples, from a point to its raw
        summary."""
        if kind == "file" and value:
            link = make_raw_link(self.report.results, value)
            stem = PurePosixPath(value).name.partition(".")[0]
            return self.sample_rows.get(stem) or (link and f"external:{link}")
        return self.raw_rows.get(value, "") if key == "point" else ""

    @cached_property
    def raw_rows(self) -> dict[object, str]:
        """Links to the rows of points in the raw summary. That sheet is written later, but its
        first row is known."""
        sections = [section for section in self.report.sections if section.name == RAW_SECTION]
        return layout.link_first_rows(sections[0]) if sections else {}

    @cached_property
    def sample_rows(self) -> dict[object, str]:
        return layout.link_first_rows(self.report.samples) if self.report.samples else {}

    def make_cell_format(
        self,
        numbers: str,
        is_marked: bool,
        is_text: bool = False,
        font_colour: str = "",
        wrap: bool = False,
        background: str = "",
    ) -> object:
        """Return the format of a cell. Every cell of a large table needs one, so formats are
        cached."""
        key = (numbers, is_marked, is_text, font_colour, wrap, background)
        if key not in self.cell_formats:
            cell_format: dict[str, Any] = {"bottom": 4, "bottom_color": RULE_COLOUR}
            cell_format |= {"num_format": numbers} if numbers else {}
            cell_format |= {"bg_color": background} if background else {}
            cell_format |= {"bold": True, "bg_color": "#CFE8E0"} if is_marked else {}
            cell_format |= {"align": "left", "indent": 1} if is_text else {"align": "right"}
            cell_format |= {"font_color": font_colour} if font_colour else {}
            cell_format |= {"underline": 1} if font_colour == LINK_COLOUR else {}
            cell_format |= {"text_wrap": True} if wrap else {}
            self.cell_formats[key] = self.make_format(**cell_format)
        return self.cell_formats[key]
