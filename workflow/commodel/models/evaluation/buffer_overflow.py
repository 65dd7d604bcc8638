"""Buffer overflow at a receiver by the cluster model (Tam, Wang 1999).

`find_overflow` returns the packets that each message loses. `choose_window` returns the window of a
gather (equations 3 to 7). In this module, the window is the number of senders that a gather admits
at once.

The packets of a message arrive evenly, from when it leaves until its sender is free again. The
receiver removes one packet every `service` seconds. A packet that arrives at a full buffer is lost.
With x senders all the time this is equation 4. A single sender never overflows the buffer: all
ports of a switch have the same speed, and acknowledgements slow the sender down to the receiver's
speed. Packets between two moments with an empty buffer are one burst.

A retransmitted packet is assumed to arrive, since TCP starts slowly after a timeout, at the rate of
acknowledgements. Evidence: seven Linux senders behind a switch of 100 Mbit/s with a buffer of 36
packets took 0.29 s for 256 KiB each and 1.3 s for 1 MiB. That is the receiver's time, 0.15 s and
0.6 s, and one to three timeouts of 0.2 s. If all retransmitted at full speed, equation 4 would give
11 and 18 timeouts.

Symbols of the window's equations: x senders, each sending a packet every g_s seconds; a buffer of B
packets, from which the receiver removes one every g_r seconds; k packets in total; A = x/g_s and D
= 1/g_r, the packets that arrive and leave in a second; G_al = ⌈g_s/g_r⌉, the fewest senders that
keep the receiver busy.
"""

from dataclasses import dataclass, replace
from math import ceil, floor, inf
from typing import Any

import numpy as np

from commodel.models import Array
from commodel.models.evaluation.repeated_rounds import MessageKinds
from commodel.models.evaluation.replay import Costs, finish_times
from commodel.patterns.schedule import NonblockingSteps, Schedule

NEGLIGIBLE_LOSS = 0.5  # packets of a burst: a smaller loss counts as none
ROUNDING_SHARE = 1e-6  # of a message's packets


@dataclass(frozen=True, eq=False)
class Overflow:
    """Result of `find_overflow`."""

    lost: Array  # packets of each message (last axis: messages)
    retransmitted: np.ndarray  # whether the sender retransmits a part of the message
    # the smallest share of a burst's packets that is delivered (no axis of messages)
    delivered: Array


def find_overflow_candidates(
    dst: np.ndarray, busy: Array, packets: Array, service: Array, buffer: Array
) -> np.ndarray:
    """Return the rows of messages whose receiver loses packets in the worst case, in which all its
    messages arrive at the same time."""
    most_packets = packets.max(axis=tuple(range(packets.ndim - 1)))
    if np.bincount(dst, np.broadcast_to(most_packets, len(dst))).max() <= buffer.min():
        return np.empty(0, dtype=int)
    ranks = np.unique(dst, return_inverse=True)[1]
    arrival_rate = _sum_by_rank(ranks, packets / np.maximum(busy, 1e-300))
    total, seconds_each = _sum_by_rank(ranks, packets), _average_service(ranks, packets, service)
    worst_loss = total * (1 - 1 / np.maximum(arrival_rate * seconds_each, 1e-300)) - buffer
    worst_loss[..., np.bincount(ranks) == 1] = 0
    loses = np.asarray((worst_loss > NEGLIGIBLE_LOSS).any(axis=tuple(range(worst_loss.ndim - 1))))
    return np.flatnonzero(loses[ranks])


