"""Whether a network has levels that nobody named: seen by round trips all over the machine, and said of every price."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.fit.probe_fits import fitted_set
from commodel.fit.validity_checks import find_unequal_classes, find_unequal_types, unevenness
from commodel.hierarchy import Hierarchy
from commodel.models.families import family
from commodel.models.fitting.observed import CaseSamples, Fitted, Observed
from commodel.models.parameter_sets import set_given
from commodel.models.pricing.values import Values
from commodel.models.probes import Site, probe
from commodel.parameters import ParameterSet
from commodel.patterns.schedule import Schedule, stack
from commodel.price.model import Model
from commodel.price.predictions import predict
from commodel.price.validity import PriceStatus, assess_validity
from tests.patterns.catalogue import point

RNG = np.random.default_rng(5)


def seen(nodes, seconds, noise=0.0):
    """By the probe's own cases, each round trip as long as `seconds` says of its two nodes."""
    cases = [
        CaseSamples(dict(case), seconds(case["one"], case["two"]) * np.exp(noise * RNG.normal(size=20)), np.zeros(20))
        for _, case in probe("evenness").plan(Site(nodes, 1, levels=Hierarchy.of({})), [65536])
    ]
    return Observed({"evenness": cases}, 1)


@pytest.mark.parametrize("nodes", [4, 7, 32, 100])
@pytest.mark.parametrize("group", [2, 3, 5, 16, 50])
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_groups_of_any_size_are_seen(nodes, group, noise):
    def seconds(one, two):
        return 1e-5 if one // group == two // group else 1.5e-5

    times = unevenness(seen(nodes, seconds, noise))
    if group <= nodes // 2:
        assert times == pytest.approx(1.5, rel=0.1)


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("slow", [None, 5, 16])
def test_neither_noise_nor_a_slow_node_is_a_distance(noise, slow):
    evidence = seen(32, lambda one, two: 3e-5 if slow in (one, two) else 1e-5, noise)
    assert unevenness(evidence) == 1


def test_named_levels_and_few_nodes_are_not_looked_at():
    assert not [*probe("evenness").plan(Site(64, 1, levels=Hierarchy.written({"leaf": 16}, 64)), [8])]
    assert not [*probe("evenness").plan(Site(3, 1, levels=Hierarchy.of({})), [8])]


def test_a_price_between_nodes_says_so_and_one_within_a_node_does_not():
    entry = family("hockney")
    values = Values({"alpha.a": np.array([[1e-5]]), "beta.a": np.array([[1e-9]])}, {"alpha": "constant"})
    parameters = ParameterSet("hockney", "p", "", {}, settings={"uneven": 2.14}, bytes_range=(0.0, 1e6))
    far, near = (stack([Schedule.of(2, 0, 0, 1, 8).placed(np.array(nodes))]) for nodes in ([0, 1], [0, 0]))
    model = Model(entry, values)
    doubt = "nodes are up to 2.1 times as far from each other as those probed, and the platform's file names no levels"
    assert [check.text for check in assess_validity(model, parameters, far)] == [f"blind to placement: {doubt}"]
    assert assess_validity(model, parameters, near)[0].kind is not PriceStatus.UNNAMED


def pairs(nodes, seconds, levels=None, types=None):
    """By probe `nodepairs`."""
    known = Hierarchy.written(levels, nodes) if levels else Hierarchy.of({})
    cases = [
        CaseSamples(dict(case), np.full(5, seconds(case["one"], case["two"])), np.zeros(5))
        for _, case in probe("nodepairs").plan(Site(nodes, 1, levels=known), [65536])
    ]
    return Observed({"nodepairs": cases}, 1, types or {}, levels=known.settings)


