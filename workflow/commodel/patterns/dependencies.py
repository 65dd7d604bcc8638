"""The dependency graph of a schedule, as in GOAL (`make_dependencies`): sends, receives and
calculations of every rank, and the dependencies between their starts and ends.

The posts of a rank's step depend on all its earlier waits and work. Its local work depends on the
waits of the step. Each send depends on the start of the previous one, since LogGOPSim does not keep
the order of simultaneous sends. So do operations after a send that has no wait yet. A calculation
of no time joins several dependencies, and keeps two waits in order.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np

from commodel.patterns.schedule import Schedule

# the order in which LogGOPSim starts operations that are ready at the same time
SEND, RECEIVE, CALC = 1, 2, 3
NO_WORK = -1
# events of a step, in this order
SEND_POSTS, RECEIVE_POSTS, SEND_WAITS, RECEIVE_WAITS, WORKS = range(5)
Event = tuple[int, int, int]  # step, kind of event, row


@dataclass(frozen=True)
class RankOperation:
    """An operation of a rank. `row` is the row of the message, or the group of a calculation (see
    `group_work`), or NO_WORK."""

    kind: int
    row: int


@dataclass(frozen=True)
class Dependency:
    """A dependency between two operations of a rank: `after` waits until `before` is done, or only
    until it starts."""

    after: int
    before: int
    on_start: bool


def group_work(schedule: Schedule) -> tuple[np.ndarray, int]:
    """Return the calculation of each row of local work, one for each rank and step, and their
    number."""
    key = schedule.work.rank.astype(np.int64) * (schedule.last_step + 2) + schedule.work.step
    keys, groups = np.unique(key, return_inverse=True)
    return groups, len(keys)


def make_dependencies(
    schedule: Schedule, busy: np.ndarray
) -> Iterator[list[RankOperation | Dependency]]:
    """Yield for each rank its operations, each followed by its dependencies.

    `busy` flags the groups of `group_work` that take time; the others are omitted.
    """
    groups, _ = group_work(schedule)
    for events in _list_rank_events(schedule):
        rank = _RankGraph(groups, busy)
        for _, step in groupby(events, lambda event: event[0]):
            rank.add_step([event[1:] for event in step])
        yield rank.items


def _list_rank_events(schedule: Schedule) -> Iterator[list[Event]]:
    """Yield the events of every rank, in the order of steps and of events within a step."""
    work = schedule.work
    rows = np.arange(len(schedule.src))
    ranks = np.concatenate([schedule.src, schedule.dst, schedule.src, schedule.dst, work.rank])
    steps = schedule.step, schedule.dst_step, schedule.src_wait, schedule.dst_wait, work.step
    kinds = np.repeat(range(len(steps)), [len(step) for step in steps])
    numbers = np.concatenate([rows, rows, rows, rows, np.arange(len(work.step))])
    order = np.lexsort((numbers, kinds, np.concatenate(steps), ranks))
    events = np.stack([np.concatenate(steps), kinds, numbers])[:, order]
    limits = np.searchsorted(ranks[order], np.arange(schedule.ranks + 1)).tolist()
    for first, last in pairwise(limits):
        yield list(zip(*events[:, first:last].tolist(), strict=True))


class _RankGraph:
    """The graph of one rank.

    `before` are the operations that must end before the next one, `started` is the last send
    without a wait, and `waited` is whether the last event was a wait.
    """

    def __init__(self, groups: np.ndarray, busy: np.ndarray) -> None:
        self.groups = groups
        self.busy = busy
        self.items: list[RankOperation | Dependency] = []
        self.count = 0
        self.before: list[int] = []
        self.started: int | None = None
        self.waited = False
        # operations of messages, by row and whether it is the receive
        self.in_flight: dict[tuple[int, bool], int] = {}

    def add_step(self, events: list[tuple[int, int]]) -> None:
        posts = [
            (row, kind == RECEIVE_POSTS)
            for kind, row in events
            if kind in (SEND_POSTS, RECEIVE_POSTS)
        ]
        waits = [
            (row, kind == RECEIVE_WAITS)
            for kind, row in events
            if kind in (SEND_WAITS, RECEIVE_WAITS)
        ]
        if len(self.before) > 1 if posts else waits and self.waited:
            self.before = [self._add_calculation(NO_WORK)]
            self.started = None
        if posts:
            self._post(posts)
        if waits:
            completed = [self.in_flight.pop(message) for message in waits]
            self.before = completed + ([] if set(posts) & set(waits) else self.before)
            self.started = None if self.started in completed else self.started
            self.waited = True
        group = next((int(self.groups[row]) for kind, row in events if kind == WORKS), NO_WORK)
        if group != NO_WORK and self.busy[group]:
            self.before = [self._add_calculation(group)]
            self.started = None
            self.waited = False

    def _post(self, posts: list[tuple[int, bool]]) -> None:
        """Add sends, each after the start of the previous one, and receives after the sends of
        earlier steps."""
        chain = [] if self.started is None else [self.started]
        earlier = self.started
        for row, is_receive in posts:
            number = self._add(RECEIVE if is_receive else SEND, row)
            if is_receive and earlier is not None:
                self.items.append(Dependency(number, earlier, on_start=True))
            elif not is_receive:
                chain.append(number)
            self.in_flight[row, is_receive] = number
        self.items += [Dependency(after, first, on_start=True) for first, after in pairwise(chain)]
        self.started = chain[-1] if chain else None
        self.waited = False

    def _add_calculation(self, group: int) -> int:
        number = self._add(CALC, group)
        if self.started is not None:
            self.items.append(Dependency(number, self.started, on_start=True))
        return number

    def _add(self, kind: int, row: int) -> int:
        number = self.count
        self.count = self.count + 1
        self.items.append(RankOperation(kind, row))
        self.items += [Dependency(number, earlier, on_start=False) for earlier in self.before]
        return number
