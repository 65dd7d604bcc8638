"""Capacities of links and levels, from messages that cross a boundary at the same time (probe
`capacity`), and factors and latencies of single nodes and pairs (probe `nodepairs`).

`fit_capacities` fits the additional time of concurrent messages over a single one. A boundary
without slowdown has no capacity. `distinguish_behaviours` determines which of several behaviours a
network has, by a replay of probe cases with each.

`fit_shared_latency` fits a latency that grows with ranks, with bytes, and with the ratio of the
throughput of all pairs to a network's capacity: L(m, p) = L_0 + L_p·p + L_m·m·max(1,
throughput/capacity). Given the capacity it is linear, so only the capacity is searched.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from commodel.errors import UserError
from commodel.hierarchy import BEYOND, NODE, Hierarchy
from commodel.models import Array
from commodel.models.evaluation.shared_links import ENTRIES, ENTRY_ON_PATH, EQUAL_SHARING, SHARINGS
from commodel.models.evaluation.values import Values
from commodel.models.fitting.observed import Cases, CaseSamples, Observed
from commodel.models.fitting.regression import (
    COLLINEAR_SHARE,
    EQUAL_DEVIATIONS,
    fit_least_squares,
    fit_mean,
)
from commodel.models.fitting.round_trips import BURST_MESSAGES, NEVER, HalfTrip, RoundTrips
from commodel.models.keys import make_key, make_sample_key, parse_key
from commodel.models.probes.capacity import FIRST_RECEIVED_BYTES, TINY_BYTES, make_pattern
from commodel.patterns.layouts import parse_nodes
from commodel.patterns.schedule import Schedule

MIN_SLOWDOWN = 1.1  # time relative to a single message, from which messages count as sharing a link
OUTSIDE_FACTOR = 1.25  # of a capacity beyond those of the measured sizes around it
# time of a message's bytes relative to its latency, below which latency hides them
MIN_BYTE_SHARE = 0.03
LONG_BYTES = 1 << 20
BELOW_FACTOR = 4.0  # by which a capacity may be smaller below the measured sizes
# time relative to that of the known capacities, from which another capacity is fitted
CLEAR_EXCESS = 1.15
# time relative to the sender's busy time, up to which the sender may be the limit, not the network
SENDER_FACTOR = 1.5
MAX_PAIRED_NODES = 128  # nodes up to which each pair may have its own latency
SPREAD = 5, 95  # percentiles of a class's small messages
MIN_PAIR_RATIO = 1.3  # ratio of these percentiles from which pairs differ
INTERPOLATION_ERROR = 0.05  # relative error of interpolation below which a sample is dropped
HEADER_TOLERANCE = 0.05  # bytes within which the size of a header is determined
MIN_HEADER_RATIO = 1.2  # spacing of a burst relative to overheads, from which links cause it
MAX_BURST_BYTES = 1024  # longer messages hardly show a header
MIN_HEADER_BYTES, MAX_HEADER_BYTES = 4.0, 4096.0
# slowdown by opposite traffic, from which a link counts as half duplex
MIN_HALF_DUPLEX_SLOWDOWN = 1.5
BACK_BOUNDS = 0.01, 0.5  # bounds of the parameter `back`

SLOWEST_PORT = "slowest_port"  # column of cases: the largest port factor of their nodes
TripsByClass = Mapping[str, HalfTrip]  # half a round trip of every class
Predict = Callable[[Schedule, Values], Array]


def fit_capacities(
    observed: Observed, trips: TripsByClass, send: Array, ports: np.ndarray
) -> tuple[dict[str, Array], list[str]]:
    """Return the capacities in seconds per byte by name (by size if it matters), and the levels
    with half-duplex links.

    `send` is the time in seconds that a rank is busy with each message that it sends, `ports` are
    the factors of `fit_port_factors`.
    """
    if not observed.probes.get("capacity"):
        return {}, []
    cases = observed.cases("capacity")
    cases = Cases({**cases.columns, SLOWEST_PORT: _find_slowest_ports(cases, ports)}, cases.seconds)
    levels = list(dict.fromkeys(cases["level"].tolist()))
    names = list(trips)
    values, half_duplex = _fit_inside(cases, trips), []
    for level in levels:
        nearest = names.index(level) + 1 if level in names else 0
        next_class = names[nearest] if nearest < len(names) else BEYOND
        sender_busy = send[0] if level == NODE else 0.0
        out_capacity, pair_capacity = (
            _fit_capacity(cases, trips, level, how, next_class, sender_busy)
            for how in ("out", "pair")
        )
        if level == NODE:  # near nodes may share links that distant ones do not
            out_capacity = _choose_faster(
                out_capacity,
                _fit_capacity(cases, trips, level, "far", list(trips)[-1], sender_busy),
            )
        else:  # messages to one group also leave their own, and bound its capacity
            out_capacity = {
                size: np.where(pair_capacity[size][0] < capacity[0], pair_capacity[size], capacity)
                for size, capacity in out_capacity.items()
                if size in pair_capacity
            }
        values |= _thin_samples(make_key("c_out", level), out_capacity)
        if pair_capacity and (
            not out_capacity
            or pair_capacity[max(pair_capacity)][0]
            > CLEAR_EXCESS * out_capacity[max(out_capacity)][0]
        ):
            values |= _thin_samples(make_key("c_pair", level), pair_capacity)
        slowdown = _measure_opposite_slowdown(cases, level)
        if slowdown is not None and slowdown[0] > MIN_HALF_DUPLEX_SLOWDOWN:
            half_duplex.append(level)
        directions = 2 if level in half_duplex else 1  # each group receives as much as it sends
        explained: dict[int, float] = defaultdict(float)
        for capacity in (out_capacity, pair_capacity):
            for size, draws in capacity.items():
                explained[size] = max(explained[size], directions * draws[0])
        values |= _thin_samples(
            make_key("c_all", level), _fit_all_groups(cases, trips, level, next_class, explained)
        )
    return values, half_duplex


def fit_link_factors(
    observed: Observed, trips: TripsByClass, values: Mapping[str, Array], ports: np.ndarray
) -> tuple[dict[str, list[float]], dict[str, Array]]:
    """Return the time per byte of each group's links relative to c_out, for each level at which
    groups differ. Also return c_out of these levels if `values` has none. `ports` are the factors
    of `fit_port_factors`."""
    factors, added = {}, {}
    if np.max(ports, initial=1.0) > CLEAR_EXCESS:
        base = (
            ports[_find_reference_node(observed, NODE) or 0] if _has_capacity(NODE, values) else 1.0
        )
        factors[NODE] = [round(float(port / base), 4) for port in ports]
        if not _has_capacity(NODE, values):
            name = next(name for name in trips if name != NODE)
            size = int(observed.cases("nodepairs")["bytes"].max())
            added[make_sample_key(make_key("c_out", NODE), size)] = (
                trips[name].byte_seconds(size) / size
            )
    each_group = (
        observed.cases("capacity").where(how="each") if observed.probes.get("capacity") else None
    )
    names = list(trips)
    for level, column in observed.levels.items():
        if each_group is None:
            break
        cases = each_group.where(level=level)
        outer_classes = names[names.index(level) + 1 :] if level in names else []
        if not len(cases) or not outer_classes:
            continue
        latency, single = (
            column[0] for column in trips[outer_classes[0]].split_time(cases["bytes"].astype(float))
        )
        byte_time = cases.seconds[0] - latency
        slowed = byte_time > MIN_SLOWDOWN * single * _find_slowest_ports(cases, ports)
        if not slowed.any():
            continue
        senders = [parse_nodes(str(text))[0] for text in cases["where"].tolist()]
        volume, groups = cases["flows"] * cases["bytes"], np.array(column)[senders]
        # A link without slowdown is at least as fast as that many single messages.
        fastest = np.minimum(single, (byte_time / volume)[slowed].min() * volume)
        byte_seconds = np.where(slowed, byte_time, fastest) / volume
        has_capacity = _has_capacity(level, values)
        reference = _find_reference_node(observed, level)
        measured = byte_seconds[groups == (-1 if reference is None else column[reference])]
        base = float(
            measured[0] if has_capacity and len(measured) else np.median(byte_seconds[slowed])
        )
        factor_by_group = np.full(max(column) + 1, float(np.median(byte_seconds)) / base)
        factor_by_group[groups] = byte_seconds / base
        if factor_by_group.max() > CLEAR_EXCESS * factor_by_group.min():
            factors[level] = [round(float(factor), 4) for factor in factor_by_group]
            if not has_capacity:
                key = make_sample_key(make_key("c_out", level), int(cases["bytes"].max()))
                added[key] = np.full(len(cases.seconds), base)
    return factors, added


def fit_port_factors(observed: Observed, trips: TripsByClass | None = None) -> np.ndarray:
    """Return the time per byte of each node's port, relative to that of the fastest nodes.

    The slower port of two nodes determines their time. The fastest pair of a node therefore gives
    the time of its port. It is chosen in the nearest distance class in which the node has several
    pairs. Long messages may have more latency than short ones; `trips` show how much, once they are
    known.
    """
    if not observed.probes.get("nodepairs"):
        return np.ones(0)
    cases = observed.cases("nodepairs")
    small, large = (
        cases.where(bytes=bytes) for bytes in (cases["bytes"].min(), cases["bytes"].max())
    )
    ends = large["one"].astype(int), large["two"].astype(int)
    latencies = dict(
        zip(zip(small["one"], small["two"], strict=True), select_half_trips(small), strict=True)
    )
    node_pairs = zip(large["one"], large["two"], strict=True)
    latency = np.array([latencies.get(pair, 0.0) for pair in node_pairs])
    hierarchy = Hierarchy.of(observed.levels)
    distance = hierarchy.distance(*ends)
    factors = np.zeros(int(large["nodes"].max()))
    for number in np.unique(distance).tolist():
        of_class, growth = distance == number, 1.0
        if trips and (trip := trips.get(hierarchy.names[number])):
            largest_probed = observed.cases("distance", apart=hierarchy.names[number])[
                "bytes"
            ].max()
            growth = _find_latency_growth(
                trip, small["bytes"][0], min(largest_probed, large["bytes"][0])
            )
        transfer = np.where(of_class, select_half_trips(large) - growth * latency, np.inf)
        fastest, pairs = np.full(len(factors), np.inf), np.zeros(len(factors), dtype=int)
        for nodes in ends:
            np.minimum.at(fastest, nodes, transfer)
            np.add.at(pairs, nodes[of_class], 1)
        has_several = (pairs > 1) & (factors == 0)
        if transfer.min() > 0:
            factors[has_several] = fastest[has_several] / transfer.min()
    return np.where(factors > CLEAR_EXCESS, factors, 1.0)


def _find_latency_growth(trip: HalfTrip, small: float, large: float) -> float:
    """Return how many times the time of a small message the part of a large one is that does not
    depend on its bytes."""
    seconds_of_small, seconds_of_half, seconds = trip.at(np.array([small, large / 2, large]))[0]
    return max((2 * seconds_of_half - seconds) / seconds_of_small, 1.0)


def fit_pair_latency(observed: Observed, trips: TripsByClass) -> list[float]:
    """Return the additional latency of each pair of nodes over that of its distance class in
    seconds, if pairs of a class differ; else an empty list. This describes networks without nested
    groups, such as a torus."""
    cases = observed.cases("nodepairs") if observed.probes.get("nodepairs") else None
    if cases is None or cases["nodes"].max() > MAX_PAIRED_NODES:
        return []
    small = cases.where(bytes=cases["bytes"].min())
    nodes, ends = int(small["nodes"].max()), (small["one"].astype(int), small["two"].astype(int))
    levels = Hierarchy.of(observed.levels)
    distance = levels.distance(*ends)
    expected = np.full(len(small), np.nan)
    for number in np.unique(distance).tolist():
        if levels.names[number] in trips:
            of_class = distance == number
            expected[of_class] = trips[levels.names[number]].at(
                small["bytes"][of_class].astype(float)
            )[0]
    ratio = select_half_trips(small) / expected
    spreads = [
        np.ptp(np.log(np.percentile(ratio[distance == number], SPREAD)))
        for number in np.unique(distance)
    ]
    if not np.isfinite(ratio).all() or max(spreads) < np.log(MIN_PAIR_RATIO):
        return []
    extra = np.zeros((nodes, nodes))
    extra[ends] = extra[ends[::-1]] = select_half_trips(small) - expected
    return [float(f"{seconds:.4g}") for seconds in extra[np.triu_indices(nodes, 1)].tolist()]


def select_half_trips(cases: Cases) -> Array:
    """Return half a round trip in each case."""
    return cases.seconds[0] / (2 * cases["trips"])


def select_fastest_ports(cases: Cases, ports: np.ndarray) -> Cases:
    """Return the cases between the nodes with the fastest ports."""
    slowest = _find_slowest_ports(cases, ports)
    return cases.pick(slowest == slowest.min(initial=np.inf))


def _find_slowest_ports(cases: Cases, ports: np.ndarray) -> np.ndarray:
    """Return the largest port factor of each case's nodes."""
    if not len(ports):
        return np.ones(len(cases))
    return np.array([ports[list(parse_nodes(str(text)))].max() for text in cases["where"].tolist()])


