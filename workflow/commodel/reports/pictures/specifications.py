"""Vega-Lite specifications of charts, grids and tilings, which the page and the static drawings
share: `specify_lines`, `specify_grid` and `specify_tiling`.

The colours are for a white background. The page's dark mode replaces them by value. Names in a grid
that are wider than their column have two lines or are cut (`fit_text`).
"""

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from commodel.reports.charts import PALETTE
from commodel.reports.elements import Axis, Chart, Grid, Series, Tiling
from commodel.units import format_bytes

TEXT_COLOUR, NOTE_COLOUR, RULE_COLOUR, BACKGROUND_COLOUR, GREY = (
    "#1b2226",
    "#5c656c",
    "#e3e7ea",
    "#ffffff",
    "#777777",
)
# vl-convert has at least one of these on every machine
FONT = "Arial, Liberation Sans, Helvetica, sans-serif"
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
MIN_LOG_RANGE = 5.0  # highest over lowest value of an axis; a narrower axis has even ticks
DOT_SHAPES = ("circle", "diamond", "square", "triangle-up", "triangle-down", "cross")
# in the legend: of a series without dots; dots of a wide line
LINE_SYMBOL, WIDE_SYMBOL = "stroke", "square"
# Expressions for axis labels. A value in µs is labelled in s, ms, µs or ns.
TIME_LABEL = (
    "datum.value >= 1e6 ? format(datum.value / 1e6, '~g') + ' s' : datum.value >= 1e3 ? "
    "format(datum.value / 1e3, '~g') + ' ms' : datum.value >= 1 || datum.value == 0 ? "
    "format(datum.value, '~g') + ' µs' : "
    "format(datum.value * 1e3, '~g') + ' ns'"
)
NUMBER_LABEL = (
    "abs(datum.value) >= 1e6 || (datum.value != 0 && abs(datum.value) < 1e-3) ? "
    "format(datum.value, '~e') : "
)
NUMBER_LABEL += "format(datum.value, ',~g')"


def make_config() -> dict:
    text = {
        "labelColor": TEXT_COLOUR,
        "titleColor": TEXT_COLOUR,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
    }
    lines = {"domainColor": NOTE_COLOUR, "tickColor": NOTE_COLOUR, "gridColor": RULE_COLOUR}
    return {
        "font": FONT,
        "background": BACKGROUND_COLOUR,
        "aria": False,  # the page describes the figure and has its numbers in a table
        "axis": text | lines | {"labelLimit": 0, "titleLimit": 0},
        "legend": text
        | {"labelLimit": 0, "title": None, "orient": "bottom", "columns": 3, "symbolStrokeWidth": 2}
        | {"symbolOpacity": 1},
        "title": {
            "color": TEXT_COLOUR,
            "subtitleColor": NOTE_COLOUR,
            "anchor": "start",
            "fontSize": 13,
            "subtitleFontSize": 11,
        },
        "view": {"stroke": None},
    }


def make_specification(layers: list[dict], width: int, height: int, **properties: object) -> dict:
    return {
        "$schema": SCHEMA,
        "width": width,
        "height": height,
        "config": make_config(),
        **properties,
        "layer": layers,
    }


def add_title(spec: dict, title: str, note: str = "") -> dict:
    """Return the specification with a title and a note, for a drawing without the page around
    it."""
    return spec | {"title": {"text": title} | ({"subtitle": note} if note else {})}


def choose_colour(number: int) -> str:
    return GREY if number < 0 else PALETTE[number % len(PALETTE)]


