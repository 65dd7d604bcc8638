"""LogGP: LogP with a time per byte G for long messages, here with separate overheads of sender and
receiver.

    T(m) = o_s + L + (m−1)·G + o_r, the next message of a port g + (m−1)·G later

L is half a round trip minus both overheads; Netgauge's "L" includes them.
"""

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
    TableFit,
    Values,
    fit_local_work,
)
from commodel.models.fitting.regression import make_curve
from commodel.models.fitting.round_trips import collect_round_trips, fit_network
from commodel.models.probes import EVERYWHERE


def fit(observed: Observed) -> Fitted:
    trips = collect_round_trips(observed)
    size, body = trips.size, trips.body  # body: m − 1
    o_s, o_r = trips.short_overheads
    overhead = max(o_s[0], o_r[0])
    # The overheads are those of short messages. G therefore includes the additional overhead of
    # long messages.
    in_network = fit_network(trips, overhead, trips.one_way - (o_s + o_r)[:, None])
    L, g, G = in_network.L, in_network.g, in_network.G

    one_way = o_s[0] + o_r[0] + L[0] + G[0] * body
    spacing = np.maximum(g[0] + G[0] * body, overhead)
    curves = (
        make_curve(
            "half a round trip", size, trips.one_way[0], one_way, "o_s + L + (m−1)·G + o_r", 4
        ),
        make_curve("spacing of a burst", size, trips.spacing[0], spacing, "max(g + (m−1)·G, o)", 2),
        make_curve("send overhead", size, trips.o_s[0], np.full(len(size), o_s[0]), "o_s"),
        make_curve("receive overhead", size, trips.o_r[0], np.full(len(size), o_r[0]), "o_r"),
    )
    values = {"L": L, "o_s": o_s, "o_r": o_r, "g": g, "G": G, "gamma": fit_local_work(observed)}
    return Fitted(
        values,
        (size[0], size[-1]),
        notes=in_network.notes,
        unidentified=in_network.unidentified,
        curves=curves,
    )


def find_costs(schedule: Schedule, values: Values) -> Costs:
    return compute_costs(schedule, **{name: values[name] for name in ("L", "o_s", "o_r", "g", "G")})


def compute_costs(
    schedule: Schedule, L: Array, o_s: Array, o_r: Array, g: Array, G: Array
) -> Costs:
    """Return the costs of messages; all have the given values, or each row has its own."""
    seconds = G * np.maximum(schedule.bytes - 1, 0)
    return Costs(send=o_s, receive=o_r, wire=L + seconds, gap_out=g + seconds, gap_in=g + seconds)


FAMILY = Family(
    name="loggp",
    title="LogGP",
    citation="A. Alexandrov, M. Ionescu, K. Schauser, C. Scheiman, "
    "LogGP: incorporating long messages into the LogP model, SPAA 1995",
    equation="T(m) = o_s + L + (m−1)·G + o_r; next message g + (m−1)·G later",
    parameters=(
        Parameter("L", "s", "latency of the network, without overheads"),
        Parameter("o_s", "s", "time the sender's processor is busy with a message"),
        Parameter("o_r", "s", "time the receiver's processor is busy with a message"),
        Parameter("g", "s", "least time between the starts of two messages of one port"),
        Parameter("G", "s/B", "time per byte after the first"),
        GAMMA,
    ),
    probes=("prtt", "work"),
    fit=fit,
    predict=predict_by_replay(find_costs),
    independent=True,
    by_class=EVERYWHERE,
    table_fit=TableFit(initial_values={"L": 1e-5, "o_s": 1e-6, "o_r": 1e-6, "g": 1e-6, "G": 1e-9}),
    ignores="contention in the network; overheads that grow with the message",
)
