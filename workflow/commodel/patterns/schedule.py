"""The Schedule: a communication pattern as numpy columns. One player measures it, every model
predicts its time.

Each message has a step of its sender, each row of local `Work` a step of its rank. In step s a rank
posts its receives, posts its sends in row order, waits for messages that are due, then does its
local work. It enters its next step when it has finished the last one; there is no barrier between
steps. In the plain case, all messages posted in a step are due in it; otherwise the Schedule has
`nonblocking` (see `rank_local_steps`). A `Step` lists the messages and work of a step. It is
computed once for all sizes and parameters.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from commodel.errors import UserError
from commodel.records import Statistic

Rows = slice | np.ndarray


class Step:
    """The messages and the work of one step.

    Rows of messages: `posted_sends`, `matched` (from this step on posted by both ends),
    `awaited_receives` (their receivers wait for them) and `awaited_sends` (their senders wait). In
    the plain case, all are equal. `src` belongs to `posted_sends`, `dst` to `awaited_receives`.
    """

    def __init__(self, schedule: Schedule, work: slice, posted: slice, *other_rows: Rows) -> None:
        self.work = work
        self.posted_sends = posted
        self.matched: Rows
        self.awaited_receives: Rows
        self.awaited_sends: Rows
        self.matched, self.awaited_receives, self.awaited_sends = other_rows or (
            posted,
            posted,
            posted,
        )
        self.src = schedule.src[posted]
        self.dst = schedule.dst[self.awaited_receives]
        self.sends, self.receives = RankGroups(self.src), RankGroups(self.dst)
        self.senders = RankGroups(schedule.src[self.awaited_receives]) if other_rows else self.sends


class RankGroups:
    """Rows grouped by rank, in row order within a rank. `order` is None if no rank has several
    rows: the fast case."""

    __slots__ = ("first", "last", "longest", "order", "ranks")

    def __init__(self, rank: np.ndarray) -> None:
        self.order: np.ndarray | None = None
        self.ranks = rank
        if (rank[1:] > rank[:-1]).all() or _are_distinct(rank):
            return
        self.order = argsort_stably(rank)
        ordered = rank[self.order]
        starts = np.concatenate([[0], np.flatnonzero(_differ_from_previous(ordered)) + 1])
        counts = np.diff(starts, append=len(rank))
        self.first = starts
        self.last = starts + counts - 1
        self.ranks = ordered[starts]
        self.longest = int(counts.max())

    def latest(self, times: np.ndarray) -> np.ndarray:
        """Return the latest time of each rank's rows (last axis)."""
        return (
            times
            if self.order is None
            else np.maximum.reduceat(times[..., self.order], self.first, axis=-1)
        )


def make_steps(schedule: Schedule) -> tuple[Step, ...]:
    """Return the steps in order; empty steps are omitted."""
    numbers = np.union1d(_list_distinct(schedule.step), _list_distinct(schedule.work.step))
    for column in schedule.nonblocking.columns if schedule.nonblocking else ():
        numbers = np.union1d(numbers, column)
    posted = _find_slices(schedule.step, numbers)
    work = _find_slices(schedule.work.step, numbers)
    if schedule.nonblocking is None:
        return tuple(Step(schedule, *rows) for rows in zip(work, posted, strict=True))
    matched = np.maximum(schedule.step, schedule.dst_step)
    other_rows = (
        _find_rows(column, numbers) for column in (matched, schedule.dst_wait, schedule.src_wait)
    )
    return tuple(Step(schedule, *rows) for rows in zip(work, posted, *other_rows, strict=True))


def _find_slices(ordered: np.ndarray, numbers: np.ndarray) -> list[slice]:
    """Return for each number the rows of a sorted column with this number, as a slice."""
    lows = np.searchsorted(ordered, numbers, "left")
    highs = np.searchsorted(ordered, numbers, "right")
    return [slice(low, high) for low, high in zip(lows, highs, strict=True)]


def _find_rows(column: np.ndarray, numbers: np.ndarray) -> list[np.ndarray]:
    """Return for each number the rows of an unsorted column with this number."""
    order = argsort_stably(column)
    return [order[rows] for rows in _find_slices(column[order], numbers)]


def _list_distinct(ordered: np.ndarray) -> np.ndarray:
    return (
        ordered[:1]
        if len(ordered) < 2
        else ordered[np.concatenate([[True], _differ_from_previous(ordered)])]
    )


def _are_distinct(numbers: np.ndarray) -> bool:
    if numbers.max() < 8 * len(numbers):
        return bool(np.bincount(numbers).max() == 1)
    return bool(_differ_from_previous(np.sort(numbers)).all())


