"""The algebra of τ–Lop: transmissions, concurrency of transfers, and expressions of whole operations.

The concurrency algebra of τ–Lop: a schedule as transmissions that go on at the same time on channels.

T^c(m) is one transmission of m bytes over channel c, n‖T n of them at once. Two of different length on one channel go
on together for the shorter one's time (A2): T(m₁)‖T(m₂) = 2‖T(m₁) + T(m₂−m₁). Different channels do not disturb each
other: the longest counts (A3). Transmissions that follow one another over a channel, n at a time, may be joined into
one of the summed size (A1): those of a sender, and those of stage after stage.
(Rico-Gallego, Lastovetsky, Díaz-Martín: Model-based estimation of the communication cost of hybrid data-parallel
applications on heterogeneous clusters, 2017, section 3.)

    >>> alike, sizes = np.zeros(2, dtype=int), np.array([100, 40])  # both over one channel into one node
    >>> sums = terms(position=alike, channel=alike, target=alike, bytes=sizes, label=alike)
    >>> [f"{n}‖T({m})" for n, m in zip(sums.count, sums.bytes)]
    ['2‖T(40)', '1‖T(60)']

A1 of τ–Lop from stage to stage: transmissions that follow one another over a channel, so many at a time, cost what
one of the summed size does. That drops all overheads but one, unless each is to be paid.

Who shares what where nodes hang on a switch: ranks of a node its memory and either way of its port. And what of a
schedule goes on together: all that somebody waits for later goes on with what is posted until then.

How long τ–Lop's terms last by the values of a set, whose settings choose among the readings of the model.

A schedule as τ–Lop's terms, by the readings that a set may choose.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from commodel.errors import UserError
from commodel.models import Array
from commodel.models.evaluation.values import Pairs, Values, value_name, value_of, values_at
from commodel.models.keys import Pair
from commodel.patterns.schedule import MEMORY, NETWORK, Schedule

EQUAL = 1e-12  # times that differ by less, relatively, are equal


@dataclass(frozen=True, eq=False)
class Terms:
    """n‖T^c(m) as columns, grouped: terms of a group add up, the longest group of a stage counts, stages add up."""

    count: np.ndarray  # n
    channel: np.ndarray  # c
    bytes: np.ndarray  # m
    done: np.ndarray  # of those messages, what terms before this one have carried; 0 in a group's first
    message: np.ndarray  # the size of the message whose overhead is in this term; -1: none, it only goes on
    label: np.ndarray  # which pairs of types are going on, as numbers of `labels`
    labels: list[tuple[int, ...]]  # sets of them, as given
    group: np.ndarray  # first term of every group
    stage: np.ndarray  # first group of every stage


def positions_by_sender(src: np.ndarray) -> np.ndarray:
    """Position of every transmission in its sender's order."""
    order = np.argsort(src, kind="stable")
    ordered = src[order]
    position = np.empty(len(src), dtype=int)
    position[order] = np.arange(len(src)) - np.searchsorted(ordered, ordered, side="left")
    return position


def join_by_channel(src: np.ndarray, channel: np.ndarray, bytes: np.ndarray) -> tuple[np.ndarray, ...]:
    """A1 for each sender: its messages over a channel become one, channel after channel as in equation 8. Position and
    size of each, the row of its first message, and of every message which of them it is in."""
    _, first, of = np.unique(2 * src + channel, return_index=True, return_inverse=True)
    size = np.zeros(len(first), dtype=bytes.dtype)
    np.add.at(size, of, bytes)
    return positions_by_sender(src[first]), size, first, of


def terms(
    position: np.ndarray,
    channel: np.ndarray,
    target: np.ndarray,
    bytes: np.ndarray,
    label: np.ndarray,
    anew: bool = False,
    turn: np.ndarray | int = 0,
) -> Terms:
    """The terms of transmissions: those of one position go on at the same time, concurrency counted by channel and
    target (A2 within, A3 between); of a target those of another `turn` follow. `anew`: the rest of a longer message is
    a message of its own."""
    turn = np.broadcast_to(turn, position.shape)
    order = np.lexsort((bytes, turn, target, channel, position))
    columns = (column[order] for column in (position, channel, target, turn, bytes, label))
    position, channel, target, turn, size, label = columns
    new_stage = _changes(position)
    new_group = new_stage | _changes(channel) | _changes(target)
    new_turn = new_group | _changes(turn)
    first = np.flatnonzero(new_turn)
    lengths = np.diff(first, append=len(size))
    before = np.where(new_turn, 0, np.concatenate([[0], size[:-1]]))
    left = np.repeat(first + lengths, lengths) - np.arange(len(size))  # how many of the turn are still going on
    rest = size - before
    kept = new_turn | (rest > 0)
    starts = np.cumsum(kept) - 1  # where a kept term stands among the kept
    label, labels = _going_on(label, first, lengths)
    message = np.where(new_turn, np.repeat(size[first + lengths - 1], lengths), -1)
    if anew:
        before, message = np.zeros_like(size), rest
    columns = left[kept], channel[kept], rest[kept], before[kept], message[kept], label[kept]
    groups = np.flatnonzero(new_group)
    return Terms(*columns, labels, starts[groups], np.flatnonzero(new_stage[groups]))


