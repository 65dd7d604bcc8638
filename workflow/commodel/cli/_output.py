"""What verbs print: rows as a table for people, or as JSON or CSV for programs; progress; and the logs of jobs.

Progress on long work is one line that is rewritten on a terminal, plain lines elsewhere, nothing with -q. As a job of
Snakemake a verb prints to the terminal as ever, and to the log of the job too.
"""

import csv
import io
import json
import os
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TextIO, TypeVar

import click

from commodel.files.safe_paths import SafePath
from commodel.progress import heard_by

Rows = Sequence[Mapping[str, object]]


def table(rows: Rows) -> str:
    """Aligned columns, numbers to the right; on a terminal that is narrower than they are, a row below the other."""
    if not rows:
        return ""
    names = list(rows[0])
    texts = [[_text(row[name]) for name in names] for row in rows]
    widths = [max(len(text) for text in column) for column in zip(names, *texts, strict=True)]
    if sys.stdout.isatty() and sum(widths) + 2 * (len(widths) - 1) > (room := shutil.get_terminal_size().columns):
        return "\n\n".join(_upright(names, row, room) for row in texts)
    right = [all(isinstance(row[name], int | float) for row in rows) for name in names]

    def line(cells: Sequence[str]) -> str:
        padded = (cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(cells, widths, right, strict=True))
        return "  ".join(padded).rstrip()

    return "\n".join([line(names), *(line(row) for row in texts)])


def _upright(names: Sequence[str], texts: Sequence[str], room: int) -> str:
    """A row as lines of a name and what it is, where it is anything."""
    margin = max(map(len, names)) + 2
    named = [(name, text) for name, text in zip(names, texts, strict=True) if text not in ("", "-")]
    wide = max(20, room - margin)
    pieces = [(name, textwrap.wrap(text, wide, break_on_hyphens=False) or [""]) for name, text in named]
    return "\n".join(
        f"{'' if at else name:{margin}}{piece}".rstrip() for name, lines in pieces for at, piece in enumerate(lines)
    )


def _text(value: object) -> str:
    if value is None or value != value:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def as_csv(rows: Rows) -> str:
    from commodel.files.tables import safe_cell

    stream = io.StringIO()
    if rows:
        writer = csv.DictWriter(stream, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: safe_cell(value) for name, value in row.items()} for row in rows)
    return stream.getvalue().rstrip("\n")


def print_rows(rows: Rows, style: str, out: Path | None = None) -> None:
    """Print rows as a table, JSON or CSV, or write them to a file."""
    emit(json.dumps(list(rows), indent=1) if style == "json" else as_csv(rows) if style == "csv" else table(rows), out)


def emit(text: str, out: Path | None) -> None:
    """Text to a file, or to the screen where none is named."""
    from commodel.files.atomic import write_text

    if out:
        write_text(out, text + "\n")
    else:
        click.echo(text)


BETWEEN_LINES = 30.0  # seconds between two lines that nobody may be reading
PATIENCE = 2.0  # seconds that nobody wants to be told about
PATIENCE_ALOUD = 5.0  # the same where a line stays
REFRESH = 0.2
JOB = "COMMODEL_JOB"  # environment: a job of Snakemake, which tells itself what it does, and may run several at once
Item = TypeVar("Item")


def is_watched() -> bool:
    """Whether somebody sees a line that is rewritten."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get(JOB)


def progress(quiet: bool) -> Callable[[str], None]:
    """A line for each message."""
    if quiet:
        return lambda message: None
    return lambda message: click.echo(message, file=sys.stderr)


class Line:
    """The last line on the screen. Elsewhere it is printed now and then, if it has changed."""

    def __init__(self, quiet: bool):
        self.quiet, self.live = quiet, is_watched()
        self.shown, self.when = "", 0.0

    def show_progress(self, text: str, last: bool = False) -> None:
        """Show a line that the next one replaces; the `last` one stays."""
        if last and not self.quiet:
            self.clear()
            click.echo(text, file=sys.stderr)
        if last or self.quiet or text == self.shown:
            return
        if self.live:
            click.echo(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}", file=sys.stderr, nl=False)
        elif time.monotonic() - self.when >= BETWEEN_LINES or not self.when:
            click.echo(text, file=sys.stderr)
        else:
            return
        self.shown, self.when = text, time.monotonic()

    def show_message(self, text: str) -> None:
        """Print a line that stays."""
        self.clear()
        click.echo(text, file=sys.stderr)

    def clear(self) -> None:
        if self.live and self.shown:
            click.echo("\r\x1b[K", file=sys.stderr, nl=False)
            self.shown = ""


def count_progress(items: Sequence[Item], what: str) -> Iterator[Item]:
    """The same items. On a terminal, where they take long, a line says how many of them are done."""
    line, due = Line(quiet=not is_watched()), time.monotonic() + PATIENCE
    try:
        for number, item in enumerate(items):
            if time.monotonic() >= due:
                line.show_progress(f"{what}: {number:,} of {len(items):,}")
                due = time.monotonic() + REFRESH
            yield item
    finally:
        line.clear()


@contextmanager
def show_waiting(what: str, aloud: bool = False) -> Iterator[None]:
    """On a terminal, where this takes long, a line says what goes on, for how long it has, and what it is at. `aloud`:
    where nobody sees that line a plain one now and then, but of jobs, whose logs have no progress."""
    line, begun, done = Line(quiet=False), time.monotonic(), threading.Event()
    if not (line.live or (aloud and not os.environ.get(JOB))):
        yield
        return
    texts = [""]  # the last: what it is at

    def listen(text: str) -> None:
        texts[0] = f", {text}"

    def tell() -> None:
        pause = PATIENCE if line.live else PATIENCE_ALOUD
        while not done.wait(pause):
            pause = REFRESH
            line.show_progress(f"{what}: {time.monotonic() - begun:.0f} s{texts[0]}")

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        with heard_by(listen):
            yield
    finally:
        done.set()
        thread.join()
        line.clear()


class CopiedStream:
    """A stream of which a file gets a copy, word for word and at once: the job may be killed at any moment. Where the
    disk is full only the copy is lost."""

    def __init__(self, stream: TextIO, copy: IO[bytes]):
        self.stream, self.copy = stream, copy

    def write(self, text: str) -> int:
        with suppress(OSError):
            self.copy.write(text.encode(errors="backslashreplace"))
        return self.stream.write(text)

    def __getattr__(self, name: str):
        return getattr(self.stream, name)


def copy_output_to_log() -> None:
    """Until this process ends, errors nobody has thought of too. The log lies in a folder `logs` that somebody else may
    have made, such as that of received results: it is reached through no link, and nor is the log."""
    if not (job := os.environ.get(JOB)):
        return
    log = Path(job)
    copy = (SafePath(log.parent.parent) / "logs" / log.name).open("ab", buffering=0)
    sys.stdout, sys.stderr = CopiedStream(sys.stdout, copy), CopiedStream(sys.stderr, copy)
