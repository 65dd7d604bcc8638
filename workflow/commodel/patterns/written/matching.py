"""Which receive takes which send: those of a pair and tag in the order in which they are posted. Tasks are gone through
in rounds: in each all that nothing stands before any more, in the order of the file. So the order is that of the
simulator as far as it does not depend on times."""

from dataclasses import dataclass

import numpy as np

from commodel.patterns.longest import longest_ways, sort_unique
from commodel.patterns.written.tasks import RECEIVE, SEND, Tasks, circular


@dataclass(frozen=True, eq=False)
class Matching:
    """In which round a task begins; of a message's end the other one, of others -1."""

    round: np.ndarray
    other: np.ndarray


def match(tasks: Tasks) -> Matching:
    """Refuses messages without another end, and tasks that wait for each other."""
    slots = _Slots.of(tasks)
    needs, kind = tasks.needs, tasks.kind
    at_once = needs.begun | (kind[needs.before] != RECEIVE)
    begins, ends = (_Followers.of(tasks, edges) for edges in (at_once, ~at_once))
    waiting = np.bincount(needs.after, minlength=len(kind))
    round, number = np.full(len(kind), -1), 0
    ready = np.flatnonzero(waiting == 0)
    while len(ready):
        round[ready] = number
        freed = np.concatenate([begins.behind(ready), ends.behind(slots.over(ready))])
        np.subtract.at(waiting, freed, 1)
        ready = sort_unique(freed[waiting[freed] == 0])
        number += 1
    other = slots.other()
    if (round < 0).any():
        _refuse_circles(tasks, other)
    return Matching(round, other)


def _refuse_circles(tasks: Tasks, other: np.ndarray) -> None:
    needs = tasks.needs
    received = ~needs.begun & (tasks.kind[needs.before] == RECEIVE)
    for what, edges in (("circle of requires", np.zeros(0, dtype=int)), ("deadlock", np.flatnonzero(received))):
        before = np.concatenate([needs.before, other[needs.before[edges]]])
        after = np.concatenate([needs.after, needs.after[edges]])
        none = np.zeros(len(tasks.kind), dtype=int)
        _, left = longest_ways(before, after, np.ones(len(before), dtype=int), none)
        if left.any():
            raise circular(tasks, before, after, left, what)


@dataclass(frozen=True, eq=False)
class _Followers:
    """Which tasks stand behind each."""

    first: np.ndarray
    after: np.ndarray

    @classmethod
    def of(cls, tasks: Tasks, edges: np.ndarray) -> "_Followers":
        before = tasks.needs.before[edges]
        order = np.argsort(before, kind="stable")
        return cls(np.searchsorted(before[order], np.arange(len(tasks.kind) + 1)), tasks.needs.after[edges][order])

    def behind(self, tasks: np.ndarray) -> np.ndarray:
        counts = self.first[tasks + 1] - self.first[tasks]
        return self.after[np.repeat(self.first[tasks] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())]


@dataclass(frozen=True, eq=False)
class _Slots:
    """A slot a message, those of a pair and tag together. `group` is where a task's pair and tag begin; `used` how many
    are taken from there on, by sends and by receives; the two `ends` say by whom."""

    kind: np.ndarray
    group: np.ndarray
    used: dict[int, np.ndarray]
    ends: dict[int, np.ndarray]

    @classmethod
    def of(cls, tasks: Tasks) -> "_Slots":
        sends, receives = (np.flatnonzero(tasks.kind == kind) for kind in (SEND, RECEIVE))
        sent = np.stack([tasks.rank[sends], tasks.peer[sends], tasks.tag[sends]])
        received = np.stack([tasks.peer[receives], tasks.rank[receives], tasks.tag[receives]])
        orders = [np.lexsort(key[::-1]) for key in (sent, received)]
        sends, receives, sent, received = (
            sends[orders[0]],
            receives[orders[1]],
            sent[:, orders[0]],
            received[:, orders[1]],
        )
        _refuse_single_ends(tasks, sends, receives, sent, received)
        opens = np.ones(len(sends), dtype=bool)
        opens[1:] = (sent[:, 1:] != sent[:, :-1]).any(axis=0)
        starts = np.flatnonzero(opens)[np.cumsum(opens) - 1]
        group = np.full(len(tasks.kind), -1)
        group[sends] = group[receives] = starts
        count = len(sends)
        used = {kind: np.zeros(count, dtype=int) for kind in (SEND, RECEIVE)}
        return cls(tasks.kind, group, used, {kind: np.full(count, -1) for kind in (SEND, RECEIVE)})

    def over(self, posted: np.ndarray) -> np.ndarray:
        """The receives that are over now that these tasks have begun."""
        taken = [self._take(posted[self.kind[posted] == kind], kind) for kind in (SEND, RECEIVE)]
        both = sort_unique(np.concatenate(taken))
        return self.ends[RECEIVE][both[(self.ends[SEND][both] >= 0) & (self.ends[RECEIVE][both] >= 0)]]

    def _take(self, posted: np.ndarray, kind: int) -> np.ndarray:
        groups = self.group[posted]
        order = np.argsort(groups, kind="stable")
        ordered = groups[order]
        slots = ordered + self.used[kind][ordered] + np.arange(len(order)) - np.searchsorted(ordered, ordered)
        self.ends[kind][slots] = posted[order]
        np.add.at(self.used[kind], groups, 1)
        return slots

    def other(self) -> np.ndarray:
        """Ends that never begin take what slots are left, in the order of the file."""
        for kind in (SEND, RECEIVE):
            unmatched = self.kind == kind
            unmatched[self.ends[kind][self.ends[kind] >= 0]] = False
            self._take(np.flatnonzero(unmatched), kind)
        other = np.full(len(self.kind), -1)
        other[self.ends[SEND]], other[self.ends[RECEIVE]] = self.ends[RECEIVE], self.ends[SEND]
        return other


def _refuse_single_ends(
    tasks: Tasks, sends: np.ndarray, receives: np.ndarray, sent: np.ndarray, received: np.ndarray
) -> None:
    """All come in the order of pairs and tags, so the first difference is an end without its other."""
    both = min(len(sends), len(receives))
    differ = np.append((sent[:, :both] != received[:, :both]).any(axis=0), len(sends) != len(receives))
    if not differ.any():
        return
    row = int(differ.argmax())
    if row == len(receives) or (row < len(sends) and tuple(sent[:, row]) < tuple(received[:, row])):
        raise tasks.error(sends[row], f"{tasks.sentence(sends[row])}, and no receive takes it")
    raise tasks.error(receives[row], f"{tasks.sentence(receives[row])}, and no send is left for it")
