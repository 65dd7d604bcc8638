"""How the nodes that a message goes between tell which lines it passes."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from commodel.models.pricing.turning import Turned

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

    def _numbered(self, nodes: tuple[np.ndarray, np.ndarray], turned: Turned | None) -> Numbered:
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

    def _of_two_turned(self, nodes: tuple[np.ndarray, np.ndarray], turned: Turned) -> Numbered:
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

    def passed(self, nodes: tuple[np.ndarray, np.ndarray], turned: Turned | None = None) -> Numbered:
        """The same; `back` of those that are held up by what comes back, and the lines into groups after the others."""
        passed = self._numbered(nodes, turned)
        if self.half or self._joins:
            return replace(passed, back=None if self.half else passed.back)
        count = passed.count
        line = passed.line + count if self.into else passed.line
        return Numbered(line, passed.times, 2 * count, lambda line: (line + count) % (2 * count))
