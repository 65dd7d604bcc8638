"""Rows as text: a table that fits the terminal, JSON and CSV for programs, and an answer with its
notes."""

import csv
import io
import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]


MAX_WIDTH = 100  # columns of a table, also where it is piped
MIN_WRAP_WIDTH = 14  # a column with wrapped texts is not narrower, in characters
MAX_NOTES = 5  # notes printed without --verbose
TIME_SCALES = {"s": 1.0, "ms": 1e3, "µs": 1e6, "ns": 1e9}


def find_table_width() -> int:
    """Return how many columns a table may have: those of the terminal or of $COLUMNS, at most
    100."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return min(MAX_WIDTH, shutil.get_terminal_size().columns)
    return MAX_WIDTH


def format_table(rows: Rows, seconds: Sequence[str] = (), fold: bool = False) -> str:
    """Return rows as aligned columns, numbers to the right.

    Columns named in `seconds` hold times, which are shown in one unit, named in the header. With
    `fold`, columns with one value are in a line above the table. If columns do not fit, their texts
    are wrapped; if that is not enough, each row becomes lines of a name and its value.
    """
    if not rows:
        return ""
    max_width, caption = find_table_width(), ""
    scaled = scale_times(rows, seconds)
    if len(rows) > 1 and (fold or _find_excess_width(scaled, max_width) > 0):
        scaled, caption = fold_columns(scaled)
    names = list(scaled[0])
    texts = [[_format_cell(row[name]) for name in names] for row in scaled]
    kinds = [{type(row[name]) for row in scaled} for name in names]
    right = [
        kind != {type(None)} and not any(issubclass(entry, str) for entry in kind) for kind in kinds
    ]
    widths, fits = fit_widths(names, texts, right, max_width)
    caption_lines = [*textwrap.wrap(caption, max_width), ""] if caption else []
    if not fits:
        return "\n".join(
            [*caption_lines, "\n\n".join(_format_upright(names, row, max_width) for row in texts)]
        )
    lines = [line for cells in [names, *texts] for line in _wrap_row(cells, widths, right)]
    return "\n".join([*caption_lines, *lines])


def _find_excess_width(rows: Rows, max_width: int) -> int:
    widths = [max(len(name), *(len(_format_cell(row[name])) for row in rows)) for name in rows[0]]
    return sum(widths) + 2 * (len(widths) - 1) - max_width


def fit_widths(
    names: Sequence[str], texts: Sequence[Sequence[str]], right: Sequence[bool], max_width: int
) -> tuple[list[int], bool]:
    """Return column widths, and whether all columns fit. Headings are wrapped first, then texts at
    blanks, words last.

    Numbers, which are in the columns of `right`, are never wrapped.
    """
    columns = list(zip(*texts, strict=True))
    text_widths = [max(map(len, column)) for column in columns]
    longest_words = [
        max((len(word) for text in column for word in text.split()), default=0)
        for column in columns
    ]
    heading_words = [max((len(word) for word in name.split()), default=0) for name in names]
    widths = [max(len(name), cell) for name, cell in zip(names, text_widths, strict=True)]
    wrapped_at_blanks = [
        cell if number else min(cell, word)
        for cell, word, number in zip(text_widths, longest_words, right, strict=True)
    ]
    wrapped_anywhere = [
        cell if number else min(cell, MIN_WRAP_WIDTH)
        for cell, number in zip(text_widths, right, strict=True)
    ]
    excess = sum(widths) + 2 * (len(widths) - 1) - max_width
    for minimum in (text_widths, wrapped_at_blanks, wrapped_anywhere):
        min_widths = [max(pair) for pair in zip(minimum, heading_words, strict=True)]
        while excess > 0 and (
            wider := [at for at, width in enumerate(widths) if width > min_widths[at]]
        ):
            widths[max(wider, key=lambda at: widths[at])] -= 1
            excess -= 1
    return widths, excess <= 0


def _wrap_row(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> Iterator[str]:
    """Return a row as lines, with texts that are longer than their column wrapped."""
    wrapped = [
        textwrap.wrap(text, width, break_on_hyphens=False) or [""] if width else [""]
        for text, width in zip(cells, widths, strict=True)
    ]
    for at in range(max(map(len, wrapped))):
        parts = [column[at] if at < len(column) else "" for column in wrapped]
        padded = (
            text.rjust(w) if r else text.ljust(w)
            for text, w, r in zip(parts, widths, right, strict=True)
        )
        yield "  ".join(padded).rstrip()


# begin of the columns of an interval's ends, which stay beside each other
INTERVAL_ENDS = ("low", "high")


def fold_columns(rows: Rows) -> tuple[list[dict[str, Any]], str]:
    """Return the rows without the columns that have one value, and these as a text. Of equal rows
    nothing is folded."""
    same = {
        name: value for name, value in rows[0].items() if all(row[name] == value for row in rows)
    }
    if len(same) == len(rows[0]):
        return list(map(dict, rows)), ""
    if sum(name.startswith(INTERVAL_ENDS) for name in same) == 1:
        same = {name: value for name, value in same.items() if not name.startswith(INTERVAL_ENDS)}
    caption = ", ".join(
        f"{name} {_format_cell(value)}"
        for name, value in same.items()
        if value not in ("", None, "-")
    )
    return [
        {name: value for name, value in row.items() if name not in same} for row in rows
    ], caption


def scale_times(rows: Rows, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows with times of three digits in the unit of their median, which the header has:
    `time [µs]`."""
    times = sorted(
        abs(row[name])
        for row in rows
        for name in names
        if isinstance(row.get(name), float) and row[name]
    )
    times = [time for time in times if time < float("inf")]
    median = times[len(times) // 2] if times else 1.0
    unit = next((unit for unit, scale in TIME_SCALES.items() if median * scale >= 0.9995), "ns")
    scale = TIME_SCALES[unit]
    return [
        {
            (f"{name} [{unit}]" if name in names else name): float(f"{value * scale:.3g}")
            if name in names and isinstance(value, int | float)
            else value
            for name, value in row.items()
        }
        for row in rows
    ]


def format_answer(
    answer: str, body: str = "", notes: Sequence[str] = (), verbose: bool = True
) -> str:
    """Return the answer in a sentence, then a table, then numbered notes: five of them unless
    `verbose`."""
    shown = list(notes) if verbose else list(notes)[:MAX_NOTES]
    numbered = [_wrap_line(f"{number}. {note}", "   ") for number, note in enumerate(shown, 1)]
    if hidden := len(notes) - len(shown):
        numbered.append(f"{hidden} more note{'s' * (hidden > 1)}: --verbose.")
    return "\n\n".join(part for part in (_wrap_line(answer), body, "\n".join(numbered)) if part)


def _wrap_line(text: str, indent: str = "") -> str:
    """Return a line wrapped for a terminal; elsewhere unchanged, because programs may search it."""
    if not sys.stdout.isatty():
        return text
    return "\n".join(
        textwrap.wrap(text, find_table_width(), subsequent_indent=indent, break_on_hyphens=False)
    )


def _format_upright(names: Sequence[str], texts: Sequence[str], max_width: int) -> str:
    """Return a row as lines of a name and its value, without empty values."""
    margin = max(map(len, names)) + 2
    filled = [
        (name, text) for name, text in zip(names, texts, strict=True) if text not in ("", "-")
    ]
    value_width = max(20, max_width - margin)
    pieces = [
        (name, textwrap.wrap(text, value_width, break_on_hyphens=False) or [""])
        for name, text in filled
    ]
    return "\n".join(
        f"{'' if at else name:{margin}}{piece}".rstrip()
        for name, lines in pieces
        for at, piece in enumerate(lines)
    )


def _format_cell(value: object) -> str:
    """Return a cell: four digits of a number with decimals, and more only before the point."""
    if value is None or value != value:
        return "-"
    if isinstance(value, float):
        return f"{value:.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.4g}"
    return str(value)


def format_csv(rows: Rows) -> str:
    from commodel.files.tables import make_cell_safe  # slow to load

    stream = io.StringIO()
    if rows:
        writer = csv.DictWriter(stream, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {name: make_cell_safe(value) for name, value in row.items()} for row in rows
        )
    return stream.getvalue().rstrip("\n")


def format_rows(rows: Rows, style: str) -> str:
    """Return rows as a table, JSON or CSV. In JSON, NaN and infinite values are null, in CSV NaN is
    blank."""
    if style == "table":
        return format_table(rows)
    is_missing = (lambda value: not math.isfinite(value)) if style == "json" else math.isnan
    rows = [
        {
            name: None if isinstance(value, float) and is_missing(value) else value
            for name, value in row.items()
        }
        for row in rows
    ]
    return json.dumps(rows, indent=1, allow_nan=False) if style == "json" else format_csv(rows)
