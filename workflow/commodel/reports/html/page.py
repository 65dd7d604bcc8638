"""A report as one self-contained page (`write_html`). It can be read without JavaScript; a script
adds filters and interactive charts. Nothing is loaded from elsewhere.

A short table is markup. Of a long table only the first rows are markup; all rows are data, of which
the script draws the visible ones. A chart consists of its static drawing, a description in words,
its numbers as a table, and the specification from which the script draws it again.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from commodel.files.atomic import write_text
from commodel.files.streamed_tables import return_freed_memory
from commodel.reports.charts import PALETTE
from commodel.reports.elements import (
    COLOURS,
    MIN_LETTER_PIXELS,
    TEXT_KINDS,
    AnsweredQuestion,
    Block,
    Chart,
    Column,
    FirstScreen,
    Grid,
    Matrix,
    Report,
    Scale,
    Section,
    Table,
    Text,
    Tiling,
    describe_origin,
    format_digits,
    format_value,
    has_rank,
    is_finite_number,
    make_raw_link,
)
from commodel.reports.glossary import explain_terms
from commodel.reports.pictures.render import (
    TAG,
    DrawingError,
    bundle_scripts,
    find_obstacle,
    render_svg,
)
from commodel.reports.pictures.specifications import (
    GREY,
    choose_stride,
    make_config,
    specify_grid,
    specify_lines,
    specify_tiling,
)
from commodel.reports.report_builder import list_commands

Cell = tuple[str, str, str, str]  # text, classes, target and colour
MAX_CACHED_CELLS = 10_000  # of a column
MAX_MARKUP_ROWS = 200  # rows of a table in the markup
MAX_DATA_ROWS = 20_000  # rows of a table as data for the script: about ten megabytes
MIN_WRAPPED_LENGTH = 60  # characters: longer texts wrap over lines
RELOAD_SECONDS = 60  # after which a browser loads the page of a running campaign again
SHADES = 10  # shades to either side of the middle of a colour scale


def collect_table_data(table: Table, name: str, results: str, filtered: bool = False) -> dict:
    """Return the fields of a table for the page. `name` distinguishes the table's data from those
    of others; `results` is the folder to which files are linked. All rows of a `filtered` table are
    data, so that the script can draw them."""
    count = len(table.rows)
    columns = range(len(table.columns))
    long = count > MAX_MARKUP_ROWS
    too_many = count > MAX_DATA_ROWS
    limit_note = (
        f"First {MAX_MARKUP_ROWS:,} of {count:,} rows: the rest needs JavaScript, or the workbook "
        "(.xlsx)."
    )
    if too_many:
        limit_note = f"First {MAX_MARKUP_ROWS:,} of {count:,} rows, which are too many for a page: "
        limit_note += "a Parquet file beside the workbook has all."
    shown = [list_cells(table, column, results, MAX_MARKUP_ROWS) for column in columns]
    return {
        "kind": "table",
        "name": name,
        "title": table.title,
        "note": table.note,
        "fixed": table.fixed,
        "many_columns": len(table.columns) > 20,
        "limit_note": limit_note if long else "",
        "filtered": filtered and count > 0 and not too_many,
        "heads": [
            {
                "text": column.header,
                "number": column.kind not in TEXT_KINDS,
                "note": column.note,
                "key": column.key,
            }
            for column in table.columns
        ],
        "rows": list(zip(*shown, strict=True)),
        "data": collect_data(table, results)
        if not too_many and (long or (filtered and count))
        else "",
    }


def collect_data(table: Table, results: str) -> Markup:
    """Return the data of a table, column by column: its distinct cells, and the number of the cell
    in each row."""
    columns = (collect_column(table, column, results) for column in range(len(table.columns)))
    return Markup(f"[{','.join(map(format_json, columns))}]")  # noqa: S704 – format_json escapes


def collect_column(table: Table, column: int, results: str) -> dict[str, list]:
    numbers: dict[Cell, int] = {}
    cells = list_cells(table, column, results, len(table.rows))
    rows = [numbers.setdefault(cell, len(numbers)) for cell in cells]
    return {"cells": [trim_empty(values) for values in numbers], "rows": rows}


def format_json(value: object) -> Markup:
    """Return a value as JSON for a script element, in which a `<` could close the element, or open
    a comment."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 – no markup is left


def trim_empty(values: tuple[str, ...]) -> list[str]:
    """Return the values without the empty ones at the end; the first one stays."""
    trimmed = list(values)
    while len(trimmed) > 1 and not trimmed[-1]:
        trimmed.pop()
    return trimmed


