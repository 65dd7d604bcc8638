"""Rounds in which all ranks do the same, on nodes that look the same from rank r and from rank r + g: turned round by
g, all is as it was. What rank r does rank r + g does at the same time, so g ranks are looked at in the place of all. A
message to rank t is taken as rank t mod g takes its own; lines that are turned into each other are one. It is exact.

    >>> Turned(np.repeat(np.arange(3), 2), 2).orbits(np.array([0, 0, 1, 1, 2, 2])).length  # nodes of ranks 0 to 5
    array([3, 3, 3])
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from commodel.hierarchy import Hierarchy
from commodel.models.pricing.repeating import symmetry
from commodel.patterns.repeated import Long, Rounds
from commodel.patterns.schedule import Schedule
from commodel.patterns.work import Work


@dataclass(frozen=True, eq=False)
class Orbits:
    """Of groups of nodes, by number: which of them are turned into each other, how many these are, and how many turns
    it takes to come to each of them from the first."""

    number: np.ndarray
    length: np.ndarray
    turns: np.ndarray

    @cached_property
    def lengths(self) -> np.ndarray:
        """By their numbers."""
        lengths = np.zeros(len(self.number), dtype=int)
        lengths[self.number[self.number >= 0]] = self.length[self.number >= 0]
        return lengths


class Turned:
    """Ranks on these nodes, turned round by `apart` ranks."""

    def __init__(self, node: np.ndarray, apart: int) -> None:
        self.node, self.apart, self.turns = node, apart, len(node) // apart

    def orbits(self, group: np.ndarray) -> Orbits:
        """Of groups, given by the number of each node's."""
        here = group[self.node]
        following = np.full(int(group.max(initial=0)) + 1, -1)
        following[here] = np.roll(here, -self.apart)
        number, length, turns = (np.full(len(following), -1) for _ in range(3))
        orbit = 0
        for first in here[: self.apart].tolist():
            if number[first] < 0:
                members = [first]
                while (after := int(following[members[-1]])) != first:
                    members.append(after)
                number[members], length[members], turns[members] = orbit, len(members), np.arange(len(members))
                orbit += 1
        return Orbits(number, length, turns)


@dataclass(frozen=True, eq=False)
class Few:
    """All that ranks 0 to g − 1 send: to whom it goes, and the same with the receivers' likes among these ranks."""

    sent: Schedule
    played: Schedule
    pair: np.ndarray  # of every message a number for the two ranks
    turned: Turned

    def finish(self, finish: np.ndarray) -> np.ndarray:
        """Of all ranks, from that of these."""
        return np.tile(finish, self.turned.turns)


def few(schedule: Long, levels: Hierarchy, links: Mapping[str, int], most: int) -> Few | None:
    """None where ranks differ, or these send more messages than `most`."""
    parts = schedule.parts
    if not all(isinstance(part, Rounds) and part.even for part in parts):
        return None
    node, ranks = np.asarray(schedule.node), schedule.ranks
    levels.distance(node, node)  # refused where they do not know one of the nodes
    groups = {"": np.arange(int(node.max()) + 1), **levels.groups}
    columns = [group[node] for group in groups.values()] + [node % count for count in links.values()]
    columns = [np.unique(column, return_inverse=True)[1] for column in columns]
    turn = int(np.lcm.reduce([part.turn for part in parts]))
    apart = symmetry(ranks, turn, columns, np.zeros(ranks, dtype=int))
    if apart == ranks or apart * sum(part.count for part in parts) > most:
        return None
    turned, start, messages, work = Turned(node, apart), 0, [], []
    for part in parts:
        number, source = np.divmod(np.arange(part.count * apart), apart)
        target, bytes = part.sent(number, source)
        messages.append((start + number, source, target, bytes))
        if part.combines:
            work.append(Work.reduce(start + number, target % apart, bytes))
        start += part.count
    step, source, target, bytes = (np.concatenate(column) for column in zip(*messages, strict=True))
    sent = Schedule.of(ranks, step, source, target, bytes).placed(node)
    played = Schedule.of(apart, step, source, target % apart, bytes, work=Work.joined(work))
    return Few(sent, played, source * ranks + target, turned)
