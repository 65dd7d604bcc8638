"""A fit of model `shares` to a table of a machine with several ranks a node, whose values are known."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.fits.prior_search import select_sample
from commodel.fits.table_fits import fit_measured
from commodel.models.parameter_sets import make_given_set
from commodel.patterns.points import PlatformResources, make_point
from commodel.predictions.predictions import predict
from commodel.records import Statistic

TRUE_VALUES = {
    "o_s": 2e-7,
    "o_r": 3e-7,
    "L.node.a": 2e-7,
    "G.node.a": 1e-10,
    "L.beyond.a": 8e-7,
    "G.beyond.a": 8e-11,
    "c_out.node.a": 4e-11,
    "c_inside.node.a": 2.5e-11,
    "gamma.a": 0.0,
    "gamma.b": 1.5e-10,
    "S": 16384.0,
    "S_inside": 4096.0,
}
RANKS_PER_NODE = 6
ALTERNATIVES = {
    "bcast": ("binomial", "linear"),
    "reduce": ("linear", "binomial"),
    "allreduce": ("ring", "recursive-doubling"),
    "alltoall": ("pairwise",),
    "allgather": ("ring",),
    "gather": ("linear",),
}


def make_set(values):
    units = {"o": "s", "L": "s", "G": "s/B", "c": "s/B", "S": "B"}
    texts = [
        f"{name}={value}{units.get(name[0], '')}" for name, value in values.items() if not name.startswith("gamma")
    ]
    return make_given_set("shares", [*texts, "gamma.a=0s", f"gamma.b={values['gamma.b']}s/B"])


def list_points(counts, per_node=RANKS_PER_NODE, statistic=Statistic.RANK_MEAN):
    axes = {"layout": f"block:{per_node}"}
    return [
        replace(
            make_point(
                PlatformResources.unlimited(),
                {"operation": operation, "algorithm": algorithm, "ranks": ranks, "bytes": size, **axes},
            ),
            statistic=statistic,
        )
        for operation, algorithms in ALTERNATIVES.items()
        for algorithm in algorithms
        for ranks in counts
        for size in (8, 2048, 8192, 1 << 18)
    ]


@pytest.fixture(scope="module")
def truth():
    return make_set(TRUE_VALUES)


def measure(truth, points, seed=0):
    times = np.array([row.seconds for row in predict(truth, points, draws=0)])
    return times * np.exp(0.03 * np.random.default_rng(seed).standard_normal(len(times)))


@pytest.fixture(scope="module")
def fitted(truth):
    points = list_points((2, 6, 12, 24))
    return fit_measured(points, measure(truth, points), "shares", "t.csv")


def test_known_values_are_found_again(fitted):
    """What several links and overheads share is determined in sum."""
    values = fitted.numbers
    for name in ("c_out.node.a", "c_inside.node.a", "gamma.b"):
        assert values[name] == pytest.approx(TRUE_VALUES[name], rel=0.15), name
    assert values["S"] in (8192, 16384, 32768)
    for name in ("L", "G"):
        assert (
            fitted.values[f"{name}.node.a"].low < TRUE_VALUES[f"{name}.node.a"] < fitted.values[f"{name}.node.a"].high
        )


@pytest.mark.parametrize("statistic", [Statistic.COMPLETION, Statistic.RANK_MEAN])
def test_twice_the_ranks_are_predicted_also_in_another_statistic(truth, fitted, statistic):
    points = list_points((48,), statistic=statistic)
    predicted = np.array([row.seconds for row in predict(fitted, points)])
    errors = np.abs(np.log(predicted / measure(truth, points, 1)))
    assert np.exp(np.median(errors)) < 1.1
    assert np.exp(errors.max()) < 2


@pytest.mark.slow
def test_the_start_does_not_matter(truth, fitted):
    points = list_points((2, 6, 12, 24))
    times, further_points = measure(truth, points), list_points((48,))
    expected = [row.seconds for row in predict(fitted, further_points, draws=0)]
    other = fit_measured(points, times, "shares", "t.csv", seed=2)
    ratios = np.log([row.seconds for row in predict(other, further_points, draws=0)]) - np.log(expected)
    assert np.exp(np.median(np.abs(ratios))) < 1.05


def test_without_a_distance_its_values_are_missing(truth):
    """One rank a node: nothing is known of messages within a node, and a prediction of them says so."""
    points = list_points((2, 4, 8, 16), per_node=1)
    parameters = fit_measured(points, measure(truth, points), "shares", "t.csv")
    assert not [name for name in parameters.numbers if ".node." in name and not name.startswith("c_out")]
    (row,) = predict(parameters, list_points((24,))[:1], strict=False)
    assert "not probed: ranks in same node" in row.validity_text


def test_fewer_points_than_values_are_refused():
    with pytest.raises(UserError, match="family shares: found 4 points, wanted more than its 8 values"):
        fit_measured(list_points((24,))[:4], [1e-5] * 4, "shares", "t.csv")


def test_a_sample_has_the_wanted_size_and_no_point_of_very_many_messages():
    points = list_points((2, 24, 96))
    sample = select_sample(points, 40, 3000, np.random.default_rng(0))
    assert 10 < len(sample) <= 40
    assert len(set(sample)) == len(sample)
    assert all((points[number].operation, points[number].ranks) != ("alltoall", 96) for number in sample)
