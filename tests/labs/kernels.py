"""SUMMA and the wave equation for real over eight hosts, at 1 Gbit/s: the errors of families where
all hosts are alike; then, with one host at a quarter of the others' processor, how long kernels
take with an even partition and with the one that is balanced by the speeds measured there.

python -m tests.labs.kernels FOLDER [small]    an empty folder; its project/ keeps results and reports
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from tests.labs.campaign import summarize_errors
from tests.labs.network_lab import HOSTS, Network, network
from tests.labs.shares import shares

RATE, QUEUE = "1gbit", 400_000  # bytes: nothing is thrown away
# of a processor, of the first hosts and of the last one: 1.45 of two processors
SHARE, SLOWED = 0.2, 0.05
PLATFORM = f"""
title: Eight network namespaces, 1 Gbit/s, TCP{{more}}
launcher: hosts
nodes: {len(HOSTS)}
cores: 1
{{types}}
hosts: {{{{names: [{", ".join(HOSTS)}], mpi: openmpi, namespaces: true}}}}
"""
TYPES = f"types: {{full: {len(HOSTS) - 1}, slowed: 1}}"
MESSAGES = """
title: SUMMA and the wave equation over eight hosts
paper: taulop
platform: alike
models: [hockney, loggp, hloggp, taulop]
library: false
measure: {sync: barrier, precision: 5%, min_samples: 8, max_samples: 60, seconds: 4, passes: 2}
probe_bytes: [1, 64, 1KiB, 8KiB, 64KiB, 512KiB]
matrix:
  - axes: {operation: summa, algorithm: paper, bytes: 8KiB, parameters: {n: [16, 32], grid: [1x4, 2x4]}}
  - axes: {operation: wave2d, algorithm: paper, bytes: 8, parameters: {n: [256, 512, 1024], grid: [1x4, 2x4]}}
"""
SMALL_MESSAGES = """
title: SUMMA and the wave equation over eight hosts
platform: alike
models: [hockney, taulop]
library: false
measure: {sync: barrier, precision: 20%, min_samples: 6, max_samples: 10, seconds: 1, passes: 1}
probe_bytes: [64, 8KiB, 64KiB]
matrix:
  - axes: {operation: "summa:n=16:grid=2x4", algorithm: paper, bytes: 8KiB}
  - axes: {operation: "wave2d:n=512:grid=2x4", algorithm: paper, bytes: 8}
