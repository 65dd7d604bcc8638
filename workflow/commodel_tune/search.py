"""Search for the fastest algorithms of an MPI library's own collectives: `search_choices` checks
whether rules are followed and measures alternatives, `choose_algorithms` returns the algorithm of
each workload."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from math import comb, exp, hypot, log
from statistics import fmean
from typing import Protocol

import numpy as np
from scipy.stats import norm

from commodel.advice import Workload, advise
from commodel.advice.alternatives import list_algorithms
from commodel.advice.evidence import Evidence
from commodel.advice.sequential_sampling import (
    DEFAULT_ARMS,
    DEFAULT_WITH_RULES,
    SECONDS_PER_POINT,
    Arm,
    Arms,
    Belief,
    MeasuredStart,
    compute_belief,
    estimate_seconds,
)
from commodel.errors import UserError
from commodel.patterns.points import PlatformResources, make_point
from commodel.records import BARRIER, LIBRARY, Choice, Measure, PlacedWorkload, StartTimings

MAX_POINTS_PER_START = 32  # a start is one start of the MPI program, which measures several points
# seconds that a start is assumed to take at most, until one has been measured
ASSUMED_START_SECONDS = 2.0
# of the largest expected gain of a point: points with less are not measured yet
MIN_VALUE_SHARE = 0.05
MAX_SHOWN_REGRET = 1.0  # expected; more of it only says that little was measured
SETTLED_REGRET = 0.05  # expected regret at which measuring ends
MIN_DISTINCT_RATIO = 1.1  # of the times of two algorithms: above, they differ
MIN_PREDICTED_RATIO = 1.5  # of the predictions of two algorithms: above, their times should differ
CanName = Callable[[str, str, int], bool]  # whether a rule can name: operation, algorithm, ranks


@dataclass(frozen=True)
class Search:
    arms: Arms
    belief: Belief
    took: float  # seconds
    full: float  # seconds that measuring all points would take
    # operations whose rules seem to change nothing
    ignored: list[str] = field(default_factory=list)


class CollectiveTimer(Protocol):
    """Times an MPI library's own collectives, with rules or without."""

    @property
    def resources(self) -> PlatformResources: ...

    @property
    def measure(self) -> Measure: ...

    def time(
        self,
        name: str,
        workloads: Collection[PlacedWorkload],
        choices: Iterable[Choice] = (),
        separate: Collection[str] = (),
    ) -> StartTimings: ...

    def with_seconds(self, seconds: float) -> "CollectiveTimer": ...

    def find_failures(
        self,
        name: str,
        operation: str,
        sizes: Collection[int],
        choices: Iterable[Choice],
        layout: str,
    ) -> Mapping[tuple[str, int, int], str]: ...


def list_arms(
    workloads: Iterable[PlacedWorkload],
    evidence: Evidence | None,
    resources: PlatformResources,
    can_name: CanName,
    progress: Callable[[str], None],
    changes_defaults: bool = False,
    list_further_specs: Callable[[str], Sequence[str]] = lambda operation: (),
) -> Arms:
    """Return for each workload every algorithm that a rule can name, with its combined prediction,
    and the library default. The default is assumed to be as fast as the best algorithm. Of
    algorithms with equal messages one remains. `changes_defaults`: a rule changes the library
    default at other sizes of the operation. `list_further_specs` returns algorithms of an operation
    that depend on the placement."""
    arms = []
    for workload in workloads:
        predictions: dict[str, float] = {}
        # Apart, since the library may run equal messages of the two kinds differently.
        flat = list_algorithms(workload.operation, workload.ranks, workload.bytes)
        for listed in (flat, list_further_specs(workload.operation)):
            specs = [spec for spec in listed if _can_express(can_name, resources, workload, spec)]
            predictions |= _predict_arms(workload, specs, evidence, progress)
        arms += [Arm(workload, spec, prediction) for spec, prediction in predictions.items()]
        default_arms = DEFAULT_ARMS if changes_defaults else (LIBRARY,)
        arms += [
            Arm(workload, name, min(predictions.values(), default=0.0)) for name in default_arms
        ]
    return Arms.of(arms)


def _predict_arms(
    workload: PlacedWorkload,
    specs: Sequence[str],
    evidence: Evidence | None,
    progress: Callable[[str], None],
) -> dict[str, float]:
    """Return the combined predictions of some algorithms, one of those with equal messages; 0
    without predictions."""
    operation, ranks, layout, size = workload
    if evidence and specs:
        try:
            rows = advise(
                Workload(operation, size, ranks=ranks), evidence, [layout], specs, streams=False
            ).frame
            return dict(zip(rows["alternative"], rows["seconds"].astype(float), strict=True))
        except UserError as error:
            progress(f"{operation} of {size} B has no predictions: {error.message}")
    return dict.fromkeys(specs, 0.0)


def _can_express(
    can_name: CanName, resources: PlatformResources, workload: PlacedWorkload, spec: str
) -> bool:
    """Return whether a rule can name the algorithm and the algorithm can run the workload."""
    operation, ranks, layout, size = workload
    if not can_name(operation, spec, ranks):
        return False
    with suppress(UserError):
        placement = {"ranks": ranks, "layout": layout, "bytes": size}
        make_point(resources, {"operation": operation, "algorithm": spec, **placement})
        return True
    return False


