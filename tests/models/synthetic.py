"""Probe samples made from known LogGP parameters, for fits that must find them again."""

from collections.abc import Callable

import numpy as np

from commodel.fitting import CaseSamples, Observed
from commodel.probes import Site, probe

SIZES = [1, 16, 256, 1024, 4096, 16384, 65536]


def loggp_times(L, o_s, o_r, g, G, gamma=0.0) -> dict[str, Callable[[dict], float]]:
    """What each probe would take on a machine that is LogGP, by the closed forms."""

    def one_way(size):
        return o_s + L + G * max(size - 1, 0) + o_r

    def prtt(case):
        size, trip = case["bytes"], 2 * one_way(case["bytes"])
        if case["late"]:
            return o_s + o_r
        spacing = o_s if case["delay"] else max(g + G * max(size - 1, 0), o_s)
        return trip + (case["n"] - 1) * spacing

    def fan(case):
        gap = max(g + G * (case["bytes"] - 1), o_r if case["direction"] == "in" else o_s)
        return one_way(case["bytes"]) + (case["n"] - 1) * gap

    return {
        "pingpong": lambda case: 2 * one_way(case["bytes"]),
        "prtt": prtt,
        "fan": fan,
        "chain": lambda case: 2 * case["height"] * one_way(case["bytes"]),
        "work": lambda case: gamma * case["bytes"],
    }


def observed(
    times, *, ranks=32, noise=0.0, samples=30, seed=1, names=("pingpong", "prtt", "fan", "chain", "work")
) -> Observed:
    """Samples of every case of the probes; `noise` is the spread of a sample relative to its time."""
    rng = np.random.default_rng(seed)
    probes = {}
    for name in names:
        probes[name] = [
            CaseSamples(
                {**case.settings, "ranks": case.ranks, "layout": case.layout, "pair": case.pair},
                times[name](case.settings) * (1 + noise * rng.standard_normal(samples)),
                np.ones(samples, dtype=int),
            )
            for case in probe(name).cases("synthetic", Site(ranks, 1), SIZES)
        ]
    return Observed(probes, seed)
