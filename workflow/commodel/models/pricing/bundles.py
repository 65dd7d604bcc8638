"""Queues of messages from one rank to another, as in a chain of ranks that pass on parts of a message: a hundred of
them may be on one line. Those that are alike make a bundle. All of it go as fast as the slowest of their lines lets
them, and meanwhile the other lines do not serve them any sooner. To follow bundles is as quick as to follow lines; it
would not be for single messages, of which each has lines of its own, and there it comes to nearly the same."""

from dataclasses import dataclass

import numpy as np

from commodel.models.pricing.programs import Runs, distinct
from commodel.patterns.schedule import Schedule

QUEUE = 8  # messages from one rank to another at once: where there are more, they are followed in bundles
MEETINGS = 16  # of a bundle with others, for each message: where there are more, lines are followed


@dataclass(frozen=True, eq=False)
class Bundles:
    """Messages of as many bytes that pass the same lines."""

    of: np.ndarray  # the bundle of each message, -1: it passes no line
    lines: Runs  # of each bundle
    passing: np.ndarray  # which of the given uses each of these is
    meets: Runs  # other bundles that are on one of its lines, or on the opposite of one
    opposite: np.ndarray  # of each line, or -1

    @property
    def passed(self) -> Runs:
        """The bundle of each message."""
        some = np.flatnonzero(self.of >= 0)
        return Runs.of(self.of[some], some, len(self.of))

    @classmethod
    def of_queues(
        cls, schedule: Schedule, asks: np.ndarray, message: np.ndarray, line: np.ndarray, opposite: np.ndarray
    ) -> "Bundles | None":
        """None where no rank has a queue for another one, or too many bundles meet. `message` is in order."""
        if not len(message) or longest_queue(schedule, asks) <= QUEUE:
            return None
        every = np.arange(len(schedule.src))
        first = np.searchsorted(message, np.arange(len(every) + 1))
        sizes, passing_some = np.unique(schedule.bytes), first[1:] > first[:-1]
        size = np.searchsorted(sizes, schedule.bytes)
        alike = 2 * (_pair(schedule) * len(sizes) + size) + passing_some
        found, (of,) = distinct([alike], 2 * schedule.ranks**2 * len(sizes))
        number = np.empty(len(found), dtype=int)
        number[of[::-1]] = every[::-1]  # the first of each
        passes = found % 2 > 0
        names = np.where(passes, np.cumsum(passes) - 1, -1)
        of, chosen = names[of], number[passes]
        passing = np.concatenate([np.arange(first[own], first[own + 1]) for own in chosen])
        counts = first[chosen + 1] - first[chosen]
        bundle = np.repeat(np.arange(len(chosen)), counts)
        meets = _meetings(bundle, line[passing], opposite, MEETINGS * len(every))
        if meets is None:
            return None
        bounds = np.concatenate([[0], np.cumsum(counts)])
        return cls(of, Runs(line[passing], bounds), passing, meets, opposite)


def longest_queue(schedule: Schedule, asks: np.ndarray) -> int:
    """How many messages that leave at once a rank sends another before it waits for its first one."""
    first = np.full(schedule.ranks, schedule.last_step + 1)
    np.minimum.at(first, schedule.dst, schedule.dst_wait)
    early = (schedule.step <= first[schedule.src]) & ~asks & (schedule.bytes > 0)
    _, (pair,) = distinct([_pair(schedule)[early]], schedule.ranks**2)
    return int(np.bincount(pair).max(initial=0))


def _pair(schedule: Schedule) -> np.ndarray:
    """A number for the ranks of every message."""
    return schedule.src * schedule.ranks + schedule.dst


def _meetings(bundle: np.ndarray, line: np.ndarray, opposite: np.ndarray, most: int) -> Runs | None:
    on = Runs.of(bundle, line, len(opposite))
    faced = opposite[line]
    others = [(bundle, line), (bundle[faced >= 0], faced[faced >= 0])]
    own, met = (np.concatenate([pair[number] for pair in others]) for number in (0, 1))
    counts = (on.first[1:] - on.first[:-1])[met]
    if counts.sum() > most:
        return None
    starts = np.repeat(on.first[met] - np.cumsum(counts) + counts, counts)
    other = on.rows[starts + np.arange(counts.sum())]
    bundles = int(bundle.max()) + 1
    own, other = np.divmod(np.unique(np.repeat(own, counts) * bundles + other), bundles)
    apart = own != other
    return Runs.of(other[apart], own[apart], bundles)
