"""How the nodes that a message goes between tell which lines it passes."""

from dataclasses import dataclass

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
class Way:
    """By one group, or by two."""

    one: Groups
    other: Groups | None = None
    either: bool = False  # there and back it is the same line
    back: bool = False  # lines of their own beside those of another way

    @property
    def count(self) -> int:
        return self.one.count * (self.other.count if self.other else 1)

    def lines(self, nodes: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """The number of the line that each message passes, by its source's node and its target's."""
        line = self.one.of(nodes)
        if self.other:
            other = self.other.of(nodes)
            if self.either:
                line, other = np.minimum(line, other), np.maximum(line, other)
            line = line * self.other.count + other
        return line + self.count if self.back else line

    def turned(self, nodes: tuple[np.ndarray, np.ndarray], turned: Turned) -> tuple[np.ndarray, np.ndarray, int]:
        """The same where lines that are turned into each other are one; how many of all messages that are turned into
        one are on a line; and of how many lines there may be."""
        group, orbits = self.one.of(nodes), turned.orbits(self.one.group)
        line, length, count = orbits.number[group], orbits.length[group], int(orbits.number.max()) + 1
        if self.other is None:
            times = turned.turns // length
        else:
            others, other = turned.orbits(self.other.group), self.other.of(nodes)
            common = np.gcd(length, others.length[other])
            ahead = (others.turns[other] - orbits.turns[group]) % common
            number, most = others.number[other], int(others.number.max()) + 1
            there = (line * most + number) * turned.turns + ahead
            back = (number * most + line) * turned.turns + -ahead % common
            times = turned.turns * common // (length * others.length[other])
            times = np.where(self.either & (there == back), 2 * times, times)
            line = np.minimum(there, back) if self.either else there
            count *= most * turned.turns
        return (line + count if self.back else line), times, 2 * count
