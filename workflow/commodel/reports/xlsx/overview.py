"""The first sheet of each platform: the page's first screen with links to the data behind it, on
one printed page."""

from collections.abc import Sequence
from itertools import accumulate

from commodel.extensions import list_sections
from commodel.reports.elements import FirstScreen, Grid, Report, SourceRows, Tile
from commodel.reports.report_builder import LATENCY_QUESTION, list_commands
from commodel.reports.xlsx.charts import ChartData
from commodel.reports.xlsx.layout import (
    HEADER_COLOUR,
    HIGHLIGHT_COLOUR,
    LINK_COLOUR,
    NOTE_COLOUR,
    ROW_HEIGHT_PX,
    TablePlaces,
    link_cell,
)

OVERVIEW_SHEET = "Overview"
TILE_BACKGROUND = "#F3F6F8"
MIN_SHEET_WIDTH = 165
GAP_WIDTH = 2  # characters: all columns, and the column between the two maps
MAX_MAP_ROWS = 26
LINE_HEIGHT_PT = 14.0
# of a tile; characters of the sheet that one of its letters takes
HEADLINE_SIZE_PT = 16
HEADLINE_LETTER_WIDTH = 1.4
SHEET_CONTENTS = {
    "What to use": "all findings in sentences; fastest alternatives, gains, choices of each model, trees",
    "Comparison": "all predictions with measurement and error, and links to the samples",
    "Errors": "mean μ by operation, alternative, size and fan-in; the best model by class; regret",
    "Models": "equations; all parameters with intervals",
    "Network": "latency and bandwidth between nodes, distribution of half the round trip",
    "Fits": "fitted curves, residuals and samples",
    "Raw summary": "all measured cases: passes, samples, statistics",
    "Samples": "all samples",
    "Provenance": "MPI, compiler, machines, commit, digests of files, texts of the inputs",
    "Glossary": "terms with symbols and sources",
}


def measure_columns(grid: Grid) -> list[float]:
    """Return the widths of the columns of a map, in characters."""
    widths: list[float] = []
    for column, head in enumerate(grid.columns):
        lengths = [len(cell.text) + 1 for cell in grid.cells if cell.column == column]
        widths.append(max(9, len(head) + 2, *lengths))
    return widths


def measure_labels(grid: Grid) -> list[int]:
    """Return the widths of the groups and of the labels of a map, in characters."""
    groups = [len(group) + 2 for group, _ in grid.rows]
    labels = [len(label) + 2 for _, label in grid.rows]
    return [max(10, *groups), max(10, *labels)] if grid.rows else [10, 10]


