"""The charts of the page, drawn by Bokeh in the browser. BokehJS stands there once, the charts as data beside it."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace

from bokeh.embed import json_item
from bokeh.models import (
    ColumnDataSource,
    FixedTicker,
    HoverTool,
    Legend,
    LegendItem,
    NumeralTickFormatter,
    Range1d,
    Whisker,
)
from bokeh.plotting import figure
from bokeh.resources import Resources

from commodel.report.charts import PALETTE
from commodel.report.shape import Chart, Series
from commodel.units import format_bytes

WIDTH, HEIGHT = 600, 420
MOST_DOTS = 3000  # of one chart
DOTS = ("circle", "diamond", "square", "triangle", "inverted_triangle", "star")
GREY = "#888888"
TOOLS = "pan,box_zoom,wheel_zoom,reset,save"
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
        numbered(json_item(draw(chart), place), f"c{at}")
        for at, (chart, place) in enumerate(zip(charts, places, strict=True))
    ]
    # A `<` could close the script element, or open a comment in it.
    data = json.dumps(items, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
    library = "\n".join(Resources(mode="inline", components=["bokeh"]).js_raw).replace("</script", "<\\/script")
    data = f'<script type="application/json" id="charts">{data}</script>'
    return f"<script>{library}</script>\n{data}\n<script>{START}</script>\n"


def draw(chart: Chart):
    plot = figure(
        width=WIDTH,
        height=HEIGHT,
        x_axis_type="log" if chart.x.log else "linear",
        y_axis_type="log" if chart.y.log else "linear",
        tools=TOOLS,
        toolbar_location="above",
    )
    plot.toolbar.logo = None
    plot.output_backend = "canvas"
    plot.min_border_right = 20
    for lines in (plot.xgrid, plot.ygrid):
        lines.grid_line_color = "#E3E7EA"
    frame(plot, chart)
    entries, hovered = [], []
    for series in thinned(chart):
        drawn = add(plot, series)
        entries.append(LegendItem(label={"value": inert(series.name)}, renderers=drawn))
        if series.style in ("dots", "both"):
            hovered.append(drawn[-1])
    legend = Legend(
        items=entries, click_policy="hide", orientation="horizontal", location="left", ncols=3, border_line_color=None
    )
    legend.label_text_font_size, legend.spacing, legend.padding, legend.margin = "11px", 4, 2, 2
    plot.add_layout(legend, "below")
    tips = [("", "@name"), ("", "@label"), (chart.x.label, "@x{0,0.[000]}"), (chart.y.label, "@y{0,0.[000]}")]
    plot.add_tools(HoverTool(renderers=hovered, tooltips=[(inert(name), field) for name, field in tips]))
    return plot


def frame(plot, chart: Chart) -> None:
    """Labels, ranges and ticks of both axes."""
    for axis, own, sides in ((chart.x, plot.xaxis[0], "x"), (chart.y, plot.yaxis[0], "y")):
        own.axis_label = inert(axis.label)
        own.axis_label_text_font_style = "normal"
        values = [value for series in chart.series for value in getattr(series, sides)]
        if axis.low is not None:
            setattr(plot, f"{sides}_range", Range1d(axis.low, axis.high))
        if axis.bytes and values:
            own.ticker = FixedTicker(ticks=ticks(values))
            own.major_label_overrides = {tick: format_bytes(tick) for tick in own.ticker.ticks}
        else:
            own.formatter = NumeralTickFormatter(format="0,0.[0000]")


def stride(chart: Chart) -> int:
    """1, or so many dots for each one drawn that the page stays light."""
    return -(-sum(len(series.x) for series in chart.series) // MOST_DOTS)


def thinned(chart: Chart) -> tuple[Series, ...]:
    step = stride(chart)
    if step == 1:
        return chart.series
    return tuple(
        replace(each, x=each.x[::step], y=each.y[::step], labels=each.labels[::step]) if each.style == "dots" else each
        for each in chart.series
    )


def add(plot, series: Series) -> list:
    """The glyphs of one series; the last one is what the pointer can hover."""
    colour = GREY if series.colour < 0 else PALETTE[series.colour % len(PALETTE)]
    dot = DOTS[max(0, series.colour) // len(PALETTE) % len(DOTS)]
    data = {"x": short(series.x), "y": short(series.y)}
    if series.style in ("dots", "both"):
        data["name"] = [series.name] * len(series.x)
        data["label"] = list(series.labels) or [""] * len(series.x)
    if series.low:
        data |= {"low": short(series.low), "high": short(series.high)}
    source, drawn = ColumnDataSource(data), []
    if series.low:
        whisker = Whisker(base="x", lower="low", upper="high", source=source, line_color=colour)
        whisker.upper_head.size = whisker.lower_head.size = 5
        plot.add_layout(whisker)
    if series.style != "dots":
        dash = "dashed" if series.style == "dashed" else "solid"
        drawn.append(plot.line("x", "y", source=source, color=colour, line_width=1.6, line_dash=dash))
    if series.style in ("dots", "both"):
        drawn.append(plot.scatter("x", "y", source=source, color=colour, marker=dot, size=6, alpha=0.8))
    for renderer in drawn:  # looks that nothing here gives a glyph, and that would double the page's data
        renderer.nonselection_glyph = renderer.muted_glyph = None
    return drawn


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


def numbered(item: object, prefix: str) -> object:
    """Bokeh counts its ids through the life of the process. Counted anew, equal charts are equal text."""
    seen: dict[str, str] = {}

    def walk(part: object) -> object:
        if isinstance(part, dict):
            return {key: rename(value) if key in ("id", "root_id") else walk(value) for key, value in part.items()}
        return [walk(value) for value in part] if isinstance(part, list) else part

    def rename(value: object) -> object:
        return seen.setdefault(value, f"{prefix}-{len(seen)}") if isinstance(value, str) else walk(value)

    return walk(item)