def join_across_stages(
    parts: Iterable[Terms], chosen: Iterable[np.ndarray], times: Iterable[int], anew: bool = False
) -> Terms:
    """A1 from stage to stage: of each, so many times, the terms of its chosen groups, joined where channel and count
    are the same.
    One group a channel, each a stage of its own, so that channels add up: what follows one another is not at once."""
    sizes: dict[tuple, int] = defaultdict(int)
    for part, groups, occurs in zip(parts, chosen, times, strict=True):
        ends = np.append(part.group[1:], len(part.bytes))
        for row in (row for group in groups for row in range(part.group[group], ends[group])):
            sizes[int(part.channel[row]), -int(part.count[row]), part.labels[part.label[row]]] += occurs * int(
                part.bytes[row]
            )
    labels = sorted({going_on for _, _, going_on in sizes})
    columns = [(-most, channel, size, labels.index(on)) for (channel, most, on), size in sorted(sizes.items())]
    count, channel, size, label = np.array(columns, dtype=int).T
    first = np.flatnonzero(_changes(channel))
    before, message = np.zeros_like(size), size
    if not anew:
        lengths = np.diff(first, append=len(size))
        until = np.cumsum(size) - size
        before = until - np.repeat(until[first], lengths)
        message = np.full_like(size, -1)
        message[first] = np.add.reduceat(size, first)
    return Terms(count, channel, size, before, message, label, labels, first, np.arange(len(first)))