def _differ_from_previous(ordered: np.ndarray) -> np.ndarray:
    return ordered[1:] != ordered[:-1]


KINDS = ("reduce", "copy", "compute")  # values of the column `kind` are indices of this tuple


@dataclass(frozen=True, eq=False)
class Work:
    """Local work: reduce and copy are given in bytes, compute in seconds."""

    step: np.ndarray
    rank: np.ndarray
    kind: np.ndarray  # index into KINDS
    bytes: np.ndarray
    seconds: np.ndarray

    @classmethod
    def empty(cls) -> Work:
        return cls(*(np.empty(0, dtype=dtype) for dtype in (int, int, int, float, float)))

    @classmethod
    def reduce(cls, step: ArrayLike, rank: ArrayLike, bytes: ArrayLike) -> Work:
        """Return the reduction of `bytes` received bytes into the rank's own."""
        return cls._of_bytes("reduce", step, rank, bytes)

    @classmethod
    def copy(cls, step: ArrayLike, rank: ArrayLike, bytes: ArrayLike) -> Work:
        """Return a copy of `bytes` bytes within the rank's memory."""
        return cls._of_bytes("copy", step, rank, bytes)

    @classmethod
    def compute(cls, step: ArrayLike, rank: np.ndarray, seconds: np.ndarray) -> Work:
        """Return a computation of each of these ranks; `seconds` has an entry for every rank."""
        of_rank = seconds[rank]
        steps = np.broadcast_to(step, of_rank.shape)
        return cls(
            step=steps,
            rank=rank,
            kind=np.full(of_rank.shape, KINDS.index("compute")),
            bytes=np.zeros(of_rank.shape),
            seconds=of_rank,
        )

    @classmethod
    def _of_bytes(cls, kind: str, step: ArrayLike, rank: ArrayLike, bytes: ArrayLike) -> Work:
        step, rank, bytes = np.broadcast_arrays(
            np.asarray(step), np.asarray(rank), np.asarray(bytes, dtype=float)
        )
        return cls(
            step=step,
            rank=rank,
            kind=np.full(step.shape, KINDS.index(kind)),
            bytes=bytes,
            seconds=np.zeros(step.shape),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Work]) -> Work:
        columns = zip(*(part.columns for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns)) if parts else cls.empty()

    @property
    def columns(self) -> tuple[np.ndarray, ...]:
        return self.step, self.rank, self.kind, self.bytes, self.seconds

    def sort_by_step(self) -> Work:
        order = argsort_stably(self.step)
        return Work(*(column[..., order] for column in self.columns))


def argsort_stably(numbers: np.ndarray) -> np.ndarray:
    """Return a stable sort order on the last axis. numpy sorts 16-bit integers by radix, in linear
    time."""
    short = numbers.size and numbers.min() >= 0 and numbers.max() < 1 << 16
    return np.argsort(numbers.astype(np.uint16) if short else numbers, axis=-1, kind="stable")


def argsort_columns(*columns: np.ndarray) -> np.ndarray:
    """Return the stable sort order of rows by several columns, the first one first. No number is
    below 0."""
    spans = [int(column.max(initial=0)) + 1 for column in columns]
    if math.prod(spans) > MAX_INTEGER:
        return np.lexsort(columns[::-1])
    code = columns[0].astype(np.int64)
    for column, span in zip(columns[1:], spans[1:], strict=True):
        code = code * span + column
    return argsort_stably(code)


MAX_ROWS = 50_000_000
MAX_INTEGER = 2**63 - 1  # of a column
MEMORY, NETWORK = 0, 1  # channels: within a node, between nodes


@dataclass(frozen=True, eq=False)
class Runs:
    """The contents of messages: runs of addresses of an operation's data, in the order of the
    messages."""

    row: np.ndarray  # the message of each run
    first: np.ndarray  # address of its first byte
    length: np.ndarray


@dataclass(frozen=True, eq=False)
class NonblockingSteps:
    """The steps in which senders wait for their messages, and receivers post and wait for them.

    All columns count like `Schedule.step`. No wait is before its post.
    """

    src_wait: np.ndarray
    dst_step: np.ndarray
    dst_wait: np.ndarray

    @property
    def columns(self) -> tuple[np.ndarray, ...]:
        return self.src_wait, self.dst_step, self.dst_wait

    def select_rows(self, rows: np.ndarray) -> NonblockingSteps:
        return NonblockingSteps(*(column[rows] for column in self.columns))


