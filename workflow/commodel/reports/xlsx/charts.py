"""Native Excel charts. Their data stands on a sheet of its own, so that sorting a table does not scramble a chart.

A tiling of the workbook: native shapes with the numbers of their ranks, and what colours mean beside them."""

import re

from commodel.reports.charts import PALETTE
from commodel.reports.shape import Axis, Chart, Series, Tiling

SHEET = "Chart data"
WIDTH, HEIGHT, GAP, ROW = 600, 430, 16, 20  # pixels
DOTS = ("circle", "diamond", "square", "triangle")
GREY = "#888888"


class ChartData:
    """Places charts at once, and at the end writes the cells they refer to, `first` being the first row of those."""

    def __init__(self, book, first: int):
        self.book, self.first = book, first
        self.columns: dict[tuple[str, Series, tuple[str, ...]], int] = {}  # by the chart's title

    def insert(self, sheet, row: int, charts: list[Chart], width: int = WIDTH, height: int = HEIGHT) -> int:
        """Two charts to a line, starting at `row`. Returns the next free row."""
        lines = rows_of(height)
        for place, chart in enumerate(charts):
            down, across = divmod(place, 2)
            sheet.insert_chart(
                row + down * lines,
                0,
                self.native(chart, width, height),
                {
                    "x_offset": 4 + across * (width + GAP),
                    "y_offset": 4,
                    "object_position": 3,
                    "description": f"{chart.title}. {chart.note}"[:250],
                },
            )
        return row + -(-len(charts) // 2) * lines + 1

    def native(self, chart: Chart, width: int, height: int):
        kind = {"type": "scatter", "subtype": "straight_with_markers"}
        native = self.book.add_chart({"type": "column"} if chart.x.names else kind)
        for series in chart.series:
            entry = chart.title, series, chart.x.names
            if entry not in self.columns:  # the first sheet draws some of the others' charts again
                self.columns[entry] = 2 * len(self.columns)
            rows = len(chart.x.names) or len(series.x)
            native.add_series(self.series(series, self.columns[entry], rows))
        title = f"{chart.title}\n{chart.note}" if chart.note and len(chart.note) < 60 else chart.title
        native.set_title({"name": literal(title), "name_font": {"size": 12, "bold": True}, "overlay": False})
        native.set_x_axis(axis(chart.x))
        native.set_y_axis(axis(chart.y))
        native.set_legend({"position": "bottom", "font": {"size": 9}})
        native.set_size({"width": width, "height": height})
        native.show_na_as_empty_cell()
        return native

    def series(self, series: Series, column: int, rows: int) -> dict:
        top, last = self.first + 2, self.first + 1 + rows
        colour = GREY if series.colour < 0 else PALETTE[series.colour % len(PALETTE)]
        dot = DOTS[max(0, series.colour) // len(PALETTE) % len(DOTS)]
        options = {
            "name": [SHEET, self.first + 1, column + 1],
            "categories": [SHEET, top, column, last, column],
            "values": [SHEET, top, column + 1, last, column + 1],
            "marker": {"type": "none"},
            "line": {"none": True},
        }
        if series.style == "bars":
            named = {key: options[key] for key in ("name", "categories", "values")}
            return named | {"fill": {"color": colour}, "gap": 60}
        if series.style in ("dots", "both"):
            options["marker"] = {
                "type": dot,
                "size": 5,
                "fill": {"color": colour},
                "border": {"color": colour, "width": 0.5},
            }
        if series.style != "dots":
            dash = "dash" if series.style == "dashed" else "solid"
            options["line"] = {"color": colour, "width": 1.0 if series.colour < 0 else 1.5, "dash_type": dash}
        if series.low:
            up = [round(high - value, 9) for high, value in zip(series.high, series.y, strict=True)]
            down = [round(value - low, 9) for low, value in zip(series.low, series.y, strict=True)]
            options["y_error_bars"] = {
                "type": "custom",
                "plus_values": up,
                "minus_values": down,
                "line": {"color": colour},
            }
        return options

    @property
    def rows(self) -> int:
        return max((len(names or series.x) for _, series, names in self.columns), default=0)

    def write(self, sheet, bold) -> None:
        """Row by row: the charts' titles, the names of x and y, the values."""
        drawn = ""
        for (title, _, _), x in self.columns.items():
            sheet.set_column(x, x + 1, 14)
            if title != drawn:
                sheet.write_string(self.first, x, title, bold)
                drawn = title
        for (_, series, _), x in self.columns.items():
            sheet.write_string(self.first + 1, x, "x", bold)
            sheet.write_string(self.first + 1, x + 1, series.name, bold)
        values = {x: heights(series, names) for (_, series, names), x in self.columns.items()}
        for at in range(self.rows):
            for (_, series, names), x in self.columns.items():
                if at < len(names or series.x):
                    (sheet.write_string if names else sheet.write_number)(
                        self.first + 2 + at, x, (names or series.x)[at]
                    )
                if at in values[x]:
                    sheet.write_number(self.first + 2 + at, x + 1, values[x][at])


def rows_of(height: int = HEIGHT) -> int:
    """That a line of charts takes."""
    return height // ROW + 1


def heights(series: Series, names: tuple[str, ...]) -> dict[int, float]:
    """By row; bars stand at the row of their name, of which some may have none."""
    return dict(zip(map(int, series.x) if names else range(len(series.x)), series.y, strict=True))


def axis(axis: Axis) -> dict:
    options: dict = {
        "name": literal(axis.label),
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
    if axis.whole:
        options |= {"num_format": f'[<0]"";[>={axis.high:g}]"";0', "major_unit": axis.step}
    return options


def literal(text: str) -> str:
    """XlsxWriter takes a name that looks like a cell of another sheet for a reference to it."""
    return text.replace("!", "! ") if re.match(r"^=?[^!]+!\$?[A-Z]+\$?\d+", text) else text


SIDE, LEFT, LINE, ROW_HEIGHT_PX = 360, 6, 22, 20  # pixels
WIDE, SWATCH = 230, 16
LETTERS = 0.75  # points of a pixel
EDGE = {"color": "#5C656C", "width": 0.75}
MIDDLE = {"vertical": "middle", "horizontal": "center"}


def write(book, sheet, row: int, tiling: Tiling) -> int:
    """Below its title and note. Returns the next free row."""
    row = book.heading(sheet, row, tiling.title, tiling.note)
    unit = SIDE / tiling.side
    for place, rectangle in enumerate(tiling.rectangles):
        left, right = (round(unit * end) for end in (rectangle.x, rectangle.x + rectangle.width))
        top, bottom = (round(unit * end) for end in (rectangle.y, rectangle.y + rectangle.height))
        size = rectangle.letters(unit)
        sheet.insert_textbox(
            row,
            0,
            rectangle.label if size else "",
            _look(LEFT + left, 4 + top, right - left, bottom - top)
            | {
                "fill": {"color": rectangle.fill},
                "line": EDGE,
                "align": MIDDLE,
                "font": {"size": max(6, round(LETTERS * size)), "color": "#111111"},
                "description": (tiling.alt if place == 0 else rectangle.about)[:250],
            },
        )
    for at, (colour, text) in enumerate(tiling.legend):
        place, top = LEFT + SIDE + 16, 4 + LINE * at
        swatch = _look(place, top, SWATCH, SWATCH) | {"fill": {"color": colour}, "line": EDGE, "decorative": True}
        sheet.insert_textbox(row, 0, "", swatch)
        words = _look(place + SWATCH + 4, top - 3, WIDE, LINE) | {"fill": {"none": True}, "line": {"none": True}}
        font = {"size": 9, "color": "#1F3A4D"}
        sheet.insert_textbox(row, 0, text, words | {"align": {"vertical": "middle"}, "font": font})
    return row + max(SIDE, LINE * len(tiling.legend)) // ROW_HEIGHT_PX + 2


def _look(x: int, y: int, width: int, height: int) -> dict:
    return {"x_offset": x, "y_offset": y, "width": max(1, width), "height": max(1, height), "object_position": 3}