class Overview:
    """The first sheet of a platform. `write` fills the sheet when the places of all tables are
    known. `row` is the next free row. `quarters` has the first and last column of each of the four
    tiles."""

    def __init__(self, writer, screen: FirstScreen, sheet, row: int):
        self.writer = writer
        self.screen = screen
        self.sheet = sheet
        self.row = row
        self.name = sheet.get_name()
        fastest_widths = measure_columns(screen.fastest) or [12] * 4
        error_widths = measure_columns(screen.errors) or [9] * 3
        label_widths = measure_labels(screen.fastest)
        _, model_width = measure_labels(screen.errors)
        stretch = max(
            1.0,
            (MIN_SHEET_WIDTH - sum(label_widths) - model_width - GAP_WIDTH)
            / sum((*fastest_widths, *error_widths)),
        )
        self.errors_column = len(label_widths) + len(fastest_widths) + 1
        self.widths = [
            *label_widths,
            *(width * stretch for width in fastest_widths),
            GAP_WIDTH,
            model_width,
            *(width * stretch for width in error_widths),
        ]
        ends = [total / sum(self.widths) for total in accumulate(self.widths)]
        starts = [
            min(range(len(ends)), key=lambda at: abs((ends[at - 1] if at else 0) - share / 4))
            for share in range(4)
        ]
        self.quarters = list(
            zip(starts, [*(start - 1 for start in starts[1:]), len(self.widths) - 1], strict=True)
        )

    def write(
        self,
        places: TablePlaces,
        charts: ChartData,
        platform_sheets: Sequence[tuple[str, str]],
        calculator: tuple[str, str],
    ) -> None:
        """Write the sheet. `platform_sheets` are the first sheets of all platforms, by name and
        link; `calculator` has the links to this platform's calculator, and to its factor of a
        latency."""
        for column, width in enumerate(self.widths):
            self.sheet.set_column(column, column, width)
        self._write_platform(platform_sheets)
        self._write_tiles(places)
        self._write_maps(places)
        self._write_anomalies()
        self._write_links(places, calculator)
        self._insert_charts(charts)
        self.sheet.print_area(0, 0, self.row, len(self.widths) - 1)
        self.sheet.fit_to_pages(1, 1)
        self.sheet.set_margins(0.4, 0.4, 0.5, 0.5)

    def _write_across(
        self,
        row: int,
        first: int,
        last: int,
        text: str,
        cell_format,
        target: str = "",
        tooltip: str = "",
    ) -> None:
        """Write a text over several columns, with a link if there is a target."""
        if last > first:
            self.sheet.merge_range(row, first, row, last, "", cell_format)
        if target:
            self.sheet.write_url(row, first, target, cell_format, string=text, tip=tooltip[:250])
        else:
            self.sheet.write_string(row, first, text, cell_format)

    def _write_platform(self, platform_sheets: Sequence[tuple[str, str]]) -> None:
        make_format = self.writer.make_format
        colour = HIGHLIGHT_COLOUR if self.screen.simulated else HEADER_COLOUR
        text = f"{self.screen.platform}: {self.screen.origin}"
        self.sheet.write_string(
            self.row, 0, text, make_format(bold=True, font_size=12, font_color=colour)
        )
        self.row += 1
        if len(platform_sheets) > 1:
            self.sheet.write_string(
                self.row, 0, "Other platforms", make_format(font_color=NOTE_COLOUR)
            )
            other_sheets = [other for other in platform_sheets if other[0] != self.screen.platform]
            columns = sorted({max(first, 2) for first, _ in self.quarters})
            for number, (name, target) in enumerate(other_sheets):
                offset, column = divmod(number, len(columns))
                cell_format = make_format(font_color=LINK_COLOUR, underline=1)
                self.sheet.write_url(
                    self.row + offset, columns[column], target, cell_format, string=name
                )
            self.row += (len(other_sheets) - 1) // len(columns)
            self.row += 1
        self.row += 1

    def _write_tiles(self, places: TablePlaces) -> None:
        lines = max(
            self._count_lines(tile, quarter)
            for tile, quarter in zip(self.screen.tiles, self.quarters, strict=True)
        )
        for height, row in zip(
            (15, 25, 15, LINE_HEIGHT_PT * lines + 3), range(self.row, self.row + 4), strict=True
        ):
            self.sheet.set_row(row, height)
        for tile, (first, last) in zip(self.screen.tiles, self.quarters, strict=True):
            base = {
                "bg_color": TILE_BACKGROUND,
                "left": 5,
                "left_color": HEADER_COLOUR,
                "indent": 1,
            }
            make_format = self.writer.make_format
            target = places.link_source(tile.source)
            self._write_across(
                self.row,
                first,
                last,
                tile.question,
                make_format(**base, bold=True, font_color=NOTE_COLOUR),
            )
            fitting = int(
                HEADLINE_SIZE_PT
                * self._width(first, last)
                / (HEADLINE_LETTER_WIDTH * len(tile.headline))
            )
            size = min(HEADLINE_SIZE_PT, fitting)
            colour = LINK_COLOUR if target else HEADER_COLOUR
            cell_format = make_format(**base, bold=True, font_size=size, font_color=colour)
            self._write_across(self.row + 1, first, last, tile.headline, cell_format, target)
            shares = " · ".join(f"{name} {number}" for name, number in tile.shares)
            self._write_across(
                self.row + 2, first, last, shares, make_format(**base, font_color=HEADER_COLOUR)
            )
            wrap = make_format(**(base | {"valign": "top", "align": "left"}), text_wrap=True)
            self._write_across(self.row + 3, first, last, tile.sentence, wrap)
        self.row += 5

    def _count_lines(self, tile: Tile, quarter: tuple[int, int]) -> int:
        return 1 + int(len(tile.sentence) / self._width(*quarter))

    def _width(self, first: int, last: int) -> float:
        """Return the width of a text in these columns, in characters, without its indent."""
        return sum(self.widths[first : last + 1]) - 4

    def _write_maps(self, places: TablePlaces) -> None:
        fastest_columns = (0, self.errors_column - 2)
        error_columns = (self.errors_column, len(self.widths) - 1)
        bottom = self.row
        for grid, (first, last), label_columns in (
            (self.screen.fastest, fastest_columns, 2),
            (self.screen.errors, error_columns, 1),
        ):
            if grid.cells:
                bottom = max(
                    bottom, self._write_map(grid, self.row, first, last, label_columns, places)
                )
        self.row = bottom + 1

    def _write_map(
        self, grid: Grid, row: int, first: int, last: int, label_columns: int, places: TablePlaces
    ) -> int:
        """Write a map and return the next free row. `label_columns` is the number of columns that
        name a row."""
        make_format = self.writer.make_format
        self._write_across(
            row,
            first,
            last,
            grid.title,
            make_format(bold=True, font_size=12, font_color=HEADER_COLOUR),
        )
        self._write_across(
            row + 1,
            first,
            last,
            grid.note,
            make_format(italic=True, font_color=NOTE_COLOUR, text_wrap=True, valign="top"),
        )
        self.sheet.set_row(row + 1, 2 * LINE_HEIGHT_PT)
        heading_format = make_format(
            bold=True, bg_color=HEADER_COLOUR, font_color="#FFFFFF", align="center"
        )
        side_format = make_format(bold=True, bg_color=HEADER_COLOUR, font_color="#FFFFFF")
        self._write_across(row + 2, first, first + label_columns - 1, grid.side, side_format)
        for column, text in enumerate(grid.columns, first + label_columns):
            self.sheet.write_string(row + 2, column, text, heading_format)
        top = row + 3
        shown = grid.rows[:MAX_MAP_ROWS]
        for at, (group, label) in enumerate(shown):
            shown_group = group if at == 0 or grid.rows[at - 1][0] != group else ""
            texts = (shown_group, label) if label_columns == 2 else (label,)
            for column, text in enumerate(texts, first):
                self.sheet.write_string(top + at, column, text, make_format(bold=column == first))
            self.sheet.set_row(top + at, LINE_HEIGHT_PT)
        for cell in grid.cells:
            if cell.row < len(shown):
                edges = (
                    {"border": 2, "border_color": "#222222"}
                    if cell.marked
                    else {"border": 1, "border_color": "#FFFFFF"}
                )
                cell_format = make_format(
                    bg_color=cell.fill, font_color="#111111", align="center", **edges
                )
                column = first + label_columns + cell.column
                target = places.link_source(cell.source)
                self._write_across(
                    top + cell.row, column, column, cell.text, cell_format, target, cell.tooltip
                )
        self.sheet.ignore_errors({"number_stored_as_text": f"A{top + 1}:XFD{top + len(shown)}"})
        hidden = len(grid.rows) - len(shown)
        if hidden:
            text = f"and {hidden} rows more on the sheet What to use"
            self._write_across(
                top + len(shown),
                first,
                last,
                text,
                make_format(italic=True, font_color=NOTE_COLOUR),
            )
        return top + len(shown) + bool(hidden)

    def _write_anomalies(self) -> None:
        make_format = self.writer.make_format
        last = len(self.widths) - 1
        self.sheet.write_string(
            self.row, 0, "Anomalies", make_format(bold=True, font_size=12, font_color=HEADER_COLOUR)
        )
        for text in self.screen.anomalies or ("None.",):
            self._write_across(self.row, 1, last, text, make_format(text_wrap=True))
            lines = 1 + int(len(text) * 1.05) // int(sum(self.widths[1:]))
            self.sheet.set_row(self.row, LINE_HEIGHT_PT * lines + 2)
            self.row += 1
        self.row += 1

    def _write_links(self, places: TablePlaces, calculator: tuple[str, str]) -> None:
        """Write links to all sheets and to important cells, then commands for questions that no
        sheet answers."""
        report: Report = self.writer.report
        platform_filter = (("platform", self.screen.platform),)
        answers = [
            ("Calculator: predict other message sizes, trees and numbers of ranks", calculator[0]),
            ("What if the latency doubles? Enter 2 in this cell of the calculator", calculator[1]),
            (
                "Best model by operation and fan-in: marked in each row",
                places.link_source(SourceRows("Mean μ by fan_in", platform_filter)),
            ),
        ]
        entries = [entry for entry in answers if entry[1]]
        contents = SHEET_CONTENTS | {
            name: section.contents for name, section in list_sections().items()
        }
        for name, sheet in places.sheets.items():
            entries.append(
                (f"{name}: {contents[name]}" if contents.get(name) else name, link_cell(sheet))
            )
        make_format = self.writer.make_format
        second_column = self.quarters[2][0]
        self.sheet.write_string(
            self.row,
            0,
            "Where to look",
            make_format(bold=True, font_size=12, font_color=HEADER_COLOUR),
        )
        self.row += 1
        lines = -(-len(entries) // 2)
        for number, (text, target) in enumerate(entries):
            column, offset = divmod(number, lines)
            cell_format = make_format(font_color=LINK_COLOUR, underline=1)
            self.sheet.write_url(
                self.row + offset, second_column if column else 0, target, cell_format, string=text
            )
        self.row += lines + 1
        for question, command in list_commands(report, self.screen):
            if question == LATENCY_QUESTION and calculator[1]:
                continue
            self.sheet.write_string(self.row, 0, question, make_format(bold=True))
            self.sheet.write_string(
                self.row, 3, command, make_format(font_name="Consolas", font_size=9)
            )
            self.row += 1
        self.row += 1

    def _insert_charts(self, charts: ChartData) -> None:
        shown_charts = [
            chart for chart in (self.screen.scatter, self.screen.times) if chart is not None
        ]
        if shown_charts:
            width = int(sum(width * 7 + 5 for width in self.widths)) // 2 - 16
            self.row = charts.insert(self.sheet, self.row, shown_charts, width, 16 * ROW_HEIGHT_PX)
