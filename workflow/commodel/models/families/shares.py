"""Shares: the time of a message from its distance class and from the links that it shares. This
project's own model.

    T(m) = o_s + L_d(m) + m·max(G_d(m), n·c) + o_r      for n messages at a time over the narrowest shared link

d is the distance class of the two nodes (see `hierarchy`): `node`, the levels of the network,
`beyond`. L_d and G_d change where the protocol does; if no straight lines fit, G_d is a table.

Shared links. A message shares the port of its nodes in either direction, the links out of and into
every group that it leaves and enters, the link between the two largest of these groups, and one
that all groups there share. In a torus it shares each link that it passes, dimension after
dimension. A link takes c seconds per byte, or c(m) if it depends on the size, as with caches. A
link that slowed down no probe has no c. All messages on a link get equal shares (see `sharing`),
and a message is as late as its latest link. Capacity that a message cannot use because another of
its links is slower is not given to other messages, unlike max-min shares. Messages are concurrent
by the clock, whatever their steps.

Details, each fitted from a probe:

- Of more than 8 segments in a row, each progresses as fast as the slowest of its links at any
  moment.
- `order`: a rank's messages to another share their links, or go one after the other.
- `sharing`: with `latency`, shares of a link are in inverse proportion to the latency between the
  two nodes.
- `c_pair.node`: all messages between the same two nodes share a link, at any distance.
- H: on links between nodes, a message occupies H bytes more than its own. This limits streams of
  short messages.
- `against`: acknowledgements are slowed down by messages in their direction. Then all messages on a
  link and on the opposite link progress as the fuller of the two allows, and `back` of a share is
  added.
- S: above S bytes, a message leaves when its receiver is ready, and its sender waits for delivery
  (rendezvous). Within a node the limit may be another one, S_inside.
- E: above E bytes, a message waits for its receiver, but its sender does not (probe `start`).
- O_s(m), O_r(m): between nodes, overheads of eager messages grow with the size, since they are
  copied.

Of repeated rounds, only ranks that are not equivalent by symmetry are replayed: in leaves of 16 the
first 16. Many rounds without symmetry are replayed until they add the same time; most of those that
follow are skipped. Of a large linear exchange, only the messages of the first node's ranks are
replayed. Without probes, switch data give the capacities: c_out of a leaf with u uplinks is G/u.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np

from commodel.hierarchy import BEYOND, NODE
from commodel.models.evaluation.shared_links import (
    ENTRIES,
    LINK_FACTORS,
    PAIR_LATENCY,
    SHARINGS,
    TORUS,
)
from commodel.models.evaluation.shares_prediction import (
    ONE_AT_A_TIME,
    SHARED,
    copy_seconds,
    describe_round_by_round,
    get_levels,
    predict,
)
from commodel.models.families import (
    LOCAL_WORK_PRIOR,
    Array,
    Family,
    Fitted,
    Observed,
    Parameter,
    Prior,
    Schedule,
    Setting,
    TableFit,
    Values,
)
from commodel.models.fitting.channels import fit_local_work
from commodel.models.fitting.link_capacities import (
    choose_link_sharing,
    distinguish_behaviours,
    find_largest_eager,
    find_largest_sent,
    find_links_by_destination,
    fit_capacities,
    fit_header,
    fit_link_factors,
    fit_opposite_share,
    fit_pair_latency,
    fit_port_factors,
    select_fastest_ports,
)
from commodel.models.fitting.observed import PartialFit
from commodel.models.fitting.regression import CHANGE_NOTE, make_curve
from commodel.models.fitting.round_trips import (
    NEVER,
    HalfTrip,
    collect_round_trips,
    fit_growing_overheads,
)
from commodel.models.fitting.torus_links import find_torus_of_pairs, fit_torus
from commodel.models.keys import make_key, parse_key
from commodel.parameters import Curve
from commodel.patterns.repeated import CompactSchedule
from commodel.units import format_bytes

SETTINGS = {
    "order": Setting(
        (SHARED, ONE_AT_A_TIME),
        "Whether a rank's messages to another share their links, or go one after the other",
    ),
    "sharing": Setting(
        SHARINGS,
        "Whether messages on a link get equal shares, or shares in inverse proportion to their "
        "latency",
    ),
    "entry": Setting(
        ENTRIES,
        "Whether messages reach a link after the latency of the path to it, or after their whole "
        "latency",
    ),
}
MIN_NETWORK_SHARE = 0.01  # of half a round trip that is not copying
# relative change of overheads from one size to the next that is another protocol
MIN_PROTOCOL_JUMP = 0.3


def fit(observed: Observed) -> Fitted:
    """Fit L and G of every class to half round trips, and the capacities to their slowdown by
    concurrent messages."""
    trips = collect_round_trips(observed)
    o_s, o_r = trips.short_overheads
    ports, torus = fit_port_factors(observed), find_torus_of_pairs(observed)
    halves = {
        name: _select_half_trips(observed, name, ports, torus is not None)
        for name in dict.fromkeys(observed.cases("distance")["apart"].tolist())
    }
    trips_by_class = {name: HalfTrip.of(size, half) for name, (size, half) in halves.items()}
    # Ports that were selected as slow get their time per byte without the latency of long messages.
    ports = np.where(ports > 1, fit_port_factors(observed, trips_by_class), 1.0)
    shared, half_duplex = fit_capacities(observed, trips_by_class, o_s, ports)
    factors, added = fit_link_factors(observed, trips_by_class, shared, ports)
    shared |= added
    if factors:  # links of single groups explain what two groups, or all, take longer
        replaced = {make_key(kind, level) for kind in ("c_pair", "c_all") for level in factors}
        shared = {
            name: draws
            for name, draws in shared.items()
            if parse_key(name).function not in replaced
        }
    settings = {**observed.placement, "half_duplex": sorted(half_duplex)} | (
        {LINK_FACTORS: factors} if factors else {}
    )
    settings |= (
        {PAIR_LATENCY: pairs} if (pairs := fit_pair_latency(observed, trips_by_class)) else {}
    )
    partial = PartialFit({"o_s": o_s, "o_r": o_r}, {}, settings)
    for name, trip in trips_by_class.items():
        partial.add(*trip.name_values(name, o_s + o_r))
    partial.add(shared)
    partial.add(*fit_local_work(observed))
    header = fit_header(observed, trips, partial.estimate, predict)
    if header:
        partial.values["H"] = np.full(len(o_s), header)
    notes, missing = {}, {}
    S = find_largest_eager(observed, trips_by_class)
    if S is None:
        S = find_protocol_change(trips.size, trips.overheads[0])
    if S == NEVER:
        missing["S"] = (
            f"not seen up to the largest probed size, {format_bytes(int(trips.size[-1]))}"
        )
    values_by_limit = {limit: partial.estimate(S=S, E=limit) for limit in (NEVER, 0.0)}
    E = min(
        find_largest_sent(distinguish_behaviours(observed, "start", values_by_limit, predict)), S
    )
    for name, limit in {"S": S, "E": E if E < S else NEVER}.items():
        if limit < NEVER:
            partial.values[name] = np.full(len(o_s), limit)
            notes[name] = CHANGE_NOTE
    sent_estimate = partial.estimate()
    orders = {
        order: replace(sent_estimate, settings={**partial.settings, "order": order})
        for order in SETTINGS["order"].values
    }
    distinguished = distinguish_behaviours(observed, "order", orders, predict)
    if distinguished:
        partial.settings["order"] = distinguished[0][1]
    partial.settings.update(choose_link_sharing(observed, trips_by_class, sent_estimate, predict))
    links = find_links_by_destination(
        observed, sent_estimate, _count_links(trips_by_class, shared), predict
    )
    if links:
        partial.settings["links"] = links
    copy_tables = fit_growing_overheads(trips, E)
    if copy_tables:
        partial.add(copy_tables)
        for name, (size, half) in halves.items():
            # between nodes, processors copy the message; the rest is in the network
            if name != NODE:
                in_network = np.maximum(
                    half - sum(copy_seconds(size, partial.draws)), MIN_NETWORK_SHARE * half
                )
                partial.add(*HalfTrip.of(size, in_network, half[0]).name_values(name, o_s + o_r))
    if torus and observed.probes.get("capacity"):
        partial = fit_torus(observed, partial, torus, predict)
    # On a torus, messages in opposite directions have the same cables only if there is one of each.
    opposite_share = fit_opposite_share(observed, single=TORUS in partial.settings)
    if opposite_share is not None:
        behaviours = {True: partial.estimate(back=opposite_share[0]), False: partial.estimate()}
        nearest = [
            is_slowed
            for _, is_slowed in distinguish_behaviours(observed, "against", behaviours, predict)
        ]
        if nearest == [True]:
            partial.values["back"] = opposite_share
    missing |= _explain_missing(partial.values)
    sizes, curves = (
        np.concatenate([size for size, _ in halves.values()]),
        tuple(_list_curves(halves, trips_by_class)),
    )
    size_range = sizes.min(), sizes.max()
    return Fitted(
        partial.values, size_range, partial.forms, notes, {}, curves, partial.settings, missing
    )


def _explain_missing(values: Collection[str]) -> dict[str, str]:
    """Return why parameters of capacities are missing."""
    fitted = {parse_key(name).parameter for name in values}
    kinds = [f"c_{kind}" for kind in ("out", "pair", "all", "inside")]
    reasons = dict.fromkeys(kinds, "no probe was slowed down by it")
    reasons["c_hop"] = "the network is no torus"
    return {name: reason for name, reason in reasons.items() if name not in fitted}


def _list_curves(
    halves: Mapping[str, tuple[Array, Array]], trips_by_class: Mapping[str, HalfTrip]
) -> Iterator[Curve]:
    """Yield the curve of half a round trip for each class."""
    for name, (size, half) in halves.items():
        title = f"half a round trip, {'one node' if name == NODE else name}"
        yield make_curve(
            title,
            size,
            half[0],
            trips_by_class[name].at(size)[0],
            "o_s + L + m·G + o_r",
            trips_by_class[name].terms,
        )


def _count_links(
    trips_by_class: Mapping[str, HalfTrip], shared: Mapping[str, Array]
) -> dict[str, int]:
    """Return the number of links that leave a group of each level, if one link carries a single
    message at full speed."""
    links = {}
    for level, next_class in pairwise(trips_by_class):
        keys = {name: parse_key(name) for name in shared}
        samples = {
            key.sample[0]: shared[name][0]
            for name, key in keys.items()
            if key.function == make_key("c_out", level) and key.sample
        }
        if samples and level != NODE:
            size = max(samples)
            single = trips_by_class[next_class].byte_seconds(size)[0] / size
            if 2 * single > 3 * samples[size] > 0:
                links[level] = round(single / samples[size])
    return links


def _select_half_trips(
    observed: Observed, distance_class: str, ports: np.ndarray, one_pair: bool
) -> tuple[Array, Array]:
    """Return the sizes and half round trips of a class, between nodes with the fastest ports; with
    `one_pair`, only of the pair with most sizes, since pairs of a class differ."""
    cases = select_fastest_ports(observed.cases("distance", apart=distance_class), ports)
    if one_pair:
        places, counts = np.unique(cases["where"], return_counts=True)
        cases = cases.pick(cases["where"] == places[counts.argmax()])
    return cases["bytes"].astype(float), cases.seconds / 2


def find_protocol_change(size: Array, overheads: Array) -> float:
    """Return the last size before overheads jump to another protocol: up, as a late receiver delays
    the sender, or down, as copying ends."""
    steps = np.diff(overheads) / np.maximum(overheads[:-1], overheads[1:])
    jumps = np.abs(steps) > MIN_PROTOCOL_JUMP
    return float(size[:-1][jumps][0]) if jumps.any() else NEVER


def describe_limits(schedule: Schedule, values: Values) -> str:
    """Return why a prediction has limited validity: a distance class without values."""
    if isinstance(schedule, CompactSchedule):
        return describe_round_by_round(schedule, values)
    if "L" in values.functions:
        return ""
    levels = get_levels(values)
    unprobed = [
        levels.crossed(distance)
        for distance in levels.apart(schedule.node, schedule.src, schedule.dst)
        if make_key("L", levels.names[distance]) not in values.functions
    ]
    return f"not probed: ranks in {', '.join(unprobed)}" if unprobed else ""


# Clusters of the last twenty years, from Gigabit Ethernet to several InfiniBand ports a node.
PRIORS = {
    "o_s": Prior(3e-7, 3),
    "o_r": Prior(3e-7, 3),
    "L.node.a": Prior(3e-7, 4, NODE),
    "G.node.a": Prior(1.5e-10, 4, NODE),
    "L.beyond.a": Prior(1e-6, 4, BEYOND),
    "G.beyond.a": Prior(1e-10, 6, BEYOND),
    "c_out.node.a": Prior(5e-11, 6, BEYOND),
    "H": Prior(200, 6, BEYOND),
    "c_inside.node.a": Prior(2e-11, 6, NODE),
    "O_s.b": Prior(1e-10, 4, BEYOND),
    "O_r.b": Prior(1e-10, 4, BEYOND),
    "gamma.b": LOCAL_WORK_PRIOR,
}

FAMILY = Family(
    name="shares",
    title="Shares",
    citation="this project's own, not published; fair shares as in D. Bertsekas, R. Gallager, Data Networks, 1992",
    equation="T(m) = o_s + L_d(m) + m·max(G_d(m), n·c) + o_r for n messages at a time over the narrowest link",
    parameters=(
        Parameter("o_s", "s", "time the sender's processor is busy with a message"),
        Parameter("o_r", "s", "time the receiver's processor is busy with a message"),
        Parameter("L", "s", "latency between nodes of a distance class", "m", per="class"),
        Parameter(
            "G", "s/B", "time per byte of a message alone, by distance class", "m", per="class"
        ),
        Parameter(
            "O_s", "s", "increase of o_s for a copied message of m bytes", "m", optional=True
        ),
        Parameter(
            "O_r", "s", "increase of o_r for a copied message of m bytes", "m", optional=True
        ),
        Parameter(
            "H",
            "B",
            "header: bytes of a link that a message occupies besides its own; none: 0",
            optional=True,
        ),
        Parameter(
            "S", "B", "largest message whose sender does not wait for its receiver", optional=True
        ),
        Parameter("S_inside", "B", "S of messages within a node; none: S", optional=True),
        Parameter(
            "E",
            "B",
            "largest message that leaves before its receiver is ready; 0: none does",
            optional=True,
        ),
        Parameter(
            "c_out",
            "s/B",
            "time per byte of all that leaves, or enters, a group of a level",
            "m",
            per="level",
            optional=True,
        ),
        Parameter(
            "c_pair",
            "s/B",
            "time per byte of all from one group of a level to another",
            "m",
            per="level",
            optional=True,
        ),
        Parameter(
            "c_all",
            "s/B",
            "time per byte of all between groups of a level",
            "m",
            per="level",
            optional=True,
        ),
        Parameter(
            "c_hop",
            "s/B",
            "time per byte of all on a link of a torus",
            "m",
            per="level",
            optional=True,
        ),
        Parameter(
            "c_inside",
            "s/B",
            "time per byte of all messages of m bytes in a node",
            "m",
            per="level",
            optional=True,
        ),
        Parameter(
            "back",
            "1",
            "share of the link of the opposite direction that a message takes; none: 0",
            optional=True,
            recalibrated=False,
        ),
        Parameter("gamma", "s", "local reduction of m bytes", "m", default=0.0, recalibrated=False),
        Parameter(
            "copy",
            "s",
            "local copy of m bytes; none: as long as a reduction",
            "m",
            optional=True,
            recalibrated=False,
        ),
        Parameter(
            "anew",
            "s",
            "copy of m bytes into a buffer allocated for it; in no prediction",
            "m",
            optional=True,
            recalibrated=False,
        ),
    ),
    probes=("prtt", "distance", "capacity", "work", "memcopy"),
    fit=fit,
    predict=predict,
    independent=True,
    by_message=True,
    settings=SETTINGS,
    table_fit=TableFit(
        priors=lambda ranks_per_node: PRIORS, eager_limits={"S": BEYOND, "S_inside": NODE}
    ),
    limits=describe_limits,
    ignores="which of several links between two groups a message takes",
)
