"""Replay in the order of time with link sharing (`replay_in_time`, `replay_parts`): operations of
all ranks as columns for the C library `native/replay`, which simulates them event by event.

All messages on a link at a time get equal shares of it, or shares in proportion to their `weights`.
A message leaves when every one of its links has served it, and no sooner than without sharing.
Steps, posts and waits are those of `replay`. If a message causes traffic in the opposite direction,
such as acknowledgements, this takes `opposite_share` of the message's share of the opposite link.
On both links, all messages get the same: the smaller of the shares that the two links allow.

Example: two messages of 3 s, the second 1 s later. They share the link from 2 s on. The first
leaves at 6 s; the second then has the link to itself and leaves at 7 s.

    >>> from commodel.patterns.schedule import Schedule
    >>> schedule = Schedule.of(3, 0, [0, 0], [1, 2], 8)
    >>> program = RankPrograms.of(schedule, np.zeros(2, dtype=bool), (np.arange(2), np.zeros(2)))
    >>> replay_in_time(program, Traffic(1.0, 0.0, np.zeros(2), np.full(2, 3.0), np.full(2, 3.0), np.zeros(0)))
    array([2., 6., 7.])

In a pipeline, such as a chain of ranks that pass on segments, a hundred messages of one rank to
another may queue on one link. Messages of equal size and links form a bundle. All of a bundle
progress at the rate of its slowest link, and other links do not serve them sooner meanwhile. The
simulation of bundles takes as long as that of links. It would take longer for single messages with
links of their own, for which the result is nearly the same.
"""

import ctypes
from collections.abc import Callable, Hashable, Sequence
from ctypes import CFUNCTYPE, POINTER, Structure, c_double, c_int, c_int64, c_void_p
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from commodel.errors import UserError
from commodel.models import Array
from commodel.models.evaluation.native_library import (
    NativeArrays,
    NativeRuns,
    check_finished,
    find_address,
    load_library,
    make_int64_fields,
    make_pointer_fields,
)
from commodel.patterns.schedule import Schedule
from commodel.progress import report_step


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """Rows grouped by a number: those of number n are `rows[first[n]:first[n + 1]]`."""

    rows: np.ndarray
    first: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, group: np.ndarray, groups: int) -> "GroupedRows":
        first = np.concatenate(
            [np.zeros(1, dtype=int), np.cumsum(np.bincount(group, minlength=groups))]
        )
        return cls(rows[find_sort_order(group)], first)


def find_sort_order(numbers: np.ndarray) -> np.ndarray | slice:
    """Return a stable sort order of numbers. numpy sorts 16-bit integers by radix, in linear
    time."""
    if (numbers[1:] >= numbers[:-1]).all():
        return slice(None)
    return np.argsort(
        numbers.astype(np.int16) if numbers.max() < 1 << 15 else numbers, kind="stable"
    )


