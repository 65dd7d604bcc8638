"""Tasks of GOAL files, the matching of their messages, and their order as steps of a Schedule (`schedule`).

A GOAL file has for every rank sends, receives and calculations, and dependencies on the end (`requires`) or the start
(`irequires`) of others. Text and binary files are read into `Tasks`, which `Steps` puts in order.

Matching: sends and receives of a pair and tag match in the order in which they are posted. Tasks are processed in
rounds: each round takes all tasks without pending dependencies, in the order of the file. This is the order of the
simulator as far as it does not depend on times.

Steps: a rank has one processor, which does one thing after the other. Dependencies within a rank and by messages give
every task a number. A rank posts and calculates in the order of these numbers. It waits for a message just before the
first task that requires it, or at the end. Overlap in GOAL is therefore kept. Independent chains of a rank, which GOAL
leaves unordered, take turns.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from commodel.errors import UserError, mistakes_in
from commodel.files.safe_paths import AnyPath
from commodel.patterns.rank_local_steps import describe_cycle, find_cycle, find_longest_paths, rank_local, sort_unique
from commodel.patterns.schedule import KINDS, Ends, Schedule, Work, check_rows
from commodel.units import MAX_BYTES, MAX_SECONDS

SEND, RECEIVE, CALCULATE = 1, 2, 3
ANY = 2**32 - 1  # of ranks and tags, which have 32 bits: all of them


@dataclass(frozen=True, eq=False)
class Needs:
    """Dependencies: the task `after` may not begin before `before` has ended or, if `begun`, has begun. Both are of one
    rank."""

    before: np.ndarray
    after: np.ndarray
    begun: np.ndarray


@dataclass(frozen=True, eq=False)
class Tasks:
    """Columns with a row for each task, those of a rank together and in the order of the file.

    `size` is in bytes, or in units of time. `line` is the line of a task; None if the file has no lines, and tasks are
    named by number.
    """

    path: AnyPath
    ranks: int
    rank: np.ndarray
    kind: np.ndarray
    size: np.ndarray
    peer: np.ndarray
    tag: np.ndarray
    needs: Needs
    line: np.ndarray | None = None
    per_second: float = 1e9  # units of time
    unit_is_said: bool = False
    elsewhere: int = 0  # tasks that are not for the first processor or network interface of their rank

    @cached_property
    def moves(self) -> np.ndarray:
        """Whether a task is a message's end."""
        return self.kind != CALCULATE

    @cached_property
    def idle(self) -> np.ndarray:
        """Calculations without time, which only order other tasks."""
        return ~self.moves & (self.size == 0)

    @cached_property
    def works(self) -> np.ndarray:
        return ~self.moves & ~self.idle

    def error(self, task: int, text: str) -> UserError:
        return UserError(text, file=self.path, line=None if self.line is None else int(self.line[task]))

    def named(self, task: int) -> str:
        if self.line is not None:
            return f"line {self.line[task]} of rank {self.rank[task]}"
        return f"task {task - np.searchsorted(self.rank, self.rank[task])} of rank {self.rank[task]}"

    def sentence(self, task: int) -> str:
        """Return a description of a task, for the beginning of a sentence."""
        rank, size, peer, tag = (column[task] for column in (self.rank, self.size, self.peer, self.tag))
        what = {SEND: f"sends {size} bytes to", RECEIVE: "receives from"}.get(int(self.kind[task]), "calculates")
        end = f" rank {peer} with tag {tag}" if self.moves[task] else ""
        return f"{'' if self.line is not None else f'{self.named(task)}: '}rank {rank} {what}{end}"

    def with_named_ends(self) -> "Tasks":
        """Return the tasks with rank and tag of each receive from any rank, or of any tag.

        Only messages of one rank and tag may match it: the choice between others depends on times.
        """
        open_ends = np.flatnonzero((self.kind == RECEIVE) & ((self.peer == ANY) | (self.tag == ANY)))
        if not len(open_ends):
            return self
        sends = self.kind == SEND
        sent = np.unique(np.stack([self.peer[sends], self.rank[sends], self.tag[sends]]), axis=1)
        received = np.stack([self.rank[open_ends], self.peer[open_ends], self.tag[open_ends]])
        kinds, first, kind_of = np.unique(received, axis=1, return_index=True, return_inverse=True)
        named = np.empty((2, len(first)), dtype=np.int64)
        for number, (rank, peer, tag) in enumerate(kinds.T.tolist()):
            source, sent_tag = sent[1:, slice(*np.searchsorted(sent[0], [rank, rank + 1]))]
            fits = ((source == peer) | (peer == ANY)) & ((sent_tag == tag) | (tag == ANY))
            if fits.sum() != 1:
                raise self._ambiguous(int(open_ends[first[number]]), source[fits], sent_tag[fits])
            named[:, number] = source[fits][0], sent_tag[fits][0]
        columns = self.peer.copy(), self.tag.copy()
        for column, names in zip(columns, named, strict=True):
            column[open_ends] = names[kind_of.reshape(-1)]
        return replace(self, peer=columns[0], tag=columns[1])

    def _ambiguous(self, task: int, source: np.ndarray, tag: np.ndarray) -> UserError:
        """Return the error of a receive that messages of these ranks and tags match, none or several."""
        whom = "any rank" if self.peer[task] == ANY else f"rank {self.peer[task]}"
        tags = "any tag" if self.tag[task] == ANY else f"tag {self.tag[task]}"
        matching = [
            f"rank {one} with tag {other}" for one, other in zip(source.tolist()[:2], tag.tolist(), strict=False)
        ]
        why = f"{' and '.join(matching)} match, and the times decide; wanted one" if matching else "no rank sends that"
        where = "" if self.line is not None else f"{self.named(task)}: "
        return self.error(task, f"{where}rank {self.rank[task]} receives from {whom} with {tags}: {why}")

    def refuse_what_cannot_be(self) -> None:
        count, longest = f"0 to {self.ranks - 1}", f"{MAX_SECONDS:g} s"
        checks = (
            (~np.isin(self.kind, (SEND, RECEIVE, CALCULATE)), "found kind {kind}, wanted 1, 2 or 3: send, recv, calc"),
            ((self.kind == SEND) & (self.peer == ANY), "sends to any rank, wanted one"),
            ((self.kind == SEND) & (self.tag == ANY), "sends with any tag, wanted one"),
            (self.moves & (self.peer >= self.ranks), f"found rank {{peer}}, wanted {count}"),
            (self.moves & (self.size > MAX_BYTES), f"found {{size}} bytes, wanted at most {MAX_BYTES}"),
            (~self.moves & (self.size > MAX_SECONDS * self.per_second), f"found {{size}}, wanted at most {longest}"),
        )
        for wrong, text in checks:
            if wrong.any():
                task = int(wrong.argmax())
                values = {name: getattr(self, name)[task] for name in ("kind", "peer", "size")}
                where = "" if self.line is not None else f"{self.named(task)}: "
                raise self.error(task, where + text.format(**values))
        check_rows(int((self.kind == SEND).sum()))


