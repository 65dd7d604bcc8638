"""What messages alone take beside their price, put together for a pattern: closed forms; and what is said of it."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.models.parameter_sets import set_given
from commodel.parameters import Errors
from commodel.patterns import build
from commodel.patterns.repeated import Long
from commodel.patterns.schedule import Schedule, stack
from commodel.price.predictions import predict
from commodel.price.validity import POOR_FIT_FACTOR, single_message_ratios
from tests.patterns.catalogue import point

FAR = {"bytes": [0, 100, 1600], "took": [1.0, 2.0, 8.0], "priced": [1.0, 1.0, 2.0]}
NEAR = {"bytes": [8], "took": [3.0], "priced": [1.0]}
LOGGP = set_given("loggp", ["L=10us", "o_s=1us", "o_r=1us", "g=1us", "G=1ns"])
SEEN = {"ranks": (4.0,), "bytes": (64.0, 1600.0)}
NOTHING = dict.fromkeys(("ranks", "bytes", "operation"), 0.0)
BAND = Errors(-0.1, 0.2, 20, 5, ("bcast",), SEEN, NOTHING, NOTHING, {}, 0.0, ())


def known(**trips):
    return replace(LOGGP, settings={"alone": trips})


def times(parameters, src, dst, *sizes, node=None):
    several = stack([Schedule.of(4, 0, src, dst, np.broadcast_to(size, len(src))) for size in sizes])
    return single_message_ratios(parameters, several.placed(np.arange(4) if node is None else np.array(node)))


def test_each_size_of_a_stack_by_itself_and_between_two_as_on_a_line_of_logarithms():
    assert times(known(beyond=FAR), [0], [1], 0, 100, 400, 1600, 1 << 20) == pytest.approx([1, 2, 4 / 2**0.5, 4, 4])


def test_of_several_messages_what_they_take_in_all_over_what_they_are_priced_at():
    assert times(known(beyond=FAR), [0, 1, 2], [1, 2, 3], [100, 100, 1600]) == pytest.approx((2 + 2 + 8) / (1 + 1 + 2))


def test_near_and_far_messages_by_what_was_probed_there():
    both, only = known(node=NEAR, beyond=FAR), known(beyond=FAR)
    node = [0, 0, 1, 1]
    assert times(both, [0, 0], [1, 2], 100, node=node) == pytest.approx((3 + 2) / (1 + 1))
    assert times(only, [0, 0], [1, 2], 100, node=node) == pytest.approx(2)
    assert times(only, [0], [1], 100, node=node) == times(LOGGP, [0], [1], 100) == [1]


def test_rounds_that_repeat_are_as_if_written_out(monkeypatch):
    asked = point("allreduce", "ring", ranks=8, bytes=800)
    whole = build.schedule(asked)
    monkeypatch.setattr(build, "WRITTEN", 0)
    described = build.schedule(asked)
    assert isinstance(described, Long)
    assert not isinstance(whole, Long)
    of_parts = single_message_ratios(known(beyond=FAR), described)
    assert of_parts == pytest.approx(single_message_ratios(known(beyond=FAR), stack([whole])))


def test_the_interval_is_put_around_what_the_price_becomes_and_a_price_that_misfits_says_so():
    parameters = replace(known(beyond=FAR), errors={"bcast": BAND}, bytes_range=(1.0, 2000.0))
    short, long = predict(parameters, [point("bcast", "binomial", ranks=4, bytes=size) for size in (64, 1600)])
    for price, off in ((short, 2 ** (np.log(64) / np.log(100))), (long, 4.0)):
        assert price.alone == pytest.approx(off)
        assert (price.low, price.high) == pytest.approx(tuple(price.seconds * off * np.exp([-0.1, 0.2])))
    assert long.status == "misfit: even alone its messages take 4.0 times as long as priced"
    assert replace(long, alone=1.0).seconds == predict(LOGGP, [long.point])[0].seconds  # the price stays the family's


def test_what_is_off_by_little_is_no_misfit():
    little = {"bytes": [8], "took": [0.99 * POOR_FIT_FACTOR], "priced": [1.0]}
    (price,) = predict(known(beyond=little), [point("bcast", "binomial", ranks=4, bytes=64)])
    assert (price.status, price.alone) == ("ok", pytest.approx(0.99 * POOR_FIT_FACTOR))
