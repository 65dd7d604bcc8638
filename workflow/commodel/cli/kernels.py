"""commodel partition, and what predict kernel, advise layouts and measure speeds print."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import isnan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from commodel.cli._help import Verb, make_option_group
from commodel.cli._options import PATH, choose_style, out_option, process_count_option
from commodel.cli._output import make_progress_printer, print_answer, print_rows, show_waiting, write_or_print
from commodel.errors import UserError, locate_mistakes
from commodel.files.text_tables import format_answer, format_csv, format_table
from commodel.units import format_count, format_seconds, parse_bytes, parse_count, parse_fraction

if TYPE_CHECKING:
    from commodel.advice.configurations import Configuration
    from commodel.api.kernels import KernelPredictions

STYLES = ("table", "json", "csv", "xlsx")
PARTITION_STYLES = (*STYLES, "svg")
TIME_COLUMNS = ("time", "low", "high")
DEFAULT_SIZES = {"summa": "8KiB", "wave2d": "8"}


def print_kernel_predictions(
    kernel: str,
    side: str | None,
    iteration: str | None,
    overlapped: bool,
    sizes: str | None,
    layout: str | None,
    ranks: str | None,
    speeds: Path | None,
    platform: str | None,
    params: tuple[Path, ...],
    experiment: str | None,
    settings: tuple[str, ...],
    style: str | None,
    out: Path | None,
    **options,
) -> None:
    """Print or write the predicted communication time of a kernel under every model.

    A second row of hloggp, loggph and mlognp follows the rules of the τ–Lop paper: sums of messages without contention.
    """
    from commodel.advice.evidence import replace_values
    from commodel.api.kernels import KernelPredictions, add_speeds
    from commodel.api.recommendations import describe_evidence_folders, find_evidence
    from commodel.patterns.points import make_point

    if kernel != "summa" and (iteration is not None or overlapped):
        unusable = "overlapped" if iteration is None else "iteration"
        raise UserError(f"--{unusable} has a meaning only for summa; leave it out")
    if speeds and not overlapped:
        raise UserError("--speeds has a meaning only with --overlapped; leave it out")
    style = choose_style(style, out, STYLES)
    evidence, folders = find_evidence(params, platform, experiment, kernel)
    if folders:
        click.echo(describe_evidence_folders(evidence, folders), err=True)
    evidence = replace_values(evidence, settings)
    parameters = {"n": side, "grid": options["grid"], "partition": options["partition"], "iteration": iteration}
    parameters |= {"overlapped": "yes" if overlapped else None}
    operation = ":".join([kernel, *(f"{name}={value}" for name, value in parameters.items() if value is not None)])
    combination = {"operation": operation, "algorithm": "paper", "bytes": parse_bytes(sizes or DEFAULT_SIZES[kernel])}
    combination |= {"layout": layout} if layout else {}
    combination |= {"ranks": parse_count(ranks)} if ranks else {}
    point = make_point(evidence.resources, combination)
    with add_speeds(point, speeds, evidence.resources) as (point_with_speeds, declared), show_waiting("predicting"):
        predicted = KernelPredictions.of(point_with_speeds, evidence.sets)
    predicted = replace(predicted, point=point, simulated=predicted.simulated or declared)
    if style == "xlsx" and out:
        from commodel.reports.workbooks import write_kernel

        write_kernel(predicted.rows, predicted.iterations, predicted.sentences, predicted.simulated, out)
    elif style == "json":
        data = predicted.properties | {"models": predicted.rows, "by_iteration": predicted.iterations}
        write_or_print(json.dumps(data, indent=1), out)
    else:
        write_or_print(format_csv(predicted.rows) if style == "csv" else _format_prediction_table(predicted), out)


def _format_prediction_table(predicted: KernelPredictions) -> str:
    predicted_rows = [row for row in predicted.rows if row["seconds"] is not None]
    extremes = [select(predicted_rows, key=lambda row: row["seconds"]) for select in (min, max) if predicted_rows]
    times = " to ".join(dict.fromkeys(f"{format_seconds(row['seconds'])} ({row['model']})" for row in extremes))
    parts = [format_table([_make_prediction_row(row) for row in predicted.rows], TIME_COLUMNS)]
    if predicted.slowest_iterations:
        rows = [row | {"share [%]": round(100 * row.pop("share"))} for row in predicted.slowest_iterations]
        parts.append(
            "Slowest iterations, time over the models that depend on the size:\n"
            + format_table(rows, ("median", "least", "most"))
        )
    answer = f"Communication takes {times}." if predicted_rows else "No model has a prediction."
    return format_answer(answer, "\n\n".join(parts), predicted.sentences)


def _make_prediction_row(row: dict) -> dict:
    exact = row["low"] == row["seconds"] == row["high"]
    cells = {"time" if name == "seconds" else name: value for name, value in row.items()}
    return cells | ({"low": None, "high": None} if exact else {})


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


def print_layout_ranking(
    kernel: str,
    speeds: Path,
    layouts: tuple[str, ...],
    cores: str | None,
    blocks: int,
    sizes: str | None,
    iterations: int | None,
    params: tuple[Path, ...],
    platform: str,
    experiment: str | None,
    model: str | None,
    count: int | None,
    out: Path | None,
    style: str,
) -> None:
    """Rank layouts of processes by computation plus communication, each balanced by its speeds, and measure the best
    `count` of them together with the one that computes fastest."""
    from commodel.advice.configurations import (
        Problem,
        choose_ranking_family,
        list_process_tables,
        rank_configurations,
        write_core_layouts,
    )
    from commodel.api.recommendations import find_evidence
    from commodel.files.quantities import expand_axis
    from commodel.models.speeds import read_speeds

    if not (layouts or cores):
        raise UserError("give --layout processes:PATH or a folder of such tables, or --cores")
    if iterations and kernel == "gemm":
        raise UserError("--iterations: SUMMA has one for each block of a side; leave it out")
    declared = read_speeds(speeds)
    curves = declared.of(kernel)
    evidence, _ = find_evidence(params, platform, experiment)
    model = choose_ranking_family(evidence, model)
    unit = parse_bytes(sizes) if sizes else 8 * curves.block**2
    problem = Problem(kernel, blocks, unit, iterations)
    with _open_output_folder(out) as folder:
        tables = [table for layout in layouts for table in list_process_tables(layout)]
        if cores:
            tables += write_core_layouts(evidence.resources, expand_axis(cores, parse_count), curves.kinds, folder)
        rows = rank_configurations(
            problem, tables, declared, evidence, model, folder, lambda best: _print_best_configuration(best, model)
        )
        if count:
            from commodel.api.kernels import measure_best

            rows = measure_best(rows, count, problem, evidence.resources, platform, make_progress_printer(False))
        _show_configurations(rows, model, style, declared.simulated)


@contextmanager
def _open_output_folder(out: Path | None) -> Iterator[Path]:
    """Yield the user's folder for tables and partitions, or a temporary one."""
    if out:
        out.mkdir(parents=True, exist_ok=True)
        yield out
        return
    with TemporaryDirectory(prefix="commodel-") as folder:
        yield Path(folder)


