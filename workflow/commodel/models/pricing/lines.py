"""What the messages of a schedule share on a network of several levels: ports of nodes, ways out of groups and into
them, what joins two groups, and what joins all of them. Capacities are those of the values: `c_out.leaf`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from commodel.hierarchy import NODE, Hierarchy
from commodel.models import Array
from commodel.models.keys import key
from commodel.models.pricing.distances import Classes
from commodel.models.pricing.programs import distinct
from commodel.models.pricing.shares import Busy
from commodel.models.pricing.values import Values
from commodel.patterns.schedule import Schedule
from commodel.patterns.steps import Step

Use = tuple[Busy, Array, np.ndarray]  # of lines of a kind: seconds of every message, and which it uses
SLOWER = 1.001  # than alone
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
        for line in self._lines(schedule, Classes.of(schedule, self.levels)):
            name, count, of = line.name, line.count, np.full((len(line.of), rows), -1)
            of[:, line.rows] = line.of
            if count > MOST_PAIRS:  # too many to keep: those of this part
                of, count = np.where(of < 0, -1, np.unique(of, return_inverse=True)[1].reshape(of.shape)), of.size
                self.busy.pop(name, None)
            last = line.links * self.seconds(name, schedule.bytes)
            uses.append((self.busy.setdefault(name, Busy(count)), last, of))
        return Sharing(alone, asks, uses)

    def meet(self, schedule: Schedule, alone: Array) -> bool:
        """Whether any two messages share a line, or a line takes longer for one than it would last alone."""
        for line in self._lines(schedule, Classes.of(schedule, self.levels)):
            if len(np.unique(line.of)) < line.of.size:
                return True
            last = line.links * self.seconds(line.name, schedule.bytes[line.rows])
            if (last > alone[..., line.rows] * SLOWER).any():
                return True
        return False

    def passed_by(self, schedule: Schedule, classes: Classes) -> "Passed":
        lines, firsts, known = list(self._lines(schedule, classes)), {}, 0
        for line in lines:
            if line.space not in firsts:
                firsts[line.space] = known
                known += line.count
        rows = np.concatenate([np.zeros(0, dtype=int), *(own for line in lines for own in [line.rows] * len(line.of))])
        numbers = [firsts[line.space] + own for line in lines for own in line.of]
        if not numbers:
            return Passed(self, lines, rows, rows, rows, rows)
        passed, numbers = distinct(numbers, known)
        opposite = np.full(len(passed), -1)
        for line in lines if "back" in self.values else ():
            first = firsts[line.space]
            own = slice(*np.searchsorted(passed, [first, first + line.count]))
            if line.opposite:
                other = first + line.opposite(passed[own] - first)
                place = np.minimum(np.searchsorted(passed, other), len(passed) - 1)
                opposite[own] = np.where(passed[place] == other, place, -1)
        order = np.argsort(rows, kind="stable")
        return Passed(self, lines, rows[order], np.concatenate(numbers)[order], order, opposite)

    def seconds(self, name: str, bytes: np.ndarray) -> Array:
        """How long messages have a line to themselves."""
        return self.values.up_to_last(name, bytes) * bytes

    def _lines(self, schedule: Schedule, classes: Classes) -> Iterator["Kind"]:
        """Of each kind that has a capacity those that messages pass."""
        src, dst, apart = schedule.node[schedule.src], schedule.node[schedule.dst], classes.apart
        nodes = self.levels.nodes or int(schedule.node.max(initial=0)) + 1
        groups = {NODE: np.arange(nodes), **self.levels.groups}
        around = [*list(groups.values())[1:], np.zeros(nodes, dtype=int)]
        for number, (level, group) in enumerate(groups.items()):
            outer, half, count = around[number], level in self.half, int(group.max(initial=0)) + 1
            links = int(self.links.get(level, 1))
            out, into = partial(_out, group, links), partial(_into, group, links, 0 if half else count)
            pair = partial(_either if half else _from_to, group, count)
            split = not half and key("c_in", level) in self.values.functions
            ports, turned = 2 * count * links, None if half else partial(_other_way, count * links)
            back = None if half else partial(_back, count)
            for kind, using, ways, most, several, opposite in (
                ("out", range(number + 1, len(groups) + 1), (out,) if split else (out, into), ports, links, turned),
                ("in", range(number + 1, len(groups) + 1), (into,) if split else (), ports, links, turned),
                ("pair", range(number + 1, number + 2), (pair,), count**2, 1, back),
                (
                    "all",
                    range(number + 1, number + 2),
                    (partial(_from, outer),),
                    int(outer.max(initial=0)) + 1,
                    1,
                    None,
                ),
                ("inside", range(number, number + 1), (partial(_from, group),), count, 1, None),
            ):
                name, space = key(f"c_{kind}", level), key("c_out" if kind == "in" else f"c_{kind}", level)
                if ways and name in self.values.functions:
                    rows = np.flatnonzero((apart >= using.start) & (apart < using.stop))
                    source, target = src[rows], dst[rows]
                    of = np.stack([way(source, target) for way in ways])
                    yield Kind(name, rows, of, most, several, space, opposite)


def _out(group: np.ndarray, links: int, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    return group[source] * links + (target % links if links > 1 else 0)


def _into(group: np.ndarray, links: int, first: int, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    return (group[target] + first) * links + (target % links if links > 1 else 0)


def _from_to(group: np.ndarray, count: int, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    return group[source] * count + group[target]


def _either(group: np.ndarray, count: int, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    one, two = group[source], group[target]
    return np.minimum(one, two) * count + np.maximum(one, two)


def _from(group: np.ndarray, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    return group[source]


def _other_way(half: int, line: np.ndarray) -> np.ndarray:
    return (line + half) % (2 * half)


def _back(count: int, pair: np.ndarray) -> np.ndarray:
    return pair % count * count + pair // count


@dataclass(frozen=True, eq=False)
class Kind:
    """Lines of one kind."""

    name: str  # of their capacity
    rows: np.ndarray  # messages that pass them
    of: np.ndarray  # which of them each of these messages passes: a row for each that it does
    count: int  # of lines
    links: int  # of how many each is one: the destination tells which
    space: str  # within which they are numbered
    opposite: Callable[[np.ndarray], np.ndarray] | None  # the lines that lead the other way


@dataclass(frozen=True, eq=False)
class Passed:
    """What messages pass, whatever their sizes: `line[i]` is one that `message[i]` passes, in the order of messages."""

    lines: Lines
    kinds: Sequence[Kind]
    message: np.ndarray
    line: np.ndarray
    order: np.ndarray
    opposite: np.ndarray  # of each line the one that leads the other way, -1: nothing of it is held up there

    def seconds(self, bytes: np.ndarray) -> Array:
        """For how long each line would be passed, were nobody else on it: (draws, uses)."""
        lead = self.lines.values.lead
        columns = [np.zeros((*lead, 0))]
        for kind in self.kinds:
            last = kind.links * self.lines.seconds(kind.name, bytes[kind.rows])
            columns += [np.broadcast_to(last, (*lead, len(kind.rows)))] * len(kind.of)
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
