"""Buffer overflow at a receiver, by the cluster model: which messages lose packets and are sent again (`overflow`), and
how many senders may send at once, equations 3 to 7 of its paper (`window`).

The packets of a message flow in evenly, from when it leaves until its sender is done with it. The receiver takes one
every `service` seconds; what finds the buffer full is lost. With x senders all the time that is equation 4 of the
paper. One sender alone overflows nothing: all ports of a switch are as fast (the paper takes the slopes of both gaps
for equal), and where the receiver itself is slower its answers hold the sender back. Packets between two moments at
which the buffer is empty are one burst.

A packet that is sent again is taken to get through: after a time-out TCP begins slowly and goes on as fast as answers
come. Seven senders behind a switch of 100 Mbit/s with room for 36 packets took 0.29 s for 256 KiB each and 1.3 s for 1
MiB on Linux: the receiver's 0.15 s and 0.6 s, and one to three time-outs of 0.2 s. Were all of them to send at full
pace again and again, it would be 11 and 18 by equation 4.

In the window's equations x senders, each a packet every g_s, fill a buffer of B packets that a receiver empties by one
every g_r; k packets go through it in all.
"""

from dataclasses import dataclass, replace
from math import ceil, floor, inf

import numpy as np

from commodel.models import Array
from commodel.models.evaluation.repeated_rounds import Sample
from commodel.models.evaluation.replay import Costs, finish_times
from commodel.patterns.schedule import Ends, Schedule

NONE = 0.5  # packets: a burst that loses less has lost nothing
ROUNDING = 1e-6  # of a message's packets


@dataclass(frozen=True, eq=False)
class Overflow:
    lost: Array  # packets of each message (last axis: messages)
    again: np.ndarray  # whether some of it has to be sent again
    through: Array  # the share that gets through, of the burst that loses most (no axis of messages)


def may_overflow(dst: np.ndarray, busy: Array, packets: Array, service: Array, buffer: Array) -> np.ndarray:
    """The messages whose receiver would lose some in the worst case, which is that all it gets comes at once."""
    most = packets.max(axis=tuple(range(packets.ndim - 1)))
    if np.bincount(dst, np.broadcast_to(most, len(dst))).max() <= buffer.min():
        return np.empty(0, dtype=int)
    ranks = np.unique(dst, return_inverse=True)[1]
    arriving = _by_rank(ranks, packets / np.maximum(busy, 1e-300))
    total, taken = _by_rank(ranks, packets), _service(ranks, packets, service)
    worst = total * (1 - 1 / np.maximum(arriving * taken, 1e-300)) - buffer
    worst[..., np.bincount(ranks) == 1] = 0
    return np.flatnonzero((worst > NONE).any(axis=tuple(range(worst.ndim - 1)))[ranks])


def overflow(dst: np.ndarray, leaves: Array, busy: Array, packets: Array, service: Array, buffer: Array) -> Overflow:
    """Of messages to `dst` that leave then and keep their senders busy for so long."""
    shape = np.broadcast_shapes(*(np.shape(column) for column in (leaves, busy, packets, service, buffer)))
    leaves, busy, packets = (np.broadcast_to(column, shape) for column in (leaves, busy, packets))
    buffer = np.broadcast_to(buffer, (*shape[:-1], 1))
    receivers, ranks = np.unique(dst, return_inverse=True)
    rate = packets / np.maximum(busy, 1e-300)

    # A message begins and ends. Events by receiver, and by time within a receiver; where receivers change is the same
    # in every row.
    time, change = np.concatenate([leaves, leaves + busy], axis=-1), np.concatenate([rate, -rate], axis=-1)
    whose = np.concatenate([ranks, ranks])
    order = np.argsort(time, axis=-1, kind="stable")
    order = np.take_along_axis(order, np.argsort(whose[order], axis=-1, kind="stable"), axis=-1)
    events = np.bincount(whose, minlength=len(receivers))
    last = np.cumsum(events) - 1  # of each receiver
    time = np.take_along_axis(time, order, axis=-1)
    arriving = np.maximum(np.cumsum(np.take_along_axis(change, order, axis=-1), axis=-1), 0)
    span = np.diff(time, axis=-1, append=time[..., -1:])  # until the next event
    span[..., last] = 0
    come = arriving * span
    growth = come - span / np.maximum(np.repeat(_service(ranks, packets, service), events, axis=-1), 1e-300)
    alone = np.cumsum(np.where(order < len(dst), 1, -1), axis=-1) == 1
    growth = np.where(alone, np.minimum(growth, 0), growth)

    level = _levels(growth, last, buffer, int(events.max()))
    spilt = np.maximum(level + growth - buffer, 0)
    burst, spills, through = _bursts(level, come, spilt)

    place = np.argsort(order, axis=-1)  # of each event in that order
    begin, end = np.split(place, 2, axis=-1)
    share = np.divide(spilt, come, out=np.zeros_like(come), where=come > 0) * span
    before = np.cumsum(share, axis=-1) - share
    lost = rate * (np.take_along_axis(before, end, axis=-1) - np.take_along_axis(before, begin, axis=-1))
    # A message that outlasts a burst counts as part of those that it begins and ends in.
    of = (np.take_along_axis(burst, at, axis=-1) for at in (begin, np.maximum(end - 1, 0)))
    return Overflow(lost, (lost > ROUNDING * packets) & np.logical_or(*(spills[number] for number in of)), through)


