"""Speeds of processes, measured over the size of their shares (`measure_speeds`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commodel.api.charts import load_altair
from commodel.api.result import Answer
from commodel.errors import UserError, locate_mistakes
from commodel.files.text_tables import format_answer, format_table
from commodel.measure.batch import Progress
from commodel.plan.config import find_config_file
from commodel.units import format_count, parse_count, parse_fraction
from commodel_kernels.partitioning import (
    SPEED_MEASURE,
    UNIT_NAMES,
    locate_processes,
    read_speeds_so_far,
    sample_kinds,
)
from commodel_kernels.speed_measurement import MeasuredKernel
from commodel_kernels.speeds import write_speeds

if TYPE_CHECKING:
    import altair

MAX_AREA = 1 << 40  # of a share, in blocks or cells


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredSpeeds(Answer):
    """Measured speeds of each kind of process: a row for each size of its share, in blocks or cells
    a second."""

    kernel: str
    file: Path

    def text(self, verbose: bool = True) -> str:
        unit = UNIT_NAMES[self.kernel]
        heads = {"size": f"size [{unit}s]"} | {
            name: f"{name} [{unit}s/s]" for name in ("speed", "low", "high")
        }
        shown = [{heads.get(name, name): value for name, value in row.items()} for row in self.rows]
        return format_answer(self.sentence, format_table(shown), self.notes, verbose)

    def plot(self) -> altair.Chart:
        """Return a chart of the speed of each kind of process over the size of its share."""
        altair = load_altair()
        unit = UNIT_NAMES[self.kernel]
        size = altair.X(
            "size:Q", title=f"size of the share / {unit}s", scale=altair.Scale(type="log")
        )
        speed = altair.Y("speed:Q", title=f"speed / {unit}s/s")
        chart = altair.Chart(self.frame, title=f"Speeds of {self.kernel}")
        return chart.mark_line(point=True).encode(size, speed, color="kind:N")


@dataclass(frozen=True)
class SpeedMeasurement:
    """How speeds are measured. Text has units."""

    block: int = 32  # elements of a side of a gemm block
    sizes: str = "16:4096"  # range of areas, in blocks or cells
    within: str = "5%"  # largest relative deviation of the speed from straight lines
    max_sizes: int = 20  # largest number of sizes of each kind
    seconds: float = SPEED_MEASURE.seconds  # for each size
    precision: str = "2%"


def measure_speeds(
    kernel: str,
    layout: str,
    out: str | Path,
    *,
    platform: str = "local",
    ranks: int | None = None,
    block: int = 32,
    sizes: str = "16:4096",
    within: str = "5%",
    max_sizes: int = 20,
    seconds: float = SPEED_MEASURE.seconds,
    precision: str = "2%",
    progress: Progress = lambda text: None,
) -> MeasuredSpeeds:
    """Measure the speed of each kind of process over the size of its share, for kernel `gemm` or
    `wave`. Printed, the result is what `commodel measure speeds` prints.

    All processes of the layout compute at once, since they share memory; of each kind one is timed.
    The speeds are written to `out`, beside those of the other kernel.

    >>> measure_speeds("gemm", "processes:mine.csv", "mine.yaml", sizes="16:256").frame  # doctest: +SKIP
    """
    how = SpeedMeasurement(block, sizes, within, max_sizes, seconds, precision)
    return measure_speeds_of(kernel, layout, platform, ranks, Path(out), how, progress)


def measure_speeds_of(
    kernel: str,
    layout: str,
    platform: str,
    ranks: int | None,
    out: Path,
    how: SpeedMeasurement,
    progress: Progress,
) -> MeasuredSpeeds:
    """Measure the speeds of the processes of a layout, and write them to a file."""
    speeds = read_speeds_so_far(out, find_config_file("platform", platform).stem)
    computed = MeasuredKernel(kernel, how.block if kernel == "gemm" else 1)
    if kernel in speeds.kernels and speeds.kernels[kernel].block != computed.block:
        found = speeds.kernels[kernel].block
        raise UserError(f"found speeds of blocks of {found}, wanted those of {how.block}", file=out)
    with locate_mistakes(key="--precision"):
        settings = replace(
            SPEED_MEASURE, precision=parse_fraction(how.precision), seconds=how.seconds
        )
    with locate_mistakes(key="--within"):
        tolerance = parse_fraction(how.within)
    areas = _parse_size_range(how.sizes)
    processes = locate_processes(layout, platform, ranks)
    measured = sample_kinds(
        processes, computed, areas, tolerance, how.max_sizes, settings, progress
    )
    write_speeds(out, speeds.joined(kernel, computed.block, measured))
    rows = _list_rows(measured)
    speeds_text = f"{format_count(len(rows), 'speed')} of {kernel}"
    sentence = f"{out}: {speeds_text} of {format_count(len(measured), 'kind')} of processes."
    provenance = [
        {"platform": processes.platform.name, "layout": processes.layout, "source": str(out)}
    ]
    return MeasuredSpeeds(rows, sentence, [], provenance, kernel, out)


def _list_rows(measured: Mapping[str, Sequence[Sequence[float]]]) -> list[dict[str, Any]]:
    names = ("size", "speed", "low", "high")
    return [
        {"kind": kind, **dict(zip(names, row, strict=True))}
        for kind in measured
        for row in measured[kind]
    ]


def _parse_size_range(text: str) -> tuple[int, int]:
    smallest, colon, largest = text.partition(":")
    if not colon:
        raise UserError(f"--sizes: found '{text}', wanted SMALLEST:LARGEST, such as 16:4096")
    ends = parse_count(smallest, 1, MAX_AREA), parse_count(largest, 1, MAX_AREA)
    if ends[0] > ends[1]:
        raise UserError(f"--sizes: found {text}, wanted the smaller first")
    return ends
