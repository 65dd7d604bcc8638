"""What happens in each step of a Schedule, with all that is worked out once for all sizes and parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from commodel.patterns.schedule import Schedule


class Step:
    """The messages and the work of one step. Of messages: those that their senders post, `sent`; those that their
    receivers post, `opened`; those that now both have posted, `met`; those that their receivers wait for, `taken`, and
    their senders, `finished`. In the plain case all are the `sent`. `src` is of the sent ones, `dst` of the taken."""

    def __init__(self, schedule: Schedule, work: slice, sent: slice, *ends: np.ndarray) -> None:
        self.work, self.sent = work, sent
        self.opened, self.met, self.taken, self.finished = ends or (sent,) * 4
        self.src, self.dst = schedule.src[sent], schedule.dst[self.taken]
        self.sends, self.receives = Groups(self.src), Groups(self.dst)
        self.senders = Groups(schedule.src[self.taken]) if ends else self.sends  # of the taken ones
        self.finishes = Groups(schedule.src[self.finished]) if ends else self.sends
        self.workers = Groups(schedule.work.rank[work])
        self.openers = schedule.dst[self.opened] if ends else self.dst


class Groups:
    """Rows grouped by rank, in row order within a rank. `order` is None where every rank has one row: the fast case."""

    __slots__ = ("first", "last", "longest", "order", "position", "ranks")

    def __init__(self, rank: np.ndarray) -> None:
        self.order, self.ranks = None, rank
        rising = rank[1:] > rank[:-1]
        if rising.all() or _differ(np.sort(rank)).all():
            return
        self.order = np.argsort(rank, kind="stable")
        ordered = rank[self.order]
        starts = np.concatenate([[0], np.flatnonzero(_differ(ordered)) + 1])
        counts = np.diff(starts, append=len(rank))
        self.first, self.last = starts, starts + counts - 1
        self.position = np.arange(len(rank)) - np.repeat(starts, counts)  # of a row within its rank
        self.ranks, self.longest = ordered[starts], int(counts.max())

    def latest(self, times: np.ndarray) -> np.ndarray:
        """The last of the times of each rank's rows, over any further axes in front."""
        return times if self.order is None else np.maximum.reduceat(times[..., self.order], self.first, axis=-1)


def steps_of(schedule: Schedule) -> tuple[Step, ...]:
    """In order; steps in which nothing happens are left out."""
    numbers = np.union1d(_distinct(schedule.step), _distinct(schedule.work.step))
    for column in schedule.ends.columns if schedule.ends else ():
        numbers = np.union1d(numbers, column)
    sent, work = _slices(schedule.step, numbers), _slices(schedule.work.step, numbers)
    if schedule.ends is None:
        return tuple(Step(schedule, *rows) for rows in zip(work, sent, strict=True))
    met = np.maximum(schedule.step, schedule.dst_step)
    ends = (_rows(column, numbers) for column in (schedule.dst_step, met, schedule.dst_wait, schedule.src_wait))
    return tuple(Step(schedule, *rows) for rows in zip(work, sent, *ends, strict=True))


def _slices(ordered: np.ndarray, numbers: np.ndarray) -> list[slice]:
    """Which rows of a column in order hold each number."""
    lows, highs = np.searchsorted(ordered, numbers, "left"), np.searchsorted(ordered, numbers, "right")
    return [slice(low, high) for low, high in zip(lows, highs, strict=True)]


def _rows(column: np.ndarray, numbers: np.ndarray) -> list[np.ndarray]:
    """The same of a column in any order."""
    order = np.argsort(column, kind="stable")
    return [order[rows] for rows in _slices(column[order], numbers)]


def _distinct(ordered: np.ndarray) -> np.ndarray:
    return ordered[:1] if len(ordered) < 2 else ordered[np.concatenate([[True], _differ(ordered)])]


def _differ(ordered: np.ndarray) -> np.ndarray:
    return ordered[1:] != ordered[:-1]