@dataclass(frozen=True, eq=False)
class Schedule:
    """Messages sorted by the step of their post, local work, and the node of each rank.

    The pattern ends when the rank `root` finishes; None: when all ranks finish. `bytes` may have
    leading axes, (sizes, 1, rows): the same pattern at several sizes, predicted in one pass. Only
    checks of the data call `contents`.
    """

    ranks: int
    step: np.ndarray
    src: np.ndarray
    dst: np.ndarray
    bytes: np.ndarray
    work: Work
    node: np.ndarray
    root: int | None = None
    contents: Callable[[], Runs] | None = None
    # None, the plain case: messages are posted and awaited in one step
    nonblocking: NonblockingSteps | None = None
    # Seconds of computation that each rank overlaps with its messages, not part of their time. NaN:
    # unknown, and the work is not in the schedule. None: no computation.
    overlapped_seconds: np.ndarray | None = None
    # a shift of all ranks by `shift` maps the messages to themselves; None: unknown
    shift: int | None = None
    statistic: Statistic = Statistic.COMPLETION  # of the ranks' finish times, which the cost is

    @classmethod
    def of(
        cls,
        ranks: int,
        step: ArrayLike,
        src: ArrayLike,
        dst: ArrayLike,
        bytes: ArrayLike,
        *,
        work: Work | None = None,
        root: int | None = None,
        contents: Callable[[], Runs] | None = None,
        nonblocking: NonblockingSteps | None = None,
        overlapped_seconds: np.ndarray | None = None,
    ) -> Schedule:
        """Return a schedule from columns in any order; scalars are broadcast. One rank per node
        until placed."""
        columns = np.broadcast_arrays(*(np.asarray(column) for column in (step, src, dst, bytes)))
        columns = tuple(column.ravel() for column in columns)
        check_rows(len(columns[0]))
        if np.any(columns[0][1:] < columns[0][:-1]):
            order = argsort_stably(columns[0])
            columns = tuple(column[order] for column in columns)
            contents = _reorder_contents(contents, order) if contents else None
            nonblocking = nonblocking and nonblocking.select_rows(order)
        work = Work.empty() if work is None else work.sort_by_step()
        for column in (*columns[1:3], work.rank):
            check_ranks(column, ranks)
        step, src, dst, bytes = columns
        return cls(
            ranks=ranks,
            step=step,
            src=src,
            dst=dst,
            bytes=bytes,
            work=work,
            node=np.arange(ranks),
            root=root,
            contents=contents,
            nonblocking=nonblocking,
            overlapped_seconds=overlapped_seconds,
        )

    def place(self, node: np.ndarray) -> Schedule:
        return replace(self, node=np.asarray(node))

    def with_statistic(self, statistic: Statistic) -> Schedule:
        return self if statistic is self.statistic else replace(self, statistic=statistic)

    @cached_property
    def cache(self) -> dict[object, Any]:
        """Results computed from the schedule, cached with it."""
        return {}

    @cached_property
    def channel(self) -> np.ndarray:
        """The channel of each message, from the nodes of its ranks."""
        return np.where(self.node[self.src] == self.node[self.dst], MEMORY, NETWORK)

    @cached_property
    def parts(self) -> tuple[Any, ...]:
        """The schedule itself, or the successive parts of one with repeated rounds (see
        `repeated`)."""
        return (self,)

    @property
    def whole(self) -> Schedule:
        """The schedule with all columns."""
        return self

    @property
    def messages(self) -> int:
        return len(self.src)

    @property
    def sizes(self) -> int:
        """The number of sizes of a stack."""
        return len(self.bytes)

    @property
    def width(self) -> int:
        """The number of costs that a prediction needs for one draw at one size."""
        return self.bytes.shape[-1]

    @property
    def has_local_work(self) -> bool:
        """Whether some rank reduces or copies."""
        return bool(self.work.bytes.any())

    @property
    def largest(self) -> np.ndarray:
        """The largest message, at each size of a stack."""
        return self.bytes.max(axis=-1, initial=0)

    def longest_work(self, kind: str) -> np.ndarray:
        """Return the most bytes that a rank reduces, or copies, at once, at each size of a
        stack."""
        return (
            self.work.bytes[..., self.work.kind == KINDS.index(kind)]
            .max(axis=-1, initial=0)
            .reshape(-1)
        )

    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and the largest message at each size of a stack."""
        return self.bytes.min(axis=(1, 2)), self.bytes.max(axis=(1, 2))

    @property
    def src_wait(self) -> np.ndarray:
        return self.step if self.nonblocking is None else self.nonblocking.src_wait

    @property
    def dst_step(self) -> np.ndarray:
        return self.step if self.nonblocking is None else self.nonblocking.dst_step

    @property
    def dst_wait(self) -> np.ndarray:
        return self.step if self.nonblocking is None else self.nonblocking.dst_wait

    @property
    def last_step(self) -> int:
        """The last step, −1 if there is none."""
        columns = (
            self.step[-1:],
            self.work.step[-1:],
            *(self.nonblocking.columns if self.nonblocking else ()),
        )
        return int(max(column.max(initial=-1) for column in columns))

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps, with everything that does not depend on sizes or parameters."""
        return make_steps(self)

    def work_seconds(self, per_byte: np.ndarray | float) -> np.ndarray:
        """Return the seconds of each row of local work; `per_byte` is the time of reduce and
        copy."""
        return self.work.seconds + per_byte * self.work.bytes

    def cost(self, finish: np.ndarray) -> np.ndarray:
        """Return the statistic of the finish times, without overlapped computation; `finish` is the
        finish time of every rank (last axis)."""
        finish = finish if self.overlapped_seconds is None else finish - self.overlapped_seconds
        if self.statistic is Statistic.RANK_MEAN:
            return finish.mean(axis=-1)
        if self.statistic is Statistic.FIRST_RANK:
            return finish.min(axis=-1)
        is_at_root = self.statistic is Statistic.COMPLETION and self.root is not None
        return finish[..., self.root] if is_at_root else finish.max(axis=-1)

    def has_same_structure(self, other: Schedule) -> bool:
        """Return whether the two differ in sizes only."""
        if (self.ranks, self.root, len(self.src)) != (other.ranks, other.root, len(other.src)):
            return False
        if (self.nonblocking is None) != (other.nonblocking is None) or (
            self.overlapped_seconds is None
        ) != (other.overlapped_seconds is None):
            return False
        columns = (
            "step",
            "src",
            "dst",
            "node",
            *(("src_wait", "dst_step", "dst_wait") if self.nonblocking else ()),
        )
        pairs = [(getattr(self, name), getattr(other, name)) for name in columns]
        pairs += [
            (getattr(self.work, name), getattr(other.work, name))
            for name in ("step", "rank", "kind")
        ]
        return all(
            column is other_column or np.array_equal(column, other_column)
            for column, other_column in pairs
        )

    def encode(self) -> builtins.bytes:
        """Return messages, local work and the root as bytes that are equal on every machine.

        Neither placement nor contents of messages are included.
        """
        work = self.work
        counts = f"{self.ranks} {self.root} {len(self.step)} {len(work.step)} ".encode()
        other_steps = self.nonblocking.columns if self.nonblocking else ()
        integers = (self.step, self.src, self.dst, self.bytes, work.step, work.rank, *other_steps)
        parts = [
            counts,
            *map(encode_integers, integers),
            np.array(KINDS, dtype="S8")[work.kind].tobytes(),
        ]
        return b"".join(
            parts + [column.astype("<f8").tobytes() for column in (work.bytes, work.seconds)]
        )

    def resize(self, bytes: np.ndarray, work_bytes: np.ndarray) -> Schedule:
        """Return the pattern at other sizes; its steps are reused if they have been computed."""
        schedule = replace(self, bytes=bytes, work=replace(self.work, bytes=work_bytes))
        if "steps" in self.__dict__:
            schedule.__dict__["steps"] = self.steps  # where `cached_property` stores them
        return schedule


