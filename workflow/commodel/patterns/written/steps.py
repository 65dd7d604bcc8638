"""From tasks to steps. A rank has one processor here, which does one thing after the other.

What has to come before what within a rank and by its messages gives every task a number. A rank posts and calculates in
the order of these numbers, and waits for a message just before the first task that requires it, at the end where none
does. So what overlaps in GOAL still does. What GOAL leaves in no order gets one: chains of a rank that have nothing to
do with each other take turns.
"""

from dataclasses import dataclass

import numpy as np

from commodel.errors import UserError
from commodel.patterns.levels import rank_local
from commodel.patterns.longest import longest_ways
from commodel.patterns.schedule import Schedule
from commodel.patterns.work import KINDS, Work
from commodel.patterns.written.matching import Matching, match
from commodel.patterns.written.tasks import RECEIVE, SEND, Tasks

OPENING, SENDING, WAITING, WORKING = range(4)  # what a step does, in this order


def schedule(tasks: Tasks) -> Schedule:
    tasks = tasks.with_named_ends()
    tasks.refuse_what_cannot_be()
    matching = match(tasks)
    steps = Steps.of(tasks, matching)
    sends = np.flatnonzero(tasks.kind == SEND)
    sends = sends[np.lexsort((sends, matching.round[sends], steps.place[sends], tasks.rank[sends]))]
    receives, works = matching.other[sends], np.flatnonzero(tasks.works)
    compute = np.full(len(works), KINDS.index("compute"))
    seconds = tasks.size[works] / tasks.per_second
    work = Work(steps.post[works], tasks.rank[works], compute, np.zeros(len(works)), seconds)
    ends = steps.post[sends], steps.wait[sends], steps.post[receives], steps.wait[receives]
    try:
        return rank_local(tasks.ranks, tasks.rank[sends], tasks.peer[sends], tasks.size[sends], *ends, work=work)
    except UserError as error:
        raise UserError(error.message, file=tasks.path) from None


@dataclass(frozen=True, eq=False)
class Steps:
    """The number of every task, in which of its rank's steps it is posted or done, and in which it is waited for."""

    place: np.ndarray
    post: np.ndarray
    wait: np.ndarray

    @classmethod
    def of(cls, tasks: Tasks, matching: Matching) -> "Steps":
        """Even steps post and work, odd ones wait; then those become one that do their things in the order in which a
        step does them anyway. Two waits stay apart: what comes first would be taken first."""
        place = _places(tasks, matching)
        moves, works = np.flatnonzero(tasks.moves), np.flatnonzero(tasks.works)
        does = np.concatenate([tasks.kind[moves] == SEND, np.full(len(moves), WAITING), np.full(len(works), WORKING)])
        step = np.concatenate([2 * place[moves], 2 * _waits(tasks, place)[moves] - 1, 2 * place[works]])
        rank = tasks.rank[np.concatenate([moves, moves, works])]
        span = int(step.max(initial=0)) + 1
        codes, numbers = np.unique(rank * span + step, return_inverse=True)
        first, last = np.full(len(codes), WORKING), np.full(len(codes), OPENING)
        np.minimum.at(first, numbers, does)
        np.maximum.at(last, numbers, does)
        rank, opens = codes // span, np.ones(len(codes), dtype=bool)
        joined = (last[:-1] <= first[1:]) & ~((last[:-1] == WAITING) & (first[1:] == WAITING))
        opens[1:] = (rank[1:] != rank[:-1]) | ~joined
        new = np.cumsum(opens)
        new -= new[np.searchsorted(rank, rank)]
        post, wait = np.zeros(len(place), dtype=np.int64), np.zeros(len(place), dtype=np.int64)
        post[moves], wait[moves], post[works] = np.split(new[numbers], [len(moves), 2 * len(moves)])
        return cls(place, post, wait)


def _places(tasks: Tasks, matching: Matching) -> np.ndarray:
    """A message that asks first keeps its sender waiting. Where a program goes on only without that, so do we."""
    none = np.zeros(len(tasks.rank), dtype=int)
    place, left = longest_ways(*_all_needs(tasks, matching.other, asking=True), none)
    if left.any():
        place, _ = longest_ways(*_all_needs(tasks, matching.other, asking=False), none)
    place = _as_late_as_can_be(tasks, place) if tasks.idle.any() else place
    return _in_turn(tasks, matching.round, place)


def _in_turn(tasks: Tasks, round: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Tasks of one place take turns: none waits for a message that only a later one requires. What has to come first is
    in an earlier round."""
    first = np.full(len(place), len(place))  # of the tasks that require each
    requires = tasks.moves[tasks.needs.before] & ~tasks.needs.begun
    before, after = tasks.needs.before[requires], tasks.needs.after[requires]
    waits = np.zeros(len(place), dtype=bool)
    waits[after] = True
    order = np.lexsort((np.arange(len(place)), waits, round, place, tasks.rank))
    turn = np.empty(len(place), dtype=np.int64)
    turn[order] = np.arange(len(place))
    np.minimum.at(first, before, turn[after])
    opens = np.ones(len(place) + 1, dtype=bool)
    opens[1:-1] = (np.diff(place[order]) != 0) | (np.diff(tasks.rank[order]) != 0)
    opens[first] = True
    number = np.cumsum(opens)
    return number[turn]


def _waits(tasks: Tasks, place: np.ndarray) -> np.ndarray:
    """Just before which place each task is waited for."""
    over = ~tasks.needs.begun
    wait = _last(tasks, place) + 1
    np.minimum.at(wait, tasks.needs.before[over], place[tasks.needs.after[over]])
    return wait


def _last(tasks: Tasks, place: np.ndarray) -> np.ndarray:
    """The last place of the rank of each task."""
    last = np.zeros(tasks.ranks, dtype=np.int64)
    np.maximum.at(last, tasks.rank, place)
    return last[tasks.rank]


def _all_needs(tasks: Tasks, other: np.ndarray, *, asking: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges, and how much later `after` comes at least. Nothing lies between a calculation and one that only follows
    it; where something may have to be waited for, or to be posted first, there is room for that."""
    needs = tasks.needs
    before, after = needs.before, needs.after
    waited = tasks.moves[before] & ~needs.begun
    waits = np.zeros(len(tasks.rank), dtype=bool)
    waits[after[waited]] = True
    follows = ~tasks.moves[after] & ~tasks.idle[after] | tasks.idle[before]
    near = ~tasks.moves[before] & follows & ~(waits[after] & ~tasks.moves[after])
    over = waited & (asking | (tasks.kind[before] == RECEIVE))
    apart = np.concatenate([~near, np.ones(int(over.sum()), dtype=bool)]).astype(int)
    return np.concatenate([before, other[before[over]]]), np.concatenate([after, after[over]]), apart


def _as_late_as_can_be(tasks: Tasks, place: np.ndarray) -> np.ndarray:
    """What takes no time may come just before the first task that needs it: what it waits for can take as long."""
    before, after, apart = _all_needs(tasks, np.full(len(place), -1), asking=False)
    own = before >= 0
    before, after, apart = before[own], after[own], apart[own]
    latest = _last(tasks, place)
    to_others = tasks.idle[before] & ~tasks.idle[after]
    np.minimum.at(latest, before[to_others], (place[after] - apart)[to_others])
    among = tasks.idle[before] & tasks.idle[after]
    back, _ = longest_ways(after[among], before[among], apart[among], -latest)
    return np.where(tasks.idle, -back, place)
