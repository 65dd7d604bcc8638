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
from collections.abc import Mapping

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
        for step in schedule.steps:
            arrivals = self._send(step.src.tolist(), step.dst.tolist())
            for rank, times in arrivals.items():
                for arrival in sorted(times):
                    begin = max(arrival, self.done[rank], self.last_in[rank] + self.g)
                    self.last_in[rank], self.done[rank] = begin, begin + self.o
            for rank, left in self.last_left.items():
                self.done[rank] = max(self.done[rank], left)
            for row in range(step.work.start, step.work.stop):
                self.done[schedule.work.rank[row]] += work[row]
        return self.done

    def _send(self, src: list[int], dst: list[int]) -> dict[int, list[float]]:
        """Posts the sends of a step, those first that are ready first: what arrives where, and when."""
        waiting: dict[int, list[int]] = defaultdict(list)
        for row in reversed(range(len(src))):
            waiting[src[row]].append(dst[row])
        posted = {rank: self.done[rank] for rank in waiting}
        ready = [(max(posted[rank], self.out_free[rank]), rank) for rank in waiting]
        heapq.heapify(ready)
        self.last_left, arrivals = {}, defaultdict(list)
        while ready:
            start, rank = heapq.heappop(ready)
            to = waiting[rank].pop()
            left = self._enter(to, start + self.o)
            stalled = left > start + self.o
            arrivals[to].append(left + self.L)
            # Posting goes on while the port waits for its gap, but not while the processor stalls.
            posted[rank] = left if stalled else posted[rank] + self.o
            self.out_free[rank] = (left - self.o if stalled else start) + self.g
            self.last_left[rank] = left
            if waiting[rank]:
                heapq.heappush(ready, (max(posted[rank], self.out_free[rank]), rank))
        for rank, until in posted.items():
            self.done[rank] = until
        return arrivals

    def _enter(self, to: int, wanted: float) -> float:
        """When a message may leave that wants to leave at a time."""
        under_way = self.left_network[to]
        if not self.capacity:
            return wanted
        left = max(wanted, under_way[-self.capacity]) if len(under_way) >= self.capacity else wanted
        under_way.append(max(left + self.L, under_way[-1] + self.g if under_way else 0.0))
        return left
