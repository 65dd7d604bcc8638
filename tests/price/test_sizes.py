"""How far sizes are from each other, and what that does to intervals beyond those that were measured."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.price.prediction_intervals import fit_bands
from commodel.price.residuals import SPAN, half_size, measure_size_distance, of_empty
from tests.price.offs import ends, known

SIZES = 2.0 ** np.arange(3, 19)


def line(sizes, empty=10e-6, half=1000.0):
    return empty * (1 + np.asarray(sizes) / half)


def off(factor, sizes, half=1000.0, scatter=0.005):
    """Where what an empty message takes is priced wrong by a factor, and bytes are priced right."""
    part = half / (half + np.asarray(sizes))
    return np.log(1 + (factor - 1) * part) + scatter * np.random.default_rng(5).uniform(-1, 1, len(sizes))


@given(st.floats(1e-6, 1e-3), st.floats(1, 1e6))
def test_the_half_size_is_that_of_the_line_that_times_lie_on(empty, half):
    sizes = np.tile(SIZES, 3)
    ranks, slower = np.repeat([4.0, 8.0, 16.0], len(SIZES)), np.repeat([1.0, 2.0, 3.0], len(SIZES))
    part = known(np.zeros(48), ranks=ranks, size=sizes, seconds=slower * line(sizes, empty, half))
    assert half_size(part) == pytest.approx(half, rel=1e-3)


def test_the_half_size_is_the_median_of_what_operations_have():
    names = np.repeat(["bcast", "reduce", "gather"], len(SIZES))
    halves = np.repeat([100.0, 5000.0, 700.0], len(SIZES))
    times = line(np.tile(SIZES, 3), half=halves)
    part = known(np.zeros(48), operation=names, size=np.tile(SIZES, 3), seconds=times)
    assert half_size(part) == pytest.approx(700)


@pytest.mark.parametrize(
    ("sizes", "seconds"),
    [
        (SIZES, None),
        (np.zeros(16), np.ones(16)),
        (np.full(16, 8.0), np.ones(16)),
        (SIZES, np.ones(16)),  # bytes cost nothing
        (SIZES, SIZES / 1e6),  # nor do messages
    ],
)
def test_sizes_that_tell_no_half_are_apart_by_doublings_alone(sizes, seconds):
    half = half_size(known(np.zeros(16), size=sizes, seconds=seconds))
    parts = of_empty(SIZES, half)
    doublings = np.arange(16.0)
    assert half < 0.01 or half > 1e9
    assert measure_size_distance(doublings, parts, parts[0]) == pytest.approx(np.maximum(doublings, 1), abs=0.02)


def test_short_messages_are_nearer_to_each_other_than_to_long_ones():
    parts = of_empty(np.array([8.0, 64.0, 1000.0, 64000.0]), 1000.0)
    assert measure_size_distance(np.array([3.0]), parts[0], parts[1]) == 3
    assert measure_size_distance(np.array([4.0]), parts[1], parts[2]) == pytest.approx(SPAN * (1 / 1.064 - 0.5))
    assert measure_size_distance(np.array([0.1]), parts[2], parts[2]) == 1


@pytest.mark.parametrize("factor", [0.4, 0.7, 1.3, 2.0])
def test_what_is_wrong_with_empty_messages_is_allowed_for_before_it_shows(factor):
    """From times that are all but those of bytes to one of an empty message more is to come than doublings say."""
    sizes = np.tile([1024.0, 4096.0, 16384.0, 65536.0], 12)
    logs = off(factor, sizes, half=60)
    seconds = line(sizes, half=60) * np.exp(logs)
    missed = []
    for known_seconds in (None, seconds):
        low, high, _ = ends(known(logs, size=sizes, seconds=known_seconds), size=8.0)
        missed.append(max(low - np.log(factor), np.log(factor) - high))
    assert missed[1] < missed[0] - 0.1 * abs(np.log(factor))


def test_between_short_messages_little_is_allowed_for():
    """From 128 to 8 bytes as good as nothing changes, whatever was wrong between long ones and short ones."""
    sizes = np.tile([128.0, 1024.0, 8192.0, 65536.0], 12)
    logs = off(1.5, sizes)
    (blind, seen) = (known(logs, size=sizes, seconds=seconds) for seconds in (None, line(sizes) * np.exp(logs)))
    width = [high - low for low, high, _ in (ends(part, size=8.0) for part in (blind, seen))]
    assert width[1] < width[0] / 2
    assert np.log(1.5) - ends(seen, size=8.0)[1] < 0


@given(st.floats(1, 1e5), st.floats(0.05, 20), st.floats(1.01, 1e3), st.floats(1, 1e3))
def test_farther_away_is_never_narrower(half, factor, near, more):
    sizes = np.tile([512.0, 2048.0, 8192.0], 10)
    part = known(off(factor, sizes), size=sizes, seconds=line(sizes, half=half))
    for one, other in ((8192 * near, 8192 * near * more), (512 / near, 512 / near / more)):
        narrow, wide = ends(part, size=one), ends(part, size=other)
        assert wide[0] <= narrow[0] + 1e-12
        assert wide[1] >= narrow[1] - 1e-12


def test_the_worst_of_few_cuts_is_not_left_out():
    """Twelve of 100 points were off by 1 at one of four steps between sizes: that is 3 % of all, but not rare there."""
    sizes = np.repeat(2.0 ** np.arange(3, 8), 100)
    logs = np.where((sizes == 64) & (np.arange(500) % 100 < 12), 1.0, 0.0)
    assert fit_bands(known(logs, size=sizes))["bcast"].beyond["larger"][2] == pytest.approx(np.log(2))
