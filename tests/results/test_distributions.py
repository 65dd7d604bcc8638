"""Histograms lose no sample, and modes are found where samples were drawn from two."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.results.distributions import LEAST, MOST, distributions, histogram, modes

times = st.lists(st.floats(1e-7, 1e-2), min_size=1, max_size=300)


@given(times)
def test_every_sample_is_in_exactly_one_bin(samples):
    samples = np.array(samples)
    bins = histogram(samples)
    body, tail = [one for one in bins if not one["tail"]], [one for one in bins if one["tail"]]
    assert sum(one["count"] for one in bins) == len(samples)
    assert len(body) == 1 or LEAST <= len(body) <= MOST
    assert body[0]["low"] == samples.min()
    assert (tail or body)[-1]["high"] == samples.max()
    for one in tail:
        assert one["count"] == np.sum(samples > one["low"]) <= max(1, 0.02 * len(samples))
    assert all(one["high"] == pytest.approx(after["low"]) for one, after in pairwise(body))


def test_a_noise_free_simulator_gives_one_bin():
    (only,) = histogram(np.full(30, 5e-6) + np.arange(30) * 1e-14)
    assert only["count"] == 30
    assert not only["tail"]


def drawn(random, kind, count):
    near, far = random.normal(1.0, 0.03, count), random.normal(1.3, 0.03, count)
    first = random.random(count) < 0.6
    wild = np.where(np.arange(count) % 99 == 0, 20.0, 1.0)
    return {
        "one": near,
        "skewed": random.lognormal(0, 0.4, count),
        "two": np.where(first, near, far),
        "two and outliers": np.where(first, near, far) * wild,
    }[kind]


@pytest.mark.parametrize(("kind", "wanted"), [("one", 1), ("skewed", 1), ("two", 2), ("two and outliers", 2)])
@pytest.mark.parametrize("count", [60, 230, 1000])
def test_modes_are_counted(kind, wanted, count):
    random = np.random.default_rng(3)
    found = []
    for _ in range(60):
        found.append(modes([one["count"] for one in histogram(drawn(random, kind, count)) if not one["tail"]]))
    assert np.mean(np.array(found) == wanted) >= 0.95


@pytest.mark.parametrize(
    ("counts", "wanted"),
    [
        ([40, 60, 40], 1),
        ([60, 5, 60], 2),
        ([60, 40, 60], 1),  # the valley is above half
        ([6, 2, 6], 1),  # counting noise
        ([100, 0, 8], 1),  # less than a tenth
        ([50, 0, 50, 0, 50], 3),
        ([0, 0, 30, 0, 0], 1),
    ],
)
def test_what_counts_as_a_mode(counts, wanted):
    assert modes(counts) == wanted


def test_only_valid_samples_of_the_ping_pong_count():
    head = {"kind": "probe", "name": "pingpong", "platform": "p", "simulated": False, "pair": "a.a", "bytes": 8.0}
    rows = [head | {"id": "x", "seconds": seconds, "valid": True} for seconds in (2e-6, 4e-6, 6e-6)]
    rows += [head | {"id": "x", "seconds": 9.0, "valid": False}]
    rows += [head | {"id": "y", "name": "prtt", "seconds": 1.0, "valid": True}]
    rows += [head | {"id": "z", "kind": "point", "seconds": 1.0, "valid": True}]
    found = distributions(pd.DataFrame(rows))
    assert set(found["id"]) == {"x"}
    assert found["count"].sum() == 3
    assert found["low"].min() == 1e-6  # half the round trip
    assert found["high"].max() == 3e-6
    assert distributions(pd.DataFrame(rows[-1:])).empty
