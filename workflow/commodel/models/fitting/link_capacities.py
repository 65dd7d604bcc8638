"""Capacities of links and levels, from messages that cross a boundary at the same time (probes `capacity` and `pairs`).

`fit_capacities`: how much longer than a single message they take together. A boundary that slows nobody down has no
capacity here. `distinguish_ways`: which of two ways a network has, by replaying cases of the probe under both.

`fit_shared_latency`: a latency that grows with ranks, with bytes, and with how far all pairs together exceed a
network's capacity, L(m, p) = L_0 + L_p·p + L_m·m·max(1, throughput/capacity). Given the capacity the rest is linear, so
that only the capacity is searched.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from commodel.errors import UserError
from commodel.hierarchy import BEYOND, NODE
from commodel.models import Array
from commodel.models.evaluation.values import Values
from commodel.models.fitting.observed import Cases, Observed
from commodel.models.fitting.regression import ALIKE, least_squares, mean
from commodel.models.fitting.round_trips import NEVER, HalfTrip
from commodel.models.keys import key, sample
from commodel.models.probes.capacity import TAKEN_FIRST, TINY, pattern
from commodel.patterns.layouts import nodes_read
from commodel.patterns.schedule import Schedule

SLOWS = 1.1  # than alone: from there on messages share something
CLEARLY_MORE = 1.15  # than what is known to be shared explains
HIDDEN_BY_SENDER = 1.5  # times as long as its sender is busy with it: less may be the sender's own
DEVIATIONS = 3  # standard deviations
NEAR_OTHERS = 0.05  # of a share: what lies as near to the line between two others is no sample of its own
ONE_FOR_BOTH = 1.5  # times as long with as much the other way: one line for both
BACK_BETWEEN = 0.01, 0.5  # of a share, between which what comes back lies

Trips = Mapping[str, HalfTrip]  # half a round trip of every class


def fit_capacities(observed: Observed, trips: Trips, send: Array) -> tuple[dict[str, Array], list[str]]:
    """Seconds per byte by name, by size where it changes with that, and the levels whose lines carry both ways at once.
    `send`: how long a rank is busy with each message that it sends."""
    if not observed.probes.get("capacity"):
        return {}, []
    cases = observed.cases("capacity")
    levels = list(dict.fromkeys(cases["level"].tolist()))
    names = list(trips)
    values, half = _inside(cases, trips), []
    for level in levels:
        nearest = names.index(level) + 1 if level in names else 0
        beyond = names[nearest] if nearest < len(names) else BEYOND
        busy = send[0] if level == NODE else 0.0
        out, pair = (_shares(cases, trips, level, how, beyond, busy) for how in ("out", "pair"))
        if level != NODE:  # what goes to one group leaves its own, too, and shows how much can
            out = {size: np.where(pair[size][0] < own[0], pair[size], own) for size, own in out.items() if size in pair}
        values |= _named(key("c_out", level), out)
        if pair and (not out or pair[max(pair)][0] > CLEARLY_MORE * out[max(out)][0]):
            values |= _named(key("c_pair", level), pair)
        longer = _both_ways(cases, level)
        if longer is not None and longer[0] > ONE_FOR_BOTH:
            half.append(level)
        ways = 2 if level in half else 1  # as much comes into each group as leaves it
        known = {
            size: ways * max((column[size][0] for column in (out, pair) if size in column), default=0.0)
            for size in np.unique(cases["bytes"]).tolist()
        }
        values |= _named(key("c_all", level), _all_groups(cases, trips, level, beyond, known))
    return values, half


def fit_entering(observed: Observed, trips: Trips, receiving: Callable[[Array], Array]) -> dict[str, Array]:
    """Return the same of what enters the port of a node from far away. All come at about the same time, so that their
    receiver is busy with one after the other then, as it is with tiny ones, and for `receiving` seconds more with so
    many bytes."""
    if not observed.probes.get("capacity") or not trips:
        return {}
    cases = _pick(observed.cases("capacity"), level=NODE, how="in")
    cases = Cases(cases.columns, cases.seconds - (cases["flows"] - 1) * receiving(cases["bytes"]))
    return _named(key("c_in", NODE), _shares(cases, trips, NODE, "in", list(trips)[-1], 0.0))


def fit_returning(observed: Observed) -> Array | None:
    """Return what part of a share of a line comes back for a message: as much the other way makes all so much slower.
    None: it was not looked at."""
    if not observed.probes.get("capacity"):
        return None
    longer = _both_ways(observed.cases("capacity"), NODE)
    return None if longer is None else np.clip(longer - 1, *BACK_BETWEEN)


def _named(name: str, shares: Mapping[int, Array]) -> dict[str, Array]:
    """As many samples as all the others lie between, as far as noise lets anybody tell; that of the largest alone where
    all sizes have about the same."""
    if not shares:
        return {}
    size = np.array(sorted(shares))
    draws = np.stack([shares[own] for own in size.tolist()], axis=-1)
    seen = np.maximum(draws[0], 1e-30)
    noise = DEVIATIONS * draws.std(axis=0) / seen
    if (np.abs(np.log(seen / seen[-1])) < np.maximum(np.log(CLEARLY_MORE), noise)).all():
        return {sample(name, size[-1]): shares[int(size[-1])]}
    kept = {0, len(size) - 1}
    while True:
        between = sorted(kept)
        missed = np.abs(np.interp(size, size[between], seen[between]) / seen - 1) / np.maximum(NEAR_OTHERS, noise)
        if missed.max() < 1:
            return {sample(name, own): shares[own] for own in size[between].tolist()}
        kept.add(int(missed.argmax()))


def largest_eager(observed: Observed, trips: Trips) -> float | None:
    """Return the largest message whose sender does not wait while its receiver takes a long one first, like all smaller
    ones; 0: there is none; NEVER: nobody waits. None: it was not looked at."""
    if not observed.probes.get("capacity"):
        return None
    cases, near = _pick(observed.cases("capacity"), how="eager"), next((name for name in trips if name != NODE), "")
    if not len(cases) or not near:
        return None
    waits = cases.seconds[0] > trips[near].at(np.array([float(TAKEN_FIRST)]))[0, 0] / 2
    if not waits.any():
        return NEVER
    return float(cases["bytes"][cases["bytes"] < cases["bytes"][waits].min()].max(initial=0))


def _pick(cases: Cases, **where: object) -> Cases:
    chosen = np.ones(len(cases), dtype=bool)
    for name, wanted in where.items():
        chosen &= cases[name] == wanted
    return cases.pick(chosen)


def _shares(cases: Cases, trips: Trips, level: str, how: str, apart: str, busy: float) -> dict[int, Array]:
    """By size the seconds per byte of all messages that cross at the same time; none where they are as fast as alone,
    or below the first size where it may be one end that takes as long."""
    shares, beyond_doubt = {}, []
    cases = _beyond_tiny(_pick(cases, level=level, how=how, ways=1), trips, apart, busy)
    for size in np.unique(cases["bytes"])[::-1].tolist():
        alike = _pick(cases, bytes=size)
        taken, most = _slowed(alike, trips, apart)
        if most.any():
            shares[size] = mean((taken / (alike["flows"] * size))[:, most])
            if not beyond_doubt or taken[0, most].max() > HIDDEN_BY_SENDER * busy * alike["flows"].max():
                beyond_doubt.append(size)
        elif not shares:
            return {}
    return {size: share for size, share in shares.items() if size >= beyond_doubt[-1]}


def _beyond_tiny(cases: Cases, trips: Trips, apart: str, busy: float = 0.0) -> Cases:
    """Without what tiny messages between the same nodes take more than a tiny one of that distance does alone: these
    nodes are nearer or farther than others, or one end is busy with one after the other. A sender is so, too, but its
    messages are on their way meanwhile."""
    seconds = cases.seconds.copy()
    tiny = np.flatnonzero(cases["bytes"] == TINY) if apart in trips else ()
    for number in tiny:
        alike = (cases["flows"] == cases["flows"][number]) & (cases["where"] == cases["where"][number])
        alone = trips[apart].at(np.array([float(TINY)])) + (cases["flows"][number] - 1) * busy
        seconds[:, alike] -= cases.seconds[:, [number]] - alone
    return Cases(cases.columns, seconds).pick(cases["bytes"] != TINY)


def _inside(cases: Cases, trips: Trips) -> dict[str, Array]:
    """Samples of the seconds per byte of all messages of a size within a node, where any are slower than alone: caches
    are faster than what is behind them."""
    cases = _pick(cases, level=NODE, how="inside", ways=1)
    taken, most = _slowed(cases, trips, NODE)
    per_byte = np.maximum(taken / (cases["flows"] * cases["bytes"]), 0)
    sizes = np.unique(cases["bytes"][most]).astype(int).tolist()
    return {sample(key("c_inside", NODE), size): mean(per_byte[:, most & (cases["bytes"] == size)]) for size in sizes}


def _slowed(cases: Cases, trips: Trips, apart: str) -> tuple[Array, np.ndarray]:
    """Return what messages at a time take for their bytes, and which cases have about as many as are slower than
    alone."""
    if not len(cases) or apart not in trips:
        return np.zeros((1, len(cases))), np.zeros(len(cases), dtype=bool)
    begin, alone = trips[apart].parts(cases["bytes"])
    taken = cases.seconds - begin
    slow = (taken[0] > SLOWS * alone[0]) & (cases["flows"] > 1)
    # few may by chance have a link each, or one for all
    return taken, slow.any() & (cases["flows"] >= cases["flows"][slow].max(initial=0) / 2)


def _all_groups(cases: Cases, trips: Trips, level: str, apart: str, known: Mapping[int, float]) -> dict[int, Array]:
    """Of all groups at once, by size, where they take longer than what leaves one, or joins two, explains."""
    shares, cases = {}, _beyond_tiny(_pick(cases, level=level, how="all", ways=1), trips, apart)
    for size in np.unique(cases["bytes"])[::-1].tolist() if apart in trips else ():
        alike = _pick(cases, bytes=size)
        begin, alone = trips[apart].parts(alike["bytes"])
        taken = alike.seconds - begin
        explained = np.maximum(alone[0], alike["step"] * size * known[size])  # so many leave each group
        if (taken[0] > CLEARLY_MORE * explained).all():
            shares[size] = mean(taken / (alike["flows"] * size))
        elif not shares:
            return {}
    return shares


def _both_ways(cases: Cases, level: str) -> Array | None:
    """Return how many times as long as one way the most messages take of which as many go the other way. None: it was
    not measured."""
    cases = _pick(cases, level=level, how="out" if level == NODE else "pair")
    largest = cases["bytes"][cases["ways"] == 2].max(initial=0)
    single, double = (_pick(cases, ways=ways, bytes=largest) for ways in (1, 2))
    if not (alike := set(single["flows"].tolist()) & set(double["flows"].tolist())):
        return None
    one_way, both_ways = (
        np.median(cases.seconds[:, cases["flows"] == max(alike)], axis=1) for cases in (single, double)
    )
    return both_ways / one_way


TELLS_APART = 1.2  # times as long, at least, where one way can be told from the other
CLEARLY_SLOWER = 1.15  # measured over predicted by the capacities found so far

Predict = Callable[[Schedule, Values], Array]


def distinguish_ways(
    observed: Observed, how: str, ways: Mapping[Any, Values], predict: Predict, level: str = NODE
) -> list[tuple[int, Any]]:
    """Of the cases that are made to tell several ways, and do, the size and which it is, the shortest first; none where
    nothing else was measured of their distance."""
    nearest = []
    for size, measured, played in _played(observed, how, level):
        computes = played.work.seconds.sum()
        try:
            predictions = {way: played.cost(predict(played, values))[0] - computes for way, values in ways.items()}
        except UserError:
            return []
        if max(predictions.values()) > TELLS_APART * min(predictions.values()):
            nearest.append((size, min(predictions, key=lambda way: abs(predictions[way] - measured + computes))))
    return sorted(nearest)


def longest_sent(ways: list[tuple[int, float]]) -> float:
    """Return the longest message that leaves when it is sent, like all shorter ones, by which limit each speaks for."""
    held = [size for size, limit in ways if limit != NEVER]
    return float(max((size for size, _ in ways if size < held[0]), default=0)) if held else NEVER


def is_slower(observed: Observed, how: str, known: Values, predict: Predict) -> bool:
    """Return whether any of such cases takes longer than all that is known explains."""
    try:
        return any(
            measured > CLEARLY_SLOWER * played.cost(predict(played, known))[0]
            for _, measured, played in _played(observed, how)
        )
    except UserError:
        return False


def _played(observed: Observed, how: str, level: str = NODE) -> Iterator[tuple[int, float, Schedule]]:
    """Size, seconds and pattern of each case."""
    for case in observed.probes.get("capacity", ()):
        if (case.settings["how"], case.settings["level"]) == (how, level) and len(case.seconds):
            nodes = nodes_read(str(case.settings["where"]))
            yield int(case.settings["bytes"]), float(np.median(case.seconds)), pattern(case.settings).placed(nodes)


def links_by_destination(
    observed: Observed, known: Values, links: Mapping[str, int], predict: Predict
) -> dict[str, int]:
    """Return the levels of which the destination of a message tells which of so many links out of a group it takes."""
    told_apart = {}
    for level, most in links.items():
        ways = {count: replace(known, settings={**known.settings, "links": {level: count}}) for count in (1, most)}
        seen = [count for _, count in distinguish_ways(observed, "stride", ways, predict, level)]
        if seen and seen.count(most) > len(seen) / 2:
            told_apart[level] = most
    return told_apart


def fit_shared_latency(
    ranks: Array, size: Array, throughput: Array, left: Array, weights: Array
) -> tuple[Array, Array, Array]:
    """For every draw of `left` (draws, cases) the capacity, and L_0, L_p and L_m (draws, 3), none below 0; and what the
    first row comes to at each case. The capacity is infinite where none explains more than no limit does."""

    def terms(capacity: float) -> list[Array]:
        return [np.ones(len(size)), ranks, size * np.maximum(1, throughput / capacity)]

    root = np.sqrt(weights / weights.max())

    def squared_errors(candidates: Sequence[float], rows: slice) -> Array:
        """(candidates, rows)"""
        sums = []
        for candidate in candidates:
            columns = np.stack(terms(candidate), axis=-1) * root[:, None]
            scale = np.abs(columns).max(axis=0)
            solver = np.linalg.pinv(columns / scale, rcond=ALIKE)
            missed = left[rows] * root - left[rows] * root @ solver.T @ (columns / scale).T
            sums.append(np.sum(missed**2, axis=-1))
        return np.array(sums)

    capacity = _search_capacity(squared_errors, throughput, 1e-12 * np.sum((left[0] * root) ** 2), len(left))
    L = np.empty((len(left), 3))
    for value in np.unique(capacity):
        # Row 0 goes along: what a line misses is put on its draws again.
        rows = np.concatenate([[0], np.flatnonzero(capacity == value)])
        L[rows[1:]] = least_squares(terms(value), left[rows], weights)[1:]
    L[0] = least_squares(terms(capacity[0]), left[:1], weights)
    L = np.maximum(L, 0)
    return capacity, L, sum(value * term for value, term in zip(L[0], terms(capacity[0]), strict=True))


def _search_capacity(
    squared_errors: Callable[[Sequence[float], slice], Array], throughput: Array, nothing: float, draws: int
) -> Array:
    """Return the capacity with the smallest misfit: of row 0 exactly, of the draws on a fine grid around it."""
    from scipy.optimize import minimize_scalar  # here, because it takes longer to load than most verbs to run

    def misfit(log: float) -> float:
        return squared_errors([np.exp(log)], slice(1))[0, 0]

    coarse = np.geomspace(throughput[throughput > 0].min(), throughput.max(), 40)
    scores = squared_errors(coarse, slice(1))[:, 0]
    best = int(np.argmin(scores))
    if scores[best] > 0.7 * misfit(np.inf) - nothing:
        return np.full(draws, np.inf)
    ends = coarse[max(best - 1, 0)], coarse[min(best + 1, len(coarse) - 1)]
    fine = np.geomspace(*ends, 60)
    capacity = fine[np.argmin(squared_errors(fine, slice(None)), axis=0)]
    exact = minimize_scalar(misfit, bounds=np.log(ends), method="bounded", options={"xatol": 1e-9})
    capacity[0] = np.exp(exact.x)
    return capacity
