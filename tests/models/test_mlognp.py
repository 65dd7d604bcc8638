"""mlognP on platforms that show only one kind of transfer."""

from dataclasses import replace

import pytest

from commodel.fits.probe_fits import as_parameters
from commodel.models.families import family
from commodel.models.probes import Site
from commodel.predictions.predictions import predict
from tests.models.synthetic import observed, truth
from tests.patterns.catalogue import point

MACHINE = truth("mlognp")


def fitted(machine):
    return as_parameters(family("mlognp"), family("mlognp").fit(observed(machine, "mlognp")))


def test_within_one_node_half_a_round_trip_is_two_copies():
    parameters = fitted(replace(MACHINE, site=Site(1, 4)))
    assert parameters.values["o_net.a"].value == 0
    assert not parameters.values["o_net.b"].known
    (price,) = predict(parameters, [point("bcast", "linear", ranks=2, bytes=4096, layout="block:2")])
    half = MACHINE.times["pingpong"]({"bytes": 4096}) / 2
    assert price.seconds == pytest.approx(half)
    assert price.status == "ok"


def test_where_copies_take_no_time_the_network_holds_everything():
    """And nothing says what a message within a node costs, or it would cost nothing."""
    parameters = fitted(replace(MACHINE, times=MACHINE.times | {"memcopy": lambda case: 0.0}))
    half = MACHINE.times["pingpong"]({"bytes": 4096}) / 2
    points = [point("bcast", "binomial", ranks=4, bytes=4096, layout=layout) for layout in ("block:1", "block:2")]
    apart, together = predict(parameters, points, strict=False)
    assert apart.seconds == pytest.approx(2 * half)
    assert apart.status == "ok"
    assert together.status == "not priced: of messages within a node no time is known (o_mem)"
    assert "copies took no time here" in parameters.missing["o_mem"]


def test_where_copies_take_no_time_messages_within_a_node_do():
    """As on a simulated platform: what the network adds to two copies is found all the same."""
    machine = replace(MACHINE, site=Site(4, 2), times=MACHINE.times | {"memcopy": lambda case: 0.0})
    parameters = fitted(machine)
    for name, value in MACHINE.covered.items():
        assert parameters.values[name].value == pytest.approx(value, rel=1e-6), name
    (price,) = predict(parameters, [point("bcast", "linear", ranks=2, bytes=4096, layout="block:2")])
    assert price.seconds == pytest.approx(2 * (0.3e-6 + 4096 * 1e-9))
