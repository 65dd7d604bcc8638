"""Charts and grids as the page has them: the drawing itself, what it shows in words, its numbers as a table, and the
specification by which the script draws it again.

A matrix of the page: a drawing of coloured cells, with its numbers in them where there is room, else on hovering."""

import json
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from html import escape

from markupsafe import Markup

from commodel.reports.pictures.grids import grid, tiling
from commodel.reports.pictures.render import TAG, DrawingError, svg
from commodel.reports.pictures.specifications import lines, stride
from commodel.reports.shape import Chart, Grid, Matrix, Tiling, digits
from commodel.reports.values import finite, show

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


SIDE = 480  # of the drawing without labels
LEAST_SIDE, MOST_SIDE = 2.0, 44.0  # of a cell
ROOMY = 22.0  # a cell with a number in it
LABELLED_WIDTH = 11.0  # a cell that a label fits beside
LETTER = 6.4  # of a label


def matrix_html(matrix: Matrix) -> str:
    count = len(matrix.labels)
    side = min(max(SIDE / max(count, 1), LEAST_SIDE), MOST_SIDE)
    margin = 14 + LETTER * max(map(len, matrix.labels), default=0) if side >= LABELLED_WIDTH else 14
    size = margin + side * count
    parts = [
        _block(matrix, row, place, margin, side)
        for row, values in enumerate(matrix.expected)
        for place, value in enumerate(values)
        if finite(value)
    ]
    parts += [
        _cell(matrix, row, place, margin, side)
        for row, values in enumerate(matrix.values)
        for place, value in enumerate(values)
        if finite(value)
    ]
    if side >= LABELLED_WIDTH:
        parts += [_labels(matrix, place, margin, side) for place in range(count)]
    for border in matrix.borders:
        at = margin + side * border
        parts.append(f'<path class="border" d="M{margin:.1f} {at:.1f}H{size:.1f}M{at:.1f} {margin:.1f}V{size:.1f}"/>')
    whole = f'width="{side * count:.1f}" height="{side * count:.1f}"'
    ground = f'<rect class="ground" x="{margin:.1f}" y="{margin:.1f}" {whole}/>'
    note = f"<small>{escape(matrix.note)}</small>" if matrix.note else ""
    return (
        f'<figure class="matrix"><figcaption>{escape(matrix.title)}{note}</figcaption>'
        f'<svg role="img" aria-label="{escape(matrix.alt)}" viewBox="0 0 {size + 2:.0f} {size + 2:.0f}" '
        f'style="max-width:{size + 2:.0f}px">{ground}{"".join(parts)}</svg>{_legend(matrix)}</figure>\n'
    )


def _block(matrix: Matrix, row: int, place: int, margin: float, side: float) -> str:
    """What is between two groups."""
    (left, right), (top, bottom) = matrix.blocks[place], matrix.blocks[row]
    box = f'width="{side * (right - left):.2f}" height="{side * (bottom - top):.2f}"'
    colour = matrix.colour(matrix.expected[row][place], pale=True)
    return f'<rect x="{margin + side * left:.1f}" y="{margin + side * top:.1f}" {box} fill="{colour}"/>'


def _cell(matrix: Matrix, row: int, place: int, margin: float, side: float) -> str:
    value = matrix.values[row][place]
    x, y = margin + side * place, margin + side * row
    hover = f"{matrix.labels[row]} – {matrix.labels[place]}: {digits(value)} {matrix.unit}"
    text = ""
    if side >= ROOMY:
        small = min(11.0, 1.6 * side / max(len(digits(value)), 1))
        text = (
            f'<text x="{x + side / 2:.1f}" y="{y + side / 2 + small / 3:.1f}" font-size="{small:.1f}">'
            f"{digits(value)}</text>"
        )
    box = f'<rect x="{x:.1f}" y="{y:.1f}" width="{side:.2f}" height="{side:.2f}" fill="{matrix.colour(value)}">'
    return f"<g>{box}<title>{escape(hover)}</title></rect>{text}</g>"


def _labels(matrix: Matrix, place: int, margin: float, side: float) -> str:
    middle, look = margin + side * (place + 0.5), ' class="odd"' if place in matrix.marks else ""
    name = escape(matrix.labels[place])
    return (
        f'<text{look} x="{margin - 4:.1f}" y="{middle + 3.5:.1f}" text-anchor="end">{name}</text>'
        f'<text{look} transform="translate({middle + 3.5:.1f} {margin - 4:.1f}) rotate(-90)">{name}</text>'
    )


def _legend(matrix: Matrix) -> str:
    low, high = matrix.ends
    steps = [low * (high / low) ** (step / 8) for step in range(9)]
    colours = ",".join(matrix.colour(value) for value in steps)
    return (
        f'<div class="scale"><span>{digits(low)}</span><i style="background:linear-gradient(90deg,{colours})"></i>'
        f"<span>{digits(high)} {escape(matrix.unit)}</span></div>"
    )
