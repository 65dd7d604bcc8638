"""Tables of the page. A short one stands in the markup; of a long one only the first rows do, and all of them are data
that the page's script draws where the reader looks."""

import json
import math

from markupsafe import Markup

from commodel.reports.machine_names import raw_link
from commodel.reports.shape import COLOURS, WORDS, Column, Scale, Table
from commodel.reports.values import comparable, show

MOST_ROWS = 200  # of one table in the markup
MOST_DATA = 20_000  # of one table in the page: some ten megabytes
LONG_TEXT = 60  # characters of a text that is broken over lines
STEPS = 10  # shades to either side of the middle of a colour scale


def listed(table: Table, name: str, results: str, explored: bool = False) -> dict:
    """`name` tells the table's data from those of others; `results` is where files are linked; all rows of one that is
    explored are data, so that the script can draw them."""
    count = len(table.rows)
    places = range(len(table.columns))
    long, beyond = count > MOST_ROWS, count > MOST_DATA
    capped = f"First {MOST_ROWS:,} of {count:,} rows: the rest needs JavaScript, or the workbook (.xlsx)."
    if beyond:
        capped = f"First {MOST_ROWS:,} of {count:,} rows, which are too many for a page: the workbook (.xlsx) has them."
    return {
        "kind": "table",
        "name": name,
        "title": table.title,
        "note": table.note,
        "fixed": table.fixed,
        "broad": len(table.columns) > 20,
        "capped": capped if long else "",
        "explored": explored and count > 0 and not beyond,
        "heads": [
            {"text": column.header, "number": column.kind not in WORDS, "note": column.note, "key": column.key}
            for column in table.columns
        ],
        "rows": [[cell(table, at, place, results) for place in places] for at in range(min(count, MOST_ROWS))],
        "data": data_of(table, results) if not beyond and (long or (explored and count)) else "",
    }


def data_of(table: Table, results: str) -> Markup:
    """Column by column: its different cells, and which of them stands in each row."""
    columns = (column_of(table, place, results) for place in range(len(table.columns)))
    return Markup(f"[{','.join(map(data, columns))}]")  # noqa: S704 – as `data` has it


def column_of(table: Table, place: int, results: str) -> dict[str, list]:
    numbers: dict[tuple, int] = {}
    rows = [numbers.setdefault(cell(table, at, place, results), len(numbers)) for at in range(len(table.rows))]
    return {"cells": [trimmed(values) for values in numbers], "rows": rows}


def data(value: object) -> Markup:
    """JSON that stands in a script element: a `<` could close it, or open a comment in it."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 – nothing is left in it that HTML knows


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
        target = f"#fit-{text}"
    names = classes(column, value, text, (at, place) in table.marks)
    return text, names, target, table.grounds.get((at, place), "")


def classes(column: Column, value: object, text: str, marked: bool) -> str:
    names = [] if column.kind in WORDS else ["n"]
    if len(text) > LONG_TEXT:
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
