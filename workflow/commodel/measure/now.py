"""A few points measured here and now, without a campaign."""

from collections.abc import Sequence

from commodel import __version__
from commodel.files.paths import SafePath
from commodel.measure.batch import Progress, measure
from commodel.plan.config import find, load_platform
from commodel.plan.duration import Durations
from commodel.plan.make import planned
from commodel.platforms.build import build
from commodel.platforms.launchers import require_job, toolchain
from commodel.platforms.tools import ROOT
from commodel.records import Batch, Measure, Plan, Point
from commodel.results.rawfiles import raw_file, read_samples
from commodel.results.unmeasured import why_unmeasured


def measure_now(
    name: str, points: Sequence[Point], platform: str, settings: Measure, raw: SafePath, progress: Progress
) -> list[list[dict]]:
    """All samples of each point, which lie in the folder `raw` afterwards; none where a point could not be measured.
    A simulated machine is the same at all times: it gives one sample."""
    loaded = load_platform(find("platform", platform))
    require_job(platform, loaded)
    if not loaded.image:
        build(ROOT, toolchain(loaded))
    most = Durations(loaded.launcher, settings).of_points(points, most=True)
    batch = Batch(name, platform, max(point.nodes for point in points), tuple(points), most=most)
    platforms = {platform: planned(platform, loaded)}
    measure(Plan(name, "", "", 1, (), {}, settings, platforms, (batch,), __version__), batch, raw, progress)
    return [_samples(raw, point.id) for point in points]


def _samples(raw: SafePath, case: str) -> list[dict]:
    path = None if why_unmeasured(raw, case) else raw_file(raw, case)
    return read_samples(path, case) if path else []
