"""Data-parallel kernels: partitions balanced by the speeds of processes, and measurements of these.

`partition`, `balance` and `balance_measuring` partition a matrix; `sample_kinds` samples the speed
of each kind of process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from commodel.api.result import Result, write_or_return
from commodel.errors import UserError, locate_mistakes
from commodel.files.safe_paths import SafePath
from commodel.files.text_tables import format_answer, format_table
from commodel.measure.batch import Progress
from commodel.patterns.build import complete_layout_and_ranks
from commodel.patterns.layouts import list_process_kinds, place_ranks
from commodel.plan.config import load_named_platform
from commodel.plan.planning import make_resources
from commodel.platforms.platform import Platform
from commodel.records import Measure
from commodel.units import format_count, format_seconds
from commodel_kernels.partitions.arrangement import arrange_in_columns
from commodel_kernels.partitions.drawing import draw_partition
from commodel_kernels.partitions.shares import (
    Balance,
    even_out_times,
    partition_constant,
    partition_dynamic,
    partition_geometric,
)
from commodel_kernels.rectangles import (
    Rectangles,
    find_tiling_error,
    format_rectangles,
    read_rectangles,
)
from commodel_kernels.speed_measurement import MeasuredKernel, make_measurer
from commodel_kernels.speed_sampling import Rows, Sample, make_rectangle, sample_speeds
from commodel_kernels.speeds import Speed, Speeds, read_speeds
from commodel_kernels.times import (
    Computation,
    count_iterations,
    predict_computation,
)

# how a model predicts: from messages, or by the τ–Lop paper's sum
MESSAGES_RULE, SUMS_RULE = "messages", "sums"
UNIT_NAMES = {"gemm": "block", "wave": "cell"}
METHODS, INTERPOLATIONS = ("geometric", "constant", "dynamic"), ("piecewise", "akima")
TIME_COLUMNS = ("time", "low", "high")
MAX_SHOWN_ITERATIONS = 5  # slowest kinds of iterations that are shown


SPEED_MEASURE = Measure("barrier", 0.02, 6, 1000, 0.5, 1, 1, 60.0)
MeasureRound = Callable[[Mapping[str, int]], dict[str, Sample]]


@dataclass(frozen=True, eq=False)
class Processes:
    """Processes with their nodes, kinds, and speeds if known."""

    platform: Platform
    layout: str  # with all arguments
    node: np.ndarray
    kinds: list[str]
    curves: Sequence[Speed] = ()
    simulated: bool = False  # the speeds are declared, not measured


def locate_processes(spec: str, platform: str, ranks: int | None) -> Processes:
    """Return the processes of a layout on a platform."""
    loaded = load_named_platform(platform)
    resources = make_resources(loaded)
    placed, ranks = complete_layout_and_ranks(resources, spec, ranks)
    kinds = list_process_kinds(placed.layout, ranks, dict(resources.types))
    return Processes(loaded, placed.layout, place_ranks(placed.layout, ranks), kinds)


def read_process_speeds(
    processes: Processes, speeds: Path, kernel: str, interpolation: str
) -> Processes:
    """Return the processes with their speeds from a file."""
    loaded = read_speeds(speeds)
    with locate_mistakes(speeds):
        curves = loaded.curves(kernel, processes.kinds, interpolation)
    return replace(processes, curves=curves, simulated=loaded.simulated)


@dataclass(frozen=True)
class Balancing:
    """How to balance a matrix: the kernel, the method, the interpolation of speeds between measured
    sizes, and the largest relative difference of times if balancing is dynamic."""

    kernel: str = "gemm"
    method: str = "geometric"
    interpolation: str = "piecewise"
    tolerance: float = 0.05


def partition(
    speeds: str | Path,
    blocks: int,
    layout: str,
    platform: str,
    *,
    ranks: int | None = None,
    kernel: str = "gemm",
    method: str = "geometric",
    interpolation: str = "piecewise",
) -> Partition:
    """Balance a square matrix of `blocks` × `blocks` over the processes of a layout by their
    speeds, a file that `commodel measure speeds` writes. Printed, the result is what `commodel
    partition` prints.

    `kernel` is `gemm` or `wave`. `method` uses speeds at each share (`geometric`), at an even share
    (`constant`), or round by round (`dynamic`). `interpolation` between the sizes of the file is
    `piecewise` or `akima`.

    >>> partition("speeds.yaml", 8, "processes:mine.csv", "mycluster").frame  # doctest: +SKIP
    """
    choices = {"kernel": UNIT_NAMES, "method": METHODS, "interpolation": INTERPOLATIONS}
    named_values = {"kernel": kernel, "method": method, "interpolation": interpolation}
    for name, value in named_values.items():
        if value not in choices[name]:
            raise UserError(f"{name}: found '{value}', wanted {' or '.join(choices[name])}")
    processes = locate_processes(layout, platform, ranks)
    return balance(processes, Balancing(kernel, method, interpolation), Path(speeds), blocks)


def balance(processes: Processes, balancing: Balancing, speeds: Path, side: int) -> Partition:
    """Balance a matrix by the speeds in a file."""
    processes = read_process_speeds(processes, speeds, balancing.kernel, balancing.interpolation)
    tiling, method = _balance_by_speeds(processes, side, balancing.method, balancing.tolerance)
    return Partition(balancing.kernel, method, balancing.interpolation, processes, tiling)


def read_partition(
    processes: Processes, balancing: Balancing, speeds: Path, file: Path
) -> Partition:
    """Return a partition from an edited workbook or a CSV file, with the speeds in another file."""
    processes = read_process_speeds(processes, speeds, balancing.kernel, balancing.interpolation)
    tiling = read_partition_input(file)
    if tiling.ranks != len(processes.kinds):
        raise UserError(
            f"found {tiling.ranks} ranks, but the layout has {len(processes.kinds)}", file=file
        )
    return Partition(balancing.kernel, str(file), balancing.interpolation, processes, tiling)


def read_partition_input(path: Path) -> Rectangles:
    """Read a partition from an edited workbook, or from a CSV file."""
    if path.suffix != ".xlsx":
        return read_rectangles(path)
    from commodel_kernels.workbooks import PARTITION_COLUMNS
    from commodel_kernels.workbooks import read_partition as read_workbook  # slow to load

    edited = read_workbook(path)
    columns = [np.array(edited.columns[name], dtype=np.int64) for name in PARTITION_COLUMNS[1:]]
    x, y, width, height = columns
    tiling = Rectangles(x, y, width, height, int(max((x + width).max(), (y + height).max())))
    tiling_error = find_tiling_error(tiling)
    if tiling_error:
        raise edited.error(tiling_error[1], tiling_error[0])
    return tiling


def _balance_by_speeds(
    processes: Processes, side: int, method: str, tolerance: float
) -> tuple[Rectangles, str]:
    """Return the rectangles in whole blocks, and how they were computed. Method `dynamic` ends when
    times differ by at most the relative `tolerance`."""
    curves, total, method_used = processes.curves, side * side, method
    if method == "dynamic":

        def measure(shares: np.ndarray) -> np.ndarray:
            return np.array(
                [float(curve.seconds(share)) for curve, share in zip(curves, shares, strict=True)]
            )

        balanced = partition_dynamic(len(curves), total, measure, Speed.of, tolerance)
        rounds = f"{format_count(balanced.rounds, 'round')} with times from the file of speeds"
        shares, method_used = (
            balanced.shares,
            f"dynamic, {rounds}, {_describe_convergence(balanced)}",
        )
    elif method == "constant":
        # The baseline uses only these speeds, also for rounding to whole blocks.
        even_share, shares = total / len(curves), partition_constant(curves, total)
        curves = [Speed.of(((even_share, float(curve.at(even_share))),)) for curve in curves]
    else:
        shares = partition_geometric(curves, total)
    return even_out_times(arrange_in_columns(shares, side), curves), method_used


def balance_measuring(
    processes: Processes, balancing: Balancing, block: int, side: int, progress: Progress
) -> Partition:
    """Balance by the dynamic algorithm, which measures on the platform.

    The speed of a kind is measured at the largest share of its processes, while all processes
    compute a share of that size. `block` is the number of elements of a block's side.
    """
    kernel = MeasuredKernel(balancing.kernel, block if balancing.kernel == "gemm" else 1)
    kinds = np.array(processes.kinds)
    with _prepare_measuring(processes, kernel, SPEED_MEASURE, progress) as run:

        def measure(shares: np.ndarray) -> np.ndarray:
            largest = {
                str(kind): int(shares[kinds == kind].max())
                for kind in dict.fromkeys(processes.kinds)
            }
            samples = run({kind: share for kind, share in largest.items() if share})
            pairs = zip(kinds, shares, strict=True)
            return np.array([share / samples[kind][0] if share else 0.0 for kind, share in pairs])

        balanced = partition_dynamic(
            len(kinds), side * side, measure, Speed.of, balancing.tolerance
        )
    curves = [Speed.of(rows) for rows in balanced.rows]
    tiling = even_out_times(arrange_in_columns(balanced.shares, side), curves)
    rounds = format_count(balanced.rounds, "round")
    method = f"dynamic, {rounds} of measuring, {_describe_convergence(balanced)}"
    measured = replace(processes, curves=curves)
    return Partition(balancing.kernel, method, balancing.interpolation, measured, tiling)


def _describe_convergence(balanced: Balance) -> str:
    return f"within {100 * balanced.spread:.3g} %" + (
        "" if balanced.balanced else ", the best found"
    )


@dataclass(frozen=True, eq=False, repr=False)
class Partition(Result):
    """A partition of a matrix over processes: a row for each with its rectangle and its predicted
    computing time."""

    kernel: str
    method: str
    interpolation: str
    processes: Processes
    tiling: Rectangles

    @cached_property
    def computed(self) -> Computation:
        """The predicted speeds and times."""
        return predict_computation(self.tiling, self.processes.curves)

    @cached_property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """The rectangle, the speed and the computing time of each process."""
        tiling, computed = self.tiling, self.computed
        idle = 1 - computed.seconds / computed.slowest
        return [
            {
                "rank": rank,
                "node": int(self.processes.node[rank]),
                "kind": self.processes.kinds[rank],
                "speed": float(computed.speed[rank]),
                **{
                    name: int(getattr(tiling, name)[rank]) for name in ("x", "y", "width", "height")
                },
                "area": int(tiling.area[rank]),
                **{
                    name: float(getattr(computed, name)[rank])
                    for name in ("seconds", "low", "high")
                },
                "idle": float(idle[rank]),
            }
            for rank in range(tiling.ranks)
        ]

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Times, imbalance and half perimeters of the whole partition."""
        count, computed = count_iterations(self.kernel, self.tiling), self.computed
        return {
            "platform": self.processes.platform.name,
            "simulated": self.processes.simulated,
            "kernel": self.kernel,
            "by": self.method,
            "interpolation": self.interpolation,
            "side": self.tiling.side,
            "ranks": self.tiling.ranks,
            "iterations": count,
            "seconds": computed.slowest,
            "total": computed.slowest * count,
            "imbalance": computed.imbalance,
            "half_perimeters": int((self.tiling.width + self.tiling.height).sum()),
            # half perimeters of squares of the same areas
            "squares": float(2 * np.sqrt(self.tiling.area).sum()),
        }

    @property
    def sentence(self) -> str:
        """The computing time of an iteration, and how the partition was made."""
        return self._sentences[0]

    @property
    def notes(self) -> Sequence[str]:
        """The imbalance, the half perimeters, and which speeds are ignored."""
        return self._sentences[1:]

    @property
    def provenance(self) -> Sequence[Mapping[str, str]]:
        """The platform, the layout, and how the speeds were obtained."""
        processes = self.processes
        speeds = "declared" if processes.simulated else "measured"
        return [{"platform": processes.platform.name, "layout": processes.layout, "speeds": speeds}]

    @cached_property
    def _sentences(self) -> list[str]:
        summary = self.summary
        side, unit = summary["side"], UNIT_NAMES[self.kernel]
        platform_text = (
            f"{summary['platform']} (simulated)" if summary["simulated"] else summary["platform"]
        )
        kernel = (
            f"{self.kernel}, {side}×{side} {unit}s over {summary['ranks']} processes of "
            f"{platform_text}"
        )
        count, perimeters = summary["iterations"], summary["half_perimeters"]
        ratio = perimeters / summary["squares"]
        total = f", {format_seconds(summary['total'])} in all {count}" if count > 1 else ""
        lines = [
            f"{kernel}, by {self.method}: {format_seconds(summary['seconds'])} of computation an iteration{total}.",
            f"The slowest process takes {100 * summary['imbalance']:.2g} % longer than the mean.",
            f"Half perimeters: {perimeters} {unit}s, {ratio:.3f} times those of squares of these areas.",
        ]
        dropped = sum({curve: curve.dropped for curve in self.processes.curves}.values())
        if dropped:
            lines.append(
                f"{dropped} rows of speeds are ignored: a larger share may not take less time than a smaller one."
            )
        return lines

    def text(self, verbose: bool = True) -> str:
        """Return the sentence, a row for each process, and the notes."""
        computed = self.computed
        times = TIME_COLUMNS if (computed.low < computed.high).any() else TIME_COLUMNS[:1]
        speed = f"speed [{UNIT_NAMES[self.kernel]}s/s]"
        named = {"seconds": "time", "speed": speed, "idle": "idle [%]"}
        shown = [
            {
                named.get(name, name): value
                for name, value in row.items()
                if name not in ("low", "high") or name in times
            }
            | {"idle [%]": 100 * row["idle"]}
            for row in self.rows
        ]
        return format_answer(self.sentence, format_table(shown, times), self.notes, verbose)

    def to_json(self, file: str | Path | None = None) -> str | None:
        """Write the summary and the rows as JSON, or return them as text."""
        return write_or_return(json.dumps(self.summary | {"rows": self.rows}, indent=1), file)

    def to_csv(self, file: str | Path | None = None) -> str | None:
        """Write the rectangles and speeds as CSV, which `summa:partition=FILE` reads, or return
        them as text."""
        with_speeds = replace(self.tiling, speed=self.computed.speed)
        return write_or_return(format_rectangles(with_speeds).rstrip("\n"), file)

    def to_svg(self, file: str | Path | None = None) -> str | None:
        """Write a drawing of the rectangles, or return it as text."""
        titles = [
            f"rank {row['rank']}: {row['kind']} of node {row['node']}, "
            f"{row['width']}×{row['height']} = {row['area']}, {format_seconds(row['seconds'])}"
            for row in self.rows
        ]
        return write_or_return(draw_partition(self.tiling, self.processes.node, titles), file)

    def to_excel(self, file: str | Path) -> None:
        """Write a workbook whose rectangles may be edited and read back."""
        from commodel_kernels.workbooks import write_partition  # slow to load

        banner = (
            "SIMULATED: these speeds are declared, not measured."
            if self.processes.simulated
            else ""
        )
        title = f"{self.kernel} on {self.processes.platform.name}: a partition"
        write_partition(self.frame, title, [self.sentence, *self.notes], banner, Path(file))


