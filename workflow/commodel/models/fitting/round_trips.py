"""Overheads, gaps and latencies from round trips (probes `prtt`, `pairprtt`, `distance`): `round_trips`, `network`.

PRTT(n, d) is the round trip of n messages with a delay d after each but the last, the delays themselves taken off.
PRTT(1,0) = 2·(L + o_s + o_r + (m-1)·G) · PRTT(n,0) - PRTT(1,0) = (n-1)·max(g + (m-1)·G, o) ·
PRTT(n,d) - PRTT(1,0) = (n-1)·o_s for a d above the gap · a receive that starts late costs o_s + o_r in all.
(Hoefler, Lichei, Rehm: Low-overhead LogGP parameter assessment, 2007.)

`HalfTrip` is half a round trip between ranks of a distance class, T(m) = o + L(m) + m·G(m) with the overheads of both
ends: pieces of a line, or samples of G where no lines hold, as within a node, where caches are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from commodel.models import Array
from commodel.models.evaluation.values import PIECEWISE, TABLE, evaluate
from commodel.models.fitting.observed import Cases, Observed, at_common
from commodel.models.fitting.regression import line, mean, piecewise, sample_values, segments
from commodel.models.keys import Pair, key, parse, sample
from commodel.units import format_bytes

BURST = 16
KINDS = ((1, 0, 0), (BURST, 0, 0), (BURST, 1, 0), (1, 0, 1))  # n, delay, late: all that is asked of a size
NO_LATENCY = "not distinguishable from 0: the overheads alone take longer than half a round trip"
SHORT = 256  # overheads and latency are read off messages up to this size: what copying adds to them is not LogGP's
NEVER = np.inf  # bytes: no message asks its receiver first
MISSES = 0.1  # of a one-way time: from there on a model that gives another one says so


@dataclass(frozen=True, eq=False)
class RoundTrips:
    """Columns over sizes; (1 + draws, sizes) where measured."""

    size: Array
    one_way: Array  # half a round trip, overheads included
    overheads: Array  # of both ends together
    o_s: Array
    o_r: Array
    spacing: Array  # between the messages of a burst

    @property
    def body(self) -> Array:
        """Bytes beyond the first."""
        return np.maximum(self.size - 1, 0)

    @property
    def short(self) -> Array:
        return self.size <= max(SHORT, self.size.min())

    @property
    def short_overheads(self) -> tuple[Array, Array]:
        """LogGP's o_s and o_r, one for each draw."""
        return mean(self.o_s[:, self.short]), mean(self.o_r[:, self.short])

    def misses(self, one_way: Array) -> str:
        """By how much a model's one-way times are off where they are off most; empty where that is not much."""
        missed = one_way / self.one_way[0] - 1
        worst = np.abs(missed).argmax()
        at = format_bytes(int(self.size[worst]))
        share = f"{100 * missed[worst]:+.0f} %"
        return f"half a round trip is missed by {share} at {at}" if abs(missed[worst]) > MISSES else ""


def pair_probes(observed: Observed) -> dict[Pair, str]:
    """Return the pairs of node types whose round trips were measured, and by which probe."""
    return {
        Pair.parse(str(case.settings["pair"])): probe
        for probe in ("pairprtt", "prtt")
        for case in observed.probes.get(probe, ())
    }


def half_trip(observed: Observed, pair: Pair) -> tuple[Array, Array]:
    """Sizes, and half of the round trip of each."""
    cases = observed.cases(pair_probes(observed)[pair], pair=str(pair), n=1, delay=0, late=0)
    order = np.argsort(cases["bytes"])
    return cases["bytes"][order].astype(float), cases.seconds[:, order] / 2


def pair_trips(observed: Observed) -> dict[Pair, RoundTrips]:
    """Return the round trips of every pair of node types."""
    observed.cases("prtt")  # a fit that needs pairs needs at least these
    return {pair: round_trips(observed, pair) for pair in pair_probes(observed)}


def round_trips(observed: Observed, pair: Pair | None = None) -> RoundTrips:
    """Reads the four kinds of round trip, of one pair of node types if asked; sizes are those that all have."""
    probe, where = (pair_probes(observed)[pair], {"pair": str(pair)}) if pair else ("prtt", {})
    cases = [observed.cases(probe, **where, n=n, delay=delay, late=late) for n, delay, late in KINDS]
    single, burst, spread, late = at_common("bytes", *cases)
    o_s = np.maximum((spread.seconds - single.seconds) / (BURST - 1), 0)
    return RoundTrips(
        size=single["bytes"].astype(float),
        one_way=single.seconds / 2,
        overheads=late.seconds,
        o_s=o_s,
        o_r=np.maximum(late.seconds - o_s, 0),
        spacing=np.maximum((burst.seconds - single.seconds) / (BURST - 1), 1e-12),
    )