def find_overflow(
    dst: np.ndarray, departure: Array, busy: Array, packets: Array, service: Array, buffer: Array
) -> Overflow:
    """Return the packets lost by messages to ranks `dst` that depart at `departure` and occupy
    their senders for `busy` seconds.

    All columns have the shape (..., messages). `packets` is the number of packets of each message,
    `service` is in seconds per packet.
    """
    shape = np.broadcast_shapes(
        *(np.shape(column) for column in (departure, busy, packets, service, buffer))
    )
    departure, busy, packets = (
        np.broadcast_to(column, shape) for column in (departure, busy, packets)
    )
    buffer = np.broadcast_to(buffer, (*shape[:-1], 1))
    receivers, ranks = np.unique(dst, return_inverse=True)
    rate = packets / np.maximum(busy, 1e-300)

    # Each message has two events, its begin and its end, sorted by receiver and then by time. The
    # ranges of the receivers are the same in every row.
    time, change = (
        np.concatenate([departure, departure + busy], axis=-1),
        np.concatenate([rate, -rate], axis=-1),
    )
    receiver_of = np.concatenate([ranks, ranks])
    order = np.argsort(time, axis=-1, kind="stable")
    order = np.take_along_axis(
        order, np.argsort(receiver_of[order], axis=-1, kind="stable"), axis=-1
    )
    events = np.bincount(receiver_of, minlength=len(receivers))
    last_event = np.cumsum(events) - 1  # of each receiver
    time = np.take_along_axis(time, order, axis=-1)
    arrival_rate = np.maximum(np.cumsum(np.take_along_axis(change, order, axis=-1), axis=-1), 0)
    span = np.diff(time, axis=-1, append=time[..., -1:])  # until the next event
    span[..., last_event] = 0
    arrived = arrival_rate * span
    growth = arrived - span / np.maximum(
        np.repeat(_average_service(ranks, packets, service), events, axis=-1), 1e-300
    )
    single_sender = np.cumsum(np.where(order < len(dst), 1, -1), axis=-1) == 1
    growth = np.where(single_sender, np.minimum(growth, 0), growth)

    contents = _find_contents(growth, last_event, buffer, int(events.max()))
    overflow = np.maximum(contents + growth - buffer, 0)
    burst, loses_packets, delivered = _group_bursts(contents, arrived, overflow)

    position = np.argsort(order, axis=-1)  # of each event in the sorted order
    begin, end = np.split(position, 2, axis=-1)
    lost_per_rate = (
        np.divide(overflow, arrived, out=np.zeros_like(arrived), where=arrived > 0) * span
    )
    lost_before = np.cumsum(lost_per_rate, axis=-1) - lost_per_rate
    lost = rate * (
        np.take_along_axis(lost_before, end, axis=-1)
        - np.take_along_axis(lost_before, begin, axis=-1)
    )
    # A message that lasts longer than a burst is assigned to the bursts in which it begins and
    # ends.
    bursts = (np.take_along_axis(burst, at, axis=-1) for at in (begin, np.maximum(end - 1, 0)))
    in_lossy_burst = np.logical_or(*(loses_packets[number] for number in bursts))
    return Overflow(lost, (lost > ROUNDING_SHARE * packets) & in_lossy_burst, delivered)


def _find_contents(growth: Array, last: np.ndarray, buffer: Array, longest: int) -> Array:
    """Return the buffer's contents in packets at each event: the contents at the previous event
    plus the growth since.

    The contents stay between 0 and `buffer`, and are 0 at a receiver's first event. Each event is a
    map x → min(max(x + shift, low), high). The composition of two such maps is such a map again, so
    log2(longest) passes suffice.
    """
    shift, low = growth.copy(), np.zeros_like(growth)
    high = np.broadcast_to(buffer, growth.shape).copy()
    high[..., last] = 0
    stride = 1
    while stride < longest:
        low_bound, high_bound, step = low[..., stride:], high[..., stride:], shift[..., stride:]
        lower = np.minimum(np.maximum(low[..., :-stride] + step, low_bound), high_bound)
        upper = np.minimum(np.maximum(high[..., :-stride] + step, low_bound), high_bound)
        shift[..., stride:] = step + shift[..., :-stride].copy()
        low[..., stride:], high[..., stride:] = lower, upper
        stride *= 2
    contents = np.minimum(np.maximum(shift, low), high)
    return np.concatenate([np.zeros((*contents.shape[:-1], 1)), contents[..., :-1]], axis=-1)