def _print_best_configuration(best: Configuration, model: str) -> None:
    """Print the best configuration of a layout, if there is a terminal: a layout of thousands of messages may take
    seconds."""
    if sys.stderr.isatty():
        click.echo(f"{_name_layout(best)}: {best.division}, {format_seconds(best.total(model))}", err=True)


def _show_configurations(configurations: list[Configuration], model: str, style: str, simulated: bool) -> None:
    rows = [_make_configuration_row(entry, model) | {"simulated": simulated} for entry in configurations]
    measured = [entry for entry in configurations if entry.measured]
    if style != "table":
        for row, entry in zip(rows, configurations, strict=True):
            row |= _make_measured_columns(entry) if measured else {}
        print_rows(rows, style)
        return
    times = [name for name in rows[0] if name == "total" or name.startswith(("computation", "communication"))]
    shown = [{name: row[name] for name in row if name not in ("simulated", "validity")} for row in rows]
    answer, *notes = _describe_fastest(configurations, model)
    notes += ["The speeds are declared, not measured (simulated)."] if simulated else []
    parts = [format_table(shown, times)]
    if measured:
        parts.append("Predicted and measured:\n" + format_table([_pair_times(entry, model) for entry in measured]))
        notes += _describe_regrets(measured)
        if simulated:
            notes.append("Only messages were simulated; computation times follow from the declared speeds.")
    print_answer(answer, "\n\n".join(parts), notes)


def _make_configuration_row(entry: Configuration, model: str) -> dict[str, Any]:
    seconds_by_model = {name: seconds for name, seconds in entry.communication.items() if name != model}
    return {
        "layout": _name_layout(entry),
        "ranks": entry.ranks,
        "nodes": entry.nodes,
        "partition": entry.division,
        "computation": entry.computation,
        f"communication {model}": entry.communication[model],
        "validity": entry.validity[model],
        "total": entry.total(model),
        # A model that cannot predict a configuration has NaN.
        **{f"communication {name}": None if isnan(seconds) else seconds for name, seconds in seconds_by_model.items()},
    }


def _make_measured_columns(entry: Configuration) -> dict[str, float | None]:
    return {
        f"measured {name}": getattr(entry.measured, name, None) for name in ("computation", "communication", "total")
    }


def _get_measured_total(entry: Configuration) -> float:
    """Return the total time of a configuration that was measured."""
    assert entry.measured is not None
    return entry.measured.total


def _pair_times(entry: Configuration, model: str) -> dict[str, str | None]:
    """Return each predicted time, followed by the measured one."""
    predicted = (entry.computation, entry.communication[model], entry.total(model))
    cells: dict[str, str | None] = {"layout": _name_layout(entry)}
    for predicted_seconds, (name, seconds) in zip(predicted, _make_measured_columns(entry).items(), strict=True):
        for title, value in ((name.removeprefix("measured "), predicted_seconds), (name, seconds)):
            cells[title] = None if value is None else format_seconds(value)
    return cells | {"measured/predicted": f"{_get_measured_total(entry) / entry.total(model):.2f}"}


