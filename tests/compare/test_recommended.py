"""The recommended prediction: weights, local correction, interval, and independence of the point's
own measured time."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.networks import add_intervals
from commodel.advice.recommended_times import ModelTimes, recommend
from commodel.compare.baselines import summarize_baselines
from commodel.compare.combined_prediction import choose_alternatives
from commodel.compare.recommended import (
    RECOMMENDED,
    Recommender,
    evaluate_recommended,
    recommend_rows,
    summarize_recommended,
)
from commodel.files.tables import COMPARISON, add_default_columns, read_table
from commodel.patterns.points import PlatformResources, make_point
from commodel.predictions.places import Places
from commodel.predictions.validity import have_weight
from commodel.stats import NORMAL_QUANTILE

SIZES = [8, 64, 512, 4096, 32768, 262144]
CHOICES = ["linear", "binomial", "chain"]


def rows(errors, sizes=SIZES, ranks=(4, 8, 16), seed=0):
    """Return held-out rows of models. `errors`: by model, a function of (choice, bytes, ranks,
    random number) that returns the logarithm of predicted over measured time."""
    rng, table = np.random.default_rng(seed), []
    for count in ranks:
        for size in sizes:
            for place, choice in enumerate(CHOICES):
                measured = 1e-5 * count * (1 + size / 1e4) * (1 + place)
                noise = float(rng.standard_normal())
                labels = {
                    "operation": "bcast",
                    "alternative": choice,
                    "algorithm": choice,
                    "layout": "block:1",
                }
                labels |= {
                    "ranks": count,
                    "leaves": 0,
                    "bytes": size,
                    "nodes": count,
                    "waves": 1,
                    "batch": f"b{count}",
                }
                labels |= {
                    "workload": f"bcast {count} {size}",
                    "point": f"{count} {size} {choice}",
                    "platform": "p",
                }
                labels |= {
                    "simulated": False,
                    "measured": measured,
                    "held_out": True,
                    "validity": "valid",
                }
                labels |= {
                    "measured_low": measured,
                    "measured_high": measured,
                    "single_message_ratio": 1.0,
                }
                for name, error in errors.items():
                    predicted = measured * np.exp(error(choice, size, count, noise))
                    mu = max(predicted / measured, measured / predicted)
                    times = {"seconds": predicted, "low": predicted, "high": predicted}
                    table.append(
                        labels
                        | times
                        | {"model": name, "mu": mu, "chosen": False, "regret": np.nan}
                    )
    return pd.DataFrame(table).assign(covered=False)


def test_models_that_cancel_share_the_weight_and_a_bad_one_has_none():
    models = {
        "high": lambda *at: 0.2 * at[3],
        "low": lambda *at: -0.2 * at[3],
        "bad": lambda *at: 3 * np.log2(at[1]),
    }
    weights = Recommender.fit(rows(models)).weights
    assert weights["high"] == pytest.approx(weights["low"], abs=0.02)
    assert weights.get("bad", 0.0) < 1e-3
    assert sum(weights.values()) == pytest.approx(1)


def test_a_bias_of_an_algorithm_is_corrected_at_a_workload_that_was_not_measured():
    biased = rows(
        {"one": lambda choice, size, ranks, noise: 0.5 * (choice == "chain") + 0.01 * noise}
    )
    recommended = evaluate_recommended(biased)
    assert recommended["mu"].max() < 1.12 < biased["mu"].max()
    assert (recommended["model"] == RECOMMENDED).all()


def test_a_workload_that_the_heaviest_model_does_not_predict_has_no_recommended_prediction():
    table = rows({"good": lambda *at: 0.01 * at[3], "bad": lambda *at: 1.0 + at[3]})
    lost = (table["model"] == "good") & (table["bytes"] == 8)
    table.loc[lost, ["seconds", "validity"]] = [np.nan, "size not modelled: valid for 1 KiB"]
    recommended = evaluate_recommended(table)
    assert set(recommended["bytes"]) == set(SIZES) - {8}
    assert choose_alternatives(table)["workload"].nunique() == recommended["workload"].nunique()


def test_errors_at_random_are_hardly_corrected():
    table = rows({"one": lambda *at: 0.1 * at[3]})
    recommender = Recommender.fit(table)
    places = Places.of_rows(add_default_columns(table, COMPARISON).drop_duplicates("point"))
    logs = recommender.residuals.predict(places).logs
    assert np.abs(logs).max() < 0.5 * np.abs(recommender.residuals.residuals.logs).max()


def test_the_measured_times_of_a_workload_hardly_change_its_recommended_prediction():
    """Fits do not use them, but the scales of the residual model do: the interval widens."""
    models = {"one": lambda choice, size, ranks, noise: 0.3 * (choice == "chain") + 0.05 * noise}
    table = rows(models)
    changed = table.copy()
    own = changed["workload"] == "bcast 8 512"
    changed.loc[own, "measured"] *= 7.0
    before, after = (evaluate_recommended(part).set_index("point") for part in (table, changed))
    own_points = before.index[before["workload"] == "bcast 8 512"]
    change = np.log(after.loc[own_points, "seconds"] / before.loc[own_points, "seconds"])
    assert change.abs().max() < 0.1
    assert not after.loc[own_points, "covered"].any()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.floats(0, 1), st.floats(-1, 1), st.sampled_from([1, 8, 1 << 24]))
def test_the_recommended_prediction_lies_inside_the_prediction_interval(seed, scatter, bias, size):
    models = {
        "one": lambda *at: bias + scatter * at[3],
        "two": lambda *at: bias * (at[0] == "chain"),
    }
    recommender = Recommender.fit(rows(models, seed=seed))
    recommended = recommend_rows(
        recommender, rows(models, sizes=[size], ranks=(8, 512), seed=seed + 1)
    )
    assert (recommended["low"] <= recommended["seconds"] * (1 + 1e-12)).all()
    assert (recommended["seconds"] <= recommended["high"] * (1 + 1e-12)).all()


def test_recommended_predictions_beyond_measured_ranks_or_sizes_are_extrapolated():
    models = {"one": lambda *at: 0.05 * at[3]}
    recommender = Recommender.fit(rows(models))
    kinds = [
        set(recommend_rows(recommender, rows(models, **beyond))["validity"].str.partition(":")[0])
        for beyond in ({}, {"ranks": (128,)}, {"sizes": [1 << 24]})
    ]
    assert kinds == [{"valid"}, {"extrapolated"}, {"extrapolated"}]


def test_the_summary_has_the_recommended_prediction_then_the_best_model():
    table = rows({"good": lambda *at: 0.02 * at[3], "bad": lambda *at: 0.5 * at[3]})
    summary = summarize_recommended(evaluate_recommended(table), table)
    assert summary["prediction"].tolist() == [RECOMMENDED, "good"]
    assert summary["points"].tolist() == [54, 54]
    assert summary["coverage"][0] > 0.9


def test_baselines_are_summarised_at_the_points_of_the_recommended_prediction():
    """A model that is wrong by one factor for each algorithm is right after one measured point of
    it. The nearest point itself has another size or other ranks."""
    table = rows({"one": lambda choice, *_: 0.5 * CHOICES.index(choice)}).assign(
        topology="", kind="algorithm"
    )
    summary = summarize_baselines(evaluate_recommended(table), table).set_index("prediction")
    assert summary.index.tolist() == ["nearest point", "interpolation", "one × nearest ratio"]
    assert summary["points"].tolist() == [54, 54, 54]
    assert summary.loc["one × nearest ratio", "mu_max"] == pytest.approx(1)
    assert summary.loc["nearest point", "mu_mean"] > 1.1
    assert summary["coverage"].isna().all()


RECORDED = Path(__file__).parent / "recorded"


def test_a_model_with_small_errors_far_beyond_the_data_decides_between_alternatives():
    """A first user's question: measured on 24 to 96 ranks, asked for 768. Recorded from a run on a
    simulated fat tree of 24 nodes with 32 cores: the errors of three models, and their predictions.
    `shares` is wrong by 1.5 %."""
    measured = read_table(RECORDED / "mysim-allgather.csv", COMPARISON)
    asked = pd.read_csv(RECORDED / "mysim-allgather-768.csv")
    recommender = Recommender.fit(measured)
    first = asked[asked["model"] == "shares"]
    resources = PlatformResources("mysim", nodes=24, cores=32)
    workload = {"operation": "allgather", "ranks": 768, "bytes": 65536}
    places = zip(first["alternative"], first["layout"], strict=True)
    points = [
        make_point(resources, workload | {"algorithm": name, "layout": layout})
        for name, layout in places
    ]
    of_models = {}
    for name, rows_of_model in asked.groupby("model"):
        has_weight = have_weight(rows_of_model["validity"])
        seconds = rows_of_model["seconds"].where(has_weight).to_numpy()
        of_models[name] = ModelTimes(
            seconds, rows_of_model["message_seconds"].to_numpy(), list(rows_of_model["validity"])
        )
    predictions, covariance = recommend(recommender, points, of_models)
    times = np.array([prediction.seconds for prediction in predictions])
    ratios = [prediction.high / prediction.low for prediction in predictions]
    assert max(ratios) <= 3
    assert (times / first["seconds"].to_numpy()).max() < 1.1
    difference = np.diag(covariance) + covariance[0, 0] - 2 * covariance[0]
    tied = np.log(times / times[0]) <= NORMAL_QUANTILE * np.sqrt(difference)
    assert times[~tied].min() > 10 * times[0]
    assert times[tied].max() < 1.2 * times[0]


def test_points_of_two_workloads_are_not_compared_with_predictions_without_them():
    assert evaluate_recommended(rows({"one": lambda *at: 0.0}, sizes=[8, 64], ranks=(4,))).empty


def test_one_measured_workload_corrects_its_points_and_widens_all_others():
    """The model predicts one algorithm 1.4 times too fast, and another right."""
    errors = {"one": lambda choice, *at: -np.log(1.4) if choice == "chain" else 0.0}
    table = rows(errors)
    is_known = table["workload"] == "bcast 8 512"
    recommender = Recommender.fit(table[is_known])
    assert recommender is not None
    known = recommend_rows(recommender, table[is_known])
    assert np.abs(np.log(known["seconds"] / known["measured"])).max() < np.log(1.05)
    others = recommend_rows(recommender, table[~is_known])
    assert ((others["low"] <= others["measured"]) & (others["measured"] <= others["high"])).all()
    assert (others["high"] / others["low"]).min() > 1.3
    assert recommender.residuals.find_bases(Places.of_rows(others))[0].of_residuals


def test_without_predictions_there_is_no_recommended_prediction():
    table = rows({"a": lambda *_: 0.1}).assign(seconds=np.nan)
    assert Recommender.fit(table) is None
    assert evaluate_recommended(table).empty


def test_the_bench_of_networks_adds_the_recommended_prediction_to_its_rows():
    table = rows({"loggp": lambda *_: 0.1, "plogp": lambda *_: 0.02})
    columns = [
        "platform",
        "model",
        "workload",
        "operation",
        "point",
        "algorithm",
        "alternative",
        "layout",
        "ranks",
    ]
    columns += ["nodes", "bytes", "measured", "seconds", "single_message_ratio", "validity"]
    with_intervals = add_intervals(table[columns].assign(levels_crossed=""))
    assert set(with_intervals["model"]) == {"loggp", "plogp", RECOMMENDED}
    assert np.isfinite(with_intervals[["low", "high"]].to_numpy()).all()


def test_a_workload_that_was_measured_in_two_settings_counts_once():
    """Its times in one setting do not predict those in the other, and its points have half the
    weight."""
    models = {"high": lambda *at: 0.2 * at[3], "low": lambda *at: -0.2 * at[3]}
    table = rows(models).assign(setting="")
    again = table.assign(
        setting="b", point=table["point"] + " b", workload=table["workload"] + " in b"
    )
    once, twice = (
        Recommender.fit(table),
        Recommender.fit(pd.concat([table, again], ignore_index=True)),
    )
    assert twice.weights == pytest.approx(once.weights, abs=1e-6)
    places = Places.of_rows(add_default_columns(table, COMPARISON).drop_duplicates("point"))
    counted = {
        basis.workloads for fitted in (once, twice) for basis in fitted.residuals.find_bases(places)
    }
    assert counted == {table["workload"].nunique()}
    slow = again.assign(
        measured=again["measured"].where(again["workload"] != "bcast 8 512 in b", 1e-2)
    )
    before, after = (
        evaluate_recommended(pd.concat([table, other], ignore_index=True))
        for other in (again, slow)
    )
    own = before["workload"].eq("bcast 8 512").to_numpy()
    assert np.abs(np.log(after["seconds"] / before["seconds"])[own]).max() < 0.1
