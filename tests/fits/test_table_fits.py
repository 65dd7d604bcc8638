"""Fits to tables of collectives: shapes, notes on shapes, and draws stored in a parameter set."""

import random
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.compare.held_out import predict_held_out, tabulate_errors
from commodel.files.parameter_sets import format_parameters, read_parameters
from commodel.files.yaml import MAX_FILE_BYTES
from commodel.fits.measured_tables import Measured, read_points
from commodel.fits.probe_fits import has_distinct_draws, make_parameter_set
from commodel.fits.table_fits import CHI_SQUARED_95, compute_intervals, describe_fit, fit_measured
from commodel.models.evaluation.values import Values
from commodel.models.families import find_family
from commodel.models.fitting.observed import Fitted
from commodel.models.parameter_sets import make_given_set
from commodel.patterns.build import build_schedule, find_fan_in, find_fan_ins, group_by_shape
from commodel.predictions.predictions import predict
from tests.patterns.catalogue import catalogue, point

LOGGP = make_given_set("loggp", ["L=10us", "o_s=1.5us", "o_r=2us", "g=4us", "G=8ns", "gamma=1ns"])
SIZES = (8, 32, 256)
# segments of 4 bytes
ALGORITHM = [point("bcast", "binomial:4", ranks=16, bytes=size) for size in SIZES]
TREE = [point("bcast", topology="binomial:4", bytes=size) for size in SIZES]  # of 16 nodes
BOTH = [entry for pair in zip(ALGORITHM, TREE, strict=True) for entry in pair]


def predict_one_by_one(parameters, points):
    """Return the predictions of points, one at a time."""
    return [predict(parameters, [entry])[0].seconds for entry in points]


def test_one_is_not_predicted_with_the_other_s_messages():
    assert [prediction.seconds for prediction in predict(LOGGP, BOTH)] == pytest.approx(
        predict_one_by_one(LOGGP, BOTH), rel=1e-12
    )
    assert (
        max(np.divide(predict_one_by_one(LOGGP, ALGORITHM), predict_one_by_one(LOGGP, TREE))) > 10
    )


@given(
    st.integers(2, 20), st.lists(st.integers(0, 5000), min_size=1, max_size=3), st.integers(0, 99)
)
@settings(max_examples=8, deadline=None)
def test_shapes_partition_the_points_and_points_of_a_shape_differ_in_size_only(ranks, sizes, seed):
    points = [*BOTH, *(entry for size in sizes for entry in catalogue(ranks, size))]
    random.Random(seed).shuffle(points)
    seen = []
    for numbers, shape in group_by_shape(points):
        seen += numbers
        assert [points[number].bytes for number in numbers] == list(shape.sizes)
        names = {
            (p.operation, p.algorithm, p.topology, p.layout, p.ranks)
            for p in (points[number] for number in numbers)
        }
        assert len(names) == 1
    assert sorted(seen) == list(range(len(points)))
    assert len(list(group_by_shape(points))) == len(
        {(p.operation, p.algorithm, p.topology, p.ranks) for p in points}
    )


def test_fan_in_is_that_of_each_by_itself():
    assert find_fan_ins(BOTH) == {entry.id: find_fan_in(build_schedule(entry)) for entry in BOTH}


def test_a_family_blind_to_size_sees_the_smallest_of_each():
    linear = [point("bcast", "linear", ranks=ranks, bytes=8) for ranks in (4, 8, 16)]
    # the smallest of the tree is smaller than that of the algorithm
    points = [ALGORITHM[1], *TREE, *linear]
    parameters = fit_measured(points, predict_one_by_one(LOGGP, points), "logp", "here")
    assert parameters.provenance["points"] == 5
    smallest = [ALGORITHM[1], TREE[0], *linear]
    assert (
        parameters.values
        == fit_measured(smallest, predict_one_by_one(LOGGP, smallest), "logp", "here").values
    )


def test_a_family_blind_to_size_is_fitted_to_short_messages_where_some_patterns_have_long_ones_only():
    short = [point("bcast", "linear", ranks=ranks, bytes=8) for ranks in (4, 8, 16, 32)]
    points = [*short, *(point("allgather", "ring", ranks=ranks, bytes=65536) for ranks in (4, 8))]
    parameters = fit_measured(points, predict_one_by_one(LOGGP, points), "logp", "here")
    assert (
        parameters.values
        == fit_measured(short, predict_one_by_one(LOGGP, short), "logp", "here").values
    )
    assert [
        prediction.validity_text for prediction in predict(parameters, [short[0], points[-1]])
    ] == [
        "valid",
        "size not modelled: valid for 8 B",
    ]


@pytest.mark.parametrize(
    ("layout", "doubt"), [("block:1", "same node"), ("block:16", "different nodes")]
)
def test_a_fit_to_one_placement_is_not_valid_for_the_other_placement(layout, doubt):
    measured = [
        point("bcast", "linear", ranks=ranks, bytes=8, layout=layout) for ranks in (4, 8, 16)
    ]
    parameters = fit_measured(measured, [1e-5, 2e-5, 4e-5], "hockney", "here")
    other = {"block:1": "block:16", "block:16": "block:1"}[layout]
    requested = [
        point("bcast", "linear", ranks=8, bytes=8, layout=where) for where in (layout, other)
    ]
    assert [prediction.validity_text for prediction in predict(parameters, requested)] == [
        "valid",
        f"not probed: ranks in {doubt}",
    ]


