"""Tasks of GOAL files, the matching of their messages, and their order as steps of a Schedule
(`make_schedule`).

A GOAL file has for every rank sends, receives and calculations, and dependencies on the end
(`requires`) or the start (`irequires`) of others. Text and binary files are read into `Tasks`,
which `Steps` puts in order.

Matching: sends and receives of a pair and tag match in the order in which they are posted. Tasks
are processed in rounds: each round takes all tasks without pending dependencies, in the order of
the file. This is the order of the simulator as far as it does not depend on times.

Steps: a rank has one processor, which executes its tasks sequentially. Dependencies within a rank
and by messages give every task a number, and a rank posts and calculates in the order of these
numbers. It waits for a message just before the first task that requires it, or at the end, so that
overlap in GOAL is preserved. Independent chains of a rank, whose order GOAL does not define,
alternate.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from commodel.errors import UserError, locate_mistakes
from commodel.files.safe_paths import AnyPath
from commodel.patterns.rank_local_steps import (
    describe_cycle,
    find_cycle,
    find_first_rows,
    find_longest_paths,
    make_rank_local_schedule,
    number_distinct,
    sort_unique,
)
from commodel.patterns.schedule import (
    KINDS,
    MAX_INTEGER,
    NonblockingSteps,
    Schedule,
    Work,
    argsort_columns,
    check_rows,
)
from commodel.units import MAX_BYTES, MAX_SECONDS

SEND, RECEIVE, CALCULATE = 1, 2, 3
ANY = 2**32 - 1  # peer or tag of a receive that accepts any; both have 32 bits


@dataclass(frozen=True, eq=False)
class Dependencies:
    """Dependencies between tasks of one rank: `after` may not begin before the end of `before`, or,
    if `on_start`, before its start."""

    before: np.ndarray
    after: np.ndarray
    on_start: np.ndarray

    def select(self, rows: np.ndarray) -> "Dependencies":
        return Dependencies(self.before[rows], self.after[rows], self.on_start[rows])


@dataclass(frozen=True, eq=False)
class Tasks:
    """Columns with a row for each task, sorted by rank, and within a rank in the order of the file.

    `size` is in bytes, or in units of time. `line` is the line of a task; None if the file has no
    lines, and tasks are named by number.
    """

    path: AnyPath
    ranks: int
    rank: np.ndarray
    kind: np.ndarray
    size: np.ndarray
    peer: np.ndarray
    tag: np.ndarray
    dependencies: Dependencies
    line: np.ndarray | None = None
    per_second: float = 1e9  # units of time in a second
    unit_is_stated: bool = False  # whether the file states the unit of time
    # number of tasks for a second processor or network interface of their rank
    other_units: int = 0

    @cached_property
    def is_message_end(self) -> np.ndarray:
        """Whether a task is a send or a receive."""
        return self.kind != CALCULATE

    @cached_property
    def is_zero_calc(self) -> np.ndarray:
        """Whether a task is a calculation of no time, which only orders other tasks."""
        return ~self.is_message_end & (self.size == 0)

    @cached_property
    def is_calculation(self) -> np.ndarray:
        return ~self.is_message_end & ~self.is_zero_calc

    def error(self, task: int, text: str) -> UserError:
        return UserError(
            text, file=self.path, line=None if self.line is None else int(self.line[task])
        )

    def make_named_error(self, task: int, text: str) -> UserError:
        """Return the error of a task, which the text names unless the error has its line."""
        return self.error(
            task, text if self.line is not None else f"{self.name_task(task)}: {text}"
        )

    def name_task(self, task: int) -> str:
        if self.line is not None:
            return f"line {self.line[task]} of rank {self.rank[task]}"
        return (
            f"task {task - np.searchsorted(self.rank, self.rank[task])} of rank {self.rank[task]}"
        )

    def describe(self, task: int) -> str:
        """Return a description of a task, for the beginning of a sentence."""
        rank, size, peer, tag = (
            column[task] for column in (self.rank, self.size, self.peer, self.tag)
        )
        action = {SEND: f"sends {size} bytes to", RECEIVE: "receives from"}.get(
            int(self.kind[task]), "calculates"
        )
        end = f" rank {peer} with tag {tag}" if self.is_message_end[task] else ""
        return f"rank {rank} {action}{end}"

    def resolve_wildcards(self) -> "Tasks":
        """Return the tasks with the actual rank and tag of each wildcard receive (from any rank, or
        with any tag).

        All messages that match it must be of one rank and tag; otherwise the choice depends on
        times.
        """
        wildcards = np.flatnonzero(
            (self.kind == RECEIVE) & ((self.peer == ANY) | (self.tag == ANY))
        )
        if not len(wildcards):
            return self
        sends = self.kind == SEND
        sent = np.unique(np.stack([self.peer[sends], self.rank[sends], self.tag[sends]]), axis=1)
        received = np.stack([self.rank[wildcards], self.peer[wildcards], self.tag[wildcards]])
        distinct, first, distinct_of = np.unique(
            received, axis=1, return_index=True, return_inverse=True
        )
        resolved = np.empty((2, len(first)), dtype=np.int64)
        for number, (rank, peer, tag) in enumerate(distinct.T.tolist()):
            source, sent_tag = sent[1:, slice(*np.searchsorted(sent[0], [rank, rank + 1]))]
            is_match = ((source == peer) | (peer == ANY)) & ((sent_tag == tag) | (tag == ANY))
            if is_match.sum() != 1:
                raise self._make_wildcard_error(
                    int(wildcards[first[number]]), source[is_match], sent_tag[is_match]
                )
            resolved[:, number] = source[is_match][0], sent_tag[is_match][0]
        columns = self.peer.copy(), self.tag.copy()
        for column, values in zip(columns, resolved, strict=True):
            column[wildcards] = values[distinct_of.reshape(-1)]
        return replace(self, peer=columns[0], tag=columns[1])

    def _make_wildcard_error(self, task: int, source: np.ndarray, tag: np.ndarray) -> UserError:
        """Return the error of a wildcard receive that no message matches, or messages of several
        ranks or tags."""
        sender = "any rank" if self.peer[task] == ANY else f"rank {self.peer[task]}"
        tags = "any tag" if self.tag[task] == ANY else f"tag {self.tag[task]}"
        matching = [
            f"rank {rank} with tag {sent_tag}"
            for rank, sent_tag in zip(source.tolist()[:2], tag.tolist(), strict=False)
        ]
        reason = (
            f"{' and '.join(matching)} match, and the times decide; wanted one"
            if matching
            else "no rank sends that"
        )
        return self.make_named_error(
            task, f"rank {self.rank[task]} receives from {sender} with {tags}: {reason}"
        )

    def check_values(self) -> None:
        count = f"0 to {self.ranks - 1}"
        longest = f"{MAX_SECONDS:g} s"
        checks = (
            (
                ~np.isin(self.kind, (SEND, RECEIVE, CALCULATE)),
                "found kind {kind}, wanted 1, 2 or 3: send, recv, calc",
            ),
            ((self.kind == SEND) & (self.peer == ANY), "sends to any rank, wanted one"),
            ((self.kind == SEND) & (self.tag == ANY), "sends with any tag, wanted one"),
            (
                self.is_message_end & (self.peer >= self.ranks),
                f"found rank {{peer}}, wanted {count}",
            ),
            (
                self.is_message_end & (self.size > MAX_BYTES),
                f"found {{size}} bytes, wanted at most {MAX_BYTES}",
            ),
            (
                ~self.is_message_end & (self.size > MAX_SECONDS * self.per_second),
                f"found {{size}}, wanted at most {longest}",
            ),
        )
        for wrong, text in checks:
            if wrong.any():
                task = int(wrong.argmax())
                values = {name: getattr(self, name)[task] for name in ("kind", "peer", "size")}
                raise self.make_named_error(task, text.format(**values))
        check_rows(int((self.kind == SEND).sum()))


def make_cycle_error(
    tasks: Tasks, before: np.ndarray, after: np.ndarray, unresolved: np.ndarray, kind: str
) -> UserError:
    """Return the error for tasks that wait for each other in a cycle of the edges from `before` to
    `after`."""
    nodes = find_cycle(before, after, unresolved)
    return tasks.error(
        nodes[0], f"a {kind}: {describe_cycle([tasks.name_task(node) for node in nodes])}"
    )


@dataclass(frozen=True, eq=False)
class Matching:
    """For each task: the round in which it begins (see the module), and the other end of its
    message (−1: none)."""

    round: np.ndarray
    other_end: np.ndarray


def match_messages(tasks: Tasks) -> Matching:
    """Match sends and receives. Refuse messages without another end, and tasks that wait for each
    other."""
    slots = _Slots.of(tasks)
    dependencies, kind = tasks.dependencies, tasks.kind
    immediate = dependencies.on_start | (kind[dependencies.before] != RECEIVE)
    begins, ends = (_Followers.of(tasks, edges) for edges in (immediate, ~immediate))
    waiting = np.bincount(dependencies.after, minlength=len(kind))
    round = np.full(len(kind), -1)
    number = 0
    ready = np.flatnonzero(waiting == 0)
    while len(ready):
        round[ready] = number
        followers = np.concatenate(
            [begins.list_after(ready), ends.list_after(slots.complete(ready))]
        )
        np.subtract.at(waiting, followers, 1)
        ready = sort_unique(followers[waiting[followers] == 0])
        number += 1
    other_end = slots.other_end()
    if (round < 0).any():
        _refuse_cycles(tasks, other_end)
    return Matching(round, other_end)


def _refuse_cycles(tasks: Tasks, other_end: np.ndarray) -> None:
    dependencies = tasks.dependencies
    received = ~dependencies.on_start & (tasks.kind[dependencies.before] == RECEIVE)
    for kind, edges in (
        ("circle of requires", np.zeros(0, dtype=int)),
        ("deadlock", np.flatnonzero(received)),
    ):
        before = np.concatenate([dependencies.before, other_end[dependencies.before[edges]]])
        after = np.concatenate([dependencies.after, dependencies.after[edges]])
        none = np.zeros(len(tasks.kind), dtype=int)
        _, unresolved = find_longest_paths(before, after, np.ones(len(before), dtype=int), none)
        if unresolved.any():
            raise make_cycle_error(tasks, before, after, unresolved, kind)


@dataclass(frozen=True, eq=False)
class _Followers:
    """The tasks that depend on each task: `after[first[t]:first[t + 1]]` on task t."""

    first: np.ndarray
    after: np.ndarray

    @classmethod
    def of(cls, tasks: Tasks, edges: np.ndarray) -> "_Followers":
        before = tasks.dependencies.before[edges]
        order = np.argsort(before, kind="stable")
        return cls(find_first_rows(before, len(tasks.kind)), tasks.dependencies.after[edges][order])

    def list_after(self, tasks: np.ndarray) -> np.ndarray:
        counts = self.first[tasks + 1] - self.first[tasks]
        return self.after[
            np.repeat(self.first[tasks] - np.cumsum(counts) + counts, counts)
            + np.arange(counts.sum())
        ]


@dataclass(frozen=True, eq=False)
class _Slots:
    """One slot for each message; the slots of a pair of ranks and a tag are consecutive.

    `group` is the first slot of a task's pair and tag. `used` counts its occupied slots, by kind of
    task (send, receive). `ends` has the tasks in the slots, by kind.
    """

    kind: np.ndarray
    group: np.ndarray
    used: dict[int, np.ndarray]
    ends: dict[int, np.ndarray]

    @classmethod
    def of(cls, tasks: Tasks) -> "_Slots":
        channel = _number_channels(tasks)
        ends = [np.flatnonzero(tasks.kind == kind) for kind in (SEND, RECEIVE)]
        sends, receives = (rows[np.argsort(channel[rows], kind="stable")] for rows in ends)
        sent, received = channel[sends], channel[receives]
        _refuse_unmatched_ends(tasks, sends, receives, sent, received)
        is_first = np.ones(len(sends), dtype=bool)
        is_first[1:] = sent[1:] != sent[:-1]
        first_slot = np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
        group = np.full(len(tasks.kind), -1)
        group[sends] = group[receives] = first_slot
        count = len(sends)
        used = {kind: np.zeros(count, dtype=int) for kind in (SEND, RECEIVE)}
        return cls(
            kind=tasks.kind,
            group=group,
            used=used,
            ends={kind: np.full(count, -1) for kind in (SEND, RECEIVE)},
        )

    def complete(self, posted: np.ndarray) -> np.ndarray:
        """Put tasks that have begun into slots, and return the receives whose message is now
        complete."""
        occupied = [
            self._occupy(posted[self.kind[posted] == kind], kind) for kind in (SEND, RECEIVE)
        ]
        both = sort_unique(np.concatenate(occupied))
        return self.ends[RECEIVE][
            both[(self.ends[SEND][both] >= 0) & (self.ends[RECEIVE][both] >= 0)]
        ]

    def _occupy(self, posted: np.ndarray, kind: int) -> np.ndarray:
        groups = self.group[posted]
        order = np.argsort(groups, kind="stable")
        ordered = groups[order]
        slots = (
            ordered
            + self.used[kind][ordered]
            + np.arange(len(order))
            - np.searchsorted(ordered, ordered)
        )
        self.ends[kind][slots] = posted[order]
        np.add.at(self.used[kind], groups, 1)
        return slots

    def other_end(self) -> np.ndarray:
        """Return the matching receive of each send, and the send of each receive. Tasks that never
        begin get the remaining slots, in the order of the file."""
        for kind in (SEND, RECEIVE):
            unmatched = self.kind == kind
            unmatched[self.ends[kind][self.ends[kind] >= 0]] = False
            self._occupy(np.flatnonzero(unmatched), kind)
        other_end = np.full(len(self.kind), -1)
        other_end[self.ends[SEND]] = self.ends[RECEIVE]
        other_end[self.ends[RECEIVE]] = self.ends[SEND]
        return other_end


def _number_channels(tasks: Tasks) -> np.ndarray:
    """Return a number of each message end that is equal for equal sender, receiver and tag, and
    sorts like these three; other tasks have any number."""
    is_send = tasks.kind == SEND
    source = np.where(is_send, tasks.rank, tasks.peer)
    target = np.where(is_send, tasks.peer, tasks.rank)
    pair = source * tasks.ranks + target
    tags = int(tasks.tag.max(initial=0)) + 1
    if int(pair.max(initial=0)) >= MAX_INTEGER // tags:
        pair = number_distinct(pair)[1]
    return pair * tags + tasks.tag


def _refuse_unmatched_ends(
    tasks: Tasks, sends: np.ndarray, receives: np.ndarray, sent: np.ndarray, received: np.ndarray
) -> None:
    """Refuse a message without another end. Sends and receives are both sorted by channel, so the
    first difference shows it."""
    both = min(len(sends), len(receives))
    differ = np.append(sent[:both] != received[:both], len(sends) != len(receives))
    if not differ.any():
        return
    row = int(differ.argmax())
    if row == len(receives) or (row < len(sends) and sent[row] < received[row]):
        raise tasks.make_named_error(
            sends[row], f"{tasks.describe(sends[row])}, and it has no matching receive"
        )
    raise tasks.make_named_error(
        receives[row], f"{tasks.describe(receives[row])}, and it has no matching send"
    )


# actions within a step, in this order; OPENING posts a receive
OPENING, SENDING, WAITING, WORKING = range(4)


def make_schedule(tasks: Tasks) -> Schedule:
    """Return the Schedule of the tasks. If all ranks repeat the tasks of the first few with shifted
    peers, only these are put in order."""
    tasks = tasks.resolve_wildcards()
    tasks.check_values()
    shift = find_shift(tasks)
    if shift < tasks.ranks:
        # `_schedule_all_ranks` raises it again, with the names of the actual tasks
        with suppress(UserError):
            return _repeat_schedule(
                tasks, shift, _schedule_all_ranks(_select_first_ranks(tasks, shift))
            )
    return _schedule_all_ranks(tasks)


def _schedule_all_ranks(tasks: Tasks) -> Schedule:
    messages, work = _list_rank_local_steps(tasks)
    with locate_mistakes(tasks.path):
        return make_rank_local_schedule(tasks.ranks, *messages, work=work)


def _list_rank_local_steps(tasks: Tasks) -> tuple[tuple[np.ndarray, ...], Work]:
    """Return the messages and the work for `make_rank_local_schedule`. All that leads to them can
    then be freed."""
    matching = match_messages(tasks)
    steps = Steps.of(tasks, matching)
    sends = np.flatnonzero(tasks.kind == SEND)
    sends = sends[argsort_columns(tasks.rank[sends], steps.position[sends], matching.round[sends])]
    receives = matching.other_end[sends]
    is_calculation = np.flatnonzero(tasks.is_calculation)
    compute = np.full(len(is_calculation), KINDS.index("compute"))
    seconds = tasks.size[is_calculation] / tasks.per_second
    work = Work(
        step=steps.post[is_calculation],
        rank=tasks.rank[is_calculation],
        kind=compute,
        bytes=np.zeros(len(is_calculation)),
        seconds=seconds,
    )
    ends = steps.post[sends], steps.wait[sends], steps.post[receives], steps.wait[receives]
    return (tasks.rank[sends], tasks.peer[sends], tasks.size[sends], *ends), work


def find_shift(tasks: Tasks) -> int:
    """Return the smallest shift of ranks that maps all tasks onto tasks, with peers shifted too;
    the number of ranks if there is none.

    Complexity: O(tasks) for each divisor at which the first rank's tasks repeat.
    """
    ranks = tasks.ranks
    rank = tasks.rank
    dependencies = tasks.dependencies
    owner = rank[dependencies.before]
    counts = np.bincount(rank, minlength=ranks), np.bincount(owner, minlength=ranks)
    if (np.diff(owner) < 0).any():
        return ranks
    first = (np.cumsum(counts[0]) - counts[0])[owner]
    distance = np.where(tasks.is_message_end, (tasks.peer - rank) % ranks, 0)
    columns_of_tasks = (tasks.kind, tasks.size, tasks.tag, distance)
    columns_of_dependencies = (
        dependencies.before - first,
        dependencies.after - first,
        dependencies.on_start,
    )
    columns = [(counts[0], column) for column in columns_of_tasks]
    columns += [(counts[1], column) for column in columns_of_dependencies]

    def is_repeated(shift: int, rank_count: int) -> bool:
        """Return whether the tasks of the first `rank_count` ranks are equal to those of the ranks
        `shift` further on."""
        if any(
            (count[shift : shift + rank_count] != count[:rank_count]).any() for count, _ in columns
        ):
            return False
        parts = (
            (count[:shift].sum(), count[:rank_count].sum(), column) for count, column in columns
        )
        return all(
            np.array_equal(column[offset : offset + length], column[:length])
            for offset, length, column in parts
        )

    for shift in (1 + np.flatnonzero(ranks % np.arange(1, ranks) == 0)).tolist():
        if is_repeated(shift, 1) and is_repeated(shift, ranks - shift):
            return shift
    return ranks


def _select_first_ranks(tasks: Tasks, shift: int) -> Tasks:
    """Return the tasks of the first `shift` ranks, with each peer replaced by its remainder modulo
    `shift`.

    The tag also contains the distance to the peer, and the size of a send is its task number, from
    which `_repeat_schedule` restores them.
    """
    count = int(np.searchsorted(tasks.rank, shift))
    columns = (tasks.rank, tasks.kind, tasks.size, tasks.peer, tasks.tag)
    rank, kind, size, peer, tag = (column[:count] for column in columns)
    distance = np.where(kind == SEND, peer - rank, rank - peer) % tasks.ranks
    dependencies = tasks.dependencies.select(tasks.dependencies.before < count)
    line = None if tasks.line is None else tasks.line[:count]
    size = np.where(kind == SEND, np.arange(count), size)
    tag = tag + (distance << 32)
    return Tasks(
        path=tasks.path,
        ranks=shift,
        rank=rank,
        kind=kind,
        size=size,
        peer=peer % shift,
        tag=tag,
        dependencies=dependencies,
        line=line,
        per_second=tasks.per_second,
    )


def _repeat_schedule(tasks: Tasks, shift: int, first: Schedule) -> Schedule:
    """Return the Schedule of all ranks, with rows in the order of `_schedule_all_ranks`: by step,
    and by rank in a step."""
    shifts = np.arange(tasks.ranks // shift)[:, None]

    def find_rows(step: np.ndarray) -> np.ndarray:
        begins = np.searchsorted(step, step, "left")
        ends = np.searchsorted(step, step, "right")
        return len(shifts) * begins + np.arange(len(step)) - begins + shifts * (ends - begins)

    def fill(position: np.ndarray, column: np.ndarray) -> np.ndarray:
        rows = np.empty(position.size, dtype=column.dtype)
        rows[position] = column
        return rows

    position = find_rows(first.step)
    work = first.work
    send = first.bytes
    source = fill(position, first.src + shift * shifts)
    distance = fill(position, (tasks.peer[send] - tasks.rank[send]) % tasks.ranks)
    step, bytes = (fill(position, column) for column in (first.step, tasks.size[send]))
    ends = first.nonblocking and NonblockingSteps(
        *(fill(position, column) for column in first.nonblocking.columns)
    )
    position = find_rows(work.step)
    rank = fill(position, work.rank + shift * shifts)
    other_columns = (fill(position, column) for column in (work.kind, work.bytes, work.seconds))
    work = Work(fill(position, work.step), rank, *other_columns)
    target = (source + distance) % tasks.ranks
    return replace(
        Schedule.of(tasks.ranks, step, source, target, bytes, work=work, nonblocking=ends),
        shift=shift,
    )


@dataclass(frozen=True, eq=False)
class Steps:
    """For each task: its position in its rank's order, the step in which it is posted or done, and
    the step in which it is waited for."""

    position: np.ndarray
    post: np.ndarray
    wait: np.ndarray

    @classmethod
    def of(cls, tasks: Tasks, matching: Matching) -> "Steps":
        """Return the steps of the tasks.

        Even steps post and work, odd ones wait. Successive steps of a rank are joined if the order
        of their parts is the order within one step. Two waits stay separate, since messages are
        received in order of arrival.
        """
        position = _order_tasks(tasks, matching)
        is_message_end = np.flatnonzero(tasks.is_message_end)
        calculations = np.flatnonzero(tasks.is_calculation)
        wait_position = _find_wait_positions(tasks, position)
        posts = tasks.kind[is_message_end] == SEND
        waits = np.full(len(is_message_end), WAITING, dtype=np.int8)
        action = np.concatenate([posts, waits, np.full(len(calculations), WORKING, dtype=np.int8)])
        step = np.concatenate(
            [
                2 * position[is_message_end],
                2 * wait_position[is_message_end] - 1,
                2 * position[calculations],
            ]
        )
        # Positions increase from rank to rank, so that no two ranks have the same step.
        codes, numbers = number_distinct(step)
        rank = np.empty(len(codes), dtype=np.int64)
        rank[numbers] = tasks.rank[np.concatenate([is_message_end, is_message_end, calculations])]
        first = np.full(len(codes), WORKING, dtype=np.int8)
        last = np.full(len(codes), OPENING, dtype=np.int8)
        np.minimum.at(first, numbers, action)
        np.maximum.at(last, numbers, action)
        can_join = (last[:-1] <= first[1:]) & ~((last[:-1] == WAITING) & (first[1:] == WAITING))
        begins_rank = np.diff(rank, prepend=-1) > 0
        is_first = begins_rank.copy()
        is_first[1:] |= ~can_join
        number = np.cumsum(is_first)
        new_step = number - number[begins_rank][np.cumsum(begins_rank) - 1]
        post = np.zeros(len(position), dtype=np.int64)
        wait = np.zeros(len(position), dtype=np.int64)
        post[is_message_end], wait[is_message_end], post[calculations] = np.split(
            new_step[numbers], [len(is_message_end), 2 * len(is_message_end)]
        )
        return cls(position, post, wait)


def _order_tasks(tasks: Tasks, matching: Matching) -> np.ndarray:
    """Return the position of each task in its rank's order. Senders wait for their receivers, as in
    the rendezvous protocol, unless this causes a deadlock."""
    none = np.zeros(len(tasks.rank), dtype=int)
    position, unresolved = find_longest_paths(
        *_list_edges(tasks, matching.other_end, sender_waits=True), none
    )
    if unresolved.any():
        position, _ = find_longest_paths(
            *_list_edges(tasks, matching.other_end, sender_waits=False), none
        )
    position = _delay_zero_calcs(tasks, position) if tasks.is_zero_calc.any() else position
    return _separate_waits(tasks, matching.round, position)


def _separate_waits(tasks: Tasks, round: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Divide tasks that have one position, so that none waits for a message that only a later one
    requires.

    Tasks that must come first are in an earlier round of the matching.
    """
    first = np.full(len(position), len(position))  # for each task, the first task that requires it
    requires = tasks.is_message_end[tasks.dependencies.before] & ~tasks.dependencies.on_start
    before = tasks.dependencies.before[requires]
    after = tasks.dependencies.after[requires]
    must_wait = np.zeros(len(position), dtype=bool)
    must_wait[after] = True
    order = argsort_columns(tasks.rank, position, round, must_wait)
    rank_in_order = np.empty(len(position), dtype=np.int64)
    rank_in_order[order] = np.arange(len(position))
    np.minimum.at(first, before, rank_in_order[after])
    is_first = np.ones(len(position) + 1, dtype=bool)
    is_first[1:-1] = (np.diff(position[order]) != 0) | (np.diff(tasks.rank[order]) != 0)
    is_first[first] = True
    number = np.cumsum(is_first)
    return number[rank_in_order]


