"""Replay in the order of time with link sharing, the reference in Python for `native/prices`.

What all ranks of a schedule do, as columns that whoever plays it in the order of time can go through.

What serves messages moment by moment: lines that they share, and bundles of them. Where something comes back for
each message, as acknowledgements do, it takes `back` of that message's share of the line that leads the other way,
and goes there no faster than all others do: so that on both lines everybody gets the same, what the fuller of them
leaves each.

Plays a schedule on paper in the order of time, event by event, where what a message takes depends on what begins
while it is on its way. All on a line at a time get equal shares of it, also those that begin and end in between; a
message is through when it has had of each of its lines what it needs, and no sooner than it would be alone. Steps,
posts and waits are those of `replay`. What `commodel build prices` compiles does the same, to the bit, much sooner.

Of messages that are followed in bundles each goes as fast as the slowest of its lines lets it at a moment; others are
served by each of their lines for itself, which is quicker to work out.

Two messages of 3 s, the second 1 s later. They share the line from 2 s on; the first is through at 6 s, the other has
the line for itself again and is through at 7 s:

    >>> from commodel.patterns.schedule import Schedule
    >>> program = Program.of(Schedule.of(3, 0, [0, 0], [1, 2], 8), np.zeros(2, dtype=bool), (np.arange(2), np.zeros(2)))
    >>> in_time(program, Traffic(1.0, 0.0, np.zeros(2), np.full(2, 3.0), np.full(2, 3.0), np.zeros(0)))
    array([2., 6., 7.])

Queues of messages from one rank to another, as in a chain of ranks that pass on parts of a message: a hundred of
them may be on one line. Those that are alike make a bundle. All of it go as fast as the slowest of their lines lets
them, and meanwhile the other lines do not serve them any sooner. To follow bundles is as quick as to follow lines; it
would not be for single messages, of which each has lines of its own, and there it comes to nearly the same.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from commodel.errors import UserError
from commodel.models import Array
from commodel.models.pricing import native_replay
from commodel.patterns.schedule import Schedule


@dataclass(frozen=True, eq=False)
class Runs:
    """Rows of each of some places, one place after the other: those of place p from `first[p]` to `first[p + 1]`."""

    rows: np.ndarray
    first: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, place: np.ndarray, places: int) -> "Runs":
        first = np.concatenate([np.zeros(1, dtype=int), np.cumsum(np.bincount(place, minlength=places))])
        return cls(rows[in_order(place)], first)

    @cached_property
    def lists(self) -> list[list[int]]:
        rows, ends = self.rows.tolist(), self.first.tolist()
        return [rows[first:last] for first, last in pairwise(ends)]


def in_order(numbers: np.ndarray) -> np.ndarray | slice:
    """What puts numbers in order, those that are alike as they were. numpy sorts short integers by radix, in linear
    time."""
    if (numbers[1:] >= numbers[:-1]).all():
        return slice(None)
    return np.argsort(numbers.astype(np.int16) if numbers.max() < 1 << 15 else numbers, kind="stable")


def distinct(keys: Sequence[np.ndarray], count: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """The numbers below `count` that occur in any of some columns, in order; and which of them each column holds."""
    if count > (1 << 20) + 16 * sum(map(len, keys)):
        occurring = np.unique(np.concatenate(keys))
        return occurring, [np.searchsorted(occurring, key) for key in keys]
    occurs = np.zeros(count, dtype=bool)  # much quicker than to sort them
    for key in keys:
        occurs[key] = True
    number = np.cumsum(occurs) - 1
    return np.flatnonzero(occurs), [number[key] for key in keys]


@dataclass(frozen=True, eq=False)
class Program:
    """What all ranks do, at one size. A place is a step in which a rank does something; those of a rank follow each
    other from `places[rank]` to `places[rank + 1]`."""

    schedule: Schedule
    places: np.ndarray
    works: np.ndarray  # the place of each row of work
    posted: Runs
    opened: Runs  # posted by their receivers, of those that ask
    taken: Runs
    finished: Runs  # waited for by their senders
    asks: np.ndarray
    passed: Runs  # the lines of each message
    passing: np.ndarray | slice  # which of the given uses each of them is
    opposite: np.ndarray  # of each line the one that leads the other way, or -1
    bundles: "Bundles | None"  # in which messages are followed; each passes one then, instead of lines
    in_turn: bool  # a rank's messages to another go one after the other, and some have several
    pair: np.ndarray  # where they do: of each message the number of its pair of ranks

    @classmethod
    def of(
        cls,
        schedule: Schedule,
        asks: np.ndarray,
        uses: tuple[np.ndarray, ArrayLike],
        in_turn: bool = False,
        waits: np.ndarray | None = None,
        opposite: np.ndarray | None = None,
        pair: np.ndarray | None = None,
        bundles: "Bundles | None" = None,
    ) -> "Program":
        """`asks`: which messages wait for their receivers; `waits`: for which of these their senders wait until they
        are through (None: for all); `uses`: messages, and the number of a line that each passes; `opposite`: of each
        line the one that leads the other way, where the two hold each other up (None: none do); `pair`: of every
        message a number for its ranks, where those of the schedule stand for others, too; `bundles`: of messages that
        are followed together."""
        span, work = schedule.last_step + 1, schedule.work
        every = np.arange(len(schedule.src))
        some, held = np.flatnonzero(asks), np.flatnonzero(asks if waits is None else asks & waits)
        ends = [(schedule.src, schedule.step, every), (schedule.dst, schedule.dst_step, some)]
        ends += [(schedule.dst, schedule.dst_wait, every), (schedule.src, schedule.src_wait, held)]
        keys = [rank[rows] * span + step[rows] for rank, step, rows in ends] + [work.rank * span + work.step]
        places, numbers = distinct(keys, schedule.ranks * span)
        runs = [Runs.of(rows, place, len(places)) for (*_, rows), place in zip(ends, numbers, strict=False)]
        message, line = uses[0], np.asarray(uses[1], dtype=np.int64)
        passing = in_order(message)
        passed = Runs.of(line, message, len(every)) if bundles is None else bundles.passed
        bounds = np.searchsorted(places, np.arange(schedule.ranks + 1) * span)
        opposite = np.full(int(line.max(initial=-1)) + 1, -1) if opposite is None else opposite
        turns = every[:0]
        if in_turn:
            number = schedule.src * schedule.ranks + schedule.dst if pair is None else pair
            pairs, (turns,) = distinct([number], int(number.max(initial=0)) + 1)
            in_turn = len(pairs) < len(every)
        return cls(schedule, bounds, numbers[-1], *runs, asks, passed, passing, opposite, bundles, in_turn, turns)

    @property
    def lines(self) -> int:
        """How many there are of what messages pass: of bundles, if they are followed in these."""
        return len(self.opposite) if self.bundles is None else len(self.bundles.lines.first) - 1

    def uses(self, seconds: Array) -> Array:
        """For how long each message is on each of what it passes, alone, from what was given."""
        return seconds[self.passing] if self.bundles is None else np.ones(len(self.passed.rows))

    def work(self, seconds: Array) -> Array:
        """How long the work of each place takes, from that of each row."""
        return np.bincount(self.works, seconds, minlength=len(self.posted.first) - 1)


LEAST_SECONDS = 1e-30  # s: what no seconds at all are taken for
ROUNDING = 1e-12  # of what a line has served: who is through by as much later is through at the same time


class Line:
    """How many messages share it, and how many the line that leads the other way."""

    __slots__ = ("back", "count", "opposite")

    def __init__(self, back: float) -> None:
        self.count, self.back = 0, back
        self.opposite: Line | None = None

    @property
    def load(self) -> float:
        """Among how many each of them has its share."""
        few, many = sorted((self.count, self.opposite.count if self.opposite else 0))
        return many + self.back * few


class Bundle:
    """Messages that go equally fast: all on one line, or all that pass the same lines. `served` is what each has had
    since there were none."""

    __slots__ = ("changes", "lines", "meets", "served", "since", "users")

    def __init__(self, lines: list[tuple[Line, float]]) -> None:
        self.served = self.since = 0.0
        self.users: list[tuple[float, int]] = []  # by how much will have been served when they are through
        self.changes = 0
        self.lines = lines  # and for how many seconds what is served as one would be on each, alone
        self.meets: list[Bundle] = []  # others on its lines, or on those that lead the other way

    def join(self, time: float, message: int, seconds: float) -> None:
        self._serve_all(time)
        heappush(self.users, (self.served + seconds, message))
        self._count(1)

    def leave(self, time: float) -> list[int]:
        """Who is through."""
        self._serve_all(time)
        self.served, first = heappop(self.users)
        through, until = [first], self.served * (1 + ROUNDING)
        while self.users and self.users[0][0] <= until:
            through.append(heappop(self.users)[1])
        self._count(-len(through))
        return through

    def next(self, time: float) -> float:
        """When the next one is through."""
        self.since = time
        self.changes += 1
        return time + (self.users[0][0] - self.served) * self._load

    def _count(self, more: int) -> None:
        for line, _ in self.lines:
            line.count += more

    def _serve_all(self, time: float) -> None:
        for bundle in (self, *self.meets):
            bundle.served = bundle._served(time)
            bundle.since = time

    def _served(self, time: float) -> float:
        return self.served + (time - self.since) / self._load if self.users else 0.0

    @property
    def _load(self) -> float:
        return max(LEAST_SECONDS, *(line.load * seconds for line, seconds in self.lines))


def bundles(program: Program, uses: np.ndarray, back: float) -> list[Bundle]:
    """Where messages are not followed in bundles, a line has one each."""
    lines = [Line(back) for _ in program.opposite]
    for line, opposite in zip(lines, program.opposite.tolist(), strict=True):
        line.opposite = lines[opposite] if opposite >= 0 else None
    if program.bundles is None:
        of_lines = [Bundle([(line, 1.0)]) for line in lines]
        for number, opposite in enumerate(program.opposite.tolist()):
            of_lines[number].meets = [of_lines[opposite]] if opposite not in (-1, number) else []
        return of_lines
    seconds = iter(uses[program.bundles.passing].tolist())
    queues = [Bundle([(lines[line], next(seconds)) for line in own]) for own in program.bundles.lines.lists]
    for bundle, others in zip(queues, program.bundles.meets.lists, strict=True):
        bundle.meets = [queues[other] for other in others]
    return queues


@dataclass(frozen=True, eq=False)
class Traffic:
    """Seconds, for one draw."""

    send: Array | float  # of each message, or of all
    receive: Array | float
    wire: Array
    alone: Array  # that a message lasts with all lines to itself
    uses: Array  # of a line by a message
    work: Array
    back: float = 0.0  # of a share

    def sending(self, schedule: Schedule) -> Array:
        return np.broadcast_to(np.asarray(self.send, dtype=float), schedule.src.shape)

    def receiving(self, schedule: Schedule) -> Array:
        return np.broadcast_to(np.asarray(self.receive, dtype=float), schedule.src.shape)


def in_time(program: Program, costs: Traffic) -> Array:
    """When each rank is done. Complexity: messages × lines that each passes, and the logarithm of how many go at a
    time."""
    play = native_replay.in_time if native_replay.library() else in_python
    return _ended(play(program, costs, *_by_place(program, costs)))


def in_parts(part: Callable[[int], tuple[Program, Traffic]], count: int, most: int, ranks: int) -> Array:
    """The same of a program in so many parts of at most so many messages, which come when they are wanted, and have
    the same ranks and lines. Only where it is compiled."""

    def given(number: int) -> tuple[Program, Traffic, Array, Array]:
        program, costs = part(number)
        return program, costs, *_by_place(program, costs)

    return _ended(native_replay.in_parts(given, count, most, ranks))


def _by_place(program: Program, costs: Traffic) -> tuple[Array, Array]:
    """The uses of lines in the program's order, and the work of each place."""
    return program.uses(costs.uses), program.work(costs.work)


