"""commodel partition: which rectangle of a matrix each process gets, by how fast it is."""

from pathlib import Path

import click

from commodel.cli._progress import waiting
from commodel.errors import UserError

PATH = click.Path(path_type=Path)


@click.command()
@click.option("--speeds", type=PATH, help="Speeds of each kind of process (YAML).")
@click.option("--measure", is_flag=True, help="Instead: measure on the platform while balancing (dynamic).")
@click.option(
    "--block", type=click.IntRange(1, 4096), default=32, show_default=True, help="Elements a side, to measure."
)
@click.option(
    "--kernel", type=click.Choice(["gemm", "wave"]), default="gemm", show_default=True, help="What is computed."
)
@click.option("--layout", required=True, help="Where processes run, e.g. processes:params/layouts/fermi/M10.csv.")
@click.option("--platform", required=True, help="Platform whose nodes they sit on: a name or a file.")
@click.option("--ranks", type=click.IntRange(1, 1 << 20), help="Processes.  [default: as many as the layout says]")
@click.option("--blocks", type=click.IntRange(1, 1 << 20), help="Side of the matrix in blocks; for wave in cells.")
@click.option(
    "--by",
    type=click.Choice(["geometric", "constant", "dynamic"]),
    default="geometric",
    show_default=True,
    help="geometric: speeds at the share that a process gets; constant: at an even share; dynamic: while measuring.",
)
@click.option(
    "--interpolation",
    type=click.Choice(["piecewise", "akima"]),
    default="piecewise",
    show_default=True,
    help="Between the sizes of the file.",
)
@click.option("--within", default="5%", show_default=True, help="For dynamic: how much two times may differ.")
@click.option("--from", "source", type=PATH, help="Show this partition instead: .xlsx as edited, or .csv.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["table", "json", "csv", "svg", "xlsx"]),
    help="csv: rank,x,y,width,height,speed, for summa:partition=PATH.  [default: as -o ends, else table]",
)
@click.option("-o", "--out", type=PATH, help="File to write.  [default: the screen]")
def partition(
    speeds,
    measure,
    block,
    kernel,
    layout,
    platform,
    ranks,
    blocks,
    by,
    interpolation,
    within,
    source,
    style,
    out,
) -> None:
    """Balance a matrix over processes of different speeds, in rectangles that stand in columns. Sides are whole blocks;
    while it makes the slowest process faster, rows and columns of blocks go from it to others.

    \b
    commodel partition --speeds params/speeds/fermi.yaml --platform fermi --blocks 128 \\
      --layout processes:params/layouts/fermi/M10.csv -o M10.svg
    """
    from commodel.cli._output import chosen_style, emit
    from commodel.cli._partition import (
        STYLES,
        TEXTS,
        Shown,
        measured_out,
        processes,
        received,
        shared_out,
        write_workbook,
    )
    from commodel.units import parse_fraction

    style = chosen_style(style, out, STYLES)
    if (source is None) == (blocks is None):
        raise UserError("give --blocks, or --from a partition that says it")
    if measure == (speeds is not None) or (measure and source):
        raise UserError("give --speeds FILE, or --measure without --from")
    if measure:
        placed, tiling, how = measured_out(kernel, block, layout, platform, ranks, blocks, parse_fraction(within))
    else:
        placed = processes(speeds, kernel, interpolation, layout, platform, ranks)
    if source:
        tiling, how = received(source), f"{source}"
        if tiling.ranks != len(placed.kinds):
            raise UserError(f"found {tiling.ranks} ranks, but the layout has {len(placed.kinds)}", file=source)
    elif not measure:
        with waiting("sharing out"):
            tiling, how = shared_out(placed, blocks, by, parse_fraction(within))
    shown = Shown.of(kernel, how, interpolation, placed, tiling)
    if style == "xlsx":
        write_workbook(shown, out)
    else:
        emit(TEXTS[style](shown), out)
