"""Overheads, gaps and latencies from round trips (probes `prtt`, `pairprtt`, `distance`):
`collect_round_trips`, `fit_network`.

PRTT(n, d) is the round trip of n messages with a delay d after each but the last, minus the delays.
PRTT(1,0) = 2·(L + o_s + o_r + (m-1)·G) · PRTT(n,0) - PRTT(1,0) = (n-1)·max(g + (m-1)·G, o) ·
PRTT(n,d) - PRTT(1,0) = (n-1)·o_s for a d above the gap · a receive that starts late takes o_s + o_r
in all. (Hoefler, Lichei, Rehm: Low-overhead LogGP parameter assessment, 2007.)

`HalfTrip` is half a round trip between ranks of a distance class, T(m) = o + L(m) + m·G(m) with the
overheads of both ends: a piecewise line, or samples of G where lines do not fit, as with caches
within a node.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from commodel.models import Array
from commodel.models.evaluation.values import PIECEWISE, TABLE, evaluate
from commodel.models.fitting.observed import Cases, Observed, select_common
from commodel.models.fitting.regression import (
    EQUAL_DEVIATIONS,
    find_segments,
    fit_line,
    fit_mean,
    fit_piecewise,
    make_sample_values,
    weigh_inversely,
)
from commodel.models.keys import Pair, make_key, make_sample_key, parse_key
from commodel.units import format_bytes

BURST_MESSAGES = 16
# n, delay, late: the round trips of each size.
TRIP_KINDS = (1, 0, 0), (BURST_MESSAGES, 0, 0), (BURST_MESSAGES, 1, 0), (1, 0, 1)
NO_LATENCY = "not distinguishable from 0: the overheads alone take longer than half a round trip"
# Bytes: overheads and latency are those of messages up to this size, in which copying is
# negligible.
MAX_SHORT_BYTES = 256
NEVER = np.inf  # bytes: no message uses rendezvous
MAX_TRIP_ERROR = 0.1  # of a one-way time, above which the fit has a note


@dataclass(frozen=True, eq=False)
class RoundTrips:
    """Times in seconds by size: (1 + draws, sizes)."""

    size: Array
    one_way: Array  # half a round trip, overheads included
    overheads: Array  # of a send and a receive, both on the first rank
    o_s: Array
    o_r: Array
    spacing: Array  # between the messages of a burst

    @property
    def body(self) -> Array:
        """Bytes beyond the first."""
        return np.maximum(self.size - 1, 0)

    @property
    def short(self) -> Array:
        """Whether each size is short."""
        return self.size <= max(MAX_SHORT_BYTES, self.size.min())

    @property
    def short_overheads(self) -> tuple[Array, Array]:
        """LogGP's o_s and o_r, one for each draw."""
        return fit_mean(self.o_s[:, self.short]), fit_mean(self.o_r[:, self.short])

    def describe_error(self, one_way: Array) -> str:
        """Return a text with the largest error of a model's one-way times; empty if it is small."""
        errors = one_way / self.one_way[0] - 1
        worst = np.abs(errors).argmax()
        if abs(errors[worst]) <= MAX_TRIP_ERROR:
            return ""
        return (
            f"half a round trip is missed by {100 * errors[worst]:+.0f} % at "
            f"{format_bytes(int(self.size[worst]))}"
        )


def list_pair_probes(observed: Observed) -> dict[Pair, str]:
    """Return the pairs of node types whose round trips were measured, and the probe of each."""
    return {
        Pair.parse(str(case.settings["pair"])): probe
        for probe in ("pairprtt", "prtt")
        for case in observed.probes.get(probe, ())
    }


def measure_half_trip(observed: Observed, pair: Pair) -> tuple[Array, Array]:
    """Return sizes, and half of the round trip of each."""
    cases = observed.cases(list_pair_probes(observed)[pair], pair=str(pair), n=1, delay=0, late=0)
    order = np.argsort(cases["bytes"])
    return cases["bytes"][order].astype(float), cases.seconds[:, order] / 2


