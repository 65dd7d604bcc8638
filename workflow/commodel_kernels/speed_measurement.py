"""Measurement of speeds of kernels: the program `speed` on all processes of a layout, timing one
kind of them.

Processes of a node share its memory, so all of them compute while one is timed.
"""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from commodel import __version__
from commodel.errors import UserError
from commodel.files.results_folder import pass_folder_name
from commodel.files.safe_paths import SafePath
from commodel.measure.process import describe_failure, run_launcher
from commodel.measure.program_starts import Start, StartContext, add_image_command, prepare_start
from commodel.platforms.build import build_toolchain, find_starter
from commodel.platforms.launchers import LAUNCHERS, get_toolchain
from commodel.platforms.platform import Platform
from commodel.records import Measure, Plan
from commodel.results.raw_samples import join_passes, read_samples
from commodel.sources import ROOT
from commodel.stats import compute_median_interval

Sample = tuple[float, float, float]  # speed and the ends of its 95 % interval
START_SECONDS = 60.0  # seconds allowed for a start without its cases
BUDGET_FACTOR = 10.0  # allowed time of a case, relative to its budget


@dataclass(frozen=True)
class MeasuredKernel:
    """The kernel and the size of its blocks."""

    name: str
    block: int  # elements per side of a block


def make_measurer(
    platform: Platform,
    layout: str,
    kinds: list[str],
    kernel: MeasuredKernel,
    settings: Measure,
    rectangle: Callable[[int], tuple[int, int]],
    folder: SafePath,
) -> Callable[[Mapping[str, int]], dict[str, Sample]]:
    """Return a function that measures the speed of some kinds of processes, each at one size, in
    one start. Of each kind, it times the first process."""
    context = _prepare_context(platform, settings, folder)
    rounds = 0

    def measure(sizes: Mapping[str, int]) -> dict[str, Sample]:
        nonlocal rounds
        rounds += 1
        rows = [
            _make_row(f"s{rounds}-{n}", kernel, rectangle(sizes[kind]), kinds.index(kind))
            for n, kind in enumerate(sizes)
        ]
        start = Start("speed", len(kinds), layout, (), tuple(rows))
        limit = START_SECONDS + len(rows) * BUDGET_FACTOR * settings.seconds
        largest = max(sizes, key=lambda kind: sizes[kind])
        _run_start(context, start, limit, f"{sizes[largest]:,} for {largest}")
        return {kind: _read_sample(folder, row) for kind, row in zip(sizes, rows, strict=True)}

    return measure


def _prepare_context(platform: Platform, settings: Measure, folder: SafePath) -> StartContext:
    launcher = LAUNCHERS[platform.launcher]
    if launcher.simulated or not platform.uses_mpi:
        reason = "is simulated" if launcher.simulated else "has no MPI of its own"
        raise UserError(f"platform '{platform.name}' {reason}; its speeds are declared in a file")
    starter = find_starter(get_toolchain(platform), launcher.starters)
    if starter is None:
        raise UserError(
            f"no {' or '.join(launcher.starters)} found, which platform '{platform.name}' needs"
        )
    if not platform.image:
        build_toolchain(ROOT, get_toolchain(platform))
    plan = Plan("speeds", "", "", 1, (), {}, settings, {}, (), __version__)
    node_names = launcher.names(platform, starter, platform.nodes, ())
    context = StartContext(plan, platform, launcher, starter, node_names, folder, 1)
    context.work.mkdir()
    context.pass_folder(0).mkdir()
    return add_image_command(context)


def _make_row(
    case: str, kernel: MeasuredKernel, rectangle: tuple[int, int], watched: int
) -> dict[str, Any]:
    width, height = rectangle
    shape = {"kernel": kernel.name, "width": width, "height": height}
    return {"id": case, **shape, "bytes": 8 * kernel.block**2, "watched": watched}


def _run_start(context: StartContext, start: Start, limit: float, largest: str) -> None:
    """Measure the cases of a start; an error names the `largest` size, which may be too large."""
    job, log, end = prepare_start(context, start, 0), context.log(start), time.monotonic() + limit
    watch = lambda: f"not done after {limit:.0f} s" if time.monotonic() > end else ""  # noqa: E731
    code, stopped = run_launcher(
        context.argv(job), log, watch, context.launcher.settings(os.geteuid())
    )
    if code or stopped:
        raise UserError(
            f"the program 'speed' {stopped or f'ended with code {code}'}, at sizes up to {largest}: "
            f"{describe_failure(log)}"
        )


def _read_sample(folder: SafePath, row: Mapping[str, Any]) -> Sample:
    case, size = str(row["id"]), int(row["width"]) * int(row["height"])
    join_passes({1: folder / pass_folder_name(0) / f"{case}.csv"}, folder, case)
    path = folder / f"{case}.csv"
    if not path.exists():
        raise UserError(f"no valid sample of size {size}: the clock jumped in all samples")
    samples = read_samples(path, case)
    seconds, low, high = compute_median_interval(
        np.array([sample["seconds"] for sample in samples if sample["valid"]])
    )
    return size / seconds, size / high, size / low
