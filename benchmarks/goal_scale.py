"""Processor seconds and memory of `commodel predict` for binary GOAL files, and of LogGOPSim if it
is installed.

Usage: `python -m benchmarks.goal_scale [FOLDER]`. FOLDER has the program LogGOPSim. Each command
is measured as a whole. A linear alltoall over 1,024 ranks takes minutes in the simulator, so both
get a quarter of the ranks.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from benchmarks.measuring import print_figure
from commodel.patterns.pattern_files.tasks import Tasks
from tests.patterns.goal_files import (
    make_binomial_broadcast,
    make_dissemination,
    make_linear_alltoall,
    packed,
)

PARAMETERS = ("L=2.5us", "o=1.5us", "g=1us", "G=6ns")
SIMULATOR_OPTIONS = ("-L2500", "-o1500", "-g1000", "-G6", "-O0", "-S1000000000")


# A child of this process would count its memory too, until it starts the command.
MEASURED = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000)
"""


def measure(command: list[str | Path]) -> tuple[float, float]:
    """Return the processor seconds and the peak memory in MB of a command."""
    run = subprocess.run(
        [sys.executable, "-c", MEASURED, *command], stdout=subprocess.PIPE, text=True, check=True
    )
    seconds, megabytes = map(float, run.stdout.split())
    return seconds, megabytes


def predict(file: Path) -> tuple[float, float]:
    command = [
        Path(sys.executable).with_name("commodel"),
        "predict",
        "--model",
        "loggops",
        "--operation",
        f"file:{file}",
    ]
    return measure([*command, *(argument for text in PARAMETERS for argument in ("--set", text))])


def compare_with_simulator(tools: Path, title: str, tasks: Tasks, file: Path) -> None:
    file.write_bytes(packed(tasks))
    ours, theirs = predict(file), measure([tools / "LogGOPSim", "-f", file, *SIMULATOR_OPTIONS])
    figures = f"{theirs[0]:.1f} s / {ours[0]:.1f} s, {theirs[1]:.0f} MB / {ours[1]:.0f} MB"
    print_figure(f"GOAL, {title}: LogGOPSim / commodel", f"{theirs[0] / ours[0]:.2g} x ({figures})")


def print_growth(title: str, make: Callable[[int], Tasks], powers: range, file: Path) -> None:
    figures = []
    for power in powers:
        file.write_bytes(packed(make(1 << power)))
        figures.append(predict(file))
    ratios = ", ".join(f"{later[0] / earlier[0]:.1f}" for earlier, later in pairwise(figures))
    print_figure(
        f"GOAL, {title}: processor time per doubling",
        f"{ratios} (2^{powers[0]} to 2^{powers[-1]} ranks)",
    )
    print_figure(f"  2^{powers[-1]} ranks", f"{figures[-1][0]:.1f} s, {figures[-1][1]:.0f} MB")


def main(tools: Path | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a.bin"
        print_growth("binomial broadcast", make_binomial_broadcast, range(17, 21), file)
        print_growth("dissemination", make_dissemination, range(13, 17), file)
        print_growth("linear alltoall", make_linear_alltoall, range(7, 11), file)
        if tools is None:
            return
        compare_with_simulator(
            tools, "binomial broadcast, 2^20 ranks", make_binomial_broadcast(1 << 20), file
        )
        compare_with_simulator(
            tools, "dissemination, 2^16 ranks", make_dissemination(1 << 16), file
        )
        compare_with_simulator(
            tools, "linear alltoall, 2^8 ranks", make_linear_alltoall(1 << 8), file
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