def encode_integers(numbers: np.ndarray) -> bytes:
    """Return whole numbers as bytes that are equal on every machine."""
    return np.asarray(numbers).astype("<i8").tobytes()


def check_rows(count: int) -> None:
    if count > MAX_ROWS:
        raise UserError(f"a schedule of {count:,} messages; the limit is {MAX_ROWS:,}")


def check_ranks(column: np.ndarray, ranks: int) -> None:
    """Refuse ranks outside of the schedule: the C replay indexes its clocks by them."""
    if not len(column):
        return
    first = int(column.min())
    last = int(column.max())
    if first < 0 or last >= ranks:
        raise UserError(f"found rank {first if first < 0 else last}, wanted 0 to {ranks - 1}")


def _reorder_contents(contents: Callable[[], Runs], order: np.ndarray) -> Callable[[], Runs]:
    def reordered() -> Runs:
        runs = contents()
        new_row = np.empty(len(order), dtype=int)
        new_row[order] = np.arange(len(order))
        row = new_row[runs.row]
        by_row = np.argsort(row, kind="stable")
        return Runs(row[by_row], runs.first[by_row], runs.length[by_row])

    return reordered


def stack_schedules(schedules: Sequence[Schedule], structure: Schedule | None = None) -> Schedule:
    """Return one schedule with the sizes of several of one structure, along a new leading axis.

    `structure` is the schedule whose columns are shared, by default the first.
    """
    first = structure or schedules[0]
    work_bytes = np.stack([schedule.work.bytes for schedule in schedules])[:, None, :]
    return first.resize(
        np.stack([schedule.bytes for schedule in schedules])[:, None, :], work_bytes
    )