def search_choices(
    timer: CollectiveTimer, arms: Arms, budget: float, progress: Callable[[str], None]
) -> Search:
    """Measure until the choice is settled or the budget of seconds is used up. The first two starts
    check whether rules are followed, whatever the budget."""
    measured: list[MeasuredStart] = []
    pairs = _choose_check_pairs(arms)
    # the slow ones, the fast ones
    checks = [list(algorithms) for algorithms in zip(*pairs.values(), strict=True)]
    belief, took, start_seconds = compute_belief(arms), 0.0, ASSUMED_START_SECONDS
    failed: set[int] = set()  # points without a valid sample
    for number in count():
        expected = float(np.mean(belief.regret()))
        continues = took < budget and expected > SETTLED_REGRET
        if not continues and number >= len(checks):
            break
        if measured:
            outlook = f"the choice is expected to take {100 * expected:.1f} % more than the best"
            if expected > MAX_SHOWN_REGRET:
                outlook = "too little is measured for a choice"
            count_text = f"{len(belief.measured_arms)} of {len(arms.arms)} points"
            progress(f"{count_text} in {took:.0f} s; {outlook}")
        first = checks[number] if number < len(checks) else []
        seconds_of_points = _estimate_costs(timer.measure, belief, start_seconds)
        points = _choose_next_start(
            belief,
            seconds_of_points,
            start_seconds,
            MAX_POINTS_PER_START if continues else len(first),
            first,
            failed,
        )
        if not points:
            break
        measured_now, seconds = _measure(timer, number, arms, points)
        took, start_seconds = took + seconds, min(start_seconds, seconds)
        measured += measured_now
        failed |= set(points) - {row.arm for row in measured}
        belief = compute_belief(arms, measured)
    ignored = [name for name in pairs if _have_same_times(belief, name)]
    return Search(
        arms, belief, took, _estimate_full_search(timer.measure, belief, took, number), ignored
    )


def _choose_next_start(
    belief: Belief,
    costs: np.ndarray,
    start: float,
    count: int,
    first: Sequence[int],
    failed: set[int],
) -> list[int]:
    """Return the points of the next start, with rules or without any: the one with more expected
    gain for its seconds. The library default can only be measured without rules."""
    separate, worth = belief.arms.is_library_default, belief.worth()
    excluded = [separate] if first else [~separate, separate]
    worth[list(failed)] = 0
    min_worth = MIN_VALUE_SHARE * worth.max()
    unavailable = [
        failed | set(np.flatnonzero(excluded_arms).tolist()) for excluded_arms in excluded
    ]
    sets = [
        belief.next_points(count, costs, min_worth, first, unavailable_arms)
        for unavailable_arms in unavailable
    ]
    return max(sets, key=lambda points: worth[points].sum() / (start + costs[points].sum()))


def _estimate_costs(settings: Measure, belief: Belief, start: float) -> np.ndarray:
    """Return the expected seconds of each point: samples, equally many warm-up runs, and a start of
    its own if a barrier has a rule."""
    arms, seconds = belief.arms.arms, np.exp(belief.mean)
    separate = np.array(
        [arm.workload.operation == BARRIER and arm.algorithm != LIBRARY for arm in arms]
    )
    return estimate_seconds(seconds, settings.seconds, settings.min_samples) + start * separate


def _measure(
    timer: CollectiveTimer, number: int, arms: Arms, points: Sequence[int]
) -> tuple[list[MeasuredStart], float]:
    """Measure in the start of that number; return the results and its seconds."""
    chosen = [arms.arms[point] for point in points]
    rules = list_rule_choices((arm.workload, arm.algorithm) for arm in chosen)
    timed = timer.time(f"round-{number}", [arm.workload for arm in chosen], rules)
    workloads = {point: arms.arms[point].workload for point in points}
    rows = [
        MeasuredStart(point, timed.seconds[workload], timed.noise[workload])
        for point, workload in workloads.items()
        if workload in timed.seconds
    ]
    return rows, timed.took


def _choose_check_pairs(arms: Arms) -> dict[str, tuple[int, int]]:
    """Return for each operation two algorithms of one workload with clearly different predictions:
    the pair that is fastest to distinguish."""
    pairs: dict[str, tuple[float, tuple[int, int]]] = {}
    for number, workload in enumerate(arms.workloads):
        arms_of_workload = [
            arm
            for arm in np.flatnonzero(arms.workload == number).tolist()
            if arms.arms[arm].algorithm not in DEFAULT_ARMS
        ]
        if len(arms_of_workload) < 2:
            continue
        slow = max(arms_of_workload, key=lambda arm: arms.arms[arm].prediction)
        fast = min(arms_of_workload, key=lambda arm: arms.arms[arm].prediction)
        predictions = arms.arms[slow].prediction, arms.arms[fast].prediction
        ratio = predictions[0] / predictions[1] if predictions[1] else 1.0
        if slow != fast and ratio > MIN_PREDICTED_RATIO:
            time_to_distinguish = predictions[0] / log(ratio)
            pairs[workload.operation] = min(
                pairs.get(workload.operation, (np.inf, (0, 0))),
                (time_to_distinguish, (int(slow), int(fast))),
            )
    return {name: pair for name, (_, pair) in pairs.items()}


