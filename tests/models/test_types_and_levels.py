"""Types of nodes on a network of several levels: families that know no types have values by distance class, of nodes of
the first type, and say where ranks sit on others; those that know types have none, and wider intervals."""

from functools import cache

import numpy as np
import pytest

from commodel.fits.probe_fits import fitted_set
from commodel.models.families import family
from commodel.models.fitting.observed import CaseSamples, Observed
from commodel.models.probes import Site, probe, round_trip
from commodel.predictions.predictions import pricer
from tests.models.test_contract_of_classes import LEVELS, machine, placed, seconds

TYPES = {"fat": 16, "thin": 8}  # a leaf of 4, a group of 12
SITE = Site(24, 4, TYPES, levels=LEVELS)
THIN = 3.0  # times as long as on fat nodes


@cache
def parameters(name):
    probes = {}
    for entry in dict.fromkeys([*family(name).probes, "prtt"]):
        probes[entry] = []
        for about, nodes, apart in placed(entry, SITE):
            slower = THIN if (nodes >= TYPES["fat"]).any() else 1.0
            times = np.full(3, slower * seconds(entry, about, apart))
            probes[entry].append(CaseSamples(about, times, np.ones(3, dtype=int)))
    return fitted_set(family(name), Observed(probes, types=TYPES, levels=LEVELS.settings))


def priced(name, nodes, size=1000):
    trip = round_trip(size, size).placed(np.array(nodes))
    stack = trip.resized(trip.bytes[None, None], trip.work.bytes[None, None])
    return pricer(parameters(name))(stack, 1)


def taken(nodes, size=1000):
    return machine(LEVELS.names[int(LEVELS.distance(*nodes))]).cost(round_trip(size, size))[0]


def test_probes_of_two_ranks_stay_on_nodes_of_the_first_type():
    for entry in ("pingpong", "prtt"):
        seen = {case.where for case in probe(entry).cases("p", SITE, [8])}
        apart = {int(LEVELS.distance(*(where * 2)[:2])) for where in seen if where}
        assert apart == {0, 2, 3}, entry
        assert max(node for where in seen for node in where) < TYPES["fat"]


@pytest.mark.parametrize("name", ["hockney", "loggp", "plogp", "loggops"])
def test_a_family_that_knows_no_types_has_values_by_class(name):
    for nodes in ((7, 7), (0, 1), (0, 5), (2, 14)):
        price = priced(name, nodes)
        assert price.seconds[0] == pytest.approx(taken(nodes), rel=0.03), nodes
        assert price.status == ["ok"]
    assert priced(name, (2, 20)).status == ["blind to placement: ranks on thin nodes are priced as on fat ones"]


def test_one_that_knows_types_has_none_by_class_and_says_so():
    known = parameters("hloggp")
    assert "classes" not in known.settings
    near, middle, far = (priced("hloggp", nodes) for nodes in ((0, 1), (0, 5), (2, 14)))
    assert near.seconds[0] == pytest.approx(taken((0, 1)), rel=0.03)
    assert middle.status == [
        "blind to placement: ranks in different leaf groups are priced as others that are nearer or farther"
    ]
    assert far.status == ["not probed: ranks in different groups"]
    for price, nodes in ((middle, (0, 5)), (far, (2, 14))):
        assert price.low[0] <= taken(nodes) <= price.high[0]
