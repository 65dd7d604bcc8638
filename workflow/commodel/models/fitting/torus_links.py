"""Links of a torus, from the latencies of pairs of nodes and from concurrent messages (probes
`nodepairs`, `capacity`).

`find_torus_of_pairs` returns the torus whose hops explain the latencies. `fit_torus` gives model
`shares` its links in place of the ports of nodes. Messages over several hops have several times the
latency of the probed pair. Messages between one node and several distant ones therefore separate
latency and time per byte at each size.
"""

from dataclasses import dataclass, replace

import numpy as np

from commodel.hierarchy import BEYOND, NODE
from commodel.models import Array
from commodel.models.evaluation.shared_links import ENTRIES, TORUS
from commodel.models.evaluation.values import Values
from commodel.models.fitting.link_capacities import (
    MIN_RATIO,
    Predict,
    compute_case_error,
    find_least_error,
    is_slower,
    list_patterns,
    select_half_trips,
)
from commodel.models.fitting.observed import Observed, PartialFit
from commodel.models.keys import make_key, make_sample_key, parse_key
from commodel.models.probes.capacity import MIN_CAPACITY_BYTES
from commodel.torus import Torus, find_torus

PORT_CAPACITIES = {kind: make_key(f"c_{kind}", NODE) for kind in ("out", "pair", "all")}
PORT_CASES = "out", "in", "pair", "all"  # cases of nodes and their ports
# of a squared error for each step of a factor, so that one without effect stays at 1
FACTOR_PENALTY = 1e-6
LINK_RATIO_BOUNDS = 0.1, 1.15  # bounds of a link's time per byte over that of a single message
# step and points of the factors on latency that are tried in turn
FACTOR_GRIDS = (1.3, 11), (1.06, 9), (1.015, 7)


def find_torus_of_pairs(observed: Observed) -> Torus | None:
    """Return the torus that explains the latencies of pairs of nodes; None if there is none, or if
    there are levels."""
    if observed.levels or not observed.probes.get("nodepairs"):
        return None
    cases = observed.cases("nodepairs")
    small = cases.where(bytes=cases["bytes"].min())
    pairs = np.stack([small["one"], small["two"]], axis=1).astype(int)
    return find_torus(pairs, select_half_trips(small), int(small["nodes"].max()))


@dataclass(frozen=True, eq=False)
class TorusLinks:
    """Values between nodes of a torus: samples of L, of the time of a message, and of the time per
    byte of a link."""

    without_links: PartialFit
    sizes: np.ndarray  # bytes
    latency: Array  # seconds (draws, sizes)
    seconds: Array  # of a message without overheads (draws, sizes)
    ratio: float = 1.0  # of a link's time per byte to that of a single message

    @property
    def fit(self) -> PartialFit:
        G = (self.seconds - self.latency) / self.sizes
        functions = {make_key("L", BEYOND): self.latency, make_key("G", BEYOND): G}
        functions |= {make_key("c_hop", NODE): self.ratio * G}
        fit = PartialFit(
            dict(self.without_links.values),
            dict(self.without_links.forms),
            self.without_links.settings,
        )
        for name, draws in functions.items():
            fit.add(
                {
                    make_sample_key(name, size): draws[:, at]
                    for at, size in enumerate(self.sizes.tolist())
                }
            )
        return fit

    def scale_latency(self, factors: Array) -> "TorusLinks":
        """Return the links with the latency at each size multiplied, and the time of the bytes
        reduced by as much."""
        return replace(self, latency=np.minimum(self.latency * factors, self.seconds))

    def scale_estimate(self, factors: Array) -> Values:
        """Return the estimate with latencies multiplied by several factors (rows, sizes), a row
        each."""
        estimate = PartialFit(
            {name: draws[:1] for name, draws in self.without_links.values.items()},
            self.without_links.forms,
            self.without_links.settings,
        )
        rows = np.broadcast_to(self.seconds[:1], factors.shape)
        links = replace(
            self, without_links=estimate, latency=self.latency[:1] + 0.0 * factors, seconds=rows
        )
        return links.scale_latency(factors).fit.draws


