"""LogGP: LogP with a cost per byte G for long messages, here with the overheads of sender and receiver kept apart.

A message sent at t reaches its receiver's processor at t + o_s + L + (m-1)·G and is received o_r later; the next send
may start g + (m-1)·G after this one, the next receive likewise. L is what is left of half a round trip when both
overheads are taken off; Netgauge's "L" keeps them in.
"""

import numpy as np

from commodel.models.families import GAMMA, Family, Parameter, local_work
from commodel.models.fitting.curves import curve
from commodel.models.fitting.observed import Fitted
from commodel.models.fitting.roundtrips import network, round_trips
from commodel.models.pricing.replay import Costs, finish_times


def fit(observed):
    trips = round_trips(observed)
    size, body = trips.size, trips.body
    o_s, o_r = trips.short_overheads
    overhead = max(o_s[0], o_r[0])
    # The overheads of the model, not those of each size: what a long message adds to them has to be in G.
    rest = network(trips, overhead, trips.one_way - (o_s + o_r)[:, None])
    L, g, G = rest.L, rest.g, rest.G

    def against_size(title, measured, fitted, form, terms):
        fitted = np.broadcast_to(fitted, size.shape)
        return curve(title, ("message / B", "time / s"), size, measured[0], fitted, form, terms)

    curves = (
        against_size(
            "half a round trip", trips.one_way, o_s[0] + o_r[0] + L[0] + G[0] * body, "o_s + L + (m−1)·G + o_r", 4
        ),
        against_size(
            "spacing of a burst", trips.spacing, np.maximum(g[0] + G[0] * body, overhead), "max(g + (m−1)·G, o)", 2
        ),
        against_size("send overhead", trips.o_s, o_s[0], "o_s", 1),
        against_size("receive overhead", trips.o_r, o_r[0], "o_r", 1),
    )
    values = {"L": L, "o_s": o_s, "o_r": o_r, "g": g, "G": G, "gamma": local_work(observed)}
    return Fitted(values, (size[0], size[-1]), notes=rest.notes, unknown=rest.unknown, curves=curves)


def price(schedule, values):
    numbers = {name: values[name] for name in ("L", "o_s", "o_r", "g", "G")}
    return played(schedule, schedule.work_seconds(values["gamma"]), **numbers)


def played(schedule, work, L, o_s, o_r, g, G):
    """Finish times where every message has the given values: one for all, or one for each row."""
    body = G * np.maximum(schedule.bytes - 1, 0)
    costs = Costs(send=o_s, receive=o_r, wire=L + body, gap_out=g + body, gap_in=g + body)
    return finish_times(schedule, costs, work)


FAMILY = Family(
    name="loggp",
    title="LogGP",
    citation="A. Alexandrov, M. Ionescu, K. Schauser, C. Scheiman, "
    "LogGP: incorporating long messages into the LogP model, SPAA 1995",
    equation="T(m) = o_s + L + (m−1)·G + o_r; next message g + (m−1)·G later",
    parameters=(
        Parameter("L", "s", "latency of the network, overheads taken off"),
        Parameter("o_s", "s", "time the sender's processor is busy with a message"),
        Parameter("o_r", "s", "time the receiver's processor is busy with a message"),
        Parameter("g", "s", "least time between the starts of two messages of one port"),
        Parameter("G", "s/B", "further time per byte"),
        GAMMA,
    ),
    probes=("prtt", "work"),
    fit=fit,
    price=price,
    independent=True,
    from_points={"L": 1e-5, "o_s": 1e-6, "o_r": 1e-6, "g": 1e-6, "G": 1e-9},
    ignores="contention in the network; overheads that grow with the message",
)