def _has_capacity(level: str, values: Mapping[str, Array]) -> bool:
    return any(parse_key(name).function == make_key("c_out", level) for name in values)


def _list_capacity_cases(
    observed: Observed, **where: object
) -> Iterator[tuple[CaseSamples, np.ndarray]]:
    """Yield the cases of probe `capacity` whose settings equal `where`, and their nodes."""
    for case in observed.probes.get("capacity", ()):
        if all(case.settings[name] == value for name, value in where.items()):
            yield case, parse_nodes(str(case.settings["where"]))


def _find_reference_node(observed: Observed, level: str) -> int | None:
    """Return the first node to whose links c_out was fitted."""
    return next(
        (nodes[0] for _, nodes in _list_capacity_cases(observed, how="out", level=level)), None
    )


def fit_header(
    observed: Observed, trips: RoundTrips, estimate: Callable[..., Values], predict: Predict
) -> float:
    """Return the bytes of a link that a message occupies besides its own; 0 if none are visible.

    They come from a burst of the shortest messages whose spacing exceeds the overheads. `estimate`
    returns the values fitted so far, with some numbers added.
    """
    overhead = MIN_HEADER_RATIO * np.maximum(trips.o_s[0], trips.o_r[0])
    visible = trips.size[(trips.spacing[0] > overhead) & (trips.size <= MAX_BURST_BYTES)]
    if not len(visible):
        return 0.0
    size, count = int(visible.min()), BURST_MESSAGES
    measured = observed.cases("prtt", n=count, delay=0, late=0, bytes=size).seconds[0, 0]
    burst = Schedule.of(2, np.arange(count + 1), [*[0] * count, 1], [*[1] * count, 0], size, root=0)

    def predict_burst(header: float) -> float:
        return float(burst.cost(predict(burst, estimate(H=header)))[0])

    low, high = 0.0, MAX_HEADER_BYTES
    while high - low > HEADER_TOLERANCE:
        middle = (low + high) / 2
        low, high = (middle, high) if predict_burst(middle) < measured else (low, middle)
    return round(high, 1) if high >= MIN_HEADER_BYTES else 0.0


