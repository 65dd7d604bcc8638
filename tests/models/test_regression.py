"""The parts of a regression, where a family's contract would not show what they do."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import chdtri

from commodel.models.fitting.change_points import segments
from commodel.models.fitting.regression import CHANCE, by_chance, sampled, with_misfit


def levelled(draws):
    samples = sampled("o", range(1, draws.shape[1] + 1), draws)
    return np.stack([samples[f"o.{size}"] for size in range(1, draws.shape[1] + 1)], axis=-1)


def pooled(y, weights):
    """Isotonic regression as an obvious loop: two neighbours that fall become one, until none does."""
    blocks = []
    for value, weight in zip(y, weights, strict=True):
        blocks.append((value, weight, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (a, v, i), (b, w, j) = blocks[-2:]
            blocks[-2:] = [((a * v + b * w) / (v + w), v + w, i + j)]
    return [value for value, _, count in blocks for _ in range(count)]


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0.01, 1)), min_size=1, max_size=8), st.integers(0, 99))
def test_samples_are_levelled_as_their_noise_says(samples, seed):
    centre, spread = np.array(samples).T
    noise = np.random.default_rng(seed).standard_normal((50, len(centre)))
    draws = centre + spread * np.concatenate([np.zeros((1, len(centre))), noise])
    levels = levelled(draws)
    for row in (0, 7):
        np.testing.assert_allclose(levels[row], pooled(draws[row], 1 / draws[1:].var(axis=0)), rtol=1e-9, atol=1e-12)


def test_samples_that_rise_stay_as_they_are():
    draws = np.sort(np.random.default_rng(1).standard_normal((20, 6)), axis=-1)
    np.testing.assert_allclose(levelled(draws), draws, rtol=1e-12)


def test_a_spoilt_sample_does_not_pull_down_the_sure_ones():
    rng = np.random.default_rng(1)
    draws = np.array([3.0, 3.0, 1.0]) + np.array([0.01, 0.01, 2.0]) * rng.standard_normal((201, 3))
    draws[0] = 3, 3, 1
    np.testing.assert_allclose(levelled(draws)[0], 3, rtol=1e-3)


def test_only_the_misfit_that_noise_does_not_explain_is_put_on_the_draws():
    """Ten cases off by 1, with a noise of 0.5, and two coefficients: noise explains 10·0.5²·8/10 of a sum of squares
    of 10. The other 0.8 of it is put on as if there were 8 cases."""
    noise = np.random.default_rng(1).standard_normal((4000, 10))
    y = np.vstack([np.zeros(10), 0.5 * noise])
    widened = with_misfit(y, np.ones(10), np.ones(10), 2)
    assert np.all(widened[0] == y[0])
    np.testing.assert_allclose(np.mean((widened - y)[1:] ** 2), 0.8 * 10 / 8, rtol=0.05)


@pytest.mark.parametrize("free", [1, 2, 3, 10, 100, 1000])
def test_a_misfit_isby_chance_up_to_the_quantile_of_chi_squared(free):
    quantile = chdtri(free, CHANCE) / free
    ratios = [*np.geomspace(0.1, 10, 101), quantile * (1 - 1e-9), quantile * (1 + 1e-9)]
    assert [by_chance(ratio * 3.0, 3.0, free) for ratio in ratios] == [ratio < quantile for ratio in ratios]
    assert not by_chance(1.0, 0.0, free)
    assert not by_chance(1e300, 1e-300, free)
    assert by_chance(1e-300, 1.0, free)


@pytest.mark.parametrize("noise", [0.0])
def test_many_pieces_of_a_line_are_found(noise):
    """As of SimGrid's factors by size: each piece begins where it should, or at the next place."""
    places = np.geomspace(1, 1 << 20, 60).round()
    edges = [0, 300, 5_000, 40_000, 300_000, np.inf]
    rng, time = np.random.default_rng(1), np.zeros(len(places))
    for number, (low, high) in enumerate(pairwise(edges)):
        here = (places > low) & (places <= high)
        time[here] = 1e-6 * 2**number + places[here] * 1e-9 / (1 + number % 2)
    time = time * (1 + noise * rng.standard_normal(len(time)))
    ends = [places[piece].max() for piece in segments(places, time[None], 1 / time**2, 8)]
    assert ends[:-1] == [places[places <= edge].max() for edge in edges[1:-1]]
