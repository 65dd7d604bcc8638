"""The output of verbs: an answer, rows as a table (or as JSON or CSV for programs), and notes; progress lines; logs of
workflow jobs.

Progress of long work is a line that is rewritten on a terminal, plain lines elsewhere, nothing with -q. A verb that
runs as a job of Snakemake prints to the terminal as usual, and also to the log of the job.
"""

import csv
import io
import json
import math
import os
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, TextIO, TypeVar

import click

from commodel.errors import JOB_VARIABLE
from commodel.files.safe_paths import SafePath
from commodel.progress import listen_with

Rows = Sequence[Mapping[str, Any]]


MAX_WIDTH = 100  # columns of a table, also where it is piped
MIN_WRAP_WIDTH = 14  # a column with wrapped texts is not narrower, in characters
MAX_NOTES = 5  # notes printed without --verbose
TIME_SCALES = {"s": 1.0, "ms": 1e3, "µs": 1e6, "ns": 1e9}


def find_table_width() -> int:
    """Return how many columns a table may have: those of the terminal or of $COLUMNS, at most 100."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return min(MAX_WIDTH, shutil.get_terminal_size().columns)
    return MAX_WIDTH


def format_table(rows: Rows, seconds: Sequence[str] = (), fold: bool = False) -> str:
    """Return rows as aligned columns, numbers to the right.

    Columns named in `seconds` hold times, which are shown in one unit, named in the header.
    With `fold`, columns with one value are in a line above the table. If columns do not fit, their texts are wrapped;
    if that is not enough, each row becomes lines of a name and its value.
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
    right = [kind != {type(None)} and not any(issubclass(entry, str) for entry in kind) for kind in kinds]
    widths, fits = fit_widths(names, texts, right, max_width)
    caption_lines = [*textwrap.wrap(caption, max_width), ""] if caption else []
    if not fits:
        return "\n".join([*caption_lines, "\n\n".join(_format_upright(names, row, max_width) for row in texts)])
    lines = [line for cells in [names, *texts] for line in _wrap_row(cells, widths, right)]
    return "\n".join([*caption_lines, *lines])


def _find_excess_width(rows: Rows, max_width: int) -> int:
    widths = [max(len(name), *(len(_format_cell(row[name])) for row in rows)) for name in rows[0]]
    return sum(widths) + 2 * (len(widths) - 1) - max_width


def fit_widths(
    names: Sequence[str], texts: Sequence[Sequence[str]], right: Sequence[bool], max_width: int
) -> tuple[list[int], bool]:
    """Return column widths, and whether all columns fit. Headings are wrapped first, then texts at blanks, words last.

    Numbers, which are in the columns of `right`, are never wrapped.
    """
    columns = list(zip(*texts, strict=True))
    text_widths = [max(map(len, column)) for column in columns]
    longest_words = [max((len(word) for text in column for word in text.split()), default=0) for column in columns]
    heading_words = [max((len(word) for word in name.split()), default=0) for name in names]
    widths = [max(len(name), cell) for name, cell in zip(names, text_widths, strict=True)]
    wrapped_at_blanks = [
        cell if number else min(cell, word)
        for cell, word, number in zip(text_widths, longest_words, right, strict=True)
    ]
    wrapped_anywhere = [
        cell if number else min(cell, MIN_WRAP_WIDTH) for cell, number in zip(text_widths, right, strict=True)
    ]
    excess = sum(widths) + 2 * (len(widths) - 1) - max_width
    for minimum in (text_widths, wrapped_at_blanks, wrapped_anywhere):
        min_widths = [max(pair) for pair in zip(minimum, heading_words, strict=True)]
        while excess > 0 and (wider := [at for at, width in enumerate(widths) if width > min_widths[at]]):
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
        padded = (text.rjust(w) if r else text.ljust(w) for text, w, r in zip(parts, widths, right, strict=True))
        yield "  ".join(padded).rstrip()


INTERVAL_ENDS = ("low", "high")  # begin of the columns of an interval's ends, which stay beside each other


def fold_columns(rows: Rows) -> tuple[list[dict], str]:
    """Return the rows without the columns that have one value, and these as a text. Of equal rows nothing is folded."""
    same = {name: value for name, value in rows[0].items() if all(row[name] == value for row in rows)}
    if len(same) == len(rows[0]):
        return list(map(dict, rows)), ""
    if sum(name.startswith(INTERVAL_ENDS) for name in same) == 1:
        same = {name: value for name, value in same.items() if not name.startswith(INTERVAL_ENDS)}
    caption = ", ".join(f"{name} {_format_cell(value)}" for name, value in same.items() if value not in ("", None, "-"))
    return [{name: value for name, value in row.items() if name not in same} for row in rows], caption


