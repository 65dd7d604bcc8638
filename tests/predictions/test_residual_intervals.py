"""Residual intervals: quantiles in closed form, coverage over many campaigns, and distances of sizes."""

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


def quantiles(groups: list[list[float]]) -> tuple[float, float]:
    """The first and last value with 2.5 % of the groups before and behind it, a point being its part of a group."""
    points = sorted((value, 1 / len(values) / len(groups)) for values in groups for value in values)
    shares = np.cumsum([share for _, share in points])
    low = next(value for (value, share), so_far in zip(points, shares, strict=True) if so_far > 0.025 - 1e-9)
    return low, next(value for (value, _), so_far in zip(points, shares, strict=True) if so_far >= 0.975 - 1e-9)


@pytest.mark.parametrize("count", [MIN_GROUPS_OF_CLASS, 13, MAX_FOLDS])
@pytest.mark.parametrize("each", [1, 3])
def test_the_interval_is_the_narrowest_that_covers_95_of_100_left_out_groups(count, each):
    groups = np.random.default_rng(count).normal(size=(count, each)).tolist()
    away = []
    for number, own in enumerate(groups):
        low, high = quantiles([values for other, values in enumerate(groups) if other != number])
        away += [max(low - value, value - high, 0) for value in own]
    more = sorted(away)[int(np.ceil(0.95 * len(away) - 1e-9)) - 1]
    low, high, _ = find_ends(make_residuals(np.ravel(groups), np.repeat(np.arange(count), each)))
    first, last = quantiles(groups)
    assert (low, high) == pytest.approx((first - more, last + more))


@pytest.mark.parametrize("count", [79, 200])
def test_of_many_groups_the_interval_ends_near_their_quantiles(count):
    low, high, _ = find_ends(make_residuals(np.random.default_rng(1).permutation(count)))
    assert -0.03 * count <= low <= 0.025 * count
    assert 0.975 * count - 1 <= high <= 1.03 * count


def test_few_groups_are_all_inside_and_the_gap_to_the_last_is_added():
    """0 and 10 lie outside of the others by 1 and 2: of ten groups, 95 % is the larger."""
    low, high, _ = find_ends(make_residuals([0, 1, 2, 3, 4, 5, 6, 7, 8, 10]))
    assert (low, high) == (-2, 12)


def test_a_group_counts_once_however_many_points_it_has():
    groups = np.r_[np.arange(100), np.full(400, 100)]
    low, high, _ = find_ends(make_residuals(np.r_[np.linspace(-1, 1, 100), np.full(400, 50.0)], groups))
    assert high <= 1.0
    assert low >= -1.0


@pytest.mark.parametrize("count", [MIN_GROUPS_OF_CLASS, 20, 60])
@pytest.mark.parametrize(
    ("draw", "own"),
    [("normal", 0.3), ("lognormal", 3.0)]
    + [pytest.param(*more, marks=pytest.mark.slow) for more in (("normal", 3.0), ("lognormal", 0.3))],
)
def test_a_new_group_is_covered_with_the_nominal_probability(count, draw, own):
    """Over many campaigns whose groups have a part in common and one of their own, and are skewed or heavy-tailed:
    neither less often nor, by intervals that are too wide, more."""
    rng = np.random.default_rng(count)
    shares = []
    for _ in range(CAMPAIGNS):
        common = getattr(rng, draw)(size=count + 40)
        logs = common[:, None] + own * rng.normal(size=(count + 40, 3))
        seen, new = logs[:count], logs[count:]
        low, high, _ = find_ends(make_residuals(seen.ravel(), np.repeat(np.arange(count), 3)))
        shares.append(np.mean((low <= new) & (new <= high)))
    assert 0.92 <= np.mean(shares) <= 0.965


@pytest.mark.parametrize("jobs", [3, 5, 10])
def test_the_interval_covers_a_new_setting_if_earlier_ones_are_distinguished(jobs):
    """The common error of a setting is as large as that of its groups. With the settings given, the interval covers
    more of     the next one, and names the small number of settings."""
    rng, inside = np.random.default_rng(jobs), {True: [], False: []}
    for _ in range(CAMPAIGNS):
        logs = (rng.normal(size=jobs + 1)[:, None] + rng.normal(size=(jobs + 1, 40))) / 10
        seen, job = make_residuals(logs[:jobs].ravel()), np.repeat(np.arange(jobs), 40).astype(str)
        for told in (True, False):
            apart = replace(seen, setting=job, allocation=job) if told else seen
            low, high, words = find_ends(apart)
            inside[told].append(np.mean((low <= logs[jobs]) & (logs[jobs] <= high)))
        assert words.startswith("at least: 1 allocation,")
    assert find_ends(replace(seen, setting=job, allocation=job))[2].startswith(
        "at least" if jobs < MIN_ALLOCATIONS else f"{jobs} alloc"
    )
    assert np.mean(inside[True]) > np.mean(inside[False])
    assert np.mean(inside[True]) > 0.93


