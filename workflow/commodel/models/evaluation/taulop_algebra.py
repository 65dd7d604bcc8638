"""The concurrency algebra of τ–Lop: a schedule as terms of concurrent transmissions
(`make_stage_terms`) and their times (`compute_term_seconds`, `sum_terms`, `join_stages`).

(Rico-Gallego, Lastovetsky, Díaz-Martín: Model-based estimation of the communication cost of hybrid
data-parallel applications on heterogeneous clusters, 2017, section 3.)

T^c(m) is one transmission of m bytes over channel c, n‖T are n of them at once. The axioms of the
paper:

- A1: successive transmissions over a channel with the same concurrency may be joined into one of
  the summed size. This drops all overheads but one, unless a setting keeps them.
- A2: two transmissions of different length on one channel are concurrent for the time of the
  shorter one: T(m₁)‖T(m₂) = 2‖T(m₁) + T(m₂−m₁).
- A3: different channels do not affect each other; the longest counts.

Settings of a parameter set select among the readings of the paper (`SETTINGS`, described in
`families/taulop.py`). With `shared: port`, a channel is a node's memory or one direction of its
port, and all messages between two waits are concurrent.

p_c is an extension of the paper: the time of a processor for each further message on channel c.

    >>> zeros, sizes = np.zeros(2, dtype=int), np.array([100, 40])  # both over one channel into one node
    >>> terms = make_terms(position=zeros, channel=zeros, target=zeros, bytes=sizes, pair=zeros)
    >>> [f"{n}‖T({m})" for n, m in zip(terms.count, terms.bytes)]
    ['2‖T(40)', '1‖T(60)']
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from commodel.errors import UserError
from commodel.models import Array
from commodel.models.evaluation.values import (
    Pairs,
    Values,
    find_value,
    find_value_name,
    select_pair_values,
)
from commodel.models.fitting.numerics import add_at, index_last_axis
from commodel.models.keys import Pair
from commodel.patterns.schedule import MEMORY, NETWORK, Schedule

TIE_TOLERANCE = 1e-12  # relative difference below which times are equal


@dataclass(frozen=True, eq=False)
class Terms:
    """n‖T^c(m) as columns. The terms of a group add up, the longest group of a stage counts, and
    stages add up."""

    count: np.ndarray  # n
    channel: np.ndarray  # c
    bytes: np.ndarray  # m
    # bytes of the messages in earlier terms; 0 in the first term of a group, or of a step
    transferred: np.ndarray
    # the size of the message whose overhead is in this term; −1: none, a continuation
    message: np.ndarray
    pair_set: np.ndarray  # the active pairs of node types, as indices of `pair_sets`
    pair_sets: list[tuple[int, ...]]  # sets of indices of pairs
    group: np.ndarray  # first term of every group
    stage: np.ndarray  # first group of every stage

    @cached_property
    def distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """The columns of different terms, and which of them each term is."""
        columns = [
            self.count,
            self.channel,
            self.bytes,
            self.transferred,
            self.message,
            self.pair_set,
        ]
        distinct, number = np.unique(np.stack(columns), axis=1, return_inverse=True)
        return distinct, number.ravel()


def number_by_sender(src: np.ndarray) -> np.ndarray:
    """Return the position of every transmission in its sender's order."""
    order = np.argsort(src, kind="stable")
    ordered = src[order]
    position = np.empty(len(src), dtype=int)
    position[order] = np.arange(len(src)) - np.searchsorted(ordered, ordered, side="left")
    return position