def scale_times(rows: Rows, names: Sequence[str]) -> list[dict]:
    """Return the rows with times of three digits in the unit of their median, which the header has: `time [µs]`."""
    times = sorted(abs(row[name]) for row in rows for name in names if isinstance(row.get(name), float) and row[name])
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


def print_answer(answer: str, body: str = "", notes: Sequence[str] = (), verbose: bool = True) -> None:
    click.echo(format_answer(answer, body, notes, verbose))


def format_answer(answer: str, body: str = "", notes: Sequence[str] = (), verbose: bool = True) -> str:
    """Return the answer in a sentence, then a table, then numbered notes: five of them unless `verbose`."""
    shown = list(notes) if verbose else list(notes)[:MAX_NOTES]
    numbered = [_wrap_line(f"{number}. {note}", "   ") for number, note in enumerate(shown, 1)]
    if hidden := len(notes) - len(shown):
        numbered.append(f"{hidden} more note{'s' * (hidden > 1)}: --verbose.")
    return "\n\n".join(part for part in (_wrap_line(answer), body, "\n".join(numbered)) if part)


def _wrap_line(text: str, indent: str = "") -> str:
    """Return a line wrapped for a terminal; elsewhere unchanged, because programs may search it."""
    if not sys.stdout.isatty():
        return text
    return "\n".join(textwrap.wrap(text, find_table_width(), subsequent_indent=indent, break_on_hyphens=False))


def _format_upright(names: Sequence[str], texts: Sequence[str], max_width: int) -> str:
    """Return a row as lines of a name and its value, without empty values."""
    margin = max(map(len, names)) + 2
    filled = [(name, text) for name, text in zip(names, texts, strict=True) if text not in ("", "-")]
    value_width = max(20, max_width - margin)
    pieces = [(name, textwrap.wrap(text, value_width, break_on_hyphens=False) or [""]) for name, text in filled]
    return "\n".join(
        f"{'' if at else name:{margin}}{piece}".rstrip() for name, lines in pieces for at, piece in enumerate(lines)
    )


def _format_cell(value: object) -> str:
    """Return a cell: four digits of a number with decimals, and more only before the point."""
    if value is None or value != value:
        return "-"
    if isinstance(value, float):
        return f"{value:.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.4g}"
    return str(value)


def format_csv(rows: Rows) -> str:
    from commodel.files.tables import make_cell_safe

    stream = io.StringIO()
    if rows:
        writer = csv.DictWriter(stream, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: make_cell_safe(value) for name, value in row.items()} for row in rows)
    return stream.getvalue().rstrip("\n")


def print_rows(rows: Rows, style: str, out: Path | None = None) -> None:
    """Print rows as a table, JSON or CSV, or write them to a file. In JSON, NaN and infinite values are null, in CSV
    NaN is blank."""
    if style == "table":
        write_or_print(format_table(rows), out)
        return
    is_missing = (lambda value: not math.isfinite(value)) if style == "json" else math.isnan
    rows = [
        {name: None if isinstance(value, float) and is_missing(value) else value for name, value in row.items()}
        for row in rows
    ]
    write_or_print(json.dumps(rows, indent=1, allow_nan=False) if style == "json" else format_csv(rows), out)


def write_or_print(text: str, out: Path | None) -> None:
    """Write text to a file, or print it if none is named."""
    from commodel.files.atomic import write_text

    if out:
        write_text(out, text + "\n")
    else:
        click.echo(text)


LOG_LINE_INTERVAL = 30.0  # seconds between two progress lines if lines cannot be rewritten
PROGRESS_DELAY = 2.0  # seconds before progress is shown
PLAIN_PROGRESS_DELAY = 5.0  # seconds before progress is shown if lines cannot be rewritten
REFRESH_INTERVAL = 0.2  # seconds
Item = TypeVar("Item")


