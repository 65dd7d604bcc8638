"""Rounds that repeat (`patterns.repeated`), priced without going through all messages of all of them.

Two things are alike, and both are exact:

- Ranks. Where they sit may look the same from rank r and from rank r + g, for all r. If their clocks agree too when the
  rounds begin, they do ever after: only g ranks are looked at. One, where each has a node of its own.
- Rounds. What g rounds make of the clocks is a function of them, the same for the next g; where blocks of different
  sizes travel around a ring, it is so for clocks that travel with them. It is gone through in leaps (`leaps`).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from commodel.hierarchy import FLAT, Hierarchy
from commodel.models import Array
from commodel.models.pricing.leaps import State, repeated
from commodel.models.pricing.pairs import rank_types
from commodel.patterns.repeated import Long, Rounds
from commodel.patterns.schedule import Schedule
from commodel.patterns.work import Work

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


Play = Callable[[State, Round], State]


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
        self.apart = flip_symmetry(groups, types) if flips else symmetry(rounds.ranks, turn, groups, types)
        self._kept: dict[tuple[int, int], list[Round]] = {}

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

    def following(self, number: int, width: int) -> Iterable[Round]:
        """So many rounds as ranks are apart that look alike."""
        numbers = range(number, number + self.apart)
        if self.apart * width > ENTRIES:
            return (self.round(number, width) for number in numbers)
        if (number, width) not in self._kept:
            self._kept[number, width] = [self.round(number, width) for number in numbers]
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
                state = play(state, self.round(number, width))
                number += 1
                continue
            travel = self.apart if rounds.follows else 0

            def together(state: State, first: int = number, travel: int = travel) -> State:
                for following in self.following(first, width):
                    state = play(state, following)
                return _turned(state, -travel)

            state = _turned(repeated(together, state, times), times * travel)
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


def symmetry(ranks: int, turn: int, groups: Sequence[np.ndarray], types: np.ndarray) -> int:
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
    conditions of `symmetry`. Ranks that are so far apart look alike."""
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
