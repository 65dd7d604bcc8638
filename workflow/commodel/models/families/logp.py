"""LogP: every message is short and costs the same, whatever its size.

    T = o + L + o, the next message of a port max(g, o) later

Fitted from the smallest message measured, and good for messages that take up to a tenth longer. o is the mean of the
two overheads; L is what is left of half a round trip when both are taken off (LogP's own definition is an upper bound,
this is the median).

LogP's network holds ⌈L/g⌉ messages to a processor, and a sender stalls that would exceed it. A set may ask for that
(`capacity: finite`): the receiver of many loses nothing by it, its senders do. By default nobody stalls, as in most
uses of LogP, and as networks with buffers behave.
"""

import numpy as np

from commodel.models.families import GAMMA, Array, Family, Fitted, Observed, Parameter, Schedule, Values, local_work
from commodel.models.fitting.curves import curve
from commodel.models.fitting.roundtrips import NO_LATENCY, round_trips
from commodel.models.pricing import capacity
from commodel.models.pricing.replay import Costs, finish_times


def fit(observed: Observed) -> Fitted:
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


def price(schedule: Schedule, values: Values) -> Array:
    L, o, g = values["L"], values["o"], values["g"]
    if values.settings.get("capacity") == "finite":
        return capacity.finish_times(schedule, {"L": L, "o": o, "g": g}, schedule.work_seconds(values["gamma"]))
    costs = Costs(send=o, receive=o, wire=L, gap_out=g, gap_in=g)
    return finish_times(schedule, costs, schedule.work_seconds(values["gamma"]))


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
    fit=fit,
    price=price,
    independent=True,
    from_points={"L": 1e-5, "o": 1e-6, "g": 1e-6},
    ignores="the size of a message; contention in the network",
    uses_bytes=False,
    settings={"capacity": ("unlimited", "finite")},
    decides={"capacity": "Whether a sender stalls while ⌈L/g⌉ messages are under way to its receiver"},
)
