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
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
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
    max_width = find_table_width()
    caption = ""
    scaled = scale_times(rows, seconds)
    if len(rows) > 1 and (fold or _find_excess_width(scaled, max_width) > 0):
        scaled, caption = fold_columns(scaled)
    names = list(scaled[0])
    texts = []
    for row in scaled:
        texts.append([_format_cell(row[name]) for name in names])
    right = [_holds_numbers(scaled, name) for name in names]
    widths, fits = fit_widths(names, texts, right, max_width)
    lines = [*textwrap.wrap(caption, max_width), ""] if caption else []
    if not fits:
        upright_rows = [_format_upright(names, row, max_width) for row in texts]
        return "\n".join([*lines, "\n\n".join(upright_rows)])
    for cells in [names, *texts]:
        lines += _wrap_row(cells, widths, right)
    return "\n".join(lines)


def _holds_numbers(rows: Rows, name: str) -> bool:
    """Return whether a column has values and no texts."""
    types = {type(row[name]) for row in rows}
    return types != {type(None)} and not any(issubclass(kind, str) for kind in types)


def _find_excess_width(rows: Rows, max_width: int) -> int:
    table_width = 2 * (len(rows[0]) - 1)
    for name in rows[0]:
        table_width += max(len(name), *(len(_format_cell(row[name])) for row in rows))
    return table_width - max_width


def fit_widths(
    names: Sequence[str], texts: Sequence[Sequence[str]], right: Sequence[bool], max_width: int
) -> tuple[list[int], bool]:
    """Return column widths, and whether all columns fit. Headings are wrapped first, then texts at
    blanks, words last.

    Numbers, which are in the columns of `right`, are never wrapped.
    """
    columns = list(zip(*texts, strict=True))
    text_widths = [max(map(len, column)) for column in columns]
    longest_words = [max(map(_find_longest_word, column)) for column in columns]
    heading_words = list(map(_find_longest_word, names))
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
        while excess > 0:
            wider = [at for at, width in enumerate(widths) if width > min_widths[at]]
            if not wider:
                break
            widths[max(wider, key=lambda at: widths[at])] -= 1
            excess -= 1
    return widths, excess <= 0


def _find_longest_word(text: str) -> int:
    return max(map(len, text.split()), default=0)


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
    same = {}
    for name, value in rows[0].items():
        if all(row[name] == value for row in rows):
            same[name] = value
    if len(same) == len(rows[0]):
        return list(map(dict, rows)), ""
    if sum(name.startswith(INTERVAL_ENDS) for name in same) == 1:
        same = {name: value for name, value in same.items() if not name.startswith(INTERVAL_ENDS)}
    caption = ", ".join(
        f"{name} {_format_cell(value)}"
        for name, value in same.items()
        if value not in ("", None, "-")
    )
    folded = []
    for row in rows:
        folded.append({name: value for name, value in row.items() if name not in same})
    return folded, caption


def scale_times(rows: Rows, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows with times of three digits in the unit of their median, which the header has:
    `time [µs]`."""
    values = [row.get(name) for row in rows for name in names]
    times = sorted(abs(value) for value in values if isinstance(value, float) and value)
    times = [time for time in times if time < float("inf")]
    median = times[len(times) // 2] if times else 1.0
    unit = next((unit for unit, scale in TIME_SCALES.items() if median * scale >= 0.9995), "ns")
    scale = TIME_SCALES[unit]
    scaled_rows = []
    for row in rows:
        scaled: dict[str, Any] = {}
        for name, value in row.items():
            if name not in names:
                scaled[name] = value
            elif isinstance(value, int | float):
                scaled[f"{name} [{unit}]"] = float(f"{value * scale:.3g}")
            else:
                scaled[f"{name} [{unit}]"] = value
        scaled_rows.append(scaled)
    return scaled_rows


def format_answer(
    answer: str, body: str = "", notes: Sequence[str] = (), verbose: bool = True
) -> str:
    """Return the answer in a sentence, then a table, then numbered notes: five of them unless
    `verbose`."""
    shown = list(notes) if verbose else list(notes)[:MAX_NOTES]
    numbered = [_wrap_line(f"{number}. {note}", "   ") for number, note in enumerate(shown, 1)]
    hidden = len(notes) - len(shown)
    if hidden:
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
    lines = []
    for name, text in filled:
        pieces = textwrap.wrap(text, value_width, break_on_hyphens=False) or [""]
        for label, piece in zip_longest([name], pieces, fillvalue=""):
            lines.append(f"{label:{margin}}{piece}".rstrip())
    return "\n".join(lines)


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
        for row in rows:
            writer.writerow({name: make_cell_safe(value) for name, value in row.items()})
    return stream.getvalue().rstrip("\n")


def format_rows(rows: Rows, style: str) -> str:
    """Return rows as a table, JSON or CSV. In JSON, NaN and infinite values are null, in CSV NaN is
    blank."""
    if style == "table":
        return format_table(rows)
    if style == "csv":
        return format_csv([_replace_numbers(row, math.isnan) for row in rows])
    rows = [_replace_numbers(row, lambda value: not math.isfinite(value)) for row in rows]
    return json.dumps(rows, indent=1, allow_nan=False)


def _replace_numbers(row: Mapping[str, Any], is_missing: Callable[[float], bool]) -> dict[str, Any]:
    """Return the row with None in place of missing numbers."""
    return {
        name: None if isinstance(value, float) and is_missing(value) else value
        for name, value in row.items()
    }
