"""LMO: what a message costs is shared out among its two processors and the network between them.

T_ij(m) = C_i + t_i·m + L_ij + m/β_ij + t_j·m + C_j. A processor handles one message at a time, the network any number.
A round trip alone cannot tell C from L; one to two others can: the second message starts a C_i + t_i·m later. (The
paper takes both answers after one another, 2·C_i; here the second comes in while the first is taken, as in a replay.)
"""

import numpy as np

from commodel.errors import UserError
from commodel.models.families import GAMMA, Family, Parameter, local_work
from commodel.models.fitting.curves import line_curve
from commodel.models.fitting.observed import Fitted, at_common
from commodel.models.fitting.regression import line
from commodel.models.fitting.roundtrips import half_trips
from commodel.models.pricing.pairs import SAME, Pairs
from commodel.models.pricing.replay import Costs, finish_times

LABELS = ("message / B", "time / s")


def fit(observed):
    triplets = observed.cases("triplet")
    values, curves = {}, []
    own: dict[str, tuple] = {}  # by type of node
    for pair in dict.fromkeys(triplets["pair"]):
        kind = pair.partition(".")[0]
        mine = (triplets.pick((triplets["pair"] == pair) & (triplets["n"] == n)) for n in (1, 2))
        one, two = at_common("bytes", *mine)
        size, second = one["bytes"], np.maximum(two.seconds - one.seconds, 1e-12)
        C, t = line(size, second, 1 / one.seconds[0] ** 2)
        own[kind] = C, t
        curves.append(line_curve(f"what a second message adds, {kind}", LABELS, size, second, C, t, "C + t·m"))
    for kind in observed.types or ("node",):
        if kind not in own:
            raise UserError(f"no measurements of probe 'triplet' with a root of type {kind}")
    trips = {pair: (*each, *line(*each, 1 / each[1][0] ** 2)) for pair, each in half_trips(observed).items()}
    for pair, (_, _, whole, slope) in trips.items():
        one, two = pair.split(".")
        if two in (one, SAME):  # two equal processors cannot cost more than the whole message
            own[one] = np.minimum(own[one][0], whole / 2), np.minimum(own[one][1], slope / 2)
    for kind, (C, t) in own.items():
        values |= {f"C.{kind}": C, f"t.{kind}": t}
    for pair, (size, half, whole, slope) in trips.items():
        one, two = pair.split(".")
        (C_i, t_i), (C_j, t_j) = (own[kind] for kind in (one, one if two == SAME else two))
        L, rest = np.maximum(whole - C_i - C_j, 0), np.maximum(slope - t_i - t_j, 0)
        values |= {f"L.{pair}": L, f"invbeta.{pair}": rest}
        priced = C_i + L + C_j, t_i + rest + t_j
        form = "C_i + L + C_j + m·(t_i + 1/β + t_j)"
        curves.append(line_curve(f"half a round trip, {pair}", LABELS, size, half, *priced, form))
    values["gamma"] = local_work(observed)
    sizes, zero = triplets["bytes"], "not told apart from 0: the other values leave nothing for it"
    unknown = {name: zero for name, draws in values.items() if draws[0] == 0 and name != "gamma"}
    return Fitted(
        values, (sizes.min(), sizes.max()), unknown=unknown, curves=tuple(curves), settings=observed.placement
    )


def price(schedule, values):
    pairs = Pairs(schedule, values.settings.get("types"))
    size = schedule.bytes
    costs = Costs(
        send=pairs.of_sender(values, "C", schedule) + pairs.of_sender(values, "t", schedule) * size,
        receive=pairs.of_receiver(values, "C", schedule) + pairs.of_receiver(values, "t", schedule) * size,
        wire=pairs.numbers(values, "L") + pairs.numbers(values, "invbeta") * size,
        gap_out=0.0,
        gap_in=0.0,
    )
    return finish_times(schedule, costs, schedule.work_seconds(values["gamma"]))


FAMILY = Family(
    name="lmo",
    title="LMO",
    citation="A. Lastovetsky, I.-H. Mkwawa, M. O'Flynn, An accurate communication model of a heterogeneous cluster "
    "based on a switch-enabled Ethernet network, ICPADS 2006",
    equation="T_ij(m) = C_i + t_i·m + L_ij + m/β_ij + t_j·m + C_j",
    parameters=(
        Parameter("C", "s", "what a message costs a processor, whatever its size", of="type"),
        Parameter("t", "s/B", "what a byte costs a processor", of="type"),
        Parameter("L", "s", "latency of the network between two nodes", of="pair"),
        Parameter("invbeta", "s/B", "what a byte costs the network between two nodes, 1/β", of="pair"),
        GAMMA,
    ),
    probes=("triplet", "prtt", "pairprtt", "work"),
    fit=fit,
    price=price,
    independent=True,
    from_points={"C": 1e-6, "t": 1e-10, "L": 1e-5, "invbeta": 1e-9},
    ignores="contention in the network; that a port is busy while a message passes it",
)