def fit_opposite_share(observed: Observed, single: bool) -> Array | None:
    """Return the share of the opposite link that a message uses, e.g. by acknowledgements, from the
    slowdown by traffic in both directions: of several messages, or of a `single` one. None if it
    was not measured."""
    if not observed.probes.get("capacity"):
        return None
    slowdown = _measure_opposite_slowdown(observed.cases("capacity"), NODE, single)
    return None if slowdown is None else np.clip(slowdown - 1, *BACK_BOUNDS)


def _choose_faster(
    near_nodes: dict[int, Array], distant_nodes: dict[int, Array]
) -> dict[int, Array]:
    """Return the capacities that distant nodes show if messages to them are clearly faster, else
    those of near ones."""
    common = near_nodes.keys() & distant_nodes.keys()
    are_faster = (
        common and near_nodes[max(common)][0] > CLEAR_EXCESS * distant_nodes[max(common)][0]
    )
    return distant_nodes if are_faster else near_nodes


def _thin_samples(name: str, shares: Mapping[int, Array]) -> dict[str, Array]:
    """Return the fewest samples whose interpolation is within noise of all; only that of the
    largest size if all sizes agree."""
    if not shares:
        return {}
    size = np.array(sorted(shares))
    draws = np.stack([shares[one_size] for one_size in size.tolist()], axis=-1)
    estimates = np.maximum(draws[0], 1e-30)
    noise = EQUAL_DEVIATIONS * draws.std(axis=0) / estimates
    if (np.abs(np.log(estimates / estimates[-1])) < np.maximum(np.log(CLEAR_EXCESS), noise)).all():
        return {make_sample_key(name, size[-1]): shares[int(size[-1])]}
    chosen = {0, len(size) - 1}
    while True:
        chosen_indices = sorted(chosen)
        interpolated = np.interp(size, size[chosen_indices], estimates[chosen_indices])
        errors = np.abs(interpolated / estimates - 1) / np.maximum(INTERPOLATION_ERROR, noise)
        if errors.max() < 1:
            return {
                make_sample_key(name, one_size): shares[one_size]
                for one_size in size[chosen_indices].tolist()
            }
        chosen.add(int(errors.argmax()))


