"""Buffer overflow at a receiver by the cluster model (Tam, Wang 1999).

`overflow` returns the packets that each message loses. `window` returns how many senders a gather may admit at once
(equations 3 to 7).

The packets of a message arrive evenly, from when it leaves until its sender is free again. The receiver removes one
packet every `service` seconds. A packet that finds the buffer full is lost. With x senders all the time this is
equation 4. One sender alone never overflows the buffer: all ports of a switch have the same speed, and a slow receiver
slows the sender by its acknowledgements. Packets between two moments with an empty buffer are one burst.

A retransmitted packet is assumed to arrive. After a timeout, TCP starts slowly and sends as fast as acknowledgements
return. Evidence: seven Linux senders behind a switch of 100 Mbit/s with a buffer of 36 packets took 0.29 s for 256 KiB
each and 1.3 s for 1 MiB. That is the receiver's time, 0.15 s and 0.6 s, and one to three timeouts of 0.2 s. If all
retransmitted at full speed, equation 4 would give 11 and 18 timeouts.

Symbols of the window's equations: x senders, each sending a packet every g_s seconds; a buffer of B packets, from which
the receiver removes one every g_r seconds; k packets in total.
"""

from dataclasses import dataclass, replace
from math import ceil, floor, inf

import numpy as np

from commodel.models import Array
from commodel.models.evaluation.repeated_rounds import MessageKinds
from commodel.models.evaluation.replay import Costs, finish_times
from commodel.patterns.schedule import Ends, Schedule

NEGLIGIBLE_LOSS = 0.5  # packets of a burst: a smaller loss counts as none
ROUNDING = 1e-6  # of a message's packets


@dataclass(frozen=True, eq=False)
class Overflow:
    """Result of `overflow`."""

    lost: Array  # packets of each message (last axis: messages)
    retransmitted: np.ndarray  # whether the sender retransmits a part of the message
    delivered: Array  # the smallest share of a burst's packets that is delivered (no axis of messages)


def may_overflow(dst: np.ndarray, busy: Array, packets: Array, service: Array, buffer: Array) -> np.ndarray:
    """Return the rows of messages whose receiver loses packets in the worst case, in which all of them arrive at
    once."""
    largest = packets.max(axis=tuple(range(packets.ndim - 1)))
    if np.bincount(dst, np.broadcast_to(largest, len(dst))).max() <= buffer.min():
        return np.empty(0, dtype=int)
    ranks = np.unique(dst, return_inverse=True)[1]
    arrival_rate = _by_rank(ranks, packets / np.maximum(busy, 1e-300))
    total, seconds_each = _by_rank(ranks, packets), _service(ranks, packets, service)
    worst = total * (1 - 1 / np.maximum(arrival_rate * seconds_each, 1e-300)) - buffer
    worst[..., np.bincount(ranks) == 1] = 0
    return np.flatnonzero((worst > NEGLIGIBLE_LOSS).any(axis=tuple(range(worst.ndim - 1)))[ranks])


def overflow(dst: np.ndarray, leaves: Array, busy: Array, packets: Array, service: Array, buffer: Array) -> Overflow:
    """Return the packets lost by messages to ranks `dst` that start at `leaves` and occupy their senders for `busy`
    seconds.

    All columns have the shape (..., messages); `packets` counts each message's packets, `service` is in seconds a
    packet.
    """
    shape = np.broadcast_shapes(*(np.shape(column) for column in (leaves, busy, packets, service, buffer)))
    leaves, busy, packets = (np.broadcast_to(column, shape) for column in (leaves, busy, packets))
    buffer = np.broadcast_to(buffer, (*shape[:-1], 1))
    receivers, ranks = np.unique(dst, return_inverse=True)
    rate = packets / np.maximum(busy, 1e-300)

    # Each message has two events, its begin and its end, sorted by receiver and then by time. The ranges of the
    # receivers are the same in every row.
    time, change = np.concatenate([leaves, leaves + busy], axis=-1), np.concatenate([rate, -rate], axis=-1)
    receiver_of = np.concatenate([ranks, ranks])
    order = np.argsort(time, axis=-1, kind="stable")
    order = np.take_along_axis(order, np.argsort(receiver_of[order], axis=-1, kind="stable"), axis=-1)
    events = np.bincount(receiver_of, minlength=len(receivers))
    last = np.cumsum(events) - 1  # of each receiver
    time = np.take_along_axis(time, order, axis=-1)
    arrival_rate = np.maximum(np.cumsum(np.take_along_axis(change, order, axis=-1), axis=-1), 0)
    span = np.diff(time, axis=-1, append=time[..., -1:])  # until the next event
    span[..., last] = 0
    arrived = arrival_rate * span
    growth = arrived - span / np.maximum(np.repeat(_service(ranks, packets, service), events, axis=-1), 1e-300)
    single_sender = np.cumsum(np.where(order < len(dst), 1, -1), axis=-1) == 1
    growth = np.where(single_sender, np.minimum(growth, 0), growth)

    level = _levels(growth, last, buffer, int(events.max()))
    spilled = np.maximum(level + growth - buffer, 0)
    burst, spills, through = _bursts(level, arrived, spilled)

    place = np.argsort(order, axis=-1)  # of each event in the sorted order
    begin, end = np.split(place, 2, axis=-1)
    lost_per_rate = np.divide(spilled, arrived, out=np.zeros_like(arrived), where=arrived > 0) * span
    before = np.cumsum(lost_per_rate, axis=-1) - lost_per_rate
    lost = rate * (np.take_along_axis(before, end, axis=-1) - np.take_along_axis(before, begin, axis=-1))
    # A message that lasts longer than a burst belongs to the bursts in which it begins and ends.
    bursts = (np.take_along_axis(burst, at, axis=-1) for at in (begin, np.maximum(end - 1, 0)))
    return Overflow(lost, (lost > ROUNDING * packets) & np.logical_or(*(spills[number] for number in bursts)), through)


