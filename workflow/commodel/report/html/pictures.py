"""Charts and grids as the page has them: the drawing itself, what it shows in words, its numbers as a table, and the
specification by which the script draws it again."""

import json
import re
from dataclasses import dataclass, replace
from functools import lru_cache

from markupsafe import Markup

from commodel.report.front import Grid
from commodel.report.pictures.grids import grid
from commodel.report.pictures.lines import lines, stride
from commodel.report.pictures.render import TAG, DrawingError, svg
from commodel.report.pictures.tilings import tiling
from commodel.report.shape import Chart
from commodel.report.tiling import Tiling
from commodel.report.values import show

SIZE = (400, 155)  # of charts on the first screen
MOST_NUMBERS = 250  # in a table below a chart; of more the table of all rows has them
# Of what Vega writes into a tag and a browser takes for granted.
IDLE = re.compile(
    r' (?:opacity="1"|pointer-events="none"|role="[^"]*"|aria-[a-z]+="[^"]*"|class="[^"]*"|stroke-width="1"|'
    r'font-family="[^"]*"|xmlns(?::xlink)?="[^"]*"|version="1.1"|x2="0"(?= y2)|font-weight="normal")'
)
GROUND = re.compile(r'<path class="(?:back|fore)ground"[^>]*/>')
DIGITS = re.compile(r"(\.\d)\d+")  # more than a tenth of a pixel


@dataclass(frozen=True)
class Numbers:
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]


@dataclass(frozen=True)
class Picture:
    """`place` is its id on the page, by which the script knows its specification."""

    kind: str
    place: str
    title: str
    notes: tuple[str, ...]
    alt: str
    specification: dict
    table: Numbers | None
    anchor: str = ""

    @property
    def svg(self) -> Markup:
        """Return the static drawing, empty where none can be made: the page's script and the numbers remain."""
        try:
            return Markup(inline(json.dumps(self.specification), self.place))  # noqa: S704 – Vega escapes what is text
        except DrawingError:
            return Markup("")


@lru_cache(maxsize=256)
def inline(specification: str, place: str) -> str:
    """Without what the page says already, and with ids of its own."""
    text = GROUND.sub("", svg(json.loads(specification)))

    def tidied(tag: re.Match) -> str:
        short = DIGITS.sub(r"\1", IDLE.sub("", tag[0]))
        return re.sub(r'(id="|url\(#)clip', rf"\1{place}-clip", short)

    return TAG.sub(tidied, text)


def first_picture(chart: Chart, place: str, kind: str, platform: str) -> Picture:
    """On the first screen, which says the platform's name already."""
    picture = chart_picture(chart, place, kind, *SIZE)
    notes = (" ".join(picture.notes),) if picture.notes else ()
    return replace(picture, title=chart.title.replace(f": {platform}", ""), notes=notes)


def chart_picture(chart: Chart, place: str, kind: str = "chart", wide: int = 0, high: int = 0) -> Picture:
    step = stride(chart)
    notes = [chart.note, f"One of every {step} points drawn; the workbook's chart has all." if step > 1 else ""]
    size = (wide, high) if wide else ()
    specification = lines(chart, *size, first=kind != "chart")
    names = ", ".join(series.name for series in chart.series)
    alt = f"{chart.title}: {chart.y.label} over {chart.x.label}. {names}."
    anchor = f"fit-{chart.number}" if chart.number else ""
    return Picture(kind, place, chart.title, tuple(filter(None, notes)), alt, specification, numbers(chart), anchor)


def numbers(chart: Chart) -> Numbers | None:
    if sum(len(series.x) for series in chart.series) > MOST_NUMBERS:
        return None
    ranges, words = (any(getattr(series, key) for series in chart.series) for key in ("low", "labels"))
    heads = (
        "series",
        chart.x.label,
        chart.y.label,
        *(("low", "high") if ranges else ()),
        *(("point",) if words else ()),
    )
    rows = []
    for series in chart.series:
        for at in range(len(series.x)):
            place = chart.x.names[int(series.x[at])] if chart.x.names else show("number", series.x[at])
            cells = [series.name, place, show("number", series.y[at])]
            cells += [show("number", end[at]) if end else "" for end in (series.low, series.high)] if ranges else []
            cells += [series.labels[at] if series.labels else ""] if words else []
            rows.append(tuple(cells))
    return Numbers(heads, rows)


def grid_picture(content: Grid, place: str) -> Picture:
    texts = {(cell.row, cell.column): cell.text for cell in content.cells}
    grouped, places = any(group for group, _ in content.rows), range(len(content.columns))
    heads = (*(("operation",) if grouped else ()), content.side, *content.columns)
    rows = [
        (*((group,) if grouped else ()), label, *(texts.get((at, place), "") for place in places))
        for at, (group, label) in enumerate(content.rows)
    ]
    alt = f"{content.title}: {content.side} down, {content.corner} across. {content.note}"
    return Picture(content.name, place, content.title, (content.note,), alt, grid(content), Numbers(heads, rows))


def tiling_picture(content: Tiling, place: str) -> Picture:
    rows = [
        (
            rectangle.label,
            *(show("count", length) for length in (rectangle.x, rectangle.y, rectangle.width, rectangle.height)),
        )
        for rectangle in content.rectangles
    ]
    table = Numbers(("rank", "x", "y", "width", "height"), rows)
    return Picture("chart", place, content.title, (content.note,), content.alt, tiling(content), table)