def _ended(done: Array | None) -> Array:
    if done is None:
        raise UserError("ranks wait for each other: so long a message asks first")
    return done


def in_python(program: Program, costs: Traffic, uses: Array, work: Array) -> Array | None:
    play = _Play(program, costs, uses, work)
    for rank in range(program.schedule.ranks):
        play.go_on(rank)
    play.run()
    return np.array(play.done) if play.place == play.last else None


class _Play:
    """The clocks of all ranks, and what is to happen."""

    def __init__(self, program: Program, costs: Traffic, uses: Array, work: Array) -> None:
        count, ranks = len(program.schedule.src), program.schedule.ranks
        self.posted, self.opened, self.taken, self.finished = (
            runs.lists for runs in (program.posted, program.opened, program.taken, program.finished)
        )
        ends = program.places.tolist()
        self.place, self.last, self.entered = ends[:-1], ends[1:], [False] * ranks
        self.src, self.dst = program.schedule.src.tolist(), program.schedule.dst.tolist()
        self.pairs = program.pair.tolist() if program.in_turn else []
        self.send, self.receive = (ends(program.schedule).tolist() for ends in (costs.sending, costs.receiving))
        self.work = work.tolist()
        self.wire, self.alone, self.asks = costs.wire.tolist(), costs.alone.tolist(), program.asks.tolist()
        self.passed: list[list[tuple[Bundle, float]]] = [[] for _ in range(count)]
        lanes, seconds = bundles(program, costs.uses, costs.back), iter(uses.tolist())
        for passed, numbers in zip(self.passed, program.passed.lists, strict=True):
            passed += [(lanes[number], lasting) for number in numbers if (lasting := next(seconds))]

        self.done = [0.0] * ranks
        self.lacking = [0] * ranks  # messages that each waits for
        self.wanted: list[set[int]] = [set() for _ in range(count)]  # who waits for each: its receiver, its sender
        self.half: dict[int, float] = {}  # of those that ask: when the first of their ends was ready
        self.begun, self.still = [0.0] * count, [len(passed) for passed in self.passed]  # lines that each is on
        self.through: list[float | None] = [None] * count
        self.queues: dict[int, deque[int]] = {}  # of a pair of ranks: who is on its way, and who waits
        self.coming: list[tuple[float, int, int, Bundle | None]] = []  # time, turn, message or change, line
        self.turn = 0

    def go_on(self, rank: int) -> None:
        """Through all steps of a rank until it waits for something."""
        while self.place[rank] < self.last[rank]:
            place = self.place[rank]
            taken, finished = self.taken[place], self.finished[place]
            if not self.entered[rank]:
                self.entered[rank] = True
                self._post(rank, place)
                for end, messages in enumerate((taken, finished)):
                    for message in messages:
                        if self.through[message] is None:
                            self.wanted[message].add(end)
                            self.lacking[rank] += 1
            if self.lacking[rank]:
                return
            time, receive = self.done[rank], self.receive
            for arrival, takes in sorted((self.through[m] + self.wire[m], receive[m]) for m in taken):
                time = (arrival if arrival > time else time) + takes
            for message in finished:
                time = max(time, self.through[message])
            self.done[rank] = time + self.work[place]
            self.place[rank], self.entered[rank] = place + 1, False

    def _post(self, rank: int, place: int) -> None:
        time = self.done[rank]
        for message in self.opened[place]:
            self._meet(message, time)
        for message in self.posted[place]:
            time += self.send[message]
            if self.asks[message]:
                self._meet(message, time)
            else:
                self._expect(time, message, None)
        self.done[rank] = time

    def _meet(self, message: int, time: float) -> None:
        """One end of a message that asks is ready; with the other it begins."""
        if message in self.half:
            self._expect(max(time, self.half.pop(message)), message, None)
        else:
            self.half[message] = time

    def _expect(self, time: float, number: int, bundle: Bundle | None) -> None:
        self.turn += 1
        heappush(self.coming, (time, self.turn, number, bundle))

    def run(self) -> None:
        while self.coming:
            time, _, number, bundle = heappop(self.coming)
            if bundle is None:
                self._begin(number, time)
            elif number == bundle.changes:
                through = bundle.leave(time)
                self._await_all(bundle, time)
                for message in through:
                    self.still[message] -= 1
                    if not self.still[message]:
                        self._arrive(message, max(time, self.begun[message] + self.alone[message]))

    def _begin(self, message: int, time: float) -> None:
        if self.pairs:
            queue = self.queues.setdefault(self.pairs[message], deque())
            if not queue or queue[0] != message:  # else it has waited for its turn
                queue.append(message)
            if queue[0] != message:
                return
        self.begun[message] = time
        if not self.passed[message]:
            self._arrive(message, time + self.alone[message])
        for bundle, seconds in self.passed[message]:
            bundle.join(time, message, seconds)
            self._await_all(bundle, time)

    def _await_all(self, bundle: Bundle, time: float) -> None:
        for changed in (bundle, *bundle.meets):
            if changed.users:
                coming = changed.next(time)
                self._expect(coming, changed.changes, changed)

    def _arrive(self, message: int, time: float) -> None:
        self.through[message] = time
        if self.pairs:
            queue = self.queues[self.pairs[message]]
            queue.popleft()
            if queue:
                self._expect(time, queue[0], None)
        for end, rank in enumerate((self.dst[message], self.src[message])):
            if end in self.wanted[message]:
                self.lacking[rank] -= 1
                if not self.lacking[rank]:
                    self.go_on(rank)


