"""LogGOPS: LogGP with an overhead per byte O, and a size S above which the sender asks first and waits for the answer.

o is the mean of the two overheads, as in LogP. A message's bytes cost its sender, then travel, then cost its receiver:
T(m) = 2·(o + (m−1)·O) + L + (m−1)·G; LogGOPSim lets them overlap. To ask is a request that travels L, and an answer of
o + L + o as soon as the receiver has entered the step, so an idle pair loses 2·L + 2·o; LogGPS has other terms there.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from commodel.families import GAMMA, Family, Parameter
from commodel.fitting import Fitted, curve, line, mean, per_byte, segments
from commodel.replay import Costs, finish_times
from commodel.roundtrips import network, round_trips
from commodel.units import format_bytes

NEVER = float(1 << 62)  # bytes: no message asks first


def fit(observed):
    """Where S is seen, overheads are read off the messages that do not ask: what asks waits within them."""
    trips = round_trips(observed)
    size, body = trips.size, trips.body
    travel = trips.one_way - trips.overheads
    S = threshold(trips, least=mean((trips.one_way - trips.overheads / 2)[:, trips.short])[0])
    eager = size <= S
    o, O = line(body[eager], trips.overheads[:, eager] / 2, 1 / trips.overheads[0, eager] ** 2)
    busy = o[:, None] + O[:, None] * body
    if not eager.all():
        asking = 2 * mean(travel[:, trips.short & eager]) + 2 * o
        travel = np.where(eager, travel, trips.one_way - 2 * busy - asking[:, None])
    rest = network(trips, busy[0], travel)
    L, g, G = rest.L, rest.g, rest.G

    one_way = 2 * busy[0] + L[0] + G[0] * body + np.where(eager, 0, 2 * L[0] + 2 * o[0])
    labels = ("message / B", "time / s")
    text = "2·(o + (m−1)·O) + L + (m−1)·G" + ("" if eager.all() else ", above S 2·L + 2·o more")
    spacing = np.maximum(g[0] + G[0] * body, busy[0])
    curves = (
        curve("half a round trip", labels, size, trips.one_way[0], one_way, text, 4 if eager.all() else 5),
        curve("spacing of a burst", labels, size, trips.spacing[0], spacing, "max(g + (m−1)·G, o + (m−1)·O)", 2),
        curve("overhead of both ends", labels, size, trips.overheads[0], 2 * busy[0], "2·(o + (m−1)·O)", 2),
    )
    notes, unknown = dict(rest.notes), dict(rest.unknown)
    if eager.all():
        unknown["S"] = f"not seen up to the largest probed size, {format_bytes(int(size[-1]))}"
    else:
        notes["S"] = "found in the data; the change lies between this size and the next one probed"
    values = {
        "L": L,
        "o": o,
        "g": g,
        "G": G,
        "O": O,
        "S": np.full(len(L), S),
        "gamma": per_byte(observed.cases("work")),
    }
    return Fitted(values, (size[0], size[-1]), notes=notes, unknown=unknown, curves=curves)


def threshold(trips, least):
    """The last size before half the round trip jumps up by `least` (L + o: half of what asking takes), at the size
    before and at the size after; NEVER where it does not. A mere change of slope is no jump: it is small at one."""
    size, one_way = trips.size, trips.one_way[:1]
    weights = 1 / one_way[0] ** 2
    pieces = segments(size, one_way, weights)
    lines = [(size[piece], *line(size[piece], one_way[:, piece], weights[piece])) for piece in pieces]
    for (below, a, b), (above, a_next, b_next) in pairwise(lines):
        jump = min(a_next[0] - a[0] + (b_next[0] - b[0]) * edge for edge in (below[-1], above[0]))
        if jump >= least:
            return below[-1]
    return NEVER


def price(schedule, values):
    L, o, S = values["L"], values["o"], values["S"]
    body = np.maximum(schedule.bytes - 1, 0)
    busy, travel = o + body * values["O"], body * values["G"]
    gap = values["g"] + travel
    costs = Costs(send=busy, receive=busy, wire=L + travel, gap_out=gap, gap_in=gap)
    if np.any(schedule.bytes > S):
        costs = replace(costs, request=np.where(schedule.bytes > S, L, np.nan), answer=o + L + o)
    return finish_times(schedule, costs, schedule.work_seconds(values["gamma"]))


FAMILY = Family(
    name="loggops",
    title="LogGOPS",
    citation="T. Hoefler, T. Schneider, A. Lumsdaine, LogGOPSim: simulating large-scale applications in the LogGOPS "
    "model, LSAP workshop at HPDC 2010; S from F. Ino, N. Fujimoto, K. Hagihara, LogGPS, PPoPP 2001",
    equation="T(m) = 2·(o + (m−1)·O) + L + (m−1)·G, above S 2·L + 2·o more; next message g + (m−1)·G later",
    parameters=(
        Parameter("L", "s", "latency of the network, overheads taken off"),
        Parameter("o", "s", "time a processor is busy with sending or receiving a message"),
        Parameter("g", "s", "least time between the starts of two messages of one port"),
        Parameter("G", "s/B", "further time per byte"),
        Parameter("O", "s/B", "further overhead per byte, at either end", default=0.0),
        Parameter("S", "B", "largest message that is sent without asking first", default=NEVER),
        GAMMA,
    ),
    probes=("prtt", "work"),
    fit=fit,
    price=price,
    from_points={"L": 1e-5, "o": 1e-6, "g": 1e-6, "G": 1e-9, "O": 1e-10},
    ignores="contention in the network; that the two overheads differ",
)