def _levels(growth: Array, last: np.ndarray, buffer: Array, longest: int) -> Array:
    """What the buffer holds at each event: the one before it and what has come since, never below 0 nor above the
    buffer, and 0 at a receiver's first. Each is a map x → min(max(x + shift, low), high); two of them one after the
    other are such a map again, so that log2(longest) passes do."""
    shift, low = growth.copy(), np.zeros_like(growth)
    high = np.broadcast_to(buffer, growth.shape).copy()
    high[..., last] = 0
    reach = 1
    while reach < longest:
        least, most, step = low[..., reach:], high[..., reach:], shift[..., reach:]
        lower = np.minimum(np.maximum(low[..., :-reach] + step, least), most)
        upper = np.minimum(np.maximum(high[..., :-reach] + step, least), most)
        shift[..., reach:] = step + shift[..., :-reach].copy()
        low[..., reach:], high[..., reach:] = lower, upper
        reach *= 2
    after = np.minimum(np.maximum(shift, low), high)
    return np.concatenate([np.zeros((*after.shape[:-1], 1)), after[..., :-1]], axis=-1)


def _bursts(level: Array, come: Array, spilt: Array) -> tuple[np.ndarray, np.ndarray, Array]:
    """The number of the burst that each event is in; whether a burst loses any; and in each row the least share that
    gets through."""
    burst = (np.cumsum(level.ravel() <= 0) - 1).reshape(level.shape)
    packets, lost = (np.bincount(burst.ravel(), column.ravel()) for column in (come, spilt))
    spills = lost > NONE
    share = np.where(spills, 1 - lost / np.maximum(packets, NONE), 1.0)
    return burst, spills, share[burst].min(axis=-1)


def _by_rank(ranks: np.ndarray, column: Array) -> Array:
    """Sums over the messages of each rank."""
    order = np.argsort(ranks, kind="stable")
    first = np.searchsorted(ranks[order], np.arange(ranks.max() + 1))
    return np.add.reduceat(column[..., order], first, axis=-1)


def _service(ranks: np.ndarray, packets: Array, service: Array) -> Array:
    """Seconds that each rank takes for a packet, on average over all that it gets."""
    return _by_rank(ranks, packets * service) / _by_rank(ranks, packets)


def departures(schedule: Schedule, costs: Costs, work_seconds: Array, rows: np.ndarray) -> Array:
    """When these messages leave: before each its sender tells an observer, a rank of its own that hears of it at once
    and at no cost."""
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


def ranks_in_flight(schedule: Schedule, alone: Array, busy: Array) -> Array:
    """For every message the ranks between which messages are on their way together with it. Those of a step are, and
    of one sender's so many as leave it, one every `busy`, while a message `alone` in the network takes its time."""
    if isinstance(schedule, Sample):
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
    reached = np.clip(np.ceil(alone / np.maximum(busy, 1e-300)), 1, own) / own
    first, place = np.unique(number, return_index=True, return_inverse=True)[1:]
    return np.minimum(ends, senders + np.add.reduceat(reached, first, axis=-1)[..., place])


def time_to_fill(senders: int, g_s: float, g_r: float, buffer: float) -> float:
    """How long until a buffer is full: B/(A − D) (equation 3); for ever where no more comes than goes."""
    surplus = senders / g_s - 1 / g_r
    return buffer / surplus if surplus > 0 else inf


def transfer_ratio(senders: int, packets: int, g_s: float, g_r: float, buffer: float) -> float:
    """The share of the packets that gets through: min(1, D/A + B/k) (equation 4)."""
    return min(1.0, g_s / (senders * g_r) + buffer / packets)


def fewest_senders(g_s: float, g_r: float) -> int:
    """Senders that keep the receiver busy all the time: ⌈g_s/g_r⌉ (equation 5)."""
    return ceil(g_s / g_r)


def most_senders(senders: int, packets: int, g_s: float, g_r: float, buffer: float) -> int:
    """Senders at which nothing is lost yet: ⌊g_s·k / (g_r·(k − B))⌋, never more than there are (equation 6)."""
    if packets <= buffer:
        return senders
    return min(senders, floor(g_s * packets / (g_r * (packets - buffer))))


def admissible_windows(senders: int, packets: int, g_s: float, g_r: float, buffer: float) -> list[int]:
    """The windows of equation 7 as it is printed: they lose nothing, keep the receiver busy, and leave over enough
    senders at the end to keep it busy as well."""
    low, high = fewest_senders(g_s, g_r), most_senders(senders, packets, g_s, g_r, buffer)
    return [x for x in range(low, high + 1) if senders % x >= low]


def window(senders: int, packets_each: int, g_s: float, g_r: float, buffer: float) -> tuple[int, str]:
    """How many of the senders may send at once, and by which rule: the most by equation 7, where it counts as well that
    no sender is left over at the end (which as printed, rem ≥ G_al, it forbids). Where the buffer holds everything,
    all; where nothing fits, as many as lose nothing."""
    packets = senders * packets_each
    if buffer > packets:
        return senders, "the buffer holds all (algorithm 1)"
    low, high = fewest_senders(g_s, g_r), most_senders(senders, packets, g_s, g_r, buffer)
    printed = max(admissible_windows(senders, packets, g_s, g_r, buffer), default=0)
    even = max((x for x in range(low, high + 1) if senders % x == 0), default=0)
    if not max(printed, even):
        return max(1, min(high, senders)), f"nothing fits equation 7 (G_al {low}): as many as lose nothing"
    if printed >= even:
        return printed, "equation 7"
    return even, f"equation 7, nothing left over (as printed: {printed or 'none'})"