def read_speeds_so_far(out: Path, platform: str) -> Speeds:
    """Return the measured speeds in a file; empty if there is no file."""
    if not out.exists():
        return Speeds({}, platform, source="measured by commodel measure speeds")
    speeds = read_speeds(out)
    if speeds.simulated:
        raise UserError(
            "found speeds that are declared; wanted another file for measured ones", file=out
        )
    if speeds.platform != platform:
        raise UserError(
            f"found speeds of platform '{speeds.platform}', wanted '{platform}'", file=out
        )
    return speeds


def sample_kinds(
    processes: Processes,
    kernel: MeasuredKernel,
    sizes: tuple[int, int],
    tolerance: float,
    max_sizes: int,
    settings: Measure,
    progress: Progress,
) -> dict[str, Rows]:
    """Measure the speeds of every kind of process and return their rows."""
    with _prepare_measuring(processes, kernel, settings, progress) as run:
        return sample_speeds(
            list(dict.fromkeys(processes.kinds)), run, *sizes, tolerance, max_sizes
        )


@contextmanager
def _prepare_measuring(
    processes: Processes, kernel: MeasuredKernel, settings: Measure, progress: Progress
) -> Iterator[MeasureRound]:
    """Yield the function that measures one round and reports its results."""
    with TemporaryDirectory(prefix="commodel-speeds-") as folder:
        folder_path = SafePath.at(Path(folder).resolve())
        run = make_measurer(
            processes.platform,
            processes.layout,
            processes.kinds,
            kernel,
            settings,
            make_rectangle,
            folder_path,
        )

        def run_with_progress(sizes: Mapping[str, int]) -> dict[str, Sample]:
            samples = run(sizes)
            progress(
                ", ".join(
                    f"{kind} at {size}: {samples[kind][0]:.4g}/s" for kind, size in sizes.items()
                )
            )
            return samples

        yield run_with_progress