logs_of = st.lists(st.floats(-3, 3), min_size=4, max_size=40)


@given(logs_of, st.integers(1, 20), st.integers(1, 12))
def test_intervals_never_narrow_with_the_distance_from_measured_points(logs, doublings, more):
    sizes = 8.0 * 4.0 ** (np.arange(len(logs)) % 4)
    residuals = make_residuals(logs, size=sizes)
    inside, near, far = (
        find_ends(residuals, size=size)
        for size in (8.0, sizes.max() * 2.0**doublings, sizes.max() * 2.0 ** (doublings + more))
    )
    assert far[0] <= near[0] <= near[1] <= far[1]
    assert inside[0] <= inside[1]
    assert "beyond" in near[2]
    assert "beyond" not in inside[2]


@given(logs_of, st.floats(-9, 9))
def test_the_interval_of_a_group_does_not_depend_on_its_own_residuals(logs, other):
    groups = np.arange(len(logs)) // 2
    residuals = make_residuals(logs, groups)
    changed = replace(residuals, logs=np.where(groups == 0, other, residuals.logs))
    before, after = cross_validate(residuals), cross_validate(changed)
    for end in ("low", "high"):
        np.testing.assert_array_equal(*(getattr(interval, end)[groups == 0] for interval in (before, after)))


def test_a_trend_over_sizes_is_extrapolated():
    """An error that grows by a tenth with every doubling does so beyond the largest size, too."""
    power = np.tile(np.arange(12), 8)
    residuals = make_residuals(0.1 * power, np.arange(96), size=2.0**power)
    *_, high, _ = (None, *find_ends(residuals, size=2.0**17))
    assert 1.6 <= high <= 3.0


def test_few_groups_of_an_operation_share_the_interval_of_its_kind_and_are_wider_by_what_operations_differ():
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
    """Sizes that differ by a tenth, and by chance in their errors, do not grow by so much a tenth."""
    off = np.tile(np.random.default_rng(3).normal(0, 0.1, 8), 9)
    intervals = fit_residual_intervals(make_residuals(off, np.arange(72), size=np.tile(1000 * 1.1 ** np.arange(8), 9)))
    assert intervals["bcast"].growth["bytes"] < 0.3


def test_an_operation_of_one_size_does_not_widen_other_sizes():
    """What a barrier is off, whose 0 bytes no other has, is what operations differ."""
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
def test_errors_far_from_an_end_do_not_widen_the_extrapolation_there(sign):
    """Short messages are off by a factor of e, long ones by a percent, and so are longer ones; or the other way round,
    beyond and behind."""
    rng, power = np.random.default_rng(7), np.tile(np.arange(0.0, 12, 2), 12)
    near = power * sign >= 4 * sign
    logs = rng.uniform(-1, 1, 72) * np.where(near, 0.01, 1.0)
    residuals = make_residuals(logs, size=2.0 ** (power + 6))
    beyond, behind, within = 2.0**18 if sign > 0 else 16.0, 2.0 ** (5 if sign > 0 else 18), 2.0**9
    low, high, words = find_ends(residuals, size=beyond)
    assert high - low < 1
    assert "beyond" in words
    for size in (behind, within):
        low, high, _ = find_ends(residuals, size=size)
        assert high - low > 1.9


