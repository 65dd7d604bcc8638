"""Conversion of steps that each rank counts for itself to the common steps of a Schedule
(`make_rank_local_schedule`).

A rank posts the messages of its step, waits for those due in it, does its local work, and continues
with its next step. A step begins at one time and ends at the same or a later one, under these
rules:

    the end of a rank's step      is before the beginning of its next one,
    the post of a message         is not after the end of the step in which its receiver waits for it,
    the post of its receive       is not after the end of the step in which its sender waits for it.

The least numbers that satisfy the rules, the longest paths through that graph, are the steps of the
Schedule. Without a solution, ranks wait for each other in a cycle: a deadlock.

The last rule holds for rendezvous messages, whose senders wait for a grant, but not for eager
messages. If a program deadlocks under this rule, the rule is dropped; `reorder_requests` applies it
to given messages later.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from commodel.errors import UserError
from commodel.patterns.schedule import (
    NonblockingSteps,
    Runs,
    Schedule,
    Work,
    check_ranks,
    check_rows,
)


def find_longest_paths(
    before: np.ndarray, after: np.ndarray, distance: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the least numbers ≥ start with number[after] ≥ number[before] + distance along every
    edge, and the nodes on cycles.

    Each pass of numpy handles all nodes whose predecessors have their final numbers.
    """
    order = np.argsort(before, kind="stable")
    reached, distance = after[order], distance[order]
    del order
    first = find_first_rows(before, len(start))
    waiting = np.bincount(reached, minlength=len(start))
    number = start.astype(np.int64)
    ready = np.flatnonzero(waiting == 0)
    while len(ready):
        counts = first[ready + 1] - first[ready]
        rows = np.repeat(first[ready] - np.cumsum(counts) + counts, counts) + np.arange(
            counts.sum()
        )
        successors = reached[rows]
        np.maximum.at(number, successors, np.repeat(number[ready], counts) + distance[rows])
        np.subtract.at(waiting, successors, 1)
        ready = sort_unique(successors[waiting[successors] == 0])
    return number, waiting > 0


def find_first_rows(owner: np.ndarray, owners: int) -> np.ndarray:
    """Return the first row of each owner where rows are sorted by owner, and the number of rows."""
    return np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=owners))])


def sort_unique(numbers: np.ndarray) -> np.ndarray:
    """Return the sorted unique numbers: `np.unique` in half the time for short arrays."""
    numbers = np.sort(numbers)
    first = np.ones(len(numbers), dtype=bool)
    np.not_equal(numbers[1:], numbers[:-1], out=first[1:])
    return numbers[first]


MAX_TABLE = 4  # elements of a table for each number in it; sorting is faster than a larger one


