"""The comparison, on small tables with known results: errors, choices, the library default, and
intervals."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from commodel.compare.comparison import (
    Measurement,
    compare,
    is_clearly_faster,
    is_oversubscribed,
    summarize_choices,
    summarize_errors,
)
from commodel.compare.comparison_intervals import read_residuals
from commodel.errors import UserError
from commodel.files.tables import COMPARISON, list_columns, read_table, write_table
from commodel.models.parameter_sets import make_given_set
from commodel.patterns.build import build_schedule, find_fan_ins
from commodel.patterns.default_algorithms import find_default_algorithm
from commodel.predictions.interval_basis import PARAMETERS_ONLY_TEXT, IntervalBasis
from commodel.predictions.places import Places
from commodel.predictions.predictions import predict
from commodel.predictions.stored_residuals import load_residuals
from commodel.records import Batch, Point
from tests.patterns.catalogue import catalogue
from tests.planning import planned

POINTS = [
    Point("p", "bcast", choice, "", "block:1", 8, size)
    for size in (8, 1024)
    for choice in ("linear", "binomial", "chain")
] + [Point("p", "barrier", "dissemination", "", "block:1", 8, 0)]
MEASURED = dict(
    zip([point.id for point in POINTS], [10.0, 8.0, 20.0, 30.0, 25.0, 24.0, None], strict=True)
)
PREDICTED = dict(
    zip([point.id for point in POINTS], [5.0, 8.0, 40.0, 30.0, 20.0, 27.0, 3.0], strict=True)
)


def make_predictions(model, factor=1.0, **columns):
    rows = [
        (case, model, factor * value, value - 1, value + 1, "valid")
        for case, value in PREDICTED.items()
    ]
    names = ["point", "model", "seconds", "parameter_low", "parameter_high", "validity"]
    return pd.DataFrame(rows, columns=names).assign(**columns)


@pytest.fixture
def comparison():
    return compare_points(make_predictions("f"))


def compare_points(
    predictions,
    unmeasured=None,
    points=POINTS,
    measured=MEASURED,
    planned_passes=1,
    valid=True,
    simulated=False,
    scatter=None,
    **options,
):
    """Compare predictions with eleven valid samples of each point and an invalid one.

    `scatter`: the ratio of the largest sample of a case to the smallest one. The confidence
    interval spans 0.8 of it.
    """
    batch = Batch("b", "p", 8, tuple(points))
    plan = planned(
        batch, models=("f",), passes=planned_passes, simulated=("p",) if simulated else ()
    )
    rows = [
        {
            "kind": "point",
            "id": case,
            "seconds": median * scatter[case] ** offset
            if scatter and is_valid and case in scatter
            else median + offset,
            "valid": is_valid,
            "pass": 1,
            "skew": 0.0,
            "stop": "precision",
        }
        for case, median in measured.items()
        if median
        for offset, is_valid in [(0.1 * step, valid) for step in range(-5, 6)] + [(100.0, False)]
    ]
    return compare(plan, pd.DataFrame(rows), predictions, unmeasured, **options)


def test_errors(comparison):
    rows = comparison.set_index("point")
    first = rows.loc[POINTS[0].id]
    assert first["measured"] == pytest.approx(10.0)
    assert first["relative_error"] == pytest.approx(-0.5)
    assert first["mu"] == pytest.approx(2.0)
    assert first["covered"] == (first["low"] <= 10.0 <= first["high"])
    assert first["samples"] == 11
    assert first["invalid"] == 1
    assert rows.loc[POINTS[2].id, "mu"] == pytest.approx(2.0)
    assert rows.loc[POINTS[1].id, "covered"]


def test_without_measured_points_the_rows_have_predictions_only():
    """All samples are samples of probes."""
    plan = planned(Batch("b", "p", 8, tuple(POINTS)), models=("f",))
    probes = {
        "kind": "probe",
        "id": "x",
        "seconds": 1.0,
        "valid": True,
        "pass": 1,
        "skew": 0.0,
        "stop": "precision",
    }
    rows = compare(plan, pd.DataFrame([probes] * 6), make_predictions("f"))
    assert rows["measured"].isna().all()
    assert rows["seconds"].tolist() == list(PREDICTED.values())
    assert not rows["best"].any()


def test_a_point_without_measurement_has_a_row_that_states_this(comparison):
    row = comparison.set_index("point").loc[POINTS[-1].id]
    assert np.isnan(row["measured"])
    assert np.isnan(row["mu"])
    assert row["measurement"] == "not measured"
    assert row["seconds"] == 3.0


def test_a_point_without_measurement_has_the_reason():
    """A point that was measured in spite of a recorded failure is ok."""
    reasons = pd.DataFrame(
        [(POINTS[6].id, "budget"), (POINTS[0].id, "crash")], columns=["id", "status"]
    )
    rows = compare_points(make_predictions("f"), reasons).set_index("point")["measurement"]
    assert rows[POINTS[6].id] == "not measured: budget"
    assert set(rows.drop(POINTS[6].id)) == {"ok"}


def test_a_point_without_a_valid_sample_is_marked():
    rows = compare_points(make_predictions("f"), valid=False).set_index("point")["measurement"]
    assert rows[POINTS[0].id] == "not measured: no valid sample"
    assert rows[POINTS[6].id] == "not measured"


def test_a_point_with_differing_passes_states_the_uncertainty():
    """Passes differ if other programs use the machine. The text about missing passes is
    unchanged."""
    scatter = {POINTS[0].id: 5.0, POINTS[1].id: 2.0}
    rows = compare_points(make_predictions("f"), planned_passes=3, scatter=scatter).set_index(
        "point"
    )["measurement"]
    assert rows[POINTS[0].id] == "ok, 1 of 3 passes, uncertain by a factor of 3.6"
    assert set(rows.drop([POINTS[0].id, POINTS[6].id])) == {"ok, 1 of 3 passes"}
    assert {Measurement.parse(text).passes for text in rows.drop(POINTS[6].id)} == {"1 of 3 passes"}
    rows = compare_points(make_predictions("f"), scatter=scatter).set_index("point")["measurement"]
    assert rows[POINTS[0].id] == "ok, uncertain by a factor of 3.6"
    assert not Measurement.parse(rows[POINTS[0].id]).passes


def test_a_point_with_fewer_passes_than_planned_is_marked():
    rows = compare_points(make_predictions("f"), planned_passes=3).set_index("point")["measurement"]
    assert set(rows.drop(POINTS[6].id)) == {"ok, 1 of 3 passes"}
    assert "ok" in set(
        compare_points(make_predictions("f"), planned_passes=3, simulated=True)["measurement"]
    )


def test_a_missing_measurement_changes_no_summary_of_other_points():
    """The summaries equal those of a plan without the point, which is the fastest one of its
    workload."""
    missing = POINTS[1].id
    with_gap = compare_points(
        make_predictions("f"),
        measured={case: time for case, time in MEASURED.items() if case != missing},
    )
    other_points = [point for point in POINTS if point.id != missing]
    without_point = compare_points(make_predictions("f"), points=other_points)
    for summarize in (summarize_errors, summarize_choices):
        pd.testing.assert_frame_equal(
            summarize(with_gap, ["model"]), summarize(without_point, ["model"])
        )
    others = with_gap[with_gap["point"] != missing].reset_index(drop=True)
    pd.testing.assert_frame_equal(others, without_point, check_dtype=False)


def test_choices_and_their_regret(comparison):
    rows = comparison.set_index("point")
    assert rows["best"].tolist() == [False, True, False, False, False, True, False]
    assert rows["chosen"].tolist() == [True, False, False, False, True, False, False]
    assert rows.loc[POINTS[0].id, "regret"] == pytest.approx(10 / 8 - 1)
    assert rows.loc[POINTS[4].id, "regret"] == pytest.approx(25 / 24 - 1)


def test_summaries(comparison):
    (summary,) = summarize_errors(comparison, ["model"]).to_dict("records")
    assert summary["points"] == 6
    assert summary["mu_mean"] == pytest.approx(np.mean([2, 1, 2, 1, 1.25, 1.125]))
    assert summary["bias"] == pytest.approx(np.median([-0.5, 0, 1, 0, -0.2, 0.125]))
    (choice,) = summarize_choices(comparison, ["model"]).to_dict("records")
    assert choice["workloads"] == 2
    assert choice["right"] == 0.0  # 10 against 8, 25 against 24: the intervals do not overlap
    assert choice["regret_max"] == pytest.approx(0.25)


def test_a_choice_that_is_statistically_tied_with_the_best_is_right(comparison):
    close = comparison.assign(measured_low=comparison["measured_low"] - 1.0)
    (choice,) = summarize_choices(close, ["model"]).to_dict("records")
    assert choice["right"] == 0.5


def test_a_prediction_of_zero_has_an_infinite_error():
    free = compare_points(pd.concat([make_predictions("f"), make_predictions("free", 0.0)]))
    rows = summarize_errors(free, ["model"]).set_index("model")
    assert rows.loc["free", "mu_mean"] == rows.loc["free", "mu_valid"] == np.inf
    assert rows.loc["free", "bias"] == -1.0
    assert np.isfinite(rows.loc["f", "mu_mean"])


def test_points_in_the_fit_of_a_model_do_not_count_for_that_model():
    """Model `fitted` cannot choose the fastest alternative of the first workload, binomial, which
    is in its fit."""
    in_fit = [point.id for point in POINTS[:2]]
    fitted = make_predictions("fitted", 1.0, held_out=[case not in in_fit for case in PREDICTED])
    rows = compare_points(pd.concat([make_predictions("f"), fitted]))
    assert rows.loc[rows["model"] == "f", "held_out"].all()
    of_fitted = rows[rows["model"] == "fitted"].set_index("point")
    assert of_fitted["held_out"].tolist() == [False, False, True, True, True, True, True]
    # not counted in summaries
    assert of_fitted["mu"].tolist()[:6] == pytest.approx([2, 1, 2, 1, 1.25, 1.125])
    assert of_fitted["chosen"].tolist() == [False, False, False, False, True, False, False]
    by_family = summarize_errors(rows, ["model"]).set_index("model")
    assert by_family["points"].to_dict() == {"f": 6, "fitted": 4}
    assert by_family.loc["fitted", "mu_mean"] == pytest.approx(np.mean([2, 1, 1.25, 1.125]))
    assert summarize_choices(rows, ["model"]).set_index("model")["workloads"].to_dict() == {
        "f": 2,
        "fitted": 1,
    }


def test_without_a_library_default_the_ratio_to_the_default_is_nan(comparison):
    (choice,) = summarize_choices(comparison, ["model"]).to_dict("records")
    assert np.isnan(choice["over_default"])
    assert np.isnan(choice["largest_gain"])
    assert choice["defaults"] == 0


def count_fan_in(pattern):
    """Return the most messages that arrive at a rank in a step, by a plain loop."""
    arrived = {}
    for step, dst in zip(pattern.step, pattern.dst, strict=True):
        arrived[step, dst] = arrived.get((step, dst), 0) + 1
    return max(arrived.values(), default=0)


def test_fan_in_is_the_most_messages_a_rank_receives_in_one_step(comparison):
    points = [point for bytes in (0, 1, 8192, 100_000) for point in catalogue(13, bytes)]
    fan_in_of = find_fan_ins(points)
    assert fan_in_of == {point.id: count_fan_in(build_schedule(point)) for point in points}
    assert {1, 12} <= set(fan_in_of.values())
    assert comparison["fan_in"].tolist() == [1] * 7


def test_fan_ins_builds_few_schedules(monkeypatch):
    built = []
    monkeypatch.setattr(
        "commodel.patterns.build.find_fan_in",
        lambda pattern: built.append(pattern) or count_fan_in(pattern),
    )
    find_fan_ins([point for size in range(1, 200) for point in catalogue(4, size)])
    assert len(built) == 2 * len(catalogue(4, 1))


@pytest.mark.parametrize(
    ("second", "clear"),
    [
        ((1.05, 1.02, 1.10), True),
        ((1.05, 1.005, 1.10), False),  # the intervals overlap
        ((1.015, 1.0145, 1.0155), True),
        # the intervals do not overlap, but the difference is negligible
        ((1.009, 1.0085, 1.0095), False),
    ],
)
def test_clearly_faster_is_significant_and_not_negligible(second, clear):
    names = ("measured", "measured_low", "measured_high")
    first, second = (
        dict(zip(names, (1.0, 0.99, 1.008), strict=True)),
        dict(zip(names, second, strict=True)),
    )
    assert is_clearly_faster(first, second) == clear
    assert not is_clearly_faster(second, first)


def test_a_row_states_how_many_processes_shared_the_processors_of_a_host():
    points = [
        Point("p", "bcast", "linear", "", layout, 8, 64) for layout in ("block:3", "cyclic:2")
    ]
    times = {point.id: 1.0 for point in points}
    rows = compare_points(make_predictions("f"), points=points, measured=times, processors={"b": 2})
    assert rows["processes"].tolist() == [3, 2]
    assert is_oversubscribed(rows).tolist() == [True, False]
    unknown = compare_points(make_predictions("f"), points=points, measured=times)
    assert unknown[["processes", "processors"]].isna().all(axis=None)
    assert not is_oversubscribed(unknown).any()


def test_rows_of_the_mpi_default_name_the_algorithm_of_its_rules():
    points = [
        Point("p", "allreduce", choice, "", "block:1", 8, 64, nodes=8)
        for choice in ("library", "recursive-doubling")
    ]
    times = {point.id: 1.0 for point in points}
    library = {"b": "Open MPI v5.0.3, package: Debian OpenMPI"}
    rows = compare_points(make_predictions("f"), points=points, measured=times, libraries=library)
    named = find_default_algorithm("Open MPI 5.0.3", points[0])
    assert rows["default_algorithm"].tolist() == [named.algorithm, ""]
    unknown = compare_points(
        make_predictions("f"), points=points, measured=times, libraries={"b": "SMPI Version 4.0"}
    )
    assert unknown["default_algorithm"].eq("").all()


LAYOUTS = [
    Point("p", "bcast", choice, "", layout, 8, 8, nodes=4)
    for choice in ("linear", "library", "binomial")
    for layout in ("block:2", "cyclic:2")
]
TIMES = dict(zip([point.id for point in LAYOUTS], [10.0, 6.0, 9.0, 8.0, 4.0, 16.0], strict=True))


def compare_layouts(predicted_times):
    """Compare two algorithms and the library default on two layouts. `predicted_times` are those of
    linear on block and cyclic, then of binomial on both."""
    plan = planned(Batch("b", "p", 8, tuple(LAYOUTS)), models=("f",))
    common = {"kind": "point", "valid": True, "pass": 1, "skew": 0.0, "stop": "precision"}
    rows = [
        common | {"id": case, "seconds": time} for case, time in TIMES.items() for _ in range(6)
    ]
    predicted_points = [point.id for point in LAYOUTS if point.predictable]
    predictions = [
        (case, "f", prediction, prediction, prediction, "valid")
        for case, prediction in zip(predicted_points, predicted_times, strict=True)
    ]
    names = ["point", "model", "seconds", "parameter_low", "parameter_high", "validity"]
    return compare(plan, pd.DataFrame(rows), pd.DataFrame(predictions, columns=names))


def test_the_library_default_is_measured_and_has_no_model():
    rows = compare_layouts([1, 2, 3, 4])
    default = rows[rows["algorithm"] == "library"]
    assert default["model"].tolist() == ["", ""]
    assert default["validity"].tolist() == ["library default: measured, not predicted"] * 2
    assert default["measured"].tolist() == [9.0, 8.0]
    assert default["fan_in"].tolist() == [0, 0]
    assert not default[["chosen", "best", "tie", "covered"]].any(axis=None)
    assert rows["library_default"].tolist() == [8.0] * 6  # that of the faster layout
    assert rows["fastest"].tolist() == [4.0] * 6
    assert summarize_errors(rows, ["model"])["model"].tolist() == ["f"]
    assert summarize_choices(rows, ["model"])["model"].tolist() == ["f"]


def test_choices_are_compared_with_the_library_default():
    rows = compare_layouts([1, 2, 3, 4])
    (choice,) = summarize_choices(rows, ["model"]).to_dict("records")
    assert (choice["over_default"], choice["largest_gain"]) == pytest.approx((10 / 8, 8 / 4))
    assert choice["regret_mean"] == pytest.approx(10 / 4 - 1)
    assert choice["tied"] == 0
    (right,) = summarize_choices(compare_layouts([4, 3, 1, 2]), ["model"]).to_dict("records")
    assert (right["over_default"], right["largest_gain"], right["regret_mean"]) == pytest.approx(
        (0.5, 2, 0)
    )


def test_means_over_the_library_are_geometric():
    """Choices that are twice as fast in one workload and half as fast in another have a mean ratio
    of 1."""
    rows = compare_layouts([4, 3, 1, 2])
    twice = pd.concat([rows, rows.assign(workload="other", measured=4 * rows["measured"])])
    (choice,) = summarize_choices(twice, ["model"]).to_dict("records")
    assert choice["over_default"] == pytest.approx(1)


def test_equal_predictions_for_layouts_are_a_tie():
    equal = compare_layouts([2, 2 + 1e-12, 3, 3])
    # the first in the plan
    assert equal["chosen"].tolist() == [True, False, False, False, False, False]
    assert equal["tie"].tolist() == equal["chosen"].tolist()
    last = compare_layouts([2 + 1e-12, 2, 3, 3])  # a difference in the last bits does not count
    assert last["chosen"].tolist() == equal["chosen"].tolist()
    assert summarize_choices(equal, ["model"])["tied"].tolist() == [1.0]
    distinct = compare_layouts([2.1, 2, 3, 3])
    assert distinct["chosen"].tolist() == [False, True, False, False, False, False]
    assert not distinct["tie"].any()


RNG = np.random.default_rng(5)
SERIES = [
    Point("p", "bcast", choice, "", "block:1", ranks, size)
    for ranks in (4, 8, 16)
    for size in (8, 64, 512, 4096)
    for choice in ("linear", "binomial")
]
LAST = Point("p", "bcast", "chain", "", "block:1", 8, 512)
SERIES_TIMES = {point.id: point.ranks * (1 + point.bytes / 100) for point in SERIES}


def load_model(table):
    return load_residuals(read_residuals(table, "p", "f"))


RATIOS = {point.id: float(np.exp(RNG.normal(0.3, 0.1))) for point in SERIES}


def compare_series(
    ratios=RATIOS,
    held_out=True,
    times=SERIES_TIMES,
    levels_crossed=("", ""),
    single_message_ratio=None,
    validity=None,
) -> pd.DataFrame:
    """Compare points of one allocation, of which the last is not measured. Parameter intervals are
    ± 1 %. `ratios` are measured over predicted times. `levels_crossed`: of all points but the last,
    and of the last."""
    points = [replace(point, reach=levels_crossed[0]) for point in SERIES]
    plan = planned(
        Batch("b", "p", 16, (*points, replace(LAST, reach=levels_crossed[1]))),
        models=("f",),
        passes=1,
    )
    rows = [
        {
            "kind": "point",
            "id": key,
            "seconds": time,
            "valid": True,
            "pass": 1,
            "skew": 0.0,
            "stop": "precision",
        }
        for key, time in times.items()
    ]
    predicted_times = {key: time / ratios[key] for key, time in SERIES_TIMES.items()} | {
        LAST.id: 40.0
    }
    table = [
        (key, "f", prediction, 0.99 * prediction, 1.01 * prediction, "valid", held_out)
        for key, prediction in predicted_times.items()
    ]
    columns = [
        "point",
        "model",
        "seconds",
        "parameter_low",
        "parameter_high",
        "validity",
        "held_out",
    ]
    predictions = pd.DataFrame(table, columns=columns)
    for name, column in {
        "single_message_ratio": single_message_ratio,
        "validity": validity,
    }.items():
        predictions = (
            predictions.assign(**{name: predictions["point"].map(column)})
            if column
            else predictions
        )
    return compare(plan, pd.DataFrame(rows), predictions)


def test_prediction_intervals_are_listed_with_parameter_intervals():
    table = compare_series()
    rows = table[table["measured"].notna()]
    assert rows["covered"].mean() >= 0.9
    assert table["seconds"].between(table["low"], table["high"]).all()
    np.testing.assert_allclose(rows["parameter_low"], 0.99 * rows["seconds"])
    np.testing.assert_allclose(rows["parameter_high"], 1.01 * rows["seconds"])
    assert (rows["basis"] == "at least: 1 allocation, 11 workloads of bcast").all()


def test_allocations_of_a_simulator_do_not_differ():
    """A simulated comparison counts settings, but no allocations."""

    def find_basis(**columns):
        model = load_model(compare_series().assign(simulated=True, **columns))
        (basis,) = model.find_bases(Places.of_points([LAST]))
        assert IntervalBasis.parse(basis.text) == basis
        return basis

    assert find_basis().text == "12 workloads of bcast"
    assert "allocation" not in find_basis().sentence
    assert find_basis(setting="rails=2").text == "at least: 1 allocation, 12 workloads of bcast"


def test_the_measured_time_of_a_point_does_not_help_its_own_interval():
    """It changes the scales of the residuals, but corrects nothing at its point."""
    point = SERIES[3]
    table = compare_series(times=SERIES_TIMES | {point.id: 50 * SERIES_TIMES[point.id]}).set_index(
        "point"
    )
    assert table.at[point.id, "high"] < 20 * table.at[point.id, "seconds"]
    assert not table.at[point.id, "covered"]


def test_a_point_without_measurement_has_the_interval_from_all_residuals():
    table = compare_series()
    row = table.set_index("point").loc[LAST.id]
    assert row["basis"].endswith("12 workloads of bcast")
    (log,), (half_width,) = load_model(table).predict_singly(Places.of_points([LAST]))
    assert row["low"] == pytest.approx(min(40, 40 * np.exp(log - half_width)))
    assert row["high"] == pytest.approx(40 * np.exp(log + half_width))


def test_residuals_of_predictions_that_ignore_size_do_not_count_at_other_sizes():
    """Errors are 10 % for short messages and a factor of 1000 for long ones. A set has only
    residuals of short ones."""
    long = {point.id for point in SERIES if point.bytes > 8}
    wrong = {key: ratio * (1000 if key in long else 1) for key, ratio in RATIOS.items()}
    validity = {
        key: "size not modelled: valid for 8 B" if key in long else "valid"
        for key in (*RATIOS, LAST.id)
    }
    table, short = (
        compare_series(wrong, validity=validity).set_index("point"),
        [key for key in RATIOS if key not in long],
    )
    assert (table.loc[short, "high"] < 3 * table.loc[short, "seconds"]).all()
    assert (table.loc[list(long), "high"] > 300 * table.loc[list(long), "seconds"]).all()
    assert max(read_residuals(table.reset_index(), "p", "f").log) < 1
    given = replace(make_given_set("logp", ["L=10us", "o=1us", "g=2us"]), bytes_range=(1.0, 8.0))
    with_residuals = replace(given, residuals=read_residuals(table.reset_index(), "p", "f"))
    intervals = [
        prediction.interval
        for prediction in predict(
            with_residuals, [replace(SERIES[0], bytes=size) for size in (8, 4096)]
        )
    ]
    assert IntervalBasis.parse(intervals[0]).of_residuals
    assert intervals[1] == PARAMETERS_ONLY_TEXT


def test_a_point_over_more_levels_than_measured_has_a_parameter_interval_only(tmp_path):
    """The table is written and read. The interval of each measured point is fitted to the other
    points."""
    write_table(
        tmp_path / "c.csv", compare_series(levels_crossed=("node/leaf", "node/leaf/beyond"))
    )
    table = read_table(tmp_path / "c.csv", COMPARISON)
    row = table.set_index("point").loc[LAST.id]
    assert row["basis"] == f"{PARAMETERS_ONLY_TEXT}: nothing measured beyond one leaf"
    assert (row["low"], row["high"]) == (row["parameter_low"], row["parameter_high"])
    assert set(read_residuals(table, "p", "f").levels_crossed) == {"node/leaf"}
    assert (table["basis"].str.endswith("11 workloads of bcast")).sum() == len(SERIES)
    near = (
        compare_series(levels_crossed=("node/leaf/beyond", "node/leaf"))
        .set_index("point")
        .loc[LAST.id]
    )
    assert near["basis"].endswith("12 workloads of bcast")


def test_points_in_the_fit_have_no_residuals():
    table = compare_series(held_out=False)
    assert set(table["basis"]) == {PARAMETERS_ONLY_TEXT}
    assert (table["low"] == table["parameter_low"]).all()
    assert read_residuals(table, "p", "f") is None


def test_a_written_table_is_read_unchanged_and_one_without_a_column_is_refused(tmp_path):
    table = compare_series()
    write_table(tmp_path / "new.csv", table)
    assert set(read_table(tmp_path / "new.csv", COMPARISON)["basis"]) == set(table["basis"])
    assert list(table) == list_columns(COMPARISON)
    for name in [field.name for field in COMPARISON if not field.optional]:
        write_table(tmp_path / "less.csv", table.drop(columns=name))
        with pytest.raises(UserError, match=f"found no column '{name}' among"):
            read_table(tmp_path / "less.csv", COMPARISON)
    write_table(tmp_path / "by-hand.csv", table.assign(measurement="valid"))
    with pytest.raises(
        UserError, match="measurement: found 'valid', wanted a text that the program writes"
    ):
        read_table(tmp_path / "by-hand.csv", COMPARISON)