def collect_pair_trips(observed: Observed) -> dict[Pair, RoundTrips]:
    """Return the round trips of every pair of node types."""
    observed.cases("prtt")  # raises an error without these, which every fit of pairs needs
    return {pair: collect_round_trips(observed, pair) for pair in list_pair_probes(observed)}


def collect_round_trips(observed: Observed, pair: Pair | None = None) -> RoundTrips:
    """Return the four kinds of round trip, of a pair of node types or of probe `prtt`, at the sizes
    of all kinds."""
    probe, settings = (
        (list_pair_probes(observed)[pair], {"pair": str(pair)}) if pair else ("prtt", {})
    )
    cases = [
        observed.cases(probe, **settings, n=n, delay=delay, late=late)
        for n, delay, late in TRIP_KINDS
    ]
    single, burst, delayed, late = select_common("bytes", *cases)
    o_s = np.maximum((delayed.seconds - single.seconds) / (BURST_MESSAGES - 1), 0)
    return RoundTrips(
        size=single["bytes"].astype(float),
        one_way=single.seconds / 2,
        overheads=late.seconds,
        o_s=o_s,
        o_r=np.maximum(late.seconds - o_s, 0),
        spacing=np.maximum((burst.seconds - single.seconds) / (BURST_MESSAGES - 1), 1e-12),
    )


@dataclass(frozen=True, eq=False)
class NetworkParameters:
    """LogGP's parameters of the network, and notes on them."""

    L: Array
    g: Array
    G: Array
    notes: dict[str, str]
    unidentified: dict[str, str]


def fit_network(trips: RoundTrips, overhead: Array | float, travel: Array) -> NetworkParameters:
    """Return L, g and G.

    `overhead` is the busy time of a processor with a message (one estimate, or one for each size).
    `travel` is the one-way time without overheads. G comes from bursts if their spacing shows it.
    """
    body, notes, unidentified = trips.body, {}, {}
    gap_visible = trips.spacing[0] > 1.05 * overhead  # else the overhead exceeds the gap
    if np.count_nonzero(gap_visible) >= 2:
        spacing = trips.spacing[:, gap_visible]
        # Messages of a burst cannot be closer than the gap. This bounds g if large messages would
        # raise it.
        ceiling = trips.spacing[:, trips.spacing[0].argmin()]
        g, G = fit_line(body[gap_visible], spacing, 1 / spacing[0] ** 2, ceiling)
    else:
        g, G = np.zeros(len(travel)), fit_line(body, travel, 1 / trips.one_way[0] ** 2)[1]
        notes["G"] = (
            "from round trips: in bursts the overhead exceeds the gap at nearly every size measured"
        )
    if g[0] <= np.min(overhead):
        unidentified["g"] = (
            "not distinguishable from 0: a gap below the overhead changes no prediction"
        )
    L = np.maximum(fit_mean((travel - G[:, None] * body)[:, trips.short]), 0)
    if not L[0]:
        unidentified["L"] = NO_LATENCY
    return NetworkParameters(L, g, G, notes, unidentified)


def find_last_before_jump(size: Array, time: Array, min_jump: float) -> float:
    """Return the last size before the time jumps by `min_jump`, at that size and at the next one;
    NEVER if it does not.

    A change of slope is no jump, since it is small at one of the two sizes.
    """
    weights = weigh_inversely(time[0])
    pieces = find_segments(size, time[:1], weights)
    lines = [
        (size[piece], *fit_line(size[piece], time[:1, piece], weights[piece])) for piece in pieces
    ]
    for (below, a, b), (above, a_next, b_next) in pairwise(lines):
        jump = min(a_next[0] - a[0] + (b_next[0] - b[0]) * edge for edge in (below[-1], above[0]))
        if jump >= min_jump:
            return below[-1]
    return NEVER


