"""Histograms lose no sample, and modes are found where samples were drawn from two."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.results.latency_distributions import (
    MAX_BINS,
    MIN_BINS,
    count_modes,
    make_histogram,
    tabulate_distributions,
)

times = st.lists(st.floats(1e-7, 1e-2), min_size=1, max_size=300)


@given(times)
def test_every_sample_is_in_exactly_one_bin(samples):
    samples = np.array(samples)
    bins = make_histogram(samples)
    body, tail = (
        [part for part in bins if not part["tail"]],
        [part for part in bins if part["tail"]],
    )
    assert sum(part["count"] for part in bins) == len(samples)
    assert len(body) == 1 or MIN_BINS <= len(body) <= MAX_BINS
    assert body[0]["low"] == samples.min()
    assert (tail or body)[-1]["high"] == samples.max()
    for part in tail:
        assert part["count"] == np.sum(samples > part["low"]) <= max(1, 0.02 * len(samples))
    assert all(part["high"] == pytest.approx(after["low"]) for part, after in pairwise(body))


def test_a_noise_free_simulator_gives_one_bin():
    (only,) = make_histogram(np.full(30, 5e-6) + np.arange(30) * 1e-14)
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


@pytest.mark.parametrize(
    ("kind", "wanted"), [("one", 1), ("skewed", 1), ("two", 2), ("two and outliers", 2)]
)
@pytest.mark.parametrize("count", [60, 230, 1000])
def test_modes_are_counted(kind, wanted, count):
    random = np.random.default_rng(3)
    counted = []
    for _ in range(60):
        counted.append(
            count_modes(
                [
                    part["count"]
                    for part in make_histogram(drawn(random, kind, count))
                    if not part["tail"]
                ]
            )
        )
    assert np.mean(np.array(counted) == wanted) >= 0.95


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
def test_small_peaks_and_shallow_valleys_are_not_separate_modes(counts, wanted):
    assert count_modes(counts) == wanted


def test_only_valid_samples_of_the_ping_pong_count():
    head = {
        "kind": "probe",
        "name": "pingpong",
        "platform": "p",
        "simulated": False,
        "pair": "a.a",
        "bytes": 8.0,
    }
    rows = [head | {"id": "x", "seconds": seconds, "valid": True} for seconds in (2e-6, 4e-6, 6e-6)]
    rows += [head | {"id": "x", "seconds": 9.0, "valid": False}]
    rows += [head | {"id": "y", "name": "prtt", "seconds": 1.0, "valid": True}]
    rows += [head | {"id": "z", "kind": "point", "seconds": 1.0, "valid": True}]
    table = tabulate_distributions(pd.DataFrame(rows))
    assert set(table["id"]) == {"x"}
    assert table["count"].sum() == 3
    assert table["low"].min() == 1e-6  # half the round trip
    assert table["high"].max() == 3e-6
    assert tabulate_distributions(pd.DataFrame(rows[-1:])).empty


def test_samples_of_two_settings_have_separate_histograms():
    head = {
        "kind": "probe",
        "name": "pingpong",
        "platform": "p",
        "simulated": False,
        "pair": "a.a",
        "bytes": 8.0,
    }
    rows = [
        head | {"id": "x", "seconds": seconds * factor, "valid": True, "setting": setting}
        for setting, factor in (("fast", 1), ("slow", 3))
        for seconds in (2e-6, 4e-6, 6e-6)
    ]
    table = tabulate_distributions(pd.DataFrame(rows))
    by_setting = table.groupby("setting")
    assert by_setting["count"].sum().to_dict() == {"fast": 3, "slow": 3}
    assert by_setting["high"].max().to_dict() == pytest.approx({"fast": 3e-6, "slow": 9e-6})
