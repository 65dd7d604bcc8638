"""The interval of the median, compared with its definition and with its coverage on known
distributions."""

from math import comb

import numpy as np
import pytest

from commodel.stats import (
    MIN_NOISE,
    compute_median_interval,
    compute_r_squared,
    count_omitted,
    estimate_noise,
    find_noise_of_interval,
    resample_statistic,
)


def at_most(below, count):
    """Return the exact probability that at most `below` of `count` samples lie below the median."""
    return sum(comb(count, number) for number in range(below + 1)) / 2**count


@pytest.mark.parametrize("count", [*range(1, 60), 100, 999])
def test_the_interval_holds_at_least_95_percent_and_no_narrower_one_does(count):
    below = count_omitted(count)
    inside = 1 - 2 * at_most(below, count)
    if count >= 6:
        assert inside >= 0.95
    narrower = 1 - 2 * at_most(below + 1, count)
    assert narrower < 0.95


def test_coverage_on_a_skewed_distribution():
    rng = np.random.default_rng(3)
    inside = 0
    for _ in range(1000):
        _, low, high = compute_median_interval(rng.exponential(size=25))
        inside += low <= np.log(2) <= high
    assert inside / 1000 >= 0.94


def test_few_samples_give_their_extremes_and_none_gives_nothing():
    assert compute_median_interval(np.array([3.0, 1.0, 2.0])) == (2.0, 1.0, 3.0)
    assert all(np.isnan(compute_median_interval(np.array([]))))


def test_resamples_start_with_the_statistic_itself():
    samples = np.array([1.0, 2.0, 9.0])
    rng = np.random.default_rng(1)
    for name, value in (("median", 2.0), ("mean", 4.0), ("min", 1.0)):
        assert resample_statistic(samples, np.array([1, 1, 2]), name, 10, rng)[0] == value


def test_r_squared():
    measured = np.array([1.0, 2.0, 3.0])
    assert compute_r_squared(measured, measured) == 1.0
    assert compute_r_squared(measured, np.full(3, 2.0)) == 0.0
    assert compute_r_squared(np.ones(3), np.ones(3)) == 1.0


def test_an_interval_holds_the_medians_of_all_passes():
    samples = np.concatenate([np.full(20, 1.0), np.full(20, 3.0)])
    passes = np.repeat([1, 2], 20)
    assert compute_median_interval(samples, passes) == (2.0, 1.0, 3.0)
    assert compute_median_interval(samples[:20], passes[:20]) == (1.0, 1.0, 1.0)


def test_resampling_draws_passes():
    """Passes differ, and samples within a pass do not: a resampled median is the value of one pass,
    or the mean of both."""
    samples, passes = np.repeat([1.0, 3.0], 20), np.repeat([1, 2], 20)
    values = resample_statistic(samples, passes, "median", 200, np.random.default_rng(1))
    assert set(values.tolist()) == {1.0, 2.0, 3.0}


def test_noise_of_a_median_is_estimated_from_its_samples():
    """For log-normal samples, the noise equals the standard deviation of the logarithm of their
    median."""
    logs = np.random.default_rng(1).normal(0, 0.4, (4000, 15))
    assert np.mean([estimate_noise(np.exp(row)) for row in logs]) == pytest.approx(
        np.std(np.median(logs, axis=1)), rel=0.05
    )
    assert estimate_noise([0.06] * 9) == MIN_NOISE
    assert estimate_noise([0.06]) > 5 * MIN_NOISE


def test_the_noise_of_an_interval_is_that_of_its_normal_logarithm():
    low, high = np.array([1.0, 1.0, 0.0, np.nan, 2.0]), np.array([np.exp(3.92), 1.0, 2.0, 3.0, 1.0])
    np.testing.assert_allclose(find_noise_of_interval(low, high), [1.0, 0, 0, 0, 0])
    assert float(find_noise_of_interval(2.0, 2.0 * np.exp(0.392))) == pytest.approx(0.1)
