"""Functions that benchmarks share: time of a task, peak memory, temporary projects, printed
figures."""

import resource
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from commodel.platforms.tools import ROOT


def time_task(
    task: Callable, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, object]:
    """Return the seconds that a task takes, and its result."""
    start = clock()
    result = task()
    return clock() - start, result


def read_peak_gib() -> float:
    """Return the peak memory of this process in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def print_figure(title: str, text: str) -> None:
    print(f"{title:<58} {text}")


def make_project(
    folder: Path, platforms: Mapping[str, str], experiments: Mapping[str, str]
) -> None:
    """Write platform and experiment files, and the simulated network of the tests."""
    for kind, files in {"platforms": platforms, "experiments": experiments}.items():
        (folder / "params" / kind).mkdir(parents=True)
        for name, text in files.items():
            (folder / "params" / kind / f"{name}.yaml").write_text(text)
    (folder / "params/platforms/loggp-64.xml").write_text(
        (ROOT / "tests/workflow/loggp-64.xml").read_text()
    )