def measure_jump(size: Array, time: Array, last: float) -> Array:
    """Return by how much the time of a message jumps after size `last`, in every draw.

    It is the smallest distance of two lines there, at most the difference of the two measured
    times.
    """
    below, above = size <= last, size > last
    lines = [fit_line(size[rows], time[:, rows], 1 / time[0, rows] ** 2) for rows in (below, above)]
    (a, b), (a_next, b_next) = lines
    edges = size[below][-1], size[above][0]
    distances = np.minimum(*(a_next - a + (b_next - b) * edge for edge in edges))
    return np.clip(distances, 0, np.maximum(time[:, above][:, 0] - time[:, below][:, -1], 0))


MIN_BYTE_FACTOR = 1.1  # over an empty message, from which the time per byte is observable
MAX_PIECES = 8  # of half a round trip as a function of the size
MIN_TABLE_SIZES = 4  # sizes
MAX_LINE_ERROR = 0.05  # relative root mean square error, up to which lines are kept
MAX_SINGLE_ERROR = 0.1  # relative error at a size, up to which lines are kept


@dataclass(frozen=True, eq=False)
class HalfTrip:
    """Half a round trip as functions L and G; L includes the overheads."""

    forms: Mapping[str, str]
    values: Mapping[str, Array]

    @classmethod
    def of(cls, size: Array, half: Array, scale: Array | None = None) -> "HalfTrip":
        """Return the fit to times (draws, cases): a piecewise line, or samples.

        Samples are chosen if lines miss more than noise explains: a size clearly, or all on average
        more than interpolation between samples, whose gaps are half as wide as those that can be
        checked. Errors are relative to the times, or to `scale`.
        """
        scale = half[0] if scale is None else scale
        form, line = fit_piecewise("T", size, half, 1 / scale**2, MAX_PIECES)
        lines, sizes = cls.by_lines(form, line), np.unique(size)
        if len(sizes) < MIN_TABLE_SIZES:
            return lines
        times, scale = (
            np.stack([column[..., size == one_size].mean(axis=-1) for one_size in sizes], axis=-1)
            for column in (half, scale)
        )
        noise = (times[1:] / scale).var(axis=0) if len(times) > 1 else np.zeros(len(sizes))
        line_errors = ((lines.at(sizes)[0] - times[0]) / scale) ** 2
        interpolation_errors = (
            _compute_interpolation_errors(sizes, times[0]) / scale[1:-1]
        ) ** 2 - noise[1:-1]
        are_close = np.mean(line_errors - noise) <= max(
            MAX_LINE_ERROR**2, np.mean(interpolation_errors) / 4
        )
        is_each_close = (line_errors - EQUAL_DEVIATIONS**2 * noise).max() <= MAX_SINGLE_ERROR**2
        return lines if are_close and is_each_close else lines.refine(sizes, times)

    @classmethod
    def by_lines(cls, form: str, line: Mapping[str, Array]) -> "HalfTrip":
        """Return L and G from the coefficients of a piecewise line."""
        values = {}
        for name, draws in line.items():
            letter, number = parse_key(name).part[0], parse_key(name).part[1:]
            for function in {"a": "L", "b": "G", "x": "LG"}[letter]:
                values[make_key(function, f"{'x' if letter == 'x' else 'a'}{number}")] = draws
        return cls(dict.fromkeys("LG", PIECEWISE if form == PIECEWISE else "constant"), values)

    def refine(self, sizes: Array, times: Array) -> "HalfTrip":
        """Return L of the lines, or from messages too short for their bytes to matter if there is
        one line, and samples of G."""
        first = max(int(np.argmax(times[0] > MIN_BYTE_FACTOR * times[0, 0])), 1)
        values = {
            name: draws for name, draws in self.values.items() if parse_key(name).function == "L"
        }
        if self.forms["L"] != PIECEWISE:
            values = {"L.a": fit_mean(times[:, :first], 1 / times[0, :first] ** 2)}
        L = HalfTrip(self.forms, {**self.values, **values}).split_time(sizes)[0]
        for number in range(first, len(sizes)):
            G = np.maximum(times[:, number] - L[:, number], 0) / sizes[number]
            values[make_sample_key("G", sizes[number])] = G
        return HalfTrip({"L": self.forms["L"], "G": TABLE}, values)

    @property
    def byte_sizes(self) -> list[int]:
        """The sizes between which G does not change its form: those of its samples, and both sides
        of change points."""
        keys = {name: parse_key(name) for name in self.values}
        samples = [key.sample[0] for key in keys.values() if key.function == "G" and key.sample]
        edges = [
            int(self.values[name][0])
            for name, key in keys.items()
            if key.function == "G" and key.part[0] == "x"
        ]
        return sorted({*samples, *edges, *(edge + 1 for edge in edges)})

    def split_time(self, bytes: Array) -> tuple[Array, Array]:
        """Return L and m·G of messages: (draws, sizes) each."""
        values = {name: draws[:, None] for name, draws in self.values.items()}
        L, G = (evaluate(self.forms[name], name, values, bytes) for name in "LG")
        return L + 0.0 * bytes, G * bytes

    def at(self, bytes: Array) -> Array:
        L, byte_seconds = self.split_time(bytes)
        return L + byte_seconds

    def byte_seconds(self, size: int) -> Array:
        """Return m·G of a message, in every draw."""
        return self.split_time(np.array([float(size)]))[1][:, 0]

    def name_values(
        self, distance_class: str, overheads: Array
    ) -> tuple[dict[str, Array], dict[str, str]]:
        """Return the values of a distance class, L without the overheads, and the forms of its
        functions."""
        values = {}
        for name, draws in self.values.items():
            function, part = parse_key(name).function, parse_key(name).part
            subtracted = overheads if function == "L" and part[0] == "a" else 0.0
            values[make_key(function, distance_class, part)] = np.maximum(draws - subtracted, 0)
        return values, {
            make_key(function, distance_class): form for function, form in self.forms.items()
        }

    @property
    def terms(self) -> int:
        """The number of values; an edge is one value of both functions."""
        return sum(not name.startswith("L.x") for name in self.values)


