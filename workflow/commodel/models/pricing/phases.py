"""Combine phases of a schedule: what a rank receives between two of its sends, and at the end, it combines at once."""

from collections.abc import Iterator

import numpy as np

from commodel.patterns.repeated import Rounds
from commodel.patterns.schedule import Schedule
from commodel.patterns.steps import Step


def phases_of(schedule: Schedule) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For every step, and for the end, the ranks whose phase closes before it, and the messages in each phase."""
    count = np.zeros(schedule.ranks)

    def close(ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ranks = ranks[count[ranks] > 0]
        closed = ranks, count[ranks]
        count[ranks] = 0
        return closed

    for step in _steps(schedule):
        yield close(step.sends.ranks)
        groups = step.receives
        count[groups.ranks] += 1 if groups.order is None else groups.last - groups.first + 1
    yield close(np.arange(schedule.ranks))


def largest_phase(schedule: Schedule) -> int:
    """The most messages of a phase."""
    return max(int(count.max(initial=0)) for _, count in phases_of(schedule))


def _steps(schedule: Schedule) -> Iterator[Step]:
    """Those of a schedule; of rounds that repeat two, as all but the first find the same."""
    for part in schedule.parts:
        if isinstance(part, Rounds):
            yield from part.round(0, schedule.node).steps * min(part.count, 2)
        else:
            yield from part.steps