@dataclass(frozen=True, eq=False)
class Network:
    """What LogGP says of the network, by its parameters' names, and what has to be said of that."""

    L: Array
    g: Array
    G: Array
    notes: dict[str, str]
    unknown: dict[str, str]


def network(trips: RoundTrips, overhead: Array | float, travel: Array) -> Network:
    """L, g and G where a processor is busy for `overhead` with a message (estimates, for all sizes or for each) and
    `travel` is left of the one-way time without it. G comes from bursts where their spacing shows it."""
    body, notes, unknown = trips.body, {}, {}
    gap_seen = trips.spacing[0] > 1.05 * overhead  # elsewhere the overhead hides the gap
    if np.count_nonzero(gap_seen) >= 2:
        spacing = trips.spacing[:, gap_seen]
        # No burst can be spaced more closely than the gap: it bounds g where large messages would put it higher.
        ceiling = trips.spacing[:, trips.spacing[0].argmin()]
        g, G = line(body[gap_seen], spacing, 1 / spacing[0] ** 2, ceiling)
    else:
        g, G = np.zeros(len(travel)), line(body, travel, 1 / trips.one_way[0] ** 2)[1]
        notes["G"] = "from round trips: in bursts the overhead hides it at nearly every size measured"
    if g[0] <= np.min(overhead):
        unknown["g"] = "not distinguishable from 0: a gap below the overhead changes no prediction"
    L = np.maximum(mean((travel - G[:, None] * body)[:, trips.short]), 0)
    if not L[0]:
        unknown["L"] = NO_LATENCY
    return Network(L, g, G, notes, unknown)


def last_before_jump(size: Array, time: Array, least: float) -> float:
    """Return the last size before the time jumps up by `least`, both at that size and at the next one; NEVER where it
    does not. A mere change of slope is no jump: it is small at one of them."""
    weights = 1 / time[0] ** 2
    pieces = segments(size, time[:1], weights)
    lines = [(size[piece], *line(size[piece], time[:1, piece], weights[piece])) for piece in pieces]
    for (below, a, b), (above, a_next, b_next) in pairwise(lines):
        jump = min(a_next[0] - a[0] + (b_next[0] - b[0]) * edge for edge in (below[-1], above[0]))
        if jump >= least:
            return below[-1]
    return NEVER


def jump(size: Array, time: Array, last: float) -> Array:
    """Return how much longer, in every draw, a message takes after its size `last` than sizes up to there say: between
    two lines, where they are closest, and no more than the next size takes in all."""
    below, above = size <= last, size > last
    lines = [line(size[side], time[:, side], 1 / time[0, side] ** 2) for side in (below, above)]
    (a, b), (a_next, b_next) = lines
    edges = size[below][-1], size[above][0]
    longer = np.minimum(*(a_next - a + (b_next - b) * edge for edge in edges))
    return np.clip(longer, 0, np.maximum(time[:, above][:, 0] - time[:, below][:, -1], 0))


BYTES_SHOW = 1.1  # times as long as an empty message: from there on the time per byte can be told
FEWEST_SIZES = 4  # sizes
CLOSE_TO_TIMES = 0.05  # to the times, all in all: no line closer than this is given up