@pytest.mark.parametrize("drift", [0.0, 0.02, 0.1])
def test_the_next_size_is_covered_with_the_nominal_probability(drift):
    """With independent errors, and with a random walk over doublings."""
    rng, shares = np.random.default_rng(1), []
    power = np.arange(0, 16, 2.0)
    for _ in range(CAMPAIGNS // 3):
        walk = np.cumsum(rng.normal(0, drift, 8) * np.sqrt(2)) if drift else np.zeros(8)
        logs = walk[:, None] + rng.normal(0, 0.05, (8, 12))
        seen = power < 14
        known_sizes = np.repeat(2.0 ** (power[seen] + 3), 12)
        low, high, _ = find_ends(make_residuals(logs[seen].ravel(), np.arange(84), size=known_sizes), size=2.0**17)
        shares.append(np.mean((low <= logs[7]) & (logs[7] <= high)))
    assert np.mean(shares) >= 0.9


def test_interpolated_sizes_are_widened_by_errors_of_inner_sizes_only():
    sizes = np.tile([8.0, 64.0, 512.0, 4096.0], 30)
    logs = np.random.default_rng(2).normal(0, 0.02, len(sizes)) + (sizes == 8) + 2 * (sizes == 4096)
    interval = fit_residual_interval(make_residuals(logs, size=sizes))
    assert interval.widening["bytes"] < 0.1
    two = sizes < 500  # of two sizes neither lies between others
    assert fit_residual_interval(make_residuals(logs[two], size=sizes[two])).widening["bytes"] > 0.8


SIZES = 2.0 ** np.arange(3, 19)


def line(sizes, empty=10e-6, half=1000.0):
    return empty * (1 + np.asarray(sizes) / half)


def off(factor, sizes, half=1000.0, scatter=0.005):
    """Where what an empty message takes is predicted wrong by a factor, and bytes are predicted right."""
    part = half / (half + np.asarray(sizes))
    return np.log(1 + (factor - 1) * part) + scatter * np.random.default_rng(5).uniform(-1, 1, len(sizes))


@given(st.floats(1e-6, 1e-3), st.floats(1, 1e6))
def test_the_half_size_is_that_of_the_line_that_times_lie_on(empty, half):
    sizes = np.tile(SIZES, 3)
    ranks, slower = np.repeat([4.0, 8.0, 16.0], len(SIZES)), np.repeat([1.0, 2.0, 3.0], len(SIZES))
    part = make_residuals(np.zeros(48), ranks=ranks, size=sizes, seconds=slower * line(sizes, empty, half))
    assert estimate_half_size(part) == pytest.approx(half, rel=1e-3)


def test_the_half_size_is_the_median_of_what_operations_have():
    names = np.repeat(["bcast", "reduce", "gather"], len(SIZES))
    halves = np.repeat([100.0, 5000.0, 700.0], len(SIZES))
    times = line(np.tile(SIZES, 3), half=halves)
    part = make_residuals(np.zeros(48), operation=names, size=np.tile(SIZES, 3), seconds=times)
    assert estimate_half_size(part) == pytest.approx(700)


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
def test_without_a_half_size_the_distance_is_that_of_doublings(sizes, seconds):
    half = estimate_half_size(make_residuals(np.zeros(16), size=sizes, seconds=seconds))
    parts = compute_latency_share(SIZES, half)
    doublings = np.arange(16.0)
    assert half < 0.01 or half > 1e9
    assert measure_size_distance(doublings, parts, parts[0]) == pytest.approx(np.maximum(doublings, 1), abs=0.02)


def test_short_messages_are_nearer_to_each_other_than_to_long_ones():
    parts = compute_latency_share(np.array([8.0, 64.0, 1000.0, 64000.0]), 1000.0)
    assert measure_size_distance(np.array([3.0]), parts[0], parts[1]) == 3
    assert measure_size_distance(np.array([4.0]), parts[1], parts[2]) == pytest.approx(
        LATENCY_SHARE_DOUBLINGS * (1 / 1.064 - 0.5)
    )
    assert measure_size_distance(np.array([0.1]), parts[2], parts[2]) == 1


@pytest.mark.parametrize("factor", [0.4, 0.7, 1.3, 2.0])
def test_latency_errors_widen_the_extrapolation_to_short_messages(factor):
    """From times that are all but those of bytes to one of an empty message more is to come than doublings say."""
    sizes = np.tile([1024.0, 4096.0, 16384.0, 65536.0], 12)
    logs = off(factor, sizes, half=60)
    seconds = line(sizes, half=60) * np.exp(logs)
    missed = []
    for known_seconds in (None, seconds):
        low, high, _ = find_ends(make_residuals(logs, size=sizes, seconds=known_seconds), size=8.0)
        missed.append(max(low - np.log(factor), np.log(factor) - high))
    assert missed[1] < missed[0] - 0.1 * abs(np.log(factor))


def test_extrapolation_between_short_messages_widens_little():
    """From 128 to 8 bytes as good as nothing changes, whatever was wrong between long ones and short ones."""
    sizes = np.tile([128.0, 1024.0, 8192.0, 65536.0], 12)
    logs = off(1.5, sizes)
    (blind, seen) = (
        make_residuals(logs, size=sizes, seconds=seconds) for seconds in (None, line(sizes) * np.exp(logs))
    )
    width = [high - low for low, high, _ in (find_ends(part, size=8.0) for part in (blind, seen))]
    assert width[1] < width[0] / 2
    assert np.log(1.5) - find_ends(seen, size=8.0)[1] < 0


@given(st.floats(1, 1e5), st.floats(0.05, 20), st.floats(1.01, 1e3), st.floats(1, 1e3))
def test_extrapolated_intervals_never_narrow(half, factor, near, more):
    sizes = np.tile([512.0, 2048.0, 8192.0], 10)
    part = make_residuals(off(factor, sizes), size=sizes, seconds=line(sizes, half=half))
    for one, other in ((8192 * near, 8192 * near * more), (512 / near, 512 / near / more)):
        narrow, wide = find_ends(part, size=one), find_ends(part, size=other)
        assert wide[0] <= narrow[0] + 1e-12
        assert wide[1] >= narrow[1] - 1e-12


def test_the_worst_of_few_cuts_is_not_left_out():
    """Twelve of 100 points were off by 1 at one of four steps between sizes: that is 3 % of all, but not rare there."""
    sizes = np.repeat(2.0 ** np.arange(3, 8), 100)
    logs = np.where((sizes == 64) & (np.arange(500) % 100 < 12), 1.0, 0.0)
    assert fit_residual_intervals(make_residuals(logs, size=sizes))["bcast"].beyond["larger"][2] == pytest.approx(
        np.log(2)
    )
