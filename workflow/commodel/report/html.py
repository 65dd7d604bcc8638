"""Writes a report as one self-contained page: plain tables, charts by JavaScript, nothing from elsewhere."""

import math
from html import escape
from pathlib import Path

from commodel.report import html_charts
from commodel.report.page import SCRIPT, STYLE
from commodel.report.shape import COLOURS, Answer, Chart, Report, Scale, Section, Table, Text, comparable, origin, show
from commodel.tables import write_text

MOST_ROWS = 1000  # of one table on the page; the workbook has them all
LONG = 60  # characters of a text that is broken over lines
STEPS = 10  # shades to either side of the middle of a colour scale
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; font-src data:"


def write_html(report: Report, path: str | Path) -> None:
    write_text(Path(path), page(report))


def page(report: Report) -> str:
    places = {id(chart): f"chart-{place}" for place, chart in enumerate(report.charts, 1)}
    links = "".join(f'<a href="#{anchor(section.name)}">{escape(section.name)}</a>' for section in report.sections)
    body = "".join(section_html(section, places) for section in report.sections)
    banner = f'<p class="simulated">{escape(report.banner)}</p>' if report.banner else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(report.title)}</title>\n<style>{STYLE}{shades()}</style>\n</head>\n<body>\n"
        f"<header><h1>{escape(report.title)}</h1>"
        f'<p class="experiment">{escape(origin(report))}'
        f"</p>{banner}"
        f"<nav>{links}</nav></header>\n<main>\n{body}</main>\n"
        f"<script>{SCRIPT}</script>\n{html_charts.scripts(report.charts, list(places.values()))}</body>\n</html>\n"
    )


def section_html(section: Section, places: dict[int, str]) -> str:
    parts = [f'<section id="{anchor(section.name)}">\n<h2>{escape(section.name)}</h2>\n']
    if section.note:
        parts.append(f'<p class="note">{escape(section.note)}</p>\n')
    drawing = False
    for block in section.blocks:
        if isinstance(block, Chart) != drawing:
            drawing = not drawing
            parts.append('<div class="charts">\n' if drawing else "</div>\n")
        match block:
            case Chart():
                parts.append(chart_html(block, places[id(block)]))
            case Answer():
                parts.append(answer_html(block))
            case Table():
                parts.append(table_html(block))
            case Text():
                parts.append(text_html(block))
    return "".join(parts) + ("</div>\n" if drawing else "") + "</section>\n"


def answer_html(answer: Answer) -> str:
    lines = "".join(f"<li>{escape(sentence)}</li>\n" for sentence in answer.sentences)
    return f'<h3>{escape(answer.question)}</h3>\n<ul class="answer">\n{lines}</ul>\n'


def text_html(text: Text) -> str:
    return f"<h3>{escape(text.title)}</h3>\n<pre>{escape(chr(10).join(text.lines))}</pre>\n"


def chart_html(chart: Chart, place: str) -> str:
    step = html_charts.stride(chart)
    notes = [chart.note, f"One of every {step} points drawn; the workbook's chart has all." if step > 1 else ""]
    note = "".join(f"<small>{escape(line)}</small>" for line in notes if line)
    return (
        f"<figure{place_of(chart.number)}><figcaption>{escape(chart.title)}{note}</figcaption>"
        f'<div id="{place}" class="plot">'
        "<noscript>The chart needs JavaScript; its numbers are in the tables.</noscript></div></figure>\n"
    )


def place_of(number: int) -> str:
    return f' id="figure-{number}"' if number else ""


def table_html(table: Table) -> str:
    parts = [f"<h3>{escape(table.title)}</h3>\n"]
    if table.note:
        parts.append(f'<p class="note">{escape(table.note)}</p>\n')
    if not table.rows:
        return "".join(parts) + '<p class="note">none</p>\n'
    if len(table.rows) > MOST_ROWS:
        capped = f"First {MOST_ROWS:,} of {len(table.rows):,} rows; the workbook (.xlsx) has all of them."
        parts.append(f'<p class="capped">{capped}</p>\n')
    broad = " broad" if len(table.columns) > 20 else ""
    parts.append(f'<div class="wide{broad}"><table data-fixed="{table.fixed}">\n<thead><tr>')
    for column in table.columns:
        hint = f' title="{escape(column.note)}"' if column.note else ""
        number = "" if column.kind in ("text", "flag") else ' class="n"'
        parts.append(f"<th{number}{hint}>{escape(column.header)}</th>")
    parts.append("</tr></thead>\n<tbody>\n")
    for at, row in enumerate(table.rows[:MOST_ROWS]):
        parts.append("<tr>")
        for place, (column, value) in enumerate(zip(table.columns, row, strict=True)):
            parts.append(cell(column, value, (at, place) in table.marks, table.grounds.get((at, place), "")))
        parts.append("</tr>\n")
    parts.append("</tbody>\n</table></div>\n")
    return "".join(parts)


def cell(column, value: object, marked: bool, ground: str = "") -> str:
    text = show(column.kind, value)
    names = [] if column.kind in ("text", "flag") else ["n"]
    if len(text) > LONG:
        names.append("long")
    if marked:
        names.append("best")
    elif column.scale is not None and comparable(value):
        names += shade(column.scale, value)
    if text in ("no", "n/a"):
        names.append("dim")
    elif text == "simulated":
        names.append("sim")
    kind = f' class="{" ".join(names)}"' if names else ""
    kind += f' style="background:{ground}"' if ground else ""
    if column.kind == "figure" and text:
        return f'<td{kind}><a href="#figure-{text}">{text}</a></td>'
    return f"<td{kind}>{escape(text)}</td>"


def shade(scale: Scale, value: float) -> list[str]:
    """Class of a value between the anchors of a scale: s-10 is bad, s0 the middle, s10 good."""
    if scale.only_bad and value == scale.good:
        return []
    if math.isinf(value):  # to the end that is on its side
        return [f"s{STEPS if (value > 0) == (scale.good > scale.bad) else -STEPS}"]
    toward = scale.good if (value - scale.middle) * (scale.good - scale.middle) > 0 else scale.bad
    share = min(1.0, (value - scale.middle) / (toward - scale.middle))
    return [f"s{round(share * STEPS) * (1 if toward == scale.good and not scale.only_bad else -1)}"]


def shades() -> str:
    rules = []
    for step in range(-STEPS, STEPS + 1):
        end = COLOURS["good" if step > 0 else "bad"]
        rules.append(f"td.s{step}{{background:{mix(COLOURS['middle'], end, abs(step) / STEPS)}}}")
    return "".join(rules).replace("td.s-", "td.s\\-")


def mix(one: str, other: str, share: float) -> str:
    pairs = ((int(one[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(low + (high - low) * share):02X}" for low, high in pairs)


def anchor(name: str) -> str:
    return "".join(char if char.isalnum() else "-" for char in name.lower())
