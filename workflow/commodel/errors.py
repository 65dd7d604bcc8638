"""Errors that a user can cause (`UserError`): one line for each mistake, and exit code 2. Errors of
the program that stop one model only (`describe_error`)."""

import difflib
import os
import textwrap
import traceback
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import PurePath
from typing import IO, Protocol

import click

MAX_SHOWN_MISTAKES = 10  # mistakes of one file


class PathInFolder(Protocol):
    """A path that is no os.PathLike, such as SafePath; its text names the file."""

    @property
    def parts(self) -> tuple[str, ...]: ...


FileName = str | PurePath | PathInFolder  # as errors print it


class UserError(click.ClickException):
    """A mistake in the user's input: its place, the value found, and the wanted one."""

    exit_code = 2
    further_errors: tuple["UserError", ...] = ()  # further mistakes of the same file
    uncounted = 0  # number of further mistakes, which are not stored

    def __init__(
        self, message: str, *, file: FileName | None = None, line: int | None = None, key: str = ""
    ) -> None:
        self.file, self.key, self.found = file, key, message
        location = ":".join(str(part) for part in (file, line) if part is not None)
        super().__init__(
            ": ".join(make_printable(part) for part in (location, key, message) if part)
        )

    def show(self, file: IO[str] | None = None) -> None:
        for line in self.lines():
            click.echo(f"commodel: {line}", file=file, err=True)

    def lines(self) -> list[str]:
        """Return a line for each mistake, at most ten, then the number of further mistakes."""
        shown = [self, *self.further_errors][:MAX_SHOWN_MISTAKES]
        hidden = 1 + len(self.further_errors) + self.uncounted - len(shown)
        hidden_line = (
            [f"and {hidden} more mistake{'s' * (hidden > 1)} in this file"] if hidden else []
        )
        return [error.format_message() for error in shown] + hidden_line


@contextmanager
def locate_mistakes(file: FileName | None = None, key: str = "") -> Iterator[None]:
    """Add the file, or the key, to an error of the block."""
    try:
        yield
    except UserError as error:
        raise UserError(error.message, file=file, key=key) from None


class Mistakes:
    """The mistakes in one file: the first ten are stored, the others are counted, and one error
    reports them all."""

    def __init__(self) -> None:
        self.errors: list[UserError] = []
        self.count = 0

    def add(self, error: UserError) -> None:
        self.count += 1
        if len(self.errors) < MAX_SHOWN_MISTAKES:
            self.errors.append(error)

    def raise_any(self) -> None:
        if self.errors:
            first, *further = self.errors
            first.further_errors, first.uncounted = tuple(further), self.count - len(self.errors)
            raise first


JOB_VARIABLE = "COMMODEL_JOB"  # environment of a Snakemake job: its log file
PROGRAM_ERROR = "error of the program"  # begin of the description


def describe_error(error: Exception) -> str:
    """Return why a model has no fit or no prediction, in one line. For an error that no user can
    cause, the traceback is printed once, and the line names the log of this job."""
    if isinstance(error, UserError):
        return error.message
    log = os.environ.get(JOB_VARIABLE, "")
    where = f"; log: {log}" if log else ""
    _print_indented("".join(traceback.format_exception(error)), log)
    return make_printable(f"{PROGRAM_ERROR}: {type(error).__name__}: {error}{where}")


def is_program_error(reason: str) -> bool:
    """Return whether a reason of `describe_error` is an error of the program."""
    return reason.startswith(PROGRAM_ERROR)


@lru_cache(maxsize=256)
def _print_indented(text: str, log: str) -> None:
    """Print a traceback, once to each log. `commodel run` shows lines that begin like one, and this
    error does not end the run."""
    click.echo(textwrap.indent(text.rstrip(), "  "), err=True)


def make_printable(text: object, limit: int = 400) -> str:
    """Return a text from an unknown source, safe to print: without line breaks and control
    characters, and of limited length."""
    printable = str(text)
    if not printable.isprintable():
        printable = "".join(char if char.isprintable() else " " for char in printable)
    return printable if len(printable) <= limit else printable[: limit - 1] + "…"


def find_similar_name(found: str, wanted: Iterable[str]) -> str:
    """Return the name that the user probably meant, ignoring case; empty if none is similar."""
    spellings = {name.lower(): name for name in wanted}
    nearest = difflib.get_close_matches(found.lower(), spellings, n=1, cutoff=0.6)
    return spellings[nearest[0]] if nearest else ""


def suggest_name(found: str, wanted: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the nearest name, else all names."""
    wanted = list(wanted)
    meant = find_similar_name(found, wanted)
    return f"did you mean '{meant}'?" if meant else f"wanted one of: {', '.join(sorted(wanted))}"


def check_option_names(options: Iterable[str], wanted: Collection[str], where: str) -> None:
    """Raise an error for the first option of a call, such as `show schedule`, that is not among the
    wanted ones."""
    for name in options:
        if name not in wanted:
            raise UserError(f"{where}: found '{name}'; {suggest_name(name, wanted)}")