def _compute_interpolation_errors(sizes: Array, times: Array) -> Array:
    """Return the error of interpolation at each inner sample, from its two neighbours."""
    share = (sizes[1:-1] - sizes[:-2]) / (sizes[2:] - sizes[:-2])
    return times[:-2] + share * (times[2:] - times[:-2]) - times[1:-1]


MIN_GROWTH = 0.02  # of overheads, relative to a one-way time


def fit_growing_overheads(trips: RoundTrips, largest_eager: float) -> dict[str, Array]:
    """Return tables of `O_s` and `O_r` up to the largest eager message; empty if overheads do not
    grow."""
    eager = trips.size <= largest_eager
    growth = {
        name: np.maximum(overheads[:, eager] - short[:, None], 0)
        for name, overheads, short in zip(
            ("O_s", "O_r"), (trips.o_s, trips.o_r), trips.short_overheads, strict=True
        )
    }
    if not (growth["O_s"][0] + growth["O_r"][0] > MIN_GROWTH * trips.one_way[0, eager]).any():
        return {}
    sizes = trips.size[eager].astype(int)
    return {
        text: draws
        for name in growth
        for text, draws in make_sample_values(name, sizes, growth[name]).items()
    }


def describe_shared_nodes(cases: Cases) -> str:
    """Return a note if ranks shared nodes; empty if every rank had a node of its own."""
    shared = set()
    for layout, ranks in zip(cases["layout"], cases["ranks"], strict=True):
        _, _, per_node = str(layout).partition(":")
        if per_node.isdigit() and int(per_node) > 1:
            shared.add((min(int(per_node), int(ranks)), int(ranks)))
    if not shared:
        return ""
    largest, ranks = max(shared)
    if largest >= ranks:
        return f"all {ranks} ranks on one node: fitted to messages within it"
    return f"up to {largest} ranks on a node: fitted to messages between and within nodes"