QUEUE = 8  # messages from one rank to another at once: where there are more, they are followed in bundles
MEETINGS = 16  # of a bundle with others, for each message: where there are more, lines are followed


@dataclass(frozen=True, eq=False)
class Bundles:
    """Messages of as many bytes that pass the same lines."""

    of: np.ndarray  # the bundle of each message, -1: it passes no line
    lines: Runs  # of each bundle
    passing: np.ndarray  # which of the given uses each of these is
    meets: Runs  # other bundles that are on one of its lines, or on the opposite of one
    opposite: np.ndarray  # of each line, or -1

    @property
    def passed(self) -> Runs:
        """The bundle of each message."""
        some = np.flatnonzero(self.of >= 0)
        return Runs.of(self.of[some], some, len(self.of))

    @classmethod
    def of_queues(
        cls, schedule: Schedule, asks: np.ndarray, message: np.ndarray, line: np.ndarray, opposite: np.ndarray
    ) -> "Bundles | None":
        """None where no rank has a queue for another one, or too many bundles meet. `message` is in order."""
        if not len(message) or longest_queue(schedule, asks) <= QUEUE:
            return None
        every = np.arange(len(schedule.src))
        first = np.searchsorted(message, np.arange(len(every) + 1))
        sizes, passing_some = np.unique(schedule.bytes), first[1:] > first[:-1]
        size = np.searchsorted(sizes, schedule.bytes)
        alike = 2 * (_pair(schedule) * len(sizes) + size) + passing_some
        found, (of,) = distinct([alike], 2 * schedule.ranks**2 * len(sizes))
        number = np.empty(len(found), dtype=int)
        number[of[::-1]] = every[::-1]  # the first of each
        passes = found % 2 > 0
        names = np.where(passes, np.cumsum(passes) - 1, -1)
        of, chosen = names[of], number[passes]
        passing = np.concatenate([np.arange(first[own], first[own + 1]) for own in chosen])
        counts = first[chosen + 1] - first[chosen]
        bundle = np.repeat(np.arange(len(chosen)), counts)
        meets = _meetings(bundle, line[passing], opposite, MEETINGS * len(every))
        if meets is None:
            return None
        bounds = np.concatenate([[0], np.cumsum(counts)])
        return cls(of, Runs(line[passing], bounds), passing, meets, opposite)


