"""Which points and probe cases run in one allocation, and how long that may take. Batches that would not fit into the
budget are split."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict

from commodel.models.probes import LOCAL, Site, probe
from commodel.patterns.layouts import nodes_of_case
from commodel.plan.duration import Durations
from commodel.plan.experiments import Experiment
from commodel.plan.lengths import probed
from commodel.platforms.platform import Platform
from commodel.platforms.tools import native_digest
from commodel.records import Batch, Measure, Point, digest


def batches(
    name: str, platform: Platform, experiment: Experiment, points: list[Point], probes: list[str], measure: Measure
) -> Iterator[Batch]:
    """One batch for the probes, and those of the points. Their names change with what would make their samples other
    samples: the platform, how they are measured, and the programs."""
    budget = experiment.batch.budget
    sampling = {key: value for key, value in asdict(measure).items() if key != "timeout"}
    stamp = digest([platform.digest, sampling, experiment.seed, native_digest(platform.substrate)], 8)
    durations = Durations(platform.launcher, measure, platform.overlay)
    types, fewer = dict(platform.types), dict(platform.fewer_cores)
    alone = not (platform.simulated or platform.overlay) and not LOCAL.isdisjoint(probes)
    sizes, vectors = probed(points, experiment.probe_bytes, alone)
    room = platform.nodes, platform.cores, types, platform.simulated, platform.overlay, fewer, platform.hierarchy
    site = Site(*room, vectors)
    cases = tuple(case for entry in probes for case in probe(entry).cases(name, site, sizes))
    if cases:
        nodes = max(nodes_of_case(case) for case in cases)
        about, most = durations.of_cases(cases), durations.of_cases(cases, most=True)
        yield Batch(f"{name}-probes-{stamp}", name, nodes, cases=cases, seconds=about, most=most, budget=budget)
    for room, members in _by_room(points, platform.simulated, experiment.batch.smaller):
        parts = list(_parts(members, durations, budget))
        for number, part in enumerate(parts, 1):
            which = f"-{number}" if len(parts) > 1 else ""
            nodes = max(point.nodes for point in part)
            about, most = durations.of_points(part), durations.of_points(part, most=True)
            title = f"{name}-{room}n{which}-{stamp}"
            yield Batch(title, name, nodes, points=part, seconds=about, most=most, budget=budget)


def _by_room(points: list[Point], simulated: bool, smaller: bool) -> list[tuple[int, list[Point]]]:
    """The points of each node count; where an allocation costs nobody anything, of all counts up to the next power of
    two, since starting a job takes longer than a small point. `smaller` puts all into the largest allocation."""
    rooms = {point.nodes: _room(point.nodes, simulated) for point in points}
    if smaller:  # the large ones first, so that a batch of what does not fit any more is a small one
        points = sorted(points, key=lambda point: -point.nodes)
        rooms = dict.fromkeys(rooms, max(rooms.values(), default=0))
    parts: dict[int, list[Point]] = {}
    for point in points:
        parts.setdefault(rooms[point.nodes], []).append(point)
    return sorted(parts.items())


def _room(nodes: int, simulated: bool) -> int:
    return 1 << (nodes - 1).bit_length() if simulated else nodes


def _parts(points: Iterable[Point], durations: Durations, budget: float) -> Iterator[tuple[Point, ...]]:
    """Points in as few parts as fit the budget in their order. Alternatives stay together, so that they meet the
    machine in one state; those that take more than the budget alone are a part."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(point.group, []).append(point)
    room = min(600.0, budget / 2)  # ten minutes, as in the time limit; half of a budget that has hardly more
    part: list[Point] = []
    seconds = start = durations.of_points((), most=True)
    for members in groups.values():
        more = durations.of_points(members, most=True) - start
        if part and room + seconds + more > budget:
            yield tuple(part)
            part, seconds = [], start
        part += members
        seconds += more
    if part:
        yield tuple(part)
