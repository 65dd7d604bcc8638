"""commodel import: what other tools measured or fitted, as files of commodel."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commodel.cli._output import as_csv
from commodel.registry import discover
from commodel.units import parse_count

if TYPE_CHECKING:
    from commodel.interchange import Format
    from commodel.parameters import ParameterSet

FILE = click.argument("file", type=click.Path(path_type=Path))
TABLE = click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="Table (CSV) to write.")
SET = click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="Parameter set (YAML) to write.")
ASKED = {
    "algorithm": click.option("--algorithm", default="", help="Which algorithm it was, where the file does not say."),
    "ranks": click.option("--ranks", help="How many ranks, where the file does not say."),
    "layout": click.option("--layout", default="", help="Such as block:2, where the file does not say."),
    "operation": click.option("--operation", default="", help="What was measured; pingpong: round trips, halved."),
    "columns": click.option(
        "--column", "columns", multiple=True, metavar="NAME=COLUMN[:UNIT]", help="E.g. seconds=time:us."
    ),
}


@click.group(name="import")
def import_() -> None:
    """Read files of other tools: measured times, ready for `commodel fit --points`, or parameter sets.

    Half a round trip becomes a linear broadcast over two ranks, which is one message. Where the tool leaves the
    algorithm to the MPI library, it is called `library`: such rows are not fitted.
    """


def _table(entry: Format) -> click.Command:
    from commodel.files.atomic import write_text
    from commodel.interchange import Given, left_out, read_times

    @click.command(name=entry.name, help=f"Times of {entry.title}.")
    @click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
    @TABLE
    def command(files, out: Path, ranks: str | None, **given) -> None:
        imported = read_times(entry, files, Given(**given, ranks=parse_count(ranks, 2) if ranks else 0))
        write_text(out, as_csv([asdict(time) for time in imported.times]) + "\n")
        operations = ", ".join(dict.fromkeys(time.operation for time in imported.times))
        statistics = ", ".join(dict.fromkeys(time.statistic for time in imported.times))
        click.echo(f"{out}: {len(imported.times)} times of {operations} ({statistics})")
        if imported.left_out:
            click.echo(f"commodel: left out what cannot be used: {left_out(imported)}", err=True)

    for name in reversed(("algorithm", "ranks", "layout", *entry.asks)):
        command = ASKED[name](command)
    return command


for entry in discover("interchange", "FORMAT").values():
    if entry.times:
        import_.add_command(_table(entry))


@import_.command(name="taulop")
@click.argument("folder", type=click.Path(path_type=Path))
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


def _write(out: Path, parameters: ParameterSet) -> None:
    from commodel.files.sets import write_parameters

    write_parameters(out, parameters)
    click.echo(f"{out}: {len(parameters.values)} values of {parameters.platform}, {parameters.source}")
