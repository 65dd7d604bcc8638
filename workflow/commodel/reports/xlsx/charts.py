"""Native Excel charts (`ChartData`). Their data is on a sheet of its own, so that sorting a table
does not scramble a chart.

Matrices are coloured cells (`write_matrix`); tilings are pictures, as on the page (`write_tiling`).
"""

import re
from collections.abc import Sequence
from io import BytesIO
from typing import Any

from commodel.reports.charts import PALETTE
from commodel.reports.elements import (
    Axis,
    Chart,
    Matrix,
    Series,
    Tiling,
    choose_number_format,
    format_value,
    is_finite_number,
)
from commodel.reports.pictures.render import DrawingError, render_png
from commodel.reports.pictures.specifications import specify_tiling
from commodel.reports.xlsx.layout import HIGHLIGHT_COLOUR, LINE_HEIGHT_PT, ROW_HEIGHT_PX

CHART_DATA_SHEET = "Chart data"
CHART_WIDTH_PX, CHART_HEIGHT_PX, CHART_GAP_PX = 600, 410, 16  # pixels
# characters: width of two adjacent charts
CHART_ROW_WIDTH = (2 * CHART_WIDTH_PX + CHART_GAP_PX) / 7
DOT_SHAPES = ("circle", "diamond", "square", "triangle")
GREY = "#888888"


