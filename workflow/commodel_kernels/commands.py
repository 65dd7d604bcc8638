"""commodel partition, predict kernel, advise layouts and measure speeds."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from commodel.cli.verb_parts import (
    PATH,
    WORKBOOK_STYLES,
    VerbCommand,
    choose_style,
    experiment_option,
    make_option_group,
    make_progress_printer,
    out_option,
    params_option,
    platform_option,
    process_count_option,
    quiet_option,
    set_option,
    show_waiting,
    style_option,
    workbook_style_option,
    write_answer,
    write_or_print,
)
from commodel.errors import UserError, locate_mistakes
from commodel.units import parse_fraction

PARTITION_STYLES = ("table", "json", "csv", "xlsx", "svg")


@click.command(
    cls=VerbCommand,
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
    click.option(
        "--kernel",
        type=click.Choice(["gemm", "wave"]),
        default="gemm",
        show_default=True,
        help="Kernel.",
    ),
    click.option(
        "--blocks",
        type=click.IntRange(1, 1 << 20),
        help="Side of the matrix in blocks; for wave in cells.",
    ),
    click.option(
        "--from", "source", type=PATH, help="Show this partition instead: .xlsx as edited, or .csv."
    ),
)
@make_option_group(
    "Processes",
    click.option(
        "--layout", required=True, help="Processes, e.g. processes:params/layouts/fermi/M10.csv."
    ),
    click.option("--platform", required=True, help="Platform of the processes: a name or a file."),
    process_count_option,
)
@make_option_group(
    "Speeds",
    click.option(
        "--speeds", type=PATH, help="Speeds of each kind of process (YAML), by measure speeds."
    ),
    click.option(
        "--measure", is_flag=True, help="Measure on the platform while balancing instead (dynamic)."
    ),
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
    speeds,
    measure,
    block,
    kernel,
    layout,
    platform,
    ranks,
    blocks,
    method,
    interpolation,
    within,
    source,
    style,
    out,
) -> None:
    style = choose_style(style, out, PARTITION_STYLES)
    if (source is None) == (blocks is None):
        raise UserError("give either --blocks, or --from with a partition")
    if measure == (speeds is not None) or (measure and source):
        raise UserError("give --speeds FILE, or --measure without --from")
    from commodel_kernels.partitioning import (
        Balancing,
        balance,
        balance_measuring,
        locate_processes,
        read_partition,
    )

    with locate_mistakes(key="--within"):
        balancing = Balancing(kernel, method, interpolation, parse_fraction(within))
    processes = locate_processes(layout, platform, ranks)
    if measure:
        result = balance_measuring(
            processes, balancing, block, blocks, make_progress_printer(False)
        )
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


@click.command(
    name="kernel",
    cls=VerbCommand,
    examples=(
        "commodel predict kernel summa --params loggp.yaml --ranks 4 --blocks 8",
        "commodel predict kernel wave2d --params loggp.yaml --ranks 16 --blocks 512 --format csv",
    ),
    arguments={"KERNEL": "summa (a matrix product), or wave2d (a stencil)."},
)
@click.argument("kernel", type=click.Choice(["summa", "wave2d"]), metavar="KERNEL")
@make_option_group(
    "Matrix",
    click.option(
        "--blocks",
        "side",
        help="Side of the square, in blocks or cells.  [default: the partition's]",
    ),
    click.option(
        "--bytes", "sizes", help="Size of a block or cell.  [default: 8KiB for summa, 8 for wave2d]"
    ),
    click.option("--partition", help="CSV of rank,x,y,width,height.  [default: an even grid]"),
    click.option("--grid", help="Rows x columns of processes, e.g. 4x2.  [default: nearly square]"),
    click.option("--iteration", help="Iteration of summa to predict, from 0.  [default: all]"),
)
@make_option_group(
    "Processes",
    click.option(
        "--ranks", help="Number of processes.  [default: the layout's or the partition's]"
    ),
    click.option("--layout", help="Layout of processes on nodes, e.g. cyclic:2 or processes:PATH."),
)
@make_option_group(
    "Overlap",
    click.option(
        "--overlapped",
        is_flag=True,
        help="Overlap sends and multiplications; predict the visible time.",
    ),
    click.option(
        "--speeds",
        type=PATH,
        help="Speeds of processes for --overlapped.  [default: the partition's]",
    ),
)
@make_option_group("Models", params_option, set_option)
@make_option_group("Platform and results", platform_option, experiment_option)
@make_option_group(
    "Output", out_option("File to write.  [default: the screen]"), workbook_style_option
)
def predict_kernel(
    kernel: str,
    side: str | None,
    sizes: str | None,
    params: tuple[Path, ...],
    settings: tuple[str, ...],
    platform: str | None,
    experiment: str | None,
    style: str | None,
    out: Path | None,
    **pattern,
) -> None:
    """Predict the communication time of a kernel."""
    from commodel.api.recommendations import EvidenceSource
    from commodel_kernels.kernel_predictions import KernelPattern, predict_pattern

    request = KernelPattern(kernel, side, sizes, **pattern)
    request.check()
    style = choose_style(style, out, WORKBOOK_STYLES)
    source = EvidenceSource(params, platform, experiment, settings, make_progress_printer(False))
    with show_waiting("predicting"):
        result = predict_pattern(request, source)
    write_answer(result, style, out)


@click.command(
    name="layouts",
    cls=VerbCommand,
    examples=(
        (
            "commodel advise layouts wave --speeds speeds.yaml --platform mycluster --blocks 8 --cores 1,2 "
            "--params loggp.yaml"
        ),
        (
            "commodel advise layouts gemm --speeds speeds.yaml --platform mycluster --blocks 8 "
            "--layout params/layouts/mine --params loggp.yaml"
        ),
    ),
    arguments={"KERNEL": "gemm (a matrix product), or wave (a stencil)."},
)
@click.argument("kernel", type=click.Choice(["gemm", "wave"]), metavar="KERNEL")
@make_option_group(
    "Matrix",
    click.option(
        "--blocks",
        type=click.IntRange(1, 1 << 20),
        required=True,
        help="Side of the matrix in blocks; for wave in cells.",
    ),
    click.option(
        "--bytes",
        "sizes",
        help="Size of a block or cell.  [default: that of the block in --speeds]",
    ),
    click.option(
        "--iterations", type=click.IntRange(1, 1 << 30), help="Steps of the wave.  [default: 1]"
    ),
)
@make_option_group(
    "Processes",
    click.option(
        "--speeds", type=PATH, required=True, help="Speeds of each kind of process (YAML)."
    ),
    click.option(
        "--layout",
        "layouts",
        multiple=True,
        help="Processes, processes:PATH, or a folder of such tables; repeated.",
    ),
    click.option(
        "--cores", help="Also rank processes of several cores on the first nodes, e.g. 2,4,6."
    ),
)
@make_option_group(
    "Models",
    params_option,
    click.option(
        "--model",
        help="Model whose predictions rank the layouts.  [default: taulop if fitted, else the first that uses sizes]",
    ),
)
@make_option_group(
    "Platform and results",
    click.option("--platform", required=True, help="Platform of the processes."),
    experiment_option,
)
@make_option_group(
    "Measurement",
    click.option(
        "--measure",
        "count",
        type=click.IntRange(1, 1000),
        help="Also measure the best N, and the one that computes fastest.",
    ),
)
@make_option_group("Output", out_option("Folder of partitions to write."), style_option)
def advise_layouts(
    kernel: str,
    blocks: int,
    sizes: str | None,
    count: int | None,
    params: tuple[Path, ...],
    platform: str,
    experiment: str | None,
    style: str,
    **search,
) -> None:
    """Rank layouts of processes for a kernel by computation plus communication."""
    from commodel_kernels.layout_rankings import LayoutSearch, rank_layouts

    request = LayoutSearch(kernel, blocks, bytes=sizes, measure=count, **search)
    # A layout of thousands of messages may take seconds.
    watch = make_progress_printer(not sys.stderr.isatty())
    ranking = rank_layouts(
        request, params, platform, experiment, make_progress_printer(False), watch
    )
    write_answer(ranking, style)


@click.command(
    name="speeds",
    cls=VerbCommand,
    examples=(
        "commodel measure speeds gemm --layout processes:mine.csv --sizes 16:256 -o mine.yaml",
        "commodel measure speeds wave --layout processes:mine.csv --sizes 16:256 -o mine.yaml",
    ),
    arguments={"KERNEL": "Computation to time: gemm (a matrix product), or wave (a stencil)."},
)
@click.argument("kernel", type=click.Choice(["gemm", "wave"]), metavar="KERNEL")
@make_option_group(
    "Processes",
    click.option(
        "--layout",
        required=True,
        help="Processes that compute at the same time, e.g. processes:PATH.",
    ),
    process_count_option,
    click.option(
        "--platform", default="local", show_default=True, help="Platform: a name or a file."
    ),
)
@make_option_group(
    "Sizes",
    click.option(
        "--block",
        type=click.IntRange(1, 4096),
        default=32,
        show_default=True,
        help="Elements a side of a gemm block.",
    ),
    click.option(
        "--sizes", default="16:4096", show_default=True, help="Range of areas, in blocks or cells."
    ),
    click.option(
        "--within",
        metavar="FRACTION",
        default="5%",
        show_default=True,
        help="Largest relative deviation of the speed from straight lines.",
    ),
    click.option(
        "--most",
        "max_sizes",
        metavar="N",
        type=click.IntRange(1, 1000),
        default=20,
        show_default=True,
        help="Largest number of measured sizes of each kind of process.",
    ),
)
@make_option_group(
    "Measurement",
    click.option(
        "--seconds",
        type=click.FloatRange(0.01, 3600),
        default=0.5,
        show_default=True,
        help="Time for each size.",
    ),
    click.option(
        "--precision",
        default="2%",
        show_default=True,
        help="Half width of the median's 95 % interval.",
    ),
)
@make_option_group(
    "Output", out_option("File of speeds (YAML) to update.", required=True), quiet_option
)
def measure_speeds(
    kernel: str,
    layout: str,
    platform: str,
    ranks: int | None,
    max_sizes: int,
    out: Path,
    quiet: bool,
    **how,
) -> None:
    """Measure the speed of each kind of process over the size of its share."""
    from commodel_kernels.measured_speeds import SpeedMeasurement, measure_speeds_of

    measurement = SpeedMeasurement(max_sizes=max_sizes, **how)
    progress = make_progress_printer(quiet)
    result = measure_speeds_of(kernel, layout, platform, ranks, out, measurement, progress)
    click.echo(result.text())
