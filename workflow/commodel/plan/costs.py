"""What each combination of a matrix adds to a plan's node-hours, in a form that a workbook can compute: a sample's time
is a line over the message size, and the samples of a case are cut off at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from commodel.errors import UserError
from commodel.patterns.points import Setting, make_point
from commodel.plan.config import find, load_platform
from commodel.plan.duration import START, Durations
from commodel.plan.setting import setting_of
from commodel.records import Measure, Plan, Point

SIZE_STEP = 1024  # bytes


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one combination on a real machine: nodes of its job, seconds of a sample at so many bytes and waves, and how
    many a byte more; `once` is what it takes beside its samples."""

    nodes: int
    bytes: int
    waves: int
    seconds: float
    per_byte: float
    once: float
    samples: int
    warmup: int
    limit: float

    @property
    def node_hours(self) -> float:
        about = min(self.seconds * self.samples, self.limit) + self.seconds * self.warmup + self.once
        return about * self.nodes / 3600


def costs(
    plan: Plan, rows: Sequence[tuple[str, Mapping[str, object], bool]], root: Path
) -> tuple[list[Cost | None], float]:
    """Of every combination, given with its platform and whether it is kept; None where it is simulated, or the same as
    one before it. And the node-hours of all else in the plan: probes, the library's own points, and starts of jobs."""
    nodes = {replace(point, pattern=""): batch.nodes for batch in plan.batches for point in batch.points}
    platforms: dict[str, tuple[Setting, Durations] | None] = {}
    costed: list[Cost | None] = []
    seen: set[Point] = set()
    kept_hours = 0.0
    for platform, combination, kept in rows:
        if platform not in platforms:
            platforms[platform] = _real(plan, platform, root)
        cost = None
        if (real := platforms[platform]) is not None:
            point = _point(real[0], combination)
            if point is not None and point not in seen:
                cost = _cost(plan, real[1], point, nodes.get(point, point.nodes))
                seen.add(point)
        costed.append(cost)
        kept_hours += cost.node_hours if cost is not None and kept else 0.0
    batches = [batch for batch in plan.batches if not plan.platforms[batch.platform].simulated]
    return costed, sum(batch.seconds * batch.nodes for batch in batches) / 3600 - kept_hours


def _real(plan: Plan, name: str, root: Path) -> tuple[Setting, Durations] | None:
    platform = load_platform(find("platform", name, root))
    if platform.simulated:
        return None
    return setting_of(platform), Durations(platform.launcher, plan.measure, platform.overlay)


def _point(setting: Setting, combination: Mapping[str, object]) -> Point | None:
    try:
        return make_point(setting, combination)
    except UserError:  # what is excluded may be impossible
        return None


def _cost(plan: Plan, durations: Durations, point: Point, nodes: int) -> Cost:
    seconds, larger = (durations.of_sample(replace(point, bytes=point.bytes + more)) for more in (0, SIZE_STEP))
    measure = plan.measure
    return Cost(
        nodes,
        point.bytes,
        point.waves,
        seconds,
        (larger - seconds) / SIZE_STEP,
        durations.of_points((point,)) - START - _samples(measure, seconds),
        min(3 * measure.min_samples, measure.max_samples),
        measure.warmup,
        measure.seconds,
    )


def _samples(measure: Measure, seconds: float) -> float:
    fewest = min(3 * measure.min_samples, measure.max_samples)
    return min(seconds * fewest, measure.seconds) + seconds * measure.warmup
