"""commodel kernel: what a data-parallel kernel's communication costs under all families, side by side."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from commodel.cli._byhand import SET_HELP
from commodel.cli._output import Forgiving, waiting
from commodel.errors import UserError

PATH = click.Path(path_type=Path)
STYLES = ("table", "json", "csv", "xlsx")


def kernel_options(unit: str, size: str) -> Callable:
    options = (
        click.option("--platform", help="Platform whose nodes the processes sit on: a name or a file."),
        click.option("--layout", help="Where they sit, e.g. processes:params/layouts/fermi/M10.csv.  [default: block]"),
        click.option("--blocks", "side", help=f"Side of the square, in {unit}s.  [default: the partition's]"),
        click.option("--partition", help="CSV of rank,x,y,width,height.  [default: an even grid]"),
        click.option("--grid", help="Rows x columns of processes, e.g. 4x2.  [default: as square as can be]"),
        click.option("--ranks", help="Processes.  [default: those of the partition, the grid or the layout]"),
        click.option("--bytes", "size", default=size, show_default=True, help=f"Size of one {unit}."),
        click.option("--params", type=PATH, multiple=True, help="Parameter sets, or a folder of them; repeated."),
        click.option("--experiment", help="Whose fitted values to take.  [default: the last one on that platform]"),
        click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help=SET_HELP),
        click.option("--format", "style", type=click.Choice(STYLES), help="[default: as -o ends, else table]"),
        click.option("-o", "--out", type=PATH, help="File to write.  [default: the screen]"),
    )

    def with_options(command: Callable) -> Callable:
        for option in reversed(options):
            command = option(command)
        return command

    return with_options


@click.group(cls=Forgiving)
def kernel() -> None:
    """Price the communication of SUMMA or of the wave equation under every family at once.

    \b
    commodel kernel summa --platform fermi --params results/fermi/fitted/fermi --blocks 256 \\
      --layout processes:params/layouts/fermi/M10.csv --partition params/partitions/fermi/summa-256/M10.csv

    Of hloggp, loggph and mlognp there is a second row, by the rules that the τ–Lop paper has for
    kernels: sums of messages, each as if alone.
    """


@kernel.command()
@kernel_options("block", "8KiB")
@click.option("--iteration", help="This one alone, from 0.  [default: all, and which are the dearest]")
@click.option("--overlapped", is_flag=True, help="Panels are sent while processes multiply: what that does not hide.")
@click.option(
    "--speeds", type=PATH, help="For --overlapped: how fast processes multiply (YAML).  [default: as --partition]"
)
def summa(iteration: str | None, overlapped: bool, speeds: Path | None, **options) -> None:
    """C = A·B: all iterations, each begun by all processes at once."""
    if speeds and not overlapped:
        raise UserError("--speeds: only --overlapped asks how long processes compute; leave it out")
    answer("summa", {"iteration": iteration, "overlapped": "yes" if overlapped else None}, speeds=speeds, **options)


@kernel.command()
@kernel_options("cell", "8")
def wave2d(**options) -> None:
    """An iteration of the wave equation: the sides of every rectangle, all at once."""
    answer("wave2d", {}, **options)


def answer(
    name,
    named,
    platform,
    layout,
    side,
    partition,
    grid,
    ranks,
    size,
    params,
    experiment,
    settings,
    style,
    out,
    speeds=None,
):
    from commodel.advice.evidence import what_if
    from commodel.cli._advise import evidence_of
    from commodel.cli._kernel import Priced, at_speeds, files_of, write_kernel_tables
    from commodel.cli._output import chosen_style
    from commodel.patterns.points import make_point
    from commodel.units import parse_bytes, parse_count

    style = chosen_style(style, out, STYLES)
    evidence = what_if(evidence_of(files_of(params), platform, experiment), settings)
    given = {"n": side, "grid": grid, "partition": partition} | named
    operation = ":".join([name, *(f"{key}={value}" for key, value in given.items() if value is not None)])
    combination = {"operation": operation, "algorithm": "paper", "bytes": parse_bytes(size)}
    combination |= {"layout": layout} if layout else {}
    combination |= {"ranks": parse_count(ranks)} if ranks else {}
    point = make_point(evidence.setting, combination)
    with at_speeds(point, speeds, evidence.setting) as (at_their_speeds, declared), waiting("pricing"):
        priced = Priced.of(at_their_speeds, evidence)
    write_kernel_tables(replace(priced, point=point, simulated=priced.simulated or declared), style, out)
