"""Repeated rounds of a schedule (`patterns.repeated`), predicted exactly without a replay of every
message.

`place_rounds` returns the rounds of a schedule on their nodes; `PlacedRounds.run` replays them with
two reductions:

- Symmetry of ranks. If the placement is equal from rank r and from rank r + g, for all r, and their
  clocks are equal at the start, these clocks always remain equal. Only g ranks are replayed; a
  single one if each rank has its own node.
- Fast-forward. g rounds are a function f of the clocks. If f has twice added d, a number for every
  clock, it is assumed to add d for K more times; one more f at the end confirms it. f consists of
  maxima of clocks plus constants, so it is convex: along a line, its increase cannot return to d
  after it was more. Bisection finds the largest K. If blocks of different sizes travel around a
  ring, the clocks are rotated with them.

`find_representatives` selects the messages of ranks 0 to g − 1 for a replay with shared links. A
message to rank t counts as one to rank t mod g, and links that the rotation maps to each other are
one symmetry orbit. `condense_rounds` returns one step of each kind for models that add up steps.
`cut_into_pieces` cuts rounds that would not fit into memory.

    >>> Rotation(np.repeat(np.arange(3), 2), 2).find_orbits(np.array([0, 0, 1, 1, 2, 2])).length  # nodes of 6 ranks
    array([3, 3, 3])
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import TypeVar

import numpy as np

from commodel.hierarchy import FLAT, Hierarchy
from commodel.models import Array
from commodel.models.evaluation.values import rank_types
from commodel.patterns.repeated import CompactSchedule, Rounds
from commodel.patterns.schedule import Schedule, Work, check_rows

ROUNDING_SHARE = 1e-13  # tolerance, relative to the spread of the clocks and to the increase by f
# applications of f; a search that skips fewer takes longer than replaying them
MIN_SKIPPED_PERIODS = 64

T = TypeVar("T")
State = Array  # clocks (second last axis) of each rank (last axis)


def fast_forward(f: Callable[[State], State], state: State, remaining: int) -> State:
    """Return the clocks after f was applied `remaining` times."""
    offset = np.zeros(1)
    increase, retry_interval, until_retry, skipped = None, 1, 0, 0
    while remaining:
        shift = _find_latest(state)  # clocks are kept near 0, where differences lose no digits
        state, offset = state - shift, offset + shift
        after = f(state)
        previous, increase = increase, _compute_increase(state, after)
        state, remaining, until_retry = after, remaining - 1, until_retry - 1
        if (
            remaining < 2
            or previous is None
            or until_retry > 0
            or not _is_close(previous, increase, state)
        ):
            continue
        skipped = _count_equal_increases(f, state, increase, remaining - 1, skipped)
        state = state + skipped * increase
        remaining -= skipped
        was_useful = skipped >= MIN_SKIPPED_PERIODS
        retry_interval = 1 if was_useful else 2 * retry_interval
        until_retry, increase = 0 if was_useful else retry_interval, None
    return state + offset


def _count_equal_increases(
    f: Callable[[State], State], state: State, increase: State, limit: int, guess: int
) -> int:
    """Return how many more times f adds the same increase, at most `limit`. `guess` is the result
    of the last search."""

    def is_equal_after(times: int) -> bool:
        clocks = state + times * increase
        return _is_close(_compute_increase(clocks, f(clocks)), increase, clocks)

    if is_equal_after(limit):
        return limit
    low, high, stride = 0, limit, 1
    while low < guess < high:  # start at the last result and widen the bracket by growing strides
        if is_equal_after(guess):
            low, guess = guess, guess + stride
        else:
            high, guess = guess, guess - stride
        stride *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_equal_after(middle) else (low, middle)
    return low


def _find_latest(state: State) -> Array:
    """Return the latest time of the first clock of all ranks, to be subtracted from a state."""
    return state[..., :1, :].max(axis=-1, keepdims=True)


def _compute_increase(before: State, after: State) -> State:
    with np.errstate(invalid="ignore"):  # a clock is −∞ before its first event
        return after - before


def _is_close(other: State, increase: State, state: State) -> bool:
    """Return whether two increases agree up to rounding, in every draw."""
    # Draws differ in the magnitude of their clocks.
    magnitude = (
        np.abs(state - _find_latest(state)).max(axis=-1, keepdims=True).sum(axis=-2, keepdims=True)
    )
    magnitude = magnitude + np.abs(increase[..., :1, :]).max(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return bool((np.abs(other - increase) <= ROUNDING_SHARE * magnitude).all())


MAX_CACHED_ENTRIES = 1_000_000  # ranks × rounds that are cached, or compared at a time
# ranks × rounds that are replayed at a time: more would not fit into a processor's cache
MAX_BATCH_ENTRIES = 1 << 14
# ranks × rounds compared in total, to find equal pairwise rounds
MAX_COMPARED_ENTRIES = 100_000_000


@dataclass(frozen=True, eq=False)
class Round:
    """One round of the replayed ranks: each rank's source and target, and the kinds of its sent and
    its received message."""

    source: np.ndarray
    target: np.ndarray
    sent: np.ndarray
    received: np.ndarray


@dataclass(frozen=True, eq=False)
class RoundStack:
    """Successive rounds that are replayed at once: columns as of `Round` with a row for each
    round."""

    source: np.ndarray
    target: np.ndarray
    sent: np.ndarray
    received: np.ndarray
    combines: bool  # whether ranks reduce what they receive

    @property
    def rounds(self) -> list[Round]:
        return [
            Round(*rows)
            for rows in zip(self.source, self.target, self.sent, self.received, strict=True)
        ]

    @cached_property
    def kinds(self) -> np.ndarray:
        """The kind of each message."""
        return self.sent.ravel()

    @cached_property
    def schedule(self) -> Schedule:
        """The messages; the number of its kind stands for the bytes of each."""
        count, width = self.target.shape
        step, src = np.repeat(np.arange(count), width), np.tile(np.arange(width), count)
        target, kinds = self.target.ravel(), self.kinds
        work = Work(step, target, kinds, kinds, kinds) if self.combines else Work.empty()
        return Schedule(width, step, src, target, kinds, work, src)


PlayRounds = Callable[[State, RoundStack], State]  # returns the clocks after some rounds


class MessageKinds(Schedule):
    """One message of each kind that occurs in some rounds."""


class PlacedRounds:
    """Repeated rounds on given nodes: the kinds of their messages, and a replay by symmetry and
    fast-forward."""

    def __init__(
        self, rounds: Rounds, node: np.ndarray, types: np.ndarray, levels: Hierarchy = FLAT
    ) -> None:
        self.rounds, self.node, self.types = rounds, np.unique(node, return_inverse=True)[1], types
        self.platform_node, self.levels = node, levels
        self.sizes, self.size_of = np.unique(rounds.sizes, return_inverse=True)
        groups = _number_groups(node, levels)
        self.period = (
            find_flip_period(groups, types)
            if rounds.bit_flip_symmetric
            else find_rotation_period(rounds.ranks, rounds.shift, groups, types)
        )
        self._cached: dict[tuple[int, int, int], list[RoundStack]] = {}

    def number_pairs(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return a number for each pair of ranks that identifies its node types and its distance
        class."""
        count = int(self.types.max()) + 1
        distance = self.levels.distance(self.platform_node[source], self.platform_node[target])
        return (self.types[source] * count + self.types[target]) * len(self.levels.names) + distance

    @cached_property
    def pair_kinds(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The kinds of pairs that occur, in order, and two ranks of each."""
        if self.rounds.periodic:
            source = np.arange(self.rounds.ranks)
            ends = [
                (source, self.rounds.receiver(number, source))
                for number in range(self.rounds.shift)
            ]
            source, target = (np.concatenate(ranks) for ranks in zip(*ends, strict=True))
        else:
            source, target = self._sample_pairs
        pairs, first = np.unique(self.number_pairs(source, target), return_index=True)
        return pairs, source[first], target[first]

    @property
    def _sample_pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of ranks that include each kind of pair.

        Without levels, they are two ranks of each pair of node types, and two of each node that
        several ranks share. With levels, all nodes have one type, and successive ranks in the order
        of groups contain a pair of each distance class.
        """
        if self.levels.groups:
            order = np.lexsort([self.node, *self.levels.columns[:, self.platform_node]])
            return order[:-1], order[1:]
        order = np.argsort(self.node, kind="stable")
        shared = np.flatnonzero(self.node[order][1:] == self.node[order][:-1])
        source, target = [order[shared]], [order[shared + 1]]
        two_nodes_by_type = {kind: self._two_nodes(kind) for kind in np.unique(self.types).tolist()}
        for kind, (first, _) in two_nodes_by_type.items():
            for other, (other_first, other_second) in two_nodes_by_type.items():
                target_rank = other_first if kind != other else other_second
                if target_rank >= 0:
                    source.append(np.array([first]))
                    target.append(np.array([target_rank]))
        return np.concatenate(source), np.concatenate(target)

    def _two_nodes(self, node_type: int) -> tuple[int, int]:
        """Return a rank on a node of this type, and one on another such node; −1 if there is
        none."""
        ranks = np.flatnonzero(self.types == node_type)
        on_other_nodes = ranks[self.node[ranks] != self.node[ranks[0]]]
        return int(ranks[0]), int(on_other_nodes[0]) if len(on_other_nodes) else -1

    @cached_property
    def sample(self) -> MessageKinds:
        """One message of each kind."""
        pairs, source, target = self.pair_kinds
        kinds = len(self.sizes) * len(pairs)
        bytes, target = np.repeat(self.sizes, len(pairs)), np.tile(target, len(self.sizes))
        work = (
            Work.reduce(np.zeros(kinds, dtype=int), target, bytes)
            if self.rounds.combines
            else Work.empty()
        )
        step, source = np.zeros(kinds, dtype=int), np.tile(source, len(self.sizes))
        return MessageKinds(
            self.rounds.ranks, step, source, target, bytes, work, self.platform_node
        )

    def find_kinds(self, number: np.ndarray, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return the kind of the message of each pair of ranks in these rounds."""
        pairs, *_ = self.pair_kinds
        size = 0 if len(self.sizes) == 1 else self.size_of[self.rounds.block(number, source)]
        if len(pairs) == 1:
            return size + np.zeros(target.shape, dtype=int)
        return size * len(pairs) + np.searchsorted(pairs, self.number_pairs(source, target))

    def make_batch(self, numbers: Sequence[int], width: int) -> RoundStack:
        """Return some rounds of the first `width` ranks."""
        number, ranks = np.array(numbers)[:, None], np.arange(width)
        target = np.broadcast_to(self.rounds.receiver(number, ranks), (len(numbers), width))
        kinds, local_target = self.find_kinds(number, ranks, target), target % width
        source = np.empty_like(local_target)
        np.put_along_axis(source, local_target, np.broadcast_to(ranks, target.shape), axis=1)
        return RoundStack(
            source,
            local_target,
            kinds,
            np.take_along_axis(kinds, source, axis=1),
            self.rounds.combines,
        )

    def iterate_batches(self, first: int, end: int, width: int) -> Iterable[RoundStack]:
        """Yield the rounds from `first` to `end` in batches."""
        at_once = max(MAX_BATCH_ENTRIES // width, 1)
        parts = (range(start, min(start + at_once, end)) for start in range(first, end, at_once))
        batches = (self.make_batch(numbers, width) for numbers in parts)
        if (end - first) * width > MAX_CACHED_ENTRIES:
            return batches
        if (first, end, width) not in self._cached:
            self._cached[first, end, width] = list(batches)
        return self._cached[first, end, width]

    def count_kinds(self) -> dict[int, int]:
        """Return one round of each kind, and how many rounds are of that kind.

        Rounds are of one kind if, up to symmetry, each rank sends and receives messages of the same
        kinds.
        """
        rounds, period = self.rounds, 0
        if rounds.equal_sizes and rounds.periodic:
            period = rounds.shift
        elif rounds.relays_blocks:
            period = self.period
        elif len(self.pair_kinds[0]) == 1:
            period = 1
        if period:
            return {
                first: len(range(first, rounds.count, period))
                for first in range(min(period, rounds.count))
            }
        firsts: dict[tuple[bytes, bytes], int] = {}
        width = self.period if rounds.equal_sizes else rounds.ranks
        batches = (self.make_batch([number], width) for number in range(rounds.count))
        kinds = ((batch.sent.tobytes(), batch.received.tobytes()) for batch in batches)
        return dict(Counter(firsts.setdefault(key, number) for number, key in enumerate(kinds)))

    def run(self, state: State, play: PlayRounds, first: int = 0) -> State:
        """Return the clocks after all rounds from `first` on."""
        ranks, rounds = self.rounds.ranks, self.rounds
        width = self.period if rounds.equal_sizes and _has_period(state, self.period) else ranks
        state = state[..., :width]
        number = first
        while number < rounds.count:
            times = self._count_periods(number, width)
            if times < MIN_SKIPPED_PERIODS:
                end = self._find_repetition(number + 1, width)
                for batch in self.iterate_batches(number, end, width):
                    state = play(state, batch)
                number = end
                continue
            rotation = self.period if rounds.relays_blocks else 0

            def run_period(state: State, first: int = number, rotation: int = rotation) -> State:
                for batch in self.iterate_batches(first, first + self.period, width):
                    state = play(state, batch)
                return _rotate_ranks(state, -rotation)

            state = _rotate_ranks(fast_forward(run_period, state, times), times * rotation)
            number += times * self.period
        if width == 1:  # a view: with many draws, a copy for each rank would be large
            return np.broadcast_to(state, (*state.shape[:-1], ranks))
        return np.concatenate([state] * (ranks // width), axis=-1)

    def _find_repetition(self, number: int, width: int) -> int:
        """Return the first round from `number` on from which periods are repeated, or the number of
        rounds."""
        repeats = (
            at
            for at in range(number, self.rounds.count)
            if self._count_periods(at, width) >= MIN_SKIPPED_PERIODS
        )
        return next(repeats, self.rounds.count)

    def _count_periods(self, number: int, width: int) -> int:
        """Return how many times the next period is repeated in the same way."""
        rounds = self.rounds
        if not (rounds.equal_sizes or rounds.relays_blocks):
            return 0
        if rounds.periodic:
            return (rounds.count - number) // self.period
        if width == rounds.ranks > 1 or not rounds.receivers_advance or self._equal_rounds is None:
            return 0
        return (
            (int(self._equal_rounds[number]) + self.period) // self.period
            if number < len(self._equal_rounds)
            else 0
        )

    @cached_property
    def _equal_rounds(self) -> np.ndarray | None:
        """For each round, how many successive rounds from it on equal the round one period later.
        None if there is at most one period, or the search takes too long."""
        rounds, period = self.rounds, self.period
        comparable = rounds.count - period
        if rounds.count * period > MAX_COMPARED_ENTRIES or comparable <= 0:
            return None
        if len(self.pair_kinds[0]) == 1:
            return np.arange(comparable, 0, -1)
        ranks, differs = np.arange(period), []
        for first in range(0, comparable, at_once := max(MAX_CACHED_ENTRIES // period, 1)):
            number = np.arange(first, min(first + at_once, comparable))[:, None]
            partners, partners_later = (
                self.number_pairs(ranks, rounds.receiver(rows, ranks))
                for rows in (number, number + period)
            )
            differs.append(first + np.flatnonzero((partners != partners_later).any(axis=1)))
        ends, index = np.append(np.concatenate(differs), comparable), np.arange(comparable)
        return ends[np.searchsorted(ends, index)] - index


def find_rotation_period(
    ranks: int, shift: int, groups: Sequence[np.ndarray], types: np.ndarray
) -> int:
    """Return the smallest shift of ranks that maps the placement to itself.

    It is a divisor of the number of ranks and a multiple of `shift`. It maps nodes and groups of
    each level to whole nodes and groups, and each rank to a node of the same type. `groups` holds
    for every rank its node, and its group of each level, numbered from 0.
    """
    for period in range(shift, ranks, shift):
        if ranks % period or (np.roll(types, -period) != types).any():
            continue
        if all(_maps_to_groups(group, np.roll(group, -period)) for group in groups):
            return period
    return ranks


def find_flip_period(groups: Sequence[np.ndarray], types: np.ndarray) -> int:
    """Return the smallest power of two from which on every bit of the rank numbers can be flipped.

    The conditions are those of `find_rotation_period`.
    """
    period, rank = len(types), np.arange(len(types))
    while period > 1:
        flipped = rank ^ period // 2
        if (types[flipped] != types).any() or not all(
            _maps_to_groups(group, group[flipped]) for group in groups
        ):
            break
        period //= 2
    return period


def _maps_to_groups(group: np.ndarray, image: np.ndarray) -> bool:
    """Return whether a permutation of ranks maps each group to exactly one group."""
    image_of = np.empty(int(group.max()) + 1, dtype=int)
    image_of[group] = image
    return bool((image_of[group] == image).all())


def _has_period(state: State, period: int) -> bool:
    """Return whether the clocks of ranks `period` apart are equal."""
    return state.strides[-1] == 0 or np.array_equal(state[..., period:], state[..., :-period])


def _rotate_ranks(state: State, shift: int) -> State:
    return np.roll(state, shift, axis=-1) if shift % state.shape[-1] else state


def _number_groups(node: np.ndarray, levels: Hierarchy) -> list[np.ndarray]:
    """Return for every rank its node, and its group of each level, numbered from 0."""
    groups = [node, *(group[node] for group in levels.groups.values())]
    return [np.unique(group, return_inverse=True)[1] for group in groups]


def cache_by_placement(function: Callable[..., T]) -> Callable[..., T]:
    """Return a function that keeps its results with the schedule, by node types and levels."""

    @wraps(function)
    def find_cached(
        schedule: Schedule, types: Mapping[str, int] | None = None, levels: Hierarchy = FLAT
    ) -> T:
        key = function.__name__, *(types or {}).values(), *levels.stamp
        if key not in schedule.cache:
            schedule.cache[key] = function(schedule, types, levels)
        return schedule.cache[key]

    return find_cached


@cache_by_placement
def place_rounds(
    schedule: CompactSchedule, types: Mapping[str, int] | None, levels: Hierarchy
) -> dict[Rounds, PlacedRounds]:
    """Return the repeated rounds of a schedule on their nodes."""
    rank_type = rank_types(schedule.node, types)
    rounds = dict.fromkeys(part for part in schedule.parts if isinstance(part, Rounds))
    return {part: PlacedRounds(part, schedule.node, rank_type, levels) for part in rounds}


def condense_rounds(
    schedule: Schedule, types: Mapping[str, int] | None = None, levels: Hierarchy = FLAT
) -> tuple[Schedule, np.ndarray]:
    """Return the distinct steps of a schedule and how often each occurs, for models that add up
    steps."""
    if not isinstance(schedule, CompactSchedule):
        return schedule, np.ones(len(schedule.steps), dtype=int)
    return _condense_compact(schedule, types, levels)


@cache_by_placement
def _condense_compact(
    schedule: CompactSchedule, types: Mapping[str, int] | None, levels: Hierarchy
) -> tuple[Schedule, np.ndarray]:
    parts: list[Schedule] = []
    counts: list[int] = []
    for part in schedule.parts:
        if isinstance(part, Rounds):
            classes = place_rounds(schedule, types, levels)[part].count_kinds()
            parts += [part.round(number, schedule.node) for number in classes]
            counts += classes.values()
        else:
            parts.append(part)
            counts += [1] * len(part.steps)
    begins = np.cumsum([0, *(part.last_step + 1 for part in parts)])
    works = [
        replace(part.work, step=part.work.step + begin)
        for part, begin in zip(parts, begins, strict=False)
    ]
    check_rows(sum(part.messages for part in parts))
    step = np.concatenate([part.step + begin for part, begin in zip(parts, begins, strict=False)])
    columns = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("src", "dst", "bytes")
    )
    condensed = Schedule.of(
        schedule.ranks, step, *columns, work=Work.concatenate(works), root=schedule.root
    )
    return condensed.place(schedule.node), np.array(counts)


@dataclass(frozen=True, eq=False)
class Orbits:
    """Symmetry orbits of groups of nodes under a rotation.

    For each group: the number of its orbit, the length of the orbit, and the rotations from the
    orbit's first group to it.
    """

    number: np.ndarray
    length: np.ndarray
    rotations: np.ndarray

    @cached_property
    def lengths(self) -> np.ndarray:
        """The length of each orbit, by the orbit's number."""
        lengths = np.zeros(len(self.number), dtype=int)
        lengths[self.number[self.number >= 0]] = self.length[self.number >= 0]
        return lengths


class Rotation:
    """A rotation of ranks on these nodes by `period` ranks."""

    def __init__(self, node: np.ndarray, period: int) -> None:
        self.node, self.period, self.rotations = node, period, len(node) // period

    def find_orbits(self, group: np.ndarray) -> Orbits:
        """Return the orbits of groups; `group` holds the group number of each node."""
        ranks_group = group[self.node]
        following = np.full(int(group.max(initial=0)) + 1, -1)
        following[ranks_group] = np.roll(ranks_group, -self.period)
        number, length, rotations = (np.full(len(following), -1) for _ in range(3))
        orbit = 0
        for first in ranks_group[: self.period].tolist():
            if number[first] < 0:
                members = [first]
                while (after := int(following[members[-1]])) != first:
                    members.append(after)
                number[members], length[members], rotations[members] = (
                    orbit,
                    len(members),
                    np.arange(len(members)),
                )
                orbit += 1
        return Orbits(number, length, rotations)


def find_orbits(group: np.ndarray, rotation: Rotation | None) -> Orbits:
    """Return the orbits of groups; without a rotation, each group is one. `group` holds the group
    number of each node."""
    if rotation is not None:
        return rotation.find_orbits(group)
    number = np.arange(int(group.max(initial=0)) + 1)
    return Orbits(number, np.ones_like(number), np.zeros_like(number))


@dataclass(frozen=True, eq=False)
class Representatives:
    """The messages of ranks 0 to g − 1, to whom all other ranks are equivalent by symmetry."""

    sent: Schedule  # with the true receivers
    replayed: Schedule  # with the receivers' representatives
    pair: np.ndarray  # of every message a number for its two ranks
    rotation: Rotation

    def repeat_for_all(self, finish: np.ndarray) -> np.ndarray:
        """Return the finish times of all ranks from those of the representatives."""
        return np.tile(finish, self.rotation.rotations)


def find_representatives(
    schedule: CompactSchedule,
    levels: Hierarchy,
    links: Mapping[str, int],
    max_messages: int,
    nodes: Sequence[np.ndarray] = (),
) -> Representatives | None:
    """Return the representatives of all ranks, or None if ranks or the sizes of a round differ, or
    the representatives send more than `max_messages` messages.

    `links` holds the number of parallel links by level, `nodes` for every node numbers by which
    nodes of otherwise equal placement differ.
    """
    parts = [part for part in schedule.parts if isinstance(part, Rounds) and part.equal_sizes]
    if len(parts) < len(schedule.parts):
        return None
    node, ranks = np.asarray(schedule.node), schedule.ranks
    shift = int(np.lcm.reduce([part.shift for part in parts]))
    period = _find_node_period(node, shift, levels, links, nodes)
    if period == ranks or period * sum(part.count for part in parts) > max_messages:
        return None
    rotation, start = Rotation(node, period), 0
    messages, work = [], []
    for part in parts:
        number, source = np.divmod(np.arange(part.count * period), period)
        target, bytes = part.receivers_and_bytes(number, source)
        messages.append((start + number, source, target, bytes))
        if part.combines:
            work.append(Work.reduce(start + number, target % period, bytes))
        start += part.count
    step, source, target, bytes = (np.concatenate(column) for column in zip(*messages, strict=True))
    sent = Schedule.of(ranks, step, source, target, bytes).place(node)
    replayed = Schedule.of(
        period, step, source, target % period, bytes, work=Work.concatenate(work)
    )
    return Representatives(sent, replayed, source * ranks + target, rotation)


def _find_node_period(
    node: np.ndarray,
    shift: int,
    levels: Hierarchy,
    links: Mapping[str, int],
    nodes: Sequence[np.ndarray],
) -> int:
    """Return the smallest shift of ranks that maps the placement to itself. Arguments are those of
    `find_representatives`."""
    levels.distance(node, node)  # raises an error for a node that the levels lack
    links_used = [np.unique(node % count, return_inverse=True)[1] for count in links.values()]
    types = np.zeros(len(node), dtype=int)
    if len(nodes):
        types = np.unique(np.stack(nodes)[:, node], axis=1, return_inverse=True)[1].ravel()
    return find_rotation_period(
        len(node), shift, [*_number_groups(node, levels), *links_used], types
    )


MIN_NODES_OF_EXCHANGE = 8  # of which the last may have fewer ranks than the others


def find_senders_of_exchange(
    schedule: Schedule,
    levels: Hierarchy,
    links: Mapping[str, int],
    nodes: Sequence[np.ndarray] = (),
) -> Representatives | None:
    """Return the representatives of all ranks, if each sends the same to all others in a single
    step; None if ranks differ. Arguments are those of `find_representatives`.

    If the last node has fewer ranks than the others, these count as if it had all. No message waits
    for another, so this changes finish times by no more than the part of the traffic that the
    missing ranks would have.
    """
    if schedule.shift != 1 or schedule.last_step > 0 or schedule.work.step.size:
        return None
    node = np.asarray(schedule.node)
    missing = max(int(np.count_nonzero(node == node[0]) - np.count_nonzero(node == node[-1])), 0)
    filled = np.concatenate([node, np.full(missing, node[-1])])
    period = _find_node_period(filled, 1, levels, links, nodes)
    if period * MIN_NODES_OF_EXCHANGE > len(filled):
        return None
    rows = np.flatnonzero(schedule.src < period)
    columns = {name: getattr(schedule, name)[..., rows] for name in ("step", "src", "dst", "bytes")}
    sent = replace(schedule, **columns, ranks=len(filled), node=filled, shift=None, contents=None)
    replayed = replace(sent, ranks=period, dst=sent.dst % period, node=filled[:period])
    return Representatives(
        sent, replayed, sent.src * schedule.ranks + sent.dst, Rotation(filled, period)
    )


@cache_by_placement
def find_representative_ranks(
    schedule: Schedule, types: Mapping[str, int] | None, levels: Hierarchy
) -> tuple[Schedule, Schedule] | None:
    """Return the messages of the first ranks, if all other ranks are equivalent: with the true
    receivers, and with the receivers' representatives.

    None if ranks differ, or if a rank has several messages in a step, since sums over them would be
    rounded differently.
    """
    if schedule.shift is None:
        return None
    node = schedule.node
    levels.distance(node, node)  # raises an error for a node that the levels lack
    period = find_rotation_period(
        schedule.ranks, schedule.shift, _number_groups(node, levels), rank_types(node, types)
    )
    if period == schedule.ranks:
        return None
    rows, works = np.flatnonzero(schedule.src < period), schedule.work.rank < period
    sent = replace(
        schedule,
        **{name: getattr(schedule, name)[..., rows] for name in ("step", "src", "dst", "bytes")},
        work=Work(*(column[..., works] for column in schedule.work.columns)),
        nonblocking=schedule.nonblocking and schedule.nonblocking.select_rows(rows),
        shift=None,
    )
    replayed = replace(sent, ranks=period, dst=sent.dst % period, node=node[:period])
    if any(
        groups.order is not None
        for step in replayed.steps
        for groups in (step.sends, step.receives)
    ):
        return None
    return sent, replayed


PIECE_MESSAGES = 1 << 14  # messages
# bytes by which messages of similar pieces differ: one element, if blocks are unequal
MAX_SIZE_DIFFERENCE = 16


@dataclass(frozen=True)
class Piece:
    """Some of the repeated rounds, or a part of a schedule without repeated rounds."""

    part: Schedule | Rounds
    first: int = 0
    count: int = 0

    @property
    def messages(self) -> int:
        return self.count * self.part.ranks if isinstance(self.part, Rounds) else self.part.messages

    @property
    def key(self) -> tuple[Schedule | Rounds, int, int]:
        """A key that pieces of equal messages have in common."""
        if isinstance(self.part, Rounds) and self.part.periodic and self.part.equal_sizes:
            return self.part, self.first % self.part.shift, self.count
        return self.part, self.first, self.count

    def find_kind(self, node: np.ndarray, levels: Hierarchy) -> Hashable:
        """Return a key that similar pieces have in common. In periodic rounds of nearly equal
        sizes, the same ranks send at each time. In other rounds, all messages have to be of one
        distance class."""
        if not isinstance(self.part, Rounds) or np.ptp(self.part.sizes) > MAX_SIZE_DIFFERENCE:
            return self.key
        if self.part.periodic:
            return self.part, self.first % self.part.shift, self.count
        step, source = np.divmod(np.arange(self.messages), self.part.ranks)
        target = self.part.receiver(self.first + step, source)
        distances = levels.distance(node[source], node[target])
        if distances.min() < distances.max():
            return self.key
        return self.part, f"distance {distances[0]}", self.count

    def expand(self, node: np.ndarray) -> Schedule:
        """Return all messages of the piece on these nodes."""
        if not isinstance(self.part, Rounds):
            return self.part.place(node)
        step, source = np.divmod(np.arange(self.messages), self.part.ranks)
        target, bytes = self.part.receivers_and_bytes(self.first + step, source)
        work = Work.reduce(step, target, bytes) if self.part.combines else None
        return Schedule.of(self.part.ranks, step, source, target, bytes, work=work).place(node)


def cut_into_pieces(schedule: CompactSchedule) -> list[Piece]:
    """Return the pieces of a schedule in order."""
    at_once, pieces = max(PIECE_MESSAGES // schedule.ranks, 1), []
    for part in schedule.parts:
        if isinstance(part, Rounds):
            pieces += [
                Piece(part, first, min(at_once, part.count - first))
                for first in range(0, part.count, at_once)
            ]
        else:
            pieces.append(Piece(part))
    return pieces
