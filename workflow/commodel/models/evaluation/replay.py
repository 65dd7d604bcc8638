"""Replay of a schedule: finish times of all ranks from per-message costs, by the max-plus rules that all port models
share (`finish_times`, `replay_by_class`).

A message costs its sender `send` when it is posted, travels `wire` after that, and costs its receiver `receive` when it
is waited for. Two sends of a rank start at least `gap_out` of the first apart, two receives begin at least `gap_in` of
the second apart. Posting a send never waits for the gap: the port does, while the processor goes on. A message that has
to ask first (rendezvous) sends a request; when it has come and the receiver has posted the message, the answer goes
back, and then the data leave.

    >>> flat = Schedule.of(3, step=0, src=0, dst=[1, 2], bytes=8)  # the second send starts 4 after the first
    >>> finish_times(flat, Costs(send=1.0, wire=10.0, receive=2.0, gap_out=4.0), work_seconds=np.zeros(0))
    array([ 5., 13., 17.])

A step moves three clocks of each rank: `done` is when the rank has finished its last action, `out_free` when its next
send may start, `last_in` when its last receive began. A rank posts its sends in row order, and receives in the order of
arrival, at equal times in row order. `native/replay/replay.c` goes through the steps.

Values by distance class: `replay_by_class` asks a family once with the values of each class that occurs, and every
message gets the costs of its own. Repeated rounds are fast-forwarded (`repeated_rounds`), or, where a round depends on
more than the clocks, replayed until each adds the same (`replay_round_by_round`).

The contribution of message k to a predicted time T is c_k · ∂T/∂c_k (`message_contributions`). T is made of sums and
maxima of the costs c of messages and local work, so it is homogeneous of degree 1 in them, and by Euler's theorem the
sum of all contributions. A message off the critical path contributes nothing. If two paths end at the same time, as in
symmetric trees, one of them is chosen by changing costs by less than a millionth.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from ctypes import CFUNCTYPE, Structure, c_int
from dataclasses import dataclass, fields
from functools import partial
from typing import Protocol

import numpy as np

from commodel.errors import UserError
from commodel.hierarchy import FLAT, Hierarchy
from commodel.models import Array
from commodel.models.evaluation.native_library import check_finished, int64_fields, library, pointer_fields
from commodel.models.evaluation.repeated_rounds import Round, State, courses, first_ranks
from commodel.models.evaluation.values import Values, classes
from commodel.patterns.rank_local_steps import reorder_requests
from commodel.patterns.repeated import Long, Rounds
from commodel.patterns.schedule import Groups, Schedule, Step, Work, stable_order

_FACTORS: ContextVar[tuple[Array, Array] | None] = ContextVar("factors", default=None)  # of messages, and of work
APART, STEP = 1e-6, 1e-9  # of a cost
NOTHING = 1e-3  # of a cost: below it a slope is rounding


def message_contributions(messages: int, cost: Callable[[], Array]) -> tuple[Array, float]:
    """Seconds of each message, and of all local work, in a price: `cost` asks for it anew, of one row of values. All
    are zero for a family that does not replay."""
    apart = 1 + APART * np.random.default_rng(1).random(messages)
    factors = np.tile(apart, (messages + 2, 1))
    factors[np.arange(messages), np.arange(messages)] *= 1 + STEP
    work = np.ones((messages + 2, 1))
    work[messages] += STEP
    token = _FACTORS.set((factors, work))
    try:
        predictions = np.broadcast_to(cost(), messages + 2)
    finally:
        _FACTORS.reset(token)
    slopes = (predictions[:-1] - predictions[-1]) / STEP
    slopes = np.where(np.abs(slopes) < NOTHING * predictions[-1] / max(messages, 1), 0.0, slopes)
    return slopes[:-1], float(slopes[-1])


def scale_costs(costs: Costs, work_seconds: Array) -> tuple[Costs, Array]:
    """What a replay is to take for them while it is asked so."""
    if (factors := _FACTORS.get()) is None:
        return costs, work_seconds
    messages, work = factors
    columns = (getattr(costs, entry.name) for entry in fields(costs))
    longer = [column if column is None or callable(column) else column * messages for column in columns]
    return type(costs)(*longer), work_seconds * work


class Shared(Protocol):
    """When messages are through what they share. It is asked step by step."""

    def rows(self, step: Step) -> Iterable[np.ndarray]:
        """The messages that begin in a step, those together that begin together."""

    def ends(self, rows: np.ndarray, start: Array) -> Array:
        """When they are through, by when they begin."""


@dataclass(frozen=True)
class Costs:
    """Seconds per message; numbers, or arrays that broadcast over (draws, rows), or (sizes, draws, rows)."""

    send: Array | float = 0.0
    receive: Array | float = 0.0
    wire: Array | float = 0.0
    gap_out: Array | float = 0.0
    gap_in: Array | float = 0.0
    request: Array | None = None  # how long a request travels; NaN where a message does not ask. None: none asks
    answer: Array | None = None  # from then until the data may leave
    shared: Callable[[Schedule], Shared] | None = None  # what messages share on their way, before `wire`


def replay(
    schedule: Schedule,
    costs: Callable[[Schedule], Costs],
    work_seconds: Callable[[Schedule], Array],
    types: Mapping[str, int] | None = None,
    levels: Hierarchy = FLAT,
) -> Array:
    """When each rank is done, by functions that tell what the messages and the work of a schedule cost; `types` of
    nodes and `levels` of the network where that depends on them. Rounds that repeat are not gone through one by one."""
    if not isinstance(schedule, Long):
        if _FACTORS.get() is None and (first := first_ranks(schedule, types, levels)):
            sent, played = first
            with suppress(UserError):  # all ranks raise it again, with their own names
                finish = finish_times(played, costs(sent), work_seconds(sent))
                return np.tile(finish, schedule.ranks // played.ranks)
        return finish_times(schedule, costs(schedule), work_seconds(schedule))
    state = initial_clocks(schedule.ranks)
    for part in schedule.parts:
        if isinstance(part, Rounds):
            course = courses(schedule, types, levels)[part]
            state = course.run(state, partial(_play, costs(course.sample), work_seconds(course.sample)))
        else:
            state = replay_steps(part, costs(part), work_seconds(part), state)
    return state[0]


def finish_times(schedule: Schedule, costs: Costs, work_seconds: Array) -> Array:
    """When each rank is done (last axis: ranks). Complexity: messages × draws."""
    costs, work_seconds = scale_costs(costs, work_seconds)
    if costs.request is not None and schedule.ends is not None:
        asks = ~np.isnan(costs.request)
        asks = np.broadcast_to(asks.any(axis=tuple(range(asks.ndim - 1))), schedule.src.shape)
        if (asks & (schedule.src_wait < schedule.dst_step)).any():
            return _with_requests(schedule, asks, costs, work_seconds)
    return replay_steps(schedule, costs, work_seconds, initial_clocks(schedule.ranks))[0]


def _with_requests(schedule: Schedule, asks: Array, costs: Costs, work_seconds: Array) -> Array:
    """A sender that waits for its message to be taken must be on a clock by which the receiver is not later."""
    try:
        schedule, rows, works = reorder_requests(schedule, asks)
    except UserError as error:
        raise UserError(f"{error.message}: so long a message asks first") from None

    def moved(column: Array | float | None, order: Array) -> Array | float | None:
        return column if np.ndim(column) == 0 or np.shape(column)[-1] == 1 else column[..., order]

    costs = Costs(*(moved(getattr(costs, entry.name), rows) for entry in fields(Costs)))
    return replay_steps(schedule, costs, moved(work_seconds, works), initial_clocks(schedule.ranks))[0]


def initial_clocks(ranks: int) -> State:
    """When the rank has finished its last step, when its next send may start, when its last receive began."""
    return np.zeros(ranks), np.zeros(ranks), np.full(ranks, -np.inf)


class _Timeline(Structure):
    _fields_ = [*pointer_fields("step", "rows"), *int64_fields("count")]


class _Column(Structure):
    _fields_ = [*pointer_fields("numbers"), *int64_fields("size", "draw", "row")]


_Share = CFUNCTYPE(c_int)


class _Replay(Structure):
    _fields_ = [
        *int64_fields("ranks", "sizes", "draws", "requests"),
        *pointer_fields("src", "dst", "worker", "kinds"),
        ("timelines", _Timeline * 6),
        ("columns", _Column * 14),
        ("share", _Share),
    ]


class _Pointers:
    """Arrays as C reads them, and kept for as long."""

    def __init__(self) -> None:
        self.kept: list[np.ndarray] = []

    def integers(self, numbers: np.ndarray) -> int:
        return self._address(np.ascontiguousarray(numbers, dtype=np.int64))

    def timeline(self, step: np.ndarray, rows: np.ndarray | None = None) -> _Timeline:
        return _Timeline(self.integers(step), None if rows is None else self.integers(rows), len(step))

    def column(self, numbers: Array | float, count: int) -> _Column:
        """Numbers that broadcast over (sizes, draws, count)."""
        numbers = np.asarray(numbers, dtype=float)
        if numbers.ndim and 1 != numbers.shape[-1] < count:
            raise ValueError(f"found {numbers.shape[-1]} numbers of {count}")
        apart = [0 if length == 1 else step // 8 for length, step in zip(numbers.shape, numbers.strides, strict=True)]
        return _Column(self._address(numbers), *[0] * (3 - len(apart)), *apart)

    def _address(self, numbers: np.ndarray) -> int:
        self.kept.append(numbers)
        return numbers.__array_interface__["data"][0]  # a short schedule takes as long as its pointers by `ctypes.data`


def replay_steps(
    schedule: Schedule, costs: Costs, work_seconds: Array, state: State, kinds: np.ndarray | None = None
) -> State:
    """Return the clocks after a schedule that begins with them, by `native/replay/replay.c`. `kinds`: of every row of
    messages, and of work, the one whose costs it has (None: its own)."""
    asks, rows, works = costs.request is not None, len(schedule.src), schedule.work
    columns = [costs.send, costs.receive, costs.wire, costs.gap_out, costs.gap_in]
    columns += [costs.request, costs.answer] if asks else [0.0, 0.0]
    lead = np.broadcast_shapes(*{np.shape(column)[:-1] for column in (*columns, work_seconds, *state)})
    clocks = tuple(np.broadcast_to(clock, (*lead, schedule.ranks)).copy() for clock in state)
    shared = costs.shared and costs.shared(schedule)
    # When each message leaves its sender, is posted by its receiver, and is through what it shares.
    left, ready, through = np.empty((3, *lead, rows) if shared else (3, rows))
    steps, failures = iter(schedule.steps if shared else ()), []

    def share() -> int:
        try:
            for own in shared.rows(next(steps)):
                through[..., own] = shared.ends(own, left[..., own])
                if asks:  # a sender that asked waits until its message is delivered
                    wanted = np.broadcast_to(costs.request, left.shape)[..., own]
                    left[..., own] = np.where(np.isnan(wanted), left[..., own], through[..., own])
        except Exception as error:  # none may pass through C
            failures.append(error)
            return -1
        return 0

    pointers, most = _Pointers(), 0 if kinds is None else int(kinds.max()) + 1
    sizes, draws = (*[1] * (2 - len(lead)), *lead)
    whole = _Replay(
        *(schedule.ranks, sizes, draws, asks),
        *(pointers.integers(column) for column in (schedule.src, schedule.dst, works.rank)),
        None if kinds is None else pointers.integers(kinds),
        (*_timelines(schedule, pointers), pointers.timeline(works.step)),
        (
            *(pointers.column(column, rows if kinds is None else most) for column in columns),
            pointers.column(work_seconds, len(works.step) if kinds is None else min(most, len(works.step))),
            *(pointers.column(clock, schedule.ranks) for clock in clocks),
            *(pointers.column(times, rows) for times in (left, ready, through if shared else left)),
        ),
        _Share(share) if shared else _Share(),
    )
    failed = library().commodel_replay(ctypes.byref(whole))
    if failures:
        raise failures[0]
    check_finished(failed, clocks[0])
    return clocks


def _timelines(schedule: Schedule, pointers: _Pointers) -> list[_Timeline]:
    """The steps in which messages are posted, their receives are, both have been, their receivers wait for them and
    their senders do: in order, with the rows of that order."""
    posted = pointers.timeline(schedule.step)
    if schedule.ends is None:
        return [posted] * 5
    if "orders" not in schedule.known:
        met = np.maximum(schedule.step, schedule.dst_step)
        columns = schedule.dst_step, met, schedule.dst_wait, schedule.src_wait
        orders = [(column, stable_order(column)) for column in columns]
        schedule.known["orders"] = [(column[order], order) for column, order in orders]
    return [posted, *(pointers.timeline(*order) for order in schedule.known["orders"])]


def _play(costs: Costs, work_seconds: Array, state: State, turns: Sequence[Round]) -> State:
    """Rounds in which every rank sends one message and gets one, by the costs of each kind of message."""
    width = state[0].shape[-1]
    step, src = np.divmod(np.arange(len(turns) * width), width)
    target, kinds = (np.concatenate([getattr(turn, name) for turn in turns]) for name in ("target", "sent"))
    work = Work(step, target, kinds, kinds, kinds) if np.shape(work_seconds)[-1] else Work.empty()
    return replay_steps(Schedule(width, step, src, target, kinds, work, src), costs, work_seconds, state, kinds)


CostsOf = Callable[[Schedule, Values], Costs]


def replay_by_class(
    schedule: Schedule, values: Values, costs: CostsOf, types: Mapping[str, int] | None = None
) -> Array:
    """When each rank is done, by a function that tells what messages cost; local work costs gamma."""

    def of_part(part: Schedule) -> Costs:
        return costs_by_class(part, values, costs) if values.classes else costs(part, values)

    return replay(schedule, of_part, lambda part: part.work_seconds(values["gamma"]), types, values.levels)


def costs_by_class(schedule: Schedule, values: Values, costs: CostsOf) -> Costs:
    names, of = classes(schedule, values)
    occurring = np.unique(of).tolist() or [0]
    by_class = [costs(schedule, values.of_class(names[number])) for number in occurring]
    if len(by_class) == 1:
        return by_class[0]
    rows = [np.flatnonzero(of == number) for number in occurring]
    return Costs(*(_chosen([getattr(own, entry.name) for own in by_class], rows) for entry in fields(Costs)))


def _chosen(columns: Sequence[Array | float | None], rows: Sequence[np.ndarray]) -> Array | float | None:
    """Of each column its rows. A class in which no message asks its receiver has none for that."""
    if all(column is None for column in columns):
        return None
    columns = [np.array([np.nan]) if column is None else np.asarray(column) for column in columns]
    count = sum(map(len, rows))
    lead = np.broadcast_shapes(*(column.shape[:-1] for column in columns))
    chosen = np.empty((*lead, count))
    for column, own in zip(columns, rows, strict=True):
        chosen[..., own] = np.broadcast_to(column, (*lead, count))[..., own]
    return chosen


SAME = 1e-9  # of what a round adds: that it differs by less is rounding
STEADY = 3  # rounds that add the same, one after the other


def replay_round_by_round(
    schedule: Schedule, costs: Callable[[Schedule], Costs], work_seconds: Callable[[Schedule], Array]
) -> Array:
    """When each rank is done (last axis: ranks)."""
    if not isinstance(schedule, Long):
        return finish_times(schedule, costs(schedule), work_seconds(schedule))
    state = initial_clocks(schedule.ranks)
    for part in schedule.parts:
        if not isinstance(part, Rounds):
            state = replay_steps(part, costs(part), work_seconds(part), state)
            continue
        steady, added, number = 0, None, 0
        while number < part.count:
            turn = part.round(number, schedule.node)
            after = replay_steps(turn, costs(turn), work_seconds(turn), state)
            before, added = added, after[0] - state[0]
            alike = before is not None and part.repeats and part.even and part.turn == 1
            steady = steady + 1 if alike and np.allclose(before, added, rtol=SAME, atol=0) else 0
            state, number = after, number + 1
            if steady >= STEADY:
                state = tuple(clock + (part.count - number) * added for clock in state)
                break
    return state[0]


def sum_longest_work(schedule: Schedule, seconds: Array, times: np.ndarray) -> Array:
    """The largest local work of a rank in each step, summed over the steps, where every row of work takes `seconds`
    (last axis) and each step occurs so many times."""
    total = np.zeros(seconds.shape[:-1])
    for step, occurs in zip(schedule.steps, times, strict=True):
        if step.work.stop > step.work.start:
            groups, work = Groups(schedule.work.rank[step.work]), seconds[..., step.work]
            if groups.order is not None:
                work = np.add.reduceat(work[..., groups.order], groups.first, axis=-1)
            total = total + occurs * work.max(axis=-1)
    return total


def count_most_rows(groups: Groups) -> int:
    """Messages of the rank that has the most of them."""
    return groups.longest if groups.order is not None else min(len(groups.ranks), 1)


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
