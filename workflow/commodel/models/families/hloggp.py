"""HLogGP: LogGP with separate values for every type of processor and every pair of types.

    T_ij(m) = o_s,i + L_ij + (m−1)·G_ij + o_r,j; the next message starts g_ij + (m−1)·G_ij later

Overheads are vectors over node types; L, g and G are matrices over pairs of types, not of nodes, so
that few pairs have to be measured. L is half a round trip minus both overheads.
"""

from collections.abc import Mapping

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
from commodel.models.families.loggp import compute_costs
from commodel.models.fitting.regression import make_curve
from commodel.models.fitting.round_trips import (
    NetworkParameters,
    RoundTrips,
    collect_pair_trips,
    fit_network,
)
from commodel.models.keys import Pair, make_key
from commodel.models.probes import BETWEEN
from commodel.parameters import Curve

Overheads = Mapping[str, tuple[Array, Array]]  # o_s and o_r, by type of node


def fit(observed: Observed) -> Fitted:
    values: dict[str, Array] = {}
    notes: dict[str, str] = {}
    unidentified: dict[str, str] = {}
    curves = []
    trips = collect_pair_trips(observed)
    overhead = choose_overheads(trips)
    for kind, (o_s, o_r) in overhead.items():
        values |= {make_key("o_s", kind): o_s, make_key("o_r", kind): o_r}
    for pair, round_trips in trips.items():
        network, curve = fit_pair_network(pair, round_trips, overhead)
        values |= {make_key(name, pair): getattr(network, name) for name in ("L", "g", "G")}
        notes |= {make_key(name, pair): note for name, note in network.notes.items()}
        unidentified |= {make_key(name, pair): note for name, note in network.unidentified.items()}
        curves.append(curve)
    values["gamma"] = fit_local_work(observed)
    size = next(iter(trips.values())).size
    return Fitted(
        values, (size[0], size[-1]), {}, notes, unidentified, tuple(curves), observed.placement
    )


def choose_overheads(trips: Mapping[Pair, RoundTrips]) -> Overheads:
    """Return o_s and o_r of every node type.

    They come from pairs of two nodes of the type if there are any, otherwise from pairs within a
    node, otherwise from those of two types, of which the first is measured.
    """
    overhead: dict[str, tuple[Array, Array]] = {}
    for pair in sorted(trips, key=lambda pair: (len(set(pair.types)), pair.within)):
        for node_type in pair.types:
            overhead.setdefault(node_type, trips[pair].short_overheads)
    return overhead


def fit_pair_network(
    pair: Pair, trips: RoundTrips, overhead: Overheads
) -> tuple[NetworkParameters, Curve]:
    """Fit L, g and G of a pair of node types, given the overheads; also return the curve of
    measured and fitted times."""
    sender, receiver = pair.types
    o_s, o_r = overhead[sender][0], overhead[receiver][1]
    network = fit_network(trips, max(o_s[0], o_r[0]), trips.one_way - (o_s + o_r)[:, None])
    fitted = o_s[0] + network.L[0] + network.G[0] * trips.body + o_r[0]
    title = f"half a round trip, {pair}"
    return network, make_curve(
        title, trips.size, trips.one_way[0], fitted, "o_s + L + (m−1)·G + o_r", 4
    )


def find_costs(schedule: Schedule, values: Values) -> Costs:
    pairs = Pairs.of_types(schedule, values.settings.get("types"))
    overhead = {"o_s": pairs.of_sender(values, "o_s"), "o_r": pairs.of_receiver(values, "o_r")}
    return compute_costs(
        schedule, **overhead, **{name: pairs.of_pair(values, name) for name in ("L", "g", "G")}
    )


FAMILY = Family(
    name="hloggp",
    title="HLogGP",
    citation="J. L. Bosque, L. Pastor, A parallel computational model for heterogeneous clusters, IEEE TPDS 17, 2006",
    equation="T_ij(m) = o_s,i + L_ij + (m−1)·G_ij + o_r,j; the next message starts g_ij + (m−1)·G_ij later",
    parameters=(
        Parameter(
            "L", "s", "latency of the network between two nodes, without overheads", per="pair"
        ),
        Parameter("o_s", "s", "time the sender's processor is busy with a message", per="type"),
        Parameter("o_r", "s", "time the receiver's processor is busy with a message", per="type"),
        Parameter(
            "g", "s", "least time between the starts of two messages of one port", per="pair"
        ),
        Parameter("G", "s/B", "time per byte after the first", per="pair"),
        GAMMA,
    ),
    probes=("prtt", "pairprtt", "work"),
    fit=fit,
    predict=predict_by_replay(find_costs, by_type=True),
    independent=True,
    by_class=BETWEEN,
    table_fit=TableFit(initial_values={"L": 1e-5, "o_s": 1e-6, "o_r": 1e-6, "g": 1e-6, "G": 1e-9}),
    ignores="contention in the network; overheads that grow with the message",
)
