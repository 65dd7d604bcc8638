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

A step moves three clocks of each rank, in place: `done` is when the rank has finished its last action, `out_free` when
its next send may start, `last_in` when its last receive began. Rows that touch one rank are a group, in their order.

Values by distance class: `replay_by_class` asks a family once with the values of each class that occurs, and every
message gets the costs of its own. Repeated rounds are fast-forwarded (`repeated_rounds`), or, where a round depends on
more than the clocks, replayed until each adds the same (`replay_round_by_round`).

The contribution of message k to a predicted time T is c_k · ∂T/∂c_k (`message_contributions`). T is made of sums and
maxima of the costs c of messages and local work, so it is homogeneous of degree 1 in them, and by Euler's theorem the
sum of all contributions. A message off the critical path contributes nothing. If two paths end at the same time, as in
symmetric trees, one of them is chosen by changing costs by less than a millionth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, fields
from functools import partial
from typing import Protocol

import numpy as np

from commodel.errors import UserError
from commodel.hierarchy import FLAT, Hierarchy
from commodel.models import Array
from commodel.models.pricing.repeated_rounds import Round, State, courses, first_ranks
from commodel.models.pricing.values import Values, classes
from commodel.patterns.rank_local_steps import reorder_requests
from commodel.patterns.repeated import Long, Rounds
from commodel.patterns.schedule import Groups, Schedule, Step, stable_order


def post_sends(step: Step, done: Array, out_free: Array, cost: Array, gap: Array) -> Array:
    """Posts the sends of a step: when each has left its sender. Moves `done` to the end of the posting, from where the
    sender can receive, and `out_free` to the next start."""
    groups, ranks = step.sends, step.sends.ranks
    begin = done[..., step.src]
    if groups.order is None:
        start = np.maximum(begin, out_free[..., ranks])
        out_free[..., ranks] = start + gap
        done[..., ranks] = begin + cost
        return start + cost
    order, first, last = groups.order, groups.first, groups.last
    begin, cost, gap = begin[..., order], cost[..., order], gap[..., order]
    posted = begin + _sum_before(groups, cost)
    done[..., ranks] = posted[..., last] + cost[..., last]
    posted[..., first] = np.maximum(posted[..., first], out_free[..., ranks])
    start = _no_earlier_than(groups, posted, _sum_before(groups, gap))
    out_free[..., ranks] = start[..., last] + gap[..., last]
    left = np.empty_like(start)
    left[..., order] = start + cost
    return left


def delay_by_requests(met: slice | np.ndarray, left: Array, opened: Array, request: Array, answer: Array) -> None:
    """Where a message asks first, it leaves when the answer is back."""
    wanted = request[..., met]
    asked = np.maximum(left[..., met] + wanted, opened[..., met]) + answer[..., met]
    left[..., met] = np.where(np.isnan(wanted), left[..., met], asked)


def wait_for_sends(groups: Groups, left: Array, done: Array) -> None:
    """A sender is done with a step no sooner than what it waits for has left; a costly message may leave last."""
    done[..., groups.ranks] = np.maximum(done[..., groups.ranks], groups.latest(left))


def take_arrivals(groups: Groups, arrival: Array, done: Array, last_in: Array, cost: Array, gap: Array) -> None:
    """Takes the messages of a step in the order in which they arrive."""
    ranks = groups.ranks
    if groups.order is None:
        begin = np.maximum(np.maximum(arrival, done[..., ranks]), last_in[..., ranks] + gap)
        last_in[..., ranks] = begin
        done[..., ranks] = begin + cost
        return
    order = _by_arrival(groups, arrival)
    arrival, cost, gap = (np.take_along_axis(column, order, axis=-1) for column in (arrival, cost, gap))
    first = groups.first
    arrival[..., first] = np.maximum(
        arrival[..., first], np.maximum(done[..., ranks], last_in[..., ranks] + gap[..., first])
    )
    spacing = np.maximum(gap[..., 1:], cost[..., :-1])  # between a receive and the one before it
    until = np.concatenate([np.zeros((*spacing.shape[:-1], 1)), np.cumsum(spacing, axis=-1)], axis=-1)
    begin = _no_earlier_than(groups, arrival, _from_first(groups, until))
    last_in[..., ranks] = begin[..., groups.last]
    done[..., ranks] = begin[..., groups.last] + cost[..., groups.last]


def _by_arrival(groups: Groups, arrival: Array) -> Array:
    """Row numbers sorted by receiver, and by arrival within a receiver (ties: row order), for every draw."""
    by_rank = np.broadcast_to(groups.order, arrival.shape)
    order = np.argsort(np.take_along_axis(arrival, by_rank, axis=-1), axis=-1, kind="stable")
    if len(groups.first) > 1:
        order = np.take_along_axis(order, stable_order(groups.opening[order]), axis=-1)
    return np.take_along_axis(by_rank, order, axis=-1)


