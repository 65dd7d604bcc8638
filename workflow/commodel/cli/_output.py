"""The output of verbs: an answer, rows as a table (or as JSON or CSV for programs), and notes;
progress lines; logs of workflow jobs.

Progress of long work is a line that is rewritten on a terminal, plain lines elsewhere, nothing with
-q. A verb that runs as a job of Snakemake prints to the terminal as usual, and also to the log of
the job.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, TextIO, TypeVar

import click

from commodel.errors import JOB_VARIABLE
from commodel.files.safe_paths import SafePath
from commodel.files.text_tables import Rows, format_answer, format_rows
from commodel.progress import listen_with
from commodel.units import format_count

if TYPE_CHECKING:
    from commodel.api.exports import Exported
    from commodel.api.result import Result
    from commodel.parameters import ParameterSet


def print_answer(
    answer: str, body: str = "", notes: Sequence[str] = (), verbose: bool = True
) -> None:
    click.echo(format_answer(answer, body, notes, verbose))


def print_rows(rows: Rows, style: str, out: Path | None = None) -> None:
    """Print rows as a table, JSON or CSV, or write them to a file."""
    write_or_print(format_rows(rows, style), out)


def write_answer(result: Result, style: str, out: Path | None = None) -> None:
    """Print a result, or write it to a file, in a format."""
    if style == "xlsx" and out:
        result.to_excel(out)
        return
    texts = {"json": result.to_json, "csv": result.to_csv}
    write_or_print(str(texts[style]()) if style in texts else result.text(), out)


def write_or_print(text: str, out: Path | None) -> None:
    """Write text to a file, or print it if none is named."""
    from commodel.files.atomic import write_text

    if out:
        write_text(out, text + "\n")
    else:
        click.echo(text)


def write_set(out: Path, parameters: ParameterSet) -> None:
    """Write a parameter set, and print what it has."""
    from commodel.files.parameter_sets import write_parameters

    write_parameters(out, parameters)
    values = format_count(len(parameters.values), "value")
    click.echo(f"{out}: {values} of {parameters.platform}, {parameters.source}")


def print_exported(result: Exported) -> None:
    """Print the text, or the paths of the files, and the notes."""
    for note in result.notes:
        click.echo(f"commodel: {note}", err=True)
    click.echo(result.text())


LOG_LINE_INTERVAL = 30.0  # seconds between two progress lines if lines cannot be rewritten
PROGRESS_DELAY = 2.0  # seconds before progress is shown
PLAIN_PROGRESS_DELAY = 5.0  # seconds before progress is shown if lines cannot be rewritten
REFRESH_INTERVAL = 0.2  # seconds
Item = TypeVar("Item")


def can_rewrite_line() -> bool:
    """Return whether a line that is rewritten would be visible. Jobs show no progress."""
    return (
        sys.stderr.isatty()
        and os.environ.get("TERM") != "dumb"
        and not os.environ.get(JOB_VARIABLE)
    )


def make_progress_printer(quiet: bool) -> Callable[[str], None]:
    """Return a function that prints progress messages, or one that drops them if `quiet`."""
    return (lambda message: None) if quiet else partial(click.echo, err=True)


def print_stage(result: Result) -> None:
    """Print the result of a stage, but not in a job of a run, whose log is empty if all went
    well."""
    if not os.environ.get(JOB_VARIABLE):
        click.echo(result.text())


class ProgressLine:
    """A progress line that is rewritten on a terminal; elsewhere a changed line is printed every 30
    seconds."""

    def __init__(self, quiet: bool):
        self.quiet, self.live = quiet, can_rewrite_line()
        self.last_text, self.last_time = "", 0.0

    def show_progress(self, text: str, last: bool = False) -> None:
        """Show a line that the next one replaces; the `last` one stays."""
        # else the line is printed already
        if last and not self.quiet and (self.live or text != self.last_text):
            self.clear()
            click.echo(text, err=True)
        if last or self.quiet or text == self.last_text:
            return
        if self.live:
            click.echo(
                f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}", err=True, nl=False
            )
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
    line, next_update = (
        ProgressLine(quiet=not can_rewrite_line()),
        time.monotonic() + PROGRESS_DELAY,
    )
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
    """Show on a terminal the running work, its duration and its step, if it takes long. With
    `plain_lines`, a line is printed every 30 seconds if there is no terminal, except in jobs, whose
    logs have no progress."""
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
    """A stream that is also copied to an unbuffered file, since the job may be killed at any
    moment. If the disk is full, only the copy is lost."""

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

    The folder `logs` may come from an unknown source, as with received results. Links to the log
    are therefore not followed.
    """
    job = os.environ.get(JOB_VARIABLE)
    if job:
        _copy_output(Path(job))


def _copy_output(log: Path) -> None:
    copy = (SafePath(log.parent.parent) / "logs" / log.name).open("ab", buffering=0)
    sys.stdout, sys.stderr = (
        CopiedStream(stream.stream if isinstance(stream, CopiedStream) else stream, copy)
        for stream in (sys.stdout, sys.stderr)
    )


@contextmanager
def copy_output_of_model(name: str) -> Iterator[Callable[[str], None]]:
    """Copy the output of the block to the log of one model, `name`.log, if this process is a job of
    several models. Yield a function that prints a note there; elsewhere the result has it."""
    job = os.environ.get(JOB_VARIABLE)
    show_note = make_progress_printer(quiet=not job)
    if not job:
        yield show_note
        return
    streams, log = (sys.stdout, sys.stderr), Path(job).with_name(f"{name}.log")
    _copy_output(log)
    os.environ[JOB_VARIABLE] = str(log)
    try:
        yield show_note
    finally:
        os.environ[JOB_VARIABLE] = job
        sys.stdout, sys.stderr = streams