def find_largest_eager(observed: Observed, trips: TripsByClass) -> float | None:
    """Return the largest message that is sent eagerly, like all smaller ones: its sender does not
    wait while the receiver first receives a long message.

    It is 0 if there is none, NEVER if no sender waits, and None if it was not measured.
    """
    if not observed.probes.get("capacity"):
        return None
    cases = observed.cases("capacity").where(how="eager")
    nearest = next((trip for name, trip in trips.items() if name != NODE), None)
    if not len(cases) or nearest is None:
        return None
    waits = cases.seconds[0] > nearest.at(np.array([float(FIRST_RECEIVED_BYTES)]))[0, 0] / 2
    if not waits.any():
        return NEVER
    return float(cases["bytes"][cases["bytes"] < cases["bytes"][waits].min()].max(initial=0))


def _fit_capacity(
    cases: Cases, trips: TripsByClass, level: str, how: str, distance: str, busy: float
) -> dict[int, Array]:
    """Return by size the seconds per byte of all concurrent messages.

    A size is missing if messages are as fast as a single one, or if a busy end may explain the
    time.
    """
    shares, smallest_bound = {}, 0  # the smallest size at which the network is the limit
    cases = _subtract_tiny_excess(cases.where(level=level, how=how, ways=1), trips, distance, busy)
    for size in np.unique(cases["bytes"])[::-1].tolist():
        same_size = cases.where(bytes=size)
        byte_seconds, flows = _select_slowed(same_size, trips, distance)
        if flows.any():
            shares[size] = fit_mean((byte_seconds / (same_size["flows"] * size))[:, flows])
            if (
                not smallest_bound
                or byte_seconds[0, flows].max() > SENDER_FACTOR * busy * same_size["flows"].max()
            ):
                smallest_bound = size
        elif not shares:
            return {}
    bound = {size: share for size, share in shares.items() if size >= smallest_bound}
    return _add_sizes(bound, trips, distance) if bound else {}


