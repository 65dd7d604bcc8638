"""How far parameters reach: below, within and beyond what was probed."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.models.parameter_sets import set_given
from commodel.parameters import Curve
from commodel.price.predictions import predict
from commodel.price.validity import typical_error
from tests.patterns.catalogue import point

LOGP = set_given("logp", ["L=10us", "o=1us", "g=2us"])
LOGGP = set_given("loggp", ["L=10us", "o_s=1us", "o_r=1us", "g=1us", "G=1ns"])


def priced(size, **more):
    known = replace(LOGGP, bytes_range=(1024.0, 65536.0), left_out={"error": 0.2, "cases": 5}, **more)
    (price,) = predict(known, [point("bcast", "linear", ranks=4, bytes=size)])
    return price


@pytest.mark.parametrize(
    ("size", "doublings", "said"),
    [
        (1024, 0, "ok"),
        (65536, 0, "ok"),
        (131072, 1, "extrapolated: messages of 128 KiB, probed up to 64 KiB"),
        (1 << 20, 4, "extrapolated: messages of 1 MiB, probed up to 64 KiB"),
        (256, 2, "extrapolated: messages of 256 B, probed from 1 KiB"),
        (64, 4, "extrapolated: messages of 64 B, probed from 1 KiB"),
        (0, 4, "extrapolated: messages of 0 B, probed from 1 KiB"),  # short messages count as one size
    ],
)
def test_the_interval_widens_with_every_doubling(size, doublings, said):
    price = priced(size)
    assert price.status == said
    spread = 1.96 * np.log(1.2) * np.sqrt(doublings)
    assert np.log(price.high / price.seconds) == pytest.approx(spread)
    assert np.log(price.seconds / price.low) == pytest.approx(spread)


def test_probes_of_short_messages_reach_down_to_nothing():
    known = replace(LOGGP, bytes_range=(8.0, 65536.0))
    (price,) = predict(known, [point("barrier", "linear", ranks=4, bytes=0)])
    assert price.status == "ok"


def test_more_ranks_than_were_probed_where_a_family_counts_them():
    price = priced(1024, settings={"ranks": 2})
    assert price.status == "extrapolated: 4 ranks, probed up to 2"
    assert price.high > price.seconds


@pytest.mark.parametrize(
    ("fitted", "said"),
    [
        ([2, 4], "ok"),
        ([4, 8], "ok"),
        ([2, 3], "extrapolated: 4 ranks, fitted at 2 to 3"),
        ([8, 64], "extrapolated: 4 ranks, fitted at 8 to 64"),
    ],
)
def test_other_numbers_of_ranks_than_a_set_was_fitted_to(fitted, said):
    """The interval rests on what the fit was off at the most ranks, so its width is not this status's affair."""
    price = priced(1024, settings={"fitted_ranks": fitted})
    assert price.status == said
    assert price.high == priced(1024).high


def test_without_cases_left_out_the_fit_s_own_misfit_counts():
    curve = Curve("t", "x", "y", (1.0, 2.0), (1.0, 1.0), (1.1, 1 / 1.1), "line", 1.0)
    assert typical_error(replace(LOGGP, curves=(curve,))) == pytest.approx(np.log(1.1))
    assert typical_error(LOGGP) == 0


@pytest.mark.parametrize(
    ("doubt", "settings"),
    [
        ("blind to contention", {"crowded": {"nodes": {"times": 3.0, "from": 0.0}}}),
        ("blind to placement", {"uneven": 2.0}),
    ],
)
def test_a_family_blind_to_a_size_says_that_before_any_other_doubt_with_which_it_could_vote(doubt, settings):
    known = replace(LOGP, bytes_range=(1.0, 16.0), settings=settings)
    short, long = (predict(known, [point("alltoall", "linear", ranks=4, bytes=size)])[0].status for size in (16, 1024))
    assert short.startswith(doubt)
    assert long == "blind to size: holds for 1 B to 16 B"
