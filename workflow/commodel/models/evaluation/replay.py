"""Replay of a schedule: finish times of all ranks from the costs of its messages (`replay`,
`predict_by_replay`).

All port models share these max-plus rules. A message costs its sender `send` when it is posted,
travels for `wire`, and costs its receiver `receive` when the receiver waits for it. A rank's next
send starts at least `gap_out` of the last one later. Its next receive begins at least `gap_in` of
the next one later. The port waits for the gap, the processor does not. A rendezvous message first
sends a request. When the request has arrived and the receive is posted, the grant returns, and then
the data leave.

    >>> flat = Schedule.of(3, step=0, src=0, dst=[1, 2], bytes=8)  # the second send starts 4 after the first
    >>> finish_times(flat, Costs(send=1.0, wire=10.0, receive=2.0, gap_out=4.0), work_seconds=np.zeros(0))
    array([ 5., 13., 17.])

A step moves three clocks of each rank: `done` is when the rank has finished its last action,
`out_free` when its next send may start, `last_in` when its last receive began. A rank posts its
sends in row order. It receives in the order of arrival, at equal times in row order.
`native/replay/replay.c` computes the steps.

`predict_by_replay` evaluates a model once with the values of each distance class that occurs; each
message gets the costs of its class. Repeated rounds are fast-forwarded (`repeated_rounds`). If a
round depends on more than the clocks, rounds are replayed until each adds the same time
(`replay_round_by_round`).

The contribution of message k to a predicted time T is c_k · ∂T/∂c_k (`attribute_to_messages`). T
consists of sums and maxima of the costs c of messages and local work, so it is homogeneous of
degree 1. By Euler's theorem, it is the sum of all contributions. A message off the critical path
contributes 0. If two paths end at the same time, as in symmetric trees, a change of costs by less
than a millionth selects one of them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from ctypes import CFUNCTYPE, Structure, c_int
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from commodel.errors import UserError
from commodel.hierarchy import FLAT, Hierarchy
from commodel.models import Array
from commodel.models.evaluation.native_library import (
    NativeArrays,
    check_finished,
    find_address,
    load_library,
    make_int64_fields,
    make_pointer_fields,
)
from commodel.models.evaluation.repeated_rounds import (
    RoundStack,
    State,
    find_representative_ranks,
    place_rounds,
)
from commodel.models.evaluation.shared_links import Sharing
from commodel.models.evaluation.values import Values, list_distance_classes
from commodel.patterns.rank_local_steps import reorder_requests
from commodel.patterns.repeated import CompactSchedule, Rounds
from commodel.patterns.schedule import RankGroups, Schedule, Step, argsort_stably

# Factors of the costs of messages, and of work.
_COST_FACTORS: ContextVar[tuple[Array, Array] | None] = ContextVar("factors", default=None)
# Relative changes of a cost: to select one of equal paths, and for a derivative.
TIE_BREAK, DERIVATIVE_STEP = 1e-6, 1e-9
MIN_CONTRIBUTION = 1e-3  # relative to the mean contribution; smaller ones are rounding errors


def attribute_to_messages(messages: int, predict: Callable[[], Array]) -> tuple[Array, float]:
    """Return the contribution of each message and of all local work to a predicted time, in
    seconds.

    `predict` computes the prediction for one row of values. All contributions are 0 for a model
    that does not replay.
    """
    perturbed = 1 + TIE_BREAK * np.random.default_rng(1).random(messages)
    factors = np.tile(perturbed, (messages + 2, 1))
    factors[np.arange(messages), np.arange(messages)] *= 1 + DERIVATIVE_STEP
    work = np.ones((messages + 2, 1))
    work[messages] += DERIVATIVE_STEP
    token = _COST_FACTORS.set((factors, work))
    try:
        predictions = np.broadcast_to(predict(), messages + 2)
    finally:
        _COST_FACTORS.reset(token)
    slopes = (predictions[:-1] - predictions[-1]) / DERIVATIVE_STEP
    slopes = np.where(
        np.abs(slopes) < MIN_CONTRIBUTION * predictions[-1] / max(messages, 1), 0.0, slopes
    )
    return slopes[:-1], float(slopes[-1])


def scale_costs(costs: Costs, work_seconds: Array) -> tuple[Costs, Array]:
    """Return the costs multiplied by the factors that `attribute_to_messages` has set, or unchanged
    without factors."""
    factors = _COST_FACTORS.get()
    if factors is None:
        return costs, work_seconds
    messages, work = factors
    columns = (getattr(costs, field.name) for field in fields(costs))
    scaled = [
        column if column is None or callable(column) else column * messages for column in columns
    ]
    return type(costs)(*scaled), work_seconds * work


@dataclass(frozen=True)
class Costs:
    """Seconds per message; numbers, or arrays that broadcast over (draws, rows), or (sizes, draws,
    rows)."""

    send: Array | float = 0.0
    receive: Array | float = 0.0
    wire: Array | float = 0.0
    gap_out: Array | float = 0.0
    gap_in: Array | float = 0.0
    # travel time of a rendezvous request; NaN for an eager message. None: all are eager
    request: Array | None = None
    grant: Array | None = None  # from the arrival of the request until the data may leave
    # the links that messages share, before `wire`
    shared: Callable[[Schedule], Sharing] | None = None


def replay(
    schedule: Schedule,
    costs: Callable[[Schedule], Costs],
    work_seconds: Callable[[Schedule], Array],
    types: Mapping[str, int] | None = None,
    levels: Hierarchy = FLAT,
) -> Array:
    """Return the finish time of each rank in seconds (last axis: ranks).

    `costs` and `work_seconds` return the costs of the messages and of the work of a schedule. If
    they depend on node types or distance classes, `types` and `levels` describe these. Repeated
    rounds are fast-forwarded.
    """
    if not isinstance(schedule, CompactSchedule):
        if _COST_FACTORS.get() is None and (
            representatives := find_representative_ranks(schedule, types, levels)
        ):
            sent, played = representatives
            # the replay of all ranks below raises the error with the right rank numbers
            with suppress(UserError):
                finish = finish_times(played, costs(sent), work_seconds(sent))
                return np.tile(finish, schedule.ranks // played.ranks)
        return finish_times(schedule, costs(schedule), work_seconds(schedule))
    state = make_initial_clocks(schedule.ranks)
    for part in schedule.parts:
        if isinstance(part, Rounds):
            placed = place_rounds(schedule, types, levels)[part]
            state = placed.run(
                state, partial(_replay_rounds, costs(placed.sample), work_seconds(placed.sample))
            )
        else:
            state = replay_steps(part, costs(part), work_seconds(part), state)
    return state[..., 0, :]


def finish_times(schedule: Schedule, costs: Costs, work_seconds: Array) -> Array:
    """Return when each rank is done (last axis: ranks). Complexity: messages × draws."""
    costs, work_seconds = scale_costs(costs, work_seconds)
    if costs.request is not None and schedule.nonblocking is not None:
        rendezvous = ~np.isnan(costs.request)
        rendezvous = np.broadcast_to(
            rendezvous.any(axis=tuple(range(rendezvous.ndim - 1))), schedule.src.shape
        )
        if (rendezvous & (schedule.src_wait < schedule.dst_step)).any():
            return _finish_with_requests(schedule, rendezvous, costs, work_seconds)
    return replay_steps(schedule, costs, work_seconds, make_initial_clocks(schedule.ranks))[
        ..., 0, :
    ]


def _finish_with_requests(
    schedule: Schedule, rendezvous: Array, costs: Costs, work_seconds: Array
) -> Array:
    """Return the finish times of a schedule in which senders wait for rendezvous messages.

    The steps are reordered so that no sender waits in a step before the receiver's post.
    """
    try:
        schedule, rows, works = reorder_requests(schedule, rendezvous)
    except UserError as error:
        raise UserError(f"{error.message}: messages of this size use rendezvous") from None

    def reorder(column: Array, order: Array) -> Array:
        return column if column.ndim == 0 or column.shape[-1] == 1 else column[..., order]

    def reorder_cost(cost: Array | float | None) -> Array | float | None:
        return reorder(cost, rows) if isinstance(cost, np.ndarray) else cost

    ordered_costs: dict[str, Any] = {
        field.name: reorder_cost(getattr(costs, field.name)) for field in fields(Costs)
    }
    clocks = make_initial_clocks(schedule.ranks)
    return replay_steps(schedule, Costs(**ordered_costs), reorder(work_seconds, works), clocks)[
        ..., 0, :
    ]


def make_initial_clocks(ranks: int) -> State:
    """Return the clocks `done`, `out_free` and `last_in` at the start."""
    return np.repeat([[0.0], [0.0], [-np.inf]], ranks, axis=1)


_NO_SECONDS = np.zeros(())  # of what there is not


class _Timeline(Structure):
    _fields_ = [*make_pointer_fields("step", "rows"), *make_int64_fields("count")]


class _Column(Structure):
    _fields_ = [*make_pointer_fields("numbers"), *make_int64_fields("size", "draw", "row")]


_Share = CFUNCTYPE(c_int)


class _Replay(Structure):
    _fields_ = [
        *make_int64_fields("ranks", "sizes", "draws", "requests"),
        *make_pointer_fields("src", "dst", "worker", "kinds"),
        ("timelines", _Timeline * 6),
        ("columns", _Column * 14),
        ("share", _Share),
    ]


class _Messages:
    """The messages and the work of a schedule as the C library reads them, for any costs. The
    object keeps the arrays alive."""

    def __init__(self, schedule: Schedule, kinds: np.ndarray | None) -> None:
        self.arrays = NativeArrays()
        self.rows, self.works = len(schedule.src), len(schedule.work.step)
        self.costs, self.work_costs = self.rows, self.works  # numbers of a column
        if kinds is not None:
            self.costs = int(kinds.max()) + 1
            self.work_costs = min(self.costs, self.works)
        self.native = _Replay(
            *(schedule.ranks, 0, 0, 0),
            *(
                self.arrays.at(column)
                for column in (schedule.src, schedule.dst, schedule.work.rank)
            ),
            None if kinds is None else self.arrays.at(kinds),
            (*self._timelines(schedule), self._timeline(schedule.work.step)),
        )

    def _timeline(self, step: np.ndarray, rows: np.ndarray | None = None) -> _Timeline:
        return _Timeline(
            self.arrays.at(step), None if rows is None else self.arrays.at(rows), len(step)
        )

    def _timelines(self, schedule: Schedule) -> list[_Timeline]:
        """Return the timelines of posted sends, posted receives, matched messages, waits of
        receivers and waits of senders.

        Each has its steps in order, and the rows in that order.
        """
        posted = self._timeline(schedule.step)
        if schedule.nonblocking is None:
            return [posted] * 5
        matched = np.maximum(schedule.step, schedule.dst_step)
        columns = schedule.dst_step, matched, schedule.dst_wait, schedule.src_wait
        orders = [(column, argsort_stably(column)) for column in columns]
        return [posted, *(self._timeline(column[order], order) for column, order in orders)]


def _make_column(numbers: Array, count: int) -> _Column:
    """Return a column of numbers that broadcast over (sizes, draws, count). The caller keeps the
    array alive."""
    shape = numbers.shape
    if not shape:
        return _Column(find_address(numbers))
    if 1 != shape[-1] < count:
        raise ValueError(f"found {shape[-1]} numbers of {count}")
    strides = [
        0 if length == 1 else step // 8 for length, step in zip(shape, numbers.strides, strict=True)
    ]
    return _Column(find_address(numbers), *(0,) * (3 - len(strides)), *strides)


def _make_columns(numbers: Array) -> list[_Column]:
    """Return the columns (second last axis) of an array."""
    *strides, stride, row = (0, 0, *numbers.strides)[-4:]
    first, strides = find_address(numbers), [step // 8 for step in strides]
    return [
        _Column(first + number * stride, *strides, row // 8) for number in range(numbers.shape[-2])
    ]


def replay_steps(
    schedule: Schedule,
    costs: Costs,
    work_seconds: Array,
    state: State,
    kinds: np.ndarray | None = None,
) -> State:
    """Return the clocks after a schedule that begins with the clocks `state`.

    `kinds` holds for every row of messages and work the row whose costs it takes (None: its own).
    """
    if "messages" not in schedule.cache:
        schedule.cache["messages"] = _Messages(schedule, kinds)
    messages, has_requests = schedule.cache["messages"], costs.request is not None
    seconds = [costs.send, costs.receive, costs.wire, costs.gap_out, costs.gap_in]
    for column in (costs.request, costs.grant):
        seconds.append(column if has_requests and column is not None else _NO_SECONDS)
    columns = [np.asarray(column, dtype=float) for column in (*seconds, work_seconds)]
    leading_shape = np.broadcast_shapes(
        *{column.shape[:-1] for column in columns}, state.shape[:-2]
    )
    state = np.broadcast_to(state, (*leading_shape, *state.shape[-2:])).copy()
    shared = costs.shared and costs.shared(schedule)
    # When each message leaves its sender, is posted by its receiver, and leaves the shared links.
    times = np.empty((*leading_shape, 3, messages.rows) if shared else (2, messages.rows))
    departures, delivered = times[..., 0, :], times[..., -1, :]
    steps = iter(schedule.steps if shared else ())
    failures: list[Exception] = []

    def share() -> int:
        assert shared is not None
        try:
            rows = shared.find_beginning(next(steps))
            begin = departures[..., rows]
            end = delivered[..., rows] = shared.find_ends(rows, begin)
            # a rendezvous sender waits until its message is delivered
            if costs.request is not None:
                requests = np.broadcast_to(costs.request, departures.shape)[..., rows]
                departures[..., rows] = np.where(np.isnan(requests), begin, end)
        except Exception as error:  # an exception must not pass through C
            failures.append(error)
            return -1
        return 0

    native = _Replay.from_buffer_copy(messages.native)
    native.sizes, native.draws = (1, 1, *leading_shape)[-2:]
    native.requests = has_requests
    left_column, ready_column, *delivered_column = _make_columns(times)
    native.columns = (
        *(_make_column(column, messages.costs) for column in columns[:-1]),
        _make_column(columns[-1], messages.work_costs),
        *_make_columns(state),
        *(left_column, ready_column, *(delivered_column or [left_column])),
    )
    if shared:
        native.share = _Share(share)
    code = load_library().commodel_replay(ctypes.byref(native))
    if failures:
        raise failures[0]
    return check_finished(code, state)


def _replay_rounds(costs: Costs, work_seconds: Array, state: State, batch: RoundStack) -> State:
    """Return the clocks after repeated rounds, from the costs of each kind of message."""
    return replay_steps(batch.schedule, costs, work_seconds, state, batch.kinds)


CostsOf = Callable[[Schedule, Values], Costs]


def predict_by_replay(costs: CostsOf, by_type: bool = False) -> Callable[[Schedule, Values], Array]:
    """Return the prediction of a model: a replay with these costs of messages; local work costs
    gamma per byte.

    `by_type`: costs depend on node types.
    """

    def predict(schedule: Schedule, values: Values) -> Array:
        def find_costs(part: Schedule) -> Costs:
            return (
                compute_costs_by_class(part, values, costs)
                if values.classes
                else costs(part, values)
            )

        types = values.settings.get("types") if by_type else None
        return replay(
            schedule,
            find_costs,
            lambda part: part.work_seconds(values["gamma"]),
            types,
            values.levels,
        )

    return predict


def compute_costs_by_class(schedule: Schedule, values: Values, costs: CostsOf) -> Costs:
    """Return the costs of all messages, each by the values of its distance class."""
    names, class_of = list_distance_classes(schedule, values)
    occurring = np.unique(class_of).tolist() or [0]
    by_class = [costs(schedule, values.of_class(names[number])) for number in occurring]
    if len(by_class) == 1:
        return by_class[0]
    rows = [np.flatnonzero(class_of == number) for number in occurring]
    merged: dict[str, Any] = {
        field.name: _merge_rows(
            [getattr(class_costs, field.name) for class_costs in by_class], rows
        )
        for field in fields(Costs)
    }
    return Costs(**merged)


def _merge_rows(
    columns: Sequence[Array | float | None], rows: Sequence[np.ndarray]
) -> Array | float | None:
    """Return one column from the columns of all classes. A class without rendezvous messages has
    None for the request."""
    if all(column is None for column in columns):
        return None
    arrays = [np.array([np.nan]) if column is None else np.asarray(column) for column in columns]
    count = sum(map(len, rows))
    leading_shape = np.broadcast_shapes(*(column.shape[:-1] for column in arrays))
    merged = np.empty((*leading_shape, count))
    for column, indices in zip(arrays, rows, strict=True):
        merged[..., indices] = np.broadcast_to(column, (*leading_shape, count))[..., indices]
    return merged


# relative difference of the times that two rounds add, up to which they are equal
EQUAL_ROUNDS_TOLERANCE = 1e-9
# successive rounds that add the same time as the one before; the rest is extrapolated
EQUAL_ROUNDS_NEEDED = 3


def replay_round_by_round(
    schedule: Schedule,
    costs: Callable[[Schedule], Costs],
    work_seconds: Callable[[Schedule], Array],
) -> Array:
    """Return when each rank is done (last axis: ranks)."""
    if not isinstance(schedule, CompactSchedule):
        return finish_times(schedule, costs(schedule), work_seconds(schedule))
    state = make_initial_clocks(schedule.ranks)
    for part in schedule.parts:
        if not isinstance(part, Rounds):
            state = replay_steps(part, costs(part), work_seconds(part), state)
            continue
        equal_rounds, number = 0, 0
        increase: Array | None = None
        while number < part.count:
            one_round = part.round(number, schedule.node)
            after = replay_steps(one_round, costs(one_round), work_seconds(one_round), state)
            previous_increase, increase = increase, after[..., :1, :] - state[..., :1, :]
            is_equal = (
                previous_increase is not None
                and part.periodic
                and part.equal_sizes
                and part.shift == 1
                and np.allclose(previous_increase, increase, rtol=EQUAL_ROUNDS_TOLERANCE, atol=0)
            )
            equal_rounds = equal_rounds + 1 if is_equal else 0
            state, number = after, number + 1
            if equal_rounds >= EQUAL_ROUNDS_NEEDED:
                state = state + (part.count - number) * increase
                break
    return state[..., 0, :]


def sum_longest_work(schedule: Schedule, seconds: Array, counts: np.ndarray) -> Array:
    """Return the largest local work of a rank in each step, summed over the steps, in seconds.

    `seconds` is the time of every row of work (last axis), `counts` how often each step occurs.
    """
    total = np.zeros(seconds.shape[:-1])
    for step, count in zip(schedule.steps, counts, strict=True):
        if step.work.stop > step.work.start:
            groups, work = RankGroups(schedule.work.rank[step.work]), seconds[..., step.work]
            if groups.order is not None:
                work = np.add.reduceat(work[..., groups.order], groups.first, axis=-1)
            total = total + count * work.max(axis=-1)
    return total


def count_most_messages(groups: RankGroups) -> int:
    """Return the largest number of messages of a rank."""
    return groups.longest if groups.order is not None else min(len(groups.ranks), 1)


def iterate_phases(schedule: Schedule) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield for every step, and for the end, the ranks whose phase closes before it, and their
    numbers of messages."""
    count = np.zeros(schedule.ranks)

    def close(ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ranks = ranks[count[ranks] > 0]
        closed = ranks, count[ranks]
        count[ranks] = 0
        return closed

    for step in _list_distinct_steps(schedule):
        yield close(step.sends.ranks)
        groups = step.receives
        count[groups.ranks] += 1 if groups.order is None else groups.last - groups.first + 1
    yield close(np.arange(schedule.ranks))


def find_largest_phase(schedule: Schedule) -> int:
    """Return the largest number of messages of a phase."""
    return max(int(count.max(initial=0)) for _, count in iterate_phases(schedule))


def _list_distinct_steps(schedule: Schedule) -> Iterator[Step]:
    """Yield the steps of a schedule. Repeated rounds yield two: all but the first are equal for
    phases."""
    for part in schedule.parts:
        if isinstance(part, Rounds):
            yield from part.round(0, schedule.node).steps * min(part.count, 2)
        else:
            yield from part.steps
