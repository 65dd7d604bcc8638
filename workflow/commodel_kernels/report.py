"""Kernels: partitions of the matrix as pictures and tables, speeds of processes (from files and
measured kernels), and single iterations with their predictions.

`make_sections` builds the sheet. Rectangles are coloured by speed if known, else by kind of
process, else by node."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from commodel.compare.model_ranking import drop_equal_models
from commodel.errors import UserError
from commodel.files.cache import find_input
from commodel.patterns.layouts import is_gpu_kind
from commodel.records import Plan
from commodel.reports.charts import (
    GREY,
    MAX_MODELS,
    PALE_COLOURS,
    make_simulation_mark,
    make_time_series,
    spans_decades,
)
from commodel.reports.comparison_frame import list_models, scale_to_shown_units
from commodel.reports.elements import (
    MAX_RECTANGLES,
    MU_SCALE,
    AnsweredQuestion,
    Axis,
    Block,
    Chart,
    Column,
    Rectangle,
    Section,
    Series,
    Table,
    Tiling,
    format_count,
    format_digits,
    format_error,
    format_size,
    join_words,
    label_platform,
    make_table,
    mix_scale_colour,
    select_columns,
    to_plain_value,
)
from commodel.reports.report_inputs import SectionInputs
from commodel.stats import select_evenly
from commodel.units import format_seconds
from commodel_kernels.planned_partitions import PlannedPartition, read_partitions, select_iterations
from commodel_kernels.speeds import KernelSpeeds, Speeds, read_speeds

DOUBLE_BYTES = 8  # bytes
COMPUTED_KERNELS = {"summa": "gemm", "wave2d": "wave"}
SPEEDS_NOTE = "The computation of one iteration takes share / speed."


def list_speed_blocks(
    speeds: Mapping[str, Speeds], partitions: Sequence[PlannedPartition], raw: pd.DataFrame
) -> Iterator[Chart | Table]:
    """Yield charts of speeds, then one table of all; nothing without any speed."""
    rows = []
    for name, declared in speeds.items():
        for kernel, curves in declared.kernels.items():
            yield chart_speeds(name, kernel, declared, curves)
            unit, source = name_share_unit(kernel, curves.block), describe_source(declared)
            rows += [
                (declared.platform, kernel, kind, unit, *(*row, None, None)[:4], source)
                for kind, rows_of_kind in curves.kinds.items()
                for row in rows_of_kind
            ]
    times = collect_compute_times(partitions, raw)
    yield from chart_compute_times(times)
    for row in times.itertuples():
        scattered = row.points > 1
        source = (
            f"measured in this run: the slowest of {format_count(row.processes, 'process', 'es')}"
        )
        source += f", median and ends of {format_count(row.points, 'point')}" if scattered else ""
        ends = (row.low, row.high) if scattered else (None, None)
        rows.append(
            (row.platform, row.kernel, row.kind, row.unit, row.share, row.speed, *ends, source)
        )
    if rows:
        yield make_table("Speeds", "Speeds of processes", rows, note=SPEEDS_NOTE, fixed=3)


def describe_source(declared: Speeds) -> str:
    source = to_plain_value(declared.source) or "unknown method"
    return f"{'declared, not measured (simulated)' if declared.simulated else 'measured'}: {source}"


def name_share_unit(kernel: str, block: int) -> str:
    return "cells" if kernel == "wave" else f"blocks of {block}×{block}"


def chart_speeds(name: str, kernel: str, declared: Speeds, curves: KernelSpeeds) -> Chart:
    """Draw the speeds of a file, one line for each kind of process."""
    lines, unit = [], name_share_unit(kernel, curves.block)
    for index, (kind, rows) in enumerate(curves.kinds.items()):
        columns = tuple(
            zip(*(row if len(row) == 4 else (*row, row[1], row[1]) for row in rows), strict=True)
        )
        sizes, speed, low, high = (tuple(map(float, column)) for column in columns)
        if all(len(row) != 4 for row in rows):
            low = high = ()
        lines.append(Series(to_plain_value(kind), sizes, speed, "both", index, low=low, high=high))
    title = (to_plain_value(declared.platform) or to_plain_value(name)) + (
        " (simulated)" if declared.simulated else ""
    )
    return make_speed_chart(
        f"Speeds {to_plain_value(name)} {kernel}",
        title,
        kernel,
        unit,
        lines,
        describe_source(declared),
    )


SHARE_COLUMNS = ["platform", "kernel", "kind", "unit", "share", "processes"]


def collect_compute_times(
    partitions: Sequence[PlannedPartition], raw: pd.DataFrame
) -> pd.DataFrame:
    """Return the speed of the slowest process, from measured computation times of kernels with
    equal shares: a row for each kind of process and size of its share, with the median, the ends
    and the number of points."""
    seconds, rows = {}, []
    if "computation" in raw:
        measured = raw[(raw["kind"] == "point") & ~raw["simulated"]]
        seconds = measured.set_index("id")["computation"].dropna().to_dict()
    for partition in partitions:
        shares, kernel = set(partition.tiling.area.tolist()), COMPUTED_KERNELS[partition.kernel]
        if len(shares) > 1 or len(set(partition.kinds)) > 1:
            continue
        share, kind = shares.pop(), to_plain_value(partition.kinds[0])
        for point, iterations in partition.points:
            if seconds.get(point.id, 0) > 0:
                unit = name_share_unit(kernel, math.isqrt(point.bytes // DOUBLE_BYTES))
                keys = to_plain_value(point.platform), kernel, kind, unit, share, point.ranks
                rows.append((*keys, share * iterations / seconds[point.id]))
    speeds = pd.DataFrame(rows, columns=[*SHARE_COLUMNS, "speed"]).astype({"speed": float})
    return speeds.groupby(SHARE_COLUMNS, as_index=False).agg(
        speed=("speed", "median"),
        low=("speed", "min"),
        high=("speed", "max"),
        points=("speed", "size"),
    )


def chart_compute_times(times: pd.DataFrame) -> Iterator[Chart]:
    """Yield a chart of each kernel with shares of several sizes."""
    for (platform, kernel, unit), rows in times.groupby(["platform", "kernel", "unit"]):
        if rows["share"].nunique() > 1:
            lines = [
                Series(
                    kind,
                    tuple(rows_of_kind["share"].astype(float)),
                    tuple(rows_of_kind["speed"]),
                    "both",
                    index,
                    low=tuple(rows_of_kind["low"]),
                    high=tuple(rows_of_kind["high"]),
                )
                for index, (kind, rows_of_kind) in enumerate(rows.groupby("kind"))
            ]
            note = "measured in this run: the slowest process; bars: slowest to fastest point"
            yield make_speed_chart(
                f"Speeds ran {platform} {kernel}", platform, kernel, unit, lines, note
            )


def make_speed_chart(
    name: str, title: str, kernel: str, unit: str, lines: Sequence[Series], note: str
) -> Chart:
    sizes, values = (
        [value for line in lines for value in getattr(line, side)] for side in ("x", "y")
    )
    x = Axis(f"share [{unit}]", log=spans_decades(sizes))
    y = Axis(f"speed [{'cells' if kernel == 'wave' else 'blocks'}/s]", log=spans_decades(values))
    return Chart(name, f"Speed of {kernel}: {title}", x, y, tuple(lines), note)


UNIT_NAMES = {"wave2d": "cell"}  # of a square's side; of the others blocks
MAX_LEGEND_TONES = 6  # of speeds in a legend
UNIFORM_COLOUR = "#D6E4F5"  # for processes of one kind on one node


def list_platforms(partition: PlannedPartition, simulated: set[str]) -> str:
    return join_words(
        [label_platform(to_plain_value(name), simulated) for name in partition.platforms]
    )


def name_unit(partition: PlannedPartition) -> str:
    return UNIT_NAMES.get(partition.kernel, "block")


def tabulate_partitions(
    partitions: Sequence[tuple[int, PlannedPartition]], simulated: set[str]
) -> Table:
    """Return the table of partitions."""
    rows = []
    for number, partition in partitions:
        tiling = partition.tiling
        area, half_perimeters = tiling.area, int((tiling.width + tiling.height).sum())
        square_half_perimeters = float(2 * np.sqrt(area).sum())
        keys = (
            number,
            list_platforms(partition, simulated),
            partition.kernel,
            partition.division,
            partition.layout,
        )
        sizes = (
            tiling.side,
            name_unit(partition) + "s",
            tiling.ranks,
            int(area.min()),
            int(area.max()),
        )
        rows.append(
            (
                *keys,
                *sizes,
                half_perimeters / square_half_perimeters if square_half_perimeters else math.nan,
            )
        )
    return make_table("Partitions", "Partitions", rows)


def draw_partition(number: int, partition: PlannedPartition, simulated: set[str]) -> Tiling:
    """Return the drawing of a partition, with its number in the table of partitions."""
    tiling, ranks = partition.tiling, np.flatnonzero(partition.tiling.area)
    fills, legend, colour_rule = assign_colours(partition, ranks)
    share_range = f"{int(tiling.area[ranks].min()):,} to {int(tiling.area[ranks].max()):,}"
    units = name_unit(partition) + "s"
    short = "/".join(to_plain_value(partition.division).split("/")[-2:])
    name = f"{partition.kernel}, {short}: {list_platforms(partition, simulated)}"
    extent = (
        f"{tiling.side}×{tiling.side} {units} over {format_count(tiling.ranks, 'process', 'es')}"
    )
    shown = [
        Rectangle(
            f"{rank} GPU" if is_gpu_kind(partition.kinds[rank]) else str(rank),
            int(tiling.x[rank]),
            int(tiling.y[rank]),
            int(tiling.width[rank]),
            int(tiling.height[rank]),
            fill,
            f"rank {rank}: {to_plain_value(partition.kinds[rank])} of node {partition.node[rank]}, "
            f"{tiling.width[rank]}×{tiling.height[rank]} = {tiling.area[rank]:,} {units}",
        )
        for rank, fill in zip(ranks.tolist(), fills, strict=True)
    ]
    legend_text = "; ".join(text for _, text in legend)
    alt = f"{name}. {extent} as rectangles of {share_range} {units}, {colour_rule}: {legend_text}."
    return Tiling(
        f"Partition {number}",
        f"Partition {number}: {name}",
        tiling.side,
        tuple(shown),
        legend,
        f"{extent}, {colour_rule}.",
        alt,
    )


def assign_colours(
    partition: PlannedPartition, ranks: np.ndarray
) -> tuple[list[str], tuple[tuple[str, str], ...], str]:
    """Return the colour of every rank with work, the legend, and the coloured quantity."""
    speed = partition.tiling.speed
    if speed is not None:
        low, high = float(speed[ranks].min()), float(speed[ranks].max())
        span = math.log(max(high / low, 2.0))
        tones_of = {
            float(value): mix_scale_colour(math.log(high / value) / span) for value in speed[ranks]
        }
        of_gpus = {float(speed[rank]) for rank in ranks if is_gpu_kind(partition.kinds[rank])}
        tone_of_text: dict[str, str] = {}
        for value in sorted(tones_of, reverse=True):
            text = f"{format_speed(value)} {name_unit(partition)}s/s"
            text += " (GPU)" if value in of_gpus else ""
            tone_of_text.setdefault(text, tones_of[value])
        texts = list(tone_of_text)
        texts = [texts[index] for index in select_evenly(len(texts), MAX_LEGEND_TONES)]
        legend = tuple((tone_of_text[text], text) for text in texts)
        return [tones_of[float(speed[rank])] for rank in ranks], legend, "coloured by speed"
    kinds = [to_plain_value(partition.kinds[rank]) for rank in ranks]
    named, colour_rule = kinds, "coloured by kind of process"
    if len(set(kinds)) == 1:
        named, colour_rule = [f"node {partition.node[rank]}" for rank in ranks], "coloured by node"
    names = sorted(set(named), key=lambda name: (len(name), name))
    if len(names) == 1:
        return (
            [UNIFORM_COLOUR] * len(ranks),
            ((UNIFORM_COLOUR, f"{kinds[0]}, {names[0]}"),),
            "processes of one kind on one node",
        )
    palette = {name: PALE_COLOURS[index % len(PALE_COLOURS)] for index, name in enumerate(names)}
    return (
        [palette[name] for name in named],
        tuple((palette[name], name) for name in names),
        colour_rule,
    )


def format_speed(value: float) -> str:
    return format_digits(float(f"{value:.3g}")) if value >= 1e-2 else f"{value:.3g}"


def tabulate_rectangles(
    drawn: Sequence[tuple[int, PlannedPartition]], simulated: set[str]
) -> Table:
    """Return the rectangles of the partitions that are drawn."""
    rows = []
    for number, partition in drawn:
        tiling, platforms = partition.tiling, list_platforms(partition, simulated)
        seconds = tiling.seconds
        for rank in range(tiling.ranks):
            keys = number, platforms, partition.kernel, partition.division, rank
            process = partition.kinds[rank], int(partition.node[rank])
            sides = (int(column[rank]) for column in tiling.table)
            speed = None if tiling.speed is None else float(tiling.speed[rank])
            computes = None if tiling.speed is None else float(1e3 * seconds[rank])
            rows.append((*keys, *process, *sides, int(tiling.area[rank]), speed, computes))
    table = pd.DataFrame(
        rows, columns=[column.key for column in select_columns("Rectangles")], dtype=object
    )
    has_speed = any(partition.tiling.speed is not None for _, partition in drawn)
    columns = select_columns("Rectangles", without=() if has_speed else ("speed", "computes"))
    return make_table("Rectangles", "Rectangles", table, columns, fixed=5)


MAX_DRAWN_PARTITIONS = 24  # partitions
NOTE = (
    "Partitions of the matrix, speeds of processes, and the communication time of single "
    "iterations."
)


def make_sections(inputs: SectionInputs) -> list[Section]:
    """Return the sheet of a campaign; none without a kernel."""
    partitions, unread_partitions = read_partitions(inputs.plan)
    speeds, unread_speeds = read_planned_speeds(inputs.plan)
    unread = [*unread_partitions, *unread_speeds]
    return make_kernel_sections(
        partitions, unread, inputs.comparison, speeds, inputs.raw, inputs.simulated
    )


def read_planned_speeds(plan: Plan) -> tuple[dict[str, Speeds], list[str]]:
    """Return the speeds in files that the plan names, and a sentence for each file that cannot be
    read."""
    speeds, unreadable = {}, []
    for name in (name for name, file in plan.files.items() if file.kind == "speeds"):
        try:
            speeds[name] = read_speeds(find_input(name))
        except UserError as error:
            unreadable.append(f"Speeds are not shown: {error.message}.")
    return speeds, unreadable


def make_kernel_sections(
    partitions: Sequence[PlannedPartition],
    unread: Sequence[str],
    frame: pd.DataFrame,
    speeds: Mapping[str, Speeds],
    raw: pd.DataFrame,
    simulated: set[str],
) -> list[Section]:
    """Return the sheet; none without a kernel. `frame` comes from
    `comparison_frame.prepare_comparison`."""
    if not partitions and not unread:
        return []
    numbered = list(enumerate(sorted(partitions, key=has_equal_shares), 1))
    drawn = [
        (number, partition)
        for number, partition in numbered
        if partition.tiling.ranks <= MAX_RECTANGLES
    ]
    drawn = [
        (number, partition) for number, partition in drawn if not has_equal_shares(partition)
    ] or drawn
    drawn = drawn[:MAX_DRAWN_PARTITIONS]
    iterations = select_iterations(frame)
    sentences = [*describe_iterations(iterations), *(to_plain_value(line) for line in unread)]
    if len(drawn) < len(partitions):
        criterion = (
            f"at most {MAX_DRAWN_PARTITIONS} with at most {MAX_RECTANGLES} processes; with equal "
            "shares only if "
        )
        criterion += "no other can be drawn"
        sentences.append(
            f"{len(drawn)} of {format_count(len(partitions), 'partition')} are drawn ({criterion})."
        )
    blocks: list[Block] = [
        AnsweredQuestion("Measured iterations", tuple(sentences)),
        tabulate_partitions(numbered, simulated),
        *(draw_partition(number, partition, simulated) for number, partition in drawn),
        *chart_iterations(iterations),
        *([tabulate_iterations(iterations)] if len(iterations) else []),
        *list_speed_blocks(speeds, partitions, raw),
        *([tabulate_rectangles(drawn, simulated)] if drawn else []),
    ]
    return [Section("Kernels", NOTE, tuple(blocks))]


def has_equal_shares(partition: PlannedPartition) -> bool:
    """Return whether all processes have equal shares."""
    return len(set(partition.tiling.area.tolist())) == 1


def describe_iterations(iterations: pd.DataFrame) -> list[str]:
    """Return a sentence on each kernel with single iterations: their times and the best model."""
    lines = []
    for (platform, kernel), part in iterations.groupby(["platform", "kernel"], sort=False):
        points = part.drop_duplicates("point").dropna(subset="measured")
        if points.empty:
            continue
        ends = dict.fromkeys(
            format_seconds(end) for end in (points["measured"].min(), points["measured"].max())
        )
        head = f"{shorten_name(kernel)} on {platform}{make_simulation_mark(part)}"
        line = f"{head}: {format_count(len(points), 'single iteration')} took {' to '.join(ends)}"
        means = part.dropna(subset="mu").groupby("model")["mu"].mean().sort_values()
        if len(means):
            line += f"; best model {means.index[0]}, mean error {format_error(means.iloc[0])}"
        lines.append(f"{line}.")
    return lines or ["No single iteration was measured."]


def shorten_name(text: str) -> str:
    """Return a kernel or a layout in short, with the last two parts of a path."""
    parts = [part.removeprefix("partition=") for part in text.split(":")]
    return " ".join("/".join(part.split("/")[-2:]) for part in parts)


def chart_iterations(iterations: pd.DataFrame) -> list[Chart]:
    """Return charts of the time of single iterations."""
    charts = []
    for (platform, kernel, layout, length), part in iterations.groupby(
        ["platform", "kernel", "layout", "bytes"], sort=False
    ):
        part = part.sort_values("iteration")
        points = part.drop_duplicates("point").dropna(subset="measured")
        if len(points) < 2:
            continue
        name = "simulated" if make_simulation_mark(part) else "measured"
        lines = [
            make_time_series(name, points, "iteration", "measured", "both", GREY, error_bars=True)
        ]
        for index, family in enumerate(drop_equal_models(part, MAX_MODELS)):
            predicted = part[(part["model"] == family) & part["seconds"].notna()]
            lines.append(
                make_time_series(family, predicted, "iteration", "seconds", "dashed", index)
            )
        spread = [value for line in lines for value in (*line.y, *line.low, *line.high)]
        name = f"{shorten_name(kernel)}, {shorten_name(layout)}, {format_size(length)}: {platform}"
        name += make_simulation_mark(part)
        charts.append(
            Chart(
                f"Iterations {name}",
                name,
                Axis("iteration", log=False),
                Axis("messages of one iteration [µs]", log=spans_decades(spread)),
                tuple(line for line in lines if line.x),
            )
        )
    return charts


def tabulate_iterations(iterations: pd.DataFrame) -> Table:
    """Return the table of single iterations, with prediction and μ of each model."""
    scaled = scale_to_shown_units(iterations)
    order = ["simulated", "platform", "kernel", "iteration"]
    shown = scaled.sort_values(order, kind="stable").drop_duplicates("point")
    shown = shown.assign(**{key: shown[key].map(shorten_name) for key in ("kernel", "layout")})
    columns = [*select_columns("Iterations")]
    for family in list_models(iterations):
        predictions = scaled[scaled["model"] == family].set_index("point")
        shown[f"{family} prediction"] = shown["point"].map(predictions["seconds"])
        shown[f"{family} mu"] = shown["point"].map(predictions["mu"])
        columns.append(Column(f"{family} prediction", f"{family} [µs]", "number"))
        columns.append(Column(f"{family} mu", f"{family} μ", "ratio", scale=MU_SCALE))
    note = "n/a: no prediction, or not measured. The sheet Comparison has the reason."
    return make_table("Iterations", "Single iterations", shown, columns, note=note, fixed=6)