def _going_on(label: np.ndarray, first: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    """For every row the labels of the rows from it to the end of its group: a number, and what it stands for."""
    labels = [(number,) for number in range(label.max() + 1)]
    known = {members: number for number, members in enumerate(labels)}
    mixed = np.maximum.reduceat(label, first) != np.minimum.reduceat(label, first)
    sets = label.copy()
    for start, length in zip(first[mixed], lengths[mixed], strict=True):
        going: set[int] = set()
        for row in range(start + length - 1, start - 1, -1):
            going.add(int(label[row]))
            name = tuple(sorted(going))
            sets[row] = known.setdefault(name, len(known))
    return sets, list(known)


def _changes(column: np.ndarray) -> np.ndarray:
    return np.concatenate([[True], column[1:] != column[:-1]])


def total(terms: Terms, seconds: Array) -> Array:
    """The cost of the terms, each lasting `seconds` (last axis): sums, maxima, sums."""
    groups = np.add.reduceat(seconds, terms.group, axis=-1)
    return np.maximum.reduceat(groups, terms.stage, axis=-1).sum(axis=-1)


def longest(terms: Terms, seconds: Array) -> np.ndarray:
    """The group of every stage that lasts longest, for every draw: (draws, stages). Of those that last as long it is
    the one of the most bytes, and then that of the largest terms: whichever nodes they are on."""
    groups = np.add.reduceat(seconds, terms.group, axis=-1)
    ends = np.append(terms.stage[1:], len(terms.group))
    slowest = []
    for first, end in zip(terms.stage, ends, strict=True):
        lasting = groups[..., first:end]
        as_long = lasting >= (1 - EQUAL) * lasting.max(axis=-1, keepdims=True)
        equals = np.flatnonzero(as_long.any(axis=tuple(range(as_long.ndim - 1))))
        largest_first = sorted(equals.tolist(), key=lambda group: _contents(terms, first + group), reverse=True)
        order = np.array(largest_first)
        slowest.append(first + order[as_long[..., order].argmax(axis=-1)])
    return np.stack(slowest, axis=-1)


def _contents(terms: Terms, group: int) -> tuple:
    """All that a group's terms are, its bytes first."""
    end = terms.group[group + 1] if group + 1 < len(terms.group) else len(terms.bytes)
    rows = slice(terms.group[group], end)
    columns = terms.bytes[rows], terms.count[rows], terms.channel[rows], terms.done[rows], terms.message[rows]
    going_on = tuple(terms.labels[label] for label in terms.label[rows])
    return (terms.count[rows] * terms.bytes[rows]).sum(), *(tuple(column.tolist()) for column in columns), going_on


OfTerms = Callable[[Terms], Array]  # a time for each term, on the last axis


def join_stages(
    steps: Sequence[Terms],
    seconds: Sequence[Array],
    times: Sequence[int],
    own: Sequence[Array] | None,
    lasts: OfTerms,
    overheads: OfTerms,
    anew: bool,
) -> Array:
    """The cost of steps whose terms last `seconds` and that occur so many `times`: what counts in each (A3), which is
    not the same for every draw, is joined. `own`: of every group of each step the overheads that are to be paid in
    place of what A1 leaves of them."""
    ends = np.cumsum([len(step_terms.stage) for step_terms in steps])[:-1]
    counts = np.concatenate([longest(*stage) for stage in zip(steps, seconds, strict=True)], axis=-1)
    choices, which = np.unique(counts, axis=0, return_inverse=True)
    cost = np.zeros(seconds[0].shape[:-1])
    for number, choice in enumerate(choices):
        groups = np.split(choice, ends)
        together = join_across_stages(steps, groups, times, anew)
        lasting = lasts(together)
        if own is not None:
            lasting = lasting - overheads(together)
        seconds_of_choice = total(together, lasting)
        if own is not None:
            paid = (
                occurs * step[..., chosen].sum(axis=-1) for step, chosen, occurs in zip(own, groups, times, strict=True)
            )
            seconds_of_choice = seconds_of_choice + sum(paid)
        cost = np.where(which.ravel() == number, seconds_of_choice, cost)
    return cost


def sum_own_overheads(schedule: Schedule, overhead: Array, by_node: bool) -> list[Array]:
    """Of every step that sends, for each group of its terms (position, channel, target) the overheads of the sender
    that has the most of them to pay: those of its messages one after the other, of several senders at once."""
    steps = []
    for step in schedule.steps:
        if step.sent.start == step.sent.stop:
            continue
        channel, seconds = schedule.channel[step.sent], overhead[..., step.sent]
        position, _, first, of = join_by_channel(step.src, channel, np.zeros(len(channel)))
        target = schedule.node[schedule.dst[step.sent]][first] if by_node else np.zeros(len(first), dtype=int)
        of_sender = np.zeros((*seconds.shape[:-1], len(first)))
        np.add.at(of_sender, (..., of), seconds)
        groups, which = np.unique(np.stack([position, channel[first], target]), axis=1, return_inverse=True)
        of_group = np.zeros((*seconds.shape[:-1], groups.shape[1]))
        np.maximum.at(of_group, (..., which.ravel()), of_sender)
        steps.append(of_group)
    return steps


def stages(schedule: Schedule) -> list[list[int]]:
    """The places of steps that send, by stage. In the plain case, where all that is posted in a step is waited for in
    it, each is a stage."""
    sending = [place for place, step in enumerate(schedule.steps) if step.sent.start < step.sent.stop]
    if schedule.ends is None:
        return [[place] for place in sending]
    until = np.maximum(schedule.ends.src_wait, schedule.ends.dst_wait)
    runs: list[list[int]] = []
    last = -1
    for place in sending:
        sent = schedule.steps[place].sent
        if schedule.step[sent.start] > last:
            runs.append([])
        runs[-1].append(place)
        last = max(last, int(until[sent].max()))
    return runs


def at_ports(schedule: Schedule, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows of messages, and what each passes: a node's memory, or a port on its way out and one on its way in."""
    nodes = int(schedule.node.max()) + 1
    apart = rows[schedule.channel[rows] != MEMORY]
    passed = schedule.node[schedule.dst[rows]], nodes + schedule.node[schedule.src[apart]]
    return np.concatenate([rows, apart]), np.concatenate(passed)


@dataclass(frozen=True, eq=False)
class Busy:
    """What processors do in a stage, each way of it that differs: all that a rank posts, all that it takes, and both.
    Who posts or takes several waits for one empty message, between nodes where there is one, and is busy with each
    further one. Who does both has the first ones come while it posts: it is busy with all, and waits for none."""

    further: np.ndarray  # (ways, kinds): messages
    waits: np.ndarray  # of which kinds the empty message may be that is waited for

    @classmethod
    def of(cls, schedule: Schedule, rows: np.ndarray, pairs: Pairs) -> "Busy":
        kind, kinds = pairs.of[rows], len(pairs.pairs)
        between = np.array([not pair.within for pair in pairs.pairs])
        handled, ways = np.zeros((schedule.ranks, kinds), dtype=np.int64), []
        for rank in (schedule.src[rows], schedule.dst[rows]):
            counts = np.bincount(rank * kinds + kind, minlength=schedule.ranks * kinds).reshape(-1, kinds)
            handled += counts
            further, busy = counts.copy(), counts.any(axis=1)
            further[busy, ((counts[busy] > 0) * (1 + between)).argmax(axis=1)] -= 1
            ways.append(np.unique(np.concatenate([further, counts > 0], axis=1), axis=0))
        ways.append(np.unique(np.concatenate([handled, np.zeros_like(handled)], axis=1), axis=0))
        alike = np.unique(np.concatenate(ways), axis=0)
        return cls(alike[:, :kinds], alike[:, kinds:] > 0)

    def seconds(self, overhead: Array, further: Array) -> Array:
        """Until the busiest is done: an empty message's time of its slowest kind, and what each further one adds; both
        over (draws, kinds)."""
        first = np.where(self.waits, overhead[..., None, :], 0.0).max(axis=-1)
        return (first + further @ self.further.T).max(axis=-1)


SETTINGS = {
    "network": ("rdma", "copies"),
    "shared": ("channel", "node", "port"),
    "join": ("no", "yes", "overheads"),
    "rest": ("transfer", "message"),
    "rings": ("one-way", "both-ways"),
}


MOST_KEPT = 4_000_000  # numbers of functions that are not looked up anew: 32 MB


def reading(settings: Mapping[str, object], name: str) -> object:
    return settings.get(name, SETTINGS[name][0])


def value_place(channel: int, pair: Pair) -> str | Pair:
    """What a channel's values are named after: within a node its type."""
    return pair.one if channel == MEMORY else pair


def term_seconds(step_terms: Terms, pairs: list[Pair], values: Values) -> Array:
    """How long each term lasts: few differ, so each is worked out once. Of several pairs the slowest counts."""
    columns = [step_terms.count, step_terms.channel, step_terms.bytes, step_terms.done, step_terms.message]
    kinds, which = np.unique(np.stack([*columns, step_terms.label]), axis=1, return_inverse=True)
    seconds = np.empty((*values.lead, kinds.shape[1]))
    for number, (count, channel, size, done, message, label) in enumerate(kinds.T):
        going_on = (pairs[pair] for pair in step_terms.labels[label])
        by_pair = [_lasts(values, channel, pair, size, done, count, message) for pair in going_on]
        seconds[..., number] = np.max(by_pair, axis=0)
    return seconds[..., which.ravel()]


def overheads(step_terms: Terms, pairs: list[Pair], values: Values) -> Array:
    """What of each term is overhead: none of one that only goes on."""
    columns = zip(step_terms.channel, step_terms.message, step_terms.label, strict=True)
    of_terms = [
        np.max([_overhead(values, channel, pairs[pair], size) for pair in step_terms.labels[label]], axis=0)
        if size >= 0
        else np.zeros(values.lead)
        for channel, size, label in columns
    ]
    return np.stack(of_terms, axis=-1)


def own_overheads(schedule: Schedule, bytes: np.ndarray, pairs: Pairs, values: Values) -> list[Array]:
    by_node = reading(values.settings, "shared") == "node"
    return sum_own_overheads(schedule, _of_messages(schedule, bytes, pairs, values), by_node)


def sent_overheads(schedule: Schedule, bytes: np.ndarray, pairs: Pairs, values: Values) -> Array:
    """Of every rank the overheads of all that it sends."""
    seconds = np.zeros((*values.lead, schedule.ranks))
    if len(schedule.src):
        np.add.at(seconds, (..., schedule.src), _of_messages(schedule, bytes, pairs, values))
    return seconds


def _of_messages(schedule: Schedule, bytes: np.ndarray, pairs: Pairs, values: Values) -> Array:
    """The overhead of each."""
    columns, of = np.unique(np.stack([schedule.channel, pairs.of, bytes]), axis=1, return_inverse=True)
    seconds = [_overhead(values, channel, pairs.pairs[pair], size) for channel, pair, size in columns.T]
    return np.stack(seconds, axis=-1)[..., of.ravel()]


def busiest_processor(values: Values, pairs: list[Pair], busy: Busy) -> Array:
    """How long a stage's busiest processor takes, whose messages go on beside each other: an empty one's time, and its
    part of each further one that it sends or takes."""
    channels = [MEMORY if pair.within else NETWORK for pair in pairs]
    alone = [_overhead(values, channel, pair, 0) for channel, pair in zip(channels, pairs, strict=True)]
    further = [
        value_of(values_at(values, pair), f"p_{channel}", value_place(channel, pair))
        for channel, pair in zip(channels, pairs, strict=True)
    ]
    columns = [np.broadcast_to(column, (*values.lead, 1)) for column in further]
    return busy.seconds(np.stack(alone, axis=-1), np.concatenate(columns, axis=-1))


def _overhead(values: Values, channel: int, pair: Pair, size: int) -> Array:
    return _function(values, f"o_{channel}", value_place(channel, pair), size)


def _lasts(values: Values, channel: int, pair: Pair, size: int, done: int, count: int, message: int) -> Array:
    """A term between nodes of one pair of types: its messages' first bytes with an overhead, or the rest of them, which
    lasts for what it adds to the transfer, L(m₂, τ) − L(m₁, τ)."""
    if message >= 0:
        transferred = _transfers(values, channel, pair, size, count)
        return transferred + _overhead(values, channel, pair, message)
    begun = _transfers(values, channel, pair, done, count)
    return np.maximum(_transfers(values, channel, pair, done + size, count) - begun, 0.0)


def _transfers(values: Values, channel: int, pair: Pair, size: int, count: int) -> Array:
    if channel == MEMORY:
        return 2 * _function(values, f"L_{MEMORY}", pair.one, size, count)
    seconds = _function(values, f"L_{NETWORK}", pair, size, concurrency_measured(values, channel, count))
    if reading(values.settings, "network") == "copies":
        seconds = seconds + sum(_function(values, f"L_{MEMORY}", kind, size, count) for kind in pair.types)
    return seconds


def concurrency_measured(values: Values, channel: int, count: int) -> int:
    """How many went on at once in the rings, where this many do by the count of the set."""
    one_way = reading(values.settings, "shared") != "channel"
    both_ways = one_way and reading(values.settings, "rings") == "both-ways"
    return 2 * count if channel == NETWORK and both_ways else count


def _function(values: Values, name: str, where: str | Pair, size: int, count: int | None = None) -> Array:
    known, requested = values.worked_out, (name, where, int(size), count)
    if requested not in known:
        if len(known) * values.lead[0] > MOST_KEPT:
            known.clear()
        here = values_at(values, where)
        function = value_name(here.functions.__contains__, name, where)
        known[requested] = np.broadcast_to(here.at(function, np.array([size]), count), (*values.lead, 1))[..., 0]
    return known[requested]


def steps_of_stages(schedule: Schedule, settings: Mapping[str, object]) -> list[list[int]]:
    """The steps of every stage."""
    if reading(settings, "shared") == "port":
        return stages(schedule)
    return [[place] for place, step in enumerate(schedule.steps) if step.sent.start < step.sent.stop]


def rows_of(schedule: Schedule, stage: list[int]) -> np.ndarray:
    return np.arange(schedule.steps[stage[0]].sent.start, schedule.steps[stage[-1]].sent.stop)


def expression(schedule: Schedule, bytes: np.ndarray, settings: Mapping[str, object], pairs: Pairs) -> list[Terms]:
    """The terms of every stage."""
    shared, joins, anew = (reading(settings, name) for name in ("shared", "join", "rest"))
    if shared == "port" and joins != "no":
        raise UserError(f"found join: {joins} beside shared: port; wanted join: no, or shared: channel or node")
    stages = []
    for stage in steps_of_stages(schedule, settings):
        rows = rows_of(schedule, stage)
        size, turn, target = bytes[rows], 0, np.zeros(len(rows), dtype=int)
        if shared == "port":
            rows, target = at_ports(schedule, rows)
            size, turn = bytes[rows], schedule.step[rows]
        position = np.zeros(len(rows), dtype=int)
        if joins != "no":
            position, size, first, _ = join_by_channel(schedule.src[rows], schedule.channel[rows], size)
            rows, target = rows[first], target[first]
        elif shared == "node":
            position = positions_by_sender(schedule.src[rows])
        if shared == "node":
            target = schedule.node[schedule.dst[rows]]
        columns = position, schedule.channel[rows], target, size, pairs.of[rows]
        stages.append(terms(*columns, anew == "message", turn))
    return stages
