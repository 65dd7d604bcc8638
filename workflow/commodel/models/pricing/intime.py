"""Plays a schedule on paper in the order of time, event by event, where what a message takes depends on what begins
while it is on its way. All on a line at a time get equal shares of it, also those that begin and end in between; a
message is through when it has had of each of its lines what it needs, and no sooner than it would be alone. Steps,
posts and waits are those of `replay`. What `commodel build prices` compiles does the same, to the bit, much sooner.

Where something comes back for each message, as acknowledgements do, it takes `back` of that message's share of the line
that leads the other way, and goes there no faster than all others do: so that on both lines everybody gets the same,
what the fuller of them leaves each. Of messages that are followed in bundles each goes as fast as the slowest of its
lines lets it at a moment; others are served by each of their lines for itself, which is quicker to work out.

Two messages of 3 s, the second 1 s later. They share the line from 2 s on; the first is through at 6 s, the other has
the line for itself again and is through at 7 s:

    >>> from commodel.patterns.schedule import Schedule
    >>> program = Program.of(Schedule.of(3, 0, [0, 0], [1, 2], 8), np.zeros(2, dtype=bool), (np.arange(2), np.zeros(2)))
    >>> in_time(program, Traffic(1.0, 0.0, np.zeros(2), np.full(2, 3.0), np.full(2, 3.0), np.zeros(0)))
    array([2., 6., 7.])
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from commodel.errors import UserError
from commodel.models import Array
from commodel.models.pricing import compiled
from commodel.models.pricing.programs import Program
from commodel.patterns.schedule import Schedule

LEAST = 1e-30  # s: what no seconds at all are taken for
ROUNDING = 1e-12  # of what a line has served: who is through by as much later is through at the same time


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
    play = compiled.in_time if compiled.library() else in_python
    return _ended(play(program, costs, *_by_place(program, costs)))


def in_parts(part: Callable[[int], tuple[Program, Traffic]], count: int, most: int, ranks: int) -> Array:
    """The same of a program in so many parts of at most so many messages, which come when they are wanted, and have
    the same ranks and lines. Only where it is compiled."""

    def given(number: int) -> tuple[Program, Traffic, Array, Array]:
        program, costs = part(number)
        return program, costs, *_by_place(program, costs)

    return _ended(compiled.in_parts(given, count, most, ranks))


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
        return max(LEAST, *(line.load * seconds for line, seconds in self.lines))


def _bundles(program: Program, costs: Traffic) -> list[Bundle]:
    """Where messages are not followed in bundles, a line has one each."""
    lines = [Line(costs.back) for _ in program.opposite]
    for line, opposite in zip(lines, program.opposite.tolist(), strict=True):
        line.opposite = lines[opposite] if opposite >= 0 else None
    if program.bundles is None:
        bundles = [Bundle([(line, 1.0)]) for line in lines]
        for number, opposite in enumerate(program.opposite.tolist()):
            bundles[number].meets = [bundles[opposite]] if opposite not in (-1, number) else []
        return bundles
    seconds = iter(costs.uses[program.bundles.passing].tolist())
    bundles = [Bundle([(lines[line], next(seconds)) for line in own]) for own in program.bundles.lines.lists]
    for bundle, others in zip(bundles, program.bundles.meets.lists, strict=True):
        bundle.meets = [bundles[other] for other in others]
    return bundles


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
        bundles, seconds = _bundles(program, costs), iter(uses.tolist())
        for passed, numbers in zip(self.passed, program.passed.lists, strict=True):
            passed += [(bundles[number], lasting) for number in numbers if (lasting := next(seconds))]

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