def _have_same_times(belief: Belief, operation: str) -> bool:
    """Return whether algorithms of an operation were measured, and none differ significantly within
    a workload. A single pair may be equal by chance."""
    times: dict[PlacedWorkload, list[tuple[float, float]]] = {}
    for number, (seconds, noise) in belief.medians().items():
        arm = belief.arms.arms[number]
        if arm.workload.operation == operation and arm.algorithm not in DEFAULT_ARMS:
            times.setdefault(arm.workload, []).append((log(seconds), noise))
    repeated = [
        times_of_workload for times_of_workload in times.values() if len(times_of_workload) > 1
    ]
    return bool(repeated) and not any(
        _differ_significantly(times_of_workload) for times_of_workload in repeated
    )


def _differ_significantly(times: Sequence[tuple[float, float]]) -> bool:
    """Return whether the extremes of some times, logarithms with noise, differ by more than equal
    times would by chance, given their number."""
    (smallest, first), (largest, second) = min(times), max(times)
    by_chance = norm.isf(0.025 / comb(len(times), 2)) * hypot(first, second)
    return largest - smallest > max(log(MIN_DISTINCT_RATIO), by_chance)


def _estimate_full_search(settings: Measure, belief: Belief, took: float, starts: int) -> float:
    """Return the seconds of measuring everything: a start for each alternative of the largest
    workload, as long as those so far, and the samples of each point."""
    seconds = np.exp(belief.mean)
    for row in belief.measured:
        seconds[row.arm] = row.seconds
    samples = np.clip(settings.seconds, seconds, settings.max_samples * seconds) + SECONDS_PER_POINT
    start = max(took - samples[[row.arm for row in belief.measured]].sum(), 0.0) / max(starts, 1)
    return max(float(samples.sum() + np.bincount(belief.arms.workload).max() * start), took)


def list_rule_choices(choices: Iterable[tuple[PlacedWorkload, str]]) -> list[Choice]:
    """Return the rows of a rules file; none if all workloads keep the library default."""
    rows = [
        Choice(workload.operation, workload.ranks, workload.bytes, algorithm)
        for workload, algorithm in choices
    ]
    ruled = {(row.operation, row.ranks) for row in rows if row.algorithm != LIBRARY}
    named_rows = [
        replace(row, algorithm=LIBRARY) if row.algorithm == DEFAULT_WITH_RULES else row
        for row in rows
    ]
    return [row for row in named_rows if (row.operation, row.ranks) in ruled]


def choose_algorithms(
    search: Search, worth: float, size_independent_operations: Collection[str] = ()
) -> dict[PlacedWorkload, str]:
    """Return an algorithm for each workload: LIBRARY if none is expected to be `worth` times as
    fast, and for operations whose rules the MPI library ignores. The `size_independent_operations`
    get the algorithm that is fastest over all sizes of a number of ranks."""
    arms, seconds = search.arms.arms, np.exp(search.belief.mean)
    # the default with rules for other sizes, if any
    default_seconds = {
        arm.workload: seconds[index]
        for name in DEFAULT_ARMS
        for index, arm in enumerate(arms)
        if arm.algorithm == name
    }
    chosen_arms = {arms[arm].workload: arm for arm in search.belief.choices()}
    ruled = {
        workload
        for workload, arm in chosen_arms.items()
        if arms[arm].algorithm not in DEFAULT_ARMS
        and default_seconds[workload] >= worth * seconds[arm]
    }
    choices = {
        workload: arms[arm].algorithm
        if workload in ruled and workload.operation not in search.ignored
        else LIBRARY
        for workload, arm in chosen_arms.items()
    }
    times: dict[tuple, dict[str, dict[PlacedWorkload, float]]] = {}
    for arm, of_arm in zip(arms, seconds, strict=True):
        if (
            arm.workload.operation in size_independent_operations
            and arm.algorithm not in DEFAULT_ARMS
        ):
            times.setdefault(arm.workload.without_size, {}).setdefault(arm.algorithm, {})[
                arm.workload
            ] = float(of_arm)
    for all_sizes in {
        workload.without_size
        for workload in choices
        if workload.operation in size_independent_operations
    }:
        workloads = [workload for workload in choices if workload.without_size == all_sizes]
        ratios = {
            name: exp(
                fmean(
                    log(of_workload[workload] / default_seconds[workload]) for workload in workloads
                )
            )
            for name, of_workload in times.get(all_sizes, {}).items()
            if all(workload in of_workload for workload in workloads)
        }
        best = min(ratios, key=ratios.__getitem__, default=LIBRARY)
        pays = best != LIBRARY and ratios[best] * worth <= 1 and all_sizes[0] not in search.ignored
        choices |= dict.fromkeys(workloads, best if pays else LIBRARY)
    return choices
