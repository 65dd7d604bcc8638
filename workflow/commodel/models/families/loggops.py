"""LogGOPS: LogGP with an overhead per byte O, and a size S above which messages use rendezvous.

    T(m) = 2·(o + (m−1)·O) + L + (m−1)·G, above S 2·L + 2·o more; the next message of a port g + (m−1)·G later

o is the mean of the two overheads, as in LogP. A message's bytes take time of its sender, then in
the network, then of its receiver. A rendezvous request travels for L, and the grant takes o + L + o
as soon as the receiver has entered the step, so an idle pair loses 2·L + 2·o; LogGPS has other
terms there.

LogGOPSim, the simulator of the same paper, has other conventions, which a set may select
(`convention: loggopsim`). The schedule is then simulated event by event, with the finish times of
the simulator for the file of `commodel export goal`. (m−1)·G occupies the receiver's processor from
the arrival on, a message is received when it arrives, simultaneous events happen in the order of
their creation, O overlaps with G at the receiver, and rendezvous has no latency of its own. A
single message then takes 2·o + L + (m−1)·max(O, G). The fit assumes the default, which describes
round trips on real networks.
"""

from dataclasses import replace

import numpy as np

from commodel.models.evaluation import simulator
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
from commodel.models.fitting.regression import (
    CHANGE_NOTE,
    fit_line,
    fit_mean,
    make_curve,
    weigh_inversely,
)
from commodel.models.fitting.round_trips import (
    NEVER,
    collect_round_trips,
    find_last_before_jump,
    fit_network,
)
from commodel.models.probes import EVERYWHERE
from commodel.units import format_bytes

# Share of the highest overhead of smaller sizes, below which an overhead is of another protocol.
MAX_PROTOCOL_DROP = 0.8


def fit(observed: Observed) -> Fitted:
    """Fit all parameters. Overheads are fitted to sizes up to S, or up to a jump of the overheads
    themselves.

    Above S, the measured overhead of a sender includes its wait for the receiver. If only overheads
    jump, rendezvous takes no time.
    """
    trips = collect_round_trips(observed)
    size, body = trips.size, trips.body
    travel = trips.one_way - trips.overheads
    half_rendezvous = fit_mean((trips.one_way - trips.overheads / 2)[:, trips.short])[0]  # L + o
    S = find_last_before_jump(size, trips.one_way, half_rendezvous)
    eager: np.ndarray = size <= min(
        S, find_last_before_jump(size, trips.overheads, half_rendezvous)
    )
    highest = np.maximum.accumulate(trips.overheads[0])
    eager &= np.minimum.accumulate(trips.overheads[0] >= MAX_PROTOCOL_DROP * highest)
    o, O = fit_line(
        body[eager], trips.overheads[:, eager] / 2, weigh_inversely(trips.overheads[0, eager])
    )
    busy = o[:, None] + O[:, None] * body
    rendezvous = np.where(size > S, 2 * (fit_mean(travel[:, trips.short & eager]) + o)[:, None], 0)
    travel = np.where(eager, travel, trips.one_way - 2 * busy - rendezvous)
    in_network = fit_network(trips, busy[0], travel)
    L, g, G = in_network.L, in_network.g, in_network.G
    # copies of small messages do not continue if round trips of large ones take less per byte
    if not eager.all():
        without_rendezvous = (trips.one_way - rendezvous)[:, ~eager]
        _, slope_per_byte = fit_line(
            body[~eager], without_rendezvous, 1 / trips.one_way[0, ~eager] ** 2
        )
        G = np.minimum(G, slope_per_byte)
        O = np.minimum(O, (slope_per_byte - G) / 2)
        busy = o[:, None] + O[:, None] * body

    has_rendezvous = S < NEVER
    one_way = 2 * busy[0] + L[0] + G[0] * body + np.where(size > S, 2 * L[0] + 2 * o[0], 0)
    text = "2·(o + (m−1)·O) + L + (m−1)·G" + (", above S 2·L + 2·o more" if has_rendezvous else "")
    spacing = np.maximum(g[0] + G[0] * body, busy[0])
    curves = (
        make_curve(
            "half a round trip", size, trips.one_way[0], one_way, text, 5 if has_rendezvous else 4
        ),
        make_curve(
            "spacing of a burst",
            size,
            trips.spacing[0],
            spacing,
            "max(g + (m−1)·G, o + (m−1)·O)",
            2,
        ),
        make_curve(
            "overhead of both ends", size, trips.overheads[0], 2 * busy[0], "2·(o + (m−1)·O)", 2
        ),
    )
    values = {"L": L, "o": o, "g": g, "G": G, "O": O, "gamma": fit_local_work(observed)}
    notes, missing = dict(in_network.notes), {}
    if has_rendezvous:
        values["S"] = np.full(len(L), S)
        notes["S"] = CHANGE_NOTE
    else:
        missing["S"] = f"not seen up to the largest probed size, {format_bytes(int(size[-1]))}"
    error_text = trips.describe_error(one_way)
    if error_text:
        notes["O"] = f"one number for all sizes: with G and O {error_text}"
    sizes = size[0], size[-1]
    return Fitted(
        values,
        sizes,
        notes=notes,
        unidentified=in_network.unidentified,
        curves=curves,
        missing=missing,
    )