def _split_time(trips: TripsByClass, distance: str, bytes: Array) -> tuple[Array, Array]:
    """Return L and m·G of messages of a class: (draws, sizes) each.

    A latency of milliseconds that changes with the size hides the bytes of short messages. Their G
    is then that between the nearest nodes, times the ratio of both for long messages.
    """
    L, byte_seconds = trips[distance].split_time(bytes)
    # on a single node, there is no other class
    nearest = next((name for name in trips if name != NODE), distance)
    long_seconds, near_long_seconds = (
        trips[name].byte_seconds(LONG_BYTES) for name in (distance, nearest)
    )
    ratio = np.divide(
        long_seconds, near_long_seconds, out=np.ones_like(long_seconds), where=near_long_seconds > 0
    )
    near_L, near_seconds = trips[nearest].split_time(bytes)
    expected = near_seconds * ratio[:, None]
    is_hidden = (expected[0] < MIN_BYTE_SHARE * L[0]) & (
        near_seconds[0] >= MIN_BYTE_SHARE * near_L[0]
    )
    return np.where(is_hidden, L + byte_seconds - expected, L), np.where(
        is_hidden, expected, byte_seconds
    )


def _add_sizes(shares: dict[int, Array], trips: TripsByClass, distance: str) -> dict[int, Array]:
    """Return the capacities also at smaller sizes at which G is known: relative to G, they are
    interpolated, and constant below the measured sizes. A protocol that changes between two
    measured sizes is thus taken into account.

    An added capacity is at most OUTSIDE_FACTOR times outside of those of the two measured sizes
    around it, since G may contain latency that grows with the size. Below the measured sizes it is
    at most that of the smallest one, since G may contain copying there.
    """
    size = np.array(sorted(shares))
    added_sizes = [
        length
        for length in trips[distance].byte_sizes
        if length < size[-1] and length not in shares
    ]
    if not added_sizes:
        return shares
    lengths = np.array([*added_sizes, *size], dtype=float)
    G = _split_time(trips, distance, lengths)[1] / lengths
    G_added, G, added_bytes = (
        G[:, : len(added_sizes)],
        G[:, len(added_sizes) :],
        lengths[: len(added_sizes)],
    )
    if not (G > 0).all():
        return shares
    measured = np.stack([shares[measured_size] for measured_size in size.tolist()], axis=-1)
    ratio = np.stack(
        [np.interp(added_bytes, size, ratio_of_draw) for ratio_of_draw in measured / G]
    )
    above = np.searchsorted(size, added_bytes)
    neighbours = np.stack([measured[:, np.maximum(above - 1, 0)], measured[:, above]])
    is_below = above == 0
    low = neighbours.min(axis=0) / np.where(is_below, BELOW_FACTOR, OUTSIDE_FACTOR)
    high = neighbours.max(axis=0) * np.where(is_below, 1.0, OUTSIDE_FACTOR)
    added = np.clip(ratio * G_added, low, high)
    return shares | dict(zip(added_sizes, added.T, strict=True))


