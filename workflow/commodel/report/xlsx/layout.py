"""What Excel demands of names, and what readers demand of widths and colours."""

import math
import re
from datetime import datetime

import numpy as np

from commodel.report.shape import COLOURS, Report, Scale, Table
from commodel.report.values import show
from commodel.report.xlsx.rapid import inert

CREATED = datetime(2000, 1, 1)  # where nobody noted when it was measured; never when it was written
WIDEST = 52  # characters of a column


def colour_scale(scale: Scale) -> dict:
    """Excel wants the anchors in rising order."""
    if scale.only_bad:
        return {
            "type": "2_color_scale",
            "min_type": "num",
            "max_type": "num",
            "min_value": scale.good,
            "max_value": scale.bad,
            "min_color": "#FFFFFF",
            "max_color": COLOURS["bad"],
        }
    ends = [(scale.bad, COLOURS["bad"]), (scale.good, COLOURS["good"])]
    (low, cold), (high, warm) = sorted(ends)
    return {
        "type": "3_color_scale",
        "min_type": "num",
        "mid_type": "num",
        "max_type": "num",
        "min_value": low,
        "mid_value": scale.middle,
        "max_value": high,
        "min_color": cold,
        "mid_color": COLOURS["middle"],
        "max_color": warm,
    }


def column_widths(tables, alone: bool = True, filters: bool = True) -> list[int]:
    """Wide enough for every number and for the longest word of a header, with its filter button where it has one.

    Where tables share a sheet, text of a last column may run on over the empty cells beside it.
    """
    widths: list[int] = []
    for table in tables:
        for place, column in enumerate(table.columns):
            # Bold digits and the grouping of Excel's own formats need a little more than the text.
            longest = longest_text(column.kind, table.values(place)) * 1.1 + 3
            if not alone and column.kind == "text" and place + 1 == len(table.columns) and not table.grounds:
                longest = 0
            word = max(len(word) for word in f"{column.header} ".split(" ")) * 1.15 + (4 if filters else 1)
            width = min(WIDEST, int(max(longest, word, 7)) + 1)
            if place < len(widths):
                widths[place] = max(widths[place], width)
            else:
                widths.append(width)
    return widths


def longest_text(kind: str, values: list) -> int:
    """Characters of the longest value. Numbers between two powers of ten have one format."""
    numbers = np.array([value for value in values if isinstance(value, float) and math.isfinite(value)])
    texts = {(value.__class__, value) for value in values if not isinstance(value, float) or not math.isfinite(value)}
    with np.errstate(divide="ignore"):
        decades = np.floor(np.log10(np.abs(numbers)))
    for decade in np.unique(decades):
        same = numbers[decades == decade]
        texts |= {(float, same.min()), (float, same.max())}
    return max((len(show(kind, value)) for _, value in texts), default=0)


def header_lines(table: Table, widths: list[int]) -> int:
    """Lines the longest header takes in its column."""
    shared = zip(table.columns, widths, strict=False)  # tables above or below may be wider
    lines = [1 + int(len(column.header) * 1.15 + 3) // width for column, width in shared]
    return min(6, max(lines))


def wrapped_lines(values: tuple, widths: list[int]) -> int:
    """Lines the longest text of a row takes; the last column's runs on instead."""
    texts = [len(value) if isinstance(value, str) else 0 for value in values[:-1]]
    return max((1 + int(long * 1.05) // widths[place] for place, long in enumerate(texts) if long > WIDEST), default=1)


def set_widths(sheet, widths: list[int]) -> None:
    for place, width in enumerate(widths):
        sheet.set_column(place, place, width)


def legal(name: str, taken: set[str]) -> str:
    """A sheet name that Excel takes: 31 characters, none of []:*?/\\ , no apostrophe at its ends, used once."""
    stem = re.sub(r"[\[\]:*?/\\]", " ", name).strip("' ")[:31] or "Sheet"
    return once(stem, 31, taken)


def legal_table(name: str, taken: set[str]) -> str:
    return once(re.sub(r"\W", "_", f"T_{name}", flags=re.ASCII)[:200], 250, taken)


def once(stem: str, longest: int, taken: set[str]) -> str:
    name, number = stem, 1
    while name.lower() in taken:
        number += 1
        name = f"{stem[: longest - 1 - len(str(number))]}_{number}"
    taken.add(name.lower())
    return name


def unique(headers: list[str]) -> list[str]:
    """Excel refuses a table with two equal headers, or with a blank one."""
    taken: set[str] = set()
    return [once(inert(header[:240].strip()) or "column", 255, taken) for header in headers]


def ampersand(text: str) -> str:
    return text.replace("&", "&&")


def created(report: Report) -> datetime:
    """The last day of the measurements: a report of the same results is the same file, whenever it is written."""
    day = re.search(r"(\d{4})-(\d\d)-(\d\d)$", report.measured)
    try:
        return datetime(*map(int, day.groups())) if day else CREATED
    except ValueError:
        return CREATED
