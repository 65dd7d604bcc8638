"""Synthetic probe samples computed from known parameters, for tests of fits."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from commodel.fits.probe_fits import make_parameter_set
from commodel.models.families import Family, find_family
from commodel.models.fitting.observed import CaseSamples, Observed
from commodel.models.probes import Site, find_probe
from commodel.parameters import ParameterSet
from commodel.patterns.schedule import Schedule
from commodel.predictions.model import Model

SIZES = [1, 16, 256, 1024, 4096, 16384, 65536]
Times = Mapping[str, Callable[[dict], float]]  # what a case of each probe takes, by its settings


@dataclass(frozen=True)
class Truth:
    """A synthetic machine that follows a model exactly. `covered` has the true values that
    intervals of a fit must cover."""

    times: Times
    covered: Mapping[str, float]
    site: Site = field(default_factory=lambda: Site(12, 1))
    counts: Times = field(default_factory=dict)  # of probes that count
    sizes: tuple[int, ...] = tuple(SIZES)


def truth(name: str) -> Truth:
    return importlib.import_module(f"tests.models.truths.{name.replace('-', '_')}").TRUTH


LOGGP = {"L": 10e-6, "o_s": 1.5e-6, "o_r": 2e-6, "g": 4e-6, "G": 8e-9, "gamma": 1e-10}


def loggp_times(L, o_s, o_r, g, G, gamma=0.0) -> Times:
    """Return the time in seconds of each probe on a LogGP machine, by the closed forms."""

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
        "pairprtt": prtt,
        "fan": fan,
        "wave": lambda case: fan({**case, "direction": "out"}) + fan({**case, "direction": "in"}),
        "chain": lambda case: 2 * case["height"] * one_way(case["bytes"]),
        "work": lambda case: gamma * case["bytes"],
    }


def observed(truth: Truth, name: str, *, noise=0.0, samples=30, seed=1) -> Observed:
    """Return synthetic samples of every case of a model's probes. `noise` is the standard deviation
    relative to the time."""
    rng = np.random.default_rng(seed)
    probes = {}
    for entry in find_family(name).probes:
        cases = []
        for case in find_probe(entry).cases("synthetic", truth.site, list(truth.sizes)):
            settings = {
                **case.settings,
                "ranks": case.ranks,
                "layout": case.layout,
                "pair": case.pair,
            }
            settings["where"] = "+".join(map(str, case.where))
            seconds = truth.times[entry](settings) * (1 + noise * rng.standard_normal(samples))
            counts = (
                np.full(samples, float(truth.counts[entry](settings)))
                if entry in truth.counts
                else None
            )
            cases.append(CaseSamples(settings, seconds, np.ones(samples, dtype=int), counts))
        if cases:
            probes[entry] = cases
    return Observed(probes, seed, truth.site.types, levels=truth.site.levels.group_lists)


def costs(entry: Family, schedule: Schedule, parameters: ParameterSet, drawn: bool) -> np.ndarray:
    """Return predicted times of a schedule, (draws,) or (sizes, draws): for the estimate, or for
    all bootstrap draws."""
    assert parameters.model == entry.name
    model = Model.of_set(parameters, None if drawn else 0)
    cost = np.broadcast_to(model.cost(schedule), (*schedule.bytes.shape[:-2], model.rows))
    return cost[..., 1:] if drawn and model.rows > 1 else cost


@cache
def fitted_set(name, **how) -> ParameterSet:
    return fit_machine(name, truth(name), **how)


def fit_machine(name: str, machine: Truth, **how) -> ParameterSet:
    """Return the parameter set of a model from samples of a machine."""
    return make_parameter_set(
        find_family(name), find_family(name).fit(observed(machine, name, **how))
    )