def list_cells(table: Table, index: int, results: str, count: int) -> list[Cell]:
    """Return the first cells of a column."""
    # most values of a table repeat
    make = lru_cache(MAX_CACHED_CELLS, typed=True)(
        partial(make_cell, table.columns[index], results)
    )
    return [
        make(value, (at, index) in table.marks, table.backgrounds.get((at, index), ""))
        for at, value in enumerate(table.values(index, end=count))
    ]


def make_cell(
    column: Column, results: str, value: object, is_marked: bool, background: str
) -> Cell:
    """Return the text, classes, target and colour of a cell."""
    text = format_value(column.kind, value)
    target = ""
    if column.kind == "file":
        target = make_raw_link(results, text)
    elif column.kind == "figure" and text:
        target = f"#fit-{text}"
    names = choose_css_classes(column, value, text, is_marked)
    return text, names, target, background


def choose_css_classes(column: Column, value: object, text: str, marked: bool) -> str:
    names = [] if column.kind in TEXT_KINDS else ["n"]
    if len(text) > MIN_WRAPPED_LENGTH:
        names.append("long")
    if marked:
        names.append("best")
    elif column.scale is not None and has_rank(value):
        names += choose_shade_class(column.scale, value)
    if text in ("no", "n/a"):
        names.append("dim")
    elif text == "simulated":
        names.append("sim")
    return " ".join(names)


def choose_shade_class(scale: Scale, value: float) -> list[str]:
    """Return the class of a value between the anchors of a scale: s-10 is bad, s0 the middle, s10
    good."""
    if scale.only_bad and value == scale.good:
        return []
    if math.isinf(value):  # the last shade on the side of its sign
        return [f"s{SHADES if (value > 0) == (scale.good > scale.bad) else -SHADES}"]
    anchor = scale.good if (value - scale.middle) * (scale.good - scale.middle) > 0 else scale.bad
    share = min(1.0, (value - scale.middle) / (anchor - scale.middle))
    return [
        f"s{round(share * SHADES) * (1 if anchor == scale.good and not scale.only_bad else -1)}"
    ]


def format_shade_rules() -> str:
    rules = []
    for step in range(-SHADES, SHADES + 1):
        end = COLOURS["good" if step > 0 else "bad"]
        rules.append(
            f"td.s{step}{{background:{mix_colours(COLOURS['middle'], end, abs(step) / SHADES)}}}"
        )
    return "".join(rules).replace("td.s-", "td.s\\-")


