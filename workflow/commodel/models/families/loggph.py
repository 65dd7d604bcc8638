"""LogGPH: LogGP with one set of values for each channel, within a node and between nodes. It is
HLogGP with equal nodes.

    T_c(m) = o_s,c + L_c + (m−1)·G_c + o_r,c, the next message g_c + (m−1)·G_c later

If nodes differ, the values of a channel are means over all measured pairs of types, with equal
weight.
"""

import numpy as np

from commodel.models import Array
from commodel.models.evaluation.replay import Costs, predict_by_replay
from commodel.models.evaluation.values import select_by_channel
from commodel.models.families import (
    GAMMA,
    Family,
    Fitted,
    Observed,
    Parameter,
    Schedule,
    TableFit,
    Values,
    fit_local_work,
)
from commodel.models.families.hloggp import fit_pair_network
from commodel.models.families.loggp import compute_costs
from commodel.models.fitting.round_trips import collect_pair_trips
from commodel.models.keys import make_key
from commodel.models.probes import BETWEEN


def fit(observed: Observed) -> Fitted:
    values: dict[str, Array] = {}
    notes: dict[str, str] = {}
    unidentified: dict[str, str] = {}
    curves = []
    trips = collect_pair_trips(observed)
    for channel, within in (("within", True), ("between", False)):
        fits = []
        for pair, trip in trips.items():
            if pair.within != within:
                continue
            o_s, o_r = trip.short_overheads
            in_network, evidence = fit_pair_network(
                pair, trip, dict.fromkeys(pair.types, (o_s, o_r))
            )
            fits.append(
                {"o_s": o_s, "o_r": o_r, "L": in_network.L, "g": in_network.g, "G": in_network.G}
            )
            notes |= {make_key(name, channel): note for name, note in in_network.notes.items()}
            unidentified |= {
                make_key(name, channel): note for name, note in in_network.unidentified.items()
            }
            curves.append(evidence)
        for name in fits[0] if fits else ():
            values[make_key(name, channel)] = np.mean([numbers[name] for numbers in fits], axis=0)
    values["gamma"] = fit_local_work(observed)
    size = next(iter(trips.values())).size
    return Fitted(
        values, (size[0], size[-1]), notes=notes, unidentified=unidentified, curves=tuple(curves)
    )


def find_costs(schedule: Schedule, values: Values) -> Costs:
    names = ("L", "o_s", "o_r", "g", "G")
    return compute_costs(
        schedule, **{name: select_by_channel(schedule, values, name) for name in names}
    )


FAMILY = Family(
    name="loggph",
    title="LogGPH",
    citation="L. Yuan, Y. Zhang, Y. Tang, L. Rao, X. Sun, LogGPH: a parallel computational model with hierarchical "
    "communication awareness, CSE 2010",
    equation="T_c(m) = o_s,c + L_c + (m−1)·G_c + o_r,c; next message g_c + (m−1)·G_c later; c within a node or between",
    parameters=(
        Parameter("L", "s", "latency of the channel, without overheads", per="channel"),
        Parameter("o_s", "s", "time the sender's processor is busy with a message", per="channel"),
        Parameter(
            "o_r", "s", "time the receiver's processor is busy with a message", per="channel"
        ),
        Parameter(
            "g", "s", "least time between the starts of two messages of one port", per="channel"
        ),
        Parameter("G", "s/B", "time per byte after the first", per="channel"),
        GAMMA,
    ),
    probes=("prtt", "pairprtt", "work"),
    fit=fit,
    predict=predict_by_replay(find_costs),
    independent=True,
    by_class=BETWEEN,
    table_fit=TableFit(initial_values={"L": 1e-5, "o_s": 1e-6, "o_r": 1e-6, "g": 1e-6, "G": 1e-9}),
    ignores="contention in the channels; differences between nodes",
)
