"""Which of a library's own algorithms to use: whether rules are followed at all, what to measure, what to choose."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from math import log
from typing import Protocol

import numpy as np

from commodel.advice import Job as Asked
from commodel.advice import advise
from commodel.advice.active import Belief, believe, pooled
from commodel.advice.arms import REST, Arm, Arms, Job
from commodel.advice.candidates import algorithms
from commodel.advice.ground import Evidence
from commodel.errors import UserError
from commodel.patterns.points import Setting, make_point
from commodel.records import BARRIER, LIBRARY, Choice, Measure, Timed

AT_ONCE = 32  # points of a start, at most
START = 2.0  # seconds that a start takes at most, before any was seen
DECISIVE = 0.05  # of what the best point is worth: what is worth less waits until more is known
SETTLED = 0.05  # regret that is left to expect when measuring ends
TOLD_APART = 1.1  # times as long: then it was another algorithm
FAR_APART = 1.5  # prices of two algorithms whose times should differ
Names = Callable[[str, str, int], bool]  # whether a rule can say: operation, algorithm, ranks
OWN = (LIBRARY, REST)  # no algorithm is named
A_POINT = 0.02  # seconds beside those of samples


@dataclass(frozen=True)
class Search:
    """What measuring led to."""

    arms: Arms
    belief: Belief
    took: float  # seconds
    full: float  # that the whole matrix would take
    ignored: list[str] = field(default_factory=list)  # operations whose rules seem to change nothing


class Place(Protocol):
    """Where a library's own collectives are timed, with rules or without."""

    @property
    def setting(self) -> Setting: ...

    @property
    def measure(self) -> Measure: ...

    def time(self, name: str, jobs: Collection[Job], choices: Iterable[Choice] = (), apart: bool = False) -> Timed: ...

    def with_seconds(self, seconds: float) -> "Place": ...


def arms_of(
    jobs: Iterable[Job],
    evidence: Evidence | None,
    setting: Setting,
    names: Names,
    progress: Callable[[str], None],
    spread: bool = False,
) -> Arms:
    """Every algorithm that a rule can say for each job, with the price that the families vote for, and the library's
    own choice, which is believed to be as good as the cheapest. Of algorithms that send the same messages one stays.
    `spread`: a rule changes what the library does by itself at other sizes of the operation."""
    arms = []
    for job in jobs:
        operation, ranks, layout, size = job
        specs = [spec for spec in algorithms(operation, ranks, size) if _says(names, setting, job, spec)]
        prices = dict.fromkeys(specs, 0.0)
        if evidence and specs:
            try:
                rows = advise(Asked(operation, size, ranks=ranks), evidence, [layout], specs, streams=False).rows
                prices = dict(zip(rows["choice"], rows["seconds"].astype(float), strict=True))
            except UserError as error:
                progress(f"{operation} of {size} B has no prices: {error.message}")
        arms += [Arm(job, spec, price) for spec, price in prices.items()]
        own = (LIBRARY, REST) if spread else (LIBRARY,)
        arms += [Arm(job, name, min(prices.values(), default=0.0)) for name in own]
    return Arms.of(arms)


def _says(names: Names, setting: Setting, job: Job, spec: str) -> bool:
    operation, ranks, layout, size = job
    if not names(operation, spec, ranks):
        return False
    with suppress(UserError):
        where = {"ranks": ranks, "layout": layout, "bytes": size}
        make_point(setting, {"operation": operation, "algorithm": spec, **where})
        return True
    return False


def search(place: Place, arms: Arms, budget: float, progress: Callable[[str], None]) -> Search:
    """Measures until the choice is settled or the budget of seconds is used up. The first two starts show whether rules
    are followed, whatever the budget."""
    measured: dict[int, tuple[float, float]] = {}
    pairs = _telling(arms)
    checks = _checks(arms, pairs)
    belief, took, least = _belief(arms, measured), 0.0, START
    failed: set[int] = set()  # points of which no sample was valid
    for number in count():
        expected = float(np.mean(belief.regret()))
        going_on = took < budget and expected > SETTLED
        if not going_on and number >= len(checks):
            break
        if measured:
            progress(
                f"{len(measured)} of {len(arms.arms)} points in {took:.0f} s; the choice is expected to take "
                f"{100 * expected:.1f} % more than the best"
            )
        first = checks[number] if number < len(checks) else []
        costs = _costs(place.measure, belief, least)
        points = _next_start(belief, costs, least, AT_ONCE if going_on else len(first), first, failed)
        if not points:
            break
        seconds = _measure(place, f"round-{number}", arms, points, measured)
        took, least = took + seconds, min(least, seconds)
        failed |= set(points) - set(measured)
        belief = _belief(arms, measured)
    ignored = [name for name in pairs if _same_times(arms, name, measured)]
    return Search(arms, belief, took, _full(place.measure, belief, took, number), ignored)


def _next_start(
    belief: Belief, costs: np.ndarray, start: float, count: int, first: Sequence[int], failed: Collection[int]
) -> list[int]:
    """The points of a start with rules or of one without any: the one that is worth more for the seconds it takes. The
    library's own choice is only what users have by default where there are no rules."""
    alone, worth = belief.arms.alone, belief.worth()
    kinds = [alone] if first else [~alone, alone]
    worth[list(failed)] = 0
    least = DECISIVE * worth.max()
    closed = [failed | set(np.flatnonzero(kind)) for kind in kinds]
    sets = [belief.next_points(count, costs, least, first, without) for without in closed]
    return max(sets, key=lambda points: worth[points].sum() / (start + costs[points].sum()))


