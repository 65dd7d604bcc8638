"""Writes a report as one self-contained page: what can be read without a script, and the script that makes it answer
questions. Nothing comes from elsewhere."""

from itertools import groupby
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from commodel.files.atomic import write_text
from commodel.files.memory import give_back
from commodel.report.asking import commands
from commodel.report.charts import PALETTE
from commodel.report.front import Front
from commodel.report.html.matrix import matrix_html
from commodel.report.html.pictures import Picture, chart_picture, first_picture, grid_picture, tiling_picture
from commodel.report.html.tables import data, listed, shades
from commodel.report.html.terms import Defined, families_of, terms_of
from commodel.report.matrix import Matrix
from commodel.report.pictures.look import GREY, config
from commodel.report.pictures.render import find_obstacle, library
from commodel.report.shape import Answer, Chart, Report, Section, Table, Text, origin
from commodel.report.tiling import Tiling

HERE = Path(__file__).parent
STYLE, *SCRIPTS = (
    (HERE / f"page.{name}").read_text(encoding="utf-8") for name in ("css", "js", "charts.js", "explorer.js")
)
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; font-src data:"
FIRST = ("Network", "Summary", "Standings", "What to use", "Comparison")  # are printed unless one asks for all
EXPLORED = "Comparison"  # the section whose table the first screen filters
OPENING = ("Network", EXPLORED)  # sections that come before all others: a network of several levels is seen first


def write_html(report: Report, path: str | Path) -> None:
    give_back()  # who draws takes a hundred megabytes
    write_text(Path(path), page_html(report))


def page_html(report: Report) -> str:
    terms = terms_of(report)
    page = Environment(loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    page.filters["defined"] = Defined(terms)
    page.globals["terms"] = terms
    fronts = [screen(front, place) | {"asked": commands(report, front)} for place, front in enumerate(report.fronts, 1)]
    shown = {chart.name for front in report.fronts for chart in (front.scatter, front.times) if chart}
    places = {id(chart): f"chart-{at}" for at, chart in enumerate(report.charts, 1)}
    places |= {id(table): f"rows-{at}" for at, table in enumerate(report.tables, 1)}
    places |= {id(tiling): f"tiling-{at}" for at, tiling in enumerate(report.tilings, 1)}
    sections = [chapter(section, places, shown, report.results) for section in report.sections]
    sections.sort(key=lambda section: OPENING.index(section["name"]) if section["name"] in OPENING else len(OPENING))
    pictures = [screen[key] for screen in fronts for key in ("use", "trust", "scatter", "times") if screen[key]]
    pictures += [
        block
        for section in sections
        for group in section["groups"]
        for block in group["blocks"]
        if isinstance(block, Picture)
    ]
    return page.get_template("page.html").render(
        title=report.title,
        origin=origin(report),
        banner=report.banner,
        policy=POLICY,
        style=Markup(STYLE + shades()),  # noqa: S704 – ours
        script=Markup("".join(SCRIPTS)),  # noqa: S704 – ours
        library=Markup(library()) if pictures else "",  # noqa: S704 – Vega's
        undrawn=find_obstacle() if pictures else "",
        specifications=data({picture.place: picture.specification | {"config": None} for picture in pictures}),
        look=data({"config": config(), "colours": PALETTE, "grey": GREY, "families": families_of(report)}),
        fronts=fronts,
        sections=sections,
    )


def screen(front: Front, number: int) -> dict:
    place = f"front-{number}"
    charts = {"scatter": front.scatter, "times": front.times}
    pictures = {
        name: first_picture(chart, f"{place}-{name}", name, front.platform) if chart else None
        for name, chart in charts.items()
    }
    grids = {
        content.name: grid_picture(content, f"{place}-{content.name}") if content.cells else None
        for content in (front.use, front.trust)
    }
    about = {key: getattr(front, key) for key in ("platform", "simulated", "origin", "tiles", "odd")}
    return about | pictures | grids | {"anchor": place}


def chapter(section: Section, places: dict[int, str], shown: set[str], results: str) -> dict:
    """`shown` are charts that stand on a first screen."""
    blocks = [block for block in section.blocks if not (isinstance(block, Chart) and block.name in shown)]
    groups = [
        {"drawn": drawn, "blocks": [content(block, places, results, section.name) for block in some]}
        for drawn, some in groupby(blocks, key=lambda block: isinstance(block, Chart | Matrix | Tiling))
    ]
    kind = "first" if section.name in FIRST else "behind"
    return {"name": section.name, "anchor": anchor(section.name), "note": section.note, "groups": groups, "kind": kind}


def content(block: object, places: dict[int, str], results: str, section: str) -> object:
    match block:
        case Chart():
            return chart_picture(block, places[id(block)])
        case Tiling():
            return tiling_picture(block, places[id(block)])
        case Matrix():
            return {"kind": "matrix", "markup": Markup(matrix_html(block))}  # noqa: S704 – escaped where it is made
        case Answer():
            return {"kind": "answer", "question": block.question, "sentences": block.sentences}
        case Table():
            return listed(block, places[id(block)], results, explored=section == EXPLORED)
        case Text():
            return {"kind": "text", "title": block.title, "lines": block.lines}


def anchor(name: str) -> str:
    return "".join(char if char.isalnum() else "-" for char in name.lower())
