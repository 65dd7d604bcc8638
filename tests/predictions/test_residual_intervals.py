"""Residual intervals: weighted quantiles, coverage over many campaigns, and distances between sizes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.predictions.prediction_intervals import (
    MAX_FOLDS,
    MIN_ALLOCATIONS,
    cross_validate,
    find_residual_interval,
    fit_residual_interval,
    fit_residual_intervals,
)
from commodel.predictions.residuals import (
    LATENCY_SHARE_DOUBLINGS,
    MIN_GROUPS_OF_CLASS,
    compute_latency_share,
    estimate_half_size,
    measure_size_distance,
)
from tests.predictions.residuals import find_ends, make_residuals, make_workload

CAMPAIGNS = 100


def compute_quantiles(groups: list[list[float]]) -> tuple[float, float]:
    """Return the weighted 2.5 % and 97.5 % quantiles; each group has weight 1, shared by its points."""
    points = sorted((value, 1 / len(values) / len(groups)) for values in groups for value in values)
    cumulative = np.cumsum([weight for _, weight in points])
    low = next(value for (value, _), share in zip(points, cumulative, strict=True) if share > 0.025 - 1e-9)
    return low, next(value for (value, _), share in zip(points, cumulative, strict=True) if share >= 0.975 - 1e-9)


@pytest.mark.parametrize("count", [MIN_GROUPS_OF_CLASS, 13, MAX_FOLDS])
@pytest.mark.parametrize("points_per_group", [1, 3])
def test_the_interval_is_the_narrowest_that_covers_95_of_100_left_out_groups(count, points_per_group):
    groups = np.random.default_rng(count).normal(size=(count, points_per_group)).tolist()
    excess = []
    for left_out, values_left_out in enumerate(groups):
        low, high = compute_quantiles([values for number, values in enumerate(groups) if number != left_out])
        excess += [max(low - value, value - high, 0) for value in values_left_out]
    widening = sorted(excess)[int(np.ceil(0.95 * len(excess) - 1e-9)) - 1]
    low, high, _ = find_ends(make_residuals(np.ravel(groups), np.repeat(np.arange(count), points_per_group)))
    first, last = compute_quantiles(groups)
    assert (low, high) == pytest.approx((first - widening, last + widening))


@pytest.mark.parametrize("count", [79, 200])
def test_with_many_groups_the_interval_ends_near_their_quantiles(count):
    low, high, _ = find_ends(make_residuals(np.random.default_rng(1).permutation(count)))
    assert -0.03 * count <= low <= 0.025 * count
    assert 0.975 * count - 1 <= high <= 1.03 * count


def test_the_interval_of_few_groups_covers_all_and_is_widened_by_the_largest_excess():
    """Left out, 0 and 10 exceed the others' range by 1 and 2. With ten groups, the 95 % quantile is the maximum, 2: it
    widens both ends."""
    low, high, _ = find_ends(make_residuals([0, 1, 2, 3, 4, 5, 6, 7, 8, 10]))
    assert (low, high) == (-2, 12)


def test_the_weight_of_a_group_does_not_depend_on_the_number_of_points():
    groups = np.r_[np.arange(100), np.full(400, 100)]
    low, high, _ = find_ends(make_residuals(np.r_[np.linspace(-1, 1, 100), np.full(400, 50.0)], groups))
    assert high <= 1.0
    assert low >= -1.0


@pytest.mark.parametrize("count", [MIN_GROUPS_OF_CLASS, 20, 60])
@pytest.mark.parametrize(
    ("distribution", "spread_in_group"),
    [("normal", 0.3), ("lognormal", 3.0)]
    + [pytest.param(*slow, marks=pytest.mark.slow) for slow in (("normal", 3.0), ("lognormal", 0.3))],
)
def test_a_new_group_is_covered_with_the_nominal_probability(count, distribution, spread_in_group):
    """The residuals of a group have a common part, which may be skewed, and a part of each point. Over many campaigns,
    coverage is neither below nor, by intervals that are too wide, above the nominal one."""
    rng = np.random.default_rng(count)
    shares = []
    for _ in range(CAMPAIGNS):
        common = getattr(rng, distribution)(size=count + 40)
        logs = common[:, None] + spread_in_group * rng.normal(size=(count + 40, 3))
        fitted, new = logs[:count], logs[count:]
        low, high, _ = find_ends(make_residuals(fitted.ravel(), np.repeat(np.arange(count), 3)))
        shares.append(np.mean((low <= new) & (new <= high)))
    assert 0.92 <= np.mean(shares) <= 0.965


@pytest.mark.parametrize("settings", [3, 5, 10])
def test_the_interval_covers_a_new_setting_if_earlier_ones_are_distinguished(settings):
    """The common error of a setting is as large as that of its groups. With the settings given, the interval covers
    more of the next setting, and its basis has their number, as `at least` if it is small. Without them, the basis has
    one allocation."""
    rng, coverage = np.random.default_rng(settings), {True: [], False: []}
    for _ in range(CAMPAIGNS):
        logs = (rng.normal(size=settings + 1)[:, None] + rng.normal(size=(settings + 1, 40))) / 10
        residuals = make_residuals(logs[:settings].ravel())
        setting = np.repeat(np.arange(settings), 40).astype(str)
        residuals_with_settings = replace(residuals, setting=setting, allocation=setting)
        basis = {}
        for has_settings in (True, False):
            low, high, basis[has_settings] = find_ends(residuals_with_settings if has_settings else residuals)
            coverage[has_settings].append(np.mean((low <= logs[settings]) & (logs[settings] <= high)))
        assert basis[False].startswith("at least: 1 allocation,")
        assert basis[True].startswith("at least: " * (settings < MIN_ALLOCATIONS) + f"{settings} allocations")
    assert np.mean(coverage[True]) > np.mean(coverage[False])
    assert np.mean(coverage[True]) > 0.93


LOGS = st.lists(st.floats(-3, 3), min_size=4, max_size=40)


@given(LOGS, st.integers(1, 20), st.integers(1, 12))
def test_intervals_never_narrow_with_the_distance_from_measured_points(logs, doublings, further_doublings):
    sizes = 8.0 * 4.0 ** (np.arange(len(logs)) % 4)
    residuals = make_residuals(logs, size=sizes)
    measured, near, far = (
        find_ends(residuals, size=size)
        for size in (8.0, sizes.max() * 2.0**doublings, sizes.max() * 2.0 ** (doublings + further_doublings))
    )
    assert far[0] <= near[0] <= near[1] <= far[1]
    assert measured[0] <= measured[1]
    assert "beyond" in near[2]
    assert "beyond" not in measured[2]


@given(LOGS, st.floats(-9, 9))
def test_the_cross_validated_interval_of_a_group_excludes_residuals_of_the_group(logs, other):
    groups = np.arange(len(logs)) // 2
    residuals = make_residuals(logs, groups)
    changed = replace(residuals, logs=np.where(groups == 0, other, residuals.logs))
    before, after = cross_validate(residuals), cross_validate(changed)
    for end in ("low", "high"):
        np.testing.assert_array_equal(*(getattr(interval, end)[groups == 0] for interval in (before, after)))


def test_a_trend_over_sizes_is_extrapolated():
    """If the residual grows by 0.1 with every doubling, it also does so beyond the largest size."""
    power = np.tile(np.arange(12), 8)
    residuals = make_residuals(0.1 * power, np.arange(96), size=2.0**power)
    _, high, _ = find_ends(residuals, size=2.0**17)
    assert 1.6 <= high <= 3.0


def test_an_operation_with_few_groups_has_the_widened_interval_of_the_operation_kind():
    rng = np.random.default_rng(0)
    names = np.repeat(["reduce", "gather", "bcast"], [30, 5, 30])
    logs = rng.uniform(-0.1, 0.1, 65) + np.where(names == "bcast", 2.0, np.where(names == "gather", 0.5, 0.0))
    intervals = fit_residual_intervals(make_residuals(logs, operation=names))
    assert {"reduce", "all to one", "bcast", "one to all", "all"} >= set(intervals) > {"reduce", "all to one", "all"}
    assert "gather" not in intervals
    scatter = find_residual_interval(intervals, make_workload("scatter"))
    barrier = find_residual_interval(intervals, make_workload("barrier"))
    assert "workloads of one to all" in scatter.bases[0].text
    assert scatter.low[0] > 1
    assert "workloads of all" in barrier.bases[0].text
    assert barrier.high[0] - barrier.low[0] > 2


def test_less_than_a_doubling_beyond_counts_as_one():
    """Sizes 10 % apart have random residuals. The growth per doubling must not be extrapolated from a tenth of a
    doubling."""
    logs = np.tile(np.random.default_rng(3).normal(0, 0.1, 8), 9)
    intervals = fit_residual_intervals(make_residuals(logs, np.arange(72), size=np.tile(1000 * 1.1 ** np.arange(8), 9)))
    assert intervals["bcast"].growth["bytes"] < 0.3


def test_an_operation_of_one_size_does_not_widen_other_sizes():
    """A barrier has no message size: its residual informs only the widening for operations."""
    names = np.repeat(["reduce", "barrier"], [40, 10])
    sizes = np.where(names == "barrier", 0, 8.0 * 4.0 ** (np.arange(50) % 4))
    logs = np.where(names == "barrier", 3.0, np.linspace(-0.1, 0.1, 50))
    interval = fit_residual_intervals(make_residuals(logs, operation=names, size=sizes))["all"]
    assert interval.widening["operation"] > 2.5
    assert interval.widening["bytes"] < 0.2
    assert interval.growth["bytes"] < 0.2


def test_a_single_rank_count_of_a_placement_does_not_widen_other_ranks():
    ranks = np.tile([4.0, 8.0, 16.0], 20)
    logs = np.where(ranks == 16, 3.0, np.linspace(-0.1, 0.1, 60))
    intervals = fit_residual_intervals(make_residuals(logs, ranks=ranks, nodes=np.where(ranks == 16, 2.0, 1.0)))
    assert intervals["bcast"].widening["ranks"] < 0.2
    assert intervals["bcast"].growth["ranks"] < 0.2


@pytest.mark.parametrize("sign", [1, -1])
def test_residuals_far_from_an_end_do_not_widen_the_extrapolation_there(sign):
    """Residuals: up to ±1 at short sizes, ±0.01 at long ones; and mirrored. Extrapolation past the accurate end stays
    narrow."""
    rng, power = np.random.default_rng(7), np.tile(np.arange(0.0, 12, 2), 12)
    is_accurate = power * sign >= 4 * sign
    logs = rng.uniform(-1, 1, 72) * np.where(is_accurate, 0.01, 1.0)
    residuals = make_residuals(logs, size=2.0 ** (power + 6))
    extrapolated_size, opposite_end = (2.0**18, 2.0**5) if sign > 0 else (2.0**4, 2.0**18)
    measured_size = 2.0**9
    low, high, basis = find_ends(residuals, size=extrapolated_size)
    assert high - low < 1
    assert "beyond" in basis
    for size in (opposite_end, measured_size):
        low, high, _ = find_ends(residuals, size=size)
        assert high - low > 1.9


@pytest.mark.parametrize("drift", [0.0, 0.02, 0.1])
def test_the_next_size_is_covered_with_the_nominal_probability(drift):
    """Residuals are independent, or a random walk over doublings (σ = `drift` per √doubling)."""
    rng, shares = np.random.default_rng(1), []
    power = np.arange(0, 16, 2.0)
    for _ in range(CAMPAIGNS // 3):
        walk = np.cumsum(rng.normal(0, drift, 8) * np.sqrt(2)) if drift else np.zeros(8)
        logs = walk[:, None] + rng.normal(0, 0.05, (8, 12))
        is_measured = power < 14
        measured_sizes = np.repeat(2.0 ** (power[is_measured] + 3), 12)
        residuals = make_residuals(logs[is_measured].ravel(), np.arange(84), size=measured_sizes)
        low, high, _ = find_ends(residuals, size=2.0**17)
        shares.append(np.mean((low <= logs[7]) & (logs[7] <= high)))
    assert np.mean(shares) >= 0.9


def test_interpolated_sizes_are_widened_by_errors_of_inner_sizes_only():
    sizes = np.tile([8.0, 64.0, 512.0, 4096.0], 30)
    logs = np.random.default_rng(2).normal(0, 0.02, len(sizes)) + (sizes == 8) + 2 * (sizes == 4096)
    interval = fit_residual_interval(make_residuals(logs, size=sizes))
    assert interval.widening["bytes"] < 0.1
    is_smaller = sizes < 500  # two sizes, none of which is an inner one
    two_sizes = make_residuals(logs[is_smaller], size=sizes[is_smaller])
    assert fit_residual_interval(two_sizes).widening["bytes"] > 0.8


SIZES = 2.0 ** np.arange(3, 19)


def compute_linear_times(sizes, latency=10e-6, half_size=1000.0):
    """Return latency + size / bandwidth in seconds; both parts are equal at `half_size` bytes."""
    return latency * (1 + np.asarray(sizes) / half_size)


def make_latency_residuals(factor, sizes, half_size=1000.0, scatter=0.005):
    """Return residuals of a model whose latency is too low by `factor` and whose bandwidth is right."""
    latency_share = half_size / (half_size + np.asarray(sizes))
    return np.log(1 + (factor - 1) * latency_share) + scatter * np.random.default_rng(5).uniform(-1, 1, len(sizes))


@given(st.floats(1e-6, 1e-3), st.floats(1, 1e6))
def test_the_half_size_is_that_of_linear_times(latency, half_size):
    sizes = np.tile(SIZES, 3)
    ranks, factor = np.repeat([4.0, 8.0, 16.0], len(SIZES)), np.repeat([1.0, 2.0, 3.0], len(SIZES))
    seconds = factor * compute_linear_times(sizes, latency, half_size)
    residuals = make_residuals(np.zeros(48), ranks=ranks, size=sizes, seconds=seconds)
    assert estimate_half_size(residuals) == pytest.approx(half_size, rel=1e-3)


def test_the_half_size_is_the_median_over_operations():
    names = np.repeat(["bcast", "reduce", "gather"], len(SIZES))
    half_sizes = np.repeat([100.0, 5000.0, 700.0], len(SIZES))
    times = compute_linear_times(np.tile(SIZES, 3), half_size=half_sizes)
    residuals = make_residuals(np.zeros(48), operation=names, size=np.tile(SIZES, 3), seconds=times)
    assert estimate_half_size(residuals) == pytest.approx(700)


@pytest.mark.parametrize(
    ("sizes", "seconds"),
    [
        (SIZES, None),
        (np.zeros(16), np.ones(16)),
        (np.full(16, 8.0), np.ones(16)),
        (SIZES, np.ones(16)),  # infinite bandwidth
        (SIZES, SIZES / 1e6),  # zero latency
    ],
)
def test_without_a_half_size_the_distance_is_that_of_doublings(sizes, seconds):
    half_size = estimate_half_size(make_residuals(np.zeros(16), size=sizes, seconds=seconds))
    shares = compute_latency_share(SIZES, half_size)
    doublings = np.arange(16.0)
    assert half_size < 0.01 or half_size > 1e9
    assert measure_size_distance(doublings, shares, shares[0]) == pytest.approx(np.maximum(doublings, 1), abs=0.02)


def test_short_messages_are_nearer_to_each_other_than_to_long_ones():
    shares = compute_latency_share(np.array([8.0, 64.0, 1000.0, 64000.0]), 1000.0)
    assert measure_size_distance(np.array([3.0]), shares[0], shares[1]) == 3
    assert measure_size_distance(np.array([4.0]), shares[1], shares[2]) == pytest.approx(
        LATENCY_SHARE_DOUBLINGS * (1 / 1.064 - 0.5)
    )
    assert measure_size_distance(np.array([0.1]), shares[2], shares[2]) == 1


@pytest.mark.parametrize("factor", [0.4, 0.7, 1.3, 2.0])
def test_latency_errors_widen_the_extrapolation_to_short_messages(factor):
    """Extrapolating from bandwidth-bound sizes to a latency-bound one needs more widening than the number of doublings
    gives."""
    sizes = np.tile([1024.0, 4096.0, 16384.0, 65536.0], 12)
    logs = make_latency_residuals(factor, sizes, half_size=60)
    seconds = compute_linear_times(sizes, half_size=60) * np.exp(logs)
    excess = []
    for times in (None, seconds):
        low, high, _ = find_ends(make_residuals(logs, size=sizes, seconds=times), size=8.0)
        excess.append(max(low - np.log(factor), np.log(factor) - high))
    assert excess[1] < excess[0] - 0.1 * abs(np.log(factor))


def test_extrapolation_between_short_messages_widens_little():
    """From 8 to 128 bytes latency dominates: differences between long and short messages need little widening."""
    sizes = np.tile([128.0, 1024.0, 8192.0, 65536.0], 12)
    logs = make_latency_residuals(1.5, sizes)
    without_times, with_times = (
        make_residuals(logs, size=sizes, seconds=seconds)
        for seconds in (None, compute_linear_times(sizes) * np.exp(logs))
    )
    width = [high - low for low, high, _ in (find_ends(part, size=8.0) for part in (without_times, with_times))]
    assert width[1] < width[0] / 2
    assert np.log(1.5) - find_ends(with_times, size=8.0)[1] < 0


@given(st.floats(1, 1e5), st.floats(0.05, 20), st.floats(1.01, 1e3), st.floats(1, 1e3))
def test_extrapolated_intervals_never_narrow(half_size, factor, distance, further_distance):
    sizes = np.tile([512.0, 2048.0, 8192.0], 10)
    seconds = compute_linear_times(sizes, half_size=half_size)
    residuals = make_residuals(make_latency_residuals(factor, sizes), size=sizes, seconds=seconds)
    larger, smaller = 8192 * distance, 512 / distance
    for near, far in ((larger, larger * further_distance), (smaller, smaller / further_distance)):
        narrow, wide = find_ends(residuals, size=near), find_ends(residuals, size=far)
        assert wide[0] <= narrow[0] + 1e-12
        assert wide[1] >= narrow[1] - 1e-12


def test_the_growth_beyond_each_of_few_cuts_covers_95_of_100_points():
    """A cut separates the smaller sizes from the larger ones. Beyond one of the four cuts, 12 of 100 points have the
    residual 1: these are 3 % of all points, but more than 5 % beyond that cut."""
    sizes = np.repeat(2.0 ** np.arange(3, 8), 100)
    logs = np.where((sizes == 64) & (np.arange(500) % 100 < 12), 1.0, 0.0)
    _, _, growth = fit_residual_intervals(make_residuals(logs, size=sizes))["bcast"].beyond["larger"]
    assert growth == pytest.approx(np.log(2))