def number_distinct(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted distinct numbers, and the index of each number among these. No number is
    below 0."""
    span = int(numbers.max(initial=-1)) + 1
    if span > MAX_TABLE * len(numbers):
        return np.unique(numbers, return_inverse=True)
    is_used = np.zeros(span, dtype=bool)
    is_used[numbers] = True
    return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[numbers]


def find_cycle(before: np.ndarray, after: np.ndarray, unresolved: np.ndarray) -> list[int]:
    """Return nodes on a cycle among the nodes `unresolved`, each of which waits for the next, the
    last for the first."""
    inside = unresolved[before] & unresolved[after]
    waits_for = np.full(len(unresolved), -1)
    waits_for[after[inside]] = before[inside]
    node = int(np.flatnonzero(unresolved)[0])
    position: dict[int, int] = {}
    while node not in position:
        position[node] = len(position)
        node = int(waits_for[node])
    return list(position)[position[node] :]


MAX_NAMES_OF_CYCLE = 4


def describe_cycle(names: list[str]) -> str:
    """Return the names of a cycle as `A waits for B, which waits for A`."""
    omitted = len(names) - MAX_NAMES_OF_CYCLE
    if omitted > 0:
        names = [*names[: MAX_NAMES_OF_CYCLE - 1], f"… ({omitted} more)", names[-1]]
    return f"{names[0]} waits for {', which waits for '.join([*names[1:], names[0]])}"


def make_rank_local_schedule(
    ranks: int,
    src: ArrayLike,
    dst: ArrayLike,
    bytes: ArrayLike,
    src_step: ArrayLike,
    src_wait: ArrayLike,
    dst_step: ArrayLike,
    dst_wait: ArrayLike,
    *,
    work: Work | None = None,
    root: int | None = None,
    contents: Callable[[], Runs] | None = None,
) -> Schedule:
    """Return the Schedule of messages and work whose steps each rank counts for itself. Scalars are
    broadcast."""
    arrays = [
        np.asarray(column) for column in (src, dst, bytes, src_step, src_wait, dst_step, dst_wait)
    ]
    columns = [column.ravel() for column in np.broadcast_arrays(*arrays)]
    return _number_steps(
        ranks, *columns, work=Work.empty() if work is None else work, root=root, contents=contents
    )


def _number_steps(
    ranks: int,
    src: np.ndarray,
    dst: np.ndarray,
    bytes: np.ndarray,
    src_step: np.ndarray,
    src_wait: np.ndarray,
    dst_step: np.ndarray,
    dst_wait: np.ndarray,
    *,
    work: Work,
    root: int | None,
    contents: Callable[[], Runs] | None,
) -> Schedule:
    check_rows(len(src))
    for column in (src, dst, work.rank):
        check_ranks(column, ranks)
    _refuse_early_waits(src, src_step, src_wait, "sends")
    _refuse_early_waits(dst, dst_step, dst_wait, "receives")
    nonblocking = NonblockingSteps(src_wait, dst_step, dst_wait)
    if all(np.array_equal(src_step, column) for column in nonblocking.columns):
        return Schedule.of(
            ranks, src_step, src, dst, bytes, work=work, root=root, contents=contents
        )
    rank_steps = _RankSteps.of(src, dst, src_step, nonblocking, work)
    try:
        numbered = rank_steps.assign_steps(np.ones(len(src), dtype=bool))
    except UserError:
        numbered = rank_steps.assign_steps(np.zeros(len(src), dtype=bool))
    work = replace(work, step=numbered.work)
    return Schedule.of(
        ranks,
        numbered.step,
        src,
        dst,
        bytes,
        work=work,
        root=root,
        contents=contents,
        nonblocking=numbered.nonblocking,
    )


def _refuse_early_waits(rank: np.ndarray, post: np.ndarray, wait: np.ndarray, verb: str) -> None:
    """Raise an error for a message whose wait is before its post."""
    wrong = wait < post
    if wrong.any():
        row = int(wrong.argmax())
        steps = f"in step {post[row]} and waits for it in step {wait[row]}"
        raise UserError(f"rank {rank[row]} {verb} a message {steps}, before that")


def reorder_requests(
    schedule: Schedule, rendezvous: np.ndarray
) -> tuple[Schedule, np.ndarray, np.ndarray]:
    """Return a schedule that satisfies the last rule for these rendezvous messages, and the
    original rows of its messages and work."""
    work = schedule.work
    assert schedule.nonblocking is not None
    rank_steps = _RankSteps.of(
        schedule.src, schedule.dst, schedule.step, schedule.nonblocking, work
    )
    numbered = rank_steps.assign_steps(rendezvous)
    rows = np.argsort(numbered.step, kind="stable")
    work_rows = np.argsort(numbered.work, kind="stable")
    columns = {name: getattr(schedule, name)[..., rows] for name in ("src", "dst", "bytes")}
    work = Work(numbered.work[work_rows], *(column[..., work_rows] for column in work.columns[1:]))
    nonblocking = numbered.nonblocking.select_rows(rows)
    return (
        replace(
            schedule,
            step=numbered.step[rows],
            work=work,
            nonblocking=nonblocking,
            contents=None,
            **columns,
        ),
        rows,
        work_rows,
    )


@dataclass(frozen=True, eq=False)
class _NumberedSteps:
    step: np.ndarray
    nonblocking: NonblockingSteps
    work: np.ndarray


@dataclass(frozen=True, eq=False)
class _RankSteps:
    """The steps of all ranks, sorted by rank and step.

    The other columns are indices of steps: of each message's post and wait at both ends, and of
    each work.
    """

    rank: np.ndarray
    step: np.ndarray
    send_post: np.ndarray
    send_wait: np.ndarray
    receive_post: np.ndarray
    receive_wait: np.ndarray
    work: np.ndarray

    @classmethod
    def of(
        cls,
        src: np.ndarray,
        dst: np.ndarray,
        src_step: np.ndarray,
        nonblocking: NonblockingSteps,
        work: Work,
    ) -> "_RankSteps":
        ranks = np.concatenate([src, src, dst, dst, work.rank])
        steps = np.concatenate([src_step, *nonblocking.columns, work.step])
        counts = np.zeros(int(ranks.max(initial=-1)) + 1, dtype=np.int64)
        np.maximum.at(counts, ranks, steps + 1)
        first = np.cumsum(counts) - counts
        codes, indices = number_distinct(first[ranks] + steps)
        rank = np.repeat(
            np.arange(len(first)), np.diff(np.searchsorted(codes, first), append=len(codes))
        )
        return cls(rank, codes - first[rank], *np.split(indices, len(src) * np.arange(1, 5)))

    def assign_steps(self, rendezvous: np.ndarray) -> _NumberedSteps:
        """Return the least common steps that satisfy the rules; the last rule holds for rendezvous
        messages.

        The beginning of a step is a node of a graph, and so is the step after the last one of each
        rank. The rules for the end of a step are those for the beginning of its rank's next one,
        which is a step later.
        """
        begin = np.arange(len(self.rank)) + np.cumsum(np.diff(self.rank, prepend=self.rank[:1]) > 0)
        begin = begin.astype(np.int32)  # `check_rows` bounds their number
        before = np.concatenate(
            [begin, begin[self.send_post], begin[self.receive_post[rendezvous]]]
        )
        after = (
            np.concatenate([begin, begin[self.receive_wait], begin[self.send_wait[rendezvous]]]) + 1
        )
        start = np.zeros(int(begin.max(initial=-1)) + 2)
        level, unresolved = find_longest_paths(
            before, after, np.ones(len(before), dtype=np.int8), start
        )
        if unresolved.any():
            cycle = np.array(find_cycle(before, after, unresolved))
            raise UserError(self._describe_deadlock(np.searchsorted(begin, cycle - 1)))
        begin, end = level[begin], level[begin + 1] - 1
        nonblocking = NonblockingSteps(
            end[self.send_wait], begin[self.receive_post], end[self.receive_wait]
        )
        return _NumberedSteps(begin[self.send_post], nonblocking, end[self.work])

    def _describe_deadlock(self, steps: np.ndarray) -> str:
        """Return the error for steps that cannot end, each of which waits for the next one."""
        return f"a deadlock: {describe_cycle([f'rank {self.rank[step]} in step {self.step[step]}' for step in steps])}"
