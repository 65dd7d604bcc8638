"""The combined prediction: weights from held-out points, statistical ties, and the regret of its choices."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.compare.combined_prediction import (
    MIN_POINTS_OF_OPERATION,
    ModelWeight,
    arrange_weights,
    choose_alternatives,
    combine_predictions,
    compute_expected_regret,
    find_pareto_front,
    summarize_recommended_choices,
    weigh_models,
)
from commodel.predictions.validity import Validity, ValidityKind
from commodel.records import LIBRARY


def rows(family, ratios, operation="reduce", groups=None, validity="valid"):
    """Return held-out rows of a model with these ratios of predicted to measured time."""
    groups = groups or list(range(len(ratios)))
    measured = 1e-5 * (1 + np.arange(len(ratios)))
    frame = pd.DataFrame({"measured": measured, "predicted": measured * np.array(ratios), "workload": groups})
    return frame.assign(
        family=family, operation=operation, validity=validity, mu=np.maximum(ratios, 1 / np.array(ratios))
    )


def test_a_family_that_errs_twice_as_much_counts_a_quarter():
    held_out = pd.concat([rows("one", np.exp([0.1, -0.1] * 3)), rows("two", np.exp([0.2, -0.2] * 3))])
    trusted = weigh_models(["one", "two"], held_out, "reduce")
    assert trusted["one"].weight == pytest.approx(0.8)
    assert trusted["two"].weight == pytest.approx(0.2)
    assert trusted["two"].error == pytest.approx(0.2)


def test_enough_points_of_the_operation_decide_alone():
    held_out = pd.concat([rows("one", [1.1] * MIN_POINTS_OF_OPERATION), rows("one", [9.0] * 50, operation="bcast")])
    assert weigh_models(["one"], held_out, "reduce")["one"].error == pytest.approx(np.log(1.1))
    assert weigh_models(["one"], held_out.iloc[1:], "reduce")["one"].points == MIN_POINTS_OF_OPERATION - 1 + 50


def test_predictions_with_weight_0_do_not_count():
    held_out = pd.concat([rows("one", [1.2] * 6), rows("one", [50.0] * 6, validity="size not modelled: valid for 8 B")])
    assert weigh_models(["one"], held_out, "reduce")["one"].error == pytest.approx(np.log(1.2))


def test_errors_of_extrapolated_predictions_reduce_the_weight_of_a_model():
    """Otherwise a model that is right at few valid points would have more weight than models valid everywhere."""
    far = rows("one", [50.0] * 6, validity="extrapolated: far")
    held_out = pd.concat([rows("one", [1.01] * 6), far, rows("two", [1.1] * 12)])
    weights = weigh_models(["one", "two"], held_out, "reduce")
    assert weights["one"].weight < 0.01 < weights["two"].weight


def test_where_nothing_was_measured_all_count_alike():
    nothing = rows("other", [1.0])
    trusted = weigh_models(["one", "two"], nothing, "reduce")
    assert [trusted[name].weight for name in ("one", "two")] == [0.5, 0.5]
    assert np.isnan(trusted["one"].error)


def test_a_factor_that_all_alternatives_share_informs_nothing_against_a_choice():
    groups = [0, 0, 0, 1, 1, 1]
    held_out = rows("one", [2.0, 2.0, 2.0, 0.5, 0.5, 0.5], groups=groups)
    trusted = weigh_models(["one"], held_out, "reduce")["one"]
    assert trusted.error == pytest.approx(np.log(2))
    assert trusted.contrast == pytest.approx(0, abs=1e-12)


def test_contrast_recovers_the_spread_of_a_ratio():
    """Each error has σ = 0.1, so the logarithm of a ratio of two predictions has σ = 0.1·√2."""
    rng = np.random.default_rng(3)
    held_out = rows("one", np.exp(0.7 + 0.1 * rng.standard_normal(4000)), groups=list(np.repeat(range(1000), 4)))
    assert weigh_models(["one"], held_out, "reduce")["one"].contrast == pytest.approx(0.1 * np.sqrt(2), rel=0.05)


def test_between_sides_of_a_node_no_error_is_common_to_two_predictions():
    """Each model has an error of 20 %, and its ratios an error of 1 %. Predictions of 1 and 1.3 are distinguished at
    one placement, and statistically tied at two different ones."""
    predictions = {"one": np.array([[1.0, 1.3]]), "two": np.array([[1.0, 1.3]])}
    here, there = (
        {"one": ModelWeight(share, 0.2, 0.01, 9), "two": ModelWeight(1 - share, 0.2, 0.01, 9)} for share in (0.9, 0.2)
    )
    placements = {"here": here, "there": there}
    assert combine_predictions(predictions, arrange_weights(placements, ["here", "here"])).as_good.tolist() == [
        True,
        False,
    ]
    at_two_placements = combine_predictions(predictions, arrange_weights(placements, ["here", "there"]))
    assert at_two_placements.as_good.tolist() == [True, True]
    assert at_two_placements.support.sum() == pytest.approx(1)
    assert combine_predictions(predictions, here).as_good.tolist() == [True, False]


def test_weights_differ_by_placement_and_an_untested_model_has_weight_0():
    predictions = {"one": np.array([[1.0, 1.0]]), "two": np.array([[4.0, 4.0]])}
    measured_weights = {"one": ModelWeight(1.0, 0.1, 0.1, 9), "two": ModelWeight(0.0, np.nan, np.nan, 0)}
    equal_weights = {name: ModelWeight(0.5, np.nan, np.nan, 0) for name in predictions}
    combined = combine_predictions(
        predictions, arrange_weights({"here": measured_weights, "there": equal_weights}, ["here", "there"])
    )
    np.testing.assert_allclose(combined.seconds, [1, 2])
    np.testing.assert_allclose(combined.high, [np.exp(1.96 * 0.1), 2])


SURE = ModelWeight(0.75, 0.0, 0.0, 9), ModelWeight(0.25, 0.0, 0.0, 9)


def test_the_common_prediction_is_the_weighted_geometric_mean():
    predictions = {"one": np.array([[1.0, 4.0]]), "two": np.array([[16.0, 4.0]])}
    combined = combine_predictions(predictions, dict(zip(predictions, SURE, strict=True)))
    assert combined.seconds.tolist() == pytest.approx([2.0, 4.0])
    assert combined.support.tolist() == pytest.approx([0.75, 0.25])
    assert combined.best == 0
    assert combined.behind.tolist() == pytest.approx([0, 1])
    assert combined.as_good.tolist() == [True, False]


def test_alternatives_closer_than_the_usual_error_of_a_model_are_statistically_tied():
    predictions = {"one": np.array([[1.0, 1.1, 2.0]])}
    combined = combine_predictions(predictions, {"one": ModelWeight(1.0, 0.3, 0.1, 20)})
    assert combined.as_good.tolist() == [True, True, False]
    assert combined.high[0] == pytest.approx(np.exp(1.96 * 0.3))


def test_intervals_widen_with_the_doublings_of_extrapolation():
    predictions, weights_by_model = {"one": np.array([[1.0, 1.0]])}, {"one": ModelWeight(1.0, 0.1, 0.0, 20)}
    combined = combine_predictions(predictions, weights_by_model, np.array([0.0, 3.0]))
    widths = np.log(combined.high / combined.low)
    assert widths[1] == pytest.approx(2 * widths[0])


def test_the_larger_of_the_widening_of_a_model_and_the_measured_error_counts():
    """The widening of a model replaces the measured error if the widening is larger; the two are not added."""
    predictions, weights_by_model = {"one": np.array([[1.0, 1.0]])}, {"one": ModelWeight(1.0, 0.1, 0.0, 20)}
    combined = combine_predictions(predictions, weights_by_model, 0.0, {"one": np.array([0.05, 0.3])})
    assert np.log(combined.high).tolist() == pytest.approx([1.96 * 0.1, 1.96 * 0.3])
    assert combined.as_good.tolist() == [True, True]


predictions_of = st.lists(st.floats(1e-6, 1e-2), min_size=2, max_size=8)


@given(predictions_of, st.floats(0.01, 100), st.integers(1, 40))
def test_a_family_that_is_wrong_by_a_constant_factor_ranks_the_same(first, factor, draws):
    rng = np.random.default_rng(1)
    noisy = np.array(first) * np.exp(0.1 * rng.standard_normal((draws, len(first))))
    weights_by_model = dict(zip(("one", "two"), SURE, strict=True))
    plain = combine_predictions({"one": noisy, "two": np.array([first])}, weights_by_model)
    scaled = combine_predictions({"one": noisy, "two": np.array([first]) * factor}, weights_by_model)
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
    """Return rows of a comparison. Each workload is {choice: (measured, {model: prediction})}; the library default has
    no predictions."""
    rows = []
    for number, workload in enumerate(workloads):
        for choice, (measured, predictions) in workload.items():
            is_default = choice == LIBRARY
            for family, prediction in ({"": np.nan} if is_default else predictions).items():
                prediction, validity = prediction if isinstance(prediction, tuple) else (prediction, "valid")
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
                        "family": family,
                        "predicted": prediction,
                        "validity": validity,
                        "held_out": True,
                        "mu": max(prediction / measured, measured / prediction) if prediction else np.nan,
                    }
                )
    return pd.DataFrame(rows)


def workload(sure, unsure, library=6.0):
    """Return a workload in which a takes 2 and b takes 3, with the predictions of both models for (a, b)."""
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
    """Only in the last workload the previously correct model is wrong; no other workload indicates this."""
    chosen = choose_alternatives(study([workload(RIGHT, WRONG)] * 9 + [workload(WRONG, RIGHT)]))
    assert chosen["alternative"].tolist() == ["a"] * 9 + ["b"]
    assert chosen["regret"].tolist() == pytest.approx([0] * 9 + [0.5])


def test_the_default_is_an_alternative():
    """The library default is chosen if its measured time is below the predictions, and it counts as the fastest
    alternative."""
    chosen = choose_alternatives(study([workload(RIGHT, WRONG)] * 5 + [workload(RIGHT, WRONG, library=1.5)]))
    assert chosen["alternative"].tolist() == ["a"] * 5 + [LIBRARY]
    assert chosen["regret"].tolist() == [0] * 6
    assert chosen["fastest"].tolist() == [2.0] * 5 + [1.5]


def test_models_without_weight():
    blind = tuple((prediction, Validity(ValidityKind.SIZE, "valid for 8 B").text) for prediction in WRONG)
    assert choose_alternatives(study([workload(RIGHT, blind)] * 5))["alternative"].tolist() == ["a"] * 5
    free = (0.0, 3.0)
    assert choose_alternatives(study([workload(free, blind)] * 5)).empty
    assert summarize_recommended_choices(choose_alternatives(study([workload(free, blind)] * 5))).empty


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
    combined = combine_predictions(predictions, {"one": ModelWeight(1.0)}, covariance=covariance)
    comparison = combined.compare(0, 1)
    deviation = np.sqrt(0.25 * 2 * 0.01)
    assert comparison.ratio == pytest.approx(1.5)
    assert comparison.low == pytest.approx(1.5 * np.exp(-1.96 * deviation))
    assert comparison.high == pytest.approx(1.5 * np.exp(1.96 * deviation))
    assert comparison.text == "1.5 times [1.31, 1.72] as fast, and faster with probability more than 99 %"
    assert combined.compare(1, 0).probability == pytest.approx(1 - comparison.probability)
    assert combined.high[0] / combined.low[0] > 7
