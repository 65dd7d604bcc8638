"""Sequential sampling: the next point to measure and the chosen alternatives, on machines with
known times."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.advice.sequential_sampling import (
    DEFAULT_WITH_RULES,
    Arm,
    Arms,
    MeasuredStart,
    compute_belief,
    pool_measurements,
)
from commodel.records import LIBRARY, PlacedWorkload
from commodel.stats import MIN_NOISE

SIZES = (8, 1024, 1 << 17)


def arms_of(predictions):
    """Return alternatives a, b, … of a broadcast over 8 ranks at each size, with these
    predictions."""
    rows = [
        Arm(PlacedWorkload("bcast", 8, "block", size), "abcdef"[number], prediction)
        for size, row in zip(SIZES, predictions, strict=True)
        for number, prediction in enumerate(row)
    ]
    return Arms.of(rows)


def measurements(times, noise=MIN_NOISE):
    """Return measurements with these times by alternative, each in a separate start."""
    return [MeasuredStart(arm, seconds, noise) for arm, seconds in times.items()]


def measured(arms, seconds, strategy):
    """Yield the chosen alternatives and the measured times after each measurement, until all
    alternatives are measured."""
    times = {}
    while True:
        belief = compute_belief(arms, measurements(times))
        yield belief.choices(), times
        if len(times) == len(seconds):
            return
        arm = strategy(belief, times)
        times[arm] = seconds[arm]


TIMES = st.lists(
    st.lists(st.floats(1e-6, 1e-2), min_size=3, max_size=3),
    min_size=len(SIZES),
    max_size=len(SIZES),
)


@given(TIMES)
def test_exact_predictions_need_no_measurement(predictions):
    arms = arms_of(predictions)
    seconds = np.array([arm.prediction for arm in arms.arms])
    (chosen, times) = next(measured(arms, seconds, None))
    assert not times
    # logarithms may be equal
    assert seconds[chosen] == pytest.approx(seconds[arms.choose_fastest(seconds)], rel=1e-14)


@given(TIMES, TIMES)
def test_after_all_measurements_the_fastest_alternative_is_chosen_up_to_noise(predictions, times):
    arms = arms_of(predictions)
    seconds = np.array([arm.prediction for arm in arms_of(times).arms])
    *_, (chosen, _) = measured(
        arms, seconds, lambda belief, times: min(set(range(len(seconds))) - set(times))
    )
    assert (np.log(seconds[chosen] / seconds[arms.choose_fastest(seconds)]) < 8 * MIN_NOISE).all()


@given(TIMES, st.floats(0.1, 10))
def test_a_common_slowdown_changes_no_choice_and_no_value_of_measurements(predictions, factor):
    """All predictions are multiplied by a factor."""
    arms = arms_of(predictions)
    predicted_choices = compute_belief(arms).choices()
    slower = Arms([Arm(arm.workload, arm.algorithm, factor * arm.prediction) for arm in arms.arms])
    assert (compute_belief(slower).choices() == predicted_choices).all()
    assert compute_belief(slower).worth() == pytest.approx(compute_belief(arms).worth(), abs=1e-9)


def test_one_measurement_moves_the_neighbours_too():
    """The measured alternative takes twice as long as predicted, so the other one is chosen at the
    neighbouring sizes, too."""
    arms = arms_of([[1e-5, 1e-5], [2e-5, 2e-5], [3e-4, 3e-4]])
    belief = compute_belief(arms, measurements({2: 4e-5}))
    assert [arms.arms[arm].algorithm for arm in belief.choices()] == ["b", "b", "b"]


def test_the_next_point_is_where_the_choice_is_open():
    """At one size both alternatives have similar predictions; at the other sizes one takes a
    hundred times as long."""
    arms = arms_of([[1e-5, 1e-3], [2e-5, 2.1e-5], [3e-4, 3e-2]])
    (first,) = compute_belief(arms).next_points(1)
    assert arms.arms[first].workload.bytes == 1024
    everything = compute_belief(arms).next_points(6)
    assert len({arms.workload[arm] for arm in everything}) == len(everything) <= 3


def test_a_slow_measurement_gives_way_to_one_as_telling():
    arms = arms_of([[1e-5, 1e-5], [2e-5, 2e-5], [3e-4, 3e-4]])
    costs = np.ones(6)
    costs[compute_belief(arms).next_points(1)] = 100
    assert costs[compute_belief(arms).next_points(1, costs)] == 1


def test_expected_regret_equals_the_mean_regret_of_machines_drawn_from_the_belief():
    """Over machines drawn from the belief, the chosen alternative is slower than the fastest by the
    expected regret."""
    arms = arms_of([[1e-5, 1.1e-5, 2e-5], [2e-5, 1.8e-5, 3e-5], [3e-4, 2.7e-4, 3e-4]])
    belief = compute_belief(arms, measurements({1: 1.5e-5}))
    random = np.random.default_rng(7)
    logs = random.multivariate_normal(belief.mean, belief.covariance, 4000)
    chosen = logs[:, belief.choices()] - np.minimum.reduceat(logs, arms.first, axis=1)
    assert belief.regret(draws=4000) == pytest.approx(np.exp(chosen).mean(axis=0) - 1, rel=0.15)


@pytest.mark.parametrize(("rough", "points"), [(0.3, 28), (0.5, 14), (0.5, 21), (0.5, 28)])
def test_expected_regret_is_right_within_a_third_for_residuals_unrelated_to_size(rough, points):
    """The residuals are independent of size, contrary to the belief, which learns their magnitude
    from measurements. On average the true regret equals the expected regret within a third."""
    random = np.random.default_rng(1)
    sizes = [64 << 2 * step for step in range(7)]
    arms = Arms.of(
        Arm(PlacedWorkload("bcast", 8, "block", size), name, 1e-5 + 1e-8 * size)
        for size in sizes
        for name in "abcdefgh"
    )
    expected, true = [], []
    for _ in range(30):
        seconds = np.exp(arms.prior_mean + rough * random.standard_normal(len(arms.arms)))
        times = {}
        while len(times) < points:
            times |= {
                arm: seconds[arm]
                for arm in compute_belief(arms, measurements(times)).next_points(
                    len(sizes), without=times
                )
            }
        belief = compute_belief(arms, measurements(times))
        expected.append(belief.regret().mean())
        true.append(np.mean(seconds[belief.choices()] / seconds[arms.choose_fastest(seconds)]) - 1)
    assert 3 / 4 < np.mean(true) / np.mean(expected) < 4 / 3


def test_fewer_points_than_by_lot():
    """Predictions of each algorithm are wrong by a constant factor. Selecting points by `worth`
    reduces the regret faster than selecting at random."""
    random = np.random.default_rng(3)
    ratios = []
    for _ in range(6):
        base = np.geomspace(1e-5, 1e-3, len(SIZES))[:, None] * np.exp(
            0.3 * random.standard_normal((len(SIZES), 5))
        )
        factor = np.exp(0.8 * random.standard_normal(5))
        arms, truth = arms_of(base.tolist()), arms_of((base * factor).tolist())
        seconds = np.array([arm.prediction for arm in truth.arms])

        def areas(strategy, arms=arms, seconds=seconds):
            best = seconds[arms.choose_fastest(seconds)]
            return np.mean(
                [
                    np.mean(seconds[chosen] / best) - 1
                    for chosen, _ in measured(arms, seconds, strategy)
                ]
            )

        worth_regret = areas(
            lambda belief, times: max(set(range(15)) - set(times), key=belief.worth().__getitem__)
        )
        random_regret = np.mean(
            [
                areas(lambda belief, times: int(random.choice(sorted(set(range(15)) - set(times)))))
                for _ in "ab"
            ]
        )
        ratios.append(worth_regret / random_regret)
    assert np.mean(ratios) < 0.8


def test_the_library_s_own_choice_is_trusted_in_least():
    predictions = [(10, 1e-5), (10, 1e-5)]
    workload = PlacedWorkload("bcast", 8, "block", 8)
    arms = Arms.of(
        [Arm(workload, "a", predictions[0][1]), Arm(workload, LIBRARY, predictions[1][1])]
    )
    variance = dict(
        zip(
            (arm.algorithm for arm in arms.arms),
            np.diag(compute_belief(arms).covariance),
            strict=True,
        )
    )
    assert variance[LIBRARY] > variance["a"]


def test_of_two_that_seem_alike_the_one_that_was_measured_is_taken():
    """The unmeasured alternative has a prediction that is lower by 1 %, which is less than its
    uncertainty."""
    arms = Arms.of(
        [
            Arm(PlacedWorkload("bcast", 8, "block", 64), name, prediction)
            for name, prediction in (("a", 1e-5), ("b", 0.99e-5))
        ]
    )
    assert [arms.arms[arm].algorithm for arm in compute_belief(arms).choices()] == ["b"]
    assert [
        arms.arms[arm].algorithm for arm in compute_belief(arms, measurements({0: 1e-5})).choices()
    ] == ["a"]


def test_a_point_that_was_measured_badly_counts_less_and_is_measured_again():
    """Both alternatives have equal predictions. The first one takes twice as long, measured with
    high or low noise."""
    arms = arms_of([(1e-3, 1e-3)] * len(SIZES))
    sure, unsure = (
        compute_belief(arms, measurements({0: 2e-3}, error)) for error in (MIN_NOISE, 0.5)
    )
    assert abs(unsure.mean[0] - arms.prior_mean[0]) < 0.8 * abs(sure.mean[0] - arms.prior_mean[0])
    assert 0 not in sure.next_points(len(arms.arms), 1.0)
    assert 0 in unsure.next_points(
        len(arms.arms), np.where(np.arange(len(arms.arms)) == 0, 1e-3, 1.0)
    )


def test_two_measurements_of_one_arm_are_pooled_by_inverse_variance():
    seconds, error = pool_measurements((1.0, 0.1), (4.0, 0.2))
    assert seconds == pytest.approx(4 ** (1 / 5))
    assert error == pytest.approx(0.2 / 5**0.5)


def test_workloads_that_are_left_alone_together_by_hand():
    """A broadcast without rules takes 1 · 8, with the best rules 2 · 3: both workloads get rules,
    although the first one is faster without."""
    times = {
        "bcast": [(1.0, 2.0, 5.0), (8.0, 4.0, 3.0)],
        "reduce": [(1.0, 2.0, 3.0), (4.0, 8.0, 5.0)],
    }
    workloads = {
        PlacedWorkload(name, 8, "block", size): row
        for name, rows in times.items()
        for size, row in zip((8, 64), rows, strict=True)
    }
    arms = Arms.of(
        Arm(workload, way, seconds)
        for workload, row in workloads.items()
        for way, seconds in zip((LIBRARY, "ring", DEFAULT_WITH_RULES), row, strict=True)
    )
    logs = np.log([arm.prediction for arm in arms.arms])
    assert arms.groups.tolist() == [0, 2]
    assert np.exp(arms.minimum_times(logs)) == pytest.approx([6, 4])
    assert [arms.arms[arm].algorithm for arm in arms.choose_fastest(logs)] == [
        "ring",
        DEFAULT_WITH_RULES,
        LIBRARY,
        LIBRARY,
    ]
    belief = compute_belief(arms, measurements(dict(enumerate(np.exp(logs)))))
    assert belief.choices().tolist() == arms.choose_fastest(logs).tolist()
    assert belief.regret().max() < 0.02
    assert belief.worth().max() < 1e-4


def test_measurements_that_no_start_repeats_are_trusted_less():
    arms = arms_of([[1e-5, 2e-5, 1.5e-5]] * 3)
    off = (1, 1.4, 0.8, 1.3, 0.75)
    steady, unsteady = (
        compute_belief(
            arms, [MeasuredStart(0, 1e-5 * (1 + spread * (factor - 1))) for factor in off]
        ).noise[1]
        for spread in (0, 1)
    )
    assert steady < 0.2 < unsteady


def test_measured_ties_reduce_the_predicted_slowdown_of_an_unmeasured_alternative():
    """The predictions double from one alternative to the next. The first five measured times are
    equal at each size."""
    arms = arms_of([[1e-5, 2e-5, 4e-5, 8e-5, 16e-5, 32e-5]] * 3)
    belief = compute_belief(arms, measurements({arm: 4e-5 for arm in range(18) if arm % 6 < 5}))
    assert belief.mean[5] - np.log(4e-5) < 0.1 * np.log(8)


def test_an_algorithm_with_another_argument_is_off_by_less():
    workload = PlacedWorkload("bcast", 8, "block", 1 << 16)
    arms = Arms.of(Arm(workload, name, 1e-4) for name in ("chain:256B", "chain:512B", "linear"))
    number = {arm.algorithm: number for number, arm in enumerate(arms.arms)}
    shift = compute_belief(arms, measurements({number["chain:256B"]: 4e-4})).mean - arms.prior_mean
    assert shift[number["chain:256B"]] > shift[number["chain:512B"]] > shift[number["linear"]] + 0.1
