"""Replay in the order of time with link sharing: what all ranks of a schedule do, as columns, and the C library
`native/replay` that goes through them event by event (`in_time`, `in_parts`).

All messages on a line at a time get equal shares of it, also those that begin and end in between; a message is through
when it has had of each of its lines what it needs, and no sooner than it would be alone. Steps, posts and waits are
those of `replay`. Where something comes back for each message, as acknowledgements do, it takes `back` of that
message's share of the line that leads the other way, and goes there no faster than all others do: on both lines all
messages get the same, what the fuller of the two leaves each.

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

import ctypes
from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, POINTER, Structure, c_double, c_int, c_int64, c_void_p
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from commodel.models import Array
from commodel.models.evaluation.native_library import (
    NativeRuns,
    check_finished,
    int64_fields,
    library,
    pointer_fields,
)
from commodel.patterns.schedule import Schedule


@dataclass(frozen=True, eq=False)
class Runs:
    """Rows of each of some places, one place after the other: those of place p from `first[p]` to `first[p + 1]`."""

    rows: np.ndarray
    first: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, place: np.ndarray, places: int) -> "Runs":
        first = np.concatenate([np.zeros(1, dtype=int), np.cumsum(np.bincount(place, minlength=places))])
        return cls(rows[sort_order(place)], first)


def sort_order(numbers: np.ndarray) -> np.ndarray | slice:
    """What puts numbers in order, those that are alike as they were. numpy sorts short integers by radix, in linear
    time."""
    if (numbers[1:] >= numbers[:-1]).all():
        return slice(None)
    return np.argsort(numbers.astype(np.int16) if numbers.max() < 1 << 15 else numbers, kind="stable")


def number_distinct(keys: Sequence[np.ndarray], count: int) -> tuple[np.ndarray, list[np.ndarray]]:
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
        places, numbers = number_distinct(keys, schedule.ranks * span)
        runs = [Runs.of(rows, place, len(places)) for (*_, rows), place in zip(ends, numbers, strict=False)]
        message, line = uses[0], np.asarray(uses[1], dtype=np.int64)
        passing = sort_order(message)
        passed = Runs.of(line, message, len(every)) if bundles is None else bundles.passed
        bounds = np.searchsorted(places, np.arange(schedule.ranks + 1) * span)
        opposite = np.full(int(line.max(initial=-1)) + 1, -1) if opposite is None else opposite
        turns = every[:0]
        if in_turn:
            number = schedule.src * schedule.ranks + schedule.dst if pair is None else pair
            pairs, (turns,) = number_distinct([number], int(number.max(initial=0)) + 1)
            in_turn = len(pairs) < len(every)
        return cls(schedule, bounds, numbers[-1], *runs, asks, passed, passing, opposite, bundles, in_turn, turns)

    @property
    def lines(self) -> int:
        """How many there are of what messages pass: of bundles, if they are followed in these."""
        return len(self.opposite) if self.bundles is None else len(self.bundles.lines.first) - 1


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
        found, (of,) = number_distinct([alike], 2 * schedule.ranks**2 * len(sizes))
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
    _, (pair,) = number_distinct([_pair(schedule)[early]], schedule.ranks**2)
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


class _NativeProgram(Structure):
    _fields_ = [
        *int64_fields("ranks", "messages", "lines", "in_turn"),
        *pointer_fields("places"),
        *((name, NativeRuns) for name in ("posted", "opened", "taken", "finished")),
        *pointer_fields("src", "dst", "pair", "asks"),
        ("passed", NativeRuns),
        *pointer_fields("opposite"),
        *int64_fields("bundled"),
        *((name, NativeRuns) for name in ("bundles", "meets")),
    ]


class _NativeCosts(Structure):
    _fields_ = [
        *pointer_fields("send", "receive", "wire", "alone", "seconds", "work", "bundles"),
        ("back", c_double),
    ]


_Feed = CFUNCTYPE(c_int, c_int64, c_int64, POINTER(POINTER(_NativeProgram)), POINTER(POINTER(_NativeCosts)))


def in_time(program: Program, costs: Traffic) -> Array:
    """Return when each rank is done. Complexity: messages × lines that each passes, and the logarithm of how many go at
    a time."""
    columns, done = _Columns(program, costs), np.zeros(program.schedule.ranks)
    failed = library().commodel_in_time(
        ctypes.byref(columns.program), ctypes.byref(columns.costs), c_void_p(done.ctypes.data)
    )
    return check_finished(failed, done)


def in_parts(part: Callable[[int], tuple[Program, Traffic]], count: int, most: int, ranks: int) -> Array:
    """Return the same of a program in `count` parts of at most `most` messages each, which have the same ranks and
    lines; `part` is called when the first rank comes to it."""
    kept: dict[int, _Columns] = {}
    failures: list[Exception] = []

    def feed(number: int, oldest: int, program: object, costs: object) -> int:
        for gone in [known for known in kept if known < oldest]:
            del kept[gone]
        try:
            kept[number] = _Columns(*part(number))
        except Exception as error:  # none may pass through C
            failures.append(error)
            return -1
        program[0], costs[0] = ctypes.pointer(kept[number].program), ctypes.pointer(kept[number].costs)
        return 0

    done = np.zeros(ranks)
    failed = library().commodel_in_parts(_Feed(feed), c_int64(count), most.bit_length(), c_void_p(done.ctypes.data))
    if failures:
        raise failures[0]
    return check_finished(failed, done)


class _Columns:
    """A program and its costs as C takes them, and the arrays that they point to."""

    def __init__(self, program: Program, costs: Traffic) -> None:
        self._kept, schedule, bundles = [], program.schedule, program.bundles
        runs = {name: getattr(program, name) for name in ("posted", "opened", "taken", "finished", "passed")}
        seconds = {"wire": costs.wire, "alone": costs.alone}
        seconds |= {"send": np.broadcast_to(costs.send, schedule.src.shape)}
        seconds |= {"receive": np.broadcast_to(costs.receive, schedule.src.shape)}
        seconds["work"] = np.bincount(program.works, costs.work, minlength=len(program.posted.first) - 1)
        if bundles is None:
            seconds["seconds"] = costs.uses[program.passing]
        else:
            seconds["seconds"], seconds["bundles"] = np.ones(len(program.passed.rows)), costs.uses[bundles.passing]
            runs |= {"bundles": bundles.lines, "meets": bundles.meets}
        self.program = _NativeProgram(
            ranks=schedule.ranks,
            messages=len(schedule.src),
            lines=program.lines,
            in_turn=program.in_turn,
            places=self._at(program.places),
            src=self._at(schedule.src),
            dst=self._at(schedule.dst),
            pair=self._at(program.pair) if program.in_turn else None,
            asks=self._at(program.asks, np.uint8),
            opposite=self._at(program.opposite),
            bundled=0 if bundles is None else len(bundles.opposite),
            **{name: NativeRuns(self._at(own.rows), self._at(own.first)) for name, own in runs.items()},
        )
        self.costs = _NativeCosts(
            back=costs.back, **{name: self._at(column, np.float64) for name, column in seconds.items()}
        )

    def _at(self, column: np.ndarray, type: type = np.int64) -> int:
        self._kept.append(np.ascontiguousarray(column, dtype=type))
        return self._kept[-1].ctypes.data  # a typed pointer takes longer to make than a short schedule to price
