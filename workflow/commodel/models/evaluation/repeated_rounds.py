"""Repeated rounds of a schedule: found or described, and fast-forwarded.

One function of the clocks of ranks, so many times, without going through it each time: exactly.

If f has added d twice, a number for every clock, it is taken to add it K times more, and one more f afterwards tells
whether it did: f takes maxima of clocks plus constants, so it is convex, and what is added along a line cannot fall
back to d once it was more. The largest such K is found by halving, and from there it goes on one by one.

Rounds that repeat (`patterns.repeated`), priced without going through all messages of all of them.

Two things are alike, and both are exact:

- Ranks. Where they sit may look the same from rank r and from rank r + g, for all r. If their clocks agree too when the
  rounds begin, they do ever after: only g ranks are looked at. One, where each has a node of its own.
- Rounds. What g rounds make of the clocks is a function of them, the same for the next g; where blocks of different
  sizes travel around a ring, it is so for clocks that travel with them. It is gone through in leaps (`leaps`).

Schedules of rounds that repeat, with one of each kind of round: for families that add steps up.

Rounds in which all ranks do the same, on nodes that look the same from rank r and from rank r + g: turned round by
g, all is as it was. What rank r does rank r + g does at the same time, so g ranks are looked at in the place of all. A
message to rank t is taken as rank t mod g takes its own; lines that are turned into each other are one. It is exact.

    >>> Turned(np.repeat(np.arange(3), 2), 2).orbits(np.array([0, 0, 1, 1, 2, 2])).length  # nodes of ranks 0 to 5
    array([3, 3, 3])

Rounds that repeat, a few of them at a time: thousands of rounds of thousands of messages would not fit at once.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from commodel.hierarchy import FLAT, Hierarchy
from commodel.models import Array
from commodel.models.evaluation.values import rank_types
from commodel.patterns.repeated import Long, Rounds
from commodel.patterns.schedule import Schedule, Work, check_rows

ROUNDING = 1e-13  # of the clocks' spread and of what f adds
UNWORTHY = 64  # times: a leap over fewer costs more than it spares

State = tuple[Array, ...]  # clocks by rank (last axis)


def fast_forward(f: Callable[[State], State], state: State, times: int) -> State:
    """f so many times."""
    base = np.zeros(1)
    added, patience, waiting, leap = None, 1, 0, 0
    while times:
        shift = state[0].max(axis=-1, keepdims=True)  # clocks near 0, or the differences would lose digits
        state, base = _moved(state, -shift), base + shift
        after = f(state)
        before, added = added, _added(state, after)
        state, times, waiting = after, times - 1, waiting - 1
        if times < 2 or before is None or waiting > 0 or not _near(before, added, state, added):
            continue
        leap = _leap(f, state, added, times - 1, leap)
        state = tuple(clock + leap * own for clock, own in zip(state, added, strict=True))
        times -= leap
        worthy = leap >= UNWORTHY
        patience = 1 if worthy else 2 * patience
        waiting, added = 0 if worthy else patience, None
    return _moved(state, base)


def _leap(f: Callable[[State], State], state: State, added: State, most: int, guess: int) -> int:
    """How many times f adds the same."""

    def holds(times: int) -> bool:
        there = tuple(clock + times * own for clock, own in zip(state, added, strict=True))
        return _near(_added(there, f(there)), added, there, added)

    if holds(most):
        return most
    low, high, reach = 0, most, 1
    while low < guess < high:  # as far as last time, or from there on in ever longer strides
        if holds(guess):
            low, guess = guess, guess + reach
        else:
            high, guess = guess, guess - reach
        reach *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _added(before: State, after: State) -> State:
    with np.errstate(invalid="ignore"):  # what has not begun is at −∞
        return tuple(late - early for early, late in zip(before, after, strict=True))


def _near(first: State, second: State, state: State, added: State) -> bool:
    # Draws are machines of their own, with clocks of their own size.
    size = sum(np.abs(clock - state[0].max(axis=-1, keepdims=True)).max(axis=-1, keepdims=True) for clock in state)
    size = size + np.abs(added[0]).max(axis=-1, keepdims=True)
    pairs = zip(first, second, strict=True)
    with np.errstate(invalid="ignore"):
        return all((np.abs(own - its) <= ROUNDING * size).all() for own, its in pairs)


def _moved(state: State, by: Array) -> State:
    return tuple(clock + by for clock in state)


ENTRIES = 1_000_000  # ranks × rounds that are kept, or compared at a time
MOST_COMPARED = 100_000_000  # that are compared at all, to see how far pairwise rounds repeat


@dataclass(frozen=True, eq=False)
class Round:
    """One round among the ranks that are looked at: from whom each gets its message, to whom it sends, and the kinds of
    the messages that it sends and gets."""

    source: np.ndarray
    target: np.ndarray
    sent: np.ndarray
    taken: np.ndarray


Play = Callable[[State, Sequence[Round]], State]  # of rounds one after the other


class Sample(Schedule):
    """One message of each kind of some rounds, in which all ranks send and receive at once."""


class Course:
    """Rounds on given nodes: the kinds of messages that there are, and one round after the other among some ranks."""

    def __init__(self, rounds: Rounds, node: np.ndarray, types: np.ndarray, levels: Hierarchy = FLAT) -> None:
        self.rounds, self.node, self.types = rounds, np.unique(node, return_inverse=True)[1], types
        self.placed, self.levels = node, levels
        self.sizes, self.size_of = np.unique(rounds.sizes, return_inverse=True)
        groups = [np.unique(group[node], return_inverse=True)[1] for group in levels.groups.values()]
        groups = [self.node, *groups]
        flips, turn = rounds.flips, rounds.turn
        self.apart = flip_symmetry(groups, types) if flips else rotation_symmetry(rounds.ranks, turn, groups, types)
        self._kept: dict[tuple[int, int], list[list[Round]]] = {}

    def pair(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """A number for the types of two ranks' nodes and how far they are from each other."""
        count = int(self.types.max()) + 1
        apart = self.levels.distance(self.placed[source], self.placed[target])
        return (self.types[source] * count + self.types[target]) * len(self.levels.names) + apart

    @cached_property
    def links(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The pairs that occur, in order, and two ranks of each."""
        if self.rounds.repeats:
            source = np.arange(self.rounds.ranks)
            ends = [(source, self.rounds.to(number, source)) for number in range(self.rounds.turn)]
            source, target = (np.concatenate(ranks) for ranks in zip(*ends, strict=True))
        else:
            source, target = self._everyone
        pairs, first = np.unique(self.pair(source, target), return_index=True)
        return pairs, source[first], target[first]

    @property
    def _everyone(self) -> tuple[np.ndarray, np.ndarray]:
        """Two ranks of every pair of types, and of every node where two share it; on a network of several levels, where
        all nodes are of one type, ranks that follow each other in the order of groups: of whatever distance there is a
        pair, there is one among them."""
        if self.levels.groups:
            order = np.lexsort([self.node, *self.levels.columns[:, self.placed]])
            return order[:-1], order[1:]
        order = np.argsort(self.node, kind="stable")
        shared = np.flatnonzero(self.node[order][1:] == self.node[order][:-1])
        source, target = [order[shared]], [order[shared + 1]]
        firsts = {kind: self._two_nodes(kind) for kind in np.unique(self.types).tolist()}
        for kind, (one, _) in firsts.items():
            for other, (two, three) in firsts.items():
                to = two if kind != other else three
                if to >= 0:
                    source.append(np.array([one]))
                    target.append(np.array([to]))
        return np.concatenate(source), np.concatenate(target)

    def _two_nodes(self, kind: int) -> tuple[int, int]:
        """A rank of this type of node, and one on another node of it; −1: there is none."""
        ranks = np.flatnonzero(self.types == kind)
        others = ranks[self.node[ranks] != self.node[ranks[0]]]
        return int(ranks[0]), int(others[0]) if len(others) else -1

    @cached_property
    def sample(self) -> Sample:
        pairs, source, target = self.links
        kinds = len(self.sizes) * len(pairs)
        bytes, target = np.repeat(self.sizes, len(pairs)), np.tile(target, len(self.sizes))
        work = Work.reduce(np.zeros(kinds, dtype=int), target, bytes) if self.rounds.combines else Work.empty()
        step = np.zeros(kinds, dtype=int)
        return Sample(self.rounds.ranks, step, np.tile(source, len(self.sizes)), target, bytes, work, self.placed)

    def kinds(self, number: int, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        pairs, *_ = self.links
        size = 0 if len(self.sizes) == 1 else self.size_of[self.rounds.block(number, source)]
        if len(pairs) == 1:
            return size + np.zeros(len(source), dtype=int)
        return size * len(pairs) + np.searchsorted(pairs, self.pair(source, target))

    def round(self, number: int, width: int) -> Round:
        """Among the first ranks."""
        here = np.arange(width)
        target = self.rounds.to(number, here)
        sent, to = self.kinds(number, here, target), target % width
        back = np.empty(width, dtype=int)
        back[to] = here
        return Round(back, to, sent, sent[back])

    def following(self, number: int, width: int) -> Iterable[list[Round]]:
        """Return as many rounds as ranks are apart that look alike, in batches that fit into memory."""
        end, at_once = number + self.apart, max(ENTRIES // width, 1)
        batches = (range(first, min(first + at_once, end)) for first in range(number, end, at_once))
        rounds = ([self.round(number, width) for number in batch] for batch in batches)
        if self.apart > at_once:
            return rounds
        if (number, width) not in self._kept:
            self._kept[number, width] = list(rounds)
        return self._kept[number, width]

    def classes(self) -> dict[int, int]:
        """Rounds of which all others are copies as far as sizes, kinds of pairs and the nodes that messages leave and
        come to count, and how many each stands for."""
        rounds, period = self.rounds, 0
        if rounds.even and rounds.repeats:
            period = rounds.turn
        elif rounds.follows:
            period = self.apart
        elif len(self.links[0]) == 1:
            period = 1
        if period:
            return {first: len(range(first, rounds.count, period)) for first in range(min(period, rounds.count))}
        firsts: dict[tuple[bytes, bytes], int] = {}
        width = self.apart if rounds.even else rounds.ranks
        looks = (self.round(number, width) for number in range(rounds.count))
        kinds = ((look.sent.tobytes(), look.taken.tobytes()) for look in looks)
        return dict(Counter(firsts.setdefault(key, number) for number, key in enumerate(kinds)))

    def run(self, state: State, play: Play, first: int = 0) -> State:
        """The clocks after all rounds from one on."""
        ranks, rounds = self.rounds.ranks, self.rounds
        narrow = rounds.even and all(_alike(clock, self.apart) for clock in state)
        width = self.apart if narrow else ranks
        state = tuple(clock[..., :width] for clock in state)
        number = first
        while number < rounds.count:
            times = self._repeats(number, width)
            if times < 3:
                state = play(state, [self.round(number, width)])
                number += 1
                continue
            travel = self.apart if rounds.follows else 0

            def together(state: State, first: int = number, travel: int = travel) -> State:
                for following in self.following(first, width):
                    state = play(state, following)
                return _turned(state, -travel)

            state = _turned(fast_forward(together, state, times), times * travel)
            number += times * self.apart
        if width == 1:  # of many draws, nothing is written ranks times
            return tuple(np.broadcast_to(clock, (*clock.shape[:-1], ranks)) for clock in state)
        return tuple(np.concatenate([clock] * (ranks // width), axis=-1) for clock in state)

    def _repeats(self, number: int, width: int) -> int:
        """How many times the next rounds, as many as ranks are apart that are alike, are done in the same way."""
        rounds = self.rounds
        if not (rounds.even or rounds.follows):
            return 0
        if rounds.repeats:
            return (rounds.count - number) // self.apart
        if width == rounds.ranks > 1 or not rounds.advances or self._runs is None:
            return 0
        return (int(self._runs[number]) + self.apart) // self.apart if number < len(self._runs) else 0

    @cached_property
    def _runs(self) -> np.ndarray | None:
        """For every round how many of it and those after it are each like the one `apart` rounds later; None where it
        would take too long to see."""
        rounds, apart = self.rounds, self.apart
        left = rounds.count - apart
        if rounds.count * apart > MOST_COMPARED or left <= 0:
            return None
        if len(self.links[0]) == 1:
            return np.arange(left, 0, -1)
        here, differs = np.arange(apart), []
        for first in range(0, left, at_once := max(ENTRIES // apart, 1)):
            number = np.arange(first, min(first + at_once, left))[:, None]
            now, later = (self.pair(here, rounds.to(rows, here)) for rows in (number, number + apart))
            differs.append(first + np.flatnonzero((now != later).any(axis=1)))
        ends, place = np.append(np.concatenate(differs), left), np.arange(left)
        return ends[np.searchsorted(ends, place)] - place


def rotation_symmetry(ranks: int, turn: int, groups: Sequence[np.ndarray], types: np.ndarray) -> int:
    """How far apart ranks are that look alike: the least divisor of the number of ranks, a multiple of `turn`, by which
    all can be turned round so that those on one node, or in one group of a level, stay together and each comes to a
    node of its own type. `groups`: of every rank its node, and its group of every level, numbered from 0."""
    for apart in range(turn, ranks, turn):
        if ranks % apart or (np.roll(types, -apart) != types).any():
            continue
        if all(_stay_together(group, apart) for group in groups):
            return apart
    return ranks


def flip_symmetry(groups: Sequence[np.ndarray], types: np.ndarray) -> int:
    """Return the least power of two from which on any bit of the numbers of all ranks can be flipped, under the
    conditions of `rotation_symmetry`. Ranks that are so far apart look alike."""
    apart, rank = len(types), np.arange(len(types))
    while apart > 1:
        flipped = rank ^ apart // 2
        if (types[flipped] != types).any() or not all(_map_to_groups(group, group[flipped]) for group in groups):
            break
        apart //= 2
    return apart


def _stay_together(group: np.ndarray, apart: int) -> bool:
    return _map_to_groups(group, np.roll(group, -apart))


def _map_to_groups(group: np.ndarray, turned: np.ndarray) -> bool:
    goes = np.empty(int(group.max()) + 1, dtype=int)
    goes[group] = turned
    return bool((goes[group] == turned).all())


def _alike(clock: Array, apart: int) -> bool:
    return clock.strides[-1] == 0 or np.array_equal(clock[..., apart:], clock[..., :-apart])


def _turned(state: State, by: int) -> State:
    return tuple(np.roll(clock, by, axis=-1) for clock in state) if by % state[0].shape[-1] else state


def courses(schedule: Long, types: Mapping[str, int] | None = None, levels: Hierarchy = FLAT) -> dict[Rounds, Course]:
    """The courses of a schedule's rounds, made once."""
    name = "courses", *(types or {}).values(), *levels.stamp
    if name not in schedule.known:
        kinds = rank_types(schedule.node, types)
        rounds = dict.fromkeys(part for part in schedule.parts if isinstance(part, Rounds))
        schedule.known[name] = {part: Course(part, schedule.node, kinds, levels) for part in rounds}
    return schedule.known[name]


def condense(
    schedule: Schedule, types: Mapping[str, int] | None = None, levels: Hierarchy = FLAT
) -> tuple[Schedule, np.ndarray]:
    """The steps of a schedule that differ, for who adds up steps whatever went before; and how often each occurs."""
    if not isinstance(schedule, Long):
        return schedule, np.ones(len(schedule.steps), dtype=int)
    name = "condensed", *(types or {}).values(), *levels.stamp
    if name not in schedule.known:
        schedule.known[name] = _condense(schedule, types, levels)
    return schedule.known[name]


def _condense(schedule: Long, types: Mapping[str, int] | None, levels: Hierarchy) -> tuple[Schedule, np.ndarray]:
    parts, times = [], []
    for part in schedule.parts:
        if isinstance(part, Rounds):
            classes = courses(schedule, types, levels)[part].classes()
            parts += [part.round(number, schedule.node) for number in classes]
            times += classes.values()
        else:
            parts.append(part)
            times += [1] * len(part.steps)
    begins = np.cumsum([0, *(part.last_step + 1 for part in parts)])
    works = [replace(part.work, step=part.work.step + begin) for part, begin in zip(parts, begins, strict=False)]
    check_rows(sum(part.messages for part in parts))
    step = np.concatenate([part.step + begin for part, begin in zip(parts, begins, strict=False)])
    columns = (np.concatenate([getattr(part, name) for part in parts]) for name in ("src", "dst", "bytes"))
    whole = Schedule.of(schedule.ranks, step, *columns, work=Work.joined(works), root=schedule.root)
    return whole.placed(schedule.node), np.array(times)


@dataclass(frozen=True, eq=False)
class Orbits:
    """Of groups of nodes, by number: which of them are turned into each other, how many these are, and how many turns
    it takes to come to each of them from the first."""

    number: np.ndarray
    length: np.ndarray
    turns: np.ndarray

    @cached_property
    def lengths(self) -> np.ndarray:
        """By their numbers."""
        lengths = np.zeros(len(self.number), dtype=int)
        lengths[self.number[self.number >= 0]] = self.length[self.number >= 0]
        return lengths


class Rotation:
    """Ranks on these nodes, turned round by `apart` ranks."""

    def __init__(self, node: np.ndarray, apart: int) -> None:
        self.node, self.apart, self.turns = node, apart, len(node) // apart

    def orbits(self, group: np.ndarray) -> Orbits:
        """Of groups, given by the number of each node's."""
        here = group[self.node]
        following = np.full(int(group.max(initial=0)) + 1, -1)
        following[here] = np.roll(here, -self.apart)
        number, length, turns = (np.full(len(following), -1) for _ in range(3))
        orbit = 0
        for first in here[: self.apart].tolist():
            if number[first] < 0:
                members = [first]
                while (after := int(following[members[-1]])) != first:
                    members.append(after)
                number[members], length[members], turns[members] = orbit, len(members), np.arange(len(members))
                orbit += 1
        return Orbits(number, length, turns)


@dataclass(frozen=True, eq=False)
class Representatives:
    """All that ranks 0 to g − 1 send: to whom it goes, and the same with the receivers' likes among these ranks."""

    sent: Schedule
    played: Schedule
    pair: np.ndarray  # of every message a number for the two ranks
    turned: Rotation

    def finish(self, finish: np.ndarray) -> np.ndarray:
        """Of all ranks, from that of these."""
        return np.tile(finish, self.turned.turns)


def find_representatives(
    schedule: Long, levels: Hierarchy, links: Mapping[str, int], most: int
) -> Representatives | None:
    """None where ranks differ, or these send more messages than `most`."""
    parts = schedule.parts
    if not all(isinstance(part, Rounds) and part.even for part in parts):
        return None
    node, ranks = np.asarray(schedule.node), schedule.ranks
    levels.distance(node, node)  # refused where they do not know one of the nodes
    groups = {"": np.arange(int(node.max()) + 1), **levels.groups}
    columns = [group[node] for group in groups.values()] + [node % count for count in links.values()]
    columns = [np.unique(column, return_inverse=True)[1] for column in columns]
    turn = int(np.lcm.reduce([part.turn for part in parts]))
    apart = rotation_symmetry(ranks, turn, columns, np.zeros(ranks, dtype=int))
    if apart == ranks or apart * sum(part.count for part in parts) > most:
        return None
    turned, start, messages, work = Rotation(node, apart), 0, [], []
    for part in parts:
        number, source = np.divmod(np.arange(part.count * apart), apart)
        target, bytes = part.sent(number, source)
        messages.append((start + number, source, target, bytes))
        if part.combines:
            work.append(Work.reduce(start + number, target % apart, bytes))
        start += part.count
    step, source, target, bytes = (np.concatenate(column) for column in zip(*messages, strict=True))
    sent = Schedule.of(ranks, step, source, target, bytes).placed(node)
    played = Schedule.of(apart, step, source, target % apart, bytes, work=Work.joined(work))
    return Representatives(sent, played, source * ranks + target, turned)


def first_ranks(
    schedule: Schedule, types: Mapping[str, int] | None = None, levels: Hierarchy = FLAT
) -> tuple[Schedule, Schedule] | None:
    """Return what the first ranks of a schedule send, if all others do the same: the messages as they are, and with the
    receivers' likes among these ranks. None if ranks differ, or a rank has several messages in a step: sums over them
    would be rounded otherwise."""
    if schedule.turn is None:
        return None
    name = "first ranks", *(types or {}).values(), *levels.stamp
    if name not in schedule.known:
        schedule.known[name] = _first_ranks(schedule, types, levels)
    return schedule.known[name]


def _first_ranks(
    schedule: Schedule, types: Mapping[str, int] | None, levels: Hierarchy
) -> tuple[Schedule, Schedule] | None:
    node = schedule.node
    levels.distance(node, node)  # refused where they do not know one of the nodes
    groups = [node, *(group[node] for group in levels.groups.values())]
    groups = [np.unique(group, return_inverse=True)[1] for group in groups]
    apart = rotation_symmetry(schedule.ranks, schedule.turn, groups, rank_types(node, types))
    if apart == schedule.ranks:
        return None
    rows, works = np.flatnonzero(schedule.src < apart), schedule.work.rank < apart
    sent = replace(
        schedule,
        **{name: getattr(schedule, name)[..., rows] for name in ("step", "src", "dst", "bytes")},
        work=Work(*(column[..., works] for column in schedule.work.columns)),
        ends=schedule.ends and schedule.ends.of_rows(rows),
        turn=None,
    )
    played = replace(sent, ranks=apart, dst=sent.dst % apart, node=node[:apart])
    if any(groups.order is not None for step in played.steps for groups in (step.sends, step.receives)):
        return None
    return sent, played


PIECE_MESSAGES = 1 << 17  # messages


@dataclass(frozen=True)
class Piece:
    """Some rounds, or what is none."""

    part: Schedule | Rounds
    first: int = 0
    count: int = 0

    @property
    def messages(self) -> int:
        return self.count * self.part.ranks if isinstance(self.part, Rounds) else self.part.messages

    def written(self, node: np.ndarray) -> Schedule:
        if not isinstance(self.part, Rounds):
            return self.part.placed(node)
        step, source = np.divmod(np.arange(self.messages), self.part.ranks)
        target, bytes = self.part.sent(self.first + step, source)
        work = Work.reduce(step, target, bytes) if self.part.combines else None
        return Schedule.of(self.part.ranks, step, source, target, bytes, work=work).placed(node)


def cut_into_pieces(schedule: Long) -> list[Piece]:
    """What is done one after the other."""
    at_once, cut = max(PIECE_MESSAGES // schedule.ranks, 1), []
    for part in schedule.parts:
        if isinstance(part, Rounds):
            cut += [Piece(part, first, min(at_once, part.count - first)) for first in range(0, part.count, at_once)]
        else:
            cut.append(Piece(part))
    return cut
