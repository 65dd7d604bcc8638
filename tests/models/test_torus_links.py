"""Fits of torus links and message headers, to machines that are a torus or only have the latencies
of one."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest

from commodel.models.evaluation.values import Values
from commodel.models.families import find_family, shares
from commodel.models.fitting.observed import CaseSamples
from commodel.models.probes import Site
from commodel.models.probes.capacity import make_pattern
from commodel.models.probes.node_pairs import build_round_trips
from commodel.patterns import build
from commodel.patterns.layouts import parse_nodes
from commodel.patterns.schedule import Schedule
from commodel.predictions.model import Model
from commodel.torus import Torus
from tests.models.synthetic import Truth, loggp_times, observed, truth
from tests.patterns.catalogue import point

TORUS = Torus((4, 4))
O_S, O_R, G = 1e-6, 1.5e-6, 1e-9
HEADER = 40.0  # bytes
# seconds of a hop, and for messages of more bytes, which use another protocol
HOP, LONG_HOP, LONG = 1e-6, 4e-6, 8192


def make_machine(values, **settings):
    """Return the model of a machine whose latencies are those of a torus."""
    numbers = {"o_s": O_S, "o_r": O_R, "gamma.a": 1e-10, "L.node.a": 5e-7, "G.node.a": 1e-10}
    numbers |= {
        "L.beyond.a": HOP,
        "L.beyond.x1": LONG,
        "L.beyond.a1": LONG_HOP,
        "G.beyond.a": G,
    } | values
    stacked = {name: np.array([[number]]) for name, number in numbers.items()}
    forms = {name.removesuffix(".a"): "constant" for name in numbers if name.endswith(".a")}
    hops = TORUS.count_hops(*np.triu_indices(TORUS.nodes, 1))
    settings |= {"pair_latency": ((hops - 1) * HOP).tolist()}
    return Model.of(
        find_family("shares"), Values(stacked, forms | {"L.beyond": "piecewise"}, settings)
    )


@cache
def fit_machine(*name):
    """Return a machine, and model `shares` fitted to its probes."""
    machine = MACHINES[name[0]]

    def cost(schedule, nodes):
        return float(
            machine.cost(schedule.place(np.repeat(nodes, schedule.ranks // len(nodes))))[0]
        )

    def capacity(case):
        return cost(make_pattern(case), parse_nodes(case["where"]))

    def distance(case):
        ends = np.array(parse_nodes(case["where"]))
        return cost(Schedule.of(2, [0, 1], [0, 1], [1, 0], case["bytes"], root=0), ends)

    times = {**truth("shares").times, "capacity": capacity, "distance": distance}
    o_s, o_r = (float(machine.values[name][0, 0]) for name in ("o_s", "o_r"))
    plain = loggp_times(L=HOP, o_s=o_s, o_r=o_r, g=0.0, G=G)["prtt"]

    def prtt(case):
        if case["n"] == 1 or case["delay"]:
            return plain(case)
        sender = [0] * case["n"] + [1]
        receiver, steps = [1 - rank for rank in sender], np.arange(len(sender))
        return cost(
            Schedule.of(2, steps, sender, receiver, case["bytes"], root=0), np.array([0, 1])
        )

    times["prtt"] = prtt
    seen = observed(Truth(times, {}, site=Site(TORUS.nodes, 2)), "shares")
    nodes = np.arange(TORUS.nodes)
    pairs = [
        {"one": one, "two": two, "nodes": TORUS.nodes, "trips": trips, "bytes": bytes}
        for one, two in combinations(range(TORUS.nodes), 2)
        for bytes, trips in ((8, 8), (65536, 1))
    ]
    seen.probes["nodepairs"] = [
        CaseSamples(case, np.full(3, cost(build_round_trips(case), nodes)), np.ones(3, dtype=int))
        for case in pairs
    ]
    return machine, shares.fit(seen)


TORUS_SETTINGS = {"torus": list(TORUS.shape)}
MACHINES = {
    "path": make_machine({"c_hop.node.a": G}, **TORUS_SETTINGS, entry="path"),
    "latency": make_machine({"c_hop.node.a": G}, **TORUS_SETTINGS, entry="latency"),
    "fast links": make_machine({"c_hop.node.a": 0.6 * G}, **TORUS_SETTINGS, entry="path"),
    "half duplex": make_machine(
        {"c_hop.node.a": G}, **TORUS_SETTINGS, entry="path", half_duplex=["node"]
    ),
    "ports": make_machine({"c_out.node.a": G}),
    "headers": make_machine({"c_out.node.a": G, "o_s": 1e-8, "o_r": 1e-8, "H": HEADER}),
}


@pytest.mark.parametrize("name", MACHINES)
def test_the_links_of_a_torus_are_found(name):
    machine, fitted = fit_machine(name)
    assert fitted.settings.get("torus") == machine.values.settings.get("torus")
    assert fitted.values.get("H", [0.0])[0] == pytest.approx(HEADER * (name == "headers"), rel=0.1)
    if "torus" in fitted.settings:
        assert fitted.settings["entry"] == machine.values.settings["entry"]
        assert fitted.settings["half_duplex"] == machine.values.settings.get("half_duplex", [])
        assert not {"c_out.node.65536", "c_pair.node.65536"} & fitted.values.keys()
        capacity = machine.values["c_hop.node.a"][0, 0]
        assert fitted.values["c_hop.node.65536"][0] == pytest.approx(capacity, rel=0.05)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("bytes", [8, 1024, 16384, 65536])
def test_patterns_that_were_not_probed_take_as_long_as_on_the_machine(name, bytes):
    """Half of the messages pass links that no probe used."""
    machine, fitted = fit_machine(name)
    stacked = {key: draws[:1, None] for key, draws in fitted.values.items()}
    model = Model.of(find_family("shares"), Values(stacked, fitted.forms, fitted.settings))
    ranks = np.arange(TORUS.nodes)
    patterns = [build.build_schedule(point("alltoall", "linear", ranks=TORUS.nodes, bytes=bytes))]
    for seed in range(3):
        around = np.random.default_rng(seed).permutation(ranks)
        patterns.append(Schedule.of(TORUS.nodes, 0, around, np.roll(around, 1), bytes))
    for pattern in patterns:
        assert model.cost(pattern)[0] == pytest.approx(machine.cost(pattern)[0], rel=0.06)
