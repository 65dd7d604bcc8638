"""What one step of a replay does to the clocks of its ranks: posting sends, asking, waiting, taking what arrives, work.

`done` is when each rank has finished what it did last, `out_free` when its next send may start, `last_in` when its last
receive began; all are changed in place. Rows that touch one rank are a group, in their order.
"""

import numpy as np

from commodel.models import Array
from commodel.patterns.steps import Groups, Step


def send(step: Step, done: Array, out_free: Array, cost: Array, gap: Array) -> Array:
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


def ask(met: slice | np.ndarray, left: Array, opened: Array, request: Array, answer: Array) -> None:
    """Where a message asks first, it leaves when the answer is back."""
    wanted = request[..., met]
    asked = np.maximum(left[..., met] + wanted, opened[..., met]) + answer[..., met]
    left[..., met] = np.where(np.isnan(wanted), left[..., met], asked)


def finish(groups: Groups, left: Array, done: Array) -> None:
    """A sender is done with a step no sooner than what it waits for has left; a costly message may leave last."""
    done[..., groups.ranks] = np.maximum(done[..., groups.ranks], groups.latest(left))


def receive(groups: Groups, arrival: Array, done: Array, last_in: Array, cost: Array, gap: Array) -> None:
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
        receiver = np.repeat(np.arange(len(groups.first)), groups.last - groups.first + 1)
        order = np.take_along_axis(order, np.argsort(receiver[order], axis=-1, kind="stable"), axis=-1)
    return np.take_along_axis(by_rank, order, axis=-1)


def _sum_before(groups: Groups, cost: Array) -> Array:
    """For every row of a group the sum of the rows before it in that group."""
    return _from_first(groups, np.cumsum(cost, axis=-1) - cost)


def _from_first(groups: Groups, total: Array) -> Array:
    """A running total over all rows, counted anew from the first row of every group."""
    return total - np.repeat(total[..., groups.first], groups.last - groups.first + 1, axis=-1)


def _no_earlier_than(groups: Groups, wanted: Array, offset: Array) -> Array:
    """The recurrence t[i] = max(wanted[i], t[i-1] + offset[i] - offset[i-1]) within each group, without a loop over
    rows: subtracting the offset turns it into a running maximum, taken in log2(longest group) passes."""
    slack = wanted - offset
    if len(groups.first) == 1:
        return np.maximum.accumulate(slack, axis=-1) + offset
    reach = 1
    while reach < groups.longest:
        shifted = np.where(groups.position[reach:] >= reach, slack[..., :-reach], -np.inf)
        slack = np.concatenate([slack[..., :reach], np.maximum(slack[..., reach:], shifted)], axis=-1)
        reach *= 2
    return slack + offset


def add_work(step: Step, done: Array, seconds: Array) -> None:
    workers = step.workers
    if workers.order is None:
        done[..., workers.ranks] += seconds
    else:
        np.add.at(done, (..., np.repeat(workers.ranks, workers.last - workers.first + 1)), seconds[..., workers.order])