def predict(schedule: Schedule, values: Values) -> Array:
    if values.settings.get("convention") == "loggopsim":
        return simulator.finish_times(schedule, values)

    return predict_by_replay(find_costs)(schedule, values)


def find_costs(schedule: Schedule, values: Values) -> Costs:
    L, o = values["L"], values["o"]
    is_rendezvous = schedule.bytes > values.numbers.get("S", NEVER)
    body = np.maximum(schedule.bytes - 1, 0)
    busy, travel = o + body * values["O"], body * values["G"]
    gap = values["g"] + travel
    eager = Costs(send=busy, receive=busy, wire=L + travel, gap_out=gap, gap_in=gap)
    if not is_rendezvous.any():
        return eager
    return replace(eager, request=np.where(is_rendezvous, L, np.nan), grant=o + L + o)


def describe_limits(schedule: Schedule, values: Values) -> str:
    simulated = values.classes and values.settings.get("convention") == "loggopsim"
    return "placement not modelled: LogGOPSim has one latency" if simulated else ""


FAMILY = Family(
    name="loggops",
    title="LogGOPS",
    citation="T. Hoefler, T. Schneider, A. Lumsdaine, LogGOPSim: simulating large-scale applications in the LogGOPS "
    "model, LSAP workshop at HPDC 2010; S from F. Ino, N. Fujimoto, K. Hagihara, LogGPS, PPoPP 2001",
    equation="T(m) = 2·(o + (m−1)·O) + L + (m−1)·G, above S 2·L + 2·o more; next message g + (m−1)·G later",
    parameters=(
        Parameter("L", "s", "latency of the network, without overheads"),
        Parameter("o", "s", "time a processor is busy with sending or receiving a message"),
        Parameter("g", "s", "least time between the starts of two messages of one port"),
        Parameter("G", "s/B", "time per byte after the first"),
        Parameter("O", "s/B", "further overhead per byte, at either end", default=0.0),
        Parameter("S", "B", "largest message without rendezvous", optional=True),
        GAMMA,
    ),
    probes=("prtt", "work"),
    fit=fit,
    predict=predict,
    independent=True,
    by_class=EVERYWHERE,
    table_fit=TableFit(initial_values={"L": 1e-5, "o": 1e-6, "g": 1e-6, "G": 1e-9, "O": 1e-10}),
    ignores="contention in the network; that the two overheads differ",
    settings={
        "convention": Setting(
            ("stepwise", "loggopsim"),
            "Whether a message is received in its step, or when it arrives, as in LogGOPSim",
        )
    },
    limits=describe_limits,
)