def longest_queue(schedule: Schedule, asks: np.ndarray) -> int:
    """How many messages that leave at once a rank sends another before it waits for its first one."""
    first = np.full(schedule.ranks, schedule.last_step + 1)
    np.minimum.at(first, schedule.dst, schedule.dst_wait)
    early = (schedule.step <= first[schedule.src]) & ~asks & (schedule.bytes > 0)
    _, (pair,) = distinct([_pair(schedule)[early]], schedule.ranks**2)
    return int(np.bincount(pair).max(initial=0))


def _pair(schedule: Schedule) -> np.ndarray:
    """A number for the ranks of every message."""
    return schedule.src * schedule.ranks + schedule.dst


def _meetings(bundle: np.ndarray, line: np.ndarray, opposite: np.ndarray, most: int) -> Runs | None:
    on = Runs.of(bundle, line, len(opposite))
    faced = opposite[line]
    others = [(bundle, line), (bundle[faced >= 0], faced[faced >= 0])]
    own, met = (np.concatenate([pair[number] for pair in others]) for number in (0, 1))
    counts = (on.first[1:] - on.first[:-1])[met]
    if counts.sum() > most:
        return None
    starts = np.repeat(on.first[met] - np.cumsum(counts) + counts, counts)
    other = on.rows[starts + np.arange(counts.sum())]
    bundles = int(bundle.max()) + 1
    own, other = np.divmod(np.unique(np.repeat(own, counts) * bundles + other), bundles)
    apart = own != other
    return Runs.of(other[apart], own[apart], bundles)