"""
PARTITIONS = """
title: SUMMA and the wave equation, a host slowed down, even and balanced
platform: slowed
models: [hockney]
library: false
measure: {{sync: barrier, precision: 5%, min_samples: 6, max_samples: {samples}, warmup: 1, seconds: 60, passes: 1}}
probe_bytes: 1KiB
matrix:
"""
POINT = (
    '  - axes: {{operation: "{operation}:partition=params/{file}", algorithm: paper, bytes: '
    "{bytes}}}\n"
)


@dataclass(frozen=True)
class Kernel:
    name: str  # of speeds
    operation: str
    block: int  # elements a side
    side: int
    sizes: str  # that speeds are measured at: they take longer than a period of a quota


def main(folder: Path, small: str = "") -> None:
    with network(folder, QUEUE, LAB_RATE=RATE) as lab:
        print(mean_errors(lab, SMALL_MESSAGES if small else MESSAGES))
        print(
            partitions(lab, SMALL if small else WHOLE, samples=6 if small else 12).to_string(
                index=False
            )
        )


WHOLE = (
    Kernel("gemm", "summa", 64, 40, "32:256"),
    Kernel("wave", "wave2d", 1, 6144, "500000:6000000"),
)
SMALL = (Kernel("gemm", "summa", 64, 24, "16:128"),)


def mean_errors(lab: Network, experiment: str) -> str:
    """Return the mean μ by model and operation. All hosts have the same share of a processor."""
    lab.write("platforms", "alike", PLATFORM.format(types="", more=""))
    lab.write("experiments", "messages", experiment)
    lab.commodel("run", "messages", "-q")
    return summarize_errors(
        pd.read_csv(lab.project / "results/messages/comparison.csv", keep_default_na=False)
    )


def partitions(lab: Network, kernels: tuple[Kernel, ...], samples: int) -> pd.DataFrame:
    """Return a row for each kernel and partition, with seconds of all iterations; `ratio` is the
    total relative to the even partition."""
    more = f", the last with {SLOWED / SHARE:.3g} of the others' processor"
    lab.write("platforms", "slowed", PLATFORM.format(types=TYPES, more=more))
    experiment = PARTITIONS.format(samples=samples)
    with shares(lab.folder, dict.fromkeys(HOSTS, SHARE) | {HOSTS[-1]: SLOWED}) as settings:
        for kernel in kernels:
            for by in ("even", "balanced"):
                experiment += POINT.format(
                    operation=kernel.operation, bytes=8 * kernel.block**2, file=_file(kernel, by)
                )
            place = ("--platform", "slowed", "--layout", "block:1", "--ranks", len(HOSTS))
            requested = (
                "--sizes",
                kernel.sizes,
                "--seconds",
                4,
                "--most",
                5,
                "--block",
                kernel.block,
            )
            print(
                lab.commodel(
                    "measure",
                    "speeds",
                    kernel.name,
                    *place,
                    *requested,
                    "-o",
                    "params/speeds.yaml",
                    **settings,
                )
            )
            speeds = (
                "--kernel",
                kernel.name,
                "--speeds",
                "params/speeds.yaml",
                "--blocks",
                kernel.side,
            )
            (lab.project / "params" / _file(kernel, "even")).write_text(_even(kernel.side))
            print(
                lab.commodel(
                    "partition", *place, *speeds, "-o", f"params/{_file(kernel, 'balanced')}"
                )
            )
            print(
                lab.commodel(
                    "partition",
                    *place,
                    *speeds[:4],
                    "--from",
                    f"params/{_file(kernel, 'balanced')}",
                )
            )
        lab.write("experiments", "partitions", experiment)
        lab.commodel("run", "partitions", "-q", **settings)
    return _times(pd.read_csv(lab.project / "results/partitions/summary.csv"), kernels)


def _file(kernel: Kernel, by: str) -> str:
    return f"{kernel.operation}-{by}.csv"


def _even(side: int) -> str:
    """Return an even partition: two rows of rectangles, one rectangle for each host."""
    columns, width, height = len(HOSTS) // 2, side // (len(HOSTS) // 2), side // 2
    rows = [
        (rank, rank % columns * width, rank // columns * height, width, height)
        for rank in range(len(HOSTS))
    ]
    return "".join(
        ",".join(map(str, row)) + "\n" for row in [("rank", "x", "y", "width", "height"), *rows]
    )


def _times(summary: pd.DataFrame, kernels: tuple[Kernel, ...]) -> pd.DataFrame:
    points = summary[summary["kind"] == "point"]
    rows = []
    for kernel in kernels:
        for by in ("even", "balanced"):
            (point,) = (
                row
                for _, row in points.iterrows()
                if _file(kernel, by) in f"{row['name']} {row['settings']}"
            )
            # A sample of the wave is one step.
            steps = 1 if kernel.name == "wave" else kernel.side
            rows.append(
                {
                    "kernel": f"{kernel.operation} {kernel.side}",
                    "partition": by,
                    "iterations": steps,
                    "samples": point["samples"],
                    "communication": point["median"],
                    "computation": point["computation"],
                    "total": point["median"] + point["computation"],
                }
            )
            rows[-1]["ratio"] = (
                rows[-1]["total"] / (rows[-1] if by == "even" else rows[-2])["total"]
            )
    return pd.DataFrame(rows).round(4)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), *sys.argv[2:])
