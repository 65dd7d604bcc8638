"""Partitions of a matrix as pictures and tables: coloured by speed where their files say it, else by kind of process or
node."""

import math
from collections.abc import Sequence

import numpy as np

from commodel.compare.kernels import Partition
from commodel.report.charts import PALE
from commodel.report.matrix import digits, shade
from commodel.report.sections.speeds import PROCESS
from commodel.report.shape import Column, Table
from commodel.report.tiling import Rectangle, Tiling
from commodel.report.values import plain
from commodel.report.words import comma, count, origin
from commodel.stats import evenly

UNITS = {"wave2d": "cell"}  # of a square's side; of the others blocks
TONES = 6  # of speeds in a legend
EVEN = "#D6E4F5"  # where all processes are of one kind on one node


def where(partition: Partition, simulated: set[str]) -> str:
    return comma([origin(plain(name), simulated) for name in partition.platforms])


def unit(partition: Partition) -> str:
    return UNITS.get(partition.kernel, "block")


def overview(partitions: Sequence[tuple[int, Partition]], simulated: set[str]) -> Table:
    """A row a partition."""
    rows = []
    for number, partition in partitions:
        tiling = partition.tiling
        area, half = tiling.area, int((tiling.width + tiling.height).sum())
        squares = float(2 * np.sqrt(area).sum())
        about = number, where(partition, simulated), partition.kernel, plain(partition.divided), plain(partition.layout)
        sizes = tiling.side, unit(partition) + "s", tiling.ranks, int(area.min()), int(area.max())
        rows.append((*about, *sizes, half / squares if squares else math.nan))
    columns = (
        Column("number", "partition", "count"),
        Column("where", "platform"),
        Column("kernel", "kernel"),
        Column("divided", "divided", "text", "a grid of processes, or the file of their rectangles"),
        Column("layout", "layout"),
        Column("side", "side", "count"),
        Column("unit", "in"),
        Column("ranks", "processes", "count"),
        Column("least", "least share", "count"),
        Column("most", "largest share", "count"),
        Column("half", "half perimeters / squares'", "ratio", "1: what is sent as if each share were a square"),
    )
    return Table("Partitions", "Who has how much", columns, tuple(rows), fixed=1)


def picture(number: int, partition: Partition, simulated: set[str]) -> Tiling:
    """`number` is that of `overview`."""
    tiling, ranks = partition.tiling, np.flatnonzero(partition.tiling.area)
    fills, legend, by = colours(partition, ranks)
    ends = f"{int(tiling.area[ranks].min()):,} to {int(tiling.area[ranks].max()):,}"
    units = unit(partition) + "s"
    short = "/".join(plain(partition.divided).split("/")[-2:])
    name = f"{partition.kernel}, {short}: {where(partition, simulated)}"
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
    """Of every rank that has work: by speed where the partition says it, else by kind of process, else by node."""
    speed = partition.tiling.speed
    if speed is not None:
        low, high = float(speed[ranks].min()), float(speed[ranks].max())
        span = math.log(max(high / low, 2.0))
        tones_of = {float(value): shade(math.log(high / value) / span) for value in speed[ranks]}
        tones = sorted(tones_of, reverse=True)
        tones = [tones[place] for place in evenly(len(tones), TONES)]
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
    """A row a process of the partitions that are drawn."""
    rows = []
    for number, partition in drawn:
        tiling, place = partition.tiling, where(partition, simulated)
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
        Column("number", "partition", "count"),
        Column("where", "platform"),
        Column("kernel", "kernel"),
        Column("divided", "divided"),
        Column("rank", "rank", "count"),
        PROCESS,
        Column("node", "node", "count"),
        *(Column(key, key, "count") for key in ("x", "y", "width", "height")),
        Column("area", "share", "count"),
        Column("speed", "speed [1/s]", "number", "shares a second that the file of the partition says"),
        Column("computes", "computes [ms]", "number", "one iteration at that speed"),
    )
    if not speeds:
        columns, rows = columns[:-2], [row[:-2] for row in rows]
    return Table("Rectangles", "Rectangle by rectangle", columns, tuple(rows), fixed=5)