def fit_torus(
    observed: Observed, partial: PartialFit, torus: Torus, predict: Predict
) -> PartialFit:
    """Return the fit with the links of a torus in place of ports, if they explain cases of
    concurrent messages better.

    Ports remain where cases are slower than the links explain.
    """
    tried = [_replace_ports(observed, partial, torus, entry) for entry in ENTRIES]
    tried = [_fit_ratio(observed, links, predict) for links in tried]
    tried = [
        _separate_latency(observed, _choose_duplex(observed, links, predict), predict)
        for links in tried
    ]
    fits = [partial, *(links.fit for links in tried)]
    errors = [
        compute_case_error(observed, candidate.estimate(), predict, PORT_CASES)
        for candidate in fits
    ]
    fit = fits[find_least_error(errors)]
    if fit is partial:
        return partial
    for kind, function in PORT_CAPACITIES.items():
        if is_slower(observed, kind, fit.estimate(), predict):
            fit.add(
                {
                    key: draws
                    for key, draws in partial.values.items()
                    if parse_key(key).function == function
                }
            )
    return fit


def _replace_ports(observed: Observed, partial: PartialFit, torus: Torus, entry: str) -> TorusLinks:
    """Return links that are as fast as single messages."""
    ports = PORT_CAPACITIES.values()
    values = {
        key: draws for key, draws in partial.values.items() if parse_key(key).function not in ports
    }
    settings = {**partial.settings, TORUS: list(torus.shape), "half_duplex": [], "entry": entry}
    sizes = np.unique(observed.cases("distance", apart=BEYOND)["bytes"])
    sizes = sizes[sizes > 0]
    latency, byte_time = (
        partial.draws.at(make_key(letter, BEYOND), sizes) + 0.0 * sizes for letter in "LG"
    )
    without_links = PartialFit(values, partial.forms, settings)
    return TorusLinks(without_links, sizes, latency, latency + byte_time * sizes)


def _fit_ratio(observed: Observed, links: TorusLinks, predict: Predict) -> TorusLinks:
    """Return the links with the ratio that concurrent messages of the largest size have."""
    patterns, ratios = list(list_patterns(observed, "out", ways=1)), []
    largest = max((size for size, *_ in patterns), default=0)
    estimates = [replace(links, ratio=ratio).fit.estimate() for ratio in (0.5, 1.0)]
    for _, measured, schedule in (pattern for pattern in patterns if pattern[0] == largest):
        seconds_of_half, seconds = (
            schedule.cost(predict(schedule, values))[0] for values in estimates
        )
        if seconds > MIN_RATIO * seconds_of_half:
            ratios.append(1 + (measured - seconds) / (seconds - seconds_of_half) / 2)
    return (
        replace(links, ratio=float(np.clip(np.median(ratios), *LINK_RATIO_BOUNDS)))
        if ratios
        else links
    )


def _choose_duplex(observed: Observed, links: TorusLinks, predict: Predict) -> TorusLinks:
    """Return the links with the setting `half_duplex` that explains messages from a node, in one
    direction and in both, best."""
    partial = links.without_links
    candidates = [
        replace(
            links,
            without_links=replace(partial, settings={**partial.settings, "half_duplex": levels}),
        )
        for levels in ([], [NODE])
    ]
    errors = [
        compute_case_error(observed, candidate.fit.estimate(), predict, PORT_CASES[:1])
        for candidate in candidates
    ]
    return candidates[find_least_error(errors)]


def _separate_latency(observed: Observed, links: TorusLinks, predict: Predict) -> TorusLinks:
    """Return links with the latency at each size with which messages to and from several nodes take
    as long as measured.

    Several factors on latency are tried, in steps that get smaller. Below the smallest size of
    these cases, L is the one that was fitted. Between their sizes, it is interpolated.
    """
    patterns = [
        (int(np.searchsorted(links.sizes, size)), measured, schedule)
        for how in PORT_CASES
        for size, measured, schedule in list_patterns(observed, how, ways=1)
        if size >= MIN_CAPACITY_BYTES and size in links.sizes
    ]
    probed, factors = sorted({at for at, *_ in patterns}), np.ones(len(links.sizes))
    for step, points in FACTOR_GRIDS:
        powers = np.arange(-(points // 2), points // 2 + 1)[:, None]
        tried = np.where(np.isin(np.arange(len(factors)), probed), factors * step**powers, factors)
        values, errors = (
            links.scale_estimate(tried),
            np.broadcast_to(FACTOR_PENALTY * powers**2, tried.shape).copy(),
        )
        for at, measured, schedule in patterns:
            errors[:, at] += np.log(schedule.cost(predict(schedule, values)) / measured) ** 2
        factors = tried[errors.argmin(axis=0), np.arange(len(factors))]
    latency = links.scale_latency(factors).latency
    with_latency = [*range(min(probed, default=len(factors))), *probed]
    latency = np.stack(
        [np.interp(links.sizes, links.sizes[with_latency], row[with_latency]) for row in latency]
    )
    return replace(links, latency=np.minimum(latency, links.seconds))