def _subtract_tiny_excess(
    cases: Cases, trips: TripsByClass, distance: str, busy: float = 0.0
) -> Cases:
    """Return the cases without the excess of tiny messages between the same nodes over a single
    tiny message.

    The network does not cause this excess: these nodes are nearer or farther than others, or the
    receiver handles messages one after the other.
    """
    seconds = cases.seconds.copy()
    tiny = np.flatnonzero(cases["bytes"] == TINY_BYTES) if distance in trips else ()
    for number in tiny:
        same_nodes = (cases["flows"] == cases["flows"][number]) & (
            cases["where"] == cases["where"][number]
        )
        single = (
            trips[distance].at(np.array([float(TINY_BYTES)])) + (cases["flows"][number] - 1) * busy
        )
        seconds[:, same_nodes] -= cases.seconds[:, [number]] - single
    return Cases(cases.columns, seconds).pick(cases["bytes"] != TINY_BYTES)


def _fit_inside(cases: Cases, trips: TripsByClass) -> dict[str, Array]:
    """Return samples of the seconds per byte of all messages within a node, for sizes at which
    concurrent messages are slower. They depend on the size, since caches are faster than memory."""
    cases = cases.where(level=NODE, how="inside", ways=1)
    byte_seconds, flows = _select_slowed(cases, trips, NODE)
    per_byte = np.maximum(byte_seconds / (cases["flows"] * cases["bytes"]), 0)
    sizes = np.unique(cases["bytes"][flows]).astype(int).tolist()
    return {
        make_sample_key(make_key("c_inside", NODE), size): fit_mean(
            per_byte[:, flows & (cases["bytes"] == size)]
        )
        for size in sizes
    }


def _select_slowed(cases: Cases, trips: TripsByClass, distance: str) -> tuple[Array, np.ndarray]:
    """Return the time of the bytes of concurrent messages in seconds, and flags of cases with at
    least half as many messages as the slowed cases."""
    if not len(cases) or distance not in trips:
        return np.zeros((1, len(cases))), np.zeros(len(cases), dtype=bool)
    latency, single = _split_time(trips, distance, cases["bytes"])
    byte_seconds = cases.seconds - latency
    unshared = single[0] * cases.columns.get(SLOWEST_PORT, 1.0)
    slow = (byte_seconds[0] > MIN_SLOWDOWN * unshared) & (cases["flows"] > 1)
    # few messages may by chance use one link each, or one for all
    return byte_seconds, slow.any() & (cases["flows"] >= cases["flows"][slow].max(initial=0) / 2)


def _fit_all_groups(
    cases: Cases, trips: TripsByClass, level: str, distance: str, byte_times: Mapping[int, float]
) -> dict[int, Array]:
    """Return seconds per byte of all groups together, by size, where capacities of single groups do
    not explain the time."""
    shares, cases = (
        {},
        _subtract_tiny_excess(cases.where(level=level, how="all", ways=1), trips, distance),
    )
    for size in np.unique(cases["bytes"])[::-1].tolist() if distance in trips else ():
        same_size = cases.where(bytes=size)
        latency, single = _split_time(trips, distance, same_size["bytes"])
        byte_seconds = same_size.seconds - latency
        # `step` messages leave each group.
        unshared = single[0] * same_size[SLOWEST_PORT]
        explained = np.maximum(unshared, same_size["step"] * size * byte_times[size])
        if (byte_seconds[0] > CLEAR_EXCESS * explained).all():
            shares[size] = fit_mean(byte_seconds / (same_size["flows"] * size))
        elif not shares:
            return {}
    return shares


