"""commodel import: read measured times, parameters and patterns of other tools."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commodel.cli._help import VerbCommand, VerbGroup, make_option_group
from commodel.cli._options import (
    PATH,
    STATISTIC,
    adapt_parameters,
    out_option,
    style_option,
    verbose_option,
)
from commodel.cli._output import print_rows, show_waiting
from commodel.errors import UserError
from commodel.extensions import list_names_in_text, list_subcommands
from commodel.registry import lookup
from commodel.units import format_seconds, parse_count

if TYPE_CHECKING:
    from commodel.interchange import Format

# Formats of tables of times.
TIME_FORMATS = ("csv", "imb", "osu")
TABLE_OPTION = out_option("Table of times (CSV) to write.", required=True)
OPTIONS = {
    "algorithm": click.option(
        "--algorithm", default="", help="Algorithm, if the file does not name it."
    ),
    "ranks": click.option(
        "--ranks",
        multiple=True,
        help="Number of ranks, if neither the file nor its name has it; repeated, one a file.",
    ),
    "layout": click.option(
        "--layout", default="", help="Layout, e.g. block:2, if the file does not name it."
    ),
    "metadata": click.option(
        "--metadata",
        default="",
        metavar="FILE",
        help="SYSTEM_metadata.csv of the run.  [default: beside the file or a folder above]",
    ),
    "operation": click.option(
        "--operation", default="", help="Operation measured; pingpong halves round trips."
    ),
    "statistic": click.option(
        "--statistic",
        type=STATISTIC,
        help="Statistic of all times, if the file does not name it.",
    ),
    "columns": click.option(
        "--column",
        "columns",
        multiple=True,
        metavar="NAME=COLUMN[:UNIT]",
        help="Column to read, e.g. seconds=time:us; repeated.",
    ),
}


class Formats(VerbGroup):
    """Imports the module of a format only when the format is called, so that TAB is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*_list_time_formats(), *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        # A format of parameter sets has a command of its own.
        known = {*self.commands, *list_subcommands("import")}
        if name in _list_time_formats() and name not in known:
            self.add_command(
                adapt_parameters(_make_time_command(lookup("interchange", "FORMAT", name)))
            )
        return super().get_command(ctx, name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Take the name of a folder, or a path, for `folder FOLDER`."""
        is_format = bool(args) and args[0].lower() in self.list_commands(ctx)
        if args and not is_format and (Path(args[0]).is_dir() or "/" in args[0]):
            args = ["folder", *args]
        return super().resolve_command(ctx, args)


@click.group(
    name="import",
    cls=Formats,
    examples=(
        "commodel import osu-results --out imported",
        "commodel import osu osu_bcast.txt --ranks 16 -o osu.csv",
    ),
)
def import_() -> None:
    """Read files of other tools."""


def _list_time_formats() -> list[str]:
    """Return the names of the formats of times, those of extensions too."""
    return [*TIME_FORMATS, *(name for name, *_ in list_names_in_text("FORMAT"))]


def _require_files(name: str, files: Sequence[Path]) -> None:
    """Refuse a format without a file. The user may mean a folder of that name."""
    if files:
        return
    folder = f"; the folder is read by: commodel import ./{name}" if Path(name).is_dir() else ""
    raise UserError(f"import {name}: found no file, wanted the files to read{folder}")


def _make_time_command(file_format: Format) -> click.Command:
    pattern_options = [OPTIONS[name] for name in file_format.options]

    @click.command(
        name=file_format.name,
        cls=VerbCommand,
        help=f"Read times of {file_format.title} into a table for fit table.",
        examples=[
            f"commodel import {file_format.name} {arguments}" for arguments in file_format.examples
        ],
    )
    @click.argument("files", nargs=-1, metavar="FILES...", type=PATH)
    @make_option_group("Times to read", *pattern_options)
    @make_option_group("Output", TABLE_OPTION)
    def command(files, out: Path, ranks: tuple[str, ...] = (), **properties) -> None:
        from commodel.api.imports import import_times
        from commodel.interchange import StatedProperties

        _require_files(file_format.name, files)
        counts = [parse_count(text, 2) for text in ranks]
        with show_waiting("reading"):
            imported = import_times(file_format, files, StatedProperties(**properties), counts)
        imported.to_csv(out)
        click.echo(f"{out}: {imported.sentence}")
        for note in imported.notes:
            click.echo(f"commodel: {note}", err=True)

    return command


@import_.command(
    name="folder",
    examples=(
        "commodel import folder osu-results --out imported",
        "commodel import folder osu-results --ranks-per-node 56 --out imported/table.csv",
    ),
)
@click.argument("folder", type=PATH)
@make_option_group(
    "What neither files nor names state",
    click.option("--ranks", help="Number of ranks."),
    click.option("--ranks-per-node", help="Number of ranks per node."),
    click.option("--library", default="", help="MPI library and version, e.g. 'Open MPI 5.0.3'."),
    click.option("--setting", default="", help="Name of the circumstances of the measurements."),
    click.option(
        "--statistic",
        type=STATISTIC,
        help="Which ranks the times of CSV tables are of, if they do not state it.",
    ),
)
@make_option_group(
    "Output",
    click.option(
        "-o",
        "--out",
        type=PATH,
        default=Path("imported"),
        show_default=True,
        help="Table of a platform to which times are appended; or a folder for its table.csv.",
    ),
    style_option,
    verbose_option,
)
def from_folder(
    folder: Path,
    ranks: str | None,
    ranks_per_node: str | None,
    library: str,
    setting: str,
    statistic: str | None,
    out: Path,
    style: str,
    verbose: bool,
) -> None:
    """Read all measurements in a folder, of any format, into the table of a platform."""
    from commodel.api.imports import import_folder

    with show_waiting("reading", plain_lines=True):
        imported = import_folder(
            folder,
            out,
            ranks=parse_count(ranks, 2) if ranks else 0,
            ranks_per_node=parse_count(ranks_per_node) if ranks_per_node else 0,
            library=library,
            setting=setting,
            statistic=statistic,
        )
    if style == "table":
        click.echo(imported.text(verbose))
    else:
        print_rows(imported.rows, style)
    if not imported.table.rows:
        raise UserError("found no measured time", file=folder)


@import_.command(
    name="goal",
    examples=(
        "commodel import goal trace.goal -o trace.csv",
        "commodel import goal trace.bin --unit ps -o trace.csv",
    ),
)
@click.argument("file", type=PATH)
@make_option_group(
    "Units",
    click.option(
        "--unit",
        type=click.Choice(["ns", "ps"]),
        help="Unit of calc in GOAL.  [default: of the file, or ns]",
    ),
)
@make_option_group("Output", out_option("Table of messages (CSV) to write.", required=True))
def from_goal(file: Path, unit: str | None, out: Path) -> None:
    """Read a pattern in GOAL, text or binary, into a table of messages."""
    from commodel.files.atomic import write_text
    from commodel.patterns import pattern_files
    from commodel.patterns.schedule_files import format_csv

    with show_waiting(f"reading {file.name}"):
        tasks, schedule = pattern_files.read_goal(file, unit)
        write_text(out, format_csv(schedule) + "\n")
    work = format_seconds(float(schedule.work.seconds.sum()))
    click.echo(f"{out}: {len(schedule.src)} messages of {schedule.ranks} ranks, {work} of work")
    if not (unit or tasks.unit_is_stated) and len(schedule.work.step):
        click.echo(
            "commodel: the file has no unit of calc, so 1 ns is assumed; give --unit ps for picoseconds",
            err=True,
        )
    if tasks.other_units:
        text = f"{tasks.other_units} tasks are for a second cpu or nic; here a rank has one of each"
        click.echo(f"commodel: {text}", err=True)