def mix_colours(one: str, other: str, share: float) -> str:
    pairs = ((int(one[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(low + (high - low) * share):02X}" for low, high in pairs)


FIRST_SCREEN_CHART_PX = (580, 155)  # width with axis and legend, height of the plot
MAX_NUMBERS = 250  # points of a chart with a table of numbers below it
# Attributes that Vega writes although they have no effect on the page.
REDUNDANT_ATTRIBUTES = re.compile(
    r' (?:opacity="1"|pointer-events="none"|role="[^"]*"|aria-[a-z]+="[^"]*"|class="[^"]*"|stroke-width="1"|'
    r'font-family="[^"]*"|xmlns(?::xlink)?="[^"]*"|version="1.1"|x2="0"(?= y2)|font-weight="normal")'
)
BACKGROUND_PATH = re.compile(r'<path class="(?:back|fore)ground"[^>]*/>')
EXCESS_DIGITS = re.compile(r"(\.\d)\d+")  # finer than a tenth of a pixel


@dataclass(frozen=True)
class NumberTable:
    """The numbers of a chart, as texts below it."""

    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]


@dataclass(frozen=True)
class Picture:
    """A chart with its drawing, description, numbers and specification. The script finds the
    specification by `element_id`, its id on the page."""

    kind: str
    element_id: str
    title: str
    notes: tuple[str, ...]
    alt: str
    specification: dict
    table: NumberTable | None
    anchor: str = ""

    @property
    def svg(self) -> Markup:
        """Return the static drawing; empty if none can be made. The page's script and the numbers
        remain."""
        try:
            return Markup(draw_inline(json.dumps(self.specification), self.element_id))  # noqa: S704 – Vega escapes texts
        except DrawingError:
            return Markup("")


@lru_cache(maxsize=256)
def draw_inline(specification: str, element_id: str) -> str:
    """Return the static drawing for the page: without the background and the default attributes,
    which the page sets itself, and with unique ids."""
    text = BACKGROUND_PATH.sub("", render_svg(json.loads(specification)))

    def clean_tag(tag: re.Match) -> str:
        short = EXCESS_DIGITS.sub(r"\1", REDUNDANT_ATTRIBUTES.sub("", tag[0]))
        return re.sub(r'(id="|url\(#)clip', rf"\1{element_id}-clip", short)

    return TAG.sub(clean_tag, text)


def make_first_picture(chart: Chart, element_id: str, kind: str, platform: str) -> Picture:
    """Return the picture of a chart on the first screen. Its title omits the platform's name, which
    is the heading of the screen."""
    picture = make_chart_picture(chart, element_id, kind, *FIRST_SCREEN_CHART_PX)
    notes = (" ".join(picture.notes),) if picture.notes else ()
    return replace(picture, title=chart.title.replace(f": {platform}", ""), notes=notes)


def make_chart_picture(
    chart: Chart, element_id: str, kind: str = "chart", width: int = 0, height: int = 0
) -> Picture:
    step = choose_stride(chart)
    notes = [
        chart.note,
        f"One of every {step} points drawn; the workbook's chart has all." if step > 1 else "",
    ]
    is_first = kind != "chart"
    specification = (
        specify_lines(chart, width, height, first=is_first)
        if width
        else specify_lines(chart, first=is_first)
    )
    names = ", ".join(series.name for series in chart.series)
    alt = f"{chart.title}: {chart.y.label} over {chart.x.label}. {names}."
    anchor = f"fit-{chart.number}" if chart.number else ""
    return Picture(
        kind=kind,
        element_id=element_id,
        title=chart.title,
        notes=tuple(filter(None, notes)),
        alt=alt,
        specification=specification,
        table=tabulate_numbers(chart),
        anchor=anchor,
    )


def tabulate_numbers(chart: Chart) -> NumberTable | None:
    if sum(len(series.x) for series in chart.series) > MAX_NUMBERS:
        return None
    has_ranges = any(series.low for series in chart.series)
    has_labels = any(series.labels for series in chart.series)
    heads = (
        "series",
        chart.x.label,
        chart.y.label,
        *(("low", "high") if has_ranges else ()),
        *(("point",) if has_labels else ()),
    )
    rows = []
    for series in chart.series:
        for at in range(len(series.x)):
            category = (
                chart.x.names[int(series.x[at])]
                if chart.x.names
                else format_value("number", series.x[at])
            )
            cells = [series.name, category, format_value("number", series.y[at])]
            cells += (
                [
                    format_value("number", end[at]) if end else ""
                    for end in (series.low, series.high)
                ]
                if has_ranges
                else []
            )
            cells += [series.labels[at] if series.labels else ""] if has_labels else []
            rows.append(tuple(cells))
    return NumberTable(heads, rows)


def make_grid_picture(grid: Grid, element_id: str) -> Picture:
    texts = {(cell.row, cell.column): cell.text for cell in grid.cells}
    grouped = any(group for group, _ in grid.rows)
    heads = (*(("operation",) if grouped else ()), grid.side, *grid.columns)
    rows = []
    for at, (group, label) in enumerate(grid.rows):
        cells = [texts.get((at, column), "") for column in range(len(grid.columns))]
        rows.append((group, label, *cells) if grouped else (label, *cells))
    alt = f"{grid.title}: {grid.side} down, {grid.corner} across. {grid.note}"
    return Picture(
        kind=grid.name,
        element_id=element_id,
        title=grid.title,
        notes=(grid.note,),
        alt=alt,
        specification=specify_grid(grid),
        table=NumberTable(heads, rows),
    )


def make_tiling_picture(tiling: Tiling, element_id: str) -> Picture:
    rows = []
    for rectangle in tiling.rectangles:
        lengths = (rectangle.x, rectangle.y, rectangle.width, rectangle.height)
        texts = [format_value("count", length) for length in lengths]
        rows.append((rectangle.label, *texts))
    table = NumberTable(("rank", "x", "y", "width", "height"), rows)
    return Picture(
        kind="chart",
        element_id=element_id,
        title=tiling.title,
        notes=(tiling.note,),
        alt=tiling.alt,
        specification=specify_tiling(tiling),
        table=table,
    )


# Lengths in pixels.
MATRIX_SIDE = 480  # without labels
MIN_CELL_SIDE, MAX_CELL_SIDE = 2.0, 44.0
MAX_NUMBER_SIZE = 11.0  # font size of the numbers in cells
NUMBER_WIDTH_RATIO = 0.7  # width of a digit, with its share of the margin, over the font size
MIN_LABELLED_CELL_SIDE = 11.0  # rows and columns of smaller cells have no label
LETTER_WIDTH = 6.4  # of a label


def format_matrix(matrix: Matrix) -> str:
    count = len(matrix.labels)
    side = min(max(MATRIX_SIDE / max(count, 1), MIN_CELL_SIDE), MAX_CELL_SIDE)
    margin = (
        14 + LETTER_WIDTH * max(map(len, matrix.labels), default=0)
        if side >= MIN_LABELLED_CELL_SIDE
        else 14
    )
    size = margin + side * count
    number_size = _choose_number_size(matrix, side)
    parts = [
        _format_block(matrix, row, column, margin, side)
        for row, column in _list_finite_cells(matrix.expected)
    ]
    parts += [
        _format_cell(matrix, row, column, margin, side, number_size)
        for row, column in _list_finite_cells(matrix.values)
    ]
    if side >= MIN_LABELLED_CELL_SIDE:
        parts += [_format_labels(matrix, index, margin, side) for index in range(count)]
    for border in matrix.borders:
        at = margin + side * border
        parts.append(
            f'<path class="border" d="M{margin:.1f} {at:.1f}H{size:.1f}M{at:.1f} {margin:.1f}V{size:.1f}"/>'
        )
    extent = f'width="{side * count:.1f}" height="{side * count:.1f}"'
    background = f'<rect class="background" x="{margin:.1f}" y="{margin:.1f}" {extent}/>'
    note = f"<small>{escape(matrix.note)}</small>" if matrix.note else ""
    return (
        f'<figure class="matrix"><figcaption>{escape(matrix.title)}{note}</figcaption>'
        f'<svg role="img" aria-label="{escape(matrix.alt)}" viewBox="0 0 {size + 2:.0f} {size + 2:.0f}" '
        f'style="max-width:{size + 2:.0f}px">{background}{"".join(parts)}</svg>{_format_legend(matrix)}</figure>\n'
    )


def _list_finite_cells(rows: Sequence[Sequence[object]]) -> Iterator[tuple[int, int]]:
    """Yield the row and column of each finite number."""
    for row, values in enumerate(rows):
        for column, value in enumerate(values):
            if is_finite_number(value):
                yield row, column


def _format_block(matrix: Matrix, row: int, column: int, margin: float, side: float) -> str:
    """Return the rectangle of two groups, coloured by their expected value."""
    left_edge, right = matrix.blocks[column]
    top, bottom = matrix.blocks[row]
    box = f'width="{side * (right - left_edge):.2f}" height="{side * (bottom - top):.2f}"'
    colour = matrix.colour(matrix.expected[row][column], pale=True)
    return (
        f'<rect x="{margin + side * left_edge:.1f}" y="{margin + side * top:.1f}" {box} '
        f'fill="{colour}"/>'
    )


def _choose_number_size(matrix: Matrix, side: float) -> float:
    """Return the font size at which the longest number fits into a cell; 0 if it could not be read.
    The cells then have colours only, and their numbers as tooltips."""
    finite = (value for row in matrix.values for value in row if is_finite_number(value))
    longest = max((len(format_digits(value)) for value in finite), default=1)
    size = min(MAX_NUMBER_SIZE, side / (NUMBER_WIDTH_RATIO * longest))
    return size if size >= MIN_LETTER_PIXELS else 0.0


def _format_cell(
    matrix: Matrix, row: int, column: int, margin: float, side: float, number_size: float
) -> str:
    value = matrix.values[row][column]
    x = margin + side * column
    y = margin + side * row
    hover = f"{matrix.labels[row]} – {matrix.labels[column]}: {format_digits(value)} {matrix.unit}"
    text = ""
    if number_size:
        text = (
            f'<text x="{x + side / 2:.1f}" y="{y + side / 2 + number_size / 3:.1f}" '
            f'style="font-size:{number_size:.1f}px">{format_digits(value)}</text>'
        )
    box = (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{side:.2f}" height="{side:.2f}" '
        f'fill="{matrix.colour(value)}">'
    )
    return f"<g>{box}<title>{escape(hover)}</title></rect>{text}</g>"


def _format_labels(matrix: Matrix, index: int, margin: float, side: float) -> str:
    middle = margin + side * (index + 0.5)
    css_class = ' class="marked"' if index in matrix.marks else ""
    name = escape(matrix.labels[index])
    return (
        f'<text{css_class} x="{margin - 4:.1f}" y="{middle + 3.5:.1f}" text-anchor="end">{name}</text>'
        f'<text{css_class} transform="translate({middle + 3.5:.1f} {margin - 4:.1f}) rotate(-90)">{name}</text>'
    )


def _format_legend(matrix: Matrix) -> str:
    low, high = matrix.value_range
    steps = [low * (high / low) ** (step / 8) for step in range(9)]
    colours = ",".join(matrix.colour(value) for value in steps)
    return (
        f'<div class="scale"><span>{format_digits(low)}</span>'
        f'<i style="background:linear-gradient(90deg,{colours})"></i>'
        f"<span>{format_digits(high)} {escape(matrix.unit)}</span></div>"
    )


# their names are also ordinary words, which need no tooltip
UNEXPLAINED_MODELS = {"cluster", "shares"}


def list_terms(report: Report) -> dict[str, str]:
    """Return the meaning of each term, including the models of the report."""
    return explain_terms() | {
        name: text
        for name, text in list_model_titles(report).items()
        if name not in UNEXPLAINED_MODELS
    }


def list_model_titles(report: Report) -> dict[str, str]:
    """Return full name and equation of each model, by its short name."""
    tables = [
        table for section in report.sections if section.name == "Models" for table in section.tables
    ]
    if not tables or not {"model", "title", "equation"} <= {
        column.key for column in tables[0].columns
    }:
        return {}
    columns = [tables[0].column(key) for key in ("model", "title", "equation")]
    return {
        name: ": ".join(filter(None, texts))
        for name, *texts in zip(*columns, strict=True)
        if name and any(texts)
    }


class TermMarkup:
    """Markup of texts, with an explanation of each term at its first use."""

    def __init__(self, terms: Mapping[str, str]):
        self.terms = terms
        names = "|".join(re.escape(term) for term in sorted(terms, key=len, reverse=True))
        self.pattern = re.compile(rf"(?<![\w-])(?:{names})(?![\w-])")

    def __call__(self, text: str) -> Markup:
        explained = set()
        parts = []
        end = 0
        for match in self.pattern.finditer(text):
            meaning = self.terms[match[0]]
            if meaning not in explained:
                explained.add(meaning)
                parts += [
                    escape(text[end : match.start()]),
                    Markup('<abbr title="{}">{}</abbr>').format(meaning, match[0]),
                ]
                end = match.end()
        return Markup("").join([*parts, escape(text[end:])])


HERE = Path(__file__).parent
STYLE, *SCRIPTS = (
    (HERE / f"page.{name}").read_text(encoding="utf-8")
    for name in ("css", "js", "charts.js", "filters.js")
)
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "font-src data:"
)
PRINTED_SECTIONS = ("Network", "Summary", "Standings", "What to use")  # the others only on request
FILTERED_SECTION = "Comparison"  # the filters of the first screen apply to its table
LEADING_SECTIONS = ("Network", FILTERED_SECTION)  # before all others


def write_html(report: Report, path: str | Path) -> None:
    return_freed_memory()  # for the process that draws, which needs 100 MB
    write_text(Path(path), format_page(report))


def format_page(report: Report) -> str:
    terms = list_terms(report)
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=False
    )
    environment.filters["defined"] = TermMarkup(terms)
    environment.globals["terms"] = terms
    screens = [
        collect_screen(screen, number) | {"commands": list_commands(report, screen)}
        for number, screen in enumerate(report.screens, 1)
    ]
    screen_charts = list_screen_charts(report)
    element_ids = {id(chart): f"chart-{number}" for number, chart in enumerate(report.charts, 1)}
    element_ids |= {id(table): f"rows-{number}" for number, table in enumerate(report.tables, 1)}
    element_ids |= {
        id(tiling): f"tiling-{number}" for number, tiling in enumerate(report.tilings, 1)
    }
    sections = [
        collect_section(section, element_ids, screen_charts, report.results)
        for section in report.sections
    ]
    ranks = {name: rank for rank, name in enumerate(LEADING_SECTIONS)}
    sections.sort(key=lambda section: ranks.get(section["name"], len(ranks)))
    pictures: list[Picture] = []
    for screen in screens:
        drawn = [screen[key] for key in ("fastest", "errors", "scatter", "times")]
        pictures += filter(None, drawn)
    for section in sections:
        for group in section["groups"]:
            pictures += [block for block in group["blocks"] if isinstance(block, Picture)]
    return environment.get_template("page.html").render(
        title=report.title,
        origin=describe_origin(report),
        banner=report.banner,
        incomplete=report.incomplete,
        reload_seconds=RELOAD_SECONDS,
        policy=CONTENT_SECURITY_POLICY,
        style=Markup(STYLE + format_shade_rules()),  # noqa: S704 – from the package
        script=Markup("".join(SCRIPTS)),  # noqa: S704 – from the package
        library=Markup(bundle_scripts()) if pictures else "",  # noqa: S704 – Vega's code
        drawing_obstacle=find_obstacle() if pictures else "",
        specifications=format_json(
            {picture.element_id: picture.specification | {"config": None} for picture in pictures}
        ),
        settings=format_json(
            {
                "config": make_config(),
                "colours": PALETTE,
                "grey": GREY,
                "families": list_model_titles(report),
            }
        ),
        screens=screens,
        sections=sections,
    )


