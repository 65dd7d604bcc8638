"""A slow replay of message contents: the data of every rank, byte by byte, and the ranks that
contributed to them."""

from collections import defaultdict, deque

import numpy as np

from commodel.patterns.operations import fill_parameters, find_operation
from commodel.patterns.schedule import KINDS, Schedule

Data = dict[int, frozenset]  # address -> the ranks whose values are combined there


def held(pattern: Schedule) -> list[list[tuple[int, int]]]:
    """Return the runs of bytes of every message as (first, length)."""
    runs_of: list[list[tuple[int, int]]] = [[] for _ in pattern.src]
    runs = pattern.contents()
    for row, first, length in zip(runs.row, runs.first, runs.length, strict=True):
        runs_of[row].append((int(first), int(length)))
    return runs_of


class Replay:
    """Replay a schedule of an operation on `size` bytes. `data` is the final data of every rank.
    `in_order`: every partial result covers consecutive ranks.
    """

    def __init__(self, pattern: Schedule, name: str, size: int):
        self.operation, self.parameters = find_operation(name), fill_parameters(name, pattern.ranks)
        self.size, self.ranks = size, pattern.ranks
        self.in_order = True
        self.data: list[Data] = [self._at_start(rank) for rank in range(pattern.ranks)]
        work = pattern.work
        reducing = work.kind == KINDS.index("reduce")
        self.reduced = defaultdict(int)
        for step, rank, count in zip(
            work.step[reducing], work.rank[reducing], work.bytes[reducing], strict=True
        ):
            self.reduced[int(step), int(rank)] += int(count)
        self.combining = {place for place, count in self.reduced.items() if count or size == 0}
        runs = held(pattern)
        for row, parts in enumerate(runs):
            assert sum(length for _, length in parts) == pattern.bytes[row], f"message {row}"
        for step in np.unique(pattern.step):
            self._play(pattern, runs, int(step))

    def _at_start(self, rank: int) -> Data:
        own = frozenset([rank])
        extents = self.operation.initial_data(rank, self.ranks, self.size, **self.parameters)
        return {
            address: own for first, length in extents for address in range(first, first + length)
        }

    def _play(self, pattern: Schedule, runs, step: int) -> None:
        arriving: dict[int, list[Data]] = defaultdict(list)
        for row in np.flatnonzero(pattern.step == step):
            source = self.data[pattern.src[row]]  # not changed before all of the step has been sent
            message = {
                a: source[a] for first, length in runs[row] for a in range(first, first + length)
            }
            arriving[int(pattern.dst[row])].append(message)
        for rank, messages in arriving.items():
            if (step, rank) in self.combining:
                assert self.reduced[step, rank] == sum(map(len, messages))
                for address in set().union(*messages):
                    self._combine(
                        rank,
                        address,
                        [message[address] for message in messages if address in message],
                    )
            else:
                for message in messages:
                    self.data[rank] |= message

    def _combine(self, rank: int, address: int, parts: list[frozenset]) -> None:
        every = [self.data[rank][address], *parts]
        whole = frozenset().union(*every)
        assert len(whole) == sum(map(len, every)), (
            f"rank {rank} counts something twice at {address}"
        )
        self.in_order &= max(whole) - min(whole) + 1 == len(whole)
        self.data[rank][address] = whole

    def check(self) -> None:
        """Assert that every rank has the operation's final data."""
        all_ranks = frozenset(range(self.ranks))
        for rank in range(self.ranks):
            for first, length in self.operation.final_data(
                rank, self.ranks, self.size, **self.parameters
            ):
                for address in range(first, first + length):
                    ranks = self.data[rank].get(address)
                    assert ranks is not None, f"rank {rank} lacks {address}"
                    if self.operation.reduces:
                        assert ranks == all_ranks, (
                            f"rank {rank} has {sorted(ranks)} only at {address}"
                        )


def finishes_with_synchronous_sends(pattern: Schedule) -> bool:
    """Return whether all messages arrive if each is transferred only while both ranks are in its
    step."""
    rows_of: dict[tuple[int, int], set[int]] = defaultdict(set)
    for row, (step, src, dst) in enumerate(
        zip(pattern.step, pattern.src, pattern.dst, strict=True)
    ):
        rows_of[int(src), int(step)].add(row)
        rows_of[int(dst), int(step)].add(row)
    todo = [
        deque(sorted(step for owner, step in rows_of if owner == rank))
        for rank in range(pattern.ranks)
    ]
    moved = True
    while moved:
        here = {(rank, steps[0]) for rank, steps in enumerate(todo) if steps}
        posted = [rows_of[place] for place in here]
        moving = {
            row for rows in posted for row in rows if sum(row in other for other in posted) == 2
        }
        for rank, step in here:
            rows_of[rank, step] -= moving
            if not rows_of[rank, step]:
                todo[rank].popleft()
        moved = bool(moving)
    return not any(todo)
