"""When a campaign will be done: from the pace of what runs, and the plan's estimates of what is left.

A forecast is a range of seconds. Where nothing has been measured yet there is no pace, and no forecast.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from commodel.patterns.operations import OVERLAY
from commodel.plan.duration import START, Durations
from commodel.records import Batch, Plan

Span = tuple[float, float]
UNSURE = 2.0  # a batch that has not begun may be off by so much from the pace of the only other one


@dataclass(frozen=True)
class Work:
    """What an attempt at a batch has measured, or has left: so many cases, which were to take so long. A pass over a
    case is a part of it."""

    cases: float = 0
    estimate: float = 0.0


class Estimates:
    """The plan's guesses for single cases; each batch is priced once."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.durations: dict[str, Durations] = {}
        self.priced: dict[str, dict[str, float]] = {}

    def work(self, batch: Batch, cases: Iterable[str], passes: int) -> Work:
        """Of single passes over cases."""
        known = self.priced.get(batch.name) or self._price(batch)
        chosen = [known[case] for case in cases]
        return Work(len(chosen) / passes, sum(chosen) / passes)

    def _price(self, batch: Batch) -> dict[str, float]:
        name = batch.platform
        if name not in self.durations:
            platform = self.plan.platforms[name]
            self.durations[name] = Durations(platform.launcher, self.plan.measure, platform.substrate == OVERLAY)
        durations = self.durations[name]
        seconds = {case.id: durations.of_cases([case]) - START for case in batch.cases}
        seconds |= {point.id: durations.of_points([point]) - START for point in batch.points}
        self.priced[batch.name] = seconds
        return seconds


def running(spent: float, done: Work, left: Work) -> Span | None:
    """Of a batch at work: by the number of cases left, and by the estimates for just those. The n cases that it has
    measured are a sample of all, and their mean is sure to one part in the root of n."""
    if not done.cases:
        return None
    ways = [spent * left.cases / done.cases]
    ways += [spent * left.estimate / done.estimate] if done.estimate else []
    unsure = 1 / math.sqrt(max(done.cases, 1))
    return min(ways) * (1 - unsure), max(ways) * (1 + unsure)


def pace(spent: float, done: Work) -> float | None:
    """Seconds that a second of the plan's estimate takes."""
    return spent / done.estimate if done.estimate and spent > 0 else None


def waiting(left: Work, paces: list[float]) -> Span | None:
    """Of a batch that has not begun: as far off from its estimate as others on its platform were."""
    if not paces:
        return None
    low, high = min(paces), max(paces)
    if len(paces) == 1:
        low, high = low / UNSURE, high * UNSURE
    return START + low * left.estimate, START + high * left.estimate


def together(spans: list[Span | None], lanes: int) -> Span | None:
    """Of all batches, if as many run at a time as now do; never sooner than the longest one."""
    if not spans or not lanes or None in spans:
        return None
    low, high = (max(max(ends), sum(ends) / lanes) for ends in zip(*spans, strict=True))
    return low, high


def within(span: Span | None, limit: float) -> Span | None:
    """Something that is ended after so many seconds."""
    return span and tuple(min(end, max(limit, 0.0)) for end in span)


def then(span: Span | None, more: float) -> Span | None:
    """With what comes afterwards, which may be off by as much as a batch."""
    return span and (span[0] + more / UNSURE, span[1] + more * UNSURE)
