"""The batches of a platform: `make_batches` puts points and cases of probes into allocations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from commodel.hierarchy import FLAT, Hierarchy
from commodel.models.probes import LOCAL_WORK_PROBES, Site, find_probe
from commodel.patterns.layouts import count_case_nodes
from commodel.plan.duration import Durations
from commodel.plan.experiments import Experiment
from commodel.plan.message_lengths import choose_probe_sizes
from commodel.plan.surveys import BATCH_INFIX
from commodel.plan.surveys import PROBE as SURVEY
from commodel.platforms.platform import Platform
from commodel.platforms.toolchains import compute_native_digest
from commodel.records import Batch, Case, Measure, Point, compute_digest

PROBE_SHARE = 0.25  # of the time of a platform's batches: limit of survey and probes
# Seconds that survey and probes may take even if points take little time. Simulated probes take
# only the time of the simulator.
MIN_PROBE_SECONDS, MIN_SIMULATED_PROBE_SECONDS = 120.0, 10.0


@dataclass(frozen=True)
class PlatformPoints:
    """What is to be measured on a platform."""

    name: str
    platform: Platform
    points: list[Point]
    probes: list[str]
    survey: bool  # whether the network is surveyed first


def make_batches(
    wanted: PlatformPoints, experiment: Experiment, measure: Measure
) -> tuple[Batch, ...]:
    """Return the batches of a platform: one for the survey of the network, one for the probes, and
    those of the points. Automatic probes have fewer cases if survey and probes exceed their share
    of the time."""
    maker = _BatchMaker.of(wanted, experiment, measure)
    point_batches = list(_make_point_batches(maker, wanted, experiment))
    site, sizes = _describe_site(wanted, experiment)
    # Before the survey, levels are unknown. The estimates must suffice for the probes of a network
    # with levels.
    likely_site = site
    probes = wanted.probes
    survey_batches = []
    if wanted.survey:
        flat = replace(site, levels=FLAT)
        pairs = tuple(find_probe(SURVEY).cases(wanted.name, flat, [0]))
        survey_batches.append(maker.make(BATCH_INFIX.removesuffix("-"), pairs))
        probes = [probe for probe in probes if probe != SURVEY]
        if not site.levels.groups:
            likely_site = replace(site, levels=_guess_levels(site.nodes))

    def list_cases(site: Site) -> list[Case]:
        cases: list[Case] = []
        for probe in probes:
            cases += find_probe(probe).cases(wanted.name, site, sizes)
        return cases

    is_simulated = wanted.platform.simulated
    limit = PROBE_SHARE / (1 - PROBE_SHARE) * sum(batch.seconds for batch in point_batches)
    limit = max(limit, MIN_SIMULATED_PROBE_SECONDS if is_simulated else MIN_PROBE_SECONDS)
    remaining = limit - sum(batch.seconds for batch in survey_batches)
    for thinning in (1, 2) if experiment.has_automatic_probes else (1,):
        cases = list_cases(replace(site, thinning=thinning))
        if not cases:
            return (*survey_batches, *point_batches)
        likely_cases = list_cases(replace(likely_site, thinning=thinning))
        batch = maker.make("-probes", cases, likely_cases)
        if batch.seconds <= remaining:
            break
    return (*survey_batches, batch, *point_batches)


@dataclass(frozen=True)
class _BatchMaker:
    """Makes the batches of one platform."""

    name: str  # of the platform
    # Of the platform, the settings of measurements and the programs. It is in the names of batches:
    # if any of these changes, earlier samples are invalid.
    state_digest: str
    durations: Durations
    budget: float

    @classmethod
    def of(cls, wanted: PlatformPoints, experiment: Experiment, measure: Measure) -> _BatchMaker:
        platform = wanted.platform
        sampling = {key: value for key, value in asdict(measure).items() if key != "timeout"}
        programs = compute_native_digest(platform.substrate)
        return cls(
            name=wanted.name,
            state_digest=compute_digest([platform.digest, sampling, experiment.seed, programs], 8),
            durations=Durations(platform.launcher, measure, platform.substrate),
            budget=experiment.batch.budget,
        )

    def make(
        self, label: str, members: Sequence[Point | Case], likely: Sequence[Case] = ()
    ) -> Batch:
        """Return a batch of points or of cases. If the `likely` cases take longer, the estimates
        are theirs."""

        def estimate(limit: bool) -> float:
            return max(self.durations.estimate_batch(group, limit) for group in (members, likely))

        nodes = max(
            member.nodes if isinstance(member, Point) else count_case_nodes(member)
            for member in members
        )
        return Batch(
            name=f"{self.name}{label}-{self.state_digest}",
            platform=self.name,
            nodes=nodes,
            points=tuple(member for member in members if isinstance(member, Point)),
            cases=tuple(member for member in members if isinstance(member, Case)),
            seconds=estimate(limit=False),
            most=estimate(limit=True),
            budget=self.budget,
        )


def _make_point_batches(
    maker: _BatchMaker, wanted: PlatformPoints, experiment: Experiment
) -> Iterator[Batch]:
    platform = wanted.platform
    smaller = experiment.batch.smaller
    # some points may need fewer nodes
    infix = "upto" if platform.simulated or smaller else ""
    for size, members in _group_by_nodes(wanted.points, platform, smaller):
        parts = list(_split_by_budget(members, maker.durations, maker.budget))
        for number, part in enumerate(parts, 1):
            suffix = f"-{number}" if len(parts) > 1 else ""
            yield maker.make(f"-{infix}{size}n{suffix}", part)


def _describe_site(wanted: PlatformPoints, experiment: Experiment) -> tuple[Site, list[int]]:
    """Return the platform as probes see it, and the sizes of their messages."""
    platform = wanted.platform
    probes_local_work = (
        not platform.simulated
        and platform.uses_mpi
        and not LOCAL_WORK_PROBES.isdisjoint(wanted.probes)
    )
    sizes, longest_vectors = choose_probe_sizes(
        wanted.points, experiment.probe_bytes, probes_local_work
    )
    site = Site(
        nodes=platform.nodes,
        cores=platform.cores,
        types=dict(platform.types),
        simulated=platform.simulated,
        substrate=platform.substrate,
        fewer_cores=dict(platform.fewer_cores),
        levels=platform.hierarchy,
        vectors=longest_vectors,
    )
    return site, sizes


def _guess_levels(nodes: int) -> Hierarchy:
    inner = max(2, nodes // 8)
    return Hierarchy.of(
        {
            name: (np.arange(nodes) // size).tolist()
            for name, size in (("a", inner), ("b", 2 * inner))
        }
    )


def _group_by_nodes(
    points: list[Point], platform: Platform, smaller: bool
) -> list[tuple[int, list[Point]]]:
    """Return the points by the largest number of nodes that their allocation may have.

    For simulated allocations this is a power of two, or all nodes of the platform: they need no
    nodes, and one start takes longer than a small point. The name of a batch has this number, so
    that further points do not change the name. `smaller` puts all points into the largest
    allocation.
    """
    if smaller:  # points of many nodes come first, so that a further batch needs few nodes
        points = sorted(points, key=lambda point: -point.nodes)
    parts: dict[int, list[Point]] = {}
    for point in points:
        nodes = points[0].nodes if smaller else point.nodes
        limit = min(1 << (nodes - 1).bit_length(), platform.nodes) if platform.simulated else nodes
        parts.setdefault(limit, []).append(point)
    return sorted(parts.items())


def _split_by_budget(
    points: Iterable[Point], durations: Durations, budget: float
) -> Iterator[tuple[Point, ...]]:
    """Yield the points in order, in as few parts as the budget allows.

    Alternatives of a workload stay together, so that they are measured in the same state of the
    machine. A workload that exceeds the budget is a part of its own.
    """
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(point.workload, []).append(point)
    # seconds: ten minutes, as in the time limit, but at most half of the budget
    reserve = min(600.0, budget / 2)
    part: list[Point] = []
    seconds = start = durations.estimate_members((), upper_bound=True)
    for members in groups.values():
        added_seconds = durations.estimate_members(members, upper_bound=True) - start
        if part and reserve + seconds + added_seconds > budget:
            yield tuple(part)
            part = []
            seconds = start
        part += members
        seconds += added_seconds
    if part:
        yield tuple(part)
