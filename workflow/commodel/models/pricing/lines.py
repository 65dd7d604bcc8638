"""What the messages of a schedule share on a network of several levels: ports of nodes, ways out of groups and into
them, what joins two groups, and what joins all of them. Capacities are those of the values: `c_out.leaf`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from commodel.hierarchy import NODE, Hierarchy
from commodel.models import Array
from commodel.models.keys import key
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
        uses = []
        for name, of, count, links in self._lines(schedule):
            if count > MOST_PAIRS:  # too many to keep: those of this part
                of, count = np.where(of < 0, -1, np.unique(of, return_inverse=True)[1].reshape(of.shape)), of.size
                self.busy.pop(name, None)
            last = links * self._seconds(name, schedule.bytes)
            uses.append((self.busy.setdefault(name, Busy(count)), last, of))
        return Sharing(alone, asks, uses)

    def meet(self, schedule: Schedule, alone: Array) -> bool:
        """Whether any two messages share a line, or a line takes longer for one than it would last alone."""
        for name, of, _, links in self._lines(schedule):
            used = of[of >= 0]
            if len(np.unique(used)) < len(used):
                return True
            if (((links * self._seconds(name, schedule.bytes)) > alone * SLOWER) & (of >= 0).any(axis=0)).any():
                return True
        return False

    def passed_by(self, schedule: Schedule) -> tuple[np.ndarray, np.ndarray, Array]:
        """Messages, the line that each passes, and for how many seconds: (draws, uses)."""
        messages, lines, seconds, known = [], [], [np.zeros((*self.values.lead, 0))], 0
        for name, of, count, links in self._lines(schedule):
            use, message = np.nonzero(of >= 0)
            messages.append(message)
            lines.append(known + of[use, message])
            last = links * self._seconds(name, schedule.bytes[message])
            seconds.append(np.broadcast_to(last, (*self.values.lead, len(message))))
            known += count
        none = np.zeros(0, dtype=int)
        _, (numbers,) = distinct([np.concatenate([none, *lines])], known)
        return np.concatenate([none, *messages]), numbers, np.concatenate(seconds, axis=-1)

    def _seconds(self, name: str, bytes: np.ndarray) -> Array:
        """How long messages have a line to themselves."""
        return self.values.up_to_last(name, bytes) * bytes

    def _lines(self, schedule: Schedule) -> Iterator[tuple[str, np.ndarray, int, int]]:
        """Those of each kind that have a capacity: which of them every message uses, a row for each that it may use,
        how many there are, and of how many links each is one: the destination tells which."""
        src, dst = schedule.node[schedule.src], schedule.node[schedule.dst]
        apart = self.levels.distance(src, dst)
        nodes = self.levels.nodes or int(schedule.node.max(initial=0)) + 1
        groups = {NODE: np.arange(nodes), **self.levels.groups}
        around = [*list(groups.values())[1:], np.zeros(nodes, dtype=int)]
        for number, (level, group) in enumerate(groups.items()):
            source, target, count = group[src], group[dst], int(group.max(initial=0)) + 1
            outer, half = around[number], level in self.half
            pair = np.minimum(source, target) * count + np.maximum(source, target) if half else source * count + target
            split = not half and key("c_in", level) in self.values.functions
            links = int(self.links.get(level, 1))
            ways = [way * links + dst % links for way in (source, target + (0 if half else count))]
            for kind, using, lines, most in (
                ("out", apart > number, ways[:1] if split else ways, 2 * count * links),
                *((("in", apart > number, ways[1:], 2 * count * links),) if split else ()),
                ("pair", apart == number + 1, [pair], count**2),
                ("all", apart == number + 1, [outer[src]], int(outer.max(initial=0)) + 1),
                ("inside", apart == number, [source], count),
            ):
                name = key(f"c_{kind}", level)
                if name in self.values.functions:
                    yield name, np.where(using, np.stack(lines), -1), most, links if kind in ("out", "in") else 1


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