def _group_bursts(
    contents: Array, arrived: Array, overflow: Array
) -> tuple[np.ndarray, np.ndarray, Array]:
    """Return the burst number of each event, whether each burst loses packets, and each row's
    smallest delivered share."""
    burst = (np.cumsum(contents.ravel() <= 0) - 1).reshape(contents.shape)
    packets, lost = (np.bincount(burst.ravel(), column.ravel()) for column in (arrived, overflow))
    loses_packets = lost > NEGLIGIBLE_LOSS
    share = np.where(loses_packets, 1 - lost / np.maximum(packets, NEGLIGIBLE_LOSS), 1.0)
    return burst, loses_packets, share[burst].min(axis=-1)


def _sum_by_rank(ranks: np.ndarray, column: Array) -> Array:
    """Return the sums of a column over the messages of each rank."""
    order = np.argsort(ranks, kind="stable")
    first = np.searchsorted(ranks[order], np.arange(ranks.max() + 1))
    return np.add.reduceat(column[..., order], first, axis=-1)


def _average_service(ranks: np.ndarray, packets: Array, service: Array) -> Array:
    """Return the mean service time of each rank in seconds per packet, over all packets that it
    receives."""
    return _sum_by_rank(ranks, packets * service) / _sum_by_rank(ranks, packets)


def find_departures(
    schedule: Schedule, costs: Costs, work_seconds: Array, rows: np.ndarray
) -> Array:
    """Return the time at which each of the messages `rows` departs.

    For this, each sender sends a message without cost to an extra rank, the observer, just before
    the message.
    """
    messages = np.arange(len(schedule.src))
    order = np.argsort(np.concatenate([2 * messages + 1, 2 * rows]))
    observer = schedule.ranks + np.arange(len(rows))

    def insert_observers(column: np.ndarray, added: np.ndarray) -> np.ndarray:
        return np.concatenate([column, added])[order]

    def insert_free_messages(column: Array | float) -> Array:
        column = np.asarray(column)
        all_rows = np.broadcast_to(column, (*column.shape[:-1], len(messages)))
        return np.concatenate([all_rows, np.zeros((*all_rows.shape[:-1], len(rows)))], axis=-1)[
            ..., order
        ]

    with_observer = Schedule.of(
        schedule.ranks + len(rows),
        insert_observers(schedule.step, schedule.step[rows]),
        insert_observers(schedule.src, schedule.src[rows]),
        insert_observers(schedule.dst, observer),
        0,
        work=schedule.work,
        nonblocking=schedule.nonblocking
        and NonblockingSteps(
            *(
                insert_observers(column, schedule.step[rows])
                for column in schedule.nonblocking.columns
            )
        ),
    )
    names = ("send", "receive", "wire", "gap_out", "gap_in")
    observer_seconds: dict[str, Any] = {
        name: insert_free_messages(getattr(costs, name)) for name in names
    }
    observer_costs = replace(costs, **observer_seconds)
    return finish_times(with_observer, observer_costs, work_seconds)[..., schedule.ranks :]