def circular(tasks: Tasks, before: np.ndarray, after: np.ndarray, left: np.ndarray, what: str) -> UserError:
    """Return the error for tasks that wait for each other, along edges from `before` to `after`."""
    nodes = find_cycle(before, after, left)
    return tasks.error(nodes[0], f"a {what}: {describe_cycle([tasks.named(node) for node in nodes])}")


@dataclass(frozen=True, eq=False)
class Matching:
    """The round in which a task begins, and of a message's end the other end (−1: none)."""

    round: np.ndarray
    other: np.ndarray


def match(tasks: Tasks) -> Matching:
    """Return the matching; refuse messages without another end, and tasks that wait for each other."""
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
        _, left = find_longest_paths(before, after, np.ones(len(before), dtype=int), none)
        if left.any():
            raise circular(tasks, before, after, left, what)


@dataclass(frozen=True, eq=False)
class _Followers:
    """The tasks that depend on each task."""

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
    """One slot for each message, those of a pair and tag together.

    `group` is the first slot of a task's pair and tag; `used` counts the slots taken by sends and by receives; the two
    `ends` hold the tasks.
    """

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
        """Return the receives that are over now that these tasks have begun."""
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
        """Return the other end of each message's end.

        Ends that never begin get the remaining slots, in the order of the file.
        """
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
    """Raise an error for a message without another end: the first difference, as all are in the order of pairs and
    tags."""
    both = min(len(sends), len(receives))
    differ = np.append((sent[:, :both] != received[:, :both]).any(axis=0), len(sends) != len(receives))
    if not differ.any():
        return
    row = int(differ.argmax())
    if row == len(receives) or (row < len(sends) and tuple(sent[:, row]) < tuple(received[:, row])):
        raise tasks.error(sends[row], f"{tasks.sentence(sends[row])}, and no receive takes it")
    raise tasks.error(receives[row], f"{tasks.sentence(receives[row])}, and no send is left for it")