def _levels(growth: Array, last: np.ndarray, buffer: Array, longest: int) -> Array:
    """Return the buffer's contents in packets at each event: what it held at the last event plus the growth since.

    The contents stay between 0 and `buffer`, and are 0 at a receiver's first event. Each event is a map x → min(max(x +
    shift, low), high). The composition of two such maps is such a map again, so log2(longest) passes suffice.
    """
    shift, low = growth.copy(), np.zeros_like(growth)
    high = np.broadcast_to(buffer, growth.shape).copy()
    high[..., last] = 0
    stride = 1
    while stride < longest:
        least, most, step = low[..., stride:], high[..., stride:], shift[..., stride:]
        lower = np.minimum(np.maximum(low[..., :-stride] + step, least), most)
        upper = np.minimum(np.maximum(high[..., :-stride] + step, least), most)
        shift[..., stride:] = step + shift[..., :-stride].copy()
        low[..., stride:], high[..., stride:] = lower, upper
        stride *= 2
    after = np.minimum(np.maximum(shift, low), high)
    return np.concatenate([np.zeros((*after.shape[:-1], 1)), after[..., :-1]], axis=-1)


def _bursts(level: Array, arrived: Array, spilled: Array) -> tuple[np.ndarray, np.ndarray, Array]:
    """Return the burst number of each event, whether each burst loses packets, and each row's smallest delivered
    share."""
    burst = (np.cumsum(level.ravel() <= 0) - 1).reshape(level.shape)
    packets, lost = (np.bincount(burst.ravel(), column.ravel()) for column in (arrived, spilled))
    spills = lost > NEGLIGIBLE_LOSS
    share = np.where(spills, 1 - lost / np.maximum(packets, NEGLIGIBLE_LOSS), 1.0)
    return burst, spills, share[burst].min(axis=-1)


def _by_rank(ranks: np.ndarray, column: Array) -> Array:
    """Return the sums of a column over the messages of each rank."""
    order = np.argsort(ranks, kind="stable")
    first = np.searchsorted(ranks[order], np.arange(ranks.max() + 1))
    return np.add.reduceat(column[..., order], first, axis=-1)


def _service(ranks: np.ndarray, packets: Array, service: Array) -> Array:
    """Return the mean service time of each rank in seconds per packet, over all packets that it receives."""
    return _by_rank(ranks, packets * service) / _by_rank(ranks, packets)


def departures(schedule: Schedule, costs: Costs, work_seconds: Array, rows: np.ndarray) -> Array:
    """Return when each of the messages `rows` leaves.

    Before each of them, its sender sends a free message to an observer, an extra rank that receives it at once.
    """
    messages = np.arange(len(schedule.src))
    order = np.argsort(np.concatenate([2 * messages + 1, 2 * rows]))
    observer = schedule.ranks + np.arange(len(rows))

    def with_observers(column: np.ndarray, more: np.ndarray) -> np.ndarray:
        return np.concatenate([column, more])[order]

    def free(column: Array | float) -> Array:
        column = np.asarray(column)
        full = np.broadcast_to(column, (*column.shape[:-1], len(messages)))
        return np.concatenate([full, np.zeros((*full.shape[:-1], len(rows)))], axis=-1)[..., order]

    watched = Schedule.of(
        schedule.ranks + len(rows),
        with_observers(schedule.step, schedule.step[rows]),
        with_observers(schedule.src, schedule.src[rows]),
        with_observers(schedule.dst, observer),
        0,
        work=schedule.work,
        ends=schedule.ends and Ends(*(with_observers(column, schedule.step[rows]) for column in schedule.ends.columns)),
    )
    names = ("send", "receive", "wire", "gap_out", "gap_in")
    watched_costs = replace(costs, **{name: free(getattr(costs, name)) for name in names})
    return finish_times(watched, watched_costs, work_seconds)[..., schedule.ranks :]