def _measure_opposite_slowdown(
    cases: Cases, level: str, single_message: bool = False
) -> Array | None:
    """Return the slowdown of the largest number of messages, or of a single one, by as many in the
    opposite direction; None if not measured."""
    cases = cases.where(level=level, how="out" if level == NODE else "pair")
    largest = cases["bytes"][cases["ways"] == 2].max(initial=0)
    single, double = (cases.where(ways=directions, bytes=largest) for directions in (1, 2))
    common = set(single["flows"].tolist()) & set(double["flows"].tolist())
    if not common:
        return None
    flows = min(common) if single_message else max(common)
    one_way, both_ways = (
        np.median(cases.seconds[:, cases["flows"] == flows], axis=1) for cases in (single, double)
    )
    return both_ways / one_way


# ratio of two predictions of a case, from which the case distinguishes two behaviours
MIN_RATIO = 1.2
# mean |log| of errors by which another behaviour has to be better than the default one
MIN_ERROR_GAIN = 0.03
NEGLIGIBLE_ERROR = 3e-4  # difference of mean |log| of errors
# ratio of the measured time to the prediction with the capacities fitted so far
CLEARLY_SLOWER = 1.15


def distinguish_behaviours(
    observed: Observed,
    how: str,
    behaviours: Mapping[Any, Values],
    predict: Predict,
    level: str = NODE,
) -> list[tuple[int, Any]]:
    """Return for each case that distinguishes the behaviours: its size, and the behaviour with the
    nearest prediction. Cases are sorted by size. The list is empty if a value for their distance is
    missing."""
    nearest = []
    for size, measured, schedule in list_patterns(observed, how, level):
        compute_seconds = schedule.work.seconds.sum()
        try:
            seconds = {
                behaviour: schedule.cost(predict(schedule, values))[0] - compute_seconds
                for behaviour, values in behaviours.items()
            }
        except UserError:
            return []
        if max(seconds.values()) > MIN_RATIO * min(seconds.values()):
            errors = {
                behaviour: abs(predicted - measured + compute_seconds)
                for behaviour, predicted in seconds.items()
            }
            nearest.append((size, min(errors, key=lambda behaviour: errors[behaviour])))
    return sorted(nearest)


def find_largest_sent(by_size: list[tuple[int, float]]) -> float:
    """Return the largest eager message, all smaller ones included, from the limit that each case
    supports."""
    limited = [size for size, limit in by_size if limit != NEVER]
    return (
        float(max((size for size, _ in by_size if size < limited[0]), default=0))
        if limited
        else NEVER
    )


def is_slower(observed: Observed, how: str, values: Values, predict: Predict) -> bool:
    """Return whether any of these cases takes longer than the values explain."""
    try:
        return any(
            measured > CLEARLY_SLOWER * schedule.cost(predict(schedule, values))[0]
            for _, measured, schedule in list_patterns(observed, how)
        )
    except UserError:
        return False


