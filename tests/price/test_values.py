"""Values as stacks of draws: what is taken of them, and what all draws share."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.models.parameter_sets import set_given
from commodel.models.pricing.values import Values
from commodel.price.predictions import predict
from tests.patterns.catalogue import point


def test_some_draws_of_values_that_share_one():
    values = Values({"L": np.arange(6.0)[:, None], "gamma": np.array([[0.5]])}).some(2, 4)
    assert values["L"].ravel().tolist() == [2, 3]
    assert values["gamma"].ravel().tolist() == [0.5]


def test_a_long_pattern_without_a_value_for_work_is_priced_in_blocks_of_draws():
    """A set whose points combine nothing has no gamma; its default is one row beside all draws."""
    known = set_given("loggp", ["L=10us", "o_s=1us", "o_r=1us", "g=2us", "G=1ns"])
    draws = {name: tuple(value.value * (1 + 0.001 * n) for n in range(401)) for name, value in known.values.items()}
    long = point("allgather", "ring", ranks=64, bytes=1024)
    (price,) = predict(replace(known, draws=draws), [long])
    assert price.low == price.seconds  # an interval holds its price, and these draws all cost more
    assert price.high == pytest.approx(price.seconds * 1.39, rel=1e-6)