def test_classes_whose_pairs_are_not_alike_are_known_by_what_they_differ():
    def seconds(one, two):  # behind the first switch of two are chassis that nobody named
        return 3e-5 if one // 16 != two // 16 else 2e-5 if one // 4 != two // 4 and one < 16 else 1e-5

    evidence = pairs(32, seconds, {"leaf": 16})
    assert find_unequal_classes(family("shares"), evidence) == {"leaf": 2.0}
    assert find_unequal_classes(
        family("shares"), pairs(32, lambda one, two: 3e-5 if one // 16 != two // 16 else 1e-5)
    ) == {"beyond": 3.0}
    assert not find_unequal_classes(family("shares"), pairs(32, lambda one, two: 1e-5))
    assert not find_unequal_classes(
        family("shares"), pairs(32, lambda one, two: 3e-5 if 5 in (one, two) else 1e-5)
    )  # a slow node


def test_types_of_nodes_count_for_families_that_do_not_know_them():
    def seconds(one, two):
        return 1e-5 if max(one, two) < 10 else 2e-5

    evidence = pairs(32, seconds, {"leaf": 16}, {"fat": 10, "thin": 22})
    assert find_unequal_classes(family("shares"), evidence) == {"leaf": 2.0}
    assert not find_unequal_classes(family("hloggp"), evidence)
    assert not find_unequal_classes(
        family("loggp"), evidence
    )  # is fitted to nodes of the first type, and says where others are


@pytest.mark.parametrize("name", ["shares", "hockney"])
def test_a_price_between_such_nodes_says_so(name):
    values = {
        "hockney": ["alpha=10us", "beta=1ns"],
        "shares": [
            "o_s=0",
            "o_r=0",
            *(
                f"{what}.{of}={value}"
                for of in ("node", "leaf", "beyond")
                for what, value in (("L", "1us"), ("G", "1ns"))
            ),
        ],
    }
    levels = {"leaf": [0] * 4 + [1] * 4}
    settings = {"levels": levels, "probed": ["node", "leaf", "beyond"], "unlike": {"leaf": 2.0}}
    known = set_given(name, values[name])
    known = replace(
        known,
        settings={
            **known.settings,
            **settings,
            **({} if name == "shares" else {"classes": ["node", "leaf", "beyond"]}),
        },
    )
    of = {}
    for layout in ("block:2", "nodes:0,1", "nodes:0,4"):
        (price,) = predict(known, [point("bcast", "linear", ranks=2, bytes=8, layout=layout)])
        of[layout] = price.status
    words = "pairs of different nodes are up to 2.0 times as far from each other as others, and priced alike"
    assert of == {"block:2": "ok", "nodes:0,1": f"blind to placement: {words}", "nodes:0,4": "ok"}


TYPES = {"fat": 6, "thin": 10}


def typed(types, seconds):
    """By probe `evenness`, each round trip as long as `seconds` says of the numbers of its nodes."""
    cases = [
        CaseSamples(dict(case), np.full(5, seconds(case["one"], case["two"])), np.zeros(5))
        for _, case in probe("evenness").plan(Site(sum(types.values()), 4, types), [65536])
    ]
    return Observed({"evenness": cases}, 1, types)


def test_types_whose_round_trips_differ_are_known_by_how_much():
    def slower(one, two):
        return 1e-5 * (1 + (one >= 6) + (two >= 6))

    evidence = typed(TYPES, slower)
    assert find_unequal_types(evidence) == {"fat.thin": 2.0, "thin.thin": 3.0}
    assert unevenness(evidence) == 1  # among nodes of the first type
    assert not find_unequal_types(typed(TYPES, lambda one, two: 1e-5))
    faster = typed({"one": 1, "others": 7}, lambda one, two: 1e-5 if one == 0 else 0.5e-5)
    assert find_unequal_types(faster) == {"others.others": 2.0}  # the first two nodes are of both types


def test_fits_keep_what_is_unlike_but_those_that_know_types():
    evidence = typed(TYPES, lambda one, two: 1e-5 * (1 + (one >= 6) + (two >= 6)))
    for name, kept in (("hockney", True), ("hloggp", False)):
        entry = replace(family(name), probes=(), fit=lambda observed: Fitted({}, (0.0, 1.0)))
        assert ("unlike_types" in fitted_set(entry, evidence).settings) is kept


@pytest.mark.parametrize(
    ("name", "values", "doubted"),
    [
        ("hockney", ["alpha=10us", "beta=1ns"], {"nodes:0,6", "nodes:7,8", "nodes:0,20"}),
        ("pmnf", ["c0=1us"], {"nodes:0,1", "nodes:0,6", "nodes:7,8", "nodes:0,20"}),  # probed on nodes of all types
        ("hloggp", ["L=1us", "o_s=0", "o_r=0", "g=0", "G=1ns"], set()),  # knows types
    ],
)
def test_prices_between_nodes_of_unlike_types_say_so(name, values, doubted):
    known = set_given(name, values)
    settings = {"types": TYPES, "unlike_types": {"fat.thin": 2.0, "thin.thin": 3.0}}
    known = replace(known, settings={**known.settings, **settings})
    of_types = set()
    for layout in ("block:2", "nodes:0,1", "nodes:0,6", "nodes:7,8", "nodes:0,20")[: 4 if name == "hloggp" else 5]:
        (price,) = predict(known, [point("bcast", "linear", ranks=2, bytes=8, layout=layout)])
        of_types |= (
            {layout} if price.status.startswith("blind to placement: nodes of several types are priced") else set()
        )
    assert of_types == doubted
    without = replace(known, settings={name: value for name, value in known.settings.items() if name != "types"})
    assert predict(without, [point("bcast", "linear", ranks=2, bytes=8)])[0].status == "ok"


@pytest.mark.parametrize(
    ("layout", "probed", "doubt"), [("block:1", "beyond", "same node"), ("block:2", "node", "different nodes")]
)
def test_without_levels_too_messages_within_a_node_and_between_nodes_are_told_apart(layout, probed, doubt):
    about = {"layout": layout, "ranks": 2, "where": "", "bytes": 8, "pair": "node.node"}
    evidence = Observed({"pingpong": [CaseSamples(about, np.full(5, 1e-5), np.zeros(5))]}, 1)
    entry = replace(family("hockney"), probes=("pingpong",), fit=lambda observed: Fitted({}, (0.0, 1e6)))
    settings = fitted_set(entry, evidence).settings
    assert settings["probed"] == [probed]
    known = replace(set_given("hockney", ["alpha=10us", "beta=1ns"]), settings=settings)
    jobs = [point("bcast", "linear", ranks=2, bytes=8, layout=where) for where in (layout, "block:2", "block:1")]
    statuses = {price.point.layout: price.status for price in predict(known, jobs)}
    assert statuses.pop(layout) == "ok"
    assert list(statuses.values()) == [f"not probed: ranks in {doubt}"]