def test_held_out_points_of_both_have_errors_of_their_own():
    twice = [2 * seconds for seconds in predict_one_by_one(LOGGP, ALGORITHM)]
    rows = predict_held_out(
        LOGGP, Measured([*ALGORITHM, *TREE], [*twice, *predict_one_by_one(LOGGP, TREE)], 0)
    )
    mu = tabulate_errors(rows, ["operation", "kind", "alternative"]).set_index("kind")["mu_mean"]
    assert mu.to_dict() == pytest.approx({"algorithm": 2.0, "topology": 1.0})
    thrice = predict_held_out(
        LOGGP, Measured(TREE, [3 * seconds for seconds in predict_one_by_one(LOGGP, TREE)], 0)
    )
    (worst,) = tabulate_errors(pd.concat([rows, thrice]), ["model"])["worst"]
    assert worst.startswith("bcast topology binomial:4 16 ranks")


COLLAPSING = {"L": "2.5us", "o_s": "1.5us", "o_r": "1us", "g": "4us", "G": "6ns"}
# a port is busy for all of a message
SAME = {"L": "0s", "o_s": "3us", "o_r": "0s", "g": "3us", "G": "6ns"}
WAYS = [("bcast", "binomial"), ("bcast", "linear"), ("allgather", "ring"), ("scatter", "linear")]


def machine(values):
    return make_given_set("loggp", [f"{name}={value}" for name, value in values.items()])


@pytest.fixture
def table(tmp_path):
    """Return a function that writes a table of predicted times, with some lines multiplied by
    `factors`."""

    def written(values, factors):
        file = tmp_path / "t.csv"
        names = [
            f"{operation},{choice},8,{size}"
            for operation, choice in WAYS
            for size in (1, 1000, 100_000)
        ]

        def write(seconds):
            rows = (f"{name},{time:.10g}\n" for name, time in zip(names, seconds, strict=True))
            file.write_text("operation,algorithm,ranks,bytes,seconds\n" + "".join(rows))
            return read_points(file)

        predictions = [
            prediction.seconds
            for prediction in predict(machine(values), write([1] * len(names)).points)
        ]
        return write(
            [seconds * factors.get(line, 1) for line, seconds in enumerate(predictions, 2)]
        )

    return written


def test_rows_that_are_not_explained_are_named(table):
    lines = list(
        describe_fit(machine(COLLAPSING), table(COLLAPSING, {3: 7, 9: 0.2, 5: 1.5}), "t.csv")
    )
    assert lines == [
        "t.csv:3: bcast binomial, 8 ranks, 1000 B: took 7 times its prediction, not explained",
        "t.csv:9: allgather ring, 8 ranks, 1000 B: took 0.2 times its prediction, not explained",
    ]


def test_where_all_are_off_none_is(table):
    assert not list(
        describe_fit(
            machine(COLLAPSING), table(COLLAPSING, dict.fromkeys(range(2, 14), 3)), "t.csv"
        )
    )


@pytest.mark.parametrize(("values", "count"), [(COLLAPSING, 0), (SAME, 1)])
def test_loggp_that_is_hockney_is_marked(table, values, count):
    lines = list(describe_fit(machine(values), table(values, {}), "t.csv"))
    assert len(lines) == count
    assert all("collapsed to Hockney" in line and "β = 6e-09 s/B" in line for line in lines)


def test_only_values_that_vary_keep_their_draws():
    assert not has_distinct_draws(np.full(5, 3.0))
    assert has_distinct_draws(np.array([3.0, 3.0, 3.5]))
    values = {"alpha.a": np.array([1.0, 1.0, 1.0]), "beta.a": np.array([2.0, 2.5, 1.5])}
    fitted = make_parameter_set(find_family("hockney"), Fitted(values, (1, 2)))
    assert fitted.draws == {"beta.a": (2.5, 1.5)}
    drawn = Values.of(fitted, None)
    assert drawn.numbers["alpha.a"].ravel().tolist() == [1.0, 1.0, 1.0]
    assert drawn.numbers["beta.a"].ravel().tolist() == [2.0, 2.5, 1.5]


def test_the_interval_of_a_value_ends_where_the_loss_reaches_the_chi_squared_limit():
    """The loss is a parabola that reaches the limit at an offset of 2, between two evaluated
    offsets."""
    offsets = np.array([-4.0, -1.0, 1.0, 3.0])
    known = {
        "names": ("a",),
        "large": False,
        "misfit": lambda logs: logs,
        "loss": lambda misfit: 0.0,
    }
    task = SimpleNamespace(
        **known,
        noise=lambda misfit: 1.0,
        profile_values=lambda best: (offsets, CHI_SQUARED_95 * (offsets[None] / 2) ** 2),
    )
    reach = compute_intervals(task, np.zeros((3, 1)), np.zeros((1, 1)))
    assert reach["a"] == pytest.approx((np.exp(-2), np.exp(2)))


@pytest.mark.parametrize(("width", "known"), [(1.04, True), (1.06, False)])
def test_a_value_is_known_if_the_95_percent_range_of_draws_is_narrow(width, known):
    draws = 10 * (1 + width * np.linspace(-0.5, 0.5, 1001))
    fitted = make_parameter_set(
        find_family("hockney"), Fitted({"alpha.a": np.append(10.0, draws)}, (1, 2))
    )
    assert fitted.values["alpha.a"].known == known


def test_a_set_with_many_draws_is_read(tmp_path):
    values = {"alpha.a": np.array([1.0, 1.5]), "beta.a": np.array([2.0, 2.5])}
    fitted = make_parameter_set(find_family("hockney"), Fitted(values, (1, 2)))
    several = replace(
        fitted, draws={name: tuple(np.linspace(1, 2, 60_000)) for name in fitted.draws}
    )
    text = format_parameters(several)
    assert len(text) > MAX_FILE_BYTES
    (tmp_path / "set.yaml").write_text(text)
    assert len(read_parameters(tmp_path / "set.yaml").draws["beta.a"]) == 60_000
