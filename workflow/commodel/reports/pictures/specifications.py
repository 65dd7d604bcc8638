"""Vega-Lite specifications of charts, grids and tilings, which the page and the static drawings share: `specify_lines`,
`specify_grid` and `specify_tiling`.

Colours are those of paper; the page's style replaces them in dark mode, and finds them by their values. Names in a grid
have two lines or are cut if their column has too little room (`fit_text`).
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

INK, DIM, RULE, PAPER, GREY = "#1b2226", "#5c656c", "#e3e7ea", "#ffffff", "#777777"
FONT = "Arial, Liberation Sans, Helvetica, sans-serif"  # of which vl-convert has one on every machine
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
NARROW = 5.0  # times its lowest value: on a logarithmic axis that ends below
SHAPES = ("circle", "diamond", "square", "triangle-up", "triangle-down", "cross")
# Times are written in the unit that fits, whatever the values are in.
MICROSECONDS = (
    "datum.value >= 1e6 ? format(datum.value / 1e6, '~g') + ' s' : datum.value >= 1e3 ? "
    "format(datum.value / 1e3, '~g') + ' ms' : datum.value >= 1 || datum.value == 0 ? "
    "format(datum.value, '~g') + ' µs' : "
    "format(datum.value * 1e3, '~g') + ' ns'"
)
NUMBERS = "abs(datum.value) >= 1e6 || (datum.value != 0 && abs(datum.value) < 1e-3) ? format(datum.value, '~e') : "
NUMBERS += "format(datum.value, ',~g')"


def make_config() -> dict:
    text = {"labelColor": INK, "titleColor": INK, "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal"}
    lines = {"domainColor": DIM, "tickColor": DIM, "gridColor": RULE}
    return {
        "font": FONT,
        "background": PAPER,
        "aria": False,  # the figure around it has a description, and a table has its numbers
        "axis": text | lines | {"labelLimit": 0, "titleLimit": 0},
        "legend": text | {"labelLimit": 0, "title": None, "orient": "bottom", "columns": 3, "symbolStrokeWidth": 2},
        "title": {"color": INK, "subtitleColor": DIM, "anchor": "start", "fontSize": 13, "subtitleFontSize": 11},
        "view": {"stroke": None},
    }


def make_specification(layers: list[dict], width: int, height: int, **properties: object) -> dict:
    return {"$schema": SCHEMA, "width": width, "height": height, "config": make_config(), **properties, "layer": layers}


def add_title(spec: dict, title: str, note: str = "") -> dict:
    """Return the specification with a title and a note, for a drawing without the page around it."""
    return spec | {"title": {"text": title} | ({"subtitle": note} if note else {})}


def choose_colour(number: int) -> str:
    return GREY if number < 0 else PALETTE[number % len(PALETTE)]


def choose_dot_shape(number: int) -> str:
    return SHAPES[max(0, number) // len(PALETTE) % len(SHAPES)]


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
    """Return powers of ten as ticks, with 2 and 5 times these if there would be fewer than four; even steps in a narrow
    range."""
    if low < high < NARROW * low:
        return even_ticks(low, high)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if last - first < 3 else (1,)
    stride = max(1, (last - first) // 8)
    ticks = [step * 10.0**power for power in range(first, last + 1, stride) for step in steps]
    return [float(f"{tick:.3g}") for tick in ticks if low * 0.999 <= tick <= high * 1.001]


def even_ticks(low: float, high: float) -> list[float]:
    """Return three to seven round numbers as ticks."""
    power = 10.0 ** math.floor(math.log10(high - low))
    step = next(power * part for part in (2, 1, 0.5, 0.2) if (high - low) / (power * part) >= 3)
    return [float(f"{step * at:.12g}") for at in range(math.ceil(low / step), math.floor(high / step) + 1)]


WIDTH, HEIGHT = 520, 300
MOST_DOTS = 700  # of one chart: on the page each is a part of its own
X, Y = {"field": "x", "type": "quantitative", "sort": None}, {"field": "y", "type": "quantitative"}


def choose_stride(chart: Chart) -> int:
    """Return N if one of every N dots is drawn, so that the page stays small."""
    dots = sum(len(series.x) for series in chart.series if series.style == "dots")
    return max(1, -(-dots // MOST_DOTS))


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


def specify_lines(chart: Chart, width: int = WIDTH, height: int = HEIGHT, first: bool = False) -> dict:
    """Return the specification of a chart of lines, dots, bars and intervals. `s` is the series of a value, `t`
    describes a dot, `low` and `high` are the ends of its interval. On the `first` screen the legend is at the side, and
    there are empty layers that the page's script may fill."""
    series = make_names_distinct(thin_dots(chart))
    names = [drawn.name for drawn in series]
    scale = {"domain": names, "range": [choose_colour(drawn.colour) for drawn in series]}
    rows = {
        style: [row for drawn in series if style in list_layer_names(drawn) for row in make_rows(drawn)]
        for style in STYLES
    }
    rows["bars"] = make_bars([drawn for drawn in series if drawn.style == "bars"], chart)
    hue = {
        "color": {
            "field": "s",
            "type": "nominal",
            "scale": scale,
            "legend": {"orient": "right", "columns": 1} if first else {"columns": count_legend_columns(names)},
        }
    }
    x, y = make_channel(chart.x, chart, "x"), make_channel(chart.y, chart, "y")
    tooltip_fields = [
        {"field": "s", "type": "nominal", "title": "series"},
        {"field": "t", "type": "nominal", "title": "point"},
        {"field": "x", "type": "quantitative", "title": chart.x.label, "format": ",.4~g"},
        {"field": "y", "type": "quantitative", "title": chart.y.label, "format": ",.4~g"},
    ]
    layers = [make_band_layer(chart)] if chart.band else []
    if first or rows["interval"]:
        ends = {"y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}}
        layers.append(
            make_layer(
                "interval", rows["interval"], {"type": "rule", "opacity": 0.6, "clip": True}, {"x": X} | hue | ends
            )
        )
    if rows["walk"]:
        mark = {"type": "line", "strokeWidth": 2, "strokeJoin": "round"}
        layers.append(make_layer("walk", rows["walk"], mark, {"x": X, "y": Y, "order": {"value": None}} | hue))
    for style, dash in (("line", {}), ("dashed", {"strokeDash": [6, 4]})):
        if first or rows[style]:
            mark = {"type": "line", "strokeWidth": 1.6, "clip": True, "invalid": "break-paths-filter-domains"} | dash
            layers.append(make_layer(style, rows[style], mark, {"x": X, "y": Y} | hue))
    if rows["bars"]:
        ends = {"x2": {"field": "x2"}, "y2": {"field": "y2"}}
        encoding = {"x": X, "y": Y, "tooltip": tooltip_fields} | hue | ends
        layers.append(make_layer("bars", rows["bars"], {"type": "rect", "clip": True}, encoding))
    if first or rows["dots"]:
        coloured = len({choose_dot_shape(drawn.colour) for drawn in series}) > 1
        forms = {
            "field": "s",
            "type": "nominal",
            "scale": scale | {"range": [choose_dot_shape(drawn.colour) for drawn in series]},
        }
        shapes = {"shape": forms} if coloured else {}
        mark = {"type": "point", "filled": True, "size": 26, "opacity": 0.8, "clip": True}
        layers.append(
            make_layer("dots", rows["dots"], mark, {"x": X, "y": Y, "tooltip": tooltip_fields} | hue | shapes)
        )
    if not layers:
        layers.append(make_layer("dots", [], {"type": "point"}, {"x": X, "y": Y}))
    layers[0]["encoding"] |= {"x": layers[0]["encoding"]["x"] | x, "y": layers[0]["encoding"]["y"] | y}
    return make_specification(layers, width, height)


OVERLAPPING, SLANT = 60, 30  # letters below an axis, and by how many degrees more are turned
BETWEEN = 0.25  # of the width of a place: the gap to the bars of the next one
STYLES = ("interval", "walk", "line", "dashed", "dots")


def list_layer_names(series: Series) -> tuple[str, ...]:
    styles = {"both": ("line", "dots"), "bars": ()}.get(series.style, (series.style,))
    return ("interval", *styles) if series.low else styles


def make_layer(name: str, values: list[dict], mark: dict, encoding: dict) -> dict:
    return {"name": name, "data": {"values": values}, "mark": mark, "encoding": encoding}


def make_rows(series: Series) -> list[dict]:
    keys = {"x": series.x, "y": series.y, "low": series.low, "high": series.high}
    present = {key: values for key, values in keys.items() if values}
    rows = []
    for at in range(len(series.x)):
        row = {"s": series.name} | {key: shorten_number(values[at]) for key, values in present.items()}
        rows.append(row | ({"t": series.labels[at]} if series.labels else {}))
    return rows


def make_bars(series: list[Series], chart: Chart) -> list[dict]:
    """Return bars side by side at their place, from the foot of the axis on."""
    foot = chart.y.low if chart.y.low is not None else 0.0
    wide = (1 - BETWEEN) / max(1, len(series))
    return [
        {
            "s": drawn.name,
            "t": chart.x.names[int(x)],
            "x": left_edge,
            "x2": left_edge + wide,
            "y": shorten_number(y),
            "y2": foot,
        }
        for index, drawn in enumerate(series)
        for x, y in zip(drawn.x, drawn.y, strict=True)
        for left_edge in [x - (1 - BETWEEN) / 2 + index * wide]
    ]


def make_names_distinct(series: tuple[Series, ...]) -> list[Series]:
    """Return the series with distinct names, because a scale identifies a series by its name: repeated ones get a
    number."""
    name_counts: Counter[str] = Counter()
    distinct = []
    for drawn in series:
        name_counts[drawn.name] += 1
        number = name_counts[drawn.name]
        distinct.append(drawn if number == 1 else replace(drawn, name=f"{drawn.name} ({number})"))
    return distinct


def count_legend_columns(names: list[str]) -> int:
    """Return the number of columns of a legend that fit below a chart."""
    return max(1, min(len(names), WIDTH // (36 + 7 * max(map(len, names), default=1))))


def make_band_layer(chart: Chart) -> dict:
    """Return the layer of a strip along the identity line: errors up to the chart's `band`."""
    low, high = chart.x.low, chart.x.high
    values = [{"x": x, "y": x / (1 + chart.band), "y2": x * (1 + chart.band)} for x in (low, high)]
    mark = {"type": "area", "color": GREY, "opacity": 0.18, "clip": True}
    return make_layer("band", values, mark, {"x": X, "y": Y, "y2": {"field": "y2"}})


def make_channel(axis: Axis, chart: Chart, side: str) -> dict:
    """Return the scale, ticks and title of an axis."""
    values = [value for series in chart.series for value in getattr(series, side)]
    values += [value for series in chart.series for value in (*series.low, *series.high) if side == "y"]
    values = [value for value in values if math.isfinite(value) and (value > 0 or not axis.log)]
    low, high = axis.low, axis.high
    if low is None and axis.log and values:
        low, high = min(values) / 1.15, max(values) * 1.15
    scale: dict = {"type": "log"} if axis.log else {"type": "linear", "zero": False}
    scale |= {"domain": [low, high], "nice": False} if low is not None else {}
    micro = axis.label.endswith(" [µs]")
    axis_style: dict = {"labelExpr": MICROSECONDS if micro else NUMBERS, "tickCount": 6, "labelOverlap": True}
    if axis.names:
        ticks = list(range(len(axis.names)))
        axis_style |= {"values": ticks, "labelExpr": f"{json.dumps(axis.names)}[datum.value]", "grid": False}
        axis_style |= {
            "tickCount": len(ticks),
            "labelOverlap": False,
            "labelAngle": -SLANT if sum(map(len, axis.names)) > OVERLAPPING else 0,
        }
        scale |= {"domain": [-0.5, len(axis.names) - 0.5], "nice": False}
    elif axis.whole_numbers:
        axis_style |= {"values": list(range(0, math.ceil(axis.high), axis.step))}
    elif axis.bytes and values:
        ticks = choose_byte_ticks(values)
        axis_style |= {"values": ticks, "labelExpr": format_byte_labels(ticks)}
    elif axis.log and low is not None:
        axis_style |= {"values": choose_decade_ticks(low, high)}
    title = axis.label.removesuffix(" [µs]") if micro else axis.label
    return {"scale": scale, "axis": axis_style, "title": title or None}


LETTER = 0.5  # of the size of letters: how wide one is on average
ROUNDING = 0.01  # pixels
HYPHENS = "-:, "  # behind which a line may end


def measure_width(text: str, size: float) -> float:
    return LETTER * size * len(text)


def break_in_two(text: str) -> list[str]:
    """Return the text in two lines, the longer one as short as possible; in one line if it has no place to break."""
    places = [at + 1 for at, letter in enumerate(text[:-1]) if letter in HYPHENS]
    if not places:
        return [text]
    at = min(places, key=lambda index: max(measure_width(text[:index], 1), measure_width(text[index:], 1)))
    return [text[:at].rstrip(" "), text[at:]]


def compute_needed_width(text: str, size: float, lines: int) -> float:
    return max(measure_width(line, size) for line in (break_in_two(text) if lines == 2 else [text]))


def fit_text(text: str, room: float, size: float, lines: int = 1) -> str | list[str]:
    """Return the text in as few lines as possible, at most `lines`; cut if these have no room for it."""
    if measure_width(text, size) <= room + ROUNDING:
        return text
    if lines == 2 and len(two := break_in_two(text)) == 2:
        return [cut_text(line, room, size) for line in two]
    return cut_text(text, room, size)


def cut_text(text: str, room: float, size: float) -> str:
    fitting = next(
        (at for at in range(len(text), 2, -1) if measure_width(text[:at], size) <= room + ROUNDING), min(2, len(text))
    )
    return text if fitting == len(text) else f"{text[: fitting - 1]}…"


def share_width(needs: list[float], room: float) -> list[float]:
    """Return widths that add up to `room`: columns that need more than an even share get their need, the others share
    the rest evenly. If there is too little room, all widths shrink in proportion."""
    if sum(needs) > room:
        return [need * room / sum(needs) for need in needs]
    widths, unassigned = dict(enumerate(needs)), set(range(len(needs)))
    while unassigned:
        even_share = (room - sum(widths[at] for at in widths.keys() - unassigned)) / len(unassigned)
        wider = {at for at in unassigned if needs[at] > even_share}
        if not wider:
            widths |= dict.fromkeys(unassigned, even_share)
            break
        unassigned -= wider
    return [widths[at] for at in range(len(needs))]


GRID_WIDTH = 590
LARGE, SMALL = 11, 10  # pixels: letters of groups, and of all else
LOWEST_ROW, HIGHEST_ROW, TALL = 15, 24, 185  # pixels: of a row, and of all rows if they can be had
GAP = 4  # between groups
HEAD = 18
TWO, LINE = 22, 10  # pixels: of a row that takes two lines, and of each of these
MARGIN = 6  # pixels beside a name
BLACK = "#111111"  # on coloured ground, in the dark as well
NUMBER = "quantitative"


def specify_grid(content: Grid) -> dict:
    groups = max((measure_width(group, LARGE) for group, _ in content.rows), default=0) + 10
    labels = max([measure_width(content.side, SMALL), *(measure_width(label, LARGE) for _, label in content.rows)]) + 8
    two, wide = fit_columns(content, GRID_WIDTH - groups - labels)
    edges = list(accumulate(wide, initial=groups + labels))
    shown = [fit_text(cell.text, wide[cell.column] - MARGIN, SMALL, 1 + (cell.text in two)) for cell in content.cells]
    high = [choose_row_height(content)] * len(content.rows)
    for cell, text in zip(content.cells, shown, strict=True):
        if isinstance(text, list):
            high[cell.row] = max(high[cell.row], TWO)
    tops, top = [], HEAD
    for at, (group, _) in enumerate(content.rows):
        top += GAP if at and group != content.rows[at - 1][0] else 0
        tops.append(top)
        top += high[at]
    cells = [
        {
            "x": round(edges[cell.column] + 1, 1),
            "x2": round(edges[cell.column + 1] - 1, 1),
            "y": tops[cell.row] + 1,
            "y2": tops[cell.row] + high[cell.row] - 1,
            "f": cell.fill,
            "k": INK if cell.marked else cell.fill,
            "t": text,
            "a": cell.tooltip,
            "o": 1,
            "picks": cell.picks,
        }
        for cell, text in zip(content.cells, shown, strict=True)
    ]
    named = [at for at, (group, _) in enumerate(content.rows) if (group and group != content.rows[at - 1][0]) or not at]
    words = [{"x": 0, "y": tops[at] + high[at] / 2, "t": content.rows[at][0]} for at in named]
    words += [{"x": round(groups), "y": tops[at] + high[at] / 2, "t": row[1]} for at, row in enumerate(content.rows)]
    heads = [
        {"x": round(edges[at] + wide[at] / 2, 1), "y": HEAD / 2, "t": fit_text(name, wide[at], SMALL)}
        for at, name in enumerate(content.columns)
    ]
    corner = [{"x": round(groups) if groups > 10 else 0, "y": HEAD / 2, "t": content.side}]
    position = {"x": make_raw_value("x"), "y": make_raw_value("y")}
    box = position | {"x2": {"field": "x2"}, "y2": {"field": "y2"}}
    colours = {
        "fill": make_raw_value("f", "nominal"),
        "stroke": make_raw_value("k", "nominal"),
        "opacity": make_raw_value("o"),
    }
    tooltip = {"tooltip": {"field": "a", "type": "nominal"}}
    middle = {
        "x": {"field": "m", "type": NUMBER, "scale": None, "axis": None},
        "y": {"field": "n", "type": NUMBER, "scale": None, "axis": None},
    }
    halves = [
        {"calculate": "(datum.x + datum.x2) / 2", "as": "m"},
        {"calculate": f"(datum.y + datum.y2 - (isArray(datum.t) ? {LINE} : 0)) / 2", "as": "n"},
    ]
    letter = {"type": "text", "fontSize": SMALL, "baseline": "middle"}
    layers = [
        {
            "data": {"name": "cells", "values": cells},
            "layer": [
                {
                    "mark": {"type": "rect", "strokeWidth": 1.5, "cursor": "pointer"},
                    "encoding": box | colours | tooltip,
                },
                {
                    "transform": halves,
                    "mark": letter | {"color": BLACK, "align": "center", "interactive": False, "lineHeight": LINE},
                    "encoding": middle | {"text": make_raw_value("t", "nominal"), "opacity": make_raw_value("o")},
                },
            ],
        },
        make_text_layer(words, letter | {"color": INK, "align": "left", "fontSize": LARGE}, position),
        make_text_layer(heads, letter | {"color": INK, "align": "center"}, position),
        make_text_layer(corner, letter | {"color": DIM, "align": "left"}, position),
    ]
    return make_specification(layers, GRID_WIDTH, int(top) + 2)


def fit_columns(content: Grid, room: float) -> tuple[set[str], list[float]]:
    """Return which names take two lines, and how wide each column is: the longest names do, if one line each is too
    wide."""
    longest = sorted({cell.text for cell in content.cells}, key=lambda text: (-measure_width(text, SMALL), text))
    for count in range(len(longest) + 1):
        two = set(longest[:count])
        needs = [measure_width(name, SMALL) for name in content.columns]
        for cell in content.cells:
            needs[cell.column] = max(needs[cell.column], compute_needed_width(cell.text, SMALL, 1 + (cell.text in two)))
        needs = [need + MARGIN for need in needs]
        if sum(needs) <= room:
            break
    return two, share_width(needs, room)


def choose_row_height(content: Grid) -> int:
    groups = len({group for group, _ in content.rows})
    room = (TALL - GAP * max(0, groups - 1)) // max(1, len(content.rows))
    return int(min(HIGHEST_ROW, max(LOWEST_ROW, room)))


def make_raw_value(field: str, kind: str = NUMBER) -> dict:
    """Return a value as it is: a pixel or a colour."""
    axis = {"axis": None} if field in ("x", "y") else {}
    return {"field": field, "type": kind} | ({} if field == "t" else {"scale": None} | axis)


def make_text_layer(values: list[dict], mark: dict, position: dict) -> dict:
    return {
        "data": {"values": values},
        "mark": mark,
        "encoding": position | {"text": {"field": "t", "type": "nominal"}},
    }


SIDE, LEGEND, TILING_LINE, SWATCH = 320, 190, 20, 14  # pixels


def specify_tiling(content: Tiling) -> dict:
    unit = SIDE / content.side
    cells, numbers = [], []
    for part in content.rectangles:
        ends = {"x": part.x, "x2": part.x + part.width, "y": part.y, "y2": part.y + part.height}
        cells.append({key: round(unit * end, 2) for key, end in ends.items()} | {"f": part.fill, "a": part.tooltip})
        if size := part.font_size(unit):
            middle = {"x": unit * (part.x + part.width / 2), "y": unit * (part.y + part.height / 2)}
            middle = {key: round(value, 2) for key, value in middle.items()}
            numbers.append(middle | {"t": part.label, "z": round(size, 1)})
    legend_x = SIDE + 16
    swatches = [
        {
            "x": legend_x,
            "x2": legend_x + SWATCH,
            "y": at * TILING_LINE,
            "y2": at * TILING_LINE + SWATCH,
            "f": colour,
            "a": text,
        }
        for at, (colour, text) in enumerate(content.legend)
    ]
    words = [
        {"x": legend_x + SWATCH + 6, "y": at * TILING_LINE + SWATCH / 2, "t": text}
        for at, (_, text) in enumerate(content.legend)
    ]
    position = {"x": make_raw_value("x"), "y": make_raw_value("y")}
    box = position | {"x2": {"field": "x2"}, "y2": {"field": "y2"}, "fill": make_raw_value("f", "nominal")}
    tooltip = {"tooltip": {"field": "a", "type": "nominal"}}
    letter = {"type": "text", "baseline": "middle"}
    layers = [
        {
            "data": {"values": [*cells, *swatches]},
            "mark": {"type": "rect", "stroke": DIM, "strokeWidth": 1},
            "encoding": box | tooltip,
        },
        make_text_layer(
            numbers,
            letter | {"color": BLACK, "align": "center", "interactive": False},
            position | {"size": make_raw_value("z")},
        ),
        make_text_layer(words, letter | {"color": INK, "align": "left", "fontSize": 11}, position),
    ]
    return make_specification(layers, SIDE + LEGEND, max(SIDE, TILING_LINE * len(swatches)))
