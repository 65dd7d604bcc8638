"""What verbs print: tables, progress, logs of jobs; and completion of what people type.

Rows as a table for people, or as JSON or CSV for programs.

Progress on long work: one line that is rewritten on a terminal, plain lines elsewhere, nothing with -q.

What a verb says as a job of Snakemake: on the terminal as ever, and in the log of the job too.

What people type: names whatever their case, verbs nearly right, files from where they stand; and what TAB offers.

Names are read off folders, so that TAB imports nothing but the verb.
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, suppress
from pathlib import Path
from typing import IO, TextIO, TypeVar

import click
from click.shell_completion import CompletionItem

from commodel.errors import UserError, near, one_line
from commodel.files.safe_paths import SafePath
from commodel.progress import heard_by
from commodel.registry import list_names
from commodel.sources import HERE, ROOT

Rows = Sequence[Mapping[str, object]]
style_option = click.option(
    "--format", "style", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True, help="Output."
)

commutative_option = click.option(
    "--commutative", is_flag=True, help="Assume that the reductions of all programs commute: more rules."
)
same_types_option = click.option(
    "--same-types", is_flag=True, help="Assume that all ranks describe a message by one datatype: more rules."
)


def chosen_style(asked: str | None, out: Path | None, styles: Sequence[str]) -> str:
    """The one that was asked for, else that in which the file's name ends, else a table."""
    style = asked or (out.suffix[1:] if out and out.suffix[1:] in styles else "table")
    if style == "xlsx" and not out:
        raise UserError("a workbook needs a file: give -o NAME.xlsx")
    return style


def check_workbook(out: Path | None) -> None:
    if out is not None and out.suffix != ".xlsx":
        raise UserError(f"--out: found {out.name}, wanted a name that ends with .xlsx")


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


def show(rows: Rows, style: str) -> None:
    click.echo(
        {"json": lambda: json.dumps(list(rows), indent=1), "csv": lambda: as_csv(rows), "table": lambda: table(rows)}[
            style
        ]()
    )


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


def counted(items: Sequence[Item], what: str) -> Iterator[Item]:
    """The same items. On a terminal, where they take long, a line says how many of them are done."""
    line, due = Line(quiet=not watched()), time.monotonic() + PATIENCE
    try:
        for number, item in enumerate(items):
            if time.monotonic() >= due:
                line.show_progress(f"{what}: {number:,} of {len(items):,}")
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


class Doubled:
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


def keep_what_is_said() -> None:
    """Until this process ends, errors nobody has thought of too. The log lies in a folder `logs` that somebody else may
    have made, such as that of received results: it is reached through no link, and nor is the log."""
    if not (job := os.environ.get(JOB)):
        return
    log = Path(job)
    copy = (SafePath(log.parent.parent) / "logs" / log.name).open("ab", buffering=0)
    sys.stdout, sys.stderr = Doubled(sys.stdout, copy), Doubled(sys.stderr, copy)


PROJECT = ("params/experiments", "params/platforms")  # what makes a folder a project, beside which results lie
PUBLISHED = "params/published/"


def project(start: Path) -> Path:
    """The folder that a verb works in: this one, or the nearest one above it that is a project. A folder above that is
    somebody else's is none, for a project's files name what may run."""
    if any(os.path.isdir(start / name) for name in ("params", "results")):  # False, too, where nobody may look
        return start
    owned = (folder for folder in start.parents if any(os.path.isdir(folder / name) for name in PROJECT))
    return next((folder for folder in owned if folder.stat().st_uid == os.getuid()), start)


def here(ctx: click.Context) -> Path:
    """Where the user stands: -C, or the working folder."""
    return Path(ctx.find_root().params.get("directory") or ".").absolute()


@contextmanager
def standing_in_project(ctx: click.Context) -> Iterator[None]:
    start = here(ctx)
    with chdir(start):
        folder = project(start)
        ctx.obj, ctx.params["directory"] = os.path.relpath(start, folder), None  # whoever asks later stands there
        with chdir(folder):
            yield


def from_here(text: str, ctx: click.Context | None) -> str:
    """A path as the user typed it, seen from the project's folder. Published values may be the installation's."""
    prefix = ctx.find_root().obj if ctx else None
    if prefix and prefix != "." and not os.path.isabs(text):
        return os.path.normpath(os.path.join(prefix, text))
    if text.startswith(PUBLISHED) and not os.path.exists(text) and (ROOT / text).is_file():
        return str(ROOT / text)
    return text


class File(click.Path):
    """A path from where the user stands."""

    def convert(self, value, param, ctx):
        return super().convert(from_here(os.fspath(value), ctx) if value else value, param, ctx)


class Name(click.ParamType):
    """A name, with what belongs to it after a colon; or a file, where a name may be one."""

    name = "text"

    def __init__(self, names: Callable[[click.Context], Iterable[str]]):
        self.names = names

    def convert(self, value, param, ctx):
        head, colon, rest = value.partition(":")
        if head in ("file", "processes") and rest:
            return f"{head}:{from_here(rest, ctx)}"
        if "/" in value or value.endswith((".yaml", ".yml", ".xlsx")):
            return from_here(value, ctx)
        known = {name.lower(): name for name in self.names(ctx)} if ctx and head.lower() != head else {}
        return known.get(head.lower(), head) + colon + rest

    def shell_complete(self, ctx, param, incomplete):
        return [CompletionItem(name) for name in sorted(self.names(ctx)) if name.startswith(incomplete.lower())]