def list_screen_charts(report: Report) -> set[str]:
    """Return the names of the charts of the first screens, which the sections omit."""
    return {
        chart.name for screen in report.screens for chart in (screen.scatter, screen.times) if chart
    }


def list_specifications(report: Report) -> Iterator[dict]:
    """Yield the specification of each picture of the page."""
    for number, screen in enumerate(report.screens, 1):
        for picture in collect_screen_pictures(screen, f"front-{number}").values():
            if picture:
                yield picture.specification
    screen_charts = list_screen_charts(report)
    for chart in report.charts:
        if chart.name not in screen_charts:
            yield make_chart_picture(chart, "").specification
    for tiling in report.tilings:
        yield make_tiling_picture(tiling, "").specification


def collect_screen(screen: FirstScreen, number: int) -> dict:
    element_id = f"front-{number}"
    fields = {
        key: getattr(screen, key)
        for key in ("platform", "simulated", "origin", "tiles", "anomalies")
    }
    return fields | collect_screen_pictures(screen, element_id) | {"anchor": element_id}


def collect_screen_pictures(screen: FirstScreen, element_id: str) -> dict[str, Picture | None]:
    """Return the pictures of a first screen by name; None without data."""
    charts = {"scatter": screen.scatter, "times": screen.times}
    pictures = {
        name: make_first_picture(chart, f"{element_id}-{name}", name, screen.platform)
        if chart
        else None
        for name, chart in charts.items()
    }
    grids = {
        grid.name: make_grid_picture(grid, f"{element_id}-{grid.name}") if grid.cells else None
        for grid in (screen.fastest, screen.errors)
    }
    return pictures | grids


