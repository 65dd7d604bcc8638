"""The MPI default predicted from its own times: synthetic libraries whose law is known."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.fits.mpi_default_fits import fit_default
from commodel.predictions.mpi_default import MpiDefault, describe_width
from commodel.predictions.validity import ValidityKind
from commodel.records import LIBRARY, Point, Statistic

SIZES = tuple(4**number for number in range(1, 11))
PER_NODE = 8
SWITCH = 4096  # bytes at which the library takes another algorithm


def make_point(
    nodes, size, operation="allreduce", per_node=PER_NODE, statistic=Statistic.COMPLETION
):
    return Point(
        platform="",
        operation=operation,
        algorithm=LIBRARY,
        topology="",
        layout=f"block:{per_node}",
        ranks=nodes * per_node,
        bytes=size,
        nodes=nodes,
        per_node=per_node,
        statistic=statistic,
    )


def make_points(nodes, sizes=SIZES, **fields):
    return [make_point(count, size, **fields) for count in nodes for size in sizes]


def measure(points, seed=1, noise=0.03, job=0.05, kink=2.0):
    """Return the times of a library: a tree for short messages and a ring for long ones, with noise
    of each point, and of each job, that is, of each number of nodes."""
    rng = np.random.default_rng(seed)
    jobs = {nodes: rng.normal(0, job) for nodes in sorted({point.nodes for point in points})}
    seconds = []
    for point in points:
        depth = np.log2(point.ranks)
        tree = depth * (3e-6 + 2e-9 * point.bytes)
        ring = kink * depth * 5e-6 + 4e-9 * point.bytes
        exact = tree if point.bytes < SWITCH else ring
        seconds.append(exact * np.exp(jobs[point.nodes] + rng.normal(0, noise)))
    return np.array(seconds)


def fit(points, seconds):
    return MpiDefault.of_set(fit_default(points, seconds.tolist(), "t.csv"))


def predict(default, points):
    predictions = default.predict(points)
    return np.array([(entry.seconds, entry.low, entry.high) for entry in predictions]).T


@pytest.mark.parametrize(("nodes", "error", "width"), [(64, 1.1, 3), (128, 1.3, 8)])
def test_larger_numbers_of_ranks_are_covered(nodes, error, width):
    """Several machines, one and two doublings beyond the measured ranks."""
    covered, errors = [], []
    for seed in range(6):
        points = make_points((2, 4, 8, 16, 32, nodes))
        seconds = measure(points, seed)
        is_fitted = np.array([point.nodes < nodes for point in points])
        fitted = [point for point in points if point.nodes < nodes]
        held_out = [point for point in points if point.nodes == nodes]
        predicted, low, high = predict(fit(fitted, seconds[is_fitted]), held_out)
        times = seconds[~is_fitted]
        covered += ((low <= times) & (times <= high)).tolist()
        errors += np.abs(np.log(times / predicted)).tolist()
        assert np.median(high / low) < width
    assert np.mean(covered) >= 0.85
    assert np.exp(np.median(errors)) < error


def test_an_extrapolation_is_flagged_and_wider():
    points = make_points((2, 4, 8, 16, 32))
    default = fit(points, measure(points))
    within, beyond, farther = default.predict(make_points((16, 64, 256), (1024,)))
    assert within.validity.kind is ValidityKind.VALID
    assert beyond.validity.kind is ValidityKind.EXTRAPOLATED
    assert beyond.validity.reason == "1 doubling of the ranks beyond the measured times"
    assert beyond.basis.text == "50 workloads of allreduce between nodes, 1 doubling beyond"
    widths = [entry.high / entry.low for entry in (within, beyond, farther)]
    assert widths == sorted(widths)
    (longer,) = default.predict([make_point(16, 4**11)])
    assert longer.validity.reason == "2 doublings of the size beyond the measured times"


def test_a_kink_between_algorithms_is_kept():
    """Where the library switches, the time of a larger message is lower; also beyond the measured
    ranks."""
    points = make_points((2, 4, 8, 16, 32), [2**number for number in range(6, 18)])
    default = fit(points, measure(points, noise=0.01, job=0.01, kink=0.3))
    before, after = (
        predict(default, [make_point(64, size)])[0][0] for size in (SWITCH // 2, SWITCH)
    )
    exact = measure([make_point(64, SWITCH // 2), make_point(64, SWITCH)], noise=0, job=0, kink=0.3)
    assert after / before == pytest.approx(exact[1] / exact[0], rel=0.1)


def test_sizes_and_ranks_between_the_measured_ones_are_covered():
    covered, errors = [], []
    for seed in range(6):
        points = make_points((2, 4, 8, 16, 32, 64))
        seconds = measure(points, seed)
        is_fitted = np.array([point.nodes != 16 and point.bytes != 4**4 for point in points])
        fitted = [point for point, flag in zip(points, is_fitted, strict=True) if flag]
        others = [point for point, flag in zip(points, is_fitted, strict=True) if not flag]
        predicted, low, high = predict(fit(fitted, seconds[is_fitted]), others)
        times = seconds[~is_fitted]
        covered += ((low <= times) & (times <= high)).tolist()
        errors += np.abs(np.log(times / predicted)).tolist()
    assert np.mean(covered) >= 0.85
    assert np.exp(np.median(errors)) < 1.1


def test_branches_are_predicted_from_their_own_times():
    """Within a node and between nodes, and messages without payload, take different paths."""
    between, within = make_points((2, 4, 8)), make_points((1,))
    empty = make_points((2, 4, 8), (0,))
    points = [*between, *within, *empty]
    factors = np.repeat([1.0, 0.01, 0.001], [len(between), len(within), len(empty)])
    seconds = measure(points) * factors
    default = fit(points, seconds)
    assert set(default.laws) == {
        "allreduce between nodes",
        "allreduce within one node",
        "allreduce between nodes without payload",
    }
    for point, time in zip(points, seconds, strict=True):
        assert predict(default, [point])[0][0] == pytest.approx(time, rel=0.3)
    other = make_point(4, 64, operation="bcast")
    assert default.explain_missing(other) == "no time of the MPI default, bcast between nodes"
    (refused,) = default.predict([other])
    assert refused.seconds != refused.seconds
    assert refused.validity.text == f"no prediction: {default.explain_missing(other)}"


def test_few_numbers_of_ranks_make_intervals_wide():
    few, many = (2, 4, 8), (2, 4, 8, 16, 32, 64)
    widths = {}
    for nodes in (few, many):
        points = make_points(nodes)
        default = fit(points, measure(points))
        _, low, high = predict(default, make_points((2 * max(nodes),)))
        widths[nodes] = np.median(high / low)
    assert widths[few] > 1.2 * widths[many]
    assert "3 numbers of ranks measured; 64 ranks, predicted from fewer, are off by" in (
        describe_width(fit(make_points(few), measure(make_points(few))), "allreduce between nodes")
    )


def test_one_number_of_ranks_says_nothing_about_others():
    points = make_points((4,))
    default = fit(points, measure(points))
    assert set(default.residuals.residuals.places.setting) == {""}
    _, low, high = predict(default, make_points((8,)))
    assert (high / low > 100).all()
    text = describe_width(default, "allreduce between nodes")
    assert "1 number of ranks measured, so that their effect is unknown" in text


def test_an_outlier_hardly_changes_the_others():
    points = make_points((2, 4, 8, 16, 32))
    seconds = measure(points)
    spoilt = seconds.copy()
    spoilt[13] *= 20
    wanted = make_points((64,))
    clean, disturbed = (predict(fit(points, times), wanted)[0] for times in (seconds, spoilt))
    assert np.median(np.abs(np.log(clean / disturbed))) < 0.1


def test_the_last_bit_of_a_time_does_not_matter():
    points = make_points((2, 4, 8, 16))
    seconds = measure(points)
    wanted = make_points((4, 32, 64), (64, 3000))
    first, second = (predict(fit(points, seconds * factor), wanted) for factor in (1.0, 1 + 2e-16))
    np.testing.assert_allclose(first, second, rtol=1e-9)


def test_the_statistic_that_was_measured_is_predicted():
    points = make_points((2, 4, 8), operation="bcast", statistic=Statistic.RANK_MEAN)
    default = fit(points, measure(points))
    assert list(default.laws) == ["rank mean of bcast between nodes"]
    assert default.find_statistic(make_point(4, 64, operation="bcast")) is Statistic.RANK_MEAN


def test_too_few_times_are_refused():
    one = make_point(2, 8)
    for points in ([one], [one, replace(one, layout="cyclic:8")]):
        with pytest.raises(UserError, match="found too few times of the MPI default, wanted 2"):
            fit_default(points, [1e-5] * len(points), "t.csv")