@dataclass(frozen=True, eq=False)
class HalfTrip:
    """L has the overheads in it here."""

    forms: Mapping[str, str]
    values: Mapping[str, Array]

    @classmethod
    def of(cls, size: Array, half: Array, most: int = 3, scale: Array | None = None) -> "HalfTrip":
        """Of times (draws, cases): at most so many lines, unless these miss more than noise explains, and more than
        lines between the samples do, whose gaps are half as wide as those that can be judged. By parts of the times, or
        of `scale`."""
        scale = half[0] if scale is None else scale
        form, line = piecewise("T", size, half, 1 / scale**2, most)
        lines, sizes = cls.by_lines(form, line), np.unique(size)
        if len(sizes) < FEWEST_SIZES:
            return lines
        times, scale = (
            np.stack([column[..., size == one_size].mean(axis=-1) for one_size in sizes], axis=-1)
            for column in (half, scale)
        )
        noise = (times[1:] / scale).var(axis=0) if len(times) > 1 else np.zeros(len(sizes))
        missed = ((lines.at(sizes)[0] - times[0]) / scale) ** 2 - noise
        between = (_missed_between(sizes, times[0]) / scale[1:-1]) ** 2 - noise[1:-1]
        return (
            lines if np.mean(missed) <= max(CLOSE_TO_TIMES**2, np.mean(between) / 4) else cls.by_samples(sizes, times)
        )

    @classmethod
    def by_lines(cls, form: str, line: Mapping[str, Array]) -> "HalfTrip":
        values = {}
        for name, draws in line.items():
            letter, number = parse(name).part[0], parse(name).part[1:]
            for function in {"a": "L", "b": "G", "x": "LG"}[letter]:
                values[key(function, f"{'x' if letter == 'x' else 'a'}{number}")] = draws
        return cls(dict.fromkeys("LG", PIECEWISE if form == PIECEWISE else "constant"), values)

    @classmethod
    def by_samples(cls, sizes: Array, times: Array) -> "HalfTrip":
        """L is that of messages which are too short for their bytes to count."""
        first = max(int(np.argmax(times[0] > BYTES_SHOW * times[0, 0])), 1)
        L = mean(times[:, :first], 1 / times[0, :first] ** 2)
        values = {"L.a": L}
        for size, column in zip(sizes[first:], times.T[first:], strict=True):
            values[sample("G", size)] = np.maximum(column - L, 0) / size
        return cls({"L": "constant", "G": TABLE}, values)

    def parts(self, bytes: Array) -> tuple[Array, Array]:
        """Return what comes before a message's bytes, and what these take: (draws, sizes) each."""
        values = {name: draws[:, None] for name, draws in self.values.items()}
        L, G = (evaluate(self.forms[name], name, values, bytes) for name in "LG")
        return L + 0.0 * bytes, G * bytes

    def at(self, bytes: Array) -> Array:
        return sum(self.parts(bytes))

    def named(self, apart: str, overheads: Array) -> tuple[dict[str, Array], dict[str, str]]:
        """Values of a distance class, L without the overheads, and the forms of its functions."""
        values = {}
        for name, draws in self.values.items():
            function, part = parse(name).function, parse(name).part
            before = overheads if function == "L" and part[0] == "a" else 0.0
            values[key(function, apart, part)] = np.maximum(draws - before, 0)
        return values, {key(function, apart): form for function, form in self.forms.items()}

    @property
    def terms(self) -> int:
        """How many values it has: an edge is one of both functions."""
        return sum(not name.startswith("L.x") for name in self.values)


def _missed_between(sizes: Array, times: Array) -> Array:
    """By how much a line from one sample to the next but one misses the one between."""
    share = (sizes[1:-1] - sizes[:-2]) / (sizes[2:] - sizes[:-2])
    return times[:-2] + share * (times[2:] - times[:-2]) - times[1:-1]


GROWTH_MATTERS = 0.02  # of a one-way time


def growing_overheads(trips: RoundTrips, longest: float) -> dict[str, Array]:
    """Tables of `O_s` and `O_r` up to the longest message that leaves at once; none where overheads do not grow."""
    kept = trips.size <= longest
    more = {
        name: np.maximum(own[:, kept] - short[:, None], 0)
        for name, own, short in zip(("O_s", "O_r"), (trips.o_s, trips.o_r), trips.short_overheads, strict=True)
    }
    if not (sum(more.values())[0] > GROWTH_MATTERS * trips.one_way[0, kept]).any():
        return {}
    return {
        text: draws
        for name in more
        for text, draws in sample_values(name, trips.size[kept].astype(int), more[name]).items()
    }


def describe_shared_nodes(cases: Cases) -> str:
    """In words for a note; empty where every rank had a node of its own."""
    shared = set()
    for layout, ranks in zip(cases["layout"], cases["ranks"], strict=True):
        _, _, per_node = str(layout).partition(":")
        if per_node.isdigit() and int(per_node) > 1:
            shared.add((min(int(per_node), int(ranks)), int(ranks)))
    if not shared:
        return ""
    most, ranks = max(shared)
    if most >= ranks:
        return f"all {ranks} ranks on one node: of messages within it"
    return f"up to {most} ranks on a node: of messages between nodes and within them"