def stems(folder: str) -> list[str]:
    """Return the names of the entries of a registry with one file an entry."""
    return [path.stem.replace("_", "-") for path in (HERE / folder).glob("[a-z]*.py")]


def files(kind: str) -> Callable[[click.Context], list[str]]:
    return lambda ctx: [path.stem for path in project(here(ctx)).glob(f"params/{kind}/*.yaml")]


def campaigns(ctx: click.Context) -> list[str]:
    finished = (path.parent.name for path in project(here(ctx)).glob("results/*/plan.json"))
    return [*{*files("experiments")(ctx), *finished}]


def profiles(ctx: click.Context) -> list[str]:
    places = (project(here(ctx)), ROOT)
    names = {path.parent.name for place in places for path in place.glob("profiles/*/config.yaml")}
    return [name for name in names if name != "default"]


def choices(ctx: click.Context) -> list[str]:
    """Algorithms of the operation that is given, or of all."""
    given = ctx.params.get("operation") or ctx.params.get("operations") or ""
    heads = [given] if isinstance(given, str) else given
    operations = [head.partition(":")[0] for head in heads if head]
    known = list_names("patterns.algorithms", "ALGORITHM")
    return list(dict.fromkeys(choice for operation, choice in known if operation in operations or not operations))


def names_of(folder: str, constant: str) -> Callable[..., list[str]]:
    return lambda ctx=None: [name for name, *_ in list_names(folder, constant)]


operation_names = names_of("patterns.operations", "OPERATION")
topology_names = names_of("patterns.trees.topologies", "TOPOLOGY")
OPERATIONS, TOPOLOGIES = Name(operation_names), Name(topology_names)
LAYOUTS, FAMILIES = Name(names_of("patterns.layouts", "LAYOUT")), Name(lambda ctx: stems("models/families"))
PLATFORMS, EXPERIMENTS = Name(files("platforms")), Name(campaigns)
KNOWN = {  # by what a parameter of a verb is called
    "experiment": EXPERIMENTS,
    "platform": PLATFORMS,
    "profile": Name(profiles),
    "family": FAMILIES,
    "families": Name(lambda ctx: [*stems("models/families"), "all"]),
    "operation": OPERATIONS,
    "operations": OPERATIONS,
    "algorithm": Name(choices),
    "topology": TOPOLOGIES,
    "layout": LAYOUTS,
    "layouts": LAYOUTS,
    "partition": File(),
}
OF_VERBS = {
    ("families", "name"): FAMILIES,
    ("topology", "spec"): TOPOLOGIES,
    ("mrnet", "spec"): TOPOLOGIES,
    ("layout", "spec"): LAYOUTS,
    ("run", "experiment"): Name(files("experiments")),
    ("plan", "experiment"): Name(files("experiments")),
    ("run", "only"): PLATFORMS,
    ("plan", "only"): PLATFORMS,
    ("advise", "only"): Name(lambda ctx: [*choices(ctx), *topology_names()]),
}


def understood(command: click.Command) -> click.Command:
    """The verb, with names, files and choices read as people type them."""
    for parameter in command.params:
        kind = OF_VERBS.get((command.name, parameter.name)) or KNOWN.get(parameter.name)
        if type(parameter.type) is click.Path:
            parameter.type = File(path_type=parameter.type.type)
        elif kind and isinstance(parameter.type, click.types.StringParamType):
            parameter.type = kind
        elif isinstance(parameter.type, click.Choice):
            parameter.type.case_sensitive = False
    for part in getattr(command, "commands", {}).values():
        understood(part)
    return command


class Forgiving(click.Group):
    """Commands whatever their case; of one that is not there the nearest name."""

    def resolve_command(self, ctx, args):
        names = self.list_commands(ctx)
        if args and args[0].lower() in names:
            args = [args[0].lower(), *args[1:]]
        elif args and not args[0].startswith("-"):
            meant = near(args[0], names)
            ctx.fail(f"No such command '{one_line(args[0], 60)}'." + (f" Did you mean '{meant}'?" if meant else ""))
        return super().resolve_command(ctx, args)


def pattern_options(command: Callable) -> Callable:
    """Add the options that name patterns to a command."""
    options = (
        click.option("--operation", help=f"{', '.join(sorted(operation_names()))}, or file:PATH."),
        click.option("--algorithm", multiple=True, help="How it is done; may be repeated. Left out: every algorithm."),
        click.option("--topology", multiple=True, help="Over which tree, e.g. balanced:4x4; may be repeated."),
        click.option("--ranks", help="Number of ranks: 16, or 2,4,8, or 2:64:*2. A topology brings its own."),
        click.option("--bytes", "sizes", help="Message size: 1KiB, or 8,1KiB, or 1:1MiB:*4."),
        click.option("--layout", help="Such as cyclic:2, 2 ranks a node; default one rank a node."),
    )
    for option in reversed(options):
        command = option(command)
    return command
