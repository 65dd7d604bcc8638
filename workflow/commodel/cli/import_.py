"""commodel import: what other tools measured, fitted or wrote down, as files of commodel."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commodel.cli._options import PATH, ForgivingGroup, adapt_parameters
from commodel.cli._output import as_csv, show_waiting
from commodel.registry import lookup
from commodel.units import format_seconds, parse_count

if TYPE_CHECKING:
    from commodel.interchange import Format
    from commodel.parameters import ParameterSet

TIMES = ("csv", "imb", "mpiblib", "osu", "pico", "reprompi", "skampi")  # formats of tables of times
FILE = click.argument("file", type=PATH)
TABLE = click.option("-o", "--out", type=PATH, required=True, help="Table (CSV) to write.")
SET = click.option("-o", "--out", type=PATH, required=True, help="Parameter set (YAML) to write.")
OPTIONS = {
    "algorithm": click.option("--algorithm", default="", help="Which algorithm it was, where the file does not say."),
    "ranks": click.option("--ranks", help="How many ranks, where the file does not say."),
    "layout": click.option("--layout", default="", help="Such as block:2, where the file does not say."),
    "metadata": click.option(
        "--metadata", default="", metavar="FILE", help="SYSTEM_metadata.csv of a run; default where PICO puts it."
    ),
    "operation": click.option("--operation", default="", help="What was measured; pingpong: round trips, halved."),
    "columns": click.option(
        "--column", "columns", multiple=True, metavar="NAME=COLUMN[:UNIT]", help="E.g. seconds=time:us."
    ),
}


class Formats(ForgivingGroup):
    """Of a table's format nothing is read but its file, and only when it is asked for: TAB is to be quick."""

    def list_commands(self, ctx: click.Context | None) -> list[str]:
        return sorted([*TIMES, *self.commands])

    def get_command(self, ctx: click.Context | None, name: str) -> click.Command | None:
        if name in TIMES and name not in self.commands:
            self.add_command(adapt_parameters(_table(lookup("interchange", "FORMAT", name))))
        return super().get_command(ctx, name)


@click.group(name="import", cls=Formats)
def import_() -> None:
    """Read files of other tools: measured times, ready for `commodel fit --points`, parameter sets, or patterns.

    Half a round trip becomes a linear broadcast over two ranks, which is one message. Where the tool leaves the
    algorithm to the MPI library, it is called `library`: such rows are not fitted.
    """


def _table(entry: Format) -> click.Command:
    @click.command(name=entry.name, help=f"Times of {entry.title}.")
    @click.argument("files", nargs=-1, required=True, type=PATH)
    @TABLE
    def command(files, out: Path, ranks: str | None, **given) -> None:
        from commodel.files.atomic import write_text
        from commodel.interchange import Given, left_out, read_times

        options = Given(**given, ranks=parse_count(ranks, 2) if ranks else 0)
        with show_waiting("reading"):
            imported = read_times(entry, files, options)
        write_text(out, as_csv([asdict(time) for time in imported.times]) + "\n")
        operations = ", ".join(dict.fromkeys(time.operation for time in imported.times))
        kinds = dict.fromkeys(time.statistic for time in imported.times)
        statistics = ", ".join("mean or median not known" if name == "unknown" else name for name in kinds)
        click.echo(f"{out}: {len(imported.times)} times of {operations} ({statistics})")
        for remark in imported.remarks:
            click.echo(f"commodel: {remark}", err=True)
        if imported.left_out:
            click.echo(f"commodel: left out what cannot be used: {left_out(imported)}", err=True)

    for name in reversed(("algorithm", "ranks", "layout", *entry.asks)):
        command = OPTIONS[name](command)
    return command


@import_.command(name="taulop")
@click.argument("folder", type=PATH)
@click.option("--network", default="", help="Which network's table: IB, TCP, …; default IB, else the first there is.")
@SET
def tau_lop(folder: Path, network: str, out: Path) -> None:
    """The parameter tables of the τ–Lop tools: SHM.txt, IB.txt or TCP.txt, gamma.txt."""
    from commodel.interchange import taulop

    _write(out, taulop.read(folder, network))


@import_.command(name="netgauge")
@FILE
@SET
def net_gauge(file: Path, out: Path) -> None:
    """LogGP parameters that Netgauge printed or wrote: L without overheads, g and G of the largest size."""
    from commodel.interchange import netgauge

    _write(out, netgauge.parameters(file))


@import_.command(name="goal")
@FILE
@click.option("--unit", type=click.Choice(["ns", "ps"]), help="Unit of calc; default what the file says, else ns.")
@click.option("-o", "--out", type=PATH, required=True, help="Table of messages (CSV) to write.")
def from_goal(file: Path, unit: str | None, out: Path) -> None:
    """A pattern in GOAL, text or binary, as the table that `commodel schedule` prints and --operation file:PATH takes
    (which takes GOAL files as they are, too).

    Every rank's needs become its steps. What overlaps in GOAL still does:

    \b
    - A rank waits for a message just before the first task that requires it, at the end where none does.
    - A rank has one processor: tasks that GOAL leaves in no order take turns, whatever their cpu and nic.
    - Messages of a pair and tag match in the order in which they are posted, as far as it does not depend on times;
      otherwise in that of the file. A receive from any rank, or of any tag, is refused where messages of several
      ranks, or of several tags, match it.
    - A rank may send to itself.
    - A message has the bytes that its send says.
    """
    from commodel.files.atomic import write_text
    from commodel.patterns import written
    from commodel.patterns.schedule_files import csv

    with show_waiting(f"reading {file.name}"):
        tasks, schedule = written.from_goal(file, unit)
        write_text(out, csv(schedule) + "\n")
    work = format_seconds(float(schedule.work.seconds.sum()))
    click.echo(f"{out}: {len(schedule.src)} messages of {schedule.ranks} ranks, {work} of work")
    if not (unit or tasks.unit_is_said) and len(schedule.work.step):
        click.echo("commodel: one unit of calc counts as 1 ns, the file does not say; else give --unit ps", err=True)
    if tasks.elsewhere:
        text = f"{tasks.elsewhere} tasks are for a second cpu or nic; here a rank has one of each"
        click.echo(f"commodel: {text}", err=True)


def _write(out: Path, parameters: ParameterSet) -> None:
    from commodel.files.parameter_sets import write_parameters

    write_parameters(out, parameters)
    click.echo(f"{out}: {len(parameters.values)} values of {parameters.platform}, {parameters.source}")
