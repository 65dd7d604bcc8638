"""LogP: every message is short and costs the same, whatever its size.

    T = o + L + o, the next message of a port max(g, o) later

Fitted from the smallest message measured, and good for messages that take up to a tenth longer. o is the mean of the
two overheads; L is what is left of half a round trip when both are taken off (LogP's own definition is an upper bound,
this is the median).

LogP's network holds ⌈L/g⌉ messages to a processor, and a sender that would exceed it stalls until one of them has left
the network. A set may ask for that (`capacity: finite`). The network hands a processor its messages at least g apart,
each L after it was sent at the earliest. As ⌈L/g⌉·g ≥ L, nothing arrives later for it: what a stall costs is the
sender's time, and what it would have sent meanwhile. A sender by itself never has so many under way. By default nobody
stalls, as in most uses of LogP, and as networks with buffers behave.

An overlay network has no probe that tells L and o apart: there a level of a chain takes L + 2·o, each further child of
N-to-1 max(g, o), and nothing else is asked of a tree.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np

from commodel.models.evaluation.replay import Costs, replay_by_class
from commodel.models.families import GAMMA, Array, Family, Fitted, Observed, Parameter, Schedule, Values, local_work
from commodel.models.fitting.regression import curve, least_squares
from commodel.models.fitting.round_trips import NO_LATENCY, round_trips
from commodel.models.probes import EVERYWHERE

LEAVES = ("N, leaves", "time / s")


def fit(observed: Observed) -> Fitted:
    if not observed.probes.get("prtt") and observed.probes.get("chain"):
        return fit_trees(observed)
    trips = round_trips(observed)
    o = trips.overheads[:, 0] / 2
    L = np.maximum(trips.one_way[:, 0] - 2 * o, 0)
    g = trips.spacing[:, 0]
    unknown = {}
    if g[0] <= 1.05 * max(trips.o_s[0, 0], trips.o_r[0, 0]):
        unknown["g"] = "no larger than the overhead, which hides it"
    if not L[0]:
        unknown["L"] = NO_LATENCY
    short = trips.size[trips.one_way[0] <= 1.1 * trips.one_way[0, 0]].max()
    fitted = np.full(len(trips.size), L[0] + 2 * o[0])
    evidence = curve("half a round trip", trips.size, trips.one_way[0], fitted, "L + 2·o")
    values = {"L": L, "o": o, "g": g, "gamma": local_work(observed)}
    return Fitted(values, (0, short), unknown=unknown, curves=(evidence,))


def fit_trees(observed: Observed) -> Fitted:
    """From half the round trips of chains and from N-to-1 together: h·(L + 2·o) and L + 2·o + (N − 1)·max(g, o)."""
    chain = observed.cases("chain")
    packet = int(chain["bytes"][0])
    fan = observed.cases("fan", direction="in", bytes=packet)
    height, leaves = chain["height"].astype(float), fan["n"].astype(float)
    y = np.concatenate([chain.seconds / 2, fan.seconds], axis=-1)
    levels = np.concatenate([height, np.ones(len(leaves))])
    others = np.concatenate([np.zeros(len(height)), leaves - 1])
    level, further = np.maximum(least_squares([levels, others], y, 1 / y[0] ** 2), 0).T
    values = {"L": level, "o": np.zeros_like(level), "g": further}
    unknown = {"o": "left at 0: chains tell L + 2·o, N-to-1 tells max(g, o)"}
    curves = (
        curve("chain", height, y[0, : len(height)], level[0] * height, "h·(L + 2·o)", 1, ("height", "time / s")),
        curve("N-to-1", leaves, fan.seconds[0], level[0] + further[0] * (leaves - 1), "L + 2·o + (N − 1)·g", 2, LEAVES),
    )
    return Fitted(values, (0, packet), notes={"L": "2·o is in it"}, unknown=unknown, curves=curves)


def predict(schedule: Schedule, values: Values) -> Array:
    if values.settings.get("capacity") == "finite":
        numbers = {name: values[name] for name in ("L", "o", "g")}
        return stalled_finish_times(schedule, numbers, schedule.work_seconds(values["gamma"]))

    def costs(part: Schedule, values: Values) -> Costs:
        o, g = values["o"], values["g"]
        return Costs(send=o, receive=o, wire=values["L"], gap_out=g, gap_in=g)

    return replay_by_class(schedule, values, costs)


def stalled_finish_times(schedule: Schedule, numbers: Mapping[str, Array], work_seconds: Array) -> Array:
    """Return when each rank is done with no more than ⌈L/g⌉ messages under way to one, for every draw of L, o and g,
    each (draws, 1). Message by message in plain Python, because who stalls depends on who came first."""
    lead = np.broadcast_shapes(*(np.shape(column)[:-1] for column in numbers.values()), np.shape(work_seconds)[:-1])
    work = np.broadcast_to(work_seconds, (*lead, len(schedule.work.step)))
    columns = {name: np.broadcast_to(column, (*lead, 1))[..., 0] for name, column in numbers.items()}
    done = np.empty((*lead, schedule.ranks))
    for draw in np.ndindex(*lead):
        machine = _Machine(schedule.ranks, **{name: float(column[draw]) for name, column in columns.items()})
        done[draw] = machine.run(schedule, work[draw])
    return done


class _Machine:
    """One draw's ports, and what the network holds for each processor. The rules are otherwise those of `replay`."""

    def __init__(self, ranks: int, L: float, o: float, g: float) -> None:
        self.L, self.o, self.g = L, o, g
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
        """Return when a message may leave that wants to leave at a time."""
        under_way = self.left_network[to]
        if not self.capacity:
            return wanted
        left = max(wanted, under_way[-self.capacity]) if len(under_way) >= self.capacity else wanted
        under_way.append(max(left + self.L, under_way[-1] + self.g if under_way else 0.0))
        return left


def doubts(schedule: Schedule, values: Values) -> str:
    finite = values.classes and values.settings.get("capacity") == "finite"
    return "placement not modelled: finite capacity has one latency" if finite else ""


FAMILY = Family(
    name="logp",
    title="LogP",
    citation="D. Culler et al., LogP: towards a realistic model of parallel computation, PPoPP 1993",
    equation="T = o + L + o; next message max(g, o) later",
    parameters=(
        Parameter("L", "s", "latency of the network for a short message, overheads taken off"),
        Parameter("o", "s", "time a processor is busy with sending or receiving a message"),
        Parameter("g", "s", "least time between the starts of two messages of one port"),
        GAMMA,
    ),
    probes=("prtt", "work"),
    on_overlay=("chain", "fan"),
    fit=fit,
    predict=predict,
    independent=True,
    by_class=EVERYWHERE,
    from_points={"L": 1e-5, "o": 1e-6, "g": 1e-6},
    ignores="the size of a message; contention in the network",
    uses_bytes=False,
    settings={"capacity": ("unlimited", "finite")},
    doubts=doubts,
    decides={"capacity": "Whether a sender stalls while ⌈L/g⌉ messages are under way to its receiver"},
)
