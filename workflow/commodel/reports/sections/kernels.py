"""Kernels: partitions of the matrix as pictures and tables, speeds of processes (from files and measured kernels), and
single iterations with their predictions.

`sections` builds the sheet. Rectangles are coloured by speed if known, else by kind of process, else by node."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from statistics import median

import numpy as np
import pandas as pd

from commodel.compare.kernels import Partition, by_iteration
from commodel.compare.model_ranking import drop_equal_models, rank_models
from commodel.models.speeds import KernelSpeeds, Speeds
from commodel.reports.charts import MOST_FAMILIES, PALE, mark, spans_decades, times
from commodel.reports.frames import families_of, scale_to_shown_units
from commodel.reports.shape import (
    MICRO,
    MOST_RECTANGLES,
    MU,
    Answer,
    Axis,
    Chart,
    Column,
    Rectangle,
    Section,
    Series,
    Table,
    Tiling,
    columns_of,
    comma,
    count,
    digits,
    origin,
    plain,
    ratio,
    shade,
    size,
    table,
)
from commodel.stats import select_evenly
from commodel.units import format_seconds

DOUBLE = 8  # bytes
COMPUTES = {"summa": "gemm", "wave2d": "wave"}
TITLE = "Speeds of processes"
SPEEDS_NOTE = "The computation of one iteration takes share / speed."


def count_blocks(
    speeds: Mapping[str, Speeds], partitions: Sequence[Partition], raw: pd.DataFrame | None
) -> Iterator[Chart | Table]:
    """Yield charts of speeds, then one table of all; nothing without any speed."""
    rows = []
    for name, said in speeds.items():
        for kernel, curves in said.kernels.items():
            yield speed_lines(name, kernel, said, curves)
            rows += [
                (
                    plain(said.platform),
                    kernel,
                    plain(kind),
                    share_of(kernel, curves.block),
                    *pad_to_four(row),
                    describe_source(said),
                )
                for kind, kinds_rows in curves.kinds.items()
                for row in kinds_rows
            ]
    here = collect_compute_times(partitions, raw)
    yield from ran_charts(here)
    rows += [row.row for row in here]
    if rows:
        columns = (
            *columns_of("Speeds", "platform", "size"),
            *(Column(key, f"{header} [1/s]", "number") for key, header in (("speed", "speed"), ("low", "low"))),
            *columns_of("Speeds", "high", "whence"),
        )
        yield Table("Speeds", TITLE, columns, tuple(rows), SPEEDS_NOTE, 3)


def pad_to_four(row: tuple[float, ...]) -> tuple[float | None, ...]:
    return (*row, None, None)[:4]


def describe_source(said: Speeds) -> str:
    source = plain(said.source) or "unknown method"
    return f"{'declared, not measured (simulated)' if said.simulated else 'measured'}: {source}"


def share_of(kernel: str, block: int) -> str:
    return "cells" if kernel == "wave" else f"blocks of {block}×{block}"


def speed_lines(name: str, kernel: str, said: Speeds, curves: KernelSpeeds) -> Chart:
    """Draw the speeds of a file, one line for each kind of process."""
    lines, unit = [], share_of(kernel, curves.block)
    for place, (kind, rows) in enumerate(curves.kinds.items()):
        columns = tuple(zip(*(row if len(row) == 4 else (*row, row[1], row[1]) for row in rows), strict=True))
        sizes, speed, low, high = (tuple(map(float, column)) for column in columns)
        ends = {"low": low, "high": high} if any(len(row) == 4 for row in rows) else {}
        lines.append(Series(plain(kind), sizes, speed, "both", place, **ends))
    title = (plain(said.platform) or plain(name)) + (" (simulated)" if said.simulated else "")
    return speed_chart(f"Speeds {plain(name)} {kernel}", title, kernel, unit, lines, describe_source(said))


@dataclass(frozen=True)
class ComputeTimes:
    """The times of processes of one kind to compute shares of one size, in points of this run."""

    platform: str
    kernel: str
    kind: str
    unit: str
    share: int
    processes: int
    speeds: tuple[float, ...]  # of the slowest process, a point each

    @property
    def row(self) -> tuple:
        source = f"measured in this run: the slowest of {count(self.processes, 'process', 'es')}"
        scattered = len(self.speeds) > 1
        ends = (min(self.speeds), max(self.speeds)) if scattered else (None, None)
        source += f", median and ends of {count(len(self.speeds), 'point')}" if scattered else ""
        return self.platform, self.kernel, self.kind, self.unit, self.share, median(self.speeds), *ends, source


def collect_compute_times(partitions: Sequence[Partition], raw: pd.DataFrame | None) -> list[ComputeTimes]:
    """Return the speed of the slowest process, from measured computation times of kernels with equal shares."""
    if raw is None or "computation" not in raw:
        return []
    seconds = raw[(raw["kind"] == "point") & ~raw["simulated"]].set_index("id")["computation"].dropna().to_dict()
    speeds: dict[tuple, list[float]] = {}
    for partition in partitions:
        shares, kernel = set(partition.tiling.area.tolist()), COMPUTES[partition.kernel]
        if len(shares) > 1 or len(set(partition.kinds)) > 1:
            continue
        share = shares.pop()
        for point, iterations in partition.points:
            if seconds.get(point.id, 0) > 0:
                unit = share_of(kernel, math.isqrt(point.bytes // DOUBLE))
                about = plain(point.platform), kernel, plain(partition.kinds[0]), unit, share, point.ranks
                speeds.setdefault(about, []).append(share * iterations / seconds[point.id])
    return [ComputeTimes(*about, tuple(ratios)) for about, ratios in sorted(speeds.items())]


def ran_charts(rows: Sequence[ComputeTimes]) -> Iterator[Chart]:
    """Yield a chart of each kernel with shares of several sizes."""
    alike = attrgetter("platform", "kernel", "unit")
    for (platform, kernel, unit), group in groupby(sorted(rows, key=alike), key=alike):
        same, lines = list(group), []
        for place, kind in enumerate(dict.fromkeys(row.kind for row in same)):
            of_kind = [row for row in same if row.kind == kind]
            ends = {
                name: tuple(map(end, (row.speeds for row in of_kind))) for name, end in (("low", min), ("high", max))
            }
            sizes, speeds = tuple(float(row.share) for row in of_kind), tuple(median(row.speeds) for row in of_kind)
            lines.append(Series(kind, sizes, speeds, "both", place, **ends))
        if len({row.share for row in same}) > 1:
            note = "measured in this run: the slowest process; bars: slowest to fastest point"
            yield speed_chart(f"Speeds ran {platform} {kernel}", platform, kernel, unit, lines, note)


def speed_chart(name: str, title: str, kernel: str, unit: str, lines: Sequence[Series], note: str) -> Chart:
    sizes, values = ([value for line in lines for value in getattr(line, side)] for side in ("x", "y"))
    x = Axis(f"share [{unit}]", log=spans_decades(sizes))
    y = Axis(f"speed [{'cells' if kernel == 'wave' else 'blocks'}/s]", log=spans_decades(values))
    return Chart(name, f"Speed of {kernel}: {title}", x, y, tuple(lines), note)


UNITS = {"wave2d": "cell"}  # of a square's side; of the others blocks
TONES = 6  # of speeds in a legend
EVEN = "#D6E4F5"  # for processes of one kind on one node


def list_platforms(partition: Partition, simulated: set[str]) -> str:
    return comma([origin(plain(name), simulated) for name in partition.platforms])


def unit(partition: Partition) -> str:
    return UNITS.get(partition.kernel, "block")


def overview(partitions: Sequence[tuple[int, Partition]], simulated: set[str]) -> Table:
    """Return the table of partitions."""
    rows = []
    for number, partition in partitions:
        tiling = partition.tiling
        area, half = tiling.area, int((tiling.width + tiling.height).sum())
        squares = float(2 * np.sqrt(area).sum())
        about = (
            number,
            list_platforms(partition, simulated),
            partition.kernel,
            plain(partition.divided),
            plain(partition.layout),
        )
        sizes = tiling.side, unit(partition) + "s", tiling.ranks, int(area.min()), int(area.max())
        rows.append((*about, *sizes, half / squares if squares else math.nan))
    columns = columns_of("Partitions")
    return Table("Partitions", "Partitions", columns, tuple(rows), fixed=1)


def picture(number: int, partition: Partition, simulated: set[str]) -> Tiling:
    """Return the drawing of a partition, with its number from `overview`."""
    tiling, ranks = partition.tiling, np.flatnonzero(partition.tiling.area)
    fills, legend, by = colours(partition, ranks)
    ends = f"{int(tiling.area[ranks].min()):,} to {int(tiling.area[ranks].max()):,}"
    units = unit(partition) + "s"
    short = "/".join(plain(partition.divided).split("/")[-2:])
    name = f"{partition.kernel}, {short}: {list_platforms(partition, simulated)}"
    pictured = f"{tiling.side}×{tiling.side} {units} over {count(tiling.ranks, 'process', 'es')}"
    shown = [
        Rectangle(
            str(rank),
            *(int(column[rank]) for column in tiling.table),
            fill,
            f"rank {rank}: {plain(partition.kinds[rank])} of node {partition.node[rank]}, "
            f"{tiling.width[rank]}×{tiling.height[rank]} = {tiling.area[rank]:,} {units}",
        )
        for rank, fill in zip(ranks.tolist(), fills, strict=True)
    ]
    alt = f"{name}. {pictured} as rectangles of {ends} {units}, {by}: {'; '.join(text for _, text in legend)}."
    return Tiling(
        f"Partition {number}",
        f"Partition {number}: {name}",
        tiling.side,
        tuple(shown),
        legend,
        f"{pictured}, {by}.",
        alt,
    )


def colours(partition: Partition, ranks: np.ndarray) -> tuple[list[str], tuple[tuple[str, str], ...], str]:
    """Return the colour of every rank with work, the legend, and the coloured quantity."""
    speed = partition.tiling.speed
    if speed is not None:
        low, high = float(speed[ranks].min()), float(speed[ranks].max())
        span = math.log(max(high / low, 2.0))
        tones_of = {float(value): shade(math.log(high / value) / span) for value in speed[ranks]}
        tones = sorted(tones_of, reverse=True)
        tones = [tones[place] for place in select_evenly(len(tones), TONES)]
        legend = tuple((tones_of[value], f"{digits_of(value)} {unit(partition)}s/s") for value in tones)
        return [tones_of[float(speed[rank])] for rank in ranks], legend, "coloured by speed"
    kinds = [plain(partition.kinds[rank]) for rank in ranks]
    named, by = kinds, "coloured by kind of process"
    if len(set(kinds)) == 1:
        named, by = [f"node {partition.node[rank]}" for rank in ranks], "coloured by node"
    names = sorted(set(named), key=lambda name: (len(name), name))
    if len(names) == 1:
        return [EVEN] * len(ranks), ((EVEN, f"{kinds[0]}, {names[0]}"),), "processes of one kind on one node"
    palette = {name: PALE[place % len(PALE)] for place, name in enumerate(names)}
    return [palette[name] for name in named], tuple((palette[name], name) for name in names), by


def digits_of(value: float) -> str:
    return digits(float(f"{value:.3g}")) if value >= 1e-2 else f"{value:.3g}"


def rectangles(drawn: Sequence[tuple[int, Partition]], simulated: set[str]) -> Table:
    """Return the rectangles of the partitions that are drawn."""
    rows = []
    for number, partition in drawn:
        tiling, place = partition.tiling, list_platforms(partition, simulated)
        seconds = tiling.seconds
        for rank in range(tiling.ranks):
            about = number, place, partition.kernel, plain(partition.divided), rank
            process = plain(partition.kinds[rank]), int(partition.node[rank])
            sides = (int(column[rank]) for column in tiling.table)
            speed = None if tiling.speed is None else float(tiling.speed[rank])
            computes = None if tiling.speed is None else float(1e3 * seconds[rank])
            rows.append((*about, *process, *sides, int(tiling.area[rank]), speed, computes))
    speeds = any(partition.tiling.speed is not None for _, partition in drawn)
    columns = (
        *columns_of("Rectangles", "number", "node"),
        *(Column(key, key, "count") for key in ("x", "y", "width", "height")),
        *columns_of("Rectangles", "area", "computes"),
    )
    if not speeds:
        columns, rows = columns[:-2], [row[:-2] for row in rows]
    return Table("Rectangles", "Rectangles", columns, tuple(rows), fixed=5)


SHEET = "Kernels"
DRAWN = 24  # partitions
NOTE = "Partitions of the matrix, speeds of processes, and the communication time of single iterations."


def sections(
    partitions: Sequence[Partition],
    unread: Sequence[str],
    frame: pd.DataFrame,
    speeds: Mapping[str, Speeds],
    raw: pd.DataFrame | None,
    simulated: set[str],
) -> list[Section]:
    """Return the sheet; none without a kernel. `frame` comes from `frames.prepare`."""
    if not partitions and not unread:
        return []
    numbered = list(enumerate(sorted(partitions, key=has_equal_shares), 1))
    drawn = [(number, partition) for number, partition in numbered if partition.tiling.ranks <= MOST_RECTANGLES]
    drawn = [(number, partition) for number, partition in drawn if not has_equal_shares(partition)] or drawn
    drawn = drawn[:DRAWN]
    alone = by_iteration(frame)
    words = [*sentences(alone), *(plain(line) for line in unread)]
    if len(drawn) < len(partitions):
        what = f"those with unequal shares and at most {MOST_RECTANGLES} processes"
        words.append(f"{len(drawn)} of {count(len(partitions), 'partition')} are drawn ({what}).")
    blocks = [
        Answer("Measured iterations", tuple(words)),
        overview(numbered, simulated),
        *(picture(number, partition, simulated) for number, partition in drawn),
        *charts(alone),
        *([iterations(alone)] if len(alone) else []),
        *count_blocks(speeds, partitions, raw),
        *([rectangles(drawn, simulated)] if drawn else []),
    ]
    return [Section(SHEET, NOTE, tuple(blocks))]


def has_equal_shares(partition: Partition) -> bool:
    """Return whether all processes have equal shares."""
    return len(set(partition.tiling.area.tolist())) == 1


def sentences(alone: pd.DataFrame) -> list[str]:
    """Return a sentence on each kernel with single iterations: their times and the best model."""
    lines = []
    for (platform, kernel), part in alone.groupby(["platform", "kernel"], sort=False):
        once = part.drop_duplicates("point").dropna(subset="measured")
        if once.empty:
            continue
        ends = dict.fromkeys(format_seconds(end) for end in (once["measured"].min(), once["measured"].max()))
        head = f"{shorten_name(kernel)} on {platform}{mark(part)}"
        line = f"{head}: {count(len(once), 'single iteration')} took {' to '.join(ends)}"
        means = part.dropna(subset="mu").groupby("family")["mu"].mean().sort_values()
        if len(means):
            line += f"; best model {means.index[0]}, mean μ {ratio(means.iloc[0])}"
        lines.append(f"{line}.")
    return lines or ["No single iteration was measured."]


def shorten_name(text: str) -> str:
    """Return a kernel or a layout in short, with the last two parts of a path."""
    parts = [part.removeprefix("partition=") for part in text.split(":")]
    return " ".join("/".join(part.split("/")[-2:]) for part in parts)


def charts(alone: pd.DataFrame) -> list[Chart]:
    """Return charts of the time of single iterations."""
    made = []
    for (platform, kernel, layout, length), part in alone.groupby(
        ["platform", "kernel", "layout", "bytes"], sort=False
    ):
        part = part.sort_values("iteration")
        once = part.drop_duplicates("point").dropna(subset="measured")
        if len(once) < 2:
            continue
        numbers, ends = (
            list_iterations(once),
            {"low": times(once["measured_low"]), "high": times(once["measured_high"])},
        )
        lines = [
            Series("simulated" if mark(part) else "measured", numbers, times(once["measured"]), "both", -1, **ends)
        ]
        for place, family in enumerate(drop_equal_models(part, rank_models(part), MOST_FAMILIES)):
            prediction = part[(part["family"] == family) & part["predicted"].notna()]
            lines.append(Series(family, list_iterations(prediction), times(prediction["predicted"]), "dashed", place))
        spread = [value for line in lines for value in (*line.y, *line.low, *line.high)]
        name = f"{shorten_name(kernel)}, {shorten_name(layout)}, {size(length)}: {platform}{mark(part)}"
        made.append(
            Chart(
                f"Iterations {name}",
                name,
                Axis("iteration", log=False),
                Axis("messages of one iteration [µs]", log=spans_decades(spread)),
                tuple(line for line in lines if line.x),
            )
        )
    return made


def list_iterations(rows: pd.DataFrame) -> tuple[float, ...]:
    return tuple(rows["iteration"].astype(float))


def iterations(alone: pd.DataFrame) -> Table:
    """Return the table of single iterations, with prediction and μ of each model."""
    families = families_of(alone)
    rows = []
    for _, part in alone.sort_values(["simulated", "platform", "kernel", "iteration"], kind="stable").groupby(
        "point", sort=False
    ):
        row = scale_to_shown_units(part.iloc[:1]).iloc[0].to_dict()
        row |= {key: shorten_name(row[key]) for key in ("kernel", "layout")}
        predictions = part.set_index("family")
        for family in families:
            there = family in predictions.index
            row[f"{family} prediction"] = predictions.at[family, "predicted"] * MICRO if there else math.nan
            row[f"{family} mu"] = predictions.at[family, "mu"] if there else math.nan
        rows.append(row)
    columns = [
        *columns_of("Iterations"),
        *(Column(f"measured{end}", f"measured{end.replace('_', ' ')} [µs]", "number") for end in ("", "_low", "_high")),
    ]
    for family in families:
        columns.append(Column(f"{family} prediction", f"{family} [µs]", "number"))
        columns.append(Column(f"{family} mu", f"{family} μ", "ratio", scale=MU))
    note = "n/a: no prediction, or not measured. The sheet Comparison has the reason."
    return table("Iterations", "Single iterations", columns, pd.DataFrame(rows), note=note, fixed=6)
