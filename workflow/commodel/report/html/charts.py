"""The charts of the page, drawn by Bokeh in the browser. BokehJS stands there once, the charts as data beside it."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace

from bokeh.resources import Resources

from commodel.report.charts import PALETTE
from commodel.report.html.document import document, entries, fields, model, value
from commodel.report.shape import Axis, Chart, Series
from commodel.units import format_bytes

HEIGHT = 420  # beside a width of 600, which is Bokeh's default
MOST_DOTS = 3000  # of one chart
DOTS = ("circle", "diamond", "square", "triangle", "inverted_triangle", "star")
PARTS = ("line", "fill", "hatch")  # of a dot
GREY = "#888888"
# One after the other, so that a page with a hundred charts can be read while they are drawn.
START = (
    "const items = JSON.parse(document.getElementById('charts').textContent);"
    "const next = () => { if (items.length) Bokeh.embed.embed_item(items.shift()).finally(() => setTimeout(next)); };"
    "next();"
)


def scripts(charts: Sequence[Chart], places: Sequence[str]) -> str:
    """Everything the charts need, or nothing where there are none."""
    if not charts:
        return ""
    items = [
        document(draw(chart), place, f"c{at}") for at, (chart, place) in enumerate(zip(charts, places, strict=True))
    ]
    # A `<` could close the script element, or open a comment in it.
    data = json.dumps(items, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
    library = "\n".join(Resources(mode="inline", components=["bokeh"]).js_raw).replace("</script", "<\\/script")
    data = f'<script type="application/json" id="charts">{data}</script>'
    return f"<script>{library}</script>\n{data}\n<script>{START}</script>\n"


def draw(chart: Chart) -> dict:
    drawn, whiskers, labels, hovered = [], [], [], []
    for series in thinned(chart):
        glyphs, bars = add(series)
        drawn += glyphs
        whiskers += bars
        labels.append(model("LegendItem", label=value(inert(series.name)), renderers=glyphs))
        if series.style in ("dots", "both"):
            hovered.append(glyphs[-1])
    left, below = axis(chart.y, chart, "y"), axis(chart.x, chart, "x")
    grid = {"grid_line_color": "#E3E7EA"}
    return model(
        "Figure",
        height=HEIGHT,
        x_range=span(chart.x),
        y_range=span(chart.y),
        x_scale=model("LogScale" if chart.x.log else "LinearScale"),
        y_scale=model("LogScale" if chart.y.log else "LinearScale"),
        title=model("Title"),
        renderers=drawn,
        toolbar=model("Toolbar", tools=tools(chart, hovered), logo=None),
        toolbar_location="above",
        left=[left],
        below=[below, legend(labels)],
        center=[model("Grid", axis=below, **grid), model("Grid", dimension=1, axis=left, **grid), *whiskers],
        min_border_right=20,
    )


def tools(chart: Chart, hovered: list[dict]) -> list[dict]:
    sides = ("left", "right", "top", "bottom")
    box = model(
        "BoxAnnotation",
        syncable=False,
        line_color="black",
        line_alpha=1.0,
        line_width=2,
        line_dash=[4, 4],
        fill_color="lightgrey",
        fill_alpha=0.5,
        level="overlay",
        visible=False,
        **{side: {"type": "number", "value": "nan"} for side in sides},
        **{f"{side}_units": "canvas" for side in sides},
        handles=model(
            "BoxInteractionHandles", all=model("AreaVisuals", fill_color="white", hover_fill_color="lightgray")
        ),
    )
    tips = [("", "@name"), ("", "@label"), (chart.x.label, "@x{0,0.[000]}"), (chart.y.label, "@y{0,0.[000]}")]
    tips = [(inert(name), field) for name, field in tips]
    return [
        model("PanTool"),
        model("BoxZoomTool", dimensions="both", overlay=box),
        model("WheelZoomTool", renderers="auto"),
        model("ResetTool"),
        model("SaveTool"),
        model("HoverTool", renderers=hovered, tooltips=tips, sort_by=None),
    ]


def legend(labels: list[dict]) -> dict:
    return model(
        "Legend",
        location="left",
        orientation="horizontal",
        ncols=3,
        border_line_color=None,
        click_policy="hide",
        label_text_font_size="11px",
        margin=2,
        padding=2,
        spacing=4,
        items=labels,
    )


def span(axis: Axis) -> dict:
    if axis.low is None:
        return model("DataRange1d")
    ends = {"start": (axis.low, 0), "end": (axis.high, 1)}
    return model("Range1d", **{name: end for name, (end, default) in ends.items() if end != default})


def axis(own: Axis, chart: Chart, side: str) -> dict:
    """Label and ticks."""
    values = [number for series in chart.series for number in getattr(series, side)]
    looks = {"axis_label": inert(own.label), "axis_label_text_font_style": "normal"}
    if own.bytes and values:
        sizes = ticks(values)
        ticker = model("FixedTicker", ticks=sizes, minor_ticks=[])
        formatter = model("LogTickFormatter" if own.log else "BasicTickFormatter")
        looks["major_label_overrides"] = entries({tick: format_bytes(tick) for tick in sizes})
    else:
        log = {"num_minor_ticks": 10, "mantissas": [1, 5]}
        ticker = model("LogTicker", **log) if own.log else model("BasicTicker", mantissas=[1, 2, 5])
        formatter = model("NumeralTickFormatter", format="0,0.[0000]")
    policy = model("AllLabels")
    name = "LogAxis" if own.log else "LinearAxis"
    return model(name, ticker=ticker, formatter=formatter, **looks, major_label_policy=policy)


def stride(chart: Chart) -> int:
    """1, or so many dots for each one drawn that the page stays light."""
    return -(-sum(len(series.x) for series in chart.series) // MOST_DOTS)


def thinned(chart: Chart) -> tuple[Series, ...]:
    step = stride(chart)
    if step == 1:
        return chart.series
    return tuple(
        replace(one, x=one.x[::step], y=one.y[::step], labels=one.labels[::step]) if one.style == "dots" else one
        for one in chart.series
    )


def add(series: Series) -> tuple[list[dict], list[dict]]:
    """The glyphs of one series, of which the pointer can hover the last one, and its error bars."""
    colour = GREY if series.colour < 0 else PALETTE[series.colour % len(PALETTE)]
    dot = DOTS[max(0, series.colour) // len(PALETTE) % len(DOTS)]
    columns = {"x": short(series.x), "y": short(series.y)}
    if series.style in ("dots", "both"):
        columns["name"] = [series.name] * len(series.x)
        columns["label"] = list(series.labels) or [""] * len(series.x)
    if series.low:
        columns |= {"low": short(series.low), "high": short(series.high)}
    source = model(
        "ColumnDataSource",
        selected=model("Selection", indices=[], line_indices=[]),
        selection_policy=model("UnionRenderers"),
        data=entries(columns),
    )
    glyphs = []
    if series.style != "dots":
        dash = {"line_dash": [6]} if series.style == "dashed" else {}
        glyphs.append(model("Line", **fields(x="x", y="y"), line_color=colour, line_width=1.6, **dash))
    if series.style in ("dots", "both"):
        looks = {f"{part}_{key}": value(look) for part in PARTS for key, look in (("color", colour), ("alpha", 0.8))}
        marker = {} if dot == DOTS[0] else {"marker": value(dot)}
        glyphs.append(model("Scatter", **fields(x="x", y="y"), size=value(6), **looks, **marker))
    return [rendered(glyph, source) for glyph in glyphs], [whisker(source, colour)] if series.low else []


def rendered(glyph: dict, source: dict) -> dict:
    view = model("CDSView", filter=model("AllIndices"))
    looks = {"nonselection_glyph": None, "muted_glyph": None}  # nothing here gives a glyph any
    return model("GlyphRenderer", data_source=source, view=view, glyph=glyph, **looks)


def whisker(source: dict, colour: str) -> dict:
    lower, upper = (model("TeeHead", size=value(5)) for _ in range(2))
    low, high, base = fields(lower="low"), fields(upper="high"), fields(base="x")
    heads = {**low, "lower_head": lower, **high, "upper_head": upper, **base}
    return model("Whisker", source=source, **heads, line_color=value(colour))


def ticks(sizes: Sequence[float]) -> list[int]:
    """Powers of 16, or of 4 where those would be fewer than four."""
    low, high = math.log2(min(sizes)), math.log2(max(sizes))
    step = 4 if high - low >= 12 else 2
    return [2**power for power in range(math.floor(low) // step * step, math.ceil(high) + 1, step)]


def short(values: Sequence[float]) -> list[float | None]:
    """Six digits are more than a chart can show."""
    return [float(f"{value:.6g}") if math.isfinite(value) else None for value in values]


def inert(text: str) -> str:
    """Text that Bokeh does not take for a formula to be set by a library it would have to load."""
    return text.replace("$$", "$ $").replace("\\[", "\\ [").replace("\\(", "\\ (")
