"""The combined prediction: weights from held-out points, statistical ties, and the regret of its
choices."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.compare.combined_prediction import (
    arrange_weights,
    choose_alternatives,
    combine_predictions,
    compute_expected_regret,
    find_pareto_front,
    summarize_recommended_choices,
    weigh_equally,
)
from commodel.predictions.validity import Validity, ValidityKind
from commodel.records import LIBRARY


def test_models_that_were_not_probed_have_no_weight_if_another_one_was():
    assert weigh_equally(["one", "two", "three"], ["two"]) == {"one": 0.5, "two": 0.0, "three": 0.5}
    assert weigh_equally(["one", "two"], ["one", "two"]) == {"one": 0.5, "two": 0.5}


def test_weights_differ_by_placement():
    predictions = {"one": np.array([[1.0, 1.0]]), "two": np.array([[4.0, 4.0]])}
    weights = {"here": {"one": 1.0, "two": 0.0}, "there": {"one": 0.5, "two": 0.5}}
    combined = combine_predictions(predictions, arrange_weights(weights, ["here", "there"]))
    np.testing.assert_allclose(combined.seconds, [1, 2])
    assert combined.support.sum() == pytest.approx(1)


WEIGHTS = {"one": 0.75, "two": 0.25}


def test_the_common_prediction_is_the_weighted_geometric_mean():
    predictions = {"one": np.array([[1.0, 4.0]]), "two": np.array([[16.0, 4.0]])}
    combined = combine_predictions(predictions, WEIGHTS)
    assert combined.seconds.tolist() == pytest.approx([2.0, 4.0])
    assert combined.support.tolist() == pytest.approx([0.75, 0.25])
    assert combined.best == 0
    assert combined.behind.tolist() == pytest.approx([0, 1])
    assert combined.as_good.tolist() == [True, False]


def test_alternatives_closer_than_the_error_of_their_difference_are_statistically_tied():
    """Both have an error of 30 %, most of which they share."""
    predictions, covariance = (
        {"one": np.array([[1.0, 1.1, 2.0]])},
        np.full((3, 3), 0.085) + 0.005 * np.eye(3),
    )
    combined = combine_predictions(predictions, {"one": 1.0}, covariance)
    assert combined.as_good.tolist() == [True, True, False]
    assert combined.high[0] == pytest.approx(np.exp(1.96 * 0.3), rel=1e-4)


def test_the_larger_of_the_widening_of_a_model_and_the_measured_error_counts():
    """The widening of a model replaces the measured error if the widening is larger; the two are
    not added."""
    predictions, covariance = {"one": np.array([[1.0, 1.0]])}, np.full((2, 2), 0.01)
    combined = combine_predictions(
        predictions, {"one": 1.0}, covariance, {"one": np.array([0.05, 0.3])}
    )
    assert np.log(combined.high).tolist() == pytest.approx([1.96 * 0.1, 1.96 * 0.3], rel=1e-4)
    assert combined.as_good.tolist() == [True, True]


predictions_of = st.lists(st.floats(1e-6, 1e-2), min_size=2, max_size=8)


@given(predictions_of, st.floats(0.01, 100), st.integers(1, 40))
def test_a_family_that_is_wrong_by_a_constant_factor_ranks_the_same(first, factor, draws):
    rng = np.random.default_rng(1)
    noisy = np.array(first) * np.exp(0.1 * rng.standard_normal((draws, len(first))))
    plain = combine_predictions({"one": noisy, "two": np.array([first])}, WEIGHTS)
    scaled = combine_predictions({"one": noisy, "two": np.array([first]) * factor}, WEIGHTS)
    assert np.allclose(plain.behind, scaled.behind)
    assert np.allclose(plain.support, scaled.support)
    assert plain.support.sum() == pytest.approx(1)
    assert plain.behind[plain.best] == 0
    assert plain.as_good[plain.best]
    assert np.all(plain.low <= plain.seconds * (1 + 1e-12))
    assert np.all(plain.high >= plain.seconds * (1 - 1e-12))


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=12))
def test_the_pareto_front_contains_exactly_the_points_that_no_point_dominates(pairs):
    seconds, period = np.array(pairs, dtype=float).T
    on_front = find_pareto_front(seconds, period)
    for place, kept in enumerate(on_front):
        no_worse = (seconds <= seconds[place]) & (period <= period[place])
        better = no_worse & ((seconds < seconds[place]) | (period < period[place]))
        assert kept == (not better.any())


def study(workloads):
    """Return rows of a comparison. Each workload is {choice: (measured, {model: prediction})}; the
    library default has no predictions."""
    rows = []
    for number, workload in enumerate(workloads):
        for choice, (measured, predictions) in workload.items():
            is_default = choice == LIBRARY
            for family, prediction in ({"": np.nan} if is_default else predictions).items():
                prediction, validity = (
                    prediction if isinstance(prediction, tuple) else (prediction, "valid")
                )
                rows.append(
                    {
                        "platform": "here",
                        "simulated": False,
                        "operation": "bcast",
                        "workload": f"workload {number}",
                        "point": f"{number} {choice}",
                        "algorithm": choice,
                        "alternative": choice,
                        "layout": "block:1",
                        "ranks": 8,
                        "leaves": 0,
                        "bytes": 64 << number,
                        "nodes": 8,
                        "waves": 1,
                        "batch": "b",
                        "single_message_ratio": 1.0,
                        "measured": measured,
                        "measured_low": measured,
                        "measured_high": measured,
                        "model": family,
                        "seconds": prediction,
                        "validity": validity,
                        "held_out": True,
                        "mu": max(prediction / measured, measured / prediction)
                        if prediction
                        else np.nan,
                    }
                )
    return pd.DataFrame(rows)


def workload(sure, unsure, library=6.0):
    """Return a workload in which a takes 2 and b takes 3, with the predictions of both models for
    (a, b)."""
    return {
        "a": (2.0, {"sure": sure[0], "unsure": unsure[0]}),
        "b": (3.0, {"sure": sure[1], "unsure": unsure[1]}),
        LIBRARY: (library, {}),
    }


RIGHT, WRONG = (2.0, 3.0), (3.0, 2.0)  # the second prefers b


def test_the_model_that_errs_less_decides():
    chosen = choose_alternatives(study([workload(RIGHT, WRONG)] * 5))
    assert chosen["alternative"].tolist() == ["a"] * 5
    (row,) = summarize_recommended_choices(chosen).to_dict("records")
    assert (row["workloads"], row["right"], row["regret_max"]) == (5, 1.0, 0.0)
    assert row["gain"] == row["largest_gain"] == pytest.approx(3)


def test_weights_for_the_choice_in_a_workload_exclude_the_times_of_the_workload():
    """Only in the last workload the previously correct model is wrong; no other workload indicates
    this."""
    chosen = choose_alternatives(study([workload(RIGHT, WRONG)] * 9 + [workload(WRONG, RIGHT)]))
    assert chosen["alternative"].tolist() == ["a"] * 9 + ["b"]
    assert chosen["regret"].tolist() == pytest.approx([0] * 9 + [0.5])


def test_the_default_is_an_alternative():
    """The library default is chosen if its measured time is below the predictions, and it counts as
    the fastest alternative."""
    chosen = choose_alternatives(
        study([workload(RIGHT, WRONG)] * 5 + [workload(RIGHT, WRONG, library=1.5)])
    )
    assert chosen["alternative"].tolist() == ["a"] * 5 + [LIBRARY]
    assert chosen["regret"].tolist() == [0] * 6
    assert chosen["fastest"].tolist() == [2.0] * 5 + [1.5]


def test_models_without_weight():
    blind = tuple(
        (prediction, Validity(ValidityKind.SIZE, "valid for 8 B").text) for prediction in WRONG
    )
    assert (
        choose_alternatives(study([workload(RIGHT, blind)] * 5))["alternative"].tolist()
        == ["a"] * 5
    )
    free = (0.0, 3.0)
    assert choose_alternatives(study([workload(free, blind)] * 5)).empty
    assert summarize_recommended_choices(
        choose_alternatives(study([workload(free, blind)] * 5))
    ).empty


def test_one_alternative_is_no_choice():
    one = {"a": workload(RIGHT, WRONG)["a"], LIBRARY: (6.0, {})}
    assert choose_alternatives(study([one] * 5)).empty


def test_expected_regret_is_that_of_the_closed_form():
    """For x ~ N(0, σ²), E[max(exp(x), 1)] − 1 = Φ(σ)·exp(σ²/2) − 1/2."""
    deviation = 0.5
    regret = compute_expected_regret(np.zeros(2), np.diag([deviation**2, 0.0]))
    normal = 0.5 * (1 + math.erf(deviation / math.sqrt(2)))
    assert regret == pytest.approx([normal * math.exp(deviation**2 / 2) - 0.5] * 2, rel=0.1)


def test_an_error_common_to_all_alternatives_has_no_regret():
    regret = compute_expected_regret(np.log([1.0, 2.0]), np.ones((2, 2)))
    assert regret == pytest.approx([0.0, 1.0], abs=1e-3)


def test_errors_that_two_alternatives_share_do_not_blur_their_comparison():
    """Both are uncertain by a factor of 2.7, but 0.99 of that variance is shared."""
    covariance = 0.25 * np.array([[1.0, 0.99], [0.99, 1.0]])
    predictions = {"one": np.array([[1.0, 1.5]])}
    combined = combine_predictions(predictions, {"one": 1.0}, covariance=covariance)
    comparison = combined.compare(0, 1)
    deviation = np.sqrt(0.25 * 2 * 0.01)
    assert comparison.ratio == pytest.approx(1.5)
    assert comparison.low == pytest.approx(1.5 * np.exp(-1.96 * deviation))
    assert comparison.high == pytest.approx(1.5 * np.exp(1.96 * deviation))
    assert (
        comparison.text
        == "1.5 times [1.31, 1.72] as fast, and faster with probability more than 99 %"
    )
    assert combined.compare(1, 0).probability == pytest.approx(1 - comparison.probability)
    assert combined.high[0] / combined.low[0] > 7
