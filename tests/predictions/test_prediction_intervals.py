"""Prediction intervals: their residuals, their text, and predictions without an interval."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.files.parameter_sets import format_parameters, read_parameters
from commodel.models.parameter_sets import make_given_set
from commodel.predictions.prediction_intervals import (
    MIN_ALLOCATIONS,
    PARAMETERS_ONLY_TEXT,
    IntervalBasis,
    apply_residuals,
    cross_validate,
    find_residual_interval,
    fit_residual_intervals,
    is_informative,
)
from commodel.predictions.predictions import PredictedTimes, predict
from commodel.predictions.residuals import find_operation_class
from tests.patterns.catalogue import point
from tests.predictions.residuals import find_ends, make_residuals, make_workload


def texts(intervals, workload):
    interval = find_residual_interval(intervals, workload)
    return interval.low, interval.high, [basis.text for basis in interval.bases]


def cross_validate_texts(residuals):
    interval = cross_validate(residuals)
    return interval.low, interval.high, [basis.text for basis in interval.bases]


TABLES = "measured", "widening", "growth"


@pytest.mark.parametrize("count", [1, MIN_ALLOCATIONS - 1, MIN_ALLOCATIONS, 9])
def test_with_fewer_than_five_allocations_the_interval_is_a_lower_bound(count):
    allocation = (np.arange(45) % count).astype(str)
    words = find_ends(make_residuals(np.linspace(0, 1, 45), allocation=allocation))[2]
    assert words.startswith("at least: ") is (count < MIN_ALLOCATIONS)
    assert f"{count} allocation" in words
    assert "45 workloads of bcast" in words


def test_one_group_gives_no_interval():
    assert fit_residual_intervals(make_residuals([0.1, 0.2], [0, 0])) == {}
    assert find_ends(make_residuals([0.1, 0.2], [0, 0])) == (0, 0, PARAMETERS_ONLY_TEXT)


def test_streams_are_a_class_of_their_own():
    assert find_operation_class("reduce", 50) != find_operation_class("reduce") == find_operation_class("reduce:x")


def carrying():
    intervals = fit_residual_intervals(make_residuals(np.linspace(-0.2, 0.4, 45), operation="bcast", nodes=1.0))
    return replace(make_given_set("hockney", ["alpha=10us", "beta=1ns"]), errors=intervals)


def test_a_stored_parameter_set_predicts_with_the_stored_residual_intervals(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(format_parameters(carrying()), encoding="utf-8")
    read = read_parameters(path)
    assert read.errors == carrying().errors
    (prediction,) = predict(read, [point("bcast", "binomial", ranks=8, bytes=8)])
    assert prediction.low == pytest.approx(prediction.seconds * np.exp(-0.2))
    assert prediction.high == pytest.approx(prediction.seconds * np.exp(0.4))
    assert prediction.parameters_low == prediction.seconds == prediction.parameters_high
    assert prediction.interval == "at least: 1 allocation, 45 workloads of bcast"


@given(
    st.lists(st.floats(-3, 3), min_size=2, max_size=40),
    st.floats(0.1, 10),
    st.sampled_from(["bcast", "reduce"]),
    st.sampled_from([2, 8, 512]),
    st.sampled_from([0, 8, 1 << 20]),
)
def test_a_prediction_lies_inside_its_interval(logs, ratio, operation, ranks, size):
    """Points lie inside and outside of the measured ranks and sizes, and residuals and ratios are not near 1."""
    sizes = 8.0 * 4.0 ** (np.arange(len(logs)) % 4)
    intervals = fit_residual_intervals(make_residuals(logs, size=sizes, ranks=4.0 * 2.0 ** (np.arange(len(logs)) % 3)))
    seconds = np.array([1e-5])
    prediction = PredictedTimes(seconds, seconds, seconds, np.array([ratio]), [], np.array([2e-6]))
    interval = apply_residuals(prediction, find_residual_interval(intervals, make_workload(operation, ranks, size)))
    assert interval.low[0] <= seconds[0] <= interval.high[0]
    assert interval.low[0] >= 2e-6  # the time of one message


def test_without_residuals_the_interval_is_the_parameter_interval():
    (prediction,) = predict(
        make_given_set("hockney", ["alpha=10us", "beta=1ns"]), [point("bcast", "binomial", ranks=8, bytes=8)]
    )
    assert (prediction.low, prediction.high, prediction.interval) == (
        prediction.parameters_low,
        prediction.parameters_high,
        PARAMETERS_ONLY_TEXT,
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("low: -0.2", "low: 9.0"),
        ("low: -0.2", "low: .inf"),
        ("workloads: 45", "workloads: -1"),
        ("workloads: 45", "workloads: many"),
        ("bytes: [8.0]", "bytes: []"),
        ("widening: {ranks: ", "widening: {cores: "),
        ("growth: {ranks: ", "growth: {ranks: -"),
        ("larger: [", "bigger: ["),
        ("larger: [-", "larger: [9"),
        ("half_size: 0.0", "half_size: -1.0"),
    ],
)
def test_impossible_residual_intervals_are_refused(tmp_path, before, after):
    text = format_parameters(carrying())
    assert before in text
    path = tmp_path / "s.yaml"
    path.write_text(text.replace(before, after), encoding="utf-8")
    with pytest.raises(UserError, match="errors"):
        read_parameters(path)


@pytest.mark.parametrize(("seen", "wanted", "where"), [(1.0, 2.0, "between nodes"), (4.0, 1.0, "within one node")])
def test_residuals_within_a_node_give_no_interval_between_nodes(seen, wanted, where):
    residuals = make_residuals(np.linspace(0, 1, 45), nodes=seen)
    assert IntervalBasis.parse(find_ends(residuals, nodes=seen)[2]).of_residuals
    low, high, words = find_ends(residuals, nodes=wanted)
    assert (low, high, words) == (0, 0, f"parameters only: nothing measured {where}")
    assert IntervalBasis.parse(words).unmeasured == where
    assert IntervalBasis.parse(words).sentence.endswith(f"was measured {where}")
    assert not IntervalBasis.parse(PARAMETERS_ONLY_TEXT).unmeasured
    assert IntervalBasis.parse(PARAMETERS_ONLY_TEXT).sentence.endswith("was measured here")


def test_another_placement_uses_other_operations_measured_there():
    """An operation measured at the placement itself has an interval that is not widened by the differences between
    operations."""
    names = np.repeat(["bcast", "gather", "reduce"], 30)
    nodes = np.where(names == "bcast", 1.0, np.tile([1.0, 4.0, 8.0], 30))
    intervals = fit_residual_intervals(
        make_residuals(np.linspace(0, 1, 90) + (names == "reduce"), operation=names, nodes=nodes)
    )
    low, high, (words,) = texts(intervals, make_workload("bcast", nodes=4.0))
    between_nodes = intervals["all between nodes"]
    wider = between_nodes.widening["operation"]
    assert wider > 0
    assert (low[0], high[0]) == (between_nodes.low - wider, between_nodes.high + wider)
    assert "40 workloads of all between nodes" in words
    assert "30 workloads of bcast" in texts(intervals, make_workload("bcast", nodes=1.0))[2][0]


def make_two_sides(within):
    """Return residuals of 60 workloads: `within` of them within a node, with a factor of 12; the others between nodes,
    with a factor of 1."""
    nodes = np.where(np.arange(60) < within, 1.0, 4.0)
    return make_residuals(np.where(nodes == 1, np.log(12), 0.0) + np.linspace(-0.1, 0.1, 60), nodes=nodes)


def test_each_placement_has_a_separate_prediction_interval():
    residuals = make_two_sides(30)
    near, far = (find_ends(residuals, nodes=nodes) for nodes in (1.0, 4.0))
    assert np.log(12) - 0.11 < near[0] < near[1] < np.log(12) + 0.01
    assert -0.01 < far[0] < far[1] < 0.11
    assert near[2].endswith("30 workloads of bcast within one node")
    assert far[2].endswith("30 workloads of bcast between nodes")
    low, high, words = cross_validate_texts(residuals)
    assert max(high - low) < 0.2
    assert all(text.endswith("within one node") for text in words[:30])
    assert all(text.endswith("between nodes") for text in words[30:])


LEAF, GROUP, FAR = "node/leaf", "node/leaf/group", "node/leaf/group/beyond"


def levels(*levels_crossed):
    """Return residuals of 20 workloads at each of these levels; they grow with the distance."""
    off = np.repeat([{LEAF: 0.0, GROUP: 0.5, FAR: 2.0, "node": -3.0}[name] for name in levels_crossed], 20)
    nodes = np.repeat([1.0 if name == "node" else 4.0 for name in levels_crossed], 20)
    return make_residuals(
        off + np.tile(np.linspace(0, 0.1, 20), len(levels_crossed)),
        levels_crossed=np.repeat(levels_crossed, 20),
        nodes=nodes,
    )


def test_each_network_level_has_a_separate_prediction_interval():
    for name, off, words in (
        (LEAF, 0.0, "within one leaf"),
        (GROUP, 0.5, "within one group"),
        ("node", -3, "one node"),
    ):
        low, high, text = find_ends(
            levels("node", LEAF, GROUP), nodes=1.0 if name == "node" else 4.0, levels_crossed=name
        )
        assert off - 0.01 < low < high < off + 0.11
        assert text.endswith(words)


def test_beyond_the_farthest_measured_level_there_is_no_interval():
    assert find_ends(levels(LEAF, GROUP), nodes=4.0, levels_crossed=FAR) == (
        0,
        0,
        "parameters only: nothing measured beyond one group",
    )
    assert (
        find_ends(levels("node"), nodes=4.0, levels_crossed=LEAF)[2]
        == "parameters only: nothing measured within one leaf"
    )
    assert (
        find_ends(levels(LEAF), nodes=1.0, levels_crossed="node")[2]
        == "parameters only: nothing measured within one node"
    )
    words = cross_validate_texts(make_residuals(np.linspace(0, 1, 20), levels_crossed=[LEAF] * 19 + [FAR]))[2]
    assert [IntervalBasis.parse(text).unmeasured for text in words] == [""] * 19 + ["beyond one group"]


def test_a_nearer_level_uses_the_residuals_of_farther_ones():
    low, high, words = find_ends(levels(LEAF, FAR), nodes=4.0, levels_crossed=GROUP)
    assert low < 0.01 < 2.09 < high
    assert words.endswith("40 workloads of bcast")


def test_with_unknown_levels_the_number_of_nodes_decides():
    """A point has no levels without a platform; residuals may have numbers of nodes only."""
    both = levels("node", LEAF)
    assert find_ends(both, nodes=4.0) == find_ends(both, nodes=None)
    without_levels = replace(both, levels_crossed=None)
    assert find_ends(without_levels, nodes=4.0, levels_crossed=LEAF) == find_ends(without_levels, nodes=None)
    assert find_ends(without_levels, nodes=4.0)[2].endswith("20 workloads of bcast between nodes")


def test_sets_store_the_measured_network_levels(tmp_path):
    parameters = replace(
        make_given_set("hockney", ["alpha=10us", "beta=1ns"]), errors=fit_residual_intervals(levels(LEAF, GROUP))
    )
    path = tmp_path / "s.yaml"
    path.write_text(format_parameters(parameters), encoding="utf-8")
    assert read_parameters(path).errors == parameters.errors
    near, far = (replace(point("bcast", "linear", ranks=8, bytes=8), reach=name) for name in (LEAF, FAR))
    words = [prediction.interval for prediction in predict(read_parameters(path), [near, far])]
    assert words[0].endswith("within one leaf")
    assert IntervalBasis.parse(words[1]).unmeasured == "beyond one group"


def test_too_few_groups_of_a_placement_have_no_interval():
    """Eight groups are too few: the interval is that of both placements, as with unknown nodes."""
    residuals = make_two_sides(8)
    assert find_ends(residuals, nodes=1.0) == find_ends(residuals, nodes=None)
    assert find_ends(residuals, nodes=1.0)[2].endswith("60 workloads of bcast")
    assert find_ends(residuals, nodes=4.0)[1] < 0.11


@pytest.mark.parametrize("size", [8.0, 512.0])
def test_intervals_fitted_on_demand_equal_intervals_fitted_at_once(size):
    """Cross-validation fits only the required intervals; parameter sets contain all intervals."""
    names, rng = np.repeat(["bcast", "gather", "reduce"], 19), np.random.default_rng(3)
    nodes, sizes = np.tile([1.0, 4.0, 1.0], 19), np.tile([8.0, 32.0, 64.0], 19)
    values = {"operation": names, "nodes": nodes, "size": sizes}
    logs = rng.normal(size=57)
    more = {name: np.append(row, last) for (name, row), last in zip(values.items(), ("bcast", 1.0, size), strict=True)}
    low, high, words = cross_validate_texts(make_residuals(np.append(logs, 0.0), **more))
    assert words[-1].startswith("at least: 1 allocation, 13 workloads of bcast within one node")
    assert (low[-1], high[-1], words[-1]) == find_ends(make_residuals(logs, **values), nodes=1.0, size=size)


@pytest.mark.parametrize("crossing", [1, 12])
def test_the_only_points_between_nodes_have_no_interval(crossing):
    nodes = np.where(np.arange(40) < crossing, 2.0, 1.0)
    groups = np.where(nodes == 2, "far", np.arange(40).astype(str))
    words = np.array(cross_validate_texts(make_residuals(np.linspace(0, 1, 40), groups, nodes=nodes))[2])
    assert {IntervalBasis.parse(text).unmeasured for text in words[nodes == 2]} == {"between nodes"}
    assert all(IntervalBasis.parse(text).of_residuals for text in words[nodes == 1])


def test_unknown_node_counts_change_no_interval():
    residuals = make_residuals(np.linspace(0, 1, 45))
    without_nodes = replace(residuals, axes={name: residuals.axes[name] for name in ("ranks", "bytes")})
    assert find_ends(without_nodes, nodes=1.0) == find_ends(without_nodes, nodes=8.0) == find_ends(residuals, nodes=8.0)
    assert find_ends(residuals, nodes=None) == find_ends(residuals, nodes=8.0)


def test_beyond_the_sizes_the_interval_of_an_exact_operation_grows_like_that_of_all():
    """The residuals of the operation do not include a protocol change beyond the measured sizes."""
    names = np.repeat(["allreduce", "bcast"], 40)
    power = np.tile(np.arange(4.0), 20)
    intervals = fit_residual_intervals(
        make_residuals(np.where(names == "bcast", power / 10, 0.0), operation=names, size=2.0 ** (power + 3))
    )
    assert intervals["allreduce"].beyond["larger"] == (0, 0, 0)
    low, high, _ = texts(intervals, make_workload("allreduce", size=256.0))
    assert high[0] == -low[0] == 2 * intervals["all"].beyond["larger"][2] > 0.1


def test_a_barrier_is_not_extrapolated_over_sizes():
    """The interval of a barrier is widened by the differences between operations, not between sizes. An empty message
    of another operation is a size."""
    logs = np.tile(0.2 * np.arange(4), 12)
    intervals = fit_residual_intervals(make_residuals(logs, np.arange(48), size=2.0 ** (6 + np.arange(48) % 4)))
    interval = intervals["bcast"]
    assert interval.growth["bytes"] > 0
    low, _, (words,) = texts(intervals, make_workload("barrier", size=0.0))
    assert low[0] == intervals["all"].low - intervals["all"].widening["operation"]
    assert "beyond" not in words
    assert "6.0 doublings beyond" in texts(intervals, make_workload("bcast", size=0.0))[2][0]


def test_a_set_measured_within_a_node_has_parameter_intervals_between_nodes():
    far = replace(point("bcast", "binomial", ranks=8, bytes=8), nodes=2)
    near, other = predict(carrying(), [replace(far, nodes=1), far])
    assert near.interval == "at least: 1 allocation, 45 workloads of bcast"
    assert (other.low, other.high) == (other.parameters_low, other.parameters_high)
    assert other.interval == "parameters only: nothing measured between nodes"


def test_a_set_of_an_older_version_without_nodes_is_read(tmp_path):
    interval = carrying().errors["bcast"]
    fields = {name: {key: value for key, value in getattr(interval, name).items() if key != "nodes"} for name in TABLES}
    path = tmp_path / "s.yaml"
    path.write_text(
        format_parameters(replace(carrying(), errors={"bcast": replace(interval, **fields)})), encoding="utf-8"
    )
    far = replace(point("bcast", "binomial", ranks=8, bytes=8), nodes=2)
    assert predict(read_parameters(path), [far])[0].basis.of_residuals


def test_each_workload_is_covered_by_intervals_of_all_others():
    """One workload has the largest size; another is the only one between nodes."""
    rng, job = np.random.default_rng(2), np.repeat(np.arange(24), 2)
    named, size = np.where(job < 12, "bcast", "reduce"), 2.0 ** (3 + job % 3)
    size[:2], nodes = 4096.0, np.where(job == 13, 2.0, 1.0)
    residuals = make_residuals(rng.normal(0, 1, 48), job, operation=named, size=size, nodes=nodes)
    low, high, words = cross_validate_texts(residuals)
    for place in range(48):
        rest = fit_residual_intervals(residuals.only(job != job[place]))
        expected = texts(rest, make_workload(str(named[place]), size=size[place], nodes=nodes[place]))
        wanted = (expected[0][0], expected[1][0]) if IntervalBasis.parse(expected[2][0]).of_residuals else (0.0, 0.0)
        assert (low[place], high[place], words[place]) == (*wanted, expected[2][0])


@pytest.mark.parametrize(
    ("low", "high", "informative"), [(1.0, 100.0, True), (1.0, 101.0, False), (0.0, 1.0, False), (np.nan, np.nan, True)]
)
def test_an_interval_wider_than_a_factor_of_100_has_no_information(low, high, informative):
    assert is_informative(low, high) is informative
