"""commodel partition: which rectangle of a matrix each process gets, by how fast it is.

A partition as people and programs read it: a table with what each process takes, a file of rectangles, a picture.

Processes of a layout on a platform: where each sits, and of which kind it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np

from commodel.cli._output import table, waiting
from commodel.errors import UserError
from commodel.models.speeds import Speed
from commodel.patterns.build import Placed, full_layout
from commodel.patterns.layouts import place, processes_of, ranks_of
from commodel.patterns.partitions.arrangement import by_columns
from commodel.patterns.partitions.drawing import svg
from commodel.patterns.partitions.shares import Balance, constant, dynamic, evened, geometric
from commodel.patterns.points import Setting
from commodel.patterns.rectangles import Rectangles, misfit, read, write
from commodel.plan.config import find, load_platform
from commodel.plan.planning import setting_of
from commodel.platforms.platform import Platform
from commodel.price.kernel_times import Computation, computation, iterations
from commodel.units import format_seconds

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
    from commodel.cli.speeds import SETTINGS, balanced
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
    from commodel.report.kernel_workbooks import EDITED, read_partition

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

    from commodel.report.kernel_workbooks import write_partition

    banner = "SIMULATED: these speeds are declared, not measured." if shown.processes.simulated else ""
    title = f"{shown.kernel} on {shown.processes.platform}: a partition"
    write_partition(pd.DataFrame(shown.rows), title, shown.sentences(), banner, path)


TEXTS: dict[str, Callable[[Shown], str]] = {
    "table": as_table,
    "json": as_json,
    "csv": lambda shown: write(replace(shown.tiling, speed=shown.computed.speed)).rstrip("\n"),
    "svg": as_svg,
}


@dataclass(frozen=True, eq=False)
class Located:
    platform: Platform
    layout: str  # with everything filled in
    node: np.ndarray
    kinds: list[str]


def filled_in(setting: Setting, spec: str, ranks: int | None) -> tuple[Placed, int]:
    """A layout in full, and its ranks, which it may say itself."""
    if (ranks := ranks or ranks_of(spec)) is None:
        raise UserError(f"'{spec}' does not say how many ranks there are; wanted --ranks")
    return full_layout(setting, spec, ranks).checked(ranks), ranks


def located(spec: str, platform: str, ranks: int | None) -> Located:
    loaded = load_platform(find("platform", platform))
    setting = setting_of(loaded)
    placed, ranks = filled_in(setting, spec, ranks)
    kinds = processes_of(placed.layout, ranks, dict(setting.types))
    return Located(loaded, placed.layout, place(placed.layout, ranks), kinds)
