"""What serves messages moment by moment: lines that they share, and bundles of them. Where something comes back for
each message, as acknowledgements do, it takes `back` of that message's share of the line that leads the other way,
and goes there no faster than all others do: so that on both lines everybody gets the same, what the fuller of them
leaves each.
"""

from heapq import heappop, heappush

import numpy as np

from commodel.models.pricing.programs import Program

LEAST = 1e-30  # s: what no seconds at all are taken for
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
        return max(LEAST, *(line.load * seconds for line, seconds in self.lines))


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
