"""Progress on long work: one line that is rewritten on a terminal, plain lines elsewhere, nothing with -q."""

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import click

from commodel.progress import heard_by

BETWEEN_LINES = 30.0  # seconds between two lines that nobody may be reading
PATIENCE = 2.0  # seconds that nobody wants to be told about
PATIENCE_ALOUD = 5.0  # the same where a line stays
REFRESH = 0.2
JOB = "COMMODEL_JOB"  # environment: a job of Snakemake, which tells itself what it does, and may run several at once
Item = TypeVar("Item")


def watched() -> bool:
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
        self.quiet, self.live = quiet, watched()
        self.shown, self.when = "", 0.0

    def show(self, text: str) -> None:
        if self.quiet or text == self.shown:
            return
        if self.live:
            click.echo(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}", file=sys.stderr, nl=False)
        elif time.monotonic() - self.when >= BETWEEN_LINES or not self.when:
            click.echo(text, file=sys.stderr)
        else:
            return
        self.shown, self.when = text, time.monotonic()

    def above(self, text: str) -> None:
        """A line that stays. The last line comes back when it is next shown."""
        self.clear()
        click.echo(text, file=sys.stderr)

    def clear(self) -> None:
        if self.live and self.shown:
            click.echo("\r\x1b[K", file=sys.stderr, nl=False)
            self.shown = ""


def counted(items: Sequence[Item], what: str) -> Iterator[Item]:
    """The same items. On a terminal, where they take long, a line says how many of them are done."""
    line, due = Line(quiet=not watched()), time.monotonic() + PATIENCE
    try:
        for number, item in enumerate(items):
            if time.monotonic() >= due:
                line.show(f"{what}: {number:,} of {len(items):,}")
                due = time.monotonic() + REFRESH
            yield item
    finally:
        line.clear()


@contextmanager
def waiting(what: str, aloud: bool = False) -> Iterator[None]:
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
            line.show(f"{what}: {time.monotonic() - begun:.0f} s{texts[0]}")

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        with heard_by(listen):
            yield
    finally:
        done.set()
        thread.join()
        line.clear()