OPENING, SENDING, WAITING, WORKING = range(4)  # what a step does, in this order


def schedule(tasks: Tasks) -> Schedule:
    """Return the Schedule of the tasks. If all ranks do the same, shifted, only those of the first are ordered."""
    tasks = tasks.with_named_ends()
    tasks.refuse_what_cannot_be()
    if (shift := find_shift(tasks)) < tasks.ranks:
        with suppress(UserError):  # the tasks of all ranks raise it again, with their own names
            return _repeat(tasks, shift, _in_steps(_first_ranks(tasks, shift)))
    return _in_steps(tasks)


def _in_steps(tasks: Tasks) -> Schedule:
    matching = match(tasks)
    steps = Steps.of(tasks, matching)
    sends = np.flatnonzero(tasks.kind == SEND)
    sends = sends[np.lexsort((sends, matching.round[sends], steps.place[sends], tasks.rank[sends]))]
    receives, works = matching.other[sends], np.flatnonzero(tasks.works)
    compute = np.full(len(works), KINDS.index("compute"))
    seconds = tasks.size[works] / tasks.per_second
    work = Work(steps.post[works], tasks.rank[works], compute, np.zeros(len(works)), seconds)
    ends = steps.post[sends], steps.wait[sends], steps.post[receives], steps.wait[receives]
    with mistakes_in(tasks.path):
        return rank_local(tasks.ranks, tasks.rank[sends], tasks.peer[sends], tasks.size[sends], *ends, work=work)


def find_shift(tasks: Tasks) -> int:
    """Return the smallest shift of ranks that maps tasks to tasks, with peers shifted alike; the number of ranks if
    there is none.

    Complexity: tasks, for each divisor by which the first rank fits.
    """
    ranks, rank, needs = tasks.ranks, tasks.rank, tasks.needs
    owner = rank[needs.before]
    counts = np.bincount(rank, minlength=ranks), np.bincount(owner, minlength=ranks)
    if (np.diff(owner) < 0).any():
        return ranks
    first = (np.cumsum(counts[0]) - counts[0])[owner]
    distance = np.where(tasks.moves, (tasks.peer - rank) % ranks, 0)
    columns = [
        *((counts[0], column) for column in (tasks.kind, tasks.size, tasks.tag, distance)),
        *((counts[1], column) for column in (needs.before - first, needs.after - first, needs.begun)),
    ]

    def repeats(shift: int, among: int) -> bool:
        """Return whether the tasks of the first `among` ranks are equal to those of the ranks `shift` further on."""
        if any((count[shift : shift + among] != count[:among]).any() for count, _ in columns):
            return False
        parts = ((count[:shift].sum(), count[:among].sum(), column) for count, column in columns)
        return all(
            np.array_equal(column[behind : behind + length], column[:length]) for behind, length, column in parts
        )

    divisors = (shift for shift in range(1, ranks) if ranks % shift == 0)
    return next((shift for shift in divisors if repeats(shift, 1) and repeats(shift, ranks - shift)), ranks)