def _checks(arms: Arms, pairs: Mapping[str, tuple[int, int]]) -> list[list[int]]:
    """The dear and the cheap algorithm of each operation. Barriers are left to the search: with a rule they need a
    start of their own."""
    shared = [pair for name, pair in pairs.items() if name != BARRIER]
    return [list(ends) for ends in zip(*shared, strict=True)]


def _costs(settings: Measure, belief: Belief, start: float) -> np.ndarray:
    """Seconds that each point is believed to take: samples, as many more that go before them, and a start of its own
    where a barrier has a rule."""
    arms, seconds = belief.arms.arms, np.exp(belief.mean)
    samples = np.clip(settings.seconds, seconds, settings.min_samples * seconds)
    alone = np.array([arm.job[0] == BARRIER and arm.algorithm != LIBRARY for arm in arms])
    return A_POINT + 2 * samples + start * alone


def _belief(arms: Arms, measured: Mapping[int, tuple[float, float]]) -> Belief:
    seconds, noise = ({arm: values[at] for arm, values in measured.items()} for at in (0, 1))
    return believe(arms, seconds, noise)


def _measure(
    place: Place, name: str, arms: Arms, points: Sequence[int], measured: dict[int, tuple[float, float]]
) -> float:
    """What was measured before counts together with what it takes now."""
    chosen = [arms.arms[point] for point in points]
    timed = place.time(name, [arm.job for arm in chosen], rules_of((arm.job, arm.algorithm) for arm in chosen))
    for point in (point for point in points if arms.arms[point].job in timed.seconds):
        job = arms.arms[point].job
        new = timed.seconds[job], timed.noise[job]
        measured[point] = pooled(measured[point], new) if point in measured else new
    return timed.took


def _telling(arms: Arms) -> dict[str, tuple[int, int]]:
    """For each operation two algorithms for one job that take clearly different times, as priced: the pair that costs
    least to tell apart."""
    pairs: dict[str, tuple[float, tuple[int, int]]] = {}
    for number, job in enumerate(arms.jobs):
        ours = [arm for arm in np.flatnonzero(arms.job == number) if arms.arms[arm].algorithm not in OWN]
        if len(ours) < 2:
            continue
        dear = max(ours, key=lambda arm: arms.arms[arm].price)
        cheap = min(ours, key=lambda arm: arms.arms[arm].price)
        prices = arms.arms[dear].price, arms.arms[cheap].price
        apart = prices[0] / prices[1] if prices[1] else 1.0
        if dear != cheap and apart > FAR_APART:
            effort = prices[0] / log(apart)
            pairs[job[0]] = min(pairs.get(job[0], (np.inf, (0, 0))), (effort, (int(dear), int(cheap))))
    return {name: pair for name, (_, pair) in pairs.items()}


def _same_times(arms: Arms, operation: str, measured: Mapping[int, tuple[float, float]]) -> bool:
    """Whether algorithms of an operation were measured for one job, and in no job two of them took different times. One
    pair alone may be as fast as each other by chance, whatever their prices."""
    times: dict[Job, list[float]] = {}
    for number, (seconds, _) in measured.items():
        arm = arms.arms[number]
        if arm.job[0] == operation and arm.algorithm not in OWN:
            times.setdefault(arm.job, []).append(seconds)
    several = [own for own in times.values() if len(own) > 1]
    return bool(several) and all(max(own) < TOLD_APART * min(own) for own in several)


def _full(settings: Measure, belief: Belief, took: float, starts: int) -> float:
    """Seconds that measuring everything would take: as many starts as a job has ways, each as dear as those that there
    were, and the samples of each point, as they were or are believed to be."""
    seconds = np.exp(belief.mean)
    for arm, measured in belief.measured.items():
        seconds[arm] = measured
    samples = np.clip(settings.seconds, seconds, settings.max_samples * seconds) + A_POINT
    start = max(took - samples[list(belief.measured)].sum(), 0.0) / max(starts, 1)
    return max(float(samples.sum() + np.bincount(belief.arms.job).max() * start), took)


def rules_of(choices: Iterable[tuple[Job, str]]) -> list[Choice]:
    """Rows of a rules file; none where all is left to the library."""
    rows = [Choice(job[0], job[1], job[3], algorithm) for job, algorithm in choices]
    kept = {(row.operation, row.ranks) for row in rows if row.algorithm != LIBRARY}
    own = [replace(row, algorithm=LIBRARY) if row.algorithm == REST else row for row in rows]
    return [row for row in own if (row.operation, row.ranks) in kept]


def chosen(search: Search) -> dict[Job, str]:
    """An algorithm for each job; LIBRARY where none is named, whether there are others for its operation or not.
    Nothing is chosen for an operation whose rules are not followed."""
    picks = {search.arms.arms[arm].job: search.arms.arms[arm].algorithm for arm in search.belief.choices()}
    own = {job for job, algorithm in picks.items() if job[0] in search.ignored or algorithm == REST}
    return {job: LIBRARY if job in own else algorithm for job, algorithm in picks.items()}
