"""How charts look: colours, letters, ticks. Colours are those of paper; the page's style has others for the dark, and
finds these by their values."""

import math
from collections.abc import Sequence

from commodel.report.charts import PALETTE
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


def config() -> dict:
    text = {"labelColor": INK, "titleColor": INK, "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal"}
    lines = {"domainColor": DIM, "tickColor": DIM, "gridColor": RULE}
    return {
        "font": FONT,
        "background": PAPER,
        "aria": False,  # the figure around it says what it shows, and a table has its numbers
        "axis": text | lines | {"labelLimit": 0, "titleLimit": 0},
        "legend": text | {"labelLimit": 0, "title": None, "orient": "bottom", "columns": 3, "symbolStrokeWidth": 2},
        "title": {"color": INK, "subtitleColor": DIM, "anchor": "start", "fontSize": 13, "subtitleFontSize": 11},
        "view": {"stroke": None},
    }


def specification(layers: list[dict], width: int, height: int, **more: object) -> dict:
    return {"$schema": SCHEMA, "width": width, "height": height, "config": config(), **more, "layer": layers}


def titled(spec: dict, title: str, note: str = "") -> dict:
    """On its own, away from the page that says these words around it."""
    return spec | {"title": {"text": title} | ({"subtitle": note} if note else {})}


def colour(number: int) -> str:
    return GREY if number < 0 else PALETTE[number % len(PALETTE)]


def shape(number: int) -> str:
    return SHAPES[max(0, number) // len(PALETTE) % len(SHAPES)]


def short(value: float) -> float | None:
    """Five digits are more than a chart can show."""
    return float(f"{value:.5g}") if math.isfinite(value) else None


def byte_ticks(sizes: Sequence[float]) -> list[int]:
    """Powers of 16, or of 4 where those would be fewer than four."""
    low, high = math.log2(min(sizes)), math.log2(max(sizes))
    step = 4 if high - low >= 12 else 2
    return [2**power for power in range(math.floor(low) // step * step, math.ceil(high) + 1, step)]


def byte_labels(ticks: Sequence[int]) -> str:
    """An expression for the labels at these ticks."""
    return "".join(f"datum.value == {tick} ? '{format_bytes(tick)}' : " for tick in ticks) + "''"


def decade_ticks(low: float, high: float) -> list[float]:
    """Powers of ten, and 2 and 5 times these where there would be fewer than four; even steps where that is little."""
    if low < high < NARROW * low:
        return even_ticks(low, high)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if last - first < 3 else (1,)
    stride = max(1, (last - first) // 8)
    ticks = [step * 10.0**power for power in range(first, last + 1, stride) for step in steps]
    return [float(f"{tick:.3g}") for tick in ticks if low * 0.999 <= tick <= high * 1.001]


def even_ticks(low: float, high: float) -> list[float]:
    """Three to seven round numbers."""
    power = 10.0 ** math.floor(math.log10(high - low))
    step = next(power * part for part in (2, 1, 0.5, 0.2) if (high - low) / (power * part) >= 3)
    return [float(f"{step * at:.12g}") for at in range(math.ceil(low / step), math.floor(high / step) + 1)]
