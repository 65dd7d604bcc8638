"""How fast processes compute, and who says so: curves of the files that an experiment names, and what its own kernels
took while they were measured."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from statistics import median

import pandas as pd

from commodel.compare.kernels import Partition
from commodel.models.speeds import KernelSpeeds, Speeds
from commodel.report.charts import wide
from commodel.report.shape import Axis, Chart, Column, Series, Table
from commodel.report.values import plain
from commodel.report.words import count

DOUBLE = 8  # bytes
COMPUTES = {"summa": "gemm", "wave2d": "wave"}
PROCESS = Column("kind", "process", "text", "type of its node, and the cores that it keeps or the GPU that it drives")
TITLE = "How fast processes compute"
NOTE = "A share over its speed is what the computation of one iteration takes."


def blocks(
    speeds: Mapping[str, Speeds], partitions: Sequence[Partition], raw: pd.DataFrame | None
) -> Iterator[Chart | Table]:
    """Charts, then one table of all rows; nothing where nobody says anything."""
    rows = []
    for name, said in speeds.items():
        for kernel, curves in said.kernels.items():
            yield drawn(name, kernel, said, curves)
            rows += [
                (plain(said.platform), kernel, plain(kind), share_of(kernel, curves.block), *four(row), whence(said))
                for kind, kinds_rows in curves.kinds.items()
                for row in kinds_rows
            ]
    here = ran(partitions, raw)
    yield from ran_charts(here)
    rows += [row.row for row in here]
    if rows:
        columns = (
            Column("platform", "platform"),
            Column("kernel", "kernel"),
            PROCESS,
            Column("unit", "share in"),
            Column("size", "share", "count"),
            *(Column(key, f"{header} [1/s]", "number") for key, header in (("speed", "speed"), ("low", "low"))),
            Column("high", "high [1/s]", "number"),
            Column("whence", "from"),
        )
        yield Table("Speeds", TITLE, columns, tuple(rows), NOTE, 3)


def four(row: tuple[float, ...]) -> tuple[float | None, ...]:
    return (*row, None, None)[:4]


def whence(said: Speeds) -> str:
    source = plain(said.source) or "its file does not say how"
    return f"{'declared, not measured (simulated)' if said.simulated else 'measured'}: {source}"


def share_of(kernel: str, block: int) -> str:
    return "cells" if kernel == "wave" else f"blocks of {block}×{block}"


def drawn(name: str, kernel: str, said: Speeds, curves: KernelSpeeds) -> Chart:
    """A line a kind, through the file's rows."""
    lines, unit = [], share_of(kernel, curves.block)
    for place, (kind, rows) in enumerate(curves.kinds.items()):
        columns = tuple(zip(*(row if len(row) == 4 else (*row, row[1], row[1]) for row in rows), strict=True))
        sizes, speed, low, high = (tuple(map(float, column)) for column in columns)
        ends = {"low": low, "high": high} if any(len(row) == 4 for row in rows) else {}
        lines.append(Series(plain(kind), sizes, speed, "both", place, **ends))
    title = (plain(said.platform) or plain(name)) + (" (simulated)" if said.simulated else "")
    return speed_chart(f"Speeds {plain(name)} {kernel}", title, kernel, unit, lines, whence(said))


@dataclass(frozen=True)
class Ran:
    """What processes of one kind took to compute shares of one size, in points of this run."""

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


def ran(partitions: Sequence[Partition], raw: pd.DataFrame | None) -> list[Ran]:
    """What kernels took to compute beside their messages. Where all shares are alike the slowest process's speed
    follows; simulated ones compute nothing."""
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
    return [Ran(*about, tuple(ratios)) for about, ratios in sorted(speeds.items())]


def ran_charts(rows: Sequence[Ran]) -> Iterator[Chart]:
    """Of each kernel that had shares of several sizes."""
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
            note = "measured in this run: the slowest process; bars from the slowest to the fastest point"
            yield speed_chart(f"Speeds ran {platform} {kernel}", platform, kernel, unit, lines, note)


def speed_chart(name: str, title: str, kernel: str, unit: str, lines: Sequence[Series], note: str) -> Chart:
    sizes, values = ([value for line in lines for value in getattr(line, side)] for side in ("x", "y"))
    x = Axis(f"share [{unit}]", log=wide(sizes))
    y = Axis(f"speed [{'cells' if kernel == 'wave' else 'blocks'}/s]", log=wide(values))
    return Chart(name, f"Speed of {kernel}: {title}", x, y, tuple(lines), note)
