"""Words with a meaning of their own, and names of families: what they are, for readers who point at them.

Writes a report as one self-contained page: what can be read without a script, and the script that makes it answer
questions. Nothing comes from elsewhere."""

import re
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from commodel.files.atomic import write_text
from commodel.files.streams import give_back
from commodel.reports.charts import PALETTE
from commodel.reports.content import commands
from commodel.reports.html.pictures import (
    Picture,
    chart_picture,
    first_picture,
    grid_picture,
    matrix_html,
    tiling_picture,
)
from commodel.reports.html.tables import data, listed, shades
from commodel.reports.pictures.render import find_obstacle, library
from commodel.reports.pictures.specifications import GREY, config
from commodel.reports.shape import Answer, Chart, Front, Matrix, Report, Section, Table, Text, Tiling, origin

TERMS = {
    "held out": "measured, and not seen by the fit that is judged by it",
    "interval": "where 95 % of what is measured lies; of a measurement: where its median lies",
    "job": "points that do the same work and differ in algorithm, tree or layout only",
    "library": "the MPI library's own collective, which chooses its algorithm itself",
    "not told apart": "mean errors that differ by 1 % or less, or by less than their interval",
    "probe": "a small benchmark that values of families are fitted from",
    "regret": "how much longer a family's pick takes than the fastest measured in its job",
    "relative error [%]": "(predicted - measured) / measured",
    "skew [µs]": "how far apart ranks started",
    "μ": "max(predicted/measured, measured/predicted): by what factor a price is off; 1 is exact",
}
SPELLED = {
    "held-out": "held out",
    "intervals": "interval",
    "jobs": "job",
    "probes": "probe",
    "regret [%]": "regret",
    "library's": "library",
}
ORDINARY = {"cluster", "shares"}  # families that are called as other things are


def terms_of(report: Report) -> dict[str, str]:
    """What each word means, families of the report among them."""
    words = TERMS | {spelled: TERMS[term] for spelled, term in SPELLED.items()}
    return words | {name: text for name, text in families_of(report).items() if name not in ORDINARY}


def families_of(report: Report) -> dict[str, str]:
    """Full name and equation by the name that tables use."""
    tables = [table for section in report.sections if section.name == "Families" for table in section.tables]
    if not tables or not {"family", "title", "equation"} <= {column.key for column in tables[0].columns}:
        return {}
    columns = [tables[0].column(key) for key in ("family", "title", "equation")]
    return {name: ": ".join(filter(None, rest)) for name, *rest in zip(*columns, strict=True) if name and any(rest)}


class Defined:
    """Texts as markup in which each term is explained where it comes first."""

    def __init__(self, terms: Mapping[str, str]):
        self.terms = terms
        names = "|".join(re.escape(term) for term in sorted(terms, key=len, reverse=True))
        self.pattern = re.compile(rf"(?<![\w-])(?:{names})(?![\w-])")

    def __call__(self, text: str) -> Markup:
        explained, parts, end = set(), [], 0
        for match in self.pattern.finditer(text):
            if (meaning := self.terms[match[0]]) not in explained:
                explained.add(meaning)
                parts += [
                    escape(text[end : match.start()]),
                    Markup('<abbr title="{}">{}</abbr>').format(meaning, match[0]),
                ]
                end = match.end()
        return Markup("").join([*parts, escape(text[end:])])


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
