"""Plays a schedule on paper in the order of time, event by event, where what a message takes depends on what begins
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
from commodel.models.pricing.serving import Bundle, bundles
from commodel.patterns.schedule import Schedule


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
