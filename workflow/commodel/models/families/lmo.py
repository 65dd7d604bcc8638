"""LMO: the time of a message is the sum of its two processors' and the network's parts.

    T_ij(m) = C_i + t_i·m + L_ij + m/β_ij + t_j·m + C_j

A processor handles one message at a time, the network any number. A round trip cannot separate C
from L. A round trip to two others can: the second message starts C_i + t_i·m later. (The paper adds
both replies, 2·C_i; here the second arrives while the first is received, as in a replay.)
"""

import numpy as np

from commodel.errors import UserError
from commodel.models.evaluation.replay import Costs, predict_by_replay
from commodel.models.evaluation.values import Pairs
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
from commodel.models.fitting.observed import select_common
from commodel.models.fitting.regression import fit_line, make_line_curve
from commodel.models.fitting.round_trips import list_pair_probes, measure_half_trip
from commodel.models.keys import Pair, make_key
from commodel.models.probes import BETWEEN


def fit(observed: Observed) -> Fitted:
    triplets = observed.cases("triplet")
    values: dict[str, Array] = {}
    curves = []
    by_type: dict[str, tuple[Array, Array]] = {}  # C and t by type of node
    for pair in dict.fromkeys(triplets["pair"]):
        by_count = (triplets.where(pair=pair, n=n) for n in (1, 2))
        one, two = select_common("bytes", *by_count)
        node_type, size, second = (
            Pair.parse(pair).sender_type,
            one["bytes"],
            np.maximum(two.seconds - one.seconds, 1e-12),
        )
        C, t = by_type[node_type] = fit_line(size, second, 1 / one.seconds[0] ** 2)
        curves.append(
            make_line_curve(f"cost of a second message, {node_type}", size, second, C, t, "C + t·m")
        )
    for node_type in observed.types or ("node",):
        if node_type not in by_type:
            raise UserError(f"no measurements of probe 'triplet' with a root of type {node_type}")
    # raises an error without round trips between two nodes, which L and β need
    observed.cases("prtt")
    halves = {pair: measure_half_trip(observed, pair) for pair in list_pair_probes(observed)}
    trips = {
        pair: (size, half, *fit_line(size, half, 1 / half[0] ** 2))
        for pair, (size, half) in halves.items()
    }
    for pair, (_, _, intercept, slope) in trips.items():
        node_type, other = pair.types
        if node_type == other:  # two equal processors cannot take longer than the whole message
            by_type[node_type] = (
                np.minimum(by_type[node_type][0], intercept / 2),
                np.minimum(by_type[node_type][1], slope / 2),
            )
    for node_type, (C, t) in by_type.items():
        values |= {make_key("C", node_type): C, make_key("t", node_type): t}
    for pair, (size, half, intercept, slope) in trips.items():
        (C_i, t_i), (C_j, t_j) = (by_type[node_type] for node_type in pair.types)
        L, invbeta = np.maximum(intercept - C_i - C_j, 0), np.maximum(slope - t_i - t_j, 0)
        values |= {make_key("L", pair): L, make_key("invbeta", pair): invbeta}
        predicted = C_i + L + C_j, t_i + invbeta + t_j
        text = "C_i + L + C_j + m·(t_i + 1/β + t_j)"
        curves.append(make_line_curve(f"half a round trip, {pair}", size, half, *predicted, text))
    zero = "not distinguishable from 0: the other values explain the whole time"
    unidentified = {name: zero for name, draws in values.items() if draws[0] == 0}
    values["gamma"] = fit_local_work(observed)
    sizes = triplets["bytes"].min(), triplets["bytes"].max()
    return Fitted(
        values, sizes, unidentified=unidentified, curves=tuple(curves), settings=observed.placement
    )


def find_costs(schedule: Schedule, values: Values) -> Costs:
    pairs, m = Pairs.of_types(schedule, values.settings.get("types")), schedule.bytes
    return Costs(
        send=pairs.of_sender(values, "C") + pairs.of_sender(values, "t") * m,
        receive=pairs.of_receiver(values, "C") + pairs.of_receiver(values, "t") * m,
        wire=pairs.of_pair(values, "L") + pairs.of_pair(values, "invbeta") * m,
    )


FAMILY = Family(
    name="lmo",
    title="LMO",
    citation="A. Lastovetsky, I.-H. Mkwawa, M. O'Flynn, An accurate communication model of a heterogeneous cluster "
    "based on a switch-enabled Ethernet network, ICPADS 2006",
    equation="T_ij(m) = C_i + t_i·m + L_ij + m/β_ij + t_j·m + C_j",
    parameters=(
        Parameter("C", "s", "time of a processor per message", per="type"),
        Parameter("t", "s/B", "time of a processor per byte", per="type"),
        Parameter("L", "s", "latency of the network between two nodes", per="pair"),
        Parameter(
            "invbeta", "s/B", "time of the network between two nodes per byte, 1/β", per="pair"
        ),
        GAMMA,
    ),
    probes=("triplet", "prtt", "pairprtt", "work"),
    fit=fit,
    predict=predict_by_replay(find_costs, by_type=True),
    independent=True,
    by_class=BETWEEN,
    table_fit=TableFit(initial_values={"C": 1e-6, "t": 1e-10, "L": 1e-5, "invbeta": 1e-9}),
    ignores="contention in the network; that a port is busy while a message passes it",
)
