"""The best configurations of a kernel measured where they are to run."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from commodel.advice.configurations import Configuration, Problem, Times, fastest
from commodel.cli._progress import progress
from commodel.errors import UserError
from commodel.files.paths import SafePath
from commodel.measure.now import measure_now
from commodel.patterns.points import Setting
from commodel.plan.config import find, load_platform
from commodel.platforms.launchers import launcher
from commodel.records import Measure, Point
from commodel.results.rawfiles import read_samples
from commodel.results.unmeasured import why_unmeasured

REAL = Measure("window", 0.05, 6, 100, 5.0, 1, 1, 600.0)
SIMULATED = replace(REAL, min_samples=1, max_samples=1, warmup=0)  # the same at all times


def checked(
    configurations: Sequence[Configuration], count: int, problem: Problem, setting: Setting, platform: str
) -> list[Configuration]:
    """All of them, of which so many of the first ones are measured, and the one that computes fastest."""
    chosen = list(dict.fromkeys([*configurations[:count], fastest(configurations)]))
    points = {configuration: configuration.point(problem, setting) for configuration in chosen}
    with TemporaryDirectory(prefix="commodel-") as folder:
        raw = SafePath.at(Path(folder).resolve()) / "raw"
        raw.mkdir()
        simulated = launcher(load_platform(find("platform", platform)).launcher).simulated
        settings = SIMULATED if simulated else REAL
        measure_now("configurations", tuple(points.values()), platform, settings, raw, progress(False))
        return [
            replace(configuration, measured=_times(configuration, problem, points[configuration], raw))
            if configuration in points
            else configuration
            for configuration in configurations
        ]


def _times(configuration: Configuration, problem: Problem, point: Point, raw: SafePath) -> Times:
    if why := why_unmeasured(raw, point.id):
        raise UserError(f"{configuration.layout} was not measured: {why[0]}, {why[1]}")
    samples = [sample for sample in read_samples(raw / f"{point.id}.csv", point.id) if sample["valid"]]
    repeats = problem.repeats(configuration.tiling)
    computed = [sample["computation"] for sample in samples if "computation" in sample]
    return Times(
        repeats * median(computed) if computed else configuration.computation,
        repeats * median(sample["seconds"] for sample in samples),
    )
