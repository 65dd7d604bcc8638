"""Measurement of speeds of kernels: the program `speed` on all processes of a layout, timing one kind of them.

Processes of a node share its memory, so all of them compute while one is timed.
"""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from commodel import __version__
from commodel.errors import UserError
from commodel.files.results_folder import pass_folder_name
from commodel.files.safe_paths import SafePath
from commodel.measure.process import describe_failure, run
from commodel.measure.starts import Rig, Start, in_image, prepare
from commodel.platforms.build import build
from commodel.platforms.build import starter as starter_of
from commodel.platforms.launchers import LAUNCHERS, toolchain
from commodel.platforms.platform import Platform
from commodel.platforms.tools import ROOT
from commodel.records import Measure, Plan
from commodel.results import raw_samples
from commodel.stats import median_interval

Sample = tuple[float, float, float]  # speed and the ends of its 95 % interval
STARTING = 60.0  # seconds for a start besides its cases, each of which may take TIMES_BUDGET times its budget
TIMES_BUDGET = 10.0


@dataclass(frozen=True)
class Kernel:
    """The kernel and the size of its blocks."""

    name: str
    block: int  # elements a side


def measurer(
    platform: Platform,
    layout: str,
    kinds: list[str],
    kernel: Kernel,
    settings: Measure,
    rectangle: Callable[[int], tuple[int, int]],
    folder: SafePath,
) -> Callable[[Mapping[str, int]], dict[str, Sample]]:
    """Return a function that measures some kinds, each at a size, in one start; of each kind the first process is
    timed."""
    rig = _rig(platform, settings, folder)
    rounds = 0

    def measure(sizes: Mapping[str, int]) -> dict[str, Sample]:
        nonlocal rounds
        rounds += 1
        rows = [
            _row(f"s{rounds}-{n}", kernel, rectangle(sizes[kind]), kinds.index(kind)) for n, kind in enumerate(sizes)
        ]
        start = Start("speed", len(kinds), layout, (), tuple(rows))
        _run(rig, start, STARTING + len(rows) * TIMES_BUDGET * settings.seconds)
        return {kind: _sample(folder, row) for kind, row in zip(sizes, rows, strict=True)}

    return measure


def _rig(platform: Platform, settings: Measure, folder: SafePath) -> Rig:
    how = LAUNCHERS[platform.launcher]
    if how.simulated or platform.overlay:
        what = "is simulated" if how.simulated else "has no MPI of its own"
        raise UserError(f"platform '{platform.name}' {what}; its speeds are declared in a file")
    starter = starter_of(toolchain(platform), how.starters)
    if starter is None:
        raise UserError(f"no {' or '.join(how.starters)} found, which platform '{platform.name}' needs")
    if not platform.image:
        build(ROOT, toolchain(platform))
    plan = Plan("speeds", "", "", 1, (), {}, settings, {}, (), __version__)
    rig = Rig(plan, platform, how, starter, how.names(platform, starter, platform.nodes, ()), folder, 1)
    rig.work.mkdir()
    rig.pass_folder(0).mkdir()
    return in_image(rig)


def _row(case: str, kernel: Kernel, rectangle: tuple[int, int], watched: int) -> dict[str, object]:
    width, height = rectangle
    shape = {"kernel": kernel.name, "width": width, "height": height}
    return {"id": case, **shape, "bytes": 8 * kernel.block**2, "watched": watched}


def _run(rig: Rig, start: Start, limit: float) -> None:
    job, log, end = prepare(rig, start, 0), rig.log(start), time.monotonic() + limit
    watch = lambda: f"not done after {limit:.0f} s" if time.monotonic() > end else ""  # noqa: E731
    code, stopped = run(rig.argv(job), log, watch, rig.how.settings(os.geteuid()))
    if code or stopped:
        raise UserError(f"the program 'speed' {stopped or f'ended with code {code}'}: {describe_failure(log)}")


def _sample(folder: SafePath, row: Mapping[str, object]) -> Sample:
    case, size = str(row["id"]), int(row["width"]) * int(row["height"])
    raw_samples.join_passes({1: folder / pass_folder_name(0) / f"{case}.csv"}, folder, case)
    path = folder / f"{case}.csv"
    if not path.exists():
        raise UserError(f"no valid sample of a size of {size}: processes started late in all; is the machine idle?")
    samples = raw_samples.read_samples(path, case)
    seconds, low, high = median_interval(np.array([sample["seconds"] for sample in samples if sample["valid"]]))
    return size / seconds, size / high, size / low
