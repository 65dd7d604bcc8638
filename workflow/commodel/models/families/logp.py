"""LogP: every message is short and costs the same, whatever its size.

Fitted from the smallest message measured, and good for messages that take up to a tenth longer. o is the mean of the
two overheads; L is what is left of half a round trip when both are taken off (LogP's own definition is an upper bound,
this is the median).
"""

import numpy as np

from commodel.models.families import GAMMA, Family, Parameter, local_work
from commodel.models.fitting.curves import curve
from commodel.models.fitting.observed import Fitted
from commodel.models.fitting.roundtrips import NO_LATENCY, round_trips
from commodel.models.pricing.replay import Costs, finish_times


def fit(observed):
    trips = round_trips(observed)
    o = trips.overheads[:, 0] / 2
    L = np.maximum(trips.one_way[:, 0] - 2 * o, 0)
    g = trips.spacing[:, 0]
    short = trips.size[trips.one_way[0] <= 1.1 * trips.one_way[0, 0]].max()
    unknown = {}
    if g[0] <= 1.05 * max(trips.o_s[0, 0], trips.o_r[0, 0]):
        unknown["g"] = "no larger than the overhead, which hides it"
    if not L[0]:
        unknown["L"] = NO_LATENCY
    fitted = np.full(len(trips.size), L[0] + 2 * o[0])
    evidence = curve("half a round trip", ("message / B", "time / s"), trips.size, trips.one_way[0], fitted, "L + 2·o")
    values = {"L": L, "o": o, "g": g, "gamma": local_work(observed)}
    return Fitted(values, (0, short), unknown=unknown, curves=(evidence,))


def price(schedule, values):
    costs = Costs(send=values["o"], receive=values["o"], wire=values["L"], gap_out=values["g"], gap_in=values["g"])
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
)