def _sum_before(groups: Groups, cost: Array) -> Array:
    """For every row of a group the sum of the rows before it in that group."""
    return _from_first(groups, np.cumsum(cost, axis=-1) - cost)


def _from_first(groups: Groups, total: Array) -> Array:
    """A running total over all rows, counted anew from the first row of every group."""
    return total - total[..., groups.opening]


def _no_earlier_than(groups: Groups, wanted: Array, offset: Array) -> Array:
    """The recurrence t[i] = max(wanted[i], t[i-1] + offset[i] - offset[i-1]) within each group, without a loop over
    rows: subtracting the offset turns it into a running maximum, taken in log2(longest group) passes."""
    slack = wanted - offset
    if len(groups.first) == 1:
        return np.maximum.accumulate(slack, axis=-1) + offset
    reach, later = 1, np.flatnonzero(groups.position)
    while reach < groups.longest:
        slack[..., later] = np.maximum(slack[..., later], slack[..., later - reach])
        reach *= 2
        later = later[groups.position[later] >= reach]
    return slack + offset


def add_work(step: Step, done: Array, seconds: Array) -> None:
    workers = step.workers
    if workers.order is None:
        done[..., workers.ranks] += seconds
    else:
        np.add.at(done, (..., np.repeat(workers.ranks, workers.last - workers.first + 1)), seconds[..., workers.order])


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
    """When each rank is done (last axis: ranks). Complexity: messages × draws, and one pass of numpy a step."""
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


def replay_steps(schedule: Schedule, costs: Costs, work_seconds: Array, state: State) -> State:
    asks = costs.request is not None
    columns = [costs.send, costs.receive, costs.wire, costs.gap_out, costs.gap_in]
    columns += [costs.request, costs.answer] if asks else []
    lead = np.broadcast_shapes(*(np.shape(column)[:-1] for column in (*columns, work_seconds, *state)))
    full = (*lead, len(schedule.src))
    send, receive, wire, gap_out, gap_in, *asking = (np.broadcast_to(column, full) for column in columns)
    work_seconds = np.broadcast_to(work_seconds, (*lead, len(schedule.work.step)))

    done, out_free, last_in = (np.broadcast_to(clock, (*lead, schedule.ranks)).copy() for clock in state)
    left = np.empty(full)  # when each message left its sender
    opened = np.empty(full) if asks else None  # when its receiver could take it
    shared = costs.shared and costs.shared(schedule)
    through = np.empty(full) if shared else left
    for step in schedule.steps:
        if asks:
            opened[..., step.opened] = done[..., step.openers]
        if len(step.src):
            left[..., step.sent] = post_sends(step, done, out_free, send[..., step.sent], gap_out[..., step.sent])
        if asks:
            delay_by_requests(step.met, left, opened, *asking)
        if shared:
            for rows in shared.rows(step):
                through[..., rows] = shared.ends(rows, left[..., rows])
                if asks:  # a sender that asked waits until it is delivered
                    left[..., rows] = np.where(np.isnan(asking[0][..., rows]), left[..., rows], through[..., rows])
        if len(step.dst):
            arrival = through[..., step.taken] + wire[..., step.taken]
            take_arrivals(step.receives, arrival, done, last_in, receive[..., step.taken], gap_in[..., step.taken])
        if len(step.finishes.ranks):
            wait_for_sends(step.finishes, left[..., step.finished], done)
        if step.work.stop > step.work.start:
            add_work(step, done, work_seconds[..., step.work])
    return done, out_free, last_in


def _play(costs: Costs, work_seconds: Array, state: State, turn: Round) -> State:
    """A round in which every rank sends one message and gets one: what `replay_steps` does of such a step."""

    def of(column: Array | float, kinds: np.ndarray) -> Array | float:
        return column if np.ndim(column) == 0 or np.shape(column)[-1] <= 1 else column[..., kinds]

    entered, out_free, last_in = state
    send = of(costs.send, turn.sent)
    start = np.maximum(entered, out_free)
    left, done = start + send, entered + send
    arriving = left[..., turn.source]
    if costs.request is not None:
        wanted = of(costs.request, turn.taken)
        asked = np.maximum(arriving + wanted, entered) + of(costs.answer, turn.taken)
        arriving = np.where(np.isnan(wanted), arriving, asked)
        left = arriving[..., turn.target]
    arrival = arriving + of(costs.wire, turn.taken)
    begin = np.maximum(np.maximum(arrival, done), last_in + of(costs.gap_in, turn.taken))
    done = np.maximum(begin + of(costs.receive, turn.taken), left)
    if np.shape(work_seconds)[-1]:
        done = done + of(work_seconds, turn.taken)
    return done, start + of(costs.gap_out, turn.sent), begin


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
