"""LogGPH: LogGP with one set of values for each channel, within a node and between nodes. HLogGP where all nodes are
alike.

Where nodes differ it takes their mean: whatever pair of types was measured over a channel counts as much as any other.
"""

import numpy as np

from commodel.models.families import GAMMA, Family, Parameter, local_work
from commodel.models.families.hloggp import pair_network
from commodel.models.families.loggp import played
from commodel.models.fitting.observed import Fitted
from commodel.models.fitting.roundtrips import pair_probes, round_trips
from commodel.models.pricing.pairs import SAME, channel_values

CHANNELS = {"within": True, "between": False}


def fit(observed):
    values, notes, unknown, curves = {}, {}, {}, []
    trips = {pair: round_trips(observed, pair) for pair in pair_probes(observed)}
    for channel, within in CHANNELS.items():
        mine = {pair: seen for pair, seen in trips.items() if pair.endswith(f".{SAME}") == within}
        if not mine:
            continue
        several = []
        for pair, seen in mine.items():
            own = seen.short_overheads
            found, evidence = pair_network(pair, seen, dict.fromkeys(pair.split("."), own))
            several.append({"o_s": own[0], "o_r": own[1], "L": found.L, "g": found.g, "G": found.G})
            notes |= {f"{name}.{channel}": note for name, note in found.notes.items()}
            unknown |= {f"{name}.{channel}": note for name, note in found.unknown.items()}
            curves.append(evidence)
        values |= {f"{name}.{channel}": np.mean([each[name] for each in several], axis=0) for name in several[0]}
    values["gamma"] = local_work(observed)
    size = next(iter(trips.values())).size
    return Fitted(values, (size[0], size[-1]), notes=notes, unknown=unknown, curves=tuple(curves))


def price(schedule, values):
    numbers = {name: channel_values(schedule, values, name) for name in ("L", "o_s", "o_r", "g", "G")}
    return played(schedule, schedule.work_seconds(values["gamma"]), **numbers)


FAMILY = Family(
    name="loggph",
    title="LogGPH",
    citation="L. Yuan, Y. Zhang, Y. Tang, L. Rao, X. Sun, LogGPH: a parallel computational model with hierarchical "
    "communication awareness, CSE 2010",
    equation="T_c(m) = o_s,c + L_c + (m−1)·G_c + o_r,c; next message g_c + (m−1)·G_c later; c within a node or between",
    parameters=(
        Parameter("L", "s", "latency of the channel, overheads taken off", of="channel"),
        Parameter("o_s", "s", "time the sender's processor is busy with a message", of="channel"),
        Parameter("o_r", "s", "time the receiver's processor is busy with a message", of="channel"),
        Parameter("g", "s", "least time between the starts of two messages of one port", of="channel"),
        Parameter("G", "s/B", "further time per byte", of="channel"),
        GAMMA,
    ),
    probes=("prtt", "pairprtt", "work"),
    fit=fit,
    price=price,
    independent=True,
    from_points={"L": 1e-5, "o_s": 1e-6, "o_r": 1e-6, "g": 1e-6, "G": 1e-9},
    ignores="contention in the channels; differences between nodes",
)
