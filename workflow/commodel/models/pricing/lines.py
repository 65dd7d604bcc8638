"""What the messages of a schedule share on a network of several levels: ports of nodes, ways out of groups and into
them, what joins two groups, and what joins all of them. Capacities are those of the values: `c_out.leaf`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from commodel.hierarchy import NODE, Hierarchy
from commodel.keys import key
from commodel.models import Array
from commodel.models.pricing.shares import Busy
from commodel.models.pricing.values import Values
from commodel.patterns.schedule import Ends, Schedule
from commodel.patterns.steps import Step

Use = tuple[Busy, Array, np.ndarray]  # of lines of a kind: seconds of every message, and which it uses
MOST_PAIRS = 1 << 20  # of groups that may meet


class Lines:
    """All lines of a network. They stay busy from one part of a schedule to the next."""

    def __init__(self, levels: Hierarchy, values: Values) -> None:
        self.levels, self.values = levels, values
        self.half = values.settings.get("half", ())
        self.busy: dict[str, Busy] = {}

    def shared_by(self, schedule: Schedule, alone: Array, asks: np.ndarray) -> "Sharing":
        """Of a schedule whose messages would each last so long alone; some ask before they begin."""
        uses = [(self.busy[name], self.values[name] * schedule.bytes, of) for name, of in self._lines(schedule)]
        return Sharing(alone, asks, uses)

    def _lines(self, schedule: Schedule) -> Iterator[tuple[str, np.ndarray]]:
        """Those of each kind that have a capacity: which of them every message uses, a row for each that it may use."""
        src, dst = schedule.node[schedule.src], schedule.node[schedule.dst]
        apart = self.levels.distance(src, dst)
        nodes = self.levels.nodes or int(schedule.node.max(initial=0)) + 1
        groups = {NODE: np.arange(nodes), **self.levels.groups}
        around = [*list(groups.values())[1:], np.zeros(nodes, dtype=int)]
        for number, (level, group) in enumerate(groups.items()):
            one, two, count = group[src], group[dst], int(group.max(initial=0)) + 1
            outer, half = around[number], level in self.half
            pair = np.minimum(one, two) * count + np.maximum(one, two) if half else one * count + two
            for kind, using, lines, most in (
                ("out", apart > number, [one, two + (0 if half else count)], 2 * count),
                ("pair", apart == number + 1, [pair], count**2),
                ("all", apart == number + 1, [outer[src]], int(outer.max(initial=0)) + 1),
                ("inside", apart == number, [one], count),
            ):
                name = key(f"c_{kind}", level)
                if name not in self.values:
                    continue
                if most > MOST_PAIRS:  # too many to keep: those of this part
                    lines, most = [np.unique(lines[0], return_inverse=True)[1]], len(apart)
                    self.busy.pop(name, None)
                self.busy.setdefault(name, Busy(most))
                yield name, np.where(using, np.stack(lines), -1)


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
            for way in range(len(of)):
                here = row == way
                end[..., place[here]] = np.maximum(end[..., place[here]], ends[..., here])
        return end


def bursts(schedule: Schedule, asks: np.ndarray) -> Schedule:
    """The same, with every message that does not ask posted as early as its sender gets to it: not before what it
    waits for and works at, but with what it sends before and after without waiting."""
    step, src = schedule.step, schedule.src
    if not len(step) or step[0] == step[-1]:
        return schedule
    span = schedule.last_step + 1
    waits = [schedule.dst * span + schedule.dst_wait, schedule.work.rank * span + schedule.work.step]
    waits += [(src * span + schedule.src_wait)[asks]]
    waited = np.searchsorted(np.unique(np.concatenate(waits)), src * span + step)
    burst = waited + src  # waits are counted rank after rank
    first = np.full(int(burst.max(initial=-1)) + 1, span)
    np.minimum.at(first, burst, step)
    early = np.where(asks, step, first[burst])
    if np.array_equal(early, step):
        return schedule
    rows = np.argsort(early, kind="stable")
    ends = Ends(np.where(asks, schedule.src_wait, early), schedule.dst_step, schedule.dst_wait).of_rows(rows)
    moved = {name: getattr(schedule, name)[..., rows] for name in ("src", "dst", "bytes")}
    return replace(schedule, step=early[rows], ends=ends, holds=None, **moved)
