"""Hockney on a network of several levels: streams wait for the latency of each message's class, and prices say so."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.hierarchy import Hierarchy
from commodel.models.parameter_sets import set_given
from commodel.predictions.predictions import predict
from tests.patterns.catalogue import point

LEVELS = Hierarchy.written({"leaf": 4}, 24)
NEAR, FAR, PER_BYTE = 5e-6, 20e-6, 1e-9
FLAT = set_given("hockney", [f"alpha={NEAR}s", f"beta={PER_BYTE}s"])
FAR_OFF = {"alpha.beyond.a": replace(FLAT.values["alpha.a"], value=FAR, low=FAR, high=FAR)}
SETTINGS = {"levels": LEVELS.settings, "probed": ["leaf", "beyond"], "classes": ["beyond"]}
BY_CLASS = replace(FLAT, values={**FLAT.values, **FAR_OFF}, settings=SETTINGS)


def priced(parameters, algorithm, ranks, size):
    (price,) = predict(parameters, [point("bcast", algorithm, ranks=ranks, bytes=size)])
    return price


@pytest.mark.parametrize("ranks", [4, 9])
def test_each_message_of_a_port_takes_all_that_its_class_takes(ranks):
    near = min(ranks, 4) - 1
    closed = near * NEAR + (ranks - 1 - near) * FAR + (ranks - 1) * 1000 * PER_BYTE
    assert priced(BY_CLASS, "linear", ranks, 1000).seconds == pytest.approx(closed)


def chain(parts):
    """Of 20 000 bytes each, over five ranks, the last of which is far: what it takes, and what it would without ports
    that wait for latency."""
    hops, last = [NEAR + 20e-6] * 3, FAR + 20e-6
    return sum(hops) + last + (parts - 1) * last, sum(hops) + last + (parts - 1) * 20e-6


@pytest.mark.parametrize("parts", [1, 2, 3, 30])
def test_a_stream_whose_ports_wait_for_latency_says_how_much(parts):
    price = priced(BY_CLASS, "chain:20kB", 5, 20_000 * parts)
    dear, without = chain(parts)
    assert price.seconds == pytest.approx(dear)
    share = 1 - without / dear
    said = f"blind to overlap: up to {share:.0%} of it is ports that wait for α"
    assert price.status == (said if share >= 0.1 else "ok")


def test_messages_that_wait_for_each_other_are_not_doubted():
    assert priced(BY_CLASS, "binomial", 2, 8).status == "ok"


def test_sizes_of_a_stack_are_doubted_each_by_itself():
    points = [point("bcast", "linear", ranks=3, bytes=size) for size in (8, 10_000_000)]
    assert [prices.status.partition(":")[0] for prices in predict(BY_CLASS, points)] == ["blind to overlap", "ok"]


def test_where_no_latency_is_of_a_class_nothing_is_said():
    assert priced(FLAT, "linear", 9, 8).status == "ok"
    assert np.isfinite(priced(FLAT, "linear", 9, 8).seconds)


def test_several_at_a_time_across_a_boundary_stay_the_first_doubt():
    assert priced(BY_CLASS, "linear", 9, 8).status.startswith("blind to contention")