def list_patterns(
    observed: Observed, how: str, level: str = NODE, **where: object
) -> Iterator[tuple[int, float, Schedule]]:
    """Yield the size, the seconds and the pattern of each case."""
    for case, nodes in _list_capacity_cases(observed, how=how, level=level, **where):
        if len(case.seconds):
            pattern = make_pattern(case.settings)
            placed = pattern.place(np.repeat(nodes, pattern.ranks // len(nodes)))
            yield int(case.settings["bytes"]), float(np.median(case.seconds)), placed


def choose_link_sharing(
    observed: Observed, trips: TripsByClass, values: Values, predict: Predict
) -> dict[str, str]:
    """Return the settings `sharing` and `entry` that explain the cases `unequal` best; none if the
    default ones explain them nearly as well.

    If messages to distant nodes are slower even without sharing, the cases do not show shares by
    latency.
    """
    between = [trip for name, trip in trips.items() if name != NODE]
    size = max((size for size, *_ in list_patterns(observed, "unequal")), default=0)
    if not size or len(between) < 2:
        return {}
    slower = between[-1].byte_seconds(size)[0] > CLEAR_EXCESS * between[0].byte_seconds(size)[0]
    errors = {}
    for sharing, entry in product((EQUAL_SHARING,) if slower else SHARINGS, ENTRIES):
        settings = {**values.settings, "sharing": sharing, "entry": entry}
        errors[sharing, entry] = compute_case_error(
            observed, replace(values, settings=settings), predict, ("unequal",)
        )
    best = list(errors)[find_least_error(list(errors.values()))]
    default = errors[EQUAL_SHARING, ENTRY_ON_PATH]
    return {"sharing": best[0], "entry": best[1]} if errors[best] < default - MIN_ERROR_GAIN else {}


def find_least_error(errors: Sequence[float]) -> int:
    """Return the number of the first behaviour whose error is the least, up to a negligible
    difference."""
    return next(
        number for number, error in enumerate(errors) if error <= min(errors) + NEGLIGIBLE_ERROR
    )


def compute_case_error(
    observed: Observed, values: Values, predict: Predict, hows: Sequence[str]
) -> float:
    """Return the mean |log(measured/predicted)| of some kinds of cases; infinite if a value for
    their distance is missing."""
    try:
        errors = [
            abs(np.log(measured / schedule.cost(predict(schedule, values))[0]))
            for how in hows
            for _, measured, schedule in list_patterns(observed, how)
        ]
    except UserError:
        return np.inf
    return float(np.mean(errors)) if errors else np.inf


def find_links_by_destination(
    observed: Observed, values: Values, links: Mapping[str, int], predict: Predict
) -> dict[str, int]:
    """Return the number of links out of a group, at levels at which the destination of a message
    selects the link."""
    distinguished = {}
    for level, count in links.items():
        alternatives = {
            count: replace(values, settings={**values.settings, "links": {level: count}})
            for count in (1, count)
        }
        nearest = [
            count
            for _, count in distinguish_behaviours(observed, "stride", alternatives, predict, level)
        ]
        if nearest and nearest.count(count) > len(nearest) / 2:
            distinguished[level] = count
    return distinguished


def fit_shared_latency(
    ranks: Array, size: Array, throughput: Array, latencies: Array, weights: Array
) -> tuple[Array, Array, Array]:
    """Return for every draw of `latencies` (draws, cases) the capacity and L_0, L_p, L_m ≥ 0
    (draws, 3), and the prediction of row 0.

    The capacity is infinite if no finite one has a misfit at least 30 % smaller than no limit has.
    """

    def terms(capacity: float) -> list[Array]:
        return [np.ones(len(size)), ranks, size * np.maximum(1, throughput / capacity)]

    root = np.sqrt(weights / weights.max())

    def squared_errors(candidates: Sequence[float] | Array, rows: slice) -> Array:
        """Return the sums of squares: (candidates, rows)."""
        sums = []
        for candidate in candidates:
            columns = np.stack(terms(candidate), axis=-1) * root[:, None]
            scale = np.abs(columns).max(axis=0)
            solver = np.linalg.pinv(columns / scale, rcond=COLLINEAR_SHARE)
            misfit = (
                latencies[rows] * root - latencies[rows] * root @ solver.T @ (columns / scale).T
            )
            sums.append(np.sum(misfit**2, axis=-1))
        return np.array(sums)

    capacity = _search_capacity(
        squared_errors, throughput, 1e-12 * np.sum((latencies[0] * root) ** 2), len(latencies)
    )
    L = np.empty((len(latencies), 3))
    for value in np.unique(capacity):
        # Row 0 is included, since draws need its misfit (wild bootstrap).
        rows = np.concatenate([[0], np.flatnonzero(capacity == value)])
        L[rows[1:]] = fit_least_squares(terms(value), latencies[rows], weights)[1:]
    L[0] = fit_least_squares(terms(capacity[0]), latencies[:1], weights)
    L = np.maximum(L, 0)
    return (
        capacity,
        L,
        sum(value * term for value, term in zip(L[0], terms(capacity[0]), strict=True)),
    )


def _search_capacity(
    squared_errors: Callable[[Sequence[float] | Array, slice], Array],
    throughput: Array,
    rounding: float,
    draws: int,
) -> Array:
    """Return the capacity with the smallest misfit: of row 0 exactly, of the draws on a fine grid
    around it."""
    # here, because it takes longer to load than most verbs to run
    from scipy.optimize import minimize_scalar

    def misfit(log: float) -> float:
        return squared_errors([np.exp(log)], slice(1))[0, 0]

    coarse = np.geomspace(throughput[throughput > 0].min(), throughput.max(), 40)
    scores = squared_errors(coarse, slice(1))[:, 0]
    best = int(np.argmin(scores))
    if scores[best] > 0.7 * misfit(np.inf) - rounding:
        return np.full(draws, np.inf)
    ends = coarse[max(best - 1, 0)], coarse[min(best + 1, len(coarse) - 1)]
    fine = np.geomspace(*ends, 60)
    capacity = fine[np.argmin(squared_errors(fine, slice(None)), axis=0)]
    exact = minimize_scalar(misfit, bounds=np.log(ends), method="bounded", options={"xatol": 1e-9})
    capacity[0] = np.exp(exact.x)
    return capacity
