"""LogP's finite capacity: no more than ⌈L/g⌉ messages are under way to a processor at once, and who would send one more
stalls until one of them has left the network.

The network hands a processor its messages at least g apart, each L after it was sent at the earliest. As ⌈L/g⌉·g ≥ L,
nothing arrives later for it: what a stall costs is the sender's time, and what it would have sent meanwhile. A sender
by itself never has so many under way, because its messages start g apart.

Otherwise the rules are those of `replay`, message by message in plain Python, because who stalls depends on who came
first: slower by far, and only where a set asks for it.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np

from commodel.models import Array
from commodel.patterns.schedule import Schedule

Times = Mapping[str, float]  # L, o and g of one draw


def finish_times(schedule: Schedule, numbers: Mapping[str, Array], work_seconds: Array) -> Array:
    """When each rank is done, for every draw of L, o and g, each (draws, 1)."""
    lead = np.broadcast_shapes(*(np.shape(column)[:-1] for column in numbers.values()), np.shape(work_seconds)[:-1])
    work = np.broadcast_to(work_seconds, (*lead, len(schedule.work.step)))
    columns = {name: np.broadcast_to(column, (*lead, 1))[..., 0] for name, column in numbers.items()}
    done = np.empty((*lead, schedule.ranks))
    for draw in np.ndindex(*lead):
        done[draw] = _Machine(schedule.ranks, {name: float(column[draw]) for name, column in columns.items()}).run(
            schedule, work[draw]
        )
    return done


class _Machine:
    """One machine: its ports and what the network holds for each processor."""

    def __init__(self, ranks: int, times: Times) -> None:
        self.L, self.o, self.g = times["L"], times["o"], times["g"]
        self.capacity = max(int(np.ceil(self.L / self.g)), 1) if self.g > 0 else 0  # 0: without a limit
        self.done, self.out_free, self.last_in = [0.0] * ranks, [0.0] * ranks, [-np.inf] * ranks
        self.left_network: dict[int, list[float]] = defaultdict(list)  # by receiver, in the order of sending

    def run(self, schedule: Schedule, work: Array) -> list[float]:
        every = np.arange(len(schedule.src))
        left = [0.0] * len(every)  # when each message left its sender
        for step in schedule.steps:
            rows = range(step.sent.start, step.sent.stop)
            self._send(rows, step.src.tolist(), schedule.dst[step.sent].tolist(), left)
            for arrival, rank in sorted((left[row] + self.L, schedule.dst[row]) for row in every[step.taken]):
                begin = max(arrival, self.done[rank], self.last_in[rank] + self.g)
                self.last_in[rank], self.done[rank] = begin, begin + self.o
            for row in every[step.finished]:
                self.done[schedule.src[row]] = max(self.done[schedule.src[row]], left[row])
            for row in range(step.work.start, step.work.stop):
                self.done[schedule.work.rank[row]] += work[row]
        return self.done

    def _send(self, rows: Iterable[int], src: list[int], dst: list[int], left: list[float]) -> None:
        """Posts the sends of a step, those first that are ready first."""
        waiting: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for row, sender, to in reversed(list(zip(rows, src, dst, strict=True))):
            waiting[sender].append((row, to))
        ready = [(max(self.done[rank], self.out_free[rank]), rank) for rank in waiting]
        heapq.heapify(ready)
        while ready:
            start, rank = heapq.heappop(ready)
            row, to = waiting[rank].pop()
            left[row] = self._enter(to, start + self.o)
            if left[row] > start + self.o:  # the processor stalls; for its gap only the port waits
                self.done[rank], start = left[row], left[row] - self.o
            else:
                self.done[rank] += self.o
            self.out_free[rank] = start + self.g
            if waiting[rank]:
                heapq.heappush(ready, (max(self.done[rank], self.out_free[rank]), rank))

    def _enter(self, to: int, wanted: float) -> float:
        """When a message may leave that wants to leave at a time."""
        under_way = self.left_network[to]
        if not self.capacity:
            return wanted
        left = max(wanted, under_way[-self.capacity]) if len(under_way) >= self.capacity else wanted
        under_way.append(max(left + self.L, under_way[-1] + self.g if under_way else 0.0))
        return left