def collect_section(
    section: Section, element_ids: dict[int, str], screen_charts: set[str], results: str
) -> dict:
    """Return the fields of a section for the page, without the charts of the first screens."""
    blocks = [
        block
        for block in section.blocks
        if not (isinstance(block, Chart) and block.name in screen_charts)
    ]
    groups = []
    for drawn, same_kind in groupby(
        blocks, key=lambda block: isinstance(block, Chart | Matrix | Tiling)
    ):
        collected = [
            collect_block(block, element_ids, results, section.name) for block in same_kind
        ]
        groups.append({"drawn": drawn, "blocks": collected})
    kind = "printed-always" if section.name in PRINTED_SECTIONS else "printed-on-request"
    return {
        "name": section.name,
        "anchor": make_anchor(section.name),
        "note": section.note,
        "groups": groups,
        "kind": kind,
    }


def collect_block(block: Block, element_ids: dict[int, str], results: str, section: str) -> object:
    match block:
        case Chart():
            return make_chart_picture(block, element_ids[id(block)])
        case Tiling():
            return make_tiling_picture(block, element_ids[id(block)])
        case Matrix():
            return {"kind": "matrix", "markup": Markup(format_matrix(block))}  # noqa: S704 – format_matrix escapes
        case AnsweredQuestion():
            return {"kind": "answer", "question": block.question, "sentences": block.sentences}
        case Table():
            return collect_table_data(
                block, element_ids[id(block)], results, filtered=section == FILTERED_SECTION
            )
        case Text():
            return {"kind": "text", "title": block.title, "lines": block.lines}


def make_anchor(name: str) -> str:
    return "".join(char if char.isalnum() else "-" for char in name.lower())
