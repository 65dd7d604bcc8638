"""Fits of models `shares` and `taulop` to tables of a machine with several ranks a node, whose
values are known."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.fits.prior_search import count_messages, select_sample
from commodel.fits.table_fits import fit_measured
from commodel.models.parameter_sets import make_given_set
from commodel.patterns.build import build_schedule
from commodel.patterns.points import PlatformResources, make_point
from commodel.predictions.predictions import predict
from commodel.records import Statistic
from tests.patterns.catalogue import point

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
    "O_s.b": 1.5e-10,
    "O_r.b": 2e-10,
    "gamma.b": 1.5e-10,
    "S": 16384.0,
    "S_inside": 2048.0,
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
    units = {"o": "s", "L": "s", "S": "B", "H": "B"}
    texts = [
        f"{name}={value}{units.get(name[0], 's/B')}"
        for name, value in values.items()
        if name != "gamma.a"
    ]
    return make_given_set("shares", [*texts, *(f"{name}.a=0s" for name in ("O_s", "O_r", "gamma"))])


def list_points(
    counts,
    per_node=RANKS_PER_NODE,
    statistic=Statistic.RANK_MEAN,
    alternatives=ALTERNATIVES,
    sizes=(8, 2048, 8192, 1 << 18),
):
    axes = {"layout": f"block:{per_node}"}
    return [
        replace(
            make_point(
                PlatformResources.unlimited(),
                {
                    "operation": operation,
                    "algorithm": algorithm,
                    "ranks": ranks,
                    "bytes": size,
                    **axes,
                },
            ),
            statistic=statistic,
        )
        for operation, algorithms in alternatives.items()
        for algorithm in algorithms
        for ranks in counts
        for size in sizes
    ]


@pytest.fixture(scope="module")
def truth():
    return make_set(TRUE_VALUES)


def measure(truth, points, seed=0, noise=0.03):
    times = np.array([row.seconds for row in predict(truth, points, draws=0)])
    return times * np.exp(noise * np.random.default_rng(seed).standard_normal(len(times)))


@pytest.fixture(scope="module")
def fitted(truth):
    points = list_points((2, 6, 12))
    return fit_measured(points, measure(truth, points), "shares", "t.csv")


def test_known_values_are_found_again(fitted):
    """What several links and overheads share is determined in sum."""
    values = fitted.numbers
    for name in ("c_out.node.a", "c_inside.node.a", "gamma.b"):
        assert values[name] == pytest.approx(TRUE_VALUES[name], rel=0.15), name
    assert values["S"] in (8192, 16384, 32768)
    for name in ("L", "G"):
        assert (
            fitted.values[f"{name}.node.a"].low
            < TRUE_VALUES[f"{name}.node.a"]
            < fitted.values[f"{name}.node.a"].high
        )


@pytest.mark.parametrize("statistic", [Statistic.COMPLETION, Statistic.RANK_MEAN])
def test_twice_the_ranks_are_predicted_also_in_another_statistic(truth, fitted, statistic):
    points = list_points((24,), statistic=statistic)
    predicted = np.array([row.seconds for row in predict(fitted, points)])
    errors = np.abs(np.log(predicted / measure(truth, points, 1)))
    assert np.exp(np.median(errors)) < 1.1
    assert np.exp(errors.max()) < 2


FEW_ROOTED = {
    "allreduce": ("ring", "recursive-doubling"),
    "alltoall": ("pairwise",),
    "allgather": ("ring",),
    "bcast": ("binomial",),
    "gather": ("linear",),
}


@pytest.fixture(scope="module")
def noisy_table(truth):
    """Few points depend on the eager limits, and all times are uncertain by 10 %."""
    points = list_points(
        (6, 12), alternatives=FEW_ROOTED, sizes=[1024 << power for power in range(6)]
    )
    return points, measure(truth, points, 1, noise=0.1)


def test_eager_limits_are_found_where_few_points_show_them(noisy_table):
    points, times = noisy_table
    fitted = fit_measured(points, times, "shares", "t.csv")
    for name in ("S", "S_inside"):
        assert fitted.numbers[name] == TRUE_VALUES[name], name
        assert fitted.values[name].low <= TRUE_VALUES[name] < fitted.values[name].high, name


def test_eager_limits_beyond_the_messages_of_the_points_are_missing(truth):
    points = list_points(
        (2, 6, 12), alternatives={"allreduce": ("recursive-doubling",)}, sizes=(8, 32, 64, 128)
    )
    fitted = fit_measured(points, measure(truth, points), "shares", "t.csv")
    assert "S" not in fitted.numbers
    assert "do not depend on it" in fitted.missing["S"]


def test_points_whose_messages_differ_in_size_show_no_eager_limits(truth):
    patterns = {"allgather": ("recursive-doubling",), "reduce-scatter": ("recursive-halving",)}
    points = list_points((16, 32), alternatives=patterns, per_node=1)
    fitted = fit_measured(points, measure(truth, points), "shares", "t.csv")
    assert not {"S", "S_inside"} & fitted.values.keys()
    errors = np.log([row.seconds for row in predict(fitted, points)]) - np.log(
        measure(truth, points)
    )
    assert np.exp(np.median(np.abs(errors))) < 1.2


@pytest.mark.slow
def test_the_start_does_not_matter(noisy_table):
    points, times = noisy_table
    further_points = list_points((48,))
    fits = [fit_measured(points, times, "shares", "t.csv", seed=seed) for seed in range(10)]
    logs = np.log(
        [[row.seconds for row in predict(fitted, further_points, draws=0)] for fitted in fits]
    )
    differences = np.abs(logs - np.median(logs, axis=0))
    assert np.exp(np.median(differences)) < 1.05
    assert np.exp(differences.max()) < 1.5


EAGER = {name: value for name, value in TRUE_VALUES.items() if not name.startswith("S")}


@pytest.mark.parametrize("values", [EAGER, TRUE_VALUES], ids=["eager", "with eager limits"])
def test_short_messages_show_how_many_a_port_takes_in_a_second(values):
    """Each message occupies the port of its node for 2,000 bytes besides its own. With eager
    limits, the search from typical values ends beside these."""
    truth = make_set(values | {"H": 2000.0})
    alternatives = {"alltoall": ("linear", "pairwise"), "bcast": ("binomial", "linear")}
    sizes = 8, 512, 8192, 1 << 17
    points = list_points((12, 24), per_node=12, alternatives=alternatives, sizes=sizes)
    fitted = fit_measured(points, measure(truth, points), "shares", "t.csv")
    assert fitted.numbers["H"] == pytest.approx(2000, rel=0.2)


def test_local_work_that_no_rank_does_keeps_its_typical_time(truth):
    points = list_points((6, 12), alternatives={"alltoall": ("linear", "pairwise")})
    fitted = fit_measured(points, measure(truth, points), "shares", "t.csv")
    assert fitted.numbers["gamma.b"] == pytest.approx(2e-10)
    assert "not identifiable" in fitted.values["gamma.b"].note


def test_copies_alone_show_the_time_of_local_work(truth):
    points = list_points((6, 12), alternatives={"alltoall": ("bruck", "pairwise")})
    fitted = fit_measured(points, measure(truth, points), "shares", "t.csv")
    assert fitted.numbers["gamma.b"] == pytest.approx(TRUE_VALUES["gamma.b"], rel=0.3)


def test_without_a_distance_its_values_are_missing(truth):
    """One rank a node: nothing is known of messages within a node, and a prediction of them says
    so."""
    points = list_points((2, 4, 8), per_node=1)
    parameters = fit_measured(points, measure(truth, points), "shares", "t.csv")
    assert not [
        name for name in parameters.numbers if ".node." in name and not name.startswith("c_out")
    ]
    (row,) = predict(parameters, list_points((24,))[:1], strict=False)
    assert "not probed: ranks in same node" in row.validity_text


def test_fewer_points_than_values_are_refused():
    with pytest.raises(
        UserError, match="model shares: found 4 points, wanted more than its 11 values of messages"
    ):
        fit_measured(list_points((24,))[:4], [1e-5] * 4, "shares", "t.csv")


def test_a_sample_has_the_wanted_size_and_no_point_of_very_many_messages():
    points = list_points((2, 24, 96))
    sample = select_sample(points, 40, 3000, np.random.default_rng(0))
    assert 10 < len(sample) <= 40
    assert len(set(sample)) == len(sample)
    assert all(
        (points[number].operation, points[number].ranks) != ("alltoall", 96) for number in sample
    )


def test_messages_are_counted_for_each_point():
    points = [
        *list_points((2, 24)),
        *(point("bcast", "chain:1KiB", ranks=4, bytes=size) for size in (8, 4096, 65536)),
    ]
    expected = [max(build_schedule(each).messages, 1) for each in points]
    assert count_messages(points).tolist() == expected


TAULOP_VALUES = {
    "o_0.a": "0.4us",
    "p_0": "0.15us",
    "o_1.a": "1.5us",
    "p_1": "0.6us",
    "L_0.1048576x1": "80us",
    "L_0.1048576x6": "150us",
    "L_1.1048576x1": "100us",
    "L_1.1048576x6": "400us",
    "gamma.b": "0.15ns/B",
}


@pytest.fixture(scope="module")
def taulop():
    origins = [f"L_{channel}.0x{level}=0s" for channel in (0, 1) for level in (1, RANKS_PER_NODE)]
    texts = [*(f"{name}={value}" for name, value in TAULOP_VALUES.items()), *origins, "gamma.a=0s"]
    return make_given_set("taulop", texts).with_settings(shared="port")


@pytest.fixture(scope="module")
def taulop_table(taulop):
    points = list_points((2, 6, 12), statistic=Statistic.COMPLETION)
    return points, measure(taulop, points)


def test_values_of_taulop_are_found_again(taulop, taulop_table):
    fitted = fit_measured(*taulop_table, "taulop", "t.csv")
    for name in TAULOP_VALUES:
        assert fitted.numbers[name] == pytest.approx(taulop.numbers[name], rel=0.15), name
    further = list_points((48,), statistic=Statistic.COMPLETION)
    logs = np.log(
        [row.seconds for row in predict(fitted, further)] / measure(taulop, further, noise=0)
    )
    assert np.exp(np.abs(logs).max()) < 1.1


@pytest.mark.slow
def test_the_start_of_taulop_does_not_matter(taulop_table):
    fits = [fit_measured(*taulop_table, "taulop", "t.csv", seed=seed) for seed in range(10)]
    further = list_points((48,), statistic=Statistic.COMPLETION)
    logs = np.log([[row.seconds for row in predict(fitted, further, draws=0)] for fitted in fits])
    assert np.exp(np.ptp(logs, axis=0).max()) < 1.02


def test_one_rank_a_node_says_nothing_of_transfers_within_nodes(taulop):
    points = list_points((2, 4, 8), per_node=1, statistic=Statistic.COMPLETION)
    fitted = fit_measured(points, measure(taulop, points), "taulop", "t.csv")
    assert not [name for name in fitted.numbers if name.startswith(("o_0", "L_0", "p_0"))]
