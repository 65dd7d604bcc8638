"""The time between waves of a stream: closed forms, and the slow replay of the repeated schedule."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.models.families import complete, family, family_names
from commodel.patterns.build import schedule
from commodel.price.model import Model
from commodel.price.predictions import Stream, predict, repeated, says
from tests.models.exact import numbers as exactly
from tests.models.synthetic import fitted_set
from tests.patterns.catalogue import point


def between(name, pattern, forms=None, waves=inf, **numbers):
    values = exactly(numbers, forms)
    model = Model.of(family(name), values)
    return float(np.ravel(Stream(pattern).period(model.entry, lambda cost, stream: cost(model, stream), waves))[0])


def reduce(topology):
    return schedule(point("reduce", topology=topology, bytes=1))


@pytest.mark.parametrize("leaves", [1, 4, 16])
@pytest.mark.parametrize(("o", "g"), [(2.0, 1.0), (2.0, 5.0)])
def test_a_front_end_that_takes_all_itself(leaves, o, g):
    """One message of each leaf, each max(g, o) after the last."""
    assert between("loggp", reduce(f"flat:{leaves}"), L=10, o_s=o, o_r=o, g=g, G=0) == pytest.approx(leaves * max(g, o))


@pytest.mark.parametrize("height", [2, 7])
def test_a_chain_is_as_fast_as_one_of_its_nodes(height):
    """A node takes a message and sends one, however many there are above it."""
    period = between("loggp", reduce(f"chain:{height}"), L=10, o_s=2, o_r=3, g=1, G=0)
    assert period == pytest.approx(2 + 3)


@pytest.mark.parametrize(("topology", "busiest"), [("balanced:4x8", 8), ("balanced:8x4", 8), ("kary:2^5", 2)])
def test_the_busiest_node_sets_the_pace(topology, busiest):
    """It takes a message of each child; the root sends none, the others one."""
    period = between("loggp", reduce(topology), L=10, o_s=2, o_r=3, g=1, G=0)
    root = int(topology.partition(":")[2][0])
    assert period == pytest.approx(max(3 * root, 3 * busiest + 2 * (busiest > root or topology.startswith("kary"))))


def test_tan_has_an_equation_of_its_own():
    """L + max o(x + 1) + g."""
    period = between("tan", reduce("balanced:4x8"), {"o": "linear"}, L=10, **{"o.a": 1, "o.b": 0.5}, g=2)
    assert period == pytest.approx(10 + 1 + 0.5 * 9 + 2)


def test_families_that_add_up_steps_say_nothing():
    with pytest.raises(UserError, match="bsp adds up steps for all ranks at once: it says nothing about waves"):
        between("bsp", reduce("flat:4"), g=2, **{"l.a": 10})
    assert not says(family("bsp"))
    assert says(family("tan"))


def test_independent_families_are_those_that_replay():
    replaying = {
        "cluster",
        "hloggp",
        "hockney",
        "lmo",
        "loggops",
        "loggp",
        "loggph",
        "logp",
        "mlognp",
        "plogp",
        "postal",
        "shares",
    }
    assert {name for name in family_names() if family(name).independent} == replaying


@pytest.mark.parametrize(("operation", "choice"), [("allreduce", "ring"), ("bcast", "chain:24"), ("alltoall", "bruck")])
def test_a_stream_costs_no_more_than_waves_one_by_one_and_no_less_than_its_last(operation, choice):
    pattern = schedule(point(operation, choice, ranks=7, bytes=100))
    machine = {"L": 9.0, "o_s": 2.0, "o_r": 1.0, "g": 3.0, "G": 0.1}
    values = complete(family("loggp"), exactly(machine))
    one, five = (p.cost(family("loggp").price(p, values))[0] for p in (pattern, repeated(pattern, 5)))
    assert one < five <= 5 * (one + 3.0 + 0.1 * 100)
    assert repeated(pattern, 5).work.bytes.sum() == 5 * pattern.work.bytes.sum()
    np.testing.assert_array_equal(repeated(pattern, 1).step, pattern.step)


@pytest.mark.parametrize("waves", [2, 5, 16, 50, 200])
@pytest.mark.parametrize(
    ("operation", "choice"),
    [
        ("allreduce", "ring"),
        ("bcast", "binomial"),
        ("bcast", "chain:24"),
        ("gather", "linear"),
        ("barrier", "dissemination"),
    ],
)
def test_a_period_is_what_playing_all_waves_gives(operation, choice, waves):
    """Of few waves they are played; of many the rest is taken to go on as the last of them did."""
    size = 0 if operation == "barrier" else 100
    pattern = schedule(point(operation, choice, ranks=9, bytes=size))
    machine = {"L": 9.0, "o_s": 2.0, "o_r": 1.0, "g": 3.0, "G": 0.1}
    values = complete(family("loggp"), exactly(machine))
    first, last = (p.cost(family("loggp").price(p, values))[0] for p in (pattern, repeated(pattern, waves)))
    period = between("loggp", pattern, waves=waves, **machine)
    assert period == pytest.approx((last - first) / (waves - 1), rel=1e-9 if waves <= 16 else 0.01)


def test_a_period_of_endless_waves_is_where_those_of_many_end():
    pattern = schedule(point("allreduce", "ring", ranks=9, bytes=100))
    machine = {"L": 9.0, "o_s": 2.0, "o_r": 1.0, "g": 3.0, "G": 0.1}
    assert between("loggp", pattern, waves=10**9, **machine) == pytest.approx(between("loggp", pattern, **machine))


def test_prices_of_a_stack_of_sizes_with_draws_are_those_of_each_size():
    parameters = fitted_set("loggp", noise=0.03)
    points = [
        replace(point("bcast", "chain:64", ranks=6, bytes=size), waves=waves)
        for waves in (1, 2, 50)
        for size in (8, 60, 900)
    ]
    together = predict(parameters, points)
    alone = [predict(parameters, [point])[0] for point in points]
    assert [row.point for row in together] == points
    for stacked, single in zip(together, alone, strict=True):
        times = [(row.seconds, row.low, row.high) for row in (stacked, single)]
        assert times[0] == pytest.approx(times[1], rel=1e-12)
        assert stacked.low < stacked.seconds < stacked.high
    assert together[0].seconds != together[3].seconds


def test_of_a_plan_a_family_that_says_nothing_has_a_reason_and_prices_the_rest():
    parameters = fitted_set("bsp", noise=0.0)
    wave = point("bcast", "binomial", ranks=4)
    priced, not_priced = predict(parameters, [wave, replace(wave, waves=5)], strict=False)
    assert priced.seconds > 0
    assert not_priced.status == (
        "not priced: family bsp adds up steps for all ranks at once: it says nothing about waves"
    )
    assert np.isnan(not_priced.seconds)


def test_every_family_prices_a_stream_or_says_why_not():
    stream = replace(point("bcast", "binomial", ranks=4), waves=5)
    for name in family_names():
        (price,) = predict(fitted_set(name, noise=0.0), [stream], strict=False)
        assert np.isfinite(price.seconds) if says(family(name)) else price.status.startswith("not priced"), name
