"""Adaptive sizes of speed measurements: few sizes on a straight line, close sizes at a bend, none
within the noise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel_kernels.speed_sampling import make_rectangle, round_to_rectangle, sample_speeds
from commodel_kernels.speeds import Speed


def cached(size):
    """Return a speed that falls beyond a cache of 2000, towards a tenth of the full speed."""
    return 1e5 * size / (size + 20) * (1 if size < 2000 else 0.1 + 0.9 * 2000 / size)


def machine(curves, noise=0.0, seed=0):
    """Return a function that measures speeds, and the list of its calls."""
    rounds, rng = [], np.random.default_rng(seed)

    def measure(sizes):
        rounds.append(dict(sizes))
        speed = {
            kind: curves[kind](size) * rng.uniform(1 - noise, 1 + noise)
            for kind, size in sizes.items()
        }
        return {
            kind: (value, value * (1 - noise), value * (1 + noise)) for kind, value in speed.items()
        }

    return measure, rounds


def test_a_constant_speed_is_measured_at_both_ends_and_one_size_between():
    measure, rounds = machine({"node/1": lambda size: 5.0})
    rows = sample_speeds(["node/1"], measure, 16, 4096)["node/1"]
    assert rows == tuple((size, 5.0, 5.0, 5.0) for size in (16.0, 256.0, 4096.0))
    assert len(rounds) == 3


def test_a_bend_is_followed_until_the_curve_is_within_the_tolerance():
    measure, _ = machine({"node/1": cached})
    rows = sample_speeds(["node/1"], measure, 16, 65536, tolerance=0.05, max_sizes=40)["node/1"]
    sizes = np.geomspace(16, 65536, 400)
    truth = np.array([cached(size) for size in sizes])
    assert np.abs(Speed.of(rows).at(sizes) / truth - 1).max() < 0.1
    blind = tuple((size, cached(size)) for size in np.linspace(16, 65536, len(rows)))
    assert np.abs(Speed.of(blind).at(sizes) / truth - 1).max() > 0.4  # as many sizes, blindly


def test_fewer_sizes_where_less_is_requested():
    counts = [
        len(sample_speeds(["a"], machine({"a": cached})[0], 16, 65536, within, 60)["a"])
        for within in (0.02, 0.1, 0.5)
    ]
    assert counts[0] > counts[1] > counts[2]


def test_sampling_of_a_kind_continues_only_while_the_speed_curve_bends():
    measure, rounds = machine({"flat": lambda size: 5.0, "bent": cached})
    rows = sample_speeds(["flat", "bent"], measure, 16, 65536)
    assert [set(requested) for requested in rounds[:4]] == [{"flat", "bent"}] * 3 + [{"bent"}]
    assert len(rows["flat"]) == 3 < len(rows["bent"]) == len(rounds)


@given(st.integers(1, 10**9))
def test_a_rectangle_is_almost_a_square_of_almost_that_size(size):
    width, height = make_rectangle(size)
    assert width * height == round_to_rectangle(size) <= size < width * (height + 1)
    assert width <= height <= width + 2


def test_differences_within_the_measurement_noise_add_no_sizes():
    measure, rounds = machine({"node/1": lambda size: 5.0}, noise=0.2)
    sample_speeds(["node/1"], measure, 16, 1 << 20, tolerance=0.01)
    assert len(rounds) == 3


def test_no_more_than_most():
    rng = np.random.default_rng(3)
    measure, rounds = machine({"wild": lambda size: rng.uniform(1, 100)})
    assert (
        len(sample_speeds(["wild"], measure, 1, 1 << 20, tolerance=0.01, max_sizes=7)["wild"])
        == len(rounds)
        == 7
    )


@pytest.mark.parametrize(
    ("smallest", "largest", "count"), [(8, 8, 1), (1, 2, 2), (100, 120, 2), (1, 4, 3)]
)
def test_ranges_that_hold_few_sizes(smallest, largest, count):
    measure, _ = machine({"a": lambda size: 5.0})
    assert len(sample_speeds(["a"], measure, smallest, largest)["a"]) == count


@given(st.integers(1, 1000), st.integers(1, 10**6), st.integers(0, 10**6))
def test_speed_sampling_ends_and_measures_every_size_once(smallest, more, seed):
    rng = np.random.default_rng(seed)
    measure, rounds = machine({"a": lambda size: rng.uniform(1, 100), "b": cached})
    rows = sample_speeds(
        ["a", "b"], measure, smallest, smallest + more, tolerance=0.0, max_sizes=30
    )
    assert all(len({row[0] for row in rows[kind]}) == len(rows[kind]) <= 30 for kind in rows)
    assert len(rounds) <= 30
