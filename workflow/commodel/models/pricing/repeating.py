"""Rounds that repeat (`patterns.repeated`), priced without going through all messages of all of them.

Two things are alike, and both are exact:

- Ranks. Where they sit may look the same from rank r and from rank r + g, for all r. If their clocks agree too when the
  rounds begin, they do ever after: only g ranks are looked at. One, where each has a node of its own.
- Rounds. What g rounds make of the clocks is a function of them, the same for the next g; where blocks of different
  sizes travel around a ring, it is so for clocks that travel with them. It is gone through in leaps (`leaps`).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from commodel.models import Array
from commodel.models.pricing.leaps import State, repeated
from commodel.models.pricing.pairs import rank_types
from commodel.patterns.repeated import Long, Rounds
from commodel.patterns.schedule import Schedule, check_rows
from commodel.patterns.work import Work

ENTRIES = 1_000_000  # ranks × rounds that are kept, or compared at a time
MOST = 100_000_000  # that are compared at all, to see how far pairwise rounds repeat


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

    def __init__(self, rounds: Rounds, node: np.ndarray, types: np.ndarray) -> None:
        self.rounds, self.node, self.types = rounds, np.unique(node, return_inverse=True)[1], types
        self.placed = node
        self.sizes, self.size_of = np.unique(rounds.sizes, return_inverse=True)
        self.apart = symmetry(rounds.ranks, rounds.turn, self.node, types)
        self._kept: dict[tuple[int, int], list[Round]] = {}

    def pair(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """A number for the types of two ranks' nodes and whether they share one."""
        count = int(self.types.max()) + 1
        apart = self.node[source] != self.node[target]
        return (self.types[source] * count + self.types[target]) * 2 + apart

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
        """Two ranks of every pair of types, and of every node where two share it."""
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
            return (self.round(each, width) for each in numbers)
        if (number, width) not in self._kept:
            self._kept[number, width] = [self.round(each, width) for each in numbers]
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
        if width == rounds.ranks > 1 or self._runs is None:
            return 0
        return (int(self._runs[number]) + self.apart) // self.apart if number < len(self._runs) else 0

    @cached_property
    def _runs(self) -> np.ndarray | None:
        """For every round how many of it and those after it are each like the one `apart` rounds later; None where it
        would take too long to see."""
        rounds, apart = self.rounds, self.apart
        left = rounds.count - apart
        if rounds.count * apart > MOST or left <= 0:
            return None
        if len(self.links[0]) == 1:
            return np.arange(left, 0, -1)
        here, differs = np.arange(apart), []
        for first in range(0, left, several := max(ENTRIES // apart, 1)):
            number = np.arange(first, min(first + several, left))[:, None]
            now, later = (self.pair(here, rounds.to(rows, here)) for rows in (number, number + apart))
            differs.append(first + np.flatnonzero((now != later).any(axis=1)))
        ends, place = np.append(np.concatenate(differs), left), np.arange(left)
        return ends[np.searchsorted(ends, place)] - place


def symmetry(ranks: int, turn: int, node: np.ndarray, types: np.ndarray) -> int:
    """How far apart ranks are that look alike: the least divisor of the number of ranks, a multiple of `turn`, by which
    all can be turned round so that those on one node stay together and each comes to a node of its own type. Nodes are
    numbered from 0."""
    count = int(node.max()) + 1
    for apart in range(turn, ranks, turn):
        if ranks % apart:
            continue
        turned = np.roll(node, -apart)
        goes = np.empty(count, dtype=int)
        goes[node] = turned
        if (goes[node] == turned).all() and (np.roll(types, -apart) == types).all():
            return apart
    return ranks


def _alike(clock: Array, apart: int) -> bool:
    return clock.strides[-1] == 0 or np.array_equal(clock[..., apart:], clock[..., :-apart])


def _turned(state: State, by: int) -> State:
    return tuple(np.roll(clock, by, axis=-1) for clock in state) if by % state[0].shape[-1] else state


def courses(schedule: Long, types: Mapping[str, int] | None = None) -> dict[Rounds, Course]:
    """The courses of a schedule's rounds, made once."""
    name = "courses", *(types or {}).values()
    if name not in schedule.known:
        kinds = rank_types(schedule.node, types)
        rounds = dict.fromkeys(part for part in schedule.parts if isinstance(part, Rounds))
        schedule.known[name] = {part: Course(part, schedule.node, kinds) for part in rounds}
    return schedule.known[name]


def condensed(schedule: Schedule, types: Mapping[str, int] | None = None) -> tuple[Schedule, np.ndarray]:
    """The steps of a schedule that differ, for who adds up steps whatever went before; and how often each occurs."""
    if not isinstance(schedule, Long):
        return schedule, np.ones(len(schedule.steps), dtype=int)
    name = "condensed", *(types or {}).values()
    if name not in schedule.known:
        schedule.known[name] = _condensed(schedule, types)
    return schedule.known[name]


def _condensed(schedule: Long, types: Mapping[str, int] | None) -> tuple[Schedule, np.ndarray]:
    parts, times = [], []
    for part in schedule.parts:
        if isinstance(part, Rounds):
            classes = courses(schedule, types)[part].classes()
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