def number_distinct(keys: Sequence[np.ndarray], count: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the distinct numbers below `count` in some columns, in order, and their indices in
    each column."""
    if count > (1 << 20) + 16 * sum(map(len, keys)):
        occurring = np.unique(np.concatenate(keys))
        return occurring, [np.searchsorted(occurring, key) for key in keys]
    occurs = np.zeros(count, dtype=bool)  # faster than sorting
    for key in keys:
        occurs[key] = True
    number = np.cumsum(occurs) - 1
    return np.flatnonzero(occurs), [number[key] for key in keys]


@dataclass(frozen=True, eq=False)
class RankPrograms:
    """The operations of all ranks at one size.

    Only steps in which a rank has an operation are numbered. Those of a rank are `steps[rank]` to
    `steps[rank + 1]`. Fields have the names of the C structure in native/replay/parts.h.
    """

    schedule: Schedule
    steps: np.ndarray
    work_steps: np.ndarray  # the step of each row of work
    send_posts: GroupedRows  # by step: messages that are sent
    receive_posts: GroupedRows  # rendezvous messages whose receive is posted
    receive_waits: GroupedRows  # messages for which their receivers wait
    send_waits: GroupedRows  # messages for which their senders wait
    rendezvous: np.ndarray  # whether each message waits for its receiver
    links_passed: GroupedRows  # the links of each message, or its bundle
    use_order: np.ndarray | slice  # index of each of these in `uses`
    opposite: np.ndarray  # of each link the one of the opposite direction, or −1
    bundles: "Bundles | None"  # bundles of messages, simulated in place of links
    # whether messages of a pair of ranks are sent one after the other, and some pair has several
    one_at_a_time: bool
    pair: np.ndarray  # if one at a time: the number of each message's pair of ranks

    @classmethod
    def of(
        cls,
        schedule: Schedule,
        rendezvous: np.ndarray,
        uses: tuple[np.ndarray, ArrayLike],
        one_at_a_time: bool = False,
        waits: np.ndarray | None = None,
        opposite: np.ndarray | None = None,
        pair: np.ndarray | None = None,
        bundles: "Bundles | None" = None,
    ) -> "RankPrograms":
        """Return the program of a schedule.

        `rendezvous`: which messages wait for their receivers. `waits`: for which of these the
        senders wait until delivery (None: for all). `uses`: messages, and the number of a link that
        each passes. `opposite`: of each link the one of the opposite direction, if the two slow
        each other down (None: none do). `pair`: of every message a number for its ranks, if the
        ranks of the schedule represent others. `bundles`: messages that are simulated together.
        """
        span, work = schedule.last_step + 1, schedule.work
        all_rows = np.arange(len(schedule.src))
        rendezvous_rows = np.flatnonzero(rendezvous)
        waited_rows = np.flatnonzero(rendezvous if waits is None else rendezvous & waits)
        operations = [
            (schedule.src, schedule.step, all_rows),
            (schedule.dst, schedule.dst_step, rendezvous_rows),
        ]
        operations += [
            (schedule.dst, schedule.dst_wait, all_rows),
            (schedule.src, schedule.src_wait, waited_rows),
        ]
        keys = [rank[rows] * span + step[rows] for rank, step, rows in operations] + [
            work.rank * span + work.step
        ]
        steps, numbers = number_distinct(keys, schedule.ranks * span)
        send_posts, receive_posts, receive_waits, send_waits = (
            GroupedRows.of(rows, group, len(steps))
            for (*_, rows), group in zip(operations, numbers, strict=False)
        )
        message, link = uses[0], np.asarray(uses[1], dtype=np.int64)
        use_order = find_sort_order(message)
        links_passed = (
            GroupedRows.of(link, message, len(all_rows))
            if bundles is None
            else bundles.links_passed
        )
        bounds = np.searchsorted(steps, np.arange(schedule.ranks + 1) * span)
        opposite = np.full(int(link.max(initial=-1)) + 1, -1) if opposite is None else opposite
        pair_numbers = all_rows[:0]
        if one_at_a_time:
            number = _number_rank_pairs(schedule) if pair is None else pair
            pairs, (pair_numbers,) = number_distinct([number], int(number.max(initial=0)) + 1)
            one_at_a_time = len(pairs) < len(all_rows)
        return cls(
            schedule,
            bounds,
            numbers[-1],
            send_posts,
            receive_posts,
            receive_waits,
            send_waits,
            rendezvous,
            links_passed,
            use_order,
            opposite,
            bundles,
            one_at_a_time,
            pair_numbers,
        )

    @cached_property
    def native(self) -> "_NativeProgramOfArrays":
        return _NativeProgramOfArrays(self)

    @property
    def links(self) -> int:
        """The number of links, or of bundles."""
        return len(self.opposite) if self.bundles is None else len(self.bundles.links.first) - 1


@dataclass(frozen=True, eq=False)
class Traffic:
    """Costs of one draw in seconds."""

    send: Array | float  # of each message, or of all
    receive: Array | float
    wire: Array
    unshared: Array  # time of a message with all links to itself
    uses: Array  # time of each link for each of its messages
    work: Array
    opposite_share: float = 0.0  # share of the opposite link that a message takes
    # of each message: its part of a shared link relative to others; None: equal
    weights: np.ndarray | None = None
    # from a message's begin until it reaches each of its links; None: 0
    offsets: Array | None = None


MAX_QUEUE = 8  # concurrent messages of one rank to another; longer queues are simulated in bundles
# pairs of bundles on a common link, per message; with more pairs, links are simulated
MAX_CONTENDERS = 16


@dataclass(frozen=True, eq=False)
class Bundles:
    """Messages of equal size that pass the same links."""

    bundle: np.ndarray  # of each message; −1: the message passes no link
    links: GroupedRows  # of each bundle
    use_order: np.ndarray  # index of each of these in `uses`
    # of each bundle: other bundles on one of its links, or on an opposite link
    contenders: GroupedRows
    opposite: np.ndarray  # of each link, or −1

    @property
    def links_passed(self) -> GroupedRows:
        """The bundle of each message."""
        with_links = np.flatnonzero(self.bundle >= 0)
        return GroupedRows.of(self.bundle[with_links], with_links, len(self.bundle))

    @classmethod
    def of_queues(
        cls,
        schedule: Schedule,
        rendezvous: np.ndarray,
        message: np.ndarray,
        link: np.ndarray,
        opposite: np.ndarray,
    ) -> "Bundles | None":
        """Return the bundles of a schedule; None if no queue of messages is long, or if too many
        bundles share links.

        `message` is sorted.
        """
        if not len(message) or find_longest_queue(schedule, rendezvous) <= MAX_QUEUE:
            return None
        all_rows = np.arange(len(schedule.src))
        first = np.searchsorted(message, np.arange(len(all_rows) + 1))
        sizes, passes_link = np.unique(schedule.bytes), first[1:] > first[:-1]
        size = np.searchsorted(sizes, schedule.bytes)
        key = 2 * (_number_rank_pairs(schedule) * len(sizes) + size) + passes_link
        keys, (kind,) = number_distinct([key], 2 * schedule.ranks**2 * len(sizes))
        first_message = np.empty(len(keys), dtype=int)  # of each kind
        first_message[kind[::-1]] = all_rows[::-1]
        has_links = keys % 2 > 0
        bundle_of_kind, chosen = (
            np.where(has_links, np.cumsum(has_links) - 1, -1),
            first_message[has_links],
        )
        use_order = np.concatenate(
            [np.arange(first[message], first[message + 1]) for message in chosen]
        )
        counts = first[chosen + 1] - first[chosen]
        bundle = np.repeat(np.arange(len(chosen)), counts)
        contenders = _find_contenders(
            bundle, link[use_order], opposite, MAX_CONTENDERS * len(all_rows)
        )
        if contenders is None:
            return None
        bounds = np.concatenate([[0], np.cumsum(counts)])
        return cls(
            bundle_of_kind[kind],
            GroupedRows(link[use_order], bounds),
            use_order,
            contenders,
            opposite,
        )


def find_longest_queue(schedule: Schedule, rendezvous: np.ndarray) -> int:
    """Return the largest number of eager messages that a rank sends to one other before it waits
    for its first receive."""
    first = np.full(schedule.ranks, schedule.last_step + 1)
    np.minimum.at(first, schedule.dst, schedule.dst_wait)
    early = (schedule.step <= first[schedule.src]) & ~rendezvous & (schedule.bytes > 0)
    _, (pair,) = number_distinct([_number_rank_pairs(schedule)[early]], schedule.ranks**2)
    return int(np.bincount(pair).max(initial=0))


def _number_rank_pairs(schedule: Schedule) -> np.ndarray:
    """Return a number for the ranks of every message."""
    return schedule.src * schedule.ranks + schedule.dst


def _find_contenders(
    bundle: np.ndarray, link: np.ndarray, opposite: np.ndarray, limit: int
) -> GroupedRows | None:
    """Return the bundles on a link of each bundle or on its opposite, or None if there are more
    than `limit` pairs."""
    bundles_on = GroupedRows.of(bundle, link, len(opposite))
    opposite_link = opposite[link]
    pairs = [(bundle, link), (bundle[opposite_link >= 0], opposite_link[opposite_link >= 0])]
    bundles_of_rows, link_of_rows = (
        np.concatenate([pair[number] for pair in pairs]) for number in (0, 1)
    )
    counts = (bundles_on.first[1:] - bundles_on.first[:-1])[link_of_rows]
    if counts.sum() > limit:
        return None
    starts = np.repeat(bundles_on.first[link_of_rows] - np.cumsum(counts) + counts, counts)
    contenders = bundles_on.rows[starts + np.arange(counts.sum())]
    bundle_count = int(bundle.max()) + 1
    bundles_of_rows, contenders = np.divmod(
        np.unique(np.repeat(bundles_of_rows, counts) * bundle_count + contenders), bundle_count
    )
    different = bundles_of_rows != contenders
    return GroupedRows.of(contenders[different], bundles_of_rows[different], bundle_count)


class _NativeProgram(Structure):
    _fields_ = [
        *make_int64_fields("ranks", "messages", "links", "one_at_a_time"),
        *make_pointer_fields("steps"),
        *(
            (name, NativeRuns)
            for name in ("send_posts", "receive_posts", "receive_waits", "send_waits")
        ),
        *make_pointer_fields("src", "dst", "pair", "rendezvous"),
        ("links_passed", NativeRuns),
        *make_pointer_fields("opposite"),
        *make_int64_fields("bundled_links"),
        *((name, NativeRuns) for name in ("bundles", "contenders")),
    ]


class _NativeCosts(Structure):
    _fields_ = [
        *make_pointer_fields(
            "send",
            "receive",
            "wire",
            "unshared",
            "seconds",
            "work",
            "bundles",
            "weights",
            "offsets",
        ),
        ("opposite_share", c_double),
    ]


_Feed = CFUNCTYPE(
    c_int,
    c_int64,
    c_int64,
    POINTER(c_int64),
    POINTER(POINTER(_NativeProgram)),
    POINTER(POINTER(_NativeCosts)),
)


def replay_in_time(program: RankPrograms, costs: Traffic) -> Array:
    """Return when each rank is done. Complexity: messages × links of each × log of the messages in
    flight."""
    columns, finish = _Columns(program, costs), np.zeros(program.schedule.ranks)
    code = load_library().commodel_in_time(
        ctypes.byref(columns.program), ctypes.byref(columns.costs), c_void_p(find_address(finish))
    )
    return check_finished(code, finish)


# numbers of messages have 32 bits: the part, then the row within it
MAX_NUMBERED_MESSAGES = 1 << 32


KEPT_PARTS = 16  # last parts of which the ranks' ends are known, as in native/replay/play.h
WINDOWS_NEEDED = (
    # successive windows of similar parts that take the same time; the similar parts that follow are
    # skipped
    3
)
STEADY_WINDOWS = 2, 4, 5  # parts of such a window
# largest difference of the times that windows add to the mean clock, relative to these times
STEADY_SHARE = 0.002
# largest growth of the distance between the first and the last clock, relative to these times
DRIFT_SHARE = 0.01


def replay_parts(
    load: Callable[[int], tuple[RankPrograms, Traffic]],
    keys: Sequence[Hashable],
    max_messages: int,
    ranks: int,
    kinds: Sequence[Hashable] | None = None,
) -> Array:
    """Return when each rank is done, of a program in parts, which have the same ranks and links.

    `keys` has one key for each part; successive parts with equal keys are equal. `load` returns the
    program and the costs of a part when the first rank reaches it. A part has at most
    `max_messages` messages. Successive parts of one kind are similar (None: the equal ones).

    If successive similar parts add the same time to the mean clock, and clocks do not drift apart,
    the similar parts that follow are assumed to do so as well. They are not simulated; their time
    is added.
    """
    kinds = keys if kinds is None else kinds
    bits = max_messages.bit_length()
    if len(keys) << bits > MAX_NUMBERED_MESSAGES:
        parts = f"{len(keys)} parts of up to {max_messages} messages"
        raise UserError(
            f"found a schedule in {parts}, wanted at most {MAX_NUMBERED_MESSAGES >> bits} parts"
        )
    remaining, remaining_kinds = list(keys), list(kinds)  # of the parts that are simulated
    resumed = 0  # the first part that was simulated after the last skipped ones
    loaded: dict[int, _Columns] = {}
    failures: list[Exception] = []
    finish, ends, skipped_seconds = np.zeros(ranks), np.zeros((KEPT_PARTS, ranks)), 0.0

    def feed(
        number: int,
        oldest: int,
        count: "ctypes._Pointer[Any]",
        program: "ctypes._Pointer[Any]",
        costs: "ctypes._Pointer[Any]",
    ) -> int:
        nonlocal skipped_seconds, resumed
        try:
            seconds = _find_steady_increase(ends, remaining_kinds, number, range(resumed, oldest))
            if seconds is not None:
                # One is left, since the program of a part is wanted. At most half of the parts up
                # to then are skipped at once, so that a slow change is noticed.
                finished = number + len(keys) - len(remaining)
                following = min(_count_equal(remaining_kinds, number) - 1, finished)
                del (
                    remaining[number : number + following],
                    remaining_kinds[number : number + following],
                )
                skipped_seconds += following * seconds
                resumed = number
            count[0] = len(remaining)
            before = loaded.get(number - 1)
            skipped_parts = len(keys) - len(remaining)
            report_step(f"piece {number + skipped_parts + 1} of {len(keys)}")
            is_equal = before is not None and remaining[number - 1] == remaining[number]
            loaded[number] = (
                before if before and is_equal else _Columns(*load(number + skipped_parts))
            )
            for earlier in [other for other in loaded if other < oldest]:
                del loaded[earlier]
        except Exception as error:  # an exception must not pass through C
            failures.append(error)
            return -1
        program[0], costs[0] = (
            ctypes.pointer(loaded[number].program),
            ctypes.pointer(loaded[number].costs),
        )
        return 0

    code = load_library().commodel_in_parts(
        _Feed(feed),
        c_int64(len(keys)),
        bits,
        c_void_p(finish.ctypes.data),
        c_void_p(ends.ctypes.data),
    )
    if failures:
        raise failures[0]
    return check_finished(code, finish) + skipped_seconds


def _count_equal(kinds: Sequence[Hashable], number: int) -> int:
    """Return how many successive kinds from this one on are equal."""
    return next(
        (at for at in range(1, len(kinds) - number) if kinds[number + at] != kinds[number]),
        len(kinds) - number,
    )


def _find_steady_increase(
    ends: Array, kinds: Sequence[Hashable], number: int, finished: range
) -> float | None:
    """Return the time that each part of the kind of part `number` adds to the clocks, or None if it
    is not steady or the last parts are of other kinds. `finished`: successive parts with which all
    ranks are done."""
    for parts in STEADY_WINDOWS:
        first = finished.stop - 1 - WINDOWS_NEEDED * parts
        if (
            first < finished.start
            or number - first >= KEPT_PARTS
            or _count_equal(kinds, first) <= number - first
        ):
            return None
        clocks = ends[np.arange(first, finished.stop, parts) % KEPT_PARTS]
        mean = clocks.mean(axis=1)
        drift = np.ptp(clocks[-1]) - np.ptp(clocks[0])
        is_steady = np.ptp(np.diff(mean)) <= STEADY_SHARE * (mean[1] - mean[0])
        if is_steady and abs(drift) <= DRIFT_SHARE * (mean[-1] - mean[0]):
            return float(mean[-1] - mean[0]) / (WINDOWS_NEEDED * parts)
    return None


class _Columns:
    """A program and its costs as the C structures of native/replay/parts.h, and the arrays to which
    these point."""

    def __init__(self, program: RankPrograms, costs: Traffic) -> None:
        schedule, bundles = program.schedule, program.bundles
        seconds: dict[str, np.ndarray] = {"wire": costs.wire, "unshared": costs.unshared}
        seconds["send"] = _of_each(costs.send, schedule.src)
        seconds["receive"] = _of_each(costs.receive, schedule.src)
        seconds["work"] = np.bincount(
            program.work_steps, costs.work, minlength=len(program.send_posts.first) - 1
        )
        if bundles is None:
            seconds["seconds"] = costs.uses[program.use_order]
        else:
            seconds["seconds"] = np.ones(len(program.links_passed.rows))
            seconds["bundles"] = costs.uses[bundles.use_order]
        if costs.weights is not None:
            seconds["weights"] = costs.weights
        if costs.offsets is not None and bundles is None:
            seconds["offsets"] = costs.offsets[program.use_order]
        # One array for all columns: the address of each would take longer than a short schedule.
        self._seconds = np.concatenate(list(seconds.values()), dtype=np.float64)
        self._native_program = program.native
        self.program = self._native_program.structure
        self.costs = _NativeCosts(opposite_share=costs.opposite_share)
        address = find_address(self._seconds)
        for name, column in seconds.items():
            setattr(self.costs, name, address)
            address += column.size * self._seconds.itemsize


def _of_each(seconds: Array | float, messages: np.ndarray) -> np.ndarray:
    """Return the times of all messages."""
    if isinstance(seconds, np.ndarray) and seconds.shape == messages.shape:
        return seconds
    return np.broadcast_to(seconds, messages.shape)


class _NativeProgramOfArrays:
    """A program as a C structure, and the arrays to which it points. It is the same for all
    costs."""

    def __init__(self, program: RankPrograms) -> None:
        self._arrays, schedule, bundles = NativeArrays(), program.schedule, program.bundles
        at = self._arrays.at
        runs = {
            name: getattr(program, name)
            for name in (
                "send_posts",
                "receive_posts",
                "receive_waits",
                "send_waits",
                "links_passed",
            )
        }
        if bundles is not None:
            runs |= {"bundles": bundles.links, "contenders": bundles.contenders}
        self.structure = _NativeProgram(
            ranks=schedule.ranks,
            messages=len(schedule.src),
            links=program.links,
            one_at_a_time=program.one_at_a_time,
            steps=at(program.steps),
            src=at(schedule.src),
            dst=at(schedule.dst),
            pair=at(program.pair) if program.one_at_a_time else None,
            rendezvous=at(program.rendezvous, np.uint8),
            opposite=at(program.opposite),
            bundled_links=0 if bundles is None else len(bundles.opposite),
            **{
                name: self._arrays.runs(grouped.rows, grouped.first)
                for name, grouped in runs.items()
            },
        )