class ChartData:
    """Inserts charts immediately and writes their data when the workbook is closed, from the row
    `first` on."""

    def __init__(self, book, first: int):
        self.book = book
        self.first = first
        # by chart title, series and names of x
        self.columns: dict[tuple[str, Series, tuple[str, ...]], int] = {}

    def insert(
        self,
        sheet,
        row: int,
        charts: list[Chart],
        width: int = CHART_WIDTH_PX,
        height: int = CHART_HEIGHT_PX,
        in_line: int = 2,
    ) -> int:
        """Insert charts side by side, so many in a line, from `row` on, and return the next free
        row."""
        lines = count_rows(height)
        for number, chart in enumerate(charts):
            chart_row, column = divmod(number, in_line)
            sheet.insert_chart(
                row + chart_row * lines,
                0,
                self.make_native_chart(chart, width, height),
                {
                    "x_offset": 4 + column * (width + CHART_GAP_PX),
                    "y_offset": 4,
                    "object_position": 3,
                    "description": f"{chart.title}. {chart.note}"[:250],
                },
            )
        return row + -(-len(charts) // in_line) * lines + 1

    def make_native_chart(self, chart: Chart, width: int, height: int):
        kind = {"type": "scatter", "subtype": "straight_with_markers"}
        native = self.book.add_chart({"type": "column"} if chart.x.names else kind)
        for series in chart.series:
            column_key = chart.title, series, chart.x.names
            if column_key not in self.columns:  # the overview repeats charts of other sheets
                self.columns[column_key] = 2 * len(self.columns)
            rows = len(chart.x.names) or len(series.x)
            native.add_series(self.make_native_series(series, self.columns[column_key], rows))
        title = (
            f"{chart.title}\n{chart.note}" if chart.note and len(chart.note) < 60 else chart.title
        )
        native.set_title(
            {
                "name": escape_reference(title),
                "name_font": {"size": 12, "bold": True},
                "overlay": False,
            }
        )
        native.set_x_axis(format_axis(chart.x))
        native.set_y_axis(format_axis(chart.y))
        native.set_legend({"position": "bottom", "font": {"size": 9}})
        native.set_size({"width": width, "height": height})
        native.show_na_as_empty_cell()
        return native

    def make_native_series(self, series: Series, column: int, rows: int) -> dict:
        first_row = self.first + 2
        last_row = self.first + 1 + rows
        colour = GREY if series.colour < 0 else PALETTE[series.colour % len(PALETTE)]
        dot = DOT_SHAPES[max(0, series.colour) // len(PALETTE) % len(DOT_SHAPES)]
        options: dict[str, Any] = {
            "name": [CHART_DATA_SHEET, self.first + 1, column + 1],
            "categories": [CHART_DATA_SHEET, first_row, column, last_row, column],
            "values": [CHART_DATA_SHEET, first_row, column + 1, last_row, column + 1],
            "marker": {"type": "none"},
            "line": {"none": True},
        }
        if series.style == "bars":
            bar_options = {key: options[key] for key in ("name", "categories", "values")}
            return bar_options | {"fill": {"color": colour}, "gap": 60}
        if series.style in ("dots", "both", "wide"):
            options["marker"] = {
                "type": "square" if series.style == "wide" else dot,
                "size": 5,
                "fill": {"color": colour},
                "border": {"color": colour, "width": 0.5},
            }
        if series.style != "dots":
            dash = "dash" if series.style == "dashed" else "solid"
            width = 5.0 if series.style == "wide" else 1.0 if series.colour < 0 else 1.5
            transparency = {"transparency": 65} if series.style == "wide" else {}
            options["line"] = {"color": colour, "width": width, "dash_type": dash, **transparency}
        if series.low:
            plus = [
                round(high - value, 9) for high, value in zip(series.high, series.y, strict=True)
            ]
            minus = [round(value - low, 9) for low, value in zip(series.low, series.y, strict=True)]
            options["y_error_bars"] = {
                "type": "custom",
                "plus_values": plus,
                "minus_values": minus,
                "line": {"color": colour},
            }
        return options

    @property
    def rows(self) -> int:
        return max((len(names or series.x) for _, series, names in self.columns), default=0)

    def write(self, sheet, bold) -> None:
        """Write the data row by row: the charts' titles, the names of x and y, the values."""
        previous_title = ""
        for (title, _, _), x in self.columns.items():
            sheet.set_column(x, x + 1, 14)
            if title != previous_title:
                sheet.write_string(self.first, x, title, bold)
                previous_title = title
        for (_, series, _), x in self.columns.items():
            sheet.write_string(self.first + 1, x, "x", bold)
            sheet.write_string(self.first + 1, x + 1, series.name, bold)
        values = {
            x: arrange_values(series, names) for (_, series, names), x in self.columns.items()
        }
        for at in range(self.rows):
            for (_, series, names), x in self.columns.items():
                if at < len(names or series.x):
                    (sheet.write_string if names else sheet.write_number)(
                        self.first + 2 + at, x, (names or series.x)[at]
                    )
                if at in values[x]:
                    sheet.write_number(self.first + 2 + at, x + 1, values[x][at])


def count_charts_in_line(widths: Sequence[float]) -> int:
    """Return the number of charts that stand side by side over columns of these widths, in
    characters."""
    total_px = sum(7 * width + 5 for width in widths)
    return max(2, int(total_px) // (CHART_WIDTH_PX + CHART_GAP_PX))


def count_rows(height: int = CHART_HEIGHT_PX) -> int:
    """Return the number of sheet rows that a line of charts covers."""
    return height // ROW_HEIGHT_PX + 1


def arrange_values(series: Series, names: tuple[str, ...]) -> dict[int, float]:
    """Return the values of a series by row. A bar is at the row of its name; a name may have no
    bar."""
    return dict(zip(map(int, series.x) if names else range(len(series.x)), series.y, strict=True))


def format_axis(axis: Axis) -> dict:
    options: dict = {
        "name": escape_reference(axis.label),
        "name_font": {"size": 10, "bold": False},
        "num_font": {"size": 9},
        "num_format": "#,##0" if axis.bytes else "General",
        "major_gridlines": {"visible": True, "line": {"color": "#DDDDDD", "width": 0.5}},
        "label_position": "low",
        "crossing": "min",
    }
    if axis.names:
        return {key: options[key] for key in ("name", "name_font", "num_font", "label_position")}
    if axis.log:
        options["log_base"] = 16 if axis.bytes else 10
        options["num_format"] = "[>=1]#,##0;General"
    if axis.low is not None:
        options |= {"min": axis.low, "max": axis.high}
    if axis.whole_numbers:
        options |= {"num_format": f'[<0]"";[>={axis.high:g}]"";0', "major_unit": axis.step}
    return options


def escape_reference(text: str) -> str:
    """Return the text in a form that XlsxWriter does not interpret as a reference to a cell of
    another sheet."""
    return text.replace("!", "! ") if re.match(r"^=?[^!]+!\$?[A-Z]+\$?\d+", text) else text


# shows a drawing 360 pixels high; it has twice as many pixels as specified, for slides
PICTURE_SCALE = 0.5625
SHEET_DPI, PICTURE_DPI = 96, 72  # XlsxWriter enlarges a picture by their ratio
MIN_LABEL_WIDTH = 12
MIN_CELL_WIDTH = 6.5  # characters: column of labels, columns of values
LABEL_LETTER_PT = 6.0  # width of a bold letter of an upright label


def write_tiling(book, sheet, row: int, tiling: Tiling) -> int:
    """Insert the page's drawing of a tiling below its title and note, and return the next free
    row."""
    row = book.write_heading(sheet, row, tiling.title, tiling.note)
    specification = specify_tiling(tiling)
    try:
        picture = render_png(specification)
    except DrawingError as error:
        sheet.write_string(row, 0, f"Not drawn: {error.message}.")
        return row + 2
    options = {
        "image_data": BytesIO(picture),
        "object_position": 3,
        "description": tiling.alt[:250],
    }
    scale = PICTURE_SCALE * PICTURE_DPI / SHEET_DPI
    sheet.insert_image(
        row, 0, "tiling.png", options | {"x_scale": scale, "y_scale": scale, "x_offset": 6}
    )
    return row + int(specification["height"] * 2 * PICTURE_SCALE) // ROW_HEIGHT_PX + 2


def choose_matrix_widths(matrices: list[Matrix]) -> list[float]:
    """Return the column widths of a sheet with these matrices one below the other."""
    max_labels = max(len(matrix.labels) for matrix in matrices)
    longest = max((len(label) for matrix in matrices for label in matrix.labels), default=0)
    numbers = {
        value
        for matrix in matrices
        for row in matrix.values
        for value in row
        if is_finite_number(value)
    }
    longest_number = max((len(format_value("number", value)) for value in numbers), default=0)
    return [max(MIN_LABEL_WIDTH, longest + 2)] + [
        max(MIN_CELL_WIDTH, longest_number + 1.0)
    ] * max_labels


def write_matrix(book, sheet, row: int, matrix: Matrix) -> int:
    """Write a matrix as coloured cells with their numbers and rules between groups, and return the
    next free row."""
    row = book.write_heading(sheet, row, f"{matrix.title} [{matrix.unit}]", matrix.note)
    borders = set(matrix.borders)
    label_format = {"bold": True, "font_size": 9}
    sheet.set_row(
        row, max(LINE_HEIGHT_PT, 6 + LABEL_LETTER_PT * max(map(len, matrix.labels), default=0))
    )
    for index, label in enumerate(matrix.labels):
        label_colour = {"font_color": HIGHLIGHT_COLOUR} if index in matrix.marks else {}
        sheet.write_string(
            row,
            index + 1,
            label,
            book.make_format(**label_format, **label_colour, rotation=90, align="center"),
        )
        sheet.write_string(
            row + 1 + index,
            0,
            label,
            book.make_format(**label_format, **label_colour, align="right"),
        )
    block = [number for number, (first, end) in enumerate(matrix.blocks) for _ in range(first, end)]
    for at, values in enumerate(matrix.values):
        for index, value in enumerate(values):
            edges = {"left": 2} if index in borders else {}
            edges |= {"top": 2} if at in borders else {}
            expected = matrix.expected[block[at]][block[index]] if matrix.expected else value
            colour = (
                matrix.colour(value)
                if is_finite_number(value)
                else matrix.colour(expected, pale=True)
            )
            cell_format = {"font_size": 9, "align": "center", "bg_color": colour, **edges}
            if is_finite_number(value):
                number_format = book.make_format(
                    **cell_format, num_format=choose_number_format("number", value)
                )
                sheet.write_number(row + 1 + at, index + 1, value, number_format)
            else:
                sheet.write_blank(row + 1 + at, index + 1, None, book.make_format(**cell_format))
    return row + len(matrix.labels) + 2
