"""What the messages of a schedule share on a network of several levels: ports of nodes, ways out of groups and into
them, what joins two groups, and what joins all of them. Capacities are those of the values: `c_out.leaf`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from commodel.hierarchy import NODE, Hierarchy
from commodel.models import Array
from commodel.models.keys import key
from commodel.models.pricing.distances import Classes
from commodel.models.pricing.programs import distinct, in_order
from commodel.models.pricing.shares import Busy
from commodel.models.pricing.turning import Turned
from commodel.models.pricing.values import Values
from commodel.models.pricing.ways import SOURCE, TARGET, Groups, Way
from commodel.patterns.schedule import Schedule
from commodel.patterns.steps import Step

Use = tuple[Busy, Array, np.ndarray]  # of lines of a kind: seconds of every message, and which it uses
SLOWER_THAN_ALONE = 1.001  # than alone
MOST_PAIRS = 1 << 20  # of groups that may meet


class Lines:
    """All lines of a network. They stay busy from one part of a schedule to the next."""

    def __init__(self, levels: Hierarchy, values: Values) -> None:
        self.levels, self.values = levels, values
        self.half = values.settings.get("half", ())
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
        self, schedule: Schedule, classes: Classes, turned: Turned | None = None, part: bool = False
    ) -> "Passed":
        """`turned`: lines that are turned into each other are one. `part`: lines have the numbers that they have in all
        other parts of the schedule."""
        kinds = list(self._lines(schedule, classes, turned))
        firsts, known = _spaces(kinds)
        rows = np.concatenate([np.zeros(0, dtype=int), *(kind.rows for kind in kinds for _ in kind.line)])
        numbers = [firsts[kind.space] + own for kind in kinds for own in kind.line]
        if not numbers:
            return Passed(kinds, rows, rows, rows, rows)
        passed, numbers = (np.arange(known), numbers) if part else distinct(numbers, known)
        opposite = np.full(len(passed), -1)
        for kind in kinds if "back" in self.values else ():
            first = firsts[kind.space]
            own = slice(*np.searchsorted(passed, [first, first + kind.count]))
            if kind.opposite:
                other = first + kind.opposite(passed[own] - first)
                place = np.minimum(np.searchsorted(passed, other), len(passed) - 1)
                opposite[own] = np.where(passed[place] == other, place, -1)
        order = in_order(rows)
        return Passed(kinds, rows[order], np.concatenate(numbers)[order], order, opposite)

    def count(self, schedule: Schedule) -> int:
        """How many lines there are numbers for."""
        return _spaces(self._lines(schedule, Classes.of(schedule, self.levels)))[1]

    def _lines(self, schedule: Schedule, classes: Classes, turned: Turned | None = None) -> Iterator["Kind"]:
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
        turned: Turned | None,
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