def join_by_channel(
    src: np.ndarray, channel: np.ndarray, bytes: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return A1 applied to each sender: its messages over a channel become one, channel after
    channel (equation 8).

    The columns are the position and size of each joined message, the row of its first message, and
    for every message the joined one that contains it.
    """
    _, first, joined = np.unique(2 * src + channel, return_index=True, return_inverse=True)
    size = np.zeros(len(first), dtype=bytes.dtype)
    np.add.at(size, joined, bytes)
    return number_by_sender(src[first]), size, first, joined


def make_terms(
    position: np.ndarray,
    channel: np.ndarray,
    target: np.ndarray,
    bytes: np.ndarray,
    pair: np.ndarray,
    separate_rest: bool = False,
    step: np.ndarray | int = 0,
) -> Terms:
    """Return the terms of transmissions.

    Transmissions of one position are concurrent, counted by channel and target (A2 within, A3
    between). Transmissions to one target in different steps are successive: their terms add up.
    `pair` is the index of the node types of sender and receiver. `separate_rest`: the rest of a
    longer message is a message of its own.
    """
    step = np.broadcast_to(step, position.shape)
    order = np.lexsort((bytes, step, target, channel, position))
    position, channel, target, step, size, pair = (
        column[order] for column in (position, channel, target, step, bytes, pair)
    )
    new_stage = _find_changes(position)
    new_group = new_stage | _find_changes(channel) | _find_changes(target)
    new_step = new_group | _find_changes(step)
    first = np.flatnonzero(new_step)
    lengths = np.diff(first, append=len(size))
    transferred = np.where(new_step, 0, np.concatenate([[0], size[:-1]]))
    # transmissions of the step still active
    concurrent = np.repeat(first + lengths, lengths) - np.arange(len(size))
    remaining = size - transferred
    has_term = new_step | (remaining > 0)
    starts = np.cumsum(has_term) - 1  # index of each kept term
    pair_set, pair_sets = _collect_active_pairs(pair, first, lengths)
    message = np.where(new_step, np.repeat(size[first + lengths - 1], lengths), -1)
    if separate_rest:
        transferred, message = np.zeros_like(size), remaining
    groups = np.flatnonzero(new_group)
    return Terms(
        concurrent[has_term],
        channel[has_term],
        remaining[has_term],
        transferred[has_term],
        message[has_term],
        pair_set[has_term],
        pair_sets,
        starts[groups],
        np.flatnonzero(new_stage[groups]),
    )


def join_across_stages(
    stages: Iterable[Terms],
    longest: Iterable[np.ndarray],
    times: Iterable[int],
    separate_rest: bool,
) -> Terms:
    """Return A1 applied from stage to stage: the joined terms of the longest groups.

    Terms are joined if channel, count and set of active pairs are equal. Each stage occurs `times`
    times. Each channel is one group and one stage, so channels add up: successive transmissions are
    not concurrent.
    """
    sizes: dict[tuple, int] = defaultdict(int)
    for stage, groups, occurs in zip(stages, longest, times, strict=True):
        ends = np.append(stage.group[1:], len(stage.bytes))
        for row in (row for group in groups for row in range(stage.group[group], ends[group])):
            key = (
                int(stage.channel[row]),
                -int(stage.count[row]),
                stage.pair_sets[stage.pair_set[row]],
            )
            sizes[key] += occurs * int(stage.bytes[row])
    pair_sets = sorted({active for _, _, active in sizes})
    columns = [
        (-negative, channel, size, pair_sets.index(active_pairs))
        for (channel, negative, active_pairs), size in sorted(sizes.items())
    ]
    count, channel, size, pair_set = np.array(columns, dtype=int).T
    first = np.flatnonzero(_find_changes(channel))
    transferred, message = np.zeros_like(size), size
    if not separate_rest:
        lengths = np.diff(first, append=len(size))
        sum_before = np.cumsum(size) - size
        transferred = sum_before - np.repeat(sum_before[first], lengths)
        message = np.full_like(size, -1)
        message[first] = np.add.reduceat(size, first)
    return Terms(
        count,
        channel,
        size,
        transferred,
        message,
        pair_set,
        pair_sets,
        first,
        np.arange(len(first)),
    )


def _collect_active_pairs(
    pair: np.ndarray, first: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    """Return for every row the set of pairs from it to the end of its step: its index, and the list
    of sets.

    `first` and `lengths` are the first row and the number of rows of each step.
    """
    single_pairs: list[tuple[int, ...]] = [(number,) for number in range(pair.max() + 1)]
    indices = {members: number for number, members in enumerate(single_pairs)}
    mixed = np.maximum.reduceat(pair, first) != np.minimum.reduceat(pair, first)
    sets = pair.copy()
    for start, length in zip(first[mixed], lengths[mixed], strict=True):
        active: set[int] = set()
        for row in range(start + length - 1, start - 1, -1):
            active.add(int(pair[row]))
            name = tuple(sorted(active))
            sets[row] = indices.setdefault(name, len(indices))
    return sets, list(indices)


def _find_changes(column: np.ndarray) -> np.ndarray:
    return np.concatenate([[True], column[1:] != column[:-1]])


def sum_terms(terms: Terms, seconds: Array) -> Array:
    """Return the time of the terms, each of which takes `seconds` (last axis): groups add up, the
    longest counts, stages add up."""
    groups = np.add.reduceat(seconds, terms.group, axis=-1)
    return np.maximum.reduceat(groups, terms.stage, axis=-1).sum(axis=-1)


def find_longest_group(terms: Terms, seconds: Array) -> np.ndarray:
    """Return the longest group of every stage, for every draw: (draws, stages).

    Of equal ones, it is the group with the most bytes, then the one with the largest terms,
    whatever nodes they are on.
    """
    groups = np.add.reduceat(seconds, terms.group, axis=-1)
    ends = np.append(terms.stage[1:], len(terms.group))
    slowest = []
    for first, end in zip(terms.stage, ends, strict=True):
        group_seconds = groups[..., first:end]
        is_longest = group_seconds >= (1 - TIE_TOLERANCE) * group_seconds.max(
            axis=-1, keepdims=True
        )
        tied = np.flatnonzero(is_longest.any(axis=tuple(range(is_longest.ndim - 1))))
        largest_first = sorted(
            tied.tolist(), key=lambda group: _make_sort_key(terms, first + group), reverse=True
        )
        order = np.array(largest_first)
        slowest.append(first + order[is_longest[..., order].argmax(axis=-1)])
    return np.stack(slowest, axis=-1)


def _make_sort_key(terms: Terms, group: int) -> tuple:
    """Return the sort key of a group's terms, its bytes first."""
    end = terms.group[group + 1] if group + 1 < len(terms.group) else len(terms.bytes)
    rows = slice(terms.group[group], end)
    columns = (
        terms.bytes[rows],
        terms.count[rows],
        terms.channel[rows],
        terms.transferred[rows],
        terms.message[rows],
    )
    active = tuple(terms.pair_sets[number] for number in terms.pair_set[rows])
    return (
        (terms.count[rows] * terms.bytes[rows]).sum(),
        *(tuple(column.tolist()) for column in columns),
        active,
    )


def join_stages(
    schedule: Schedule,
    bytes: np.ndarray,
    stages: Sequence[Terms],
    seconds: Sequence[Array],
    times: Sequence[int],
    pairs: Pairs,
    values: Values,
) -> Array:
    """Return the time of stages after A1.

    `seconds` are the times of each stage's terms, `times` how often it occurs. The longest groups
    (A3), which may differ from draw to draw, are joined. With `join: overheads`, the overheads of
    all messages replace those that A1 keeps.
    """
    separate_rest = get_setting(values.settings, "rest") == "message"
    keeps_overheads = get_setting(values.settings, "join") == "overheads"
    overheads = sum_sender_overheads(schedule, bytes, pairs, values) if keeps_overheads else []
    ends = np.cumsum([len(stage.stage) for stage in stages])[:-1]
    longest = np.concatenate(
        [find_longest_group(*stage) for stage in zip(stages, seconds, strict=True)], axis=-1
    )
    choices, choice_of_draw = np.unique(longest, axis=0, return_inverse=True)
    cost = np.zeros(seconds[0].shape[:-1])
    for number, choice in enumerate(choices):
        groups = np.split(choice, ends)
        joined = join_across_stages(stages, groups, times, separate_rest)
        joined_seconds = compute_term_seconds(joined, pairs.pairs, values)
        kept_overheads = 0.0
        if keeps_overheads:
            joined_seconds = joined_seconds - find_overheads(joined, pairs.pairs, values)
            longest_groups = zip(overheads, groups, times, strict=True)
            kept_overheads = sum(
                occurs * stage[..., chosen].sum(axis=-1) for stage, chosen, occurs in longest_groups
            )
        cost = np.where(
            choice_of_draw.ravel() == number,
            sum_terms(joined, joined_seconds) + kept_overheads,
            cost,
        )
    return cost


def sum_sender_overheads(
    schedule: Schedule, bytes: np.ndarray, pairs: Pairs, values: Values
) -> list[Array]:
    """Return for each group of each sending step (position, channel, target) the largest sum of
    overheads of a sender.

    A sender's overheads follow one another, those of several senders are concurrent.
    """
    overhead = _compute_message_overheads(schedule, bytes, pairs, values)
    by_node, steps = get_setting(values.settings, "shared") == "node", []
    for step in schedule.steps:
        if step.posted_sends.start == step.posted_sends.stop:
            continue
        channel, seconds = schedule.channel[step.posted_sends], overhead[..., step.posted_sends]
        position, _, first, joined = join_by_channel(step.src, channel, np.zeros(len(channel)))
        target = (
            schedule.node[schedule.dst[step.posted_sends]][first]
            if by_node
            else np.zeros(len(first), dtype=int)
        )
        sums = np.zeros((*seconds.shape[:-1], len(first)))  # of each sender and channel
        add_at(sums, joined, seconds)
        groups, group_of = np.unique(
            np.stack([position, channel[first], target]), axis=1, return_inverse=True
        )
        largest = np.zeros((*seconds.shape[:-1], groups.shape[1]))
        np.maximum.at(largest, index_last_axis(group_of.ravel()), sums)
        steps.append(largest)
    return steps


def list_stages(schedule: Schedule, settings: Mapping[str, Any]) -> list[list[int]]:
    """Return the indices of sending steps of each stage.

    Each step is a stage. With `shared: port` and messages in flight across steps, a stage ends when
    all its messages are waited for.
    """
    sending = [
        number
        for number, step in enumerate(schedule.steps)
        if step.posted_sends.start < step.posted_sends.stop
    ]
    if schedule.nonblocking is None or get_setting(settings, "shared") != "port":
        return [[number] for number in sending]
    waited = np.maximum(schedule.nonblocking.src_wait, schedule.nonblocking.dst_wait)
    stages: list[list[int]] = []
    last = -1
    for number in sending:
        sent = schedule.steps[number].posted_sends
        if schedule.step[sent.start] > last:
            stages.append([])
        stages[-1].append(number)
        last = max(last, int(waited[sent].max()))
    return stages


def assign_ports(schedule: Schedule, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of messages, and the channel of each: a node's memory, or the outgoing and
    the incoming port."""
    nodes = int(schedule.node.max()) + 1
    between = rows[schedule.channel[rows] != MEMORY]
    channels = schedule.node[schedule.dst[rows]], nodes + schedule.node[schedule.src[between]]
    return np.concatenate([rows, between]), np.concatenate(channels)


@dataclass(frozen=True, eq=False)
class ProcessorLoads:
    """The distinct loads of processors in a stage: what a rank posts, what it receives, and both.

    If a rank only posts or only receives, its first message costs o_c(0), which includes the
    network latency; each further one costs p_c. The first message is one between nodes if there is
    any. A rank that does both posts while its first messages arrive: each of its messages costs
    p_c.
    """

    further: np.ndarray  # (loads, pairs): number of further messages
    # (loads, pairs): whether the first message may be of this pair
    first_overhead_candidates: np.ndarray

    @classmethod
    def of(cls, schedule: Schedule, rows: np.ndarray, pairs: Pairs) -> "ProcessorLoads":
        """Return the loads of a stage's messages `rows`."""
        pair, count = pairs.pair[rows], len(pairs.pairs)
        between = np.array([not pair.within for pair in pairs.pairs])
        handled, loads = np.zeros((schedule.ranks, count), dtype=np.int64), []
        for rank in (schedule.src[rows], schedule.dst[rows]):
            counts = np.bincount(rank * count + pair, minlength=schedule.ranks * count).reshape(
                -1, count
            )
            handled += counts
            further, busy = counts.copy(), counts.any(axis=1)
            further[busy, ((counts[busy] > 0) * (1 + between)).argmax(axis=1)] -= 1
            loads.append(np.unique(np.concatenate([further, counts > 0], axis=1), axis=0))
        loads.append(np.unique(np.concatenate([handled, np.zeros_like(handled)], axis=1), axis=0))
        distinct = np.unique(np.concatenate(loads), axis=0)
        return cls(distinct[:, :count], distinct[:, count:] > 0)

    def predict_busiest(self, values: Values, pairs: list[Pair]) -> Array:
        """Return the time of the busiest processor: o_c(0) of the slowest pair among its messages,
        and p_c of each further message."""
        channels = [MEMORY if pair.within else NETWORK for pair in pairs]
        empty = [
            _compute_overhead(values, channel, pair, 0)
            for channel, pair in zip(channels, pairs, strict=True)
        ]
        first = np.where(
            self.first_overhead_candidates, np.stack(empty, axis=-1)[..., None, :], 0.0
        ).max(axis=-1)
        further = [
            find_value(select_pair_values(values, pair), f"p_{channel}", pair.type_or_pair)
            for channel, pair in zip(channels, pairs, strict=True)
        ]
        columns = [np.broadcast_to(column, (*values.draw_shape, 1)) for column in further]
        return (first + np.concatenate(columns, axis=-1) @ self.further.T).max(axis=-1)


SETTINGS = {
    "network": ("rdma", "copies"),
    "shared": ("channel", "node", "port"),
    "join": ("no", "yes", "overheads"),
    "rest": ("transfer", "message"),
    "rings": ("one-way", "both-ways"),
}


MAX_CACHED = 4_000_000  # cached values of functions: 32 MB


def get_setting(settings: Mapping[str, Any], name: str) -> object:
    """Return the chosen value of a setting, or its default."""
    return settings.get(name, SETTINGS[name][0])


def compute_term_seconds(terms: Terms, pairs: list[Pair], values: Values) -> Array:
    """Return the time of each term; of several pairs the slowest counts. Equal terms are computed
    once."""
    distinct, distinct_of = terms.distinct
    seconds = np.empty((*values.draw_shape, distinct.shape[1]))
    for number, (count, channel, size, transferred, message, pair_set) in enumerate(distinct.T):
        active = (pairs[pair] for pair in terms.pair_sets[pair_set])
        by_pair = [
            _compute_pair_seconds(values, channel, pair, size, transferred, count, message)
            for pair in active
        ]
        seconds[..., number] = np.max(by_pair, axis=0)
    return seconds[..., distinct_of]


def find_overheads(terms: Terms, pairs: list[Pair], values: Values) -> Array:
    """Return the overhead in each term: 0 in a continuation."""
    columns = zip(terms.channel, terms.message, terms.pair_set, strict=True)
    seconds = [
        np.max(
            [
                _compute_overhead(values, channel, pairs[pair], size)
                for pair in terms.pair_sets[pair_set]
            ],
            axis=0,
        )
        if size >= 0
        else np.zeros(values.draw_shape)
        for channel, size, pair_set in columns
    ]
    return np.stack(seconds, axis=-1)


def sum_sent_overheads(
    schedule: Schedule, bytes: np.ndarray, pairs: Pairs, values: Values
) -> Array:
    """Return the overheads of all messages that each rank sends, in seconds."""
    seconds = np.zeros((*values.draw_shape, schedule.ranks))
    if len(schedule.src):
        add_at(seconds, schedule.src, _compute_message_overheads(schedule, bytes, pairs, values))
    return seconds


def _compute_message_overheads(
    schedule: Schedule, bytes: np.ndarray, pairs: Pairs, values: Values
) -> Array:
    columns, distinct_of = np.unique(
        np.stack([schedule.channel, pairs.pair, bytes]), axis=1, return_inverse=True
    )
    seconds = [
        _compute_overhead(values, channel, pairs.pairs[pair], size)
        for channel, pair, size in columns.T
    ]
    return np.stack(seconds, axis=-1)[..., distinct_of.ravel()]


def _compute_overhead(values: Values, channel: int, pair: Pair, size: int) -> Array:
    return _evaluate_cached(values, f"o_{channel}", pair.type_or_pair, size)


def _compute_pair_seconds(
    values: Values,
    channel: int,
    pair: Pair,
    size: int,
    transferred_before: int,
    count: int,
    message: int,
) -> Array:
    """Return the time of a term between nodes of one pair of types.

    It is the first part of its messages with an overhead, or a continuation, which adds L(m₂, τ) −
    L(m₁, τ).
    """
    if message >= 0:
        transferred = _compute_transfer_seconds(values, channel, pair, size, count)
        return transferred + _compute_overhead(values, channel, pair, message)
    previous = _compute_transfer_seconds(values, channel, pair, transferred_before, count)
    return np.maximum(
        _compute_transfer_seconds(values, channel, pair, transferred_before + size, count)
        - previous,
        0.0,
    )


def _compute_transfer_seconds(
    values: Values, channel: int, pair: Pair, size: int, count: int
) -> Array:
    """Return the time of `count` concurrent transfers of `size` bytes."""
    if channel == MEMORY:
        return 2 * _evaluate_cached(values, f"L_{MEMORY}", pair.sender_type, size, count)
    seconds = _evaluate_cached(
        values, f"L_{NETWORK}", pair, size, convert_concurrency(values, channel, count)
    )
    if get_setting(values.settings, "network") == "copies":
        seconds = seconds + sum(
            _evaluate_cached(values, f"L_{MEMORY}", node_type, size, count)
            for node_type in pair.types
        )
    return seconds


def convert_concurrency(values: Values, channel: int, count: int) -> int:
    """Convert a count of transfers in one direction to the τ of the ring probe, whose transfers run
    in both directions (setting `rings`)."""
    one_way = get_setting(values.settings, "shared") != "channel"
    both_ways = one_way and get_setting(values.settings, "rings") == "both-ways"
    return 2 * count if channel == NETWORK and both_ways else count


def _evaluate_cached(
    values: Values, name: str, type_or_pair: str | Pair, size: int, count: int | None = None
) -> Array:
    """Return the value of a function at a size and concurrency, cached."""
    cache, cache_key = values.cache, (name, type_or_pair, int(size), count)
    if cache_key not in cache:
        if len(cache) * values.draw_shape[0] > MAX_CACHED:
            cache.clear()
        local = select_pair_values(values, type_or_pair)
        function = find_value_name(local.functions.__contains__, name, type_or_pair)
        cache[cache_key] = np.broadcast_to(
            local.at(function, np.array([size]), count), (*values.draw_shape, 1)
        )[..., 0]
    return cache[cache_key]


def list_message_rows(schedule: Schedule, stage: list[int]) -> np.ndarray:
    return np.arange(
        schedule.steps[stage[0]].posted_sends.start, schedule.steps[stage[-1]].posted_sends.stop
    )


def make_stage_terms(
    schedule: Schedule, bytes: np.ndarray, settings: Mapping[str, Any], pairs: Pairs
) -> list[Terms]:
    shared, joins, separate_rest = (
        get_setting(settings, name) for name in ("shared", "join", "rest")
    )
    if shared == "port" and joins != "no":
        raise UserError(
            f"found join: {joins} with shared: port; wanted join: no, or shared: channel or node"
        )
    stages = []
    for stage in list_stages(schedule, settings):
        rows = list_message_rows(schedule, stage)
        size, step, target = bytes[rows], 0, np.zeros(len(rows), dtype=int)
        if shared == "port":
            rows, target = assign_ports(schedule, rows)
            size, step = bytes[rows], schedule.step[rows]
        position = np.zeros(len(rows), dtype=int)
        if joins != "no":
            position, size, first, _ = join_by_channel(
                schedule.src[rows], schedule.channel[rows], size
            )
            rows, target = rows[first], target[first]
        elif shared == "node":
            position = number_by_sender(schedule.src[rows])
        if shared == "node":
            target = schedule.node[schedule.dst[rows]]
        columns = position, schedule.channel[rows], target, size, pairs.pair[rows]
        stages.append(make_terms(*columns, separate_rest == "message", step))
    return stages
