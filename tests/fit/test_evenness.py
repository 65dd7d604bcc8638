"""Whether a network has levels that nobody named: seen by round trips all over the machine, and said of every price."""

import numpy as np
import pytest

from commodel.fit.evenness import unevenness
from commodel.hierarchy import Hierarchy
from commodel.models.families import family
from commodel.models.fitting.observed import CaseSamples, Observed
from commodel.models.pricing.values import Values
from commodel.models.probes import Site, probe
from commodel.parameters import ParameterSet
from commodel.patterns.schedule import Schedule, stack
from commodel.price.model import Model
from commodel.price.reach import doubts
from commodel.price.status import PriceStatus

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
    assert doubts(model, parameters, far) == [f"blind to placement: {doubt}"]
    assert not PriceStatus.UNNAMED.of(doubts(model, parameters, near)[0])
