"""commodel speeds: measure how fast each kind of process runs a kernel, at sizes chosen where the speed bends."""

from dataclasses import replace
from pathlib import Path

import click

from commodel.errors import UserError

PATH = click.Path(path_type=Path)


@click.command()
@click.option("--layout", required=True, help="Processes that compute at the same time, e.g. processes:PATH.")
@click.option("--platform", default="local", show_default=True, help="Where they run: a name or a file.")
@click.option("--ranks", type=click.IntRange(1, 1 << 20), help="Processes.  [default: as many as the layout says]")
@click.option(
    "--kernel", type=click.Choice(["gemm", "wave"]), default="gemm", show_default=True, help="What is computed."
)
@click.option("--block", type=click.IntRange(1, 4096), default=32, show_default=True, help="Elements a side, for gemm.")
@click.option("--sizes", default="16:4096", show_default=True, help="Smallest and largest area, in blocks or cells.")
@click.option("--within", default="5%", show_default=True, help="How far the curve may be off a straight line.")
@click.option("--most", type=click.IntRange(1, 1000), default=20, show_default=True, help="Sizes of each kind.")
@click.option("--seconds", type=click.FloatRange(0.01, 3600), default=0.5, show_default=True, help="For each size.")
@click.option("--precision", default="2%", show_default=True, help="Of the median's 95 % interval.")
@click.option("-o", "--out", type=PATH, required=True, help="File of speeds; other kernels and kinds in it are kept.")
def speeds(layout, platform, ranks, kernel, block, sizes, within, most, seconds, precision, out) -> None:
    """Build functional performance models: the speed of each kind of process over the size of its share.

    All processes of the layout compute at once, since they share memory; of each kind one is timed.
    `commodel partition` reads the file.

    \b
    commodel speeds --layout processes:mine.csv --kernel gemm --sizes 16:4096 -o mine.yaml
    """
    from commodel.cli._output import table
    from commodel.cli._speeds import SETTINGS, kept_beside, measured, two_sizes
    from commodel.measure.speeds import Kernel
    from commodel.models.speeds import write_speeds
    from commodel.plan.config import find
    from commodel.units import parse_fraction

    speeds = kept_beside(out, find("platform", platform).stem)
    computed = Kernel(kernel, block if kernel == "gemm" else 1)
    if kernel in speeds.kernels and speeds.kernels[kernel].block != computed.block:
        raise UserError(f"found speeds of blocks of {speeds.kernels[kernel].block}, wanted those of {block}", file=out)
    settings = replace(SETTINGS, precision=parse_fraction(precision), seconds=seconds)
    rows = measured(layout, platform, ranks, computed, two_sizes(sizes), parse_fraction(within), most, settings)
    write_speeds(out, speeds.joined(kernel, computed.block, rows))
    names = ("size", "speed", "low", "high")
    shown = [{"kind": kind, **dict(zip(names, row, strict=True))} for kind in rows for row in rows[kind]]
    click.echo(f"{table(shown)}\n\n{out}: {len(shown)} speeds of {kernel}")