def ranks_in_flight(schedule: Schedule, single: Array, busy: Array) -> Array:
    """Return for every message the number of ranks whose messages are in flight at the same time.

    The messages of a step are in flight together. Of one sender's messages, one leaves every `busy` seconds, and each
    is in flight for `single` seconds, its time without contention.
    """
    if isinstance(schedule, MessageKinds):
        return np.full(len(schedule.src), float(schedule.ranks))
    senders, ends, own, number = np.ones((4, len(schedule.src)))
    sends = np.zeros(schedule.ranks, dtype=bool)
    for count, step in enumerate(schedule.steps):
        groups, ranks = step.sends, step.sends.ranks
        sends[ranks] = True
        senders[step.sent], number[step.sent] = len(ranks), count
        ends[step.sent] = len(ranks) + np.count_nonzero(~sends[np.unique(schedule.dst[step.sent])])
        sends[ranks] = False
        if groups.order is not None:
            sent = groups.last - groups.first + 1
            own[step.sent] = np.repeat(sent, sent)[np.argsort(groups.order)]
    if not len(own):
        return own
    reached = np.clip(np.ceil(single / np.maximum(busy, 1e-300)), 1, own) / own
    first, place = np.unique(number, return_index=True, return_inverse=True)[1:]
    return np.minimum(ends, senders + np.add.reduceat(reached, first, axis=-1)[..., place])


def time_to_fill(senders: int, g_s: float, g_r: float, buffer: float) -> float:
    """Return the seconds until the buffer is full, B/(A − D) (equation 3), or ∞ if packets leave as fast as they
    arrive."""
    surplus = senders / g_s - 1 / g_r
    return buffer / surplus if surplus > 0 else inf


def transfer_ratio(senders: int, packets: int, g_s: float, g_r: float, buffer: float) -> float:
    """Return the share of the packets that is delivered: min(1, D/A + B/k) (equation 4)."""
    return min(1.0, g_s / (senders * g_r) + buffer / packets)


def fewest_senders(g_s: float, g_r: float) -> int:
    """Return the number of senders that keep the receiver busy all the time: ⌈g_s/g_r⌉ (equation 5)."""
    return ceil(g_s / g_r)


def most_senders(senders: int, packets: int, g_s: float, g_r: float, buffer: float) -> int:
    """Return the largest number of senders without loss: ⌊g_s·k / (g_r·(k − B))⌋, at most `senders` (equation 6)."""
    if packets <= buffer:
        return senders
    return min(senders, floor(g_s * packets / (g_r * (packets - buffer))))


def admissible_windows(senders: int, packets: int, g_s: float, g_r: float, buffer: float) -> list[int]:
    """Return the windows of equation 7 as printed.

    They lose nothing, keep the receiver busy, and the last, incomplete window keeps it busy too.
    """
    low, high = fewest_senders(g_s, g_r), most_senders(senders, packets, g_s, g_r, buffer)
    return [x for x in range(low, high + 1) if senders % x >= low]


def window(senders: int, packets_each: int, g_s: float, g_r: float, buffer: float) -> tuple[int, str]:
    """Return how many senders may send at once, and the rule that decided it.

    The largest window of equation 7 wins. A window that divides the number of senders counts as well, although the
    printed condition, rem ≥ G_al, forbids it. If the buffer holds all packets, the window is all senders. If equation 7
    has no solution, it is the largest window without loss.
    """
    packets = senders * packets_each
    if buffer > packets:
        return senders, "the buffer holds all packets (algorithm 1)"
    low, high = fewest_senders(g_s, g_r), most_senders(senders, packets, g_s, g_r, buffer)
    printed = max(admissible_windows(senders, packets, g_s, g_r, buffer), default=0)
    even = max((x for x in range(low, high + 1) if senders % x == 0), default=0)
    if not max(printed, even):
        return max(1, min(high, senders)), f"equation 7 has no solution (G_al {low}): the largest window without loss"
    if printed >= even:
        return printed, "equation 7"
    return even, f"equation 7, divides the senders (as printed: {printed or 'none'})"
