"""What each level of a network holds, from messages that cross its boundary at the same time (probe `capacity`): how
much longer than alone they take together. What slows nobody down has no capacity here."""

from collections.abc import Callable, Mapping

import numpy as np

from commodel.hierarchy import BEYOND, NODE
from commodel.models import Array
from commodel.models.fitting.halftrips import HalfTrip
from commodel.models.fitting.observed import Cases, Observed
from commodel.models.fitting.regression import mean
from commodel.models.fitting.roundtrips import NEVER
from commodel.models.keys import key, sample
from commodel.models.probes.capacity import LONG, TINY

SLOWER = 1.1  # than alone: from there on messages share something
CLEARLY = 1.15  # than what is known to be shared explains
HIDES = 1.5  # times as long as its sender is busy with it: less may be the sender's own
NOISE = 3  # standard deviations
NEAR = 0.05  # of a share: what lies as near to the line between two others is no sample of its own
BOTH = 1.5  # times as long with as much the other way: one line for both
BACK = 0.01, 0.5  # of a share, between which what comes back lies

Trips = Mapping[str, HalfTrip]  # half a round trip of every class


def capacities(observed: Observed, trips: Trips, send: Array) -> tuple[dict[str, Array], list[str]]:
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
        if pair and (not out or pair[max(pair)][0] > CLEARLY * out[max(out)][0]):
            values |= _named(key("c_pair", level), pair)
        longer = _both_ways(cases, level)
        if longer is not None and longer[0] > BOTH:
            half.append(level)
        ways = 2 if level in half else 1  # as much comes into each group as leaves it
        known = {
            size: ways * max((column[size][0] for column in (out, pair) if size in column), default=0.0)
            for size in np.unique(cases["bytes"]).tolist()
        }
        values |= _named(key("c_all", level), _together(cases, trips, level, beyond, known))
    return values, half


def entering(observed: Observed, trips: Trips, receiving: Callable[[Array], Array]) -> dict[str, Array]:
    """The same of what enters the port of a node from far away. All come at about the same time, so that their receiver
    is busy with one after the other then, as it is with tiny ones, and for `receiving` seconds more with so many
    bytes."""
    if not observed.probes.get("capacity") or not trips:
        return {}
    cases = _pick(observed.cases("capacity"), level=NODE, how="in")
    cases = Cases(cases.columns, cases.seconds - (cases["flows"] - 1) * receiving(cases["bytes"]))
    return _named(key("c_in", NODE), _shares(cases, trips, NODE, "in", list(trips)[-1], 0.0))


def returning(observed: Observed) -> Array | None:
    """What part of a share of a line comes back for a message: as much the other way makes all so much slower. None: it
    was not looked at."""
    if not observed.probes.get("capacity"):
        return None
    longer = _both_ways(observed.cases("capacity"), NODE)
    return None if longer is None else np.clip(longer - 1, *BACK)


def _named(name: str, shares: Mapping[int, Array]) -> dict[str, Array]:
    """As many samples as all the others lie between, as far as noise lets anybody tell; that of the largest alone where
    all sizes have about the same."""
    if not shares:
        return {}
    size = np.array(sorted(shares))
    draws = np.stack([shares[own] for own in size.tolist()], axis=-1)
    seen = np.maximum(draws[0], 1e-30)
    noise = NOISE * draws.std(axis=0) / seen
    if (np.abs(np.log(seen / seen[-1])) < np.maximum(np.log(CLEARLY), noise)).all():
        return {sample(name, size[-1]): shares[int(size[-1])]}
    kept = {0, len(size) - 1}
    while True:
        between = sorted(kept)
        missed = np.abs(np.interp(size, size[between], seen[between]) / seen - 1) / np.maximum(NEAR, noise)
        if missed.max() < 1:
            return {sample(name, own): shares[own] for own in size[between].tolist()}
        kept.add(int(missed.argmax()))


def largest_eager(observed: Observed, trips: Trips) -> float | None:
    """The largest message whose sender does not wait while its receiver takes a long one first, like all smaller ones;
    0: there is none; NEVER: nobody waits. None: it was not looked at."""
    if not observed.probes.get("capacity"):
        return None
    cases, near = _pick(observed.cases("capacity"), how="eager"), next((name for name in trips if name != NODE), "")
    if not len(cases) or not near:
        return None
    waits = cases.seconds[0] > trips[near].at(np.array([float(LONG)]))[0, 0] / 2
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
            if not beyond_doubt or taken[0, most].max() > HIDES * busy * alike["flows"].max():
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
    """What messages at a time take for their bytes, and which cases have about as many as are slower than alone."""
    if not len(cases) or apart not in trips:
        return np.zeros((1, len(cases))), np.zeros(len(cases), dtype=bool)
    begin, alone = trips[apart].parts(cases["bytes"])
    taken = cases.seconds - begin
    slow = (taken[0] > SLOWER * alone[0]) & (cases["flows"] > 1)
    # few may by chance have a link each, or one for all
    return taken, slow.any() & (cases["flows"] >= cases["flows"][slow].max(initial=0) / 2)


def _together(cases: Cases, trips: Trips, level: str, apart: str, known: Mapping[int, float]) -> dict[int, Array]:
    """Of all groups at once, by size, where they take longer than what leaves one, or joins two, explains."""
    shares, cases = {}, _beyond_tiny(_pick(cases, level=level, how="all", ways=1), trips, apart)
    for size in np.unique(cases["bytes"])[::-1].tolist() if apart in trips else ():
        alike = _pick(cases, bytes=size)
        begin, alone = trips[apart].parts(alike["bytes"])
        taken = alike.seconds - begin
        explained = np.maximum(alone[0], alike["step"] * size * known[size])  # so many leave each group
        if (taken[0] > CLEARLY * explained).all():
            shares[size] = mean(taken / (alike["flows"] * size))
        elif not shares:
            return {}
    return shares


def _both_ways(cases: Cases, level: str) -> Array | None:
    """How many times as long as one way the most messages take of which as many go the other way. None: it was not
    measured."""
    cases = _pick(cases, level=level, how="out" if level == NODE else "pair")
    largest = cases["bytes"][cases["ways"] == 2].max(initial=0)
    single, double = (_pick(cases, ways=ways, bytes=largest) for ways in (1, 2))
    if not (alike := set(single["flows"].tolist()) & set(double["flows"].tolist())):
        return None
    one_way, both_ways = (
        np.median(cases.seconds[:, cases["flows"] == max(alike)], axis=1) for cases in (single, double)
    )
    return both_ways / one_way