def _find_wait_positions(tasks: Tasks, position: np.ndarray) -> np.ndarray:
    """Return for each task the position of the task before which it is waited for."""
    complete = ~tasks.dependencies.on_start
    wait = _find_last_positions(tasks, position) + 1
    np.minimum.at(
        wait, tasks.dependencies.before[complete], position[tasks.dependencies.after[complete]]
    )
    return wait


def _find_last_positions(tasks: Tasks, position: np.ndarray) -> np.ndarray:
    """Return for each task the last position of its rank."""
    last = np.zeros(tasks.ranks, dtype=np.int64)
    np.maximum.at(last, tasks.rank, position)
    return last[tasks.rank]


def _list_edges(
    tasks: Tasks, other_end: np.ndarray, *, sender_waits: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all edges: `before`, `after`, and by how much the position of `after` exceeds that of
    `before` at least.

    A calculation may have the same position as its predecessor if no wait or post can be needed
    between them.
    """
    dependencies = tasks.dependencies
    before, after = dependencies.before, dependencies.after
    is_awaited = tasks.is_message_end[before] & ~dependencies.on_start
    must_wait = np.zeros(len(tasks.rank), dtype=bool)
    must_wait[after[is_awaited]] = True
    follows = ~tasks.is_message_end[after] & ~tasks.is_zero_calc[after] | tasks.is_zero_calc[before]
    may_share = (
        ~tasks.is_message_end[before] & follows & ~(must_wait[after] & ~tasks.is_message_end[after])
    )
    by_message = is_awaited & (sender_waits | (tasks.kind[before] == RECEIVE))
    min_distance = np.concatenate([~may_share, np.ones(int(by_message.sum()), dtype=bool)]).astype(
        int
    )
    return (
        np.concatenate([before, other_end[before[by_message]]]),
        np.concatenate([after, after[by_message]]),
        min_distance,
    )


def _delay_zero_calcs(tasks: Tasks, position: np.ndarray) -> np.ndarray:
    """Move calculations of no time to just before the first task that requires them.

    The tasks on which they depend may therefore take until then.
    """
    before, after, min_distance = _list_edges(tasks, np.full(len(position), -1), sender_waits=False)
    has_task = before >= 0
    before = before[has_task]
    after = after[has_task]
    min_distance = min_distance[has_task]
    latest = _find_last_positions(tasks, position)
    to_others = tasks.is_zero_calc[before] & ~tasks.is_zero_calc[after]
    np.minimum.at(latest, before[to_others], (position[after] - min_distance)[to_others])
    between_zero_calcs = tasks.is_zero_calc[before] & tasks.is_zero_calc[after]
    negated, _ = find_longest_paths(
        after[between_zero_calcs],
        before[between_zero_calcs],
        min_distance[between_zero_calcs],
        -latest,
    )
    return np.where(tasks.is_zero_calc, -negated, position)