def can_rewrite_line() -> bool:
    """Return whether a line that is rewritten would be visible. Jobs show no progress."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get(JOB_VARIABLE)


def make_progress_printer(quiet: bool) -> Callable[[str], None]:
    """Return a function that prints progress messages, or one that drops them if `quiet`."""
    return (lambda message: None) if quiet else partial(click.echo, err=True)


class ProgressLine:
    """A progress line that is rewritten on a terminal; elsewhere a changed line is printed every 30 seconds."""

    def __init__(self, quiet: bool):
        self.quiet, self.live = quiet, can_rewrite_line()
        self.last_text, self.last_time = "", 0.0

    def show_progress(self, text: str, last: bool = False) -> None:
        """Show a line that the next one replaces; the `last` one stays."""
        if last and not self.quiet and (self.live or text != self.last_text):  # else the line is printed already
            self.clear()
            click.echo(text, err=True)
        if last or self.quiet or text == self.last_text:
            return
        if self.live:
            click.echo(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}", err=True, nl=False)
        elif time.monotonic() - self.last_time >= LOG_LINE_INTERVAL or not self.last_time:
            click.echo(text, err=True)
        else:
            return
        self.last_text, self.last_time = text, time.monotonic()

    def show_message(self, text: str) -> None:
        """Print a line that stays."""
        self.clear()
        click.echo(text, err=True)

    def clear(self) -> None:
        if self.live and self.last_text:
            click.echo("\r\x1b[K", err=True, nl=False)
            self.last_text = ""


def count_progress(items: Sequence[Item], activity: str) -> Iterator[Item]:
    """Yield the items unchanged. If they take long, a line on the terminal counts those done."""
    line, next_update = ProgressLine(quiet=not can_rewrite_line()), time.monotonic() + PROGRESS_DELAY
    try:
        for number, item in enumerate(items):
            if time.monotonic() >= next_update:
                line.show_progress(f"{activity}: {number:,} of {len(items):,}")
                next_update = time.monotonic() + REFRESH_INTERVAL
            yield item
    finally:
        line.clear()


@contextmanager
def show_waiting(activity: str, plain_lines: bool = False) -> Iterator[None]:
    """Show on a terminal the running work, its duration and its step, if it takes long. With `plain_lines`, a line is
    printed every 30 seconds if there is no terminal, except in jobs, whose logs have no progress."""
    line, start, finished = ProgressLine(quiet=False), time.monotonic(), threading.Event()
    if not (line.live or (plain_lines and not os.environ.get(JOB_VARIABLE))):
        yield
        return
    texts = [""]  # the current step

    def listen(text: str) -> None:
        texts[0] = f", {text}"

    def show_elapsed_time() -> None:
        pause = PROGRESS_DELAY if line.live else PLAIN_PROGRESS_DELAY
        while not finished.wait(pause):
            pause = REFRESH_INTERVAL
            line.show_progress(f"{activity}: {time.monotonic() - start:.0f} s{texts[0]}")

    thread = threading.Thread(target=show_elapsed_time, daemon=True)
    thread.start()
    try:
        with listen_with(listen):
            yield
    finally:
        finished.set()
        thread.join()
        line.clear()


class CopiedStream:
    """A stream that is also copied to an unbuffered file, since the job may be killed at any moment. If the disk is
    full, only the copy is lost."""

    def __init__(self, stream: TextIO, copy: IO[bytes]):
        self.stream, self.copy = stream, copy

    def write(self, text: str) -> int:
        with suppress(OSError):
            self.copy.write(text.encode(errors="backslashreplace"))
        return self.stream.write(text)

    def __getattr__(self, name: str):
        return getattr(self.stream, name)


def copy_output_to_log() -> None:
    """Copy the output of this process, including uncaught errors, to the log of its job.

    The folder `logs` may come from an unknown source, as with received results. Links to the log are therefore not
    followed.
    """
    if job := os.environ.get(JOB_VARIABLE):
        _copy_output(Path(job))


def _copy_output(log: Path) -> None:
    copy = (SafePath(log.parent.parent) / "logs" / log.name).open("ab", buffering=0)
    sys.stdout, sys.stderr = (
        CopiedStream(stream.stream if isinstance(stream, CopiedStream) else stream, copy)
        for stream in (sys.stdout, sys.stderr)
    )


@contextmanager
def copy_output_of_model(name: str) -> Iterator[None]:
    """Copy the output of the block to the log of one model, `name`.log, if this process is a job of several models."""
    if not (job := os.environ.get(JOB_VARIABLE)):
        yield
        return
    streams, log = (sys.stdout, sys.stderr), Path(job).with_name(f"{name}.log")
    _copy_output(log)
    os.environ[JOB_VARIABLE] = str(log)
    try:
        yield
    finally:
        os.environ[JOB_VARIABLE] = job
        sys.stdout, sys.stderr = streams
