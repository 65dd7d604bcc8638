"""Writes a report as one self-contained page: plain tables, charts by JavaScript, nothing from elsewhere."""

from html import escape
from pathlib import Path

from commodel.files.atomic import write_text
from commodel.report.html import charts as html_charts
from commodel.report.html.matrix import matrix_html
from commodel.report.html.tables import shades, table_html
from commodel.report.matrix import Matrix
from commodel.report.shape import Answer, Chart, Report, Section, Table, Text, origin

STYLE, SCRIPT = (Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; font-src data:"


def write_html(report: Report, path: str | Path) -> None:
    write_text(Path(path), page_html(report))


def page_html(report: Report) -> str:
    charts = {id(chart): f"chart-{place}" for place, chart in enumerate(report.charts, 1)}
    places = charts | {id(table): f"rows-{place}" for place, table in enumerate(report.tables, 1)}
    links = "".join(f'<a href="#{anchor(section.name)}">{escape(section.name)}</a>' for section in report.sections)
    body = "".join(section_html(section, places, report.results) for section in report.sections)
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
        f"<script>{SCRIPT}</script>\n{html_charts.scripts(report.charts, list(charts.values()))}</body>\n</html>\n"
    )


def section_html(section: Section, places: dict[int, str], results: str) -> str:
    parts = [f'<section id="{anchor(section.name)}">\n<h2>{escape(section.name)}</h2>\n']
    if section.note:
        parts.append(f'<p class="note">{escape(section.note)}</p>\n')
    drawing = False
    for block in section.blocks:
        if isinstance(block, Chart | Matrix) != drawing:
            drawing = not drawing
            parts.append('<div class="charts">\n' if drawing else "</div>\n")
        match block:
            case Chart():
                parts.append(chart_html(block, places[id(block)]))
            case Matrix():
                parts.append(matrix_html(block))
            case Answer():
                parts.append(answer_html(block))
            case Table():
                parts.append(table_html(block, places[id(block)], results))
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


def anchor(name: str) -> str:
    return "".join(char if char.isalnum() else "-" for char in name.lower())
