"""What all ranks of a schedule do, as columns that whoever plays it in the order of time can go through."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from commodel.models import Array
from commodel.patterns.schedule import Schedule

if TYPE_CHECKING:
    from commodel.models.pricing.bundles import Bundles


@dataclass(frozen=True, eq=False)
class Runs:
    """Rows of each of some places, one place after the other: those of place p from `first[p]` to `first[p + 1]`."""

    rows: np.ndarray
    first: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, place: np.ndarray, places: int) -> "Runs":
        first = np.concatenate([np.zeros(1, dtype=int), np.cumsum(np.bincount(place, minlength=places))])
        return cls(rows[in_order(place)], first)

    @cached_property
    def lists(self) -> list[list[int]]:
        rows, ends = self.rows.tolist(), self.first.tolist()
        return [rows[first:last] for first, last in pairwise(ends)]


def in_order(numbers: np.ndarray) -> np.ndarray | slice:
    """What puts numbers in order, those that are alike as they were. numpy sorts short integers by radix, in linear
    time."""
    if (numbers[1:] >= numbers[:-1]).all():
        return slice(None)
    return np.argsort(numbers.astype(np.int16) if numbers.max() < 1 << 15 else numbers, kind="stable")


def distinct(keys: Sequence[np.ndarray], count: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """The numbers below `count` that occur in any of some columns, in order; and which of them each column holds."""
    if count > (1 << 20) + 16 * sum(map(len, keys)):
        occurring = np.unique(np.concatenate(keys))
        return occurring, [np.searchsorted(occurring, key) for key in keys]
    occurs = np.zeros(count, dtype=bool)  # much quicker than to sort them
    for key in keys:
        occurs[key] = True
    number = np.cumsum(occurs) - 1
    return np.flatnonzero(occurs), [number[key] for key in keys]


@dataclass(frozen=True, eq=False)
class Program:
    """What all ranks do, at one size. A place is a step in which a rank does something; those of a rank follow each
    other from `places[rank]` to `places[rank + 1]`."""

    schedule: Schedule
    places: np.ndarray
    works: np.ndarray  # the place of each row of work
    posted: Runs
    opened: Runs  # posted by their receivers, of those that ask
    taken: Runs
    finished: Runs  # waited for by their senders
    asks: np.ndarray
    passed: Runs  # the lines of each message
    passing: np.ndarray | slice  # which of the given uses each of them is
    opposite: np.ndarray  # of each line the one that leads the other way, or -1
    bundles: "Bundles | None"  # in which messages are followed; each passes one then, instead of lines
    in_turn: bool  # a rank's messages to another go one after the other, and some have several
    pair: np.ndarray  # where they do: of each message the number of its pair of ranks

    @classmethod
    def of(
        cls,
        schedule: Schedule,
        asks: np.ndarray,
        uses: tuple[np.ndarray, ArrayLike],
        in_turn: bool = False,
        waits: np.ndarray | None = None,
        opposite: np.ndarray | None = None,
        pair: np.ndarray | None = None,
        bundles: "Bundles | None" = None,
    ) -> "Program":
        """`asks`: which messages wait for their receivers; `waits`: for which of these their senders wait until they
        are through (None: for all); `uses`: messages, and the number of a line that each passes; `opposite`: of each
        line the one that leads the other way, where the two hold each other up (None: none do); `pair`: of every
        message a number for its ranks, where those of the schedule stand for others, too; `bundles`: of messages that
        are followed together."""
        span, work = schedule.last_step + 1, schedule.work
        every = np.arange(len(schedule.src))
        some, held = np.flatnonzero(asks), np.flatnonzero(asks if waits is None else asks & waits)
        ends = [(schedule.src, schedule.step, every), (schedule.dst, schedule.dst_step, some)]
        ends += [(schedule.dst, schedule.dst_wait, every), (schedule.src, schedule.src_wait, held)]
        keys = [rank[rows] * span + step[rows] for rank, step, rows in ends] + [work.rank * span + work.step]
        places, numbers = distinct(keys, schedule.ranks * span)
        runs = [Runs.of(rows, place, len(places)) for (*_, rows), place in zip(ends, numbers, strict=False)]
        message, line = uses[0], np.asarray(uses[1], dtype=np.int64)
        passing = in_order(message)
        passed = Runs.of(line, message, len(every)) if bundles is None else bundles.passed
        bounds = np.searchsorted(places, np.arange(schedule.ranks + 1) * span)
        opposite = np.full(int(line.max(initial=-1)) + 1, -1) if opposite is None else opposite
        turns = every[:0]
        if in_turn:
            number = schedule.src * schedule.ranks + schedule.dst if pair is None else pair
            pairs, (turns,) = distinct([number], int(number.max(initial=0)) + 1)
            in_turn = len(pairs) < len(every)
        return cls(schedule, bounds, numbers[-1], *runs, asks, passed, passing, opposite, bundles, in_turn, turns)

    @property
    def lines(self) -> int:
        """How many there are of what messages pass: of bundles, if they are followed in these."""
        return len(self.opposite) if self.bundles is None else len(self.bundles.lines.first) - 1

    def uses(self, seconds: Array) -> Array:
        """For how long each message is on each of what it passes, alone, from what was given."""
        return seconds[self.passing] if self.bundles is None else np.ones(len(self.passed.rows))

    def work(self, seconds: Array) -> Array:
        """How long the work of each place takes, from that of each row."""
        return np.bincount(self.works, seconds, minlength=len(self.posted.first) - 1)