def choose_symbol(series: Series) -> str:
    """Return the shape of a series' dots and of its symbol in the legend."""
    if series.style in ("line", "dashed"):
        return LINE_SYMBOL
    shape = DOT_SHAPES[max(0, series.colour) // len(PALETTE) % len(DOT_SHAPES)]
    return WIDE_SYMBOL if series.style == "wide" else shape


def shorten_number(value: float) -> float | None:
    """Return a value with five digits, which suffice for a chart; None if it is not finite."""
    return float(f"{value:.5g}") if math.isfinite(value) else None


def choose_byte_ticks(sizes: Sequence[float]) -> list[int]:
    """Return powers of 16 as ticks, or of 4 if those would be fewer than four."""
    low, high = math.log2(min(sizes)), math.log2(max(sizes))
    step = 4 if high - low >= 12 else 2
    return [2**power for power in range(math.floor(low) // step * step, math.ceil(high) + 1, step)]


def format_byte_labels(ticks: Sequence[int]) -> str:
    """Return an expression for the labels at these ticks."""
    return "".join(f"datum.value == {tick} ? '{format_bytes(tick)}' : " for tick in ticks) + "''"


def choose_decade_ticks(low: float, high: float) -> list[float]:
    """Return powers of ten as ticks, over fewer than three decades also 2 and 5 times these; even
    steps in a narrow range."""
    if low < high < MIN_LOG_RANGE * low:
        return choose_even_ticks(low, high)
    first = math.floor(math.log10(low))
    last = math.ceil(math.log10(high))
    steps = (1, 2, 5) if last - first < 3 else (1,)
    stride = max(1, (last - first) // 8)
    ticks = [step * 10.0**power for power in range(first, last + 1, stride) for step in steps]
    return [float(f"{tick:.3g}") for tick in ticks if low * 0.999 <= tick <= high * 1.001]


def choose_even_ticks(low: float, high: float) -> list[float]:
    """Return three to eight round numbers as ticks."""
    power = 10.0 ** math.floor(math.log10(high - low))
    step = next(power * part for part in (2, 1, 0.5, 0.2) if (high - low) / (power * part) >= 3)
    return [
        float(f"{step * at:.12g}")
        for at in range(math.ceil(low / step), math.floor(high / step) + 1)
    ]


CHART_WIDTH_PX, CHART_HEIGHT_PX = 520, 300
MAX_DOTS = 700  # dots in one chart, because each is an SVG element of the page
X = {"field": "x", "type": "quantitative", "sort": None}
Y = {"field": "y", "type": "quantitative"}


def choose_stride(chart: Chart) -> int:
    """Return the stride N of the drawn dots: one of every N is drawn, at most MAX_DOTS."""
    dots = sum(len(series.x) for series in chart.series if series.style == "dots")
    return max(1, -(-dots // MAX_DOTS))


def thin_dots(chart: Chart) -> tuple[Series, ...]:
    step = choose_stride(chart)
    if step == 1:
        return chart.series
    return tuple(
        replace(series, x=series.x[::step], y=series.y[::step], labels=series.labels[::step])
        if series.style == "dots"
        else series
        for series in chart.series
    )


def specify_lines(
    chart: Chart, width: int = CHART_WIDTH_PX, height: int = CHART_HEIGHT_PX, first: bool = False
) -> dict:
    """Return the specification of a chart of lines, dots, bars and intervals. `s` is the series of
    a value, `t` describes a dot, `low` and `high` are the ends of its interval. On the `first`
    screen the legend is at the side, and there are empty layers that the page's script may fill."""
    series = make_names_distinct(thin_dots(chart))
    names = [drawn.name for drawn in series]
    scale = {"domain": names, "range": [choose_colour(drawn.colour) for drawn in series]}
    longest_name = max(map(len, names), default=1)
    # columns of the legend that fit below the chart
    columns_below = max(1, min(len(names), CHART_WIDTH_PX // (36 + 7 * longest_name)))
    rows: dict[str, list[dict]] = {style: [] for style in STYLES}
    for drawn in series:
        for style in list_layer_names(drawn):
            rows[style] += make_rows(drawn)
    rows["bars"] = make_bars([drawn for drawn in series if drawn.style == "bars"], chart)
    colour_encoding = {
        "color": {
            "field": "s",
            "type": "nominal",
            "scale": scale,
            "legend": {"orient": "right", "columns": 1} if first else {"columns": columns_below},
        }
    }
    x = make_channel(chart.x, chart, "x")
    y = make_channel(chart.y, chart, "y")
    tooltip_fields = [
        {"field": "s", "type": "nominal", "title": "series"},
        {"field": "t", "type": "nominal", "title": "point"},
        {"field": "x", "type": "quantitative", "title": chart.x.label, "format": ",.4~g"},
        {"field": "y", "type": "quantitative", "title": chart.y.label, "format": ",.4~g"},
    ]
    layers = [make_band_layer(chart)] if chart.band else []
    if first or rows["wide"]:
        mark = {"type": "line", "strokeWidth": WIDE_LINE_PX, "opacity": 0.35, "clip": True}
        layers.append(make_layer("wide", rows["wide"], mark, {"x": X, "y": Y} | colour_encoding))
    if first or rows["interval"]:
        ends = {"y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}}
        layers.append(
            make_layer(
                "interval",
                rows["interval"],
                {"type": "rule", "opacity": 0.6, "clip": True},
                {"x": X} | colour_encoding | ends,
            )
        )
    if rows["walk"]:
        mark = {"type": "line", "strokeWidth": 2, "strokeJoin": "round"}
        layers.append(
            make_layer(
                "walk",
                rows["walk"],
                mark,
                {"x": X, "y": Y, "order": {"value": None}} | colour_encoding,
            )
        )
    for style, dash in (("line", {}), ("dashed", {"strokeDash": [6, 4]})):
        if first or rows[style]:
            mark = {
                "type": "line",
                "strokeWidth": 1.6,
                "clip": True,
                "invalid": "break-paths-filter-domains",
            } | dash
            layers.append(make_layer(style, rows[style], mark, {"x": X, "y": Y} | colour_encoding))
    if rows["bars"]:
        ends = {"x2": {"field": "x2"}, "y2": {"field": "y2"}}
        encoding = {"x": X, "y": Y, "tooltip": tooltip_fields} | colour_encoding | ends
        layers.append(make_layer("bars", rows["bars"], {"type": "rect", "clip": True}, encoding))
    if first or rows["dots"]:
        symbols = [choose_symbol(drawn) for drawn in series]
        shape_encoding = {"field": "s", "type": "nominal", "scale": scale | {"range": symbols}}
        shapes = {"shape": shape_encoding} if first or len(set(symbols)) > 1 else {}
        mark = {"type": "point", "filled": True, "size": 26, "opacity": 0.8, "clip": True}
        layers.append(
            make_layer(
                "dots",
                rows["dots"],
                mark,
                {"x": X, "y": Y, "tooltip": tooltip_fields} | colour_encoding | shapes,
            )
        )
    if not layers:
        layers.append(make_layer("dots", [], {"type": "point"}, {"x": X, "y": Y}))
    layers[0]["encoding"] |= {
        "x": layers[0]["encoding"]["x"] | x,
        "y": layers[0]["encoding"]["y"] | y,
    }
    # On the first screen `width` includes axis and legend, whatever the length of its names.
    fit = {"autosize": {"type": "fit-x", "contains": "padding"}} if first else {}
    return make_specification(layers, width, height, **fit)


MAX_UPRIGHT_LETTERS = 60  # letters of all names below an axis; more letters are turned
LABEL_SLANT_DEGREES = 30
BAR_GAP_SHARE = 0.25  # gap between two groups of bars, as a share of the distance of groups
STYLES = ("interval", "wide", "walk", "line", "dashed", "dots")
WIDE_LINE_PX = 7


def list_layer_names(series: Series) -> tuple[str, ...]:
    styles = {"both": ("line", "dots"), "wide": ("wide", "dots"), "bars": ()}.get(
        series.style, (series.style,)
    )
    return ("interval", *styles) if series.low else styles


def make_layer(name: str, values: list[dict], mark: dict, encoding: dict) -> dict:
    return {"name": name, "data": {"values": values}, "mark": mark, "encoding": encoding}


def make_rows(series: Series) -> list[dict]:
    keys = {"x": series.x, "y": series.y, "low": series.low, "high": series.high}
    present = {key: values for key, values in keys.items() if values}
    rows = []
    for at in range(len(series.x)):
        row = {"s": series.name} | {
            key: shorten_number(values[at]) for key, values in present.items()
        }
        rows.append(row | ({"t": series.labels[at]} if series.labels else {}))
    return rows


def make_bars(series: list[Series], chart: Chart) -> list[dict]:
    """Return the bars as rectangles: side by side at each name of the x axis, from the low end of
    the y axis up."""
    baseline = chart.y.low if chart.y.low is not None else 0.0
    bar_width = (1 - BAR_GAP_SHARE) / max(1, len(series))
    bars = []
    for index, entry in enumerate(series):
        for x, y in zip(entry.x, entry.y, strict=True):
            left_edge = x - (1 - BAR_GAP_SHARE) / 2 + index * bar_width
            bar = {
                "s": entry.name,
                "t": chart.x.names[int(x)],
                "x": left_edge,
                "x2": left_edge + bar_width,
                "y": shorten_number(y),
                "y2": baseline,
            }
            bars.append(bar)
    return bars


def make_names_distinct(series: tuple[Series, ...]) -> list[Series]:
    """Return the series with distinct names, because a scale identifies a series by its name:
    repeated ones get a number."""
    name_counts: Counter[str] = Counter()
    distinct = []
    for drawn in series:
        name_counts[drawn.name] += 1
        number = name_counts[drawn.name]
        distinct.append(drawn if number == 1 else replace(drawn, name=f"{drawn.name} ({number})"))
    return distinct


def make_band_layer(chart: Chart) -> dict:
    """Return the layer of a strip along the identity line: errors up to the chart's `band`."""
    ends = [x for x in (chart.x.low, chart.x.high) if x is not None]
    values = [{"x": x, "y": x / (1 + chart.band), "y2": x * (1 + chart.band)} for x in ends]
    mark = {"type": "area", "color": GREY, "opacity": 0.18, "clip": True}
    return make_layer("band", values, mark, {"x": X, "y": Y, "y2": {"field": "y2"}})


def make_channel(axis: Axis, chart: Chart, side: str) -> dict:
    """Return the scale, ticks and title of an axis."""
    values: list[float] = []
    for series in chart.series:
        values += series.x if side == "x" else (*series.y, *series.low, *series.high)
    values = [value for value in values if math.isfinite(value) and (value > 0 or not axis.log)]
    low, high = axis.low, axis.high
    if low is None and axis.log and values:
        low = min(values) / 1.15
        high = max(values) * 1.15
    scale: dict = {"type": "log"} if axis.log else {"type": "linear", "zero": False}
    scale |= {"domain": [low, high], "nice": False} if low is not None else {}
    micro = axis.label.endswith(" [µs]")
    axis_style: dict = {
        "labelExpr": TIME_LABEL if micro else NUMBER_LABEL,
        "tickCount": 6,
        "labelOverlap": True,
    }
    if axis.names:
        ticks = list(range(len(axis.names)))
        axis_style |= {
            "values": ticks,
            "labelExpr": f"{json.dumps(axis.names)}[datum.value]",
            "grid": False,
        }
        axis_style |= {
            "tickCount": len(ticks),
            "labelOverlap": False,
            "labelAngle": -LABEL_SLANT_DEGREES
            if sum(map(len, axis.names)) > MAX_UPRIGHT_LETTERS
            else 0,
        }
        scale |= {"domain": [-0.5, len(axis.names) - 0.5], "nice": False}
    elif axis.whole_numbers and axis.high is not None:
        axis_style |= {"values": list(range(0, math.ceil(axis.high), axis.step))}
    elif axis.bytes and values:
        ticks = choose_byte_ticks(values)
        axis_style |= {"values": ticks, "labelExpr": format_byte_labels(ticks)}
    elif axis.log and low is not None and high is not None:
        axis_style |= {"values": choose_decade_ticks(low, high)}
    title = axis.label.removesuffix(" [µs]") if micro else axis.label
    return {"scale": scale, "axis": axis_style, "title": title or None}


LETTER_WIDTH_RATIO = 0.5  # mean width of a letter over its font size
ROUNDING_PX = 0.01  # tolerance of a width
BREAK_CHARACTERS = "-:, "  # a line may end after one of these


def measure_width(text: str, size: float) -> float:
    return LETTER_WIDTH_RATIO * size * len(text)


def break_in_two(text: str) -> list[str]:
    """Return the text in two lines, the longer one as short as possible; in one line if it has no
    place to break."""
    break_positions = [at + 1 for at, letter in enumerate(text[:-1]) if letter in BREAK_CHARACTERS]
    if not break_positions:
        return [text]
    at = min(
        break_positions,
        key=lambda index: max(measure_width(text[:index], 1), measure_width(text[index:], 1)),
    )
    return [text[:at].rstrip(" "), text[at:]]


def compute_needed_width(text: str, size: float, lines: int) -> float:
    return max(measure_width(line, size) for line in (break_in_two(text) if lines == 2 else [text]))


def fit_text(text: str, max_width: float, size: float, lines: int = 1) -> str | list[str]:
    """Return the text in as few lines as possible, at most `lines`; cut if it does not fit into
    `max_width` pixels."""
    if measure_width(text, size) <= max_width + ROUNDING_PX:
        return text
    two_lines = break_in_two(text) if lines == 2 else []
    if len(two_lines) == 2:
        return [cut_text(line, max_width, size) for line in two_lines]
    return cut_text(text, max_width, size)


def cut_text(text: str, max_width: float, size: float) -> str:
    fitting_length = next(
        (
            at
            for at in range(len(text), 2, -1)
            if measure_width(text[:at], size) <= max_width + ROUNDING_PX
        ),
        min(2, len(text)),
    )
    return text if fitting_length == len(text) else f"{text[: fitting_length - 1]}…"


def share_width(needs: list[float], total_width: float) -> list[float]:
    """Return widths that add up to `total_width`: columns that need more than an even share get
    their need, the others share the rest evenly. If the needs exceed the total, all widths shrink
    in proportion."""
    if sum(needs) > total_width:
        return [need * total_width / sum(needs) for need in needs]
    widths = dict(enumerate(needs))
    unassigned = set(range(len(needs)))
    while unassigned:
        even_share = (total_width - sum(widths[at] for at in widths.keys() - unassigned)) / len(
            unassigned
        )
        wider = {at for at in unassigned if needs[at] > even_share}
        if not wider:
            widths |= dict.fromkeys(unassigned, even_share)
            break
        unassigned -= wider
    return [widths[at] for at in range(len(needs))]


GRID_WIDTH_PX = 590
GROUP_FONT_PX = 11
FONT_PX = 10  # font sizes of groups and of all other texts
# heights of a row, and of all rows unless MIN_ROW_PX needs more
MIN_ROW_PX, MAX_ROW_PX, MAX_ROWS_PX = 15, 24, 185
GROUP_GAP_PX = 4
HEADER_PX = 18
TWO_LINE_ROW_PX = 22
LINE_PX = 10  # heights of a row with two lines, and of each line
NAME_MARGIN_PX = 6  # total space left and right of a name
# between names of rows and cells; the font of a browser may be a third wider than measured
LABEL_MARGIN_PX = 24
CELL_TEXT_COLOUR = "#111111"  # on a coloured cell, also in dark mode
QUANTITATIVE = "quantitative"


def specify_grid(content: Grid) -> dict:
    group_widths = [measure_width(group, GROUP_FONT_PX) + 10 for group, _ in content.rows if group]
    groups_width = max(group_widths, default=0)
    label_widths = [measure_width(label, GROUP_FONT_PX) for _, label in content.rows]
    labels_width = max([measure_width(content.side, FONT_PX), *label_widths]) + LABEL_MARGIN_PX
    two_line_texts, widths = fit_columns(content, GRID_WIDTH_PX - groups_width - labels_width)
    edges = list(accumulate(widths, initial=groups_width + labels_width))
    shown = [
        fit_text(
            cell.text,
            widths[cell.column] - NAME_MARGIN_PX,
            FONT_PX,
            1 + (cell.text in two_line_texts),
        )
        for cell in content.cells
    ]
    heights = [choose_row_height(content)] * len(content.rows)
    for cell, text in zip(content.cells, shown, strict=True):
        if isinstance(text, list):
            heights[cell.row] = max(heights[cell.row], TWO_LINE_ROW_PX)
    tops = []
    top = HEADER_PX
    for at, (group, _) in enumerate(content.rows):
        top += GROUP_GAP_PX if at and group != content.rows[at - 1][0] else 0
        tops.append(top)
        top += heights[at]
    cells = [
        {
            "x": round(edges[cell.column] + 1, 1),
            "x2": round(edges[cell.column + 1] - 1, 1),
            "y": tops[cell.row] + 1,
            "y2": tops[cell.row] + heights[cell.row] - 1,
            "fill": cell.fill,
            "stroke": TEXT_COLOUR if cell.marked else cell.fill,
            "text": text,
            "tooltip": cell.tooltip,
            "opacity": 1,
            "filters": cell.filters,
        }
        for cell, text in zip(content.cells, shown, strict=True)
    ]
    group_starts = [
        at
        for at, (group, _) in enumerate(content.rows)
        if (group and group != content.rows[at - 1][0]) or not at
    ]
    row_names = [
        {"x": 0, "y": tops[at] + heights[at] / 2, "text": content.rows[at][0]}
        for at in group_starts
    ]
    row_names += [
        {"x": round(groups_width), "y": tops[at] + heights[at] / 2, "text": row[1]}
        for at, row in enumerate(content.rows)
    ]
    column_names = [
        {
            "x": round(edges[at] + widths[at] / 2, 1),
            "y": HEADER_PX / 2,
            "text": fit_text(name, widths[at], FONT_PX),
        }
        for at, name in enumerate(content.columns)
    ]
    corner = [{"x": round(groups_width), "y": HEADER_PX / 2, "text": content.side}]
    position = {"x": make_raw_value("x"), "y": make_raw_value("y")}
    box = position | {"x2": {"field": "x2"}, "y2": {"field": "y2"}}
    colours = {
        "fill": make_raw_value("fill", "nominal"),
        "stroke": make_raw_value("stroke", "nominal"),
        "opacity": make_raw_value("opacity"),
    }
    tooltip = {"tooltip": {"field": "tooltip", "type": "nominal"}}
    centre = {
        "x": {"field": "centre_x", "type": QUANTITATIVE, "scale": None, "axis": None},
        "y": {"field": "centre_y", "type": QUANTITATIVE, "scale": None, "axis": None},
    }
    centre_transform = [
        {"calculate": "(datum.x + datum.x2) / 2", "as": "centre_x"},
        {
            "calculate": f"(datum.y + datum.y2 - (isArray(datum.text) ? {LINE_PX} : 0)) / 2",
            "as": "centre_y",
        },
    ]
    text_mark = {"type": "text", "fontSize": FONT_PX, "baseline": "middle"}
    layers = [
        {
            "data": {"name": "cells", "values": cells},
            "layer": [
                {
                    "mark": {"type": "rect", "strokeWidth": 1.5, "cursor": "pointer"},
                    "encoding": box | colours | tooltip,
                },
                {
                    "transform": centre_transform,
                    "mark": text_mark
                    | {
                        "color": CELL_TEXT_COLOUR,
                        "align": "center",
                        "interactive": False,
                        "lineHeight": LINE_PX,
                    },
                    "encoding": centre
                    | {
                        "text": make_raw_value("text", "nominal"),
                        "opacity": make_raw_value("opacity"),
                    },
                },
            ],
        },
        make_text_layer(
            row_names,
            text_mark | {"color": TEXT_COLOUR, "align": "left", "fontSize": GROUP_FONT_PX},
            position,
        ),
        make_text_layer(
            column_names, text_mark | {"color": TEXT_COLOUR, "align": "center"}, position
        ),
        make_text_layer(corner, text_mark | {"color": NOTE_COLOUR, "align": "left"}, position),
    ]
    return make_specification(layers, GRID_WIDTH_PX, int(top) + 2)


def fit_columns(content: Grid, max_width: float) -> tuple[set[str], list[float]]:
    """Return the names that have two lines, and the width of each column. If the names in one line
    each are too wide, the longest names have two lines."""
    longest_first = sorted(
        {cell.text for cell in content.cells},
        key=lambda text: (-measure_width(text, FONT_PX), text),
    )
    for count in range(len(longest_first) + 1):
        two_line_texts = set(longest_first[:count])
        needs = [measure_width(name, FONT_PX) for name in content.columns]
        for cell in content.cells:
            needs[cell.column] = max(
                needs[cell.column],
                compute_needed_width(cell.text, FONT_PX, 1 + (cell.text in two_line_texts)),
            )
        needs = [need + NAME_MARGIN_PX for need in needs]
        if sum(needs) <= max_width:
            break
    return two_line_texts, share_width(needs, max_width)


def choose_row_height(content: Grid) -> int:
    groups = len({group for group, _ in content.rows})
    row_height = (MAX_ROWS_PX - GROUP_GAP_PX * max(0, groups - 1)) // max(1, len(content.rows))
    return int(min(MAX_ROW_PX, max(MIN_ROW_PX, row_height)))


def make_raw_value(field: str, kind: str = QUANTITATIVE) -> dict:
    """Return the encoding of a field whose values are pixels or colours, so without a scale."""
    axis = {"axis": None} if field in ("x", "y") else {}
    return {"field": field, "type": kind} | ({} if field == "text" else {"scale": None} | axis)


def make_text_layer(values: list[dict], mark: dict, position: dict) -> dict:
    return {
        "data": {"values": values},
        "mark": mark,
        "encoding": position | {"text": {"field": "text", "type": "nominal"}},
    }


TILING_SIDE_PX = 320
LEGEND_WIDTH_PX = 190
LEGEND_LINE_PX = 20
SWATCH_PX = 14


def specify_tiling(content: Tiling) -> dict:
    cell_px = TILING_SIDE_PX / content.side
    cells, rank_numbers = [], []
    for part in content.rectangles:
        ends = {"x": part.x, "x2": part.x + part.width, "y": part.y, "y2": part.y + part.height}
        cells.append(
            {key: round(cell_px * end, 2) for key, end in ends.items()}
            | {"fill": part.fill, "tooltip": part.tooltip}
        )
        size = part.font_size(cell_px)
        if size:
            centre = {
                "x": cell_px * (part.x + part.width / 2),
                "y": cell_px * (part.y + part.height / 2),
            }
            centre = {key: round(value, 2) for key, value in centre.items()}
            rank_numbers.append(centre | {"text": part.label, "size": round(size, 1)})
    legend_x = TILING_SIDE_PX + 16
    swatches = [
        {
            "x": legend_x,
            "x2": legend_x + SWATCH_PX,
            "y": at * LEGEND_LINE_PX,
            "y2": at * LEGEND_LINE_PX + SWATCH_PX,
            "fill": colour,
            "tooltip": text,
        }
        for at, (colour, text) in enumerate(content.legend)
    ]
    legend_texts = [
        {"x": legend_x + SWATCH_PX + 6, "y": at * LEGEND_LINE_PX + SWATCH_PX / 2, "text": text}
        for at, (_, text) in enumerate(content.legend)
    ]
    position = {"x": make_raw_value("x"), "y": make_raw_value("y")}
    box = position | {
        "x2": {"field": "x2"},
        "y2": {"field": "y2"},
        "fill": make_raw_value("fill", "nominal"),
    }
    tooltip = {"tooltip": {"field": "tooltip", "type": "nominal"}}
    text_mark = {"type": "text", "baseline": "middle"}
    layers = [
        {
            "data": {"values": [*cells, *swatches]},
            "mark": {"type": "rect", "stroke": NOTE_COLOUR, "strokeWidth": 1},
            "encoding": box | tooltip,
        },
        make_text_layer(
            rank_numbers,
            text_mark | {"color": CELL_TEXT_COLOUR, "align": "center", "interactive": False},
            position | {"size": make_raw_value("size")},
        ),
        make_text_layer(
            legend_texts,
            text_mark | {"color": TEXT_COLOUR, "align": "left", "fontSize": 11},
            position,
        ),
    ]
    return make_specification(
        layers,
        TILING_SIDE_PX + LEGEND_WIDTH_PX,
        max(TILING_SIDE_PX, LEGEND_LINE_PX * len(swatches)),
    )