def count_ranks_in_flight(schedule: Schedule, single_seconds: Array, busy: Array) -> Array:
    """Return for every message the number of ranks that send or receive messages in flight at the
    same time.

    The messages of a step are in flight together. One sender's messages depart every `busy`
    seconds, and each is in flight for `single_seconds`, its time without contention.
    """
    if isinstance(schedule, MessageKinds):
        return np.full(len(schedule.src), float(schedule.ranks))
    senders, senders_and_receivers, messages_of_sender, step_number = np.ones(
        (4, len(schedule.src))
    )
    sends = np.zeros(schedule.ranks, dtype=bool)
    for count, step in enumerate(schedule.steps):
        groups, ranks = step.sends, step.sends.ranks
        sends[ranks] = True
        senders[step.posted_sends], step_number[step.posted_sends] = len(ranks), count
        senders_and_receivers[step.posted_sends] = len(ranks) + np.count_nonzero(
            ~sends[np.unique(schedule.dst[step.posted_sends])]
        )
        sends[ranks] = False
        if groups.order is not None:
            sent = groups.last - groups.first + 1
            messages_of_sender[step.posted_sends] = np.repeat(sent, sent)[np.argsort(groups.order)]
    if not len(messages_of_sender):
        return messages_of_sender
    share_in_flight = (
        np.clip(np.ceil(single_seconds / np.maximum(busy, 1e-300)), 1, messages_of_sender)
        / messages_of_sender
    )
    first, index = np.unique(step_number, return_index=True, return_inverse=True)[1:]
    return np.minimum(
        senders_and_receivers,
        senders + np.add.reduceat(share_in_flight, first, axis=-1)[..., index],
    )


def time_to_fill(senders: int, g_s: float, g_r: float, buffer: float) -> float:
    """Return the seconds until the buffer is full, B/(A − D) (equation 3), or ∞ if packets leave as
    fast as they arrive."""
    surplus = senders / g_s - 1 / g_r
    return buffer / surplus if surplus > 0 else inf


def compute_transfer_ratio(
    senders: int, packets: int, g_s: float, g_r: float, buffer: float
) -> float:
    """Return the share of the packets that is delivered: min(1, D/A + B/k) (equation 4)."""
    return min(1.0, g_s / (senders * g_r) + buffer / packets)


def find_fewest_senders(g_s: float, g_r: float) -> int:
    """Return the number of senders that keep the receiver busy all the time: ⌈g_s/g_r⌉ (equation
    5)."""
    return ceil(g_s / g_r)


def find_most_senders(senders: int, packets: int, g_s: float, g_r: float, buffer: float) -> int:
    """Return the largest number of senders without loss: ⌊g_s·k / (g_r·(k − B))⌋, at most `senders`
    (equation 6)."""
    if packets <= buffer:
        return senders
    return min(senders, floor(g_s * packets / (g_r * (packets - buffer))))


def list_admissible_windows(
    senders: int, packets: int, g_s: float, g_r: float, buffer: float
) -> list[int]:
    """Return the windows of equation 7 as printed.

    They lose no packet and keep the receiver busy, also during the last, incomplete window.
    """
    low, high = find_fewest_senders(g_s, g_r), find_most_senders(senders, packets, g_s, g_r, buffer)
    return [x for x in range(low, high + 1) if senders % x >= low]


def choose_window(
    senders: int, packets_each: int, g_s: float, g_r: float, buffer: float
) -> tuple[int, str]:
    """Return how many senders may send at once, and the rule that determined it.

    It is the largest window of equation 7. A window that divides the number of senders counts as
    well. The printed condition, rem ≥ G_al with rem = senders mod window, forbids it. If the buffer
    holds all packets, the window is all senders. If equation 7 has no solution, it is the largest
    window without loss.
    """
    packets = senders * packets_each
    if buffer > packets:
        return senders, "the buffer holds all packets (algorithm 1)"
    low, high = find_fewest_senders(g_s, g_r), find_most_senders(senders, packets, g_s, g_r, buffer)
    window_as_printed = max(list_admissible_windows(senders, packets, g_s, g_r, buffer), default=0)
    dividing_window = max((x for x in range(low, high + 1) if senders % x == 0), default=0)
    if not max(window_as_printed, dividing_window):
        return max(
            1, min(high, senders)
        ), f"equation 7 has no solution (G_al {low}): the largest window without loss"
    if window_as_printed >= dividing_window:
        return window_as_printed, "equation 7"
    return (
        dividing_window,
        f"equation 7, divides the senders (as printed: {window_as_printed or 'none'})",
    )
