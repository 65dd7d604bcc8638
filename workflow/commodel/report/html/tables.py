"""Tables of the page. A short one stands in the markup; of a long one only the first rows do, and all of them are data
that the page's script draws where the reader looks."""

import json
import math
from html import escape

from commodel.report.rawlinks import raw_link
from commodel.report.shape import COLOURS, WORDS, Column, Scale, Table, comparable, show

MOST_ROWS = 300  # of one table in the markup
LONG = 60  # characters of a text that is broken over lines
STEPS = 10  # shades to either side of the middle of a colour scale


def table_html(table: Table, name: str, results: str) -> str:
    """`name` tells the table's data from those of others; `results` is where files are linked."""
    parts = [f"<h3>{escape(table.title)}</h3>\n"]
    if table.note:
        parts.append(f'<p class="note">{escape(table.note)}</p>\n')
    if not table.rows:
        return "".join(parts) + '<p class="note">none</p>\n'
    long = len(table.rows) > MOST_ROWS
    if long:
        capped = f"First {MOST_ROWS:,} of {len(table.rows):,} rows: the rest needs JavaScript, or the workbook (.xlsx)."
        parts.append(f'<p class="capped">{capped}</p>\n')
    broad = " broad" if len(table.columns) > 20 else ""
    data = f' data-rows="{name}"' if long else ""
    parts.append(f'<div class="wide{broad}"><table data-fixed="{table.fixed}"{data}>\n<thead><tr>')
    for column in table.columns:
        hint = f' title="{escape(column.note)}"' if column.note else ""
        number = "" if column.kind in WORDS else ' class="n"'
        parts.append(f"<th{number}{hint}>{escape(column.header)}</th>")
    parts.append("</tr></thead>\n<tbody>\n")
    for at in range(min(len(table.rows), MOST_ROWS)):
        cells = (cell(table, at, place, results) for place in range(len(table.columns)))
        parts.append(f"<tr>{''.join(cell_html(*values) for values in cells)}</tr>\n")
    parts.append("</tbody>\n</table></div>\n")
    return "".join(parts) + (data_html(table, name, results) if long else "")


def data_html(table: Table, name: str, results: str) -> str:
    """Column by column: its different cells, and which of them stands in each row."""
    columns = []
    for place in range(len(table.columns)):
        numbers: dict[tuple, int] = {}
        rows = [numbers.setdefault(cell(table, at, place, results), len(numbers)) for at in range(len(table.rows))]
        columns.append({"cells": [trimmed(values) for values in numbers], "rows": rows})
    # A `<` could close the script element, or open a comment in it.
    text = json.dumps(columns, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>\n'


def trimmed(values: tuple[str, ...]) -> list[str]:
    """Without the empty ones at the end."""
    kept = list(values)
    while len(kept) > 1 and not kept[-1]:
        kept.pop()
    return kept


def cell(table: Table, at: int, place: int, results: str) -> tuple[str, str, str, str]:
    """Text, classes, target and colour of a cell."""
    column, value = table.columns[place], table.value(at, place)
    text, target = show(column.kind, value), ""
    if column.kind == "file":
        target = raw_link(results, text)
    elif column.kind == "figure" and text:
        target = f"#figure-{text}"
    names = classes(column, value, text, (at, place) in table.marks)
    return text, names, target, table.grounds.get((at, place), "")


def classes(column: Column, value: object, text: str, marked: bool) -> str:
    names = [] if column.kind in WORDS else ["n"]
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
    return " ".join(names)


def cell_html(text: str, names: str, target: str, ground: str) -> str:
    kind = f' class="{names}"' if names else ""
    kind += f' style="background:{ground}"' if ground else ""
    inner = f'<a href="{escape(target)}">{escape(text)}</a>' if target else escape(text)
    return f"<td{kind}>{inner}</td>"


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
