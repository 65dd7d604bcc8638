"""HLogGP: LogGP with values of their own for every processor and every pair of them.

Overheads are vectors over node types, L, g and G matrices over pairs of types: measuring every pair of nodes would
take their number squared. L is what is left of half a round trip when both overheads are taken off.
"""

from commodel.models.families import GAMMA, Family, Parameter, local_work
from commodel.models.families.loggp import played
from commodel.models.fitting.curves import curve
from commodel.models.fitting.observed import Fitted
from commodel.models.fitting.roundtrips import network, pair_probes, round_trips
from commodel.models.pricing.pairs import SAME, Pairs

LABELS = ("message / B", "time / s")


def fit(observed):
    values, notes, unknown, curves = {}, {}, {}, []
    trips = {pair: round_trips(observed, pair) for pair in pair_probes(observed)}
    own = overheads(trips)
    for kind, (o_s, o_r) in own.items():
        values |= {f"o_s.{kind}": o_s, f"o_r.{kind}": o_r}
    for pair, seen in trips.items():
        found, evidence = pair_network(pair, seen, own)
        values |= {f"{name}.{pair}": getattr(found, name) for name in ("L", "g", "G")}
        notes |= {f"{name}.{pair}": note for name, note in found.notes.items()}
        unknown |= {f"{name}.{pair}": note for name, note in found.unknown.items()}
        curves.append(evidence)
    values["gamma"] = local_work(observed)
    size = next(iter(trips.values())).size
    return Fitted(
        values,
        (size[0], size[-1]),
        notes=notes,
        unknown=unknown,
        curves=tuple(curves),
        settings=observed.placement,
    )


def overheads(trips):
    """Of every type of node, from pairs within the type where there are, across nodes rather than within one. A send is
    the first type's; between two types the receive is taken from the second type's own pairs."""
    own = {}
    for pair in sorted(trips, key=lambda pair: (pair.endswith(SAME), len(set(pair.split("."))))):
        one, two = pair.split(".")
        for kind in (one, one if two == SAME else two):
            own.setdefault(kind, trips[pair].short_overheads)
    return own


def pair_network(pair, seen, own):
    """L, g and G of a pair whose processors' overheads are known."""
    one, two = pair.split(".")
    o_s, o_r = own[one][0], own[one if two == SAME else two][1]
    travel = seen.one_way - (o_s + o_r)[:, None]
    found = network(seen, max(o_s[0], o_r[0]), travel)
    fitted = o_s[0] + found.L[0] + found.G[0] * seen.body + o_r[0]
    evidence = curve(
        f"half a round trip, {pair}", LABELS, seen.size, seen.one_way[0], fitted, "o_s + L + (m−1)·G + o_r", 4
    )
    return found, evidence


def price(schedule, values):
    pairs = Pairs(schedule, values.settings.get("types"))
    own = {"o_s": pairs.of_sender(values, "o_s", schedule), "o_r": pairs.of_receiver(values, "o_r", schedule)}
    between = {name: pairs.numbers(values, name) for name in ("L", "g", "G")}
    return played(schedule, schedule.work_seconds(values["gamma"]), **own, **between)


FAMILY = Family(
    name="hloggp",
    title="HLogGP",
    citation="J. L. Bosque, L. Pastor, A parallel computational model for heterogeneous clusters, IEEE TPDS 17, 2006",
    equation="T_ij(m) = o_s,i + L_ij + (m−1)·G_ij + o_r,j; next message g_ij + (m−1)·G_ij later",
    parameters=(
        Parameter("L", "s", "latency of the network between two nodes, overheads taken off", of="pair"),
        Parameter("o_s", "s", "time the sender's processor is busy with a message", of="type"),
        Parameter("o_r", "s", "time the receiver's processor is busy with a message", of="type"),
        Parameter("g", "s", "least time between the starts of two messages of one port", of="pair"),
        Parameter("G", "s/B", "further time per byte", of="pair"),
        GAMMA,
    ),
    probes=("prtt", "pairprtt", "work"),
    fit=fit,
    price=price,
    independent=True,
    from_points={"L": 1e-5, "o_s": 1e-6, "o_r": 1e-6, "g": 1e-6, "G": 1e-9},
    ignores="contention in the network; overheads that grow with the message",
)
