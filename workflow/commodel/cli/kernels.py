"""commodel partition."""

from __future__ import annotations

import click

from commodel.cli._help import Verb, make_option_group
from commodel.cli._options import PATH, choose_style, out_option, process_count_option
from commodel.cli._output import make_progress_printer, show_waiting, write_or_print
from commodel.errors import UserError, locate_mistakes
from commodel.units import parse_fraction

PARTITION_STYLES = ("table", "json", "csv", "xlsx", "svg")


@click.command(
    cls=Verb,
    examples=(
        (
            "commodel partition --speeds params/speeds/fermi.yaml --platform fermi --blocks 128 "
            "--layout processes:params/layouts/fermi/M10.csv -o M10.svg"
        ),
        (
            "commodel partition --speeds params/speeds/fermi.yaml --platform fermi "
            "--layout processes:params/layouts/fermi/M10.csv --from params/partitions/fermi/summa-256/M10.csv"
        ),
    ),
)
@make_option_group(
    "Partition",
    click.option("--kernel", type=click.Choice(["gemm", "wave"]), default="gemm", show_default=True, help="Kernel."),
    click.option("--blocks", type=click.IntRange(1, 1 << 20), help="Side of the matrix in blocks; for wave in cells."),
    click.option("--from", "source", type=PATH, help="Show this partition instead: .xlsx as edited, or .csv."),
)
@make_option_group(
    "Processes",
    click.option("--layout", required=True, help="Processes, e.g. processes:params/layouts/fermi/M10.csv."),
    click.option("--platform", required=True, help="Platform of the processes: a name or a file."),
    process_count_option,
)
@make_option_group(
    "Speeds",
    click.option("--speeds", type=PATH, help="Speeds of each kind of process (YAML), by measure speeds."),
    click.option("--measure", is_flag=True, help="Measure on the platform while balancing instead (dynamic)."),
    click.option(
        "--block",
        type=click.IntRange(1, 4096),
        default=32,
        show_default=True,
        help="Elements of a block's side, for --measure.",
    ),
    click.option(
        "--within",
        metavar="FRACTION",
        default="5%",
        show_default=True,
        help="Largest relative difference of times, if balancing is dynamic.",
    ),
    click.option(
        "--by",
        "method",
        type=click.Choice(["geometric", "constant", "dynamic"]),
        default="geometric",
        show_default=True,
        help="Use speeds at each share (geometric), at an even share (constant), or round by round (dynamic).",
    ),
    click.option(
        "--interpolation",
        type=click.Choice(["piecewise", "akima"]),
        default="piecewise",
        show_default=True,
        help="Interpolation between the sizes of the file.",
    ),
)
@make_option_group(
    "Output",
    out_option("File to write.  [default: the screen]"),
    click.option(
        "--format",
        "style",
        type=click.Choice(PARTITION_STYLES),
        help="Format; summa:partition=PATH reads csv.  [default: as --out ends, else table]",
    ),
)
def partition(
    speeds, measure, block, kernel, layout, platform, ranks, blocks, method, interpolation, within, source, style, out
) -> None:
    style = choose_style(style, out, PARTITION_STYLES)
    if (source is None) == (blocks is None):
        raise UserError("give either --blocks, or --from with a partition")
    if measure == (speeds is not None) or (measure and source):
        raise UserError("give --speeds FILE, or --measure without --from")
    from commodel.api.kernels import Balancing, balance, balance_measuring, locate_processes, read_partition

    with locate_mistakes(key="--within"):
        balancing = Balancing(kernel, method, interpolation, parse_fraction(within))
    processes = locate_processes(layout, platform, ranks)
    if measure:
        result = balance_measuring(processes, balancing, block, blocks, make_progress_printer(False))
    elif source:
        result = read_partition(processes, balancing, speeds, source)
    else:
        with show_waiting("balancing"):
            result = balance(processes, balancing, speeds, blocks)
    if style == "xlsx":
        result.to_excel(out)
        return
    texts = {"json": result.to_json, "csv": result.to_csv, "svg": result.to_svg}
    write_or_print(str(texts[style]()) if style in texts else result.text(), out)
