"""What benches share: seconds of a task, memory, projects of their own, and lines of figures."""

import resource
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from commodel.platforms.tools import ROOT


def timed(task: Callable, clock: Callable[[], float] = time.perf_counter) -> tuple[float, object]:
    """Return the seconds that a task takes, and its result."""
    start = clock()
    result = task()
    return clock() - start, result


def peak_gib() -> float:
    """Return the most memory that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def show(what: str, text: str) -> None:
    print(f"{what:<58} {text}")


def make_project(folder: Path, platforms: Mapping[str, str], experiments: Mapping[str, str]) -> None:
    """Write files of platforms and experiments, and the simulated network of the tests beside them."""
    for kind, files in {"platforms": platforms, "experiments": experiments}.items():
        (folder / "params" / kind).mkdir(parents=True)
        for name, text in files.items():
            (folder / "params" / kind / f"{name}.yaml").write_text(text)
    (folder / "params/platforms/loggp-64.xml").write_text((ROOT / "tests/workflow/loggp-64.xml").read_text())
