"""LogP: every message is short and costs the same, whatever its size.

    T = o + L + o, the next message of a port max(g, o) later

Fitted from the smallest message measured, and good for messages that take up to a tenth longer. o is the mean of the
two overheads; L is what is left of half a round trip when both are taken off (LogP's own definition is an upper bound,
this is the median).

LogP's network holds ⌈L/g⌉ messages to a processor, and a sender stalls that would exceed it. A set may ask for that
(`capacity: finite`): the receiver of many loses nothing by it, its senders do. By default nobody stalls, as in most
uses of LogP, and as networks with buffers behave.

An overlay network has no probe that tells L and o apart: there a level of a chain takes L + 2·o, each further child of
N-to-1 max(g, o), and nothing else is asked of a tree.
"""

import numpy as np

from commodel.models.families import GAMMA, Array, Family, Fitted, Observed, Parameter, Schedule, Values, local_work
from commodel.models.fitting.regression import curve, least_squares
from commodel.models.fitting.round_trips import NO_LATENCY, round_trips
from commodel.models.pricing import finite_capacity
from commodel.models.pricing.replay import Costs, replay_by_class
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


def price(schedule: Schedule, values: Values) -> Array:
    if values.settings.get("capacity") == "finite":
        numbers = {name: values[name] for name in ("L", "o", "g")}
        return finite_capacity.finish_times(schedule, numbers, schedule.work_seconds(values["gamma"]))

    def costs(part: Schedule, values: Values) -> Costs:
        o, g = values["o"], values["g"]
        return Costs(send=o, receive=o, wire=values["L"], gap_out=g, gap_in=g)

    return replay_by_class(schedule, values, costs)


def doubts(schedule: Schedule, values: Values) -> str:
    finite = values.classes and values.settings.get("capacity") == "finite"
    return "blind to placement: finite capacity knows one latency" if finite else ""


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
    price=price,
    independent=True,
    by_class=EVERYWHERE,
    from_points={"L": 1e-5, "o": 1e-6, "g": 1e-6},
    ignores="the size of a message; contention in the network",
    uses_bytes=False,
    settings={"capacity": ("unlimited", "finite")},
    doubts=doubts,
    decides={"capacity": "Whether a sender stalls while ⌈L/g⌉ messages are under way to its receiver"},
)