def _first_ranks(tasks: Tasks, shift: int) -> Tasks:
    """Return the tasks of the first ranks, whose peers are replaced by their representatives among them.

    The tag holds the distance of a peer, the size of a send its number.
    """
    count = int(np.searchsorted(tasks.rank, shift))
    rank, kind, size, peer, tag = (
        column[:count] for column in (tasks.rank, tasks.kind, tasks.size, tasks.peer, tasks.tag)
    )
    away = np.where(kind == SEND, peer - rank, rank - peer) % tasks.ranks
    own = tasks.needs.before < count
    needs = Needs(*(column[own] for column in (tasks.needs.before, tasks.needs.after, tasks.needs.begun)))
    columns = {
        "rank": rank,
        "kind": kind,
        "size": np.where(kind == SEND, np.arange(count), size),
        "peer": peer % shift,
        "tag": tag + (away << 32),
        "line": None if tasks.line is None else tasks.line[:count],
    }
    return replace(tasks, ranks=shift, needs=needs, **columns)


def _repeat(tasks: Tasks, shift: int, first: Schedule) -> Schedule:
    """Return the Schedule of all ranks, with rows in the order of `_in_steps`: by step, and by rank in a step."""
    shifts = np.arange(tasks.ranks // shift)[:, None]

    def places(step: np.ndarray) -> np.ndarray:
        begins, ends = np.searchsorted(step, step, "left"), np.searchsorted(step, step, "right")
        return len(shifts) * begins + np.arange(len(step)) - begins + shifts * (ends - begins)

    def spread(place: np.ndarray, column: np.ndarray) -> np.ndarray:
        rows = np.empty(place.size, dtype=column.dtype)
        rows[place] = column
        return rows

    place, work, send = places(first.step), first.work, first.bytes
    source = spread(place, first.src + shift * shifts)
    away = spread(place, (tasks.peer[send] - tasks.rank[send]) % tasks.ranks)
    step, bytes = (spread(place, column) for column in (first.step, tasks.size[send]))
    ends = first.ends and Ends(*(spread(place, column) for column in first.ends.columns))
    place = places(work.step)
    rank = spread(place, work.rank + shift * shifts)
    rest = (spread(place, column) for column in (work.kind, work.bytes, work.seconds))
    work = Work(spread(place, work.step), rank, *rest)
    target = (source + away) % tasks.ranks
    return replace(Schedule.of(tasks.ranks, step, source, target, bytes, work=work, ends=ends), shift=shift)


@dataclass(frozen=True, eq=False)
class Steps:
    """The number of every task, the step in which it is posted or done, and the step in which it is waited for."""

    place: np.ndarray
    post: np.ndarray
    wait: np.ndarray

    @classmethod
    def of(cls, tasks: Tasks, matching: Matching) -> "Steps":
        """Return the steps of the tasks.

        Even steps post and work, odd ones wait. Successive steps of a rank are joined if the order of their parts is
        the order within one step. Two waits stay separate, since messages are received in order of arrival.
        """
        place = _places(tasks, matching)
        moves, works = np.flatnonzero(tasks.moves), np.flatnonzero(tasks.works)
        does = np.concatenate([tasks.kind[moves] == SEND, np.full(len(moves), WAITING), np.full(len(works), WORKING)])
        step = np.concatenate([2 * place[moves], 2 * _waits(tasks, place)[moves] - 1, 2 * place[works]])
        rank = tasks.rank[np.concatenate([moves, moves, works])]
        span = int(step.max(initial=0)) + 1
        codes, numbers = np.unique(rank * span + step, return_inverse=True)
        first, last = np.full(len(codes), WORKING), np.full(len(codes), OPENING)
        np.minimum.at(first, numbers, does)
        np.maximum.at(last, numbers, does)
        rank, opens = codes // span, np.ones(len(codes), dtype=bool)
        joined = (last[:-1] <= first[1:]) & ~((last[:-1] == WAITING) & (first[1:] == WAITING))
        opens[1:] = (rank[1:] != rank[:-1]) | ~joined
        new = np.cumsum(opens)
        new -= new[np.searchsorted(rank, rank)]
        post, wait = np.zeros(len(place), dtype=np.int64), np.zeros(len(place), dtype=np.int64)
        post[moves], wait[moves], post[works] = np.split(new[numbers], [len(moves), 2 * len(moves)])
        return cls(place, post, wait)


def _places(tasks: Tasks, matching: Matching) -> np.ndarray:
    """Return the numbers of tasks with senders of rendezvous messages waiting, or without if only that avoids a
    deadlock."""
    none = np.zeros(len(tasks.rank), dtype=int)
    place, left = find_longest_paths(*_all_needs(tasks, matching.other, asking=True), none)
    if left.any():
        place, _ = find_longest_paths(*_all_needs(tasks, matching.other, asking=False), none)
    place = _as_late_as_can_be(tasks, place) if tasks.idle.any() else place
    return _in_turn(tasks, matching.round, place)


def _in_turn(tasks: Tasks, round: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return numbers for tasks of one place, so that none waits for a message that only a later one requires.

    Tasks that must come first are in an earlier round.
    """
    first = np.full(len(place), len(place))  # of the tasks that require each
    requires = tasks.moves[tasks.needs.before] & ~tasks.needs.begun
    before, after = tasks.needs.before[requires], tasks.needs.after[requires]
    waits = np.zeros(len(place), dtype=bool)
    waits[after] = True
    order = np.lexsort((np.arange(len(place)), waits, round, place, tasks.rank))
    turn = np.empty(len(place), dtype=np.int64)
    turn[order] = np.arange(len(place))
    np.minimum.at(first, before, turn[after])
    opens = np.ones(len(place) + 1, dtype=bool)
    opens[1:-1] = (np.diff(place[order]) != 0) | (np.diff(tasks.rank[order]) != 0)
    opens[first] = True
    number = np.cumsum(opens)
    return number[turn]


def _waits(tasks: Tasks, place: np.ndarray) -> np.ndarray:
    """Return the number of the task before which each task is waited for."""
    over = ~tasks.needs.begun
    wait = _last(tasks, place) + 1
    np.minimum.at(wait, tasks.needs.before[over], place[tasks.needs.after[over]])
    return wait


def _last(tasks: Tasks, place: np.ndarray) -> np.ndarray:
    """Return the last place of the rank of each task."""
    last = np.zeros(tasks.ranks, dtype=np.int64)
    np.maximum.at(last, tasks.rank, place)
    return last[tasks.rank]


def _all_needs(tasks: Tasks, other: np.ndarray, *, asking: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all edges: `before`, `after`, and by how much larger the number of `after` is at least.

    A calculation may have the same number as its predecessor if no wait or post can be needed between them.
    """
    needs = tasks.needs
    before, after = needs.before, needs.after
    waited = tasks.moves[before] & ~needs.begun
    waits = np.zeros(len(tasks.rank), dtype=bool)
    waits[after[waited]] = True
    follows = ~tasks.moves[after] & ~tasks.idle[after] | tasks.idle[before]
    near = ~tasks.moves[before] & follows & ~(waits[after] & ~tasks.moves[after])
    over = waited & (asking | (tasks.kind[before] == RECEIVE))
    apart = np.concatenate([~near, np.ones(int(over.sum()), dtype=bool)]).astype(int)
    return np.concatenate([before, other[before[over]]]), np.concatenate([after, after[over]]), apart


def _as_late_as_can_be(tasks: Tasks, place: np.ndarray) -> np.ndarray:
    """Return numbers in which tasks without time are just before the first task that requires them.

    The tasks that they wait for may therefore take as long.
    """
    before, after, apart = _all_needs(tasks, np.full(len(place), -1), asking=False)
    own = before >= 0
    before, after, apart = before[own], after[own], apart[own]
    latest = _last(tasks, place)
    to_others = tasks.idle[before] & ~tasks.idle[after]
    np.minimum.at(latest, before[to_others], (place[after] - apart)[to_others])
    among = tasks.idle[before] & tasks.idle[after]
    back, _ = find_longest_paths(after[among], before[among], apart[among], -latest)
    return np.where(tasks.idle, -back, place)
