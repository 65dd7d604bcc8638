"""A partition as people and programs read it: a table with what each process takes, a file of rectangles, a picture."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from commodel.cli._output import table
from commodel.errors import UserError
from commodel.models.speeds import Speed
from commodel.patterns.partitions.columns import by_columns
from commodel.patterns.partitions.constant import constant
from commodel.patterns.partitions.drawing import svg
from commodel.patterns.partitions.dynamic import Balance, dynamic
from commodel.patterns.partitions.evening import evened
from commodel.patterns.partitions.geometric import geometric
from commodel.patterns.rectanglefile import read, write
from commodel.patterns.rectangles import Rectangles, misfit
from commodel.price.computation import Computation, computation, iterations
from commodel.units import format_seconds

STYLES = ("table", "json", "csv", "svg", "xlsx")
UNIT = {"gemm": "block", "wave": "cell"}


@dataclass(frozen=True, eq=False)
class Processes:
    """Where processes run, and how fast each is."""

    platform: str
    simulated: bool
    node: np.ndarray
    kinds: list[str]
    curves: list[Speed]


def processes(speeds: Path, kernel: str, form: str, spec: str, platform: str, ranks: int | None) -> Processes:
    from commodel.cli._processes import located
    from commodel.models.speeds import read_speeds

    there, read = located(spec, platform, ranks), read_speeds(speeds)
    try:
        curves = read.curves(kernel, there.kinds, form)
    except UserError as error:
        raise UserError(error.message, file=speeds) from None
    return Processes(there.platform.name, read.simulated, there.node, there.kinds, curves)


def shared_out(processes: Processes, side: int, by: str, within: float) -> tuple[Rectangles, str]:
    """The rectangles, evened out, and how they came about."""
    total = side * side
    if by == "dynamic":

        def measure(shares: np.ndarray) -> np.ndarray:
            return np.array([float(c.seconds(n)) for c, n in zip(processes.curves, shares, strict=True)])

        balance = dynamic(len(processes.curves), total, measure, Speed.of, within)
        how = f"dynamic, {balance.rounds} rounds that take their times from the file of speeds, {_ends(balance)}"
        return evened(by_columns(balance.shares, side), processes.curves), how
    if by == "constant":
        # The baseline knows no other speeds, also where whole blocks are handed on.
        even = total / len(processes.curves)
        steady = [Speed.of(((even, float(curve.at(even))),)) for curve in processes.curves]
        return evened(by_columns(constant(processes.curves, total), side), steady), by
    return evened(by_columns(geometric(processes.curves, total), side), processes.curves), by


def measured_out(
    kernel: str, block: int, spec: str, platform: str, ranks: int | None, side: int, within: float
) -> tuple[Processes, Rectangles, str]:
    """The same by the dynamic algorithm, which measures on the platform; and processes as fast as it found them."""
    from commodel.cli._processes import located
    from commodel.cli._speeds import SETTINGS, balanced
    from commodel.measure.speeds import Kernel

    there = located(spec, platform, ranks)
    balance = balanced(there, Kernel(kernel, block if kernel == "gemm" else 1), side, within, SETTINGS)
    curves = [Speed.of(rows) for rows in balance.rows]
    placed = Processes(there.platform.name, False, there.node, there.kinds, curves)
    tiling = evened(by_columns(balance.shares, side), curves)
    return placed, tiling, f"dynamic, {balance.rounds} rounds of measuring, {_ends(balance)}"


def _ends(balance: Balance) -> str:
    return f"within {100 * balance.spread:.3g} %" + ("" if balance.balanced else ", as near as it came")


def received(path: Path) -> Rectangles:
    """From a workbook that somebody has edited, or a CSV."""
    if path.suffix != ".xlsx":
        return read(path)
    from commodel.report.partition import EDITED, read_partition

    edited = read_partition(path)
    columns = [np.array(edited.columns[name], dtype=np.int64) for name in EDITED[1:]]
    x, y, width, height = columns
    tiling = Rectangles(*columns, int(max((x + width).max(), (y + height).max())))
    if mistake := misfit(tiling):
        raise edited.error(mistake[1], mistake[0])
    return tiling


@dataclass(frozen=True, eq=False)
class Shown:
    """A partition and what there is to say of it."""

    kernel: str
    by: str
    form: str
    processes: Processes
    tiling: Rectangles
    computed: Computation

    @classmethod
    def of(cls, kernel: str, by: str, form: str, processes: Processes, tiling: Rectangles) -> Shown:
        return cls(kernel, by, form, processes, tiling, computation(tiling, processes.curves))

    @property
    def rows(self) -> list[dict]:
        tiling, computed = self.tiling, self.computed
        idle = 1 - computed.seconds / computed.slowest
        return [
            {
                "rank": rank,
                "node": int(self.processes.node[rank]),
                "kind": self.processes.kinds[rank],
                "speed": float(computed.speed[rank]),
                **{name: int(getattr(tiling, name)[rank]) for name in ("x", "y", "width", "height")},
                "area": int(tiling.area[rank]),
                **{name: float(getattr(computed, name)[rank]) for name in ("seconds", "low", "high")},
                "idle": float(idle[rank]),
            }
            for rank in range(tiling.ranks)
        ]

    @property
    def summary(self) -> dict:
        count = iterations(self.kernel, self.tiling)
        half = int((self.tiling.width + self.tiling.height).sum())
        return {
            "platform": self.processes.platform,
            "simulated": self.processes.simulated,
            "kernel": self.kernel,
            "by": self.by,
            "interpolation": self.form,
            "side": self.tiling.side,
            "ranks": self.tiling.ranks,
            "iterations": count,
            "seconds": self.computed.slowest,
            "total": self.computed.slowest * count,
            "imbalance": self.computed.imbalance,
            "half_perimeters": half,
            "squares": float(2 * np.sqrt(self.tiling.area).sum()),
        }

    def sentences(self) -> list[str]:
        summary = self.summary
        side, unit = summary["side"], UNIT[self.kernel]
        where = f"{summary['platform']} (simulated)" if summary["simulated"] else summary["platform"]
        work = f"{self.kernel}, {side}×{side} {unit}s over {summary['ranks']} processes of {where}"
        count, perimeters = summary["iterations"], summary["half_perimeters"]
        ratio = perimeters / summary["squares"]
        all_of_them = f", {format_seconds(summary['total'])} in all {count}" if count > 1 else ""
        lines = [
            f"{work}, by {self.by}: {format_seconds(summary['seconds'])} of computation an iteration{all_of_them}.",
            f"The slowest process takes {100 * summary['imbalance']:.2g} % longer than the mean.",
            f"Half perimeters: {perimeters} {unit}s, {ratio:.3f} times those of squares of these areas.",
        ]
        if dropped := sum({curve: curve.dropped for curve in self.processes.curves}.values()):
            lines.append(f"{dropped} rows of speeds are not used: their share took no longer than a smaller one.")
        return lines


def as_table(shown: Shown) -> str:
    computed = shown.computed
    times = ("seconds", "low", "high") if np.any(computed.low < computed.high) else ("seconds",)
    rows = [
        {name: row[name] for name in row if name not in ("low", "high")}
        | {"speed": f"{row['speed']:.4g}"}
        | {name: format_seconds(row[name]) for name in times}
        | {"idle": f"{100 * row['idle']:.1f} %"}
        for row in shown.rows
    ]
    return table(rows) + "\n\n" + "\n".join(shown.sentences())


def as_json(shown: Shown) -> str:
    return json.dumps(shown.summary | {"rows": shown.rows}, indent=1)


def as_svg(shown: Shown) -> str:
    titles = [
        f"rank {row['rank']}: {row['kind']} of node {row['node']}, {row['width']}×{row['height']} = {row['area']}, "
        f"{format_seconds(row['seconds'])}"
        for row in shown.rows
    ]
    return svg(shown.tiling, shown.processes.node, titles)


def write_workbook(shown: Shown, path: Path) -> None:
    import pandas as pd

    from commodel.report.partition import write_partition

    banner = "SIMULATED: these speeds are declared, not measured." if shown.processes.simulated else ""
    title = f"{shown.kernel} on {shown.processes.platform}: a partition"
    write_partition(pd.DataFrame(shown.rows), title, shown.sentences(), banner, path)


TEXTS: dict[str, Callable[[Shown], str]] = {
    "table": as_table,
    "json": as_json,
    "csv": lambda shown: write(replace(shown.tiling, speed=shown.computed.speed)).rstrip("\n"),
    "svg": as_svg,
}
