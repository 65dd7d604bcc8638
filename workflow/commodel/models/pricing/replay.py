"""Plays a schedule on paper: finish times from per-message costs, by the max-plus rules all port models share.

A message costs its sender `send` when it is posted, travels `wire` after that, and costs its receiver `receive` when it
is waited for. Two sends of a rank
start at least `gap_out` of the first apart, two receives begin at least `gap_in` of the second apart. Posting a send
never waits for the gap: the port does, while the processor goes on. A message that has to ask first (rendezvous) sends
a request; when it has come and the receiver has posted the message, the answer goes back, and then the data leave.

    >>> flat = Schedule.of(3, step=0, src=0, dst=[1, 2], bytes=8)  # the second send starts 4 after the first
    >>> finish_times(flat, Costs(send=1.0, wire=10.0, receive=2.0, gap_out=4.0), work_seconds=np.zeros(0))
    array([ 5., 13., 17.])
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Protocol

import numpy as np

from commodel.errors import UserError
from commodel.hierarchy import FLAT, Hierarchy
from commodel.models import Array
from commodel.models.pricing import clocks
from commodel.models.pricing.critical import stretched
from commodel.models.pricing.leaps import State
from commodel.models.pricing.repeating import Round, courses
from commodel.patterns.levels import asking
from commodel.patterns.repeated import Long, Rounds
from commodel.patterns.schedule import Schedule
from commodel.patterns.steps import Step


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


def replayed(
    schedule: Schedule,
    costs: Callable[[Schedule], Costs],
    work_seconds: Callable[[Schedule], Array],
    types: Mapping[str, int] | None = None,
    levels: Hierarchy = FLAT,
) -> Array:
    """When each rank is done, by functions that tell what the messages and the work of a schedule cost; `types` of
    nodes and `levels` of the network where that depends on them. Rounds that repeat are not gone through one by one."""
    if not isinstance(schedule, Long):
        return finish_times(schedule, costs(schedule), work_seconds(schedule))
    state = begun(schedule.ranks)
    for part in schedule.parts:
        if isinstance(part, Rounds):
            course = courses(schedule, types, levels)[part]
            state = course.run(state, partial(_play, costs(course.sample), work_seconds(course.sample)))
        else:
            state = walked(part, costs(part), work_seconds(part), state)
    return state[0]


def finish_times(schedule: Schedule, costs: Costs, work_seconds: Array) -> Array:
    """When each rank is done (last axis: ranks). Complexity: messages × draws, and one pass of numpy a step."""
    costs, work_seconds = stretched(costs, work_seconds)
    if costs.request is not None and schedule.ends is not None:
        asks = ~np.isnan(costs.request)
        asks = np.broadcast_to(asks.any(axis=tuple(range(asks.ndim - 1))), schedule.src.shape)
        if (asks & (schedule.src_wait < schedule.dst_step)).any():
            return _with_requests(schedule, asks, costs, work_seconds)
    return walked(schedule, costs, work_seconds, begun(schedule.ranks))[0]


def _with_requests(schedule: Schedule, asks: Array, costs: Costs, work_seconds: Array) -> Array:
    """A sender that waits for its message to be taken must be on a clock by which the receiver is not later."""
    try:
        schedule, rows, works = asking(schedule, asks)
    except UserError as error:
        raise UserError(f"{error.message}: so long a message asks first") from None

    def moved(column: Array | float | None, order: Array) -> Array | float | None:
        return column if np.ndim(column) == 0 or np.shape(column)[-1] == 1 else column[..., order]

    costs = Costs(*(moved(getattr(costs, entry.name), rows) for entry in fields(Costs)))
    return walked(schedule, costs, moved(work_seconds, works), begun(schedule.ranks))[0]


def begun(ranks: int) -> State:
    """When the rank has finished its last step, when its next send may start, when its last receive began."""
    return np.zeros(ranks), np.zeros(ranks), np.full(ranks, -np.inf)


def walked(schedule: Schedule, costs: Costs, work_seconds: Array, state: State) -> State:
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
            left[..., step.sent] = clocks.send(step, done, out_free, send[..., step.sent], gap_out[..., step.sent])
        if asks:
            clocks.ask(step.met, left, opened, *asking)
        if shared:
            for rows in shared.rows(step):
                through[..., rows] = shared.ends(rows, left[..., rows])
                if asks:  # a sender that asked waits until it is delivered
                    left[..., rows] = np.where(np.isnan(asking[0][..., rows]), left[..., rows], through[..., rows])
        if len(step.dst):
            arrival = through[..., step.taken] + wire[..., step.taken]
            clocks.receive(step.receives, arrival, done, last_in, receive[..., step.taken], gap_in[..., step.taken])
        if len(step.finishes.ranks):
            clocks.finish(step.finishes, left[..., step.finished], done)
        if step.work.stop > step.work.start:
            clocks.add_work(step, done, work_seconds[..., step.work])
    return done, out_free, last_in


def _play(costs: Costs, work_seconds: Array, state: State, turn: Round) -> State:
    """A round in which every rank sends one message and gets one: what `walked` does of such a step."""

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
