"""Prediction intervals of single models: from stored residuals, their basis, and predictions
without an interval."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.files.parameter_sets import format_parameters, read_parameters
from commodel.models.parameter_sets import make_given_set
from commodel.predictions.interval_basis import (
    MIN_ALLOCATIONS,
    PARAMETERS_ONLY_TEXT,
    IntervalBasis,
    is_informative,
)
from commodel.predictions.places import Places, find_operation_class
from commodel.predictions.predictions import PredictedTimes, apply_corrections, predict
from commodel.predictions.residual_model import ResidualModel
from commodel.predictions.stored_residuals import store_residuals
from tests.patterns.catalogue import point
from tests.predictions.residuals import find_basis, make_places, make_residuals, make_stored

SCATTER = np.random.default_rng(5).normal(0.1, 0.1, 45)
BINOMIAL = point("bcast", "binomial", ranks=8, bytes=8)


def make_validated_set(**columns):
    """Return a set whose predictions were compared with 45 broadcasts."""
    residuals = make_stored(SCATTER, **({"nodes": 1.0} | columns))
    return replace(make_given_set("hockney", ["alpha=10us", "beta=1ns"]), residuals=residuals)


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("count", [1, MIN_ALLOCATIONS - 1, MIN_ALLOCATIONS, 9])
def test_with_fewer_than_five_allocations_the_interval_is_a_lower_bound(count):
    words = find_basis(make_residuals(SCATTER, allocation=(np.arange(45) % count).astype(str)))
    assert words.startswith("at least: ") is (count < MIN_ALLOCATIONS)
    assert f"{count} allocation" in words
    assert "45 workloads of bcast" in words


def test_one_workload_gives_a_wide_interval():
    few = ResidualModel.fit(make_residuals([0.1, 0.2], [0, 0]))
    assert few is not None
    assert few.deviations["workload"] == pytest.approx(3.18, abs=0.01)  # Student's, 3 of freedom
    nothing = make_residuals([0.1], [0]).only(np.zeros(1, dtype=bool))
    assert ResidualModel.fit(nothing) is None


def test_streams_are_a_class_of_their_own():
    assert (
        find_operation_class("reduce", 50)
        != find_operation_class("reduce")
        == find_operation_class("reduce:x")
    )


def test_a_stored_parameter_set_has_the_intervals_of_the_residuals(tmp_path):
    parameters = make_validated_set()
    read = read_parameters(write(tmp_path / "s.yaml", format_parameters(parameters)))
    assert read == parameters
    (prediction,) = predict(read, [BINOMIAL])
    model = ResidualModel.fit(make_residuals(SCATTER, nodes=1.0))
    logs, half_width = model.predict_singly(Places.of_points([BINOMIAL]))
    assert prediction.low == pytest.approx(
        prediction.seconds * min(np.exp(logs - half_width)[0], 1.0)
    )
    assert prediction.high == pytest.approx(prediction.seconds * np.exp(logs + half_width)[0])
    assert prediction.parameter_low == prediction.seconds == prediction.parameter_high
    assert prediction.interval == "at least: 1 allocation, 45 workloads of bcast"


@settings(deadline=None)
@given(
    st.lists(st.floats(-3, 3), min_size=2, max_size=40),
    st.sampled_from(["bcast", "reduce"]),
    st.sampled_from([2, 8, 512]),
    st.sampled_from([0, 8, 1 << 20]),
)
def test_a_prediction_lies_inside_its_interval(logs, operation, ranks, size):
    """Points lie inside and outside of the measured ranks and sizes, and residuals are not near
    1."""
    sizes = 8.0 * 4.0 ** (np.arange(len(logs)) % 4)
    model = ResidualModel.fit(
        make_residuals(logs, size=sizes, ranks=4.0 * 2.0 ** (np.arange(len(logs)) % 3))
    )
    seconds = np.array([1e-5])
    prediction = PredictedTimes(seconds, seconds, seconds, np.ones(1), [], np.array([2e-6]))
    places = make_places(1, operation=operation, ranks=ranks, size=size)
    interval = apply_corrections(
        prediction, *model.predict_singly(places), model.find_bases(places)
    )
    assert interval.low[0] <= seconds[0] <= interval.high[0]
    assert interval.low[0] >= 2e-6  # the time of one message


def test_without_residuals_the_interval_is_the_parameter_interval():
    (prediction,) = predict(make_given_set("hockney", ["alpha=10us", "beta=1ns"]), [BINOMIAL])
    assert (prediction.low, prediction.high) == (
        prediction.parameter_low,
        prediction.parameter_high,
    )
    assert prediction.interval == PARAMETERS_ONLY_TEXT


def test_beyond_the_measured_sizes_an_interval_is_no_narrower_than_that_of_the_parameters():
    seconds, low, high = np.ones(2), np.full(2, 0.1), np.full(2, 10.0)
    times = PredictedTimes(seconds, low, high, seconds, [], np.zeros(2))
    bases = [IntervalBasis("bcast", 9), IntervalBasis("bcast", 9, doublings=1.0)]
    interval = apply_corrections(times, np.zeros(2), np.full(2, 0.01), bases)
    np.testing.assert_allclose(interval.high, [np.exp(0.01), 10.0])
    np.testing.assert_allclose(interval.low, [np.exp(-0.01), 0.1])


@pytest.mark.parametrize(
    ("key", "before", "after"),
    [
        ("log", "log: [", "log: [.nan, "),
        ("log", "log: [", "log: [many, "),
        ("log", "log: [0.", "log: [5000."),
        ("variance", "variance: [0.0", "variance: [1e300"),
        ("scales", "    all: [0.", "    all: [9000."),
        ("deviations", "deviations: {workload: ", "deviations: {workload: 1e300"),
        ("error", "  error: ", "  error: -"),
        ("operation", "operation: [", "operation: [bcast, "),
        ("workload", "workload: [0, ", "workload: [-1, "),
        ("ranks", "ranks: [8.0", "ranks: [0.0"),
        ("nodes", "nodes: [1.0", "nodes: [-1.0"),
        ("bytes", "bytes: [8.0", "bytes: [-8.0"),
        ("variance", "variance: [0.0", "variance: [-1.0"),
        ("scales", "    all: [", "    all: [-1.0, "),
        ("scales", "    all: [", "    reduce: ["),
        ("deviations", "deviations: {workload: ", "deviations: {workload: -"),
    ],
)
def test_impossible_residuals_are_refused(tmp_path, key, before, after):
    text = format_parameters(make_validated_set())
    assert before in text
    with pytest.raises(UserError, match=f"residuals.*{key}"):
        read_parameters(write(tmp_path / "s.yaml", text.replace(before, after)))


@pytest.mark.parametrize(
    ("seen", "wanted", "where"), [(1.0, 2.0, "between nodes"), (4.0, 1.0, "within one node")]
)
def test_residuals_within_a_node_give_no_interval_between_nodes(seen, wanted, where):
    residuals = make_residuals(SCATTER, nodes=seen)
    assert IntervalBasis.parse(find_basis(residuals, nodes=seen)).of_residuals
    words = find_basis(residuals, nodes=wanted)
    assert words == f"parameters only: nothing measured {where}"
    assert IntervalBasis.parse(words).unmeasured == where
    assert IntervalBasis.parse(words).sentence.endswith(f"was measured {where}")
    assert not IntervalBasis.parse(PARAMETERS_ONLY_TEXT).unmeasured
    assert IntervalBasis.parse(PARAMETERS_ONLY_TEXT).sentence.endswith("was measured here")


def test_a_set_measured_within_a_node_has_parameter_intervals_between_nodes():
    far = replace(BINOMIAL, nodes=2)
    near, other = predict(make_validated_set(), [replace(far, nodes=1), far])
    assert near.interval == "at least: 1 allocation, 45 workloads of bcast"
    assert (other.low, other.high) == (other.parameter_low, other.parameter_high)
    assert other.interval == "parameters only: nothing measured between nodes"


def test_each_placement_has_its_own_errors():
    """Predictions within a node are wrong by a factor of 12, those between nodes are right within
    10 %."""
    nodes = np.where(np.arange(60) < 30, 1.0, 4.0)
    logs = np.where(nodes == 1, np.log(12), 0.0) + np.random.default_rng(3).normal(0, 0.05, 60)
    model = ResidualModel.fit(make_residuals(logs, nodes=nodes))
    middle, half_width = model.predict_singly(make_places(2, nodes=np.array([1.0, 4.0])))
    np.testing.assert_allclose(middle, [np.log(12), 0.0], atol=0.1)
    assert half_width.max() < 0.3
    middle, half_width, _ = model.predict_left_out()
    assert np.mean(np.abs(middle - logs) <= half_width) >= 0.9
    assert half_width.max() < 0.3


LEAF, GROUP, FAR = "node/leaf", "node/leaf/group", "node/leaf/group/beyond"


def make_levels(*levels_crossed):
    """Return residuals of 20 workloads at each of these levels."""
    nodes = np.repeat([1.0 if name == "node" else 4.0 for name in levels_crossed], 20)
    logs = np.tile(SCATTER[:20], len(levels_crossed))
    return make_residuals(logs, levels_crossed=np.repeat(levels_crossed, 20), nodes=nodes)


@pytest.mark.parametrize(
    ("measured", "nodes", "wanted", "unmeasured"),
    [
        ((LEAF, GROUP), 4.0, FAR, "beyond one group"),
        (("node",), 4.0, LEAF, "within one leaf"),
        ((LEAF,), 1.0, "node", "within one node"),
        ((LEAF, FAR), 4.0, GROUP, ""),
        (("node", LEAF), 4.0, "", ""),
    ],
)
def test_beyond_the_farthest_measured_level_there_is_no_interval(
    measured, nodes, wanted, unmeasured
):
    basis = IntervalBasis.parse(
        find_basis(make_levels(*measured), nodes=nodes, levels_crossed=wanted)
    )
    assert basis.unmeasured == unmeasured
    assert basis.of_residuals is not bool(unmeasured)


def test_sets_store_the_measured_network_levels(tmp_path):
    residuals = store_residuals(ResidualModel.fit(make_levels(LEAF, GROUP)))
    parameters = replace(make_given_set("hockney", ["alpha=10us", "beta=1ns"]), residuals=residuals)
    read = read_parameters(write(tmp_path / "s.yaml", format_parameters(parameters)))
    near, far = (
        replace(point("bcast", "linear", ranks=8, bytes=8), reach=name) for name in (LEAF, FAR)
    )
    words = [prediction.interval for prediction in predict(read, [near, far])]
    assert "40 workloads of bcast" in words[0]
    assert IntervalBasis.parse(words[1]).unmeasured == "beyond one group"


@pytest.mark.parametrize("crossing", [1, 12])
def test_the_only_points_between_nodes_have_no_interval(crossing):
    nodes = np.where(np.arange(40) < crossing, 2.0, 1.0)
    groups = np.where(nodes == 2, "far", np.arange(40).astype(str))
    bases = np.array(
        ResidualModel.fit(make_residuals(SCATTER[:40], groups, nodes=nodes)).predict_left_out()[2]
    )
    assert {basis.unmeasured for basis in bases[nodes == 2]} == {"between nodes"}
    assert all(basis.of_residuals for basis in bases[nodes == 1])


def test_another_operation_is_named_as_measured_and_distances_are_those_of_the_operation():
    names = np.repeat(["bcast", "reduce"], 20)
    sizes = np.where(names == "bcast", 64.0, 1024.0)
    residuals = make_residuals(SCATTER[:40], operation=names, size=sizes, ranks=8.0)
    for place, words in (
        ({"operation": "bcast", "size": 64.0}, "20 workloads of bcast"),
        ({"operation": "bcast", "size": 256.0}, "20 workloads of bcast, 2 doublings beyond"),
        (
            {"operation": "bcast", "size": 64.0, "ranks": 32.0},
            "20 workloads of bcast, 2 doublings beyond",
        ),
        ({"operation": "gather", "size": 256.0}, "40 workloads of all"),
        ({"operation": "barrier", "size": 0.0}, "40 workloads of all"),
    ):
        found = find_basis(residuals, **place)
        assert found.removeprefix("at least: 1 allocation, ") == words
        assert IntervalBasis.parse(found).text == found


def test_intervals_widen_with_each_doubling_beyond_the_measured_sizes():
    """The measured sizes show no error; nothing shows whether this holds at other sizes."""
    model = ResidualModel.fit(make_residuals(np.zeros(40), size=2.0 ** (10 + np.arange(40) % 4)))
    sizes = 2.0 ** np.arange(3, 20)
    half_width = model.predict_singly(make_places(len(sizes), size=sizes))[1]
    below, above = half_width[sizes < 1024], half_width[sizes > 8192]
    assert (np.diff(below) < 0).all()
    assert (np.diff(above) > 0).all()
    assert below.min() > half_width[(sizes >= 1024) & (sizes <= 8192)].max()
    assert 0.5 < below.max() < 1.0  # seven doublings


@pytest.mark.parametrize(
    ("low", "high", "informative"),
    [(1.0, 100.0, True), (1.0, 101.0, False), (0.0, 1.0, False), (np.nan, np.nan, True)],
)
def test_an_interval_wider_than_a_factor_of_100_has_no_information(low, high, informative):
    assert is_informative(low, high) is informative


@pytest.mark.parametrize(
    ("basis", "text"),
    [
        (
            IntervalBasis("bcast", 1, 1, 1.0),
            "at least: 1 allocation, 1 workload of bcast, 1 doubling beyond",
        ),
        (
            IntervalBasis("bcast", 53, 6, 2.04),
            "6 allocations, 53 workloads of bcast, 2 doublings beyond",
        ),
        (IntervalBasis("all", 1200, 0, 0.5), "1200 workloads of all, 0.5 doublings beyond"),
        (
            IntervalBasis("bcast", 4, 0, 1.0, 4.0),
            "4 workloads of bcast, 1 doubling beyond, 4 doublings of the number of segments beyond",
        ),
        (
            IntervalBasis("bcast", 4, 0, 0.0, 2.0),
            "4 workloads of bcast, 2 doublings of the number of segments beyond",
        ),
    ],
)
def test_a_basis_is_english_and_is_read_back(basis, text):
    assert basis.text == text
    read = IntervalBasis.parse(text)
    assert (read.pooled, read.workloads, read.allocations) == (
        basis.pooled,
        basis.workloads,
        basis.allocations,
    )
    assert read.doublings == pytest.approx(basis.doublings, abs=0.05)
    assert read.segments == basis.segments