def _name_layout(entry: Configuration) -> str:
    return Path(entry.layout.partition(":")[2]).stem


def _describe_fastest(configurations: list[Configuration], model: str) -> list[str]:
    """Return sentences on the fastest configuration, and on the one that computes fastest, with the ratio of their
    times."""
    from commodel.advice.configurations import find_fastest
    from commodel.predictions.validity import ValidityKind

    best, computing = configurations[0], find_fastest(configurations)

    def format_sum(entry: Configuration) -> str:
        parts = entry.computation, entry.communication[model]
        return f"{format_seconds(entry.total(model))} = {' + '.join(format_seconds(part) for part in parts)}"

    lines = [f"Fastest, communication included: {_name_layout(best)}, {format_sum(best)} (by {model})."]
    if flags := Counter(
        row.validity[model] for row in configurations if row.validity[model] != ValidityKind.VALID.value
    ):
        (flag, _), number = flags.most_common(1)[0], flags.total()
        named = f": {flag}" if len(flags) == 1 else f", such as {flag}"
        lines.append(f"{number} of {len(configurations)} predictions of {model} are flagged{named}.")
    if computing is best:
        return [*lines, "It computes fastest, too."]
    ratio = computing.total(model) / best.total(model)
    name = _name_layout(computing)
    return [*lines, f"Fastest computation: {name}, {format_sum(computing)}: {ratio:.2f} times as long."]


def _describe_regrets(measured: list[Configuration]) -> list[str]:
    """Return the measured times of the chosen configuration and of the one that computes fastest, compared with the
    fastest measured one."""
    from commodel.advice.configurations import find_fastest

    shortest = min(measured, key=_get_measured_total)
    choices = {"Communication included": measured[0], "By computation alone": find_fastest(measured)}

    lines = []
    for label, choice in choices.items():
        time = _get_measured_total(choice)
        excess = 100 * (time / _get_measured_total(shortest) - 1)
        comparison = f"{excess:.2g} % longer than {_name_layout(shortest)}"
        comparison = "the fastest of these" if choice is shortest else comparison
        lines.append(f"{label}: {_name_layout(choice)}, measured to take {format_seconds(time)}, {comparison}.")
    return lines


def print_measured_speeds(
    kernel: str,
    layout: str,
    platform: str,
    ranks: int | None,
    block: int,
    sizes: str,
    within: str,
    max_sizes: int,
    seconds: float,
    precision: str,
    out: Path,
    quiet: bool,
) -> None:
    """Measure the speed of each kind of process over the size of its share: functional performance models.

    All processes of the layout compute at once, since they share memory; of each kind one is timed.
    """
    from commodel.api.kernels import SPEED_MEASURE, UNIT_NAMES, locate_processes, measure_speeds, read_speeds_so_far
    from commodel.measure.speeds import Kernel
    from commodel.models.speeds import write_speeds
    from commodel.plan.config import find_config_file

    speeds = read_speeds_so_far(out, find_config_file("platform", platform).stem)
    computed = Kernel(kernel, block if kernel == "gemm" else 1)
    if kernel in speeds.kernels and speeds.kernels[kernel].block != computed.block:
        raise UserError(f"found speeds of blocks of {speeds.kernels[kernel].block}, wanted those of {block}", file=out)
    with locate_mistakes(key="--precision"):
        settings = replace(SPEED_MEASURE, precision=parse_fraction(precision), seconds=seconds)
    with locate_mistakes(key="--within"):
        tolerance = parse_fraction(within)
    areas = _parse_size_range(sizes)
    processes = locate_processes(layout, platform, ranks)
    rows = measure_speeds(processes, computed, areas, tolerance, max_sizes, settings, make_progress_printer(quiet))
    write_speeds(out, speeds.joined(kernel, computed.block, rows))
    unit = f"[{UNIT_NAMES[kernel]}s/s]"
    names = (f"size [{UNIT_NAMES[kernel]}s]", f"speed {unit}", f"low {unit}", f"high {unit}")
    shown = [{"kind": kind, **dict(zip(names, row, strict=True))} for kind in rows for row in rows[kind]]
    speeds_text = f"{format_count(len(shown), 'speed')} of {kernel}"
    print_answer(f"{out}: {speeds_text} of {format_count(len(rows), 'kind')} of processes.", format_table(shown))


def _parse_size_range(text: str) -> tuple[int, int]:
    smallest, colon, largest = text.partition(":")
    if not colon:
        raise UserError(f"--sizes: found '{text}', wanted SMALLEST:LARGEST, such as 16:4096")
    ends = parse_count(smallest, 1, 1 << 40), parse_count(largest, 1, 1 << 40)
    if ends[0] > ends[1]:
        raise UserError(f"--sizes: found {text}, wanted the smaller first")
    return ends
