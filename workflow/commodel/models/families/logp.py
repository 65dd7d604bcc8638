"""LogP: every message is short and takes the same time, whatever its size.

    T = o + L + o, the next message of a port max(g, o) later

Fitted to the smallest message measured; valid for messages that take up to 10 % longer. o is the
mean of the two overheads. L is half a round trip minus both overheads, its median (LogP's own
definition is an upper bound).

LogP's network holds ⌈L/g⌉ messages to a processor, and a sender that would exceed it stalls until
one of them has left the network. A set may select this (`capacity: finite`). The network delivers
messages to a processor at least g apart, each at least L after it was sent. As ⌈L/g⌉·g ≥ L, a stall
delays no arrival: it only takes the sender's time. A single sender never has more messages in
flight. By default no sender stalls, as in most uses of LogP, and as networks with buffers behave.

Without a probe that separates L and o, as on an overlay network, a level of a chain takes L + 2·o,
and each further child of N-to-1 max(g, o).
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np

from commodel.models.evaluation.replay import Costs, predict_by_replay
from commodel.models.families import (
    GAMMA,
    Array,
    Family,
    Fitted,
    Observed,
    Parameter,
    Schedule,
    Setting,
    TableFit,
    Values,
    fit_local_work,
)
from commodel.models.fitting.regression import fit_least_squares, make_curve
from commodel.models.fitting.round_trips import NO_LATENCY, collect_round_trips
from commodel.models.probes import EVERYWHERE

LEAVES_AXES = ("N, leaves", "time / s")


def fit(observed: Observed) -> Fitted:
    if not observed.probes.get("prtt") and observed.probes.get("chain"):
        return fit_trees(observed)
    trips = collect_round_trips(observed)
    o = trips.overheads[:, 0] / 2
    L = np.maximum(trips.one_way[:, 0] - 2 * o, 0)
    g = trips.spacing[:, 0]
    unidentified = {}
    if g[0] <= 1.05 * max(trips.o_s[0, 0], trips.o_r[0, 0]):
        unidentified["g"] = "no larger than the overhead, which hides it"
    if not L[0]:
        unidentified["L"] = NO_LATENCY
    short = trips.size[trips.one_way[0] <= 1.1 * trips.one_way[0, 0]].max()
    fitted = np.full(len(trips.size), L[0] + 2 * o[0])
    evidence = make_curve("half a round trip", trips.size, trips.one_way[0], fitted, "L + 2·o")
    values = {"L": L, "o": o, "g": g, "gamma": fit_local_work(observed)}
    return Fitted(values, (0, short), unidentified=unidentified, curves=(evidence,))


def fit_trees(observed: Observed) -> Fitted:
    """Fit chains, half of whose round trip is h·(L + 2·o), and N-to-1, L + 2·o + (N − 1)·max(g, o),
    together."""
    chain = observed.cases("chain")
    packet = int(chain["bytes"][0])
    fan = observed.cases("fan", direction="in", bytes=packet)
    height, leaves = chain["height"].astype(float), fan["n"].astype(float)
    y = np.concatenate([chain.seconds / 2, fan.seconds], axis=-1)
    levels = np.concatenate([height, np.ones(len(leaves))])
    fan_ins = np.concatenate([np.zeros(len(height)), leaves - 1])
    level, per_child = np.maximum(fit_least_squares([levels, fan_ins], y, 1 / y[0] ** 2), 0).T
    values = {"L": level, "o": np.zeros_like(level), "g": per_child}
    unidentified = {"o": "set to 0: chains determine only L + 2·o, N-to-1 max(g, o)"}
    curves = (
        make_curve(
            "chain",
            height,
            y[0, : len(height)],
            level[0] * height,
            "h·(L + 2·o)",
            1,
            ("height", "time / s"),
        ),
        make_curve(
            "N-to-1",
            leaves,
            fan.seconds[0],
            level[0] + per_child[0] * (leaves - 1),
            "L + 2·o + (N − 1)·g",
            2,
            LEAVES_AXES,
        ),
    )
    return Fitted(
        values, (0, packet), notes={"L": "includes 2·o"}, unidentified=unidentified, curves=curves
    )


def predict(schedule: Schedule, values: Values) -> Array:
    if values.settings.get("capacity") == "finite":
        numbers = {name: values[name] for name in ("L", "o", "g")}
        return simulate_stalls(schedule, numbers, schedule.work_seconds(values["gamma"]))

    return predict_by_replay(find_costs)(schedule, values)


def find_costs(schedule: Schedule, values: Values) -> Costs:
    o, g = values["o"], values["g"]
    return Costs(send=o, receive=o, wire=values["L"], gap_out=g, gap_in=g)


def simulate_stalls(schedule: Schedule, numbers: Mapping[str, Array], work_seconds: Array) -> Array:
    """Return when each rank is done with at most ⌈L/g⌉ messages in flight to one rank, for every
    draw of L, o and g.

    Each parameter has the shape (draws, 1). Messages are replayed in Python, as stalls depend on
    the order of sends.
    """
    shape = np.broadcast_shapes(
        *(np.shape(column)[:-1] for column in numbers.values()), np.shape(work_seconds)[:-1]
    )
    work = np.broadcast_to(work_seconds, (*shape, len(schedule.work.step)))
    columns = {
        name: np.broadcast_to(column, (*shape, 1))[..., 0] for name, column in numbers.items()
    }
    finish = np.empty((*shape, schedule.ranks))
    for draw in np.ndindex(*shape):
        machine = _StallingNetwork(
            schedule.ranks, **{name: float(column[draw]) for name, column in columns.items()}
        )
        finish[draw] = machine.run(schedule, work[draw])
    return finish


class _StallingNetwork:
    """One draw's ports, and the messages in the network for each processor. The other rules are
    those of `replay`."""

    def __init__(self, ranks: int, L: float, o: float, g: float) -> None:
        self.L, self.o, self.g = L, o, g
        self.capacity = max(int(np.ceil(self.L / self.g)), 1) if self.g > 0 else 0  # 0: unlimited
        self.done, self.out_free, self.last_in = [0.0] * ranks, [0.0] * ranks, [-np.inf] * ranks
        # times by receiver, in the order of sending
        self.left_network: dict[int, list[float]] = defaultdict(list)

    def run(self, schedule: Schedule, work: Array) -> list[float]:
        all_rows = np.arange(len(schedule.src))
        send_end = [0.0] * len(all_rows)  # when each message left its sender
        for step in schedule.steps:
            rows = range(step.posted_sends.start, step.posted_sends.stop)
            self._send(rows, step.src.tolist(), schedule.dst[step.posted_sends].tolist(), send_end)
            for arrival, rank in sorted(
                (send_end[row] + self.L, schedule.dst[row])
                for row in all_rows[step.awaited_receives]
            ):
                begin = max(arrival, self.done[rank], self.last_in[rank] + self.g)
                self.last_in[rank], self.done[rank] = begin, begin + self.o
            for row in all_rows[step.awaited_sends]:
                self.done[schedule.src[row]] = max(self.done[schedule.src[row]], send_end[row])
            for row in range(step.work.start, step.work.stop):
                self.done[schedule.work.rank[row]] += work[row]
        return self.done

    def _send(
        self, rows: Iterable[int], src: list[int], dst: list[int], send_end: list[float]
    ) -> None:
        """Post the sends of a step in the order in which they become ready."""
        waiting: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for row, sender, receiver in reversed(list(zip(rows, src, dst, strict=True))):
            waiting[sender].append((row, receiver))
        ready = [(max(self.done[rank], self.out_free[rank]), rank) for rank in waiting]
        heapq.heapify(ready)
        while ready:
            start, rank = heapq.heappop(ready)
            row, receiver = waiting[rank].pop()
            send_end[row] = self._enter(receiver, start + self.o)
            # the processor stalls; only the port waits for the gap
            if send_end[row] > start + self.o:
                self.done[rank], start = send_end[row], send_end[row] - self.o
            else:
                self.done[rank] += self.o
            self.out_free[rank] = start + self.g
            if waiting[rank]:
                heapq.heappush(ready, (max(self.done[rank], self.out_free[rank]), rank))

    def _enter(self, receiver: int, ready: float) -> float:
        """Return when a message may leave that is ready at a time."""
        in_flight = self.left_network[receiver]
        if not self.capacity:
            return ready
        send_end = (
            max(ready, in_flight[-self.capacity]) if len(in_flight) >= self.capacity else ready
        )
        in_flight.append(max(send_end + self.L, in_flight[-1] + self.g if in_flight else 0.0))
        return send_end


def describe_limits(schedule: Schedule, values: Values) -> str:
    finite = values.classes and values.settings.get("capacity") == "finite"
    return "placement not modelled: finite capacity has one latency" if finite else ""


FAMILY = Family(
    name="logp",
    title="LogP",
    citation="D. Culler et al., LogP: towards a realistic model of parallel computation, PPoPP 1993",
    equation="T = o + L + o; next message max(g, o) later",
    parameters=(
        Parameter("L", "s", "latency of the network for a short message, without overheads"),
        Parameter("o", "s", "time a processor is busy with sending or receiving a message"),
        Parameter("g", "s", "least time between the starts of two messages of one port"),
        GAMMA,
    ),
    probes=("prtt", "work"),
    probes_without_mpi=("chain", "fan"),
    fit=fit,
    predict=predict,
    independent=True,
    by_class=EVERYWHERE,
    table_fit=TableFit(initial_values={"L": 1e-5, "o": 1e-6, "g": 1e-6}),
    ignores="the size of a message; contention in the network",
    uses_bytes=False,
    settings={
        "capacity": Setting(
            ("unlimited", "finite"),
            "Whether a sender stalls while ⌈L/g⌉ messages are in flight to its receiver",
        )
    },
    limits=describe_limits,
)
