"""Shared lines: the links that messages cross, the ways between nodes, and fair shares of their capacity.

How the nodes that a message goes between tell which lines it passes.

When messages that share lines are through them: the port of a node, all that leads out of a group, what joins two
groups. A line carries a byte in so many seconds, and all that are on it at the same time get equal shares of it. What
goes through several lines is as late as the latest of them makes it. Where a line is still busy with messages of
earlier steps, those of a later one wait for them, by the clock, whichever step they belong to.

    >>> Busy(1).through(np.array([0, 0]), np.array([0.0, 1.0]), np.array([3.0, 3.0]))  # 3 s each, over one line
    array([6., 6.])

What the messages of a schedule share on a network of several levels: ports of nodes, ways out of groups and into
them, what joins two groups, and what joins all of them. Capacities are those of the values: `c_out.leaf`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from commodel.hierarchy import NODE, Hierarchy
from commodel.models import Array
from commodel.models.evaluation.repeated_rounds import Rotation
from commodel.models.evaluation.time_order import number_distinct, sort_order
from commodel.models.evaluation.values import Classes, Values
from commodel.models.keys import key
from commodel.patterns.schedule import Schedule, Step

SOURCE, TARGET = 0, 1


@dataclass(frozen=True, eq=False)
class Groups:
    """Those of messages' sources or targets."""

    group: np.ndarray  # of each node
    end: int

    @property
    def count(self) -> int:
        return int(self.group.max(initial=0)) + 1

    def of(self, nodes: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        return self.group[nodes[self.end]]


@dataclass(frozen=True, eq=False)
class Numbered:
    """Lines of one way, numbered."""

    line: np.ndarray  # that each message passes
    times: np.ndarray | None  # as many of all messages are on it as of these; None: these are all
    count: int
    back: Callable[[np.ndarray], np.ndarray] | None = None  # from one group to another: the lines that lead back


@dataclass(frozen=True, eq=False)
class Way:
    """By the group at one end; by that and which of several links the destination tells; or by the groups at both
    ends."""

    one: Groups
    other: Groups | None = None
    half: bool = False  # there and back it is the same line
    into: bool = False  # a group: numbered after the lines out of it

    def _numbered(self, nodes: tuple[np.ndarray, np.ndarray], turned: Rotation | None) -> Numbered:
        """Those of messages, by their sources' nodes and their targets'; `turned`: those that are turned into each
        other are one."""
        if self.other is None:
            group = self.one.of(nodes)
            if turned is None:
                return Numbered(group, None, self.one.count)
            orbits = turned.orbits(self.one.group)
            return Numbered(orbits.number[group], turned.turns // orbits.length[group], self.one.count)
        return self._of_two(nodes) if turned is None else self._of_two_turned(nodes, turned)

    def _of_two(self, nodes: tuple[np.ndarray, np.ndarray]) -> Numbered:
        one, other, count = self.one.of(nodes), self.other.of(nodes), self.other.count
        if self.half and self._joins:
            one, other = np.minimum(one, other), np.maximum(one, other)
        line = one * count + other
        total = self.one.count * count
        return Numbered(line, None, total, lambda line: line % count * count + line // count)

    def _of_two_turned(self, nodes: tuple[np.ndarray, np.ndarray], turned: Rotation) -> Numbered:
        """By the orbits of both, and by how many turns the second is ahead of the first: what is told of that when both
        are turned, which is as much as the turns that bring back the one or the other leave."""
        one, other, count, turns = self.one.of(nodes), self.other.of(nodes), self.other.count, turned.turns
        ones, others = turned.orbits(self.one.group), turned.orbits(self.other.group)
        period = np.gcd(ones.length[one], others.length[other])
        ahead = (others.turns[other] - ones.turns[one]) % period
        line = (ones.number[one] * count + others.number[other]) * turns + ahead
        times = turns * period // (ones.length[one] * others.length[other])

        def back(line: np.ndarray) -> np.ndarray:
            pair, ahead = np.divmod(line, turns)
            one, other = np.divmod(pair, count)
            return (other * count + one) * turns + -ahead % np.gcd(ones.lengths[one], ones.lengths[other])

        if self.half and self._joins:
            times = np.where(back(line) == line, 2 * times, times)
            line = np.minimum(line, back(line))
        return Numbered(line, times, self.one.count * count * turns, back)

    @property
    def _joins(self) -> bool:
        """Two groups of a kind."""
        return self.other is not None and self.other.group is self.one.group

    def passed(self, nodes: tuple[np.ndarray, np.ndarray], turned: Rotation | None = None) -> Numbered:
        """The same; `back` of those that are held up by what comes back, and the lines into groups after the others."""
        passed = self._numbered(nodes, turned)
        if self.half or self._joins:
            return replace(passed, back=None if self.half else passed.back)
        count = passed.count
        line = passed.line + count if self.into else passed.line
        return Numbered(line, passed.times, 2 * count, lambda line: (line + count) % (2 * count))


class Busy:
    """From when until when each of some lines is busy, and with how many messages."""

    def __init__(self, count: int) -> None:
        self.since, self.until, self.several = (np.zeros(count) for _ in range(3))

    def through(self, number: np.ndarray, start: Array, last: Array) -> Array:
        if self.since.ndim < start.ndim:
            full = (*start.shape[:-1], len(self.since))
            self.since, self.until = np.zeros(full), np.zeros(full)
        users = np.bincount(number, minlength=self.since.shape[-1])
        lines = np.flatnonzero(users)
        counts, of = users[lines], (np.cumsum(users > 0) - 1)[number]
        # numpy sorts short integers by radix, in linear time
        order = np.argsort(of.astype(np.int16) if len(lines) < 1 << 15 else of, kind="stable")
        row, place = of[order], np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
        table = (*start.shape[:-1], len(lines), 1 + counts.max())  # a row for each line, what is still on it first
        begun, lasting = np.full(table, np.inf), np.zeros(table)
        begun[..., row, 1 + place], lasting[..., row, 1 + place] = start[..., order], last[..., order]
        since, until, several = self.since[..., lines], self.until[..., lines], self.several[lines]
        first = begun.min(axis=-1)
        meets = (first < until) & (first + lasting.sum(axis=-1) > since)
        begun[..., 0] = np.where(meets, np.maximum(first, since), np.inf)
        lasting[..., 0] = np.where(meets, until - np.maximum(first, since), 0.0)
        ends, end = _together(begun, lasting, several)
        later = meets | (first >= until)
        self.since[..., lines] = np.where(meets, np.minimum(first, since), np.where(later, first, since))
        self.until[..., lines] = np.where(later, end, until)
        self.several[lines] = counts
        through = np.empty_like(start)
        through[..., order] = ends[..., row, 1 + place]
        return through


def _together(begun: Array, lasting: Array, several: np.ndarray) -> tuple[Array, Array]:
    """When those of each row are through that share a line, and when it is free; at ∞ nobody begins. Whoever is on it
    gets as much: of those that begin together each is through when all others have had as much as it needs, or all they
    need. The first of a row is what `several` earlier messages have left. Nobody lasts longer than the line is busy."""
    if begun.shape[-1] == 2 and not lasting[..., 0].any():
        ends = begun + lasting
        return ends, ends[..., 1]
    order = np.argsort(begun, axis=-1, kind="stable")
    start, last = (np.take_along_axis(column, order, axis=-1) for column in (begun, lasting))
    work = np.cumsum(last, axis=-1)
    end = work + np.maximum.accumulate(start - work + last, axis=-1)  # one after the other
    idle = np.concatenate([start[..., 1:] > end[..., :-1], np.ones((*start.shape[:-1], 1), dtype=bool)], axis=-1)
    busy = np.empty_like(last)
    until = np.minimum.accumulate(np.where(idle, end, np.inf)[..., ::-1], axis=-1)[..., ::-1]
    np.put_along_axis(busy, order, until, axis=-1)
    own = lasting.copy()
    own[..., 0] = 0.0
    by_size, shares = np.argsort(own, axis=-1, kind="stable"), np.empty_like(own)
    sizes, rest = np.take_along_axis(own, by_size, axis=-1), np.arange(own.shape[-1])[::-1]
    np.put_along_axis(shares, by_size, np.cumsum(sizes, axis=-1) + rest * sizes, axis=-1)
    before = np.minimum(lasting[..., :1], several[:, None] * own)
    return np.minimum(busy, begun + shares + before), np.where(np.isfinite(end), end, -np.inf).max(axis=-1)


Use = tuple[Busy, Array, np.ndarray]  # of lines of a kind: seconds of every message, and which it uses
SLOWER_THAN_ALONE = 1.001  # than alone
MOST_PAIRS = 1 << 20  # of groups that may meet


class Lines:
    """All lines of a network. They stay busy from one part of a schedule to the next."""

    def __init__(self, levels: Hierarchy, values: Values) -> None:
        self.levels, self.values = levels, values
        self.half = values.settings.get("half_duplex", ())
        self.links = values.settings.get("links", {})
        self.busy: dict[str, Busy] = {}

    def shared_by(self, schedule: Schedule, alone: Array, asks: np.ndarray) -> "Sharing":
        """Of a schedule whose messages would each last so long alone; some ask before they begin."""
        uses, rows = [], len(schedule.src)
        for kind in self._lines(schedule, Classes.of(schedule, self.levels)):
            name, count, of = kind.name, kind.count, np.full((len(kind.line), rows), -1)
            of[:, kind.rows] = kind.line
            if count > MOST_PAIRS:  # too many to keep: those of this part
                of, count = np.where(of < 0, -1, np.unique(of, return_inverse=True)[1].reshape(of.shape)), of.size
                self.busy.pop(name, None)
            last = kind.links * seconds(name, schedule.bytes, self.values)
            uses.append((self.busy.setdefault(name, Busy(count)), last, of))
        return Sharing(alone, asks, uses)

    def meet(self, schedule: Schedule, alone: Array) -> bool:
        """Whether any two messages share a line, or a line takes longer for one than it would last alone."""
        for kind in self._lines(schedule, Classes.of(schedule, self.levels)):
            if len(np.unique(kind.line)) < kind.line.size:
                return True
            last = kind.links * seconds(kind.name, schedule.bytes[kind.rows], self.values)
            if (last > alone[..., kind.rows] * SLOWER_THAN_ALONE).any():
                return True
        return False

    def passed_by(
        self, schedule: Schedule, classes: Classes, turned: Rotation | None = None, part: bool = False
    ) -> "Passed":
        """`turned`: lines that are turned into each other are one. `part`: lines have the numbers that they have in all
        other parts of the schedule."""
        kinds = list(self._lines(schedule, classes, turned))
        firsts, known = _spaces(kinds)
        rows = np.concatenate([np.zeros(0, dtype=int), *(kind.rows for kind in kinds for _ in kind.line)])
        numbers = [firsts[kind.space] + own for kind in kinds for own in kind.line]
        if not numbers:
            return Passed(kinds, rows, rows, rows, rows)
        passed, numbers = (np.arange(known), numbers) if part else number_distinct(numbers, known)
        opposite = np.full(len(passed), -1)
        for kind in kinds if "back" in self.values else ():
            first = firsts[kind.space]
            own = slice(*np.searchsorted(passed, [first, first + kind.count]))
            if kind.opposite:
                other = first + kind.opposite(passed[own] - first)
                place = np.minimum(np.searchsorted(passed, other), len(passed) - 1)
                opposite[own] = np.where(passed[place] == other, place, -1)
        order = sort_order(rows)
        return Passed(kinds, rows[order], np.concatenate(numbers)[order], order, opposite)

    def count(self, schedule: Schedule) -> int:
        """How many lines there are numbers for."""
        return _spaces(self._lines(schedule, Classes.of(schedule, self.levels)))[1]

    def _lines(self, schedule: Schedule, classes: Classes, turned: Rotation | None = None) -> Iterator["Kind"]:
        """Of each kind that has a capacity those that messages pass."""
        src, dst, apart = schedule.node[schedule.src], schedule.node[schedule.dst], classes.apart
        nodes = self.levels.nodes or int(schedule.node.max(initial=0)) + 1
        groups = {NODE: np.arange(nodes), **self.levels.groups}
        around = [*list(groups.values())[1:], np.zeros(nodes, dtype=int)]
        for number, (level, group) in enumerate(groups.items()):
            half, links = level in self.half, int(self.links.get(level, 1))
            split = not half and key("c_in", level) in self.values.functions
            source, target = Groups(group, SOURCE), Groups(group, TARGET)
            link = Groups(np.arange(nodes) % links, TARGET) if links > 1 else None
            out, into = Way(source, link, half), Way(target, link, half, into=True)
            leaving, crossing = range(number + 1, len(groups) + 1), range(number + 1, number + 2)
            for kind, using, ways, several in (
                ("out", leaving, (out,) if split else (out, into), links),
                ("in", leaving, (into,) if split else (), links),
                ("pair", crossing, (Way(source, target, half),), 1),
                ("all", crossing, (Way(Groups(around[number], SOURCE), half=True),), 1),
                ("inside", range(number, number + 1), (Way(source, half=True),), 1),
            ):
                if ways and (name := key(f"c_{kind}", level)) in self.values.functions:
                    space = key("c_out", level) if kind == "in" else name
                    rows = np.flatnonzero((apart >= using.start) & (apart < using.stop))
                    yield Kind.of((name, space), rows, ways, (src[rows], dst[rows]), several, turned)


def _spaces(kinds: Iterable["Kind"]) -> tuple[dict[str, int], int]:
    """The first number of each space, and the one beyond the last."""
    firsts, known = {}, 0
    for kind in kinds:
        if kind.space not in firsts:
            firsts[kind.space] = known
            known += kind.count
    return firsts, known


def seconds(name: str, bytes: np.ndarray, values: Values) -> Array:
    """How long messages have a line of some capacity to themselves."""
    return values.up_to_last(name, bytes) * bytes


@dataclass(frozen=True, eq=False)
class Kind:
    """Lines of one kind."""

    name: str  # of their capacity
    rows: np.ndarray  # messages that pass them
    line: np.ndarray  # which of them each of these messages passes: a row for each that it does
    count: int  # of lines, at most
    links: int  # of how many each is one: the destination tells which
    times: Sequence[np.ndarray | None]  # as many messages pass it as one; None: one
    space: str  # within which they are numbered
    opposite: Callable[[np.ndarray], np.ndarray] | None  # the lines that lead the other way

    @classmethod
    def of(
        cls,
        names: tuple[str, str],
        rows: np.ndarray,
        ways: Sequence[Way],
        nodes: tuple[np.ndarray, np.ndarray],
        links: int,
        turned: Rotation | None,
    ) -> "Kind":
        passed = [way.passed(nodes, turned) for way in ways]
        lines, times = np.stack([own.line for own in passed]), [own.times for own in passed]
        return cls(names[0], rows, lines, passed[0].count, links, times, names[1], passed[0].back)


@dataclass(frozen=True, eq=False)
class Passed:
    """What messages pass, whatever their sizes: `line[i]` is one that `message[i]` passes, in the order of messages."""

    kinds: Sequence[Kind]
    message: np.ndarray
    line: np.ndarray
    order: np.ndarray | slice
    opposite: np.ndarray  # of each line the one that leads the other way, -1: nothing of it is held up there

    def seconds(self, bytes: np.ndarray, values: Values) -> Array:
        """For how long each line would be passed, were nobody else on it: (draws, uses)."""
        lead = values.lead
        columns = [np.zeros((*lead, 0))]
        for kind in self.kinds:
            last = kind.links * seconds(kind.name, bytes[kind.rows], values)
            alike = (last if times is None else times * last for times in kind.times)
            columns += [np.broadcast_to(own, (*lead, len(kind.rows))) for own in alike]
        return np.concatenate(columns, axis=-1)[..., self.order]


@dataclass(frozen=True, eq=False)
class Sharing:
    """What the messages of a schedule share, asked by `replay`."""

    alone: Array
    asks: np.ndarray
    uses: Sequence[Use]

    def rows(self, step: Step) -> Iterator[np.ndarray]:
        """A message begins when it is posted; one that asks, when its receiver has posted it, too."""
        sent = np.arange(step.sent.start, step.sent.stop)
        met = np.arange(step.met.start, step.met.stop) if isinstance(step.met, slice) else step.met
        rows = np.concatenate([sent[~self.asks[sent]], met[self.asks[met]]])
        if len(rows):
            yield rows

    def ends(self, rows: np.ndarray, start: Array) -> Array:
        end = start + self.alone[..., rows]
        for busy, seconds, columns in self.uses:
            row, place = np.nonzero((of := columns[:, rows]) >= 0)
            if not len(place):
                continue
            last = np.broadcast_to(seconds[..., rows], start.shape)[..., place]
            ends = busy.through(of[row, place], start[..., place], last)
            for use in range(len(of)):
                here = row == use
                end[..., place[here]] = np.maximum(end[..., place[here]], ends[..., here])
        return end
