"""The comparison, on tables small enough to work out by hand: errors, choices, the library default, and intervals."""

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
from commodel.compare.comparison_intervals import combine_intervals, combine_residuals, read_residuals
from commodel.files.tables import COMPARISON, read_table, write_table
from commodel.models.parameter_sets import make_given_set
from commodel.patterns.build import build_schedule, find_fan_ins
from commodel.predictions.prediction_intervals import PARAMETERS_ONLY_TEXT, IntervalBasis, PointSeries, fit_bands
from commodel.predictions.predictions import predict
from commodel.predictions.validity import Validity, ValidityKind
from commodel.records import Batch, Point
from commodel.reports.comparison_frame import prepare_comparison
from tests.patterns.catalogue import catalogue
from tests.planning import planned

POINTS = [
    Point("p", "bcast", choice, "", "block:1", 8, size)
    for size in (8, 1024)
    for choice in ("linear", "binomial", "chain")
] + [Point("p", "barrier", "dissemination", "", "block:1", 8, 0)]
MEASURED = dict(zip([point.id for point in POINTS], [10.0, 8.0, 20.0, 30.0, 25.0, 24.0, None], strict=True))
PREDICTED = dict(zip([point.id for point in POINTS], [5.0, 8.0, 40.0, 30.0, 20.0, 27.0, 3.0], strict=True))


def predicted(family, factor=1.0, **more):
    rows = [(case, family, factor * value, value - 1, value + 1, "valid") for case, value in PREDICTED.items()]
    columns = ["point", "family", "predicted", "predicted_low", "predicted_high", "validity"]
    return pd.DataFrame(rows, columns=columns).assign(**more)


@pytest.fixture
def comparison():
    return compared(predicted("f"))


def compared(
    predictions,
    unmeasured=None,
    points=POINTS,
    measured=MEASURED,
    requested=1,
    good=True,
    simulated=False,
    scatter=None,
    **more,
):
    """`scatter`: the largest sample of a case over its smallest, where the interval of eleven goes over 0.8 of that."""
    batch = Batch("b", "p", 8, tuple(points))
    plan = planned(batch, families=("f",), passes=requested, simulated=("p",) if simulated else ())
    rows = [
        {
            "kind": "point",
            "id": case,
            "seconds": median * scatter[case] ** offset if scatter and valid and case in scatter else median + offset,
            "valid": valid,
            "pass": 1,
            "skew": 0.0,
            "stop": "precision",
        }
        for case, median in measured.items()
        if median
        for offset, valid in [(0.1 * step, good) for step in range(-5, 6)] + [(100.0, False)]
    ]
    return compare(plan, pd.DataFrame(rows), predictions, unmeasured, **more)


def test_errors(comparison):
    rows = comparison.set_index("point")
    first = rows.loc[POINTS[0].id]
    assert first["measured"] == pytest.approx(10.0)
    assert first["relative_error"] == pytest.approx(-0.5)
    assert first["mu"] == pytest.approx(2.0)
    assert not first["covered"]
    assert first["samples"] == 11
    assert first["invalid"] == 1
    assert rows.loc[POINTS[2].id, "mu"] == pytest.approx(2.0)
    assert rows.loc[POINTS[1].id, "covered"]


def test_predictions_stand_alone_where_no_point_was_measured():
    """Observations are those of probes then."""
    plan = planned(Batch("b", "p", 8, tuple(POINTS)), families=("f",))
    probes = {"kind": "probe", "id": "x", "seconds": 1.0, "valid": True, "pass": 1, "skew": 0.0, "stop": "precision"}
    rows = compare(plan, pd.DataFrame([probes] * 6), predicted("f"))
    assert rows["measured"].isna().all()
    assert rows["predicted"].tolist() == list(PREDICTED.values())
    assert not rows["best"].any()


def test_a_point_without_measurement_stays_and_is_marked(comparison):
    row = comparison.set_index("point").loc[POINTS[-1].id]
    assert np.isnan(row["measured"])
    assert np.isnan(row["mu"])
    assert row["measurement"] == "not measured"
    assert row["predicted"] == 3.0


def test_a_point_without_measurement_states_why():
    """And where none is known, no more than that; a point that was measured after all is ok."""
    why = pd.DataFrame([(POINTS[6].id, "budget"), (POINTS[0].id, "crash")], columns=["id", "status"])
    rows = compared(predicted("f"), why).set_index("point")["measurement"]
    assert rows[POINTS[6].id] == "not measured: budget"
    assert set(rows.drop(POINTS[6].id)) == {"ok"}


def test_a_point_without_a_valid_sample_is_marked():
    rows = compared(predicted("f"), good=False).set_index("point")["measurement"]
    assert rows[POINTS[0].id] == "not measured: no valid sample"
    assert rows[POINTS[6].id] == "not measured"


def test_a_point_whose_passes_differ_states_how_well_it_is_known():
    """As where others used the machine meanwhile; the words about its passes stay what they are."""
    scatter = {POINTS[0].id: 5.0, POINTS[1].id: 2.0}
    rows = compared(predicted("f"), requested=3, scatter=scatter).set_index("point")["measurement"]
    assert rows[POINTS[0].id] == "ok, 1 of 3 passes, uncertain by a factor of 3.6"
    assert set(rows.drop([POINTS[0].id, POINTS[6].id])) == {"ok, 1 of 3 passes"}
    assert {Measurement.parse(text).passes for text in rows.drop(POINTS[6].id)} == {"1 of 3 passes"}
    rows = compared(predicted("f"), scatter=scatter).set_index("point")["measurement"]
    assert rows[POINTS[0].id] == "ok, uncertain by a factor of 3.6"
    assert not Measurement.parse(rows[POINTS[0].id]).passes


def test_a_point_with_some_of_its_passes_is_marked():
    rows = compared(predicted("f"), requested=3).set_index("point")["measurement"]
    assert set(rows.drop(POINTS[6].id)) == {"ok, 1 of 3 passes"}
    assert "ok" in set(compared(predicted("f"), requested=3, simulated=True)["measurement"])


def test_a_gap_changes_no_figure_of_the_others():
    """As if the point had never been planned: here the fastest of its job."""
    gone = POINTS[1].id
    lacking = compared(predicted("f"), measured={case: time for case, time in MEASURED.items() if case != gone})
    never = [point for point in POINTS if point.id != gone]
    planned = compared(predicted("f"), points=never)
    for figures in (summarize_errors, summarize_choices):
        pd.testing.assert_frame_equal(figures(lacking, ["family"]), figures(planned, ["family"]))
    kept = lacking[lacking["point"] != gone].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, planned, check_dtype=False)


def test_choices_and_their_regret(comparison):
    rows = comparison.set_index("point")
    assert rows["best"].tolist() == [False, True, False, False, False, True, False]
    assert rows["chosen"].tolist() == [True, False, False, False, True, False, False]
    assert rows.loc[POINTS[0].id, "regret"] == pytest.approx(10 / 8 - 1)
    assert rows.loc[POINTS[4].id, "regret"] == pytest.approx(25 / 24 - 1)


def test_summaries(comparison):
    (summary,) = summarize_errors(comparison, ["family"]).to_dict("records")
    assert summary["points"] == 6
    assert summary["mu_mean"] == pytest.approx(np.mean([2, 1, 2, 1, 1.25, 1.125]))
    assert summary["bias"] == pytest.approx(np.median([-0.5, 0, 1, 0, -0.2, 0.125]))
    (choice,) = summarize_choices(comparison, ["family"]).to_dict("records")
    assert choice["workloads"] == 2
    assert choice["right"] == 0.0  # 10 against 8, 25 against 24: the intervals do not overlap
    assert choice["regret_max"] == pytest.approx(0.25)


def test_a_choice_that_cannot_be_reported_from_the_best_is_right(comparison):
    close = comparison.assign(measured_low=comparison["measured_low"] - 1.0)
    (choice,) = summarize_choices(close, ["family"]).to_dict("records")
    assert choice["right"] == 0.5


def test_a_prediction_of_zero_is_infinitely_wrong():
    free = compared(pd.concat([predicted("f"), predicted("free", 0.0)]))
    rows = summarize_errors(free, ["family"]).set_index("family")
    assert rows.loc["free", "mu_mean"] == rows.loc["free", "mu_valid"] == np.inf
    assert rows.loc["free", "bias"] == -1.0
    assert np.isfinite(rows.loc["f", "mu_mean"])


def test_what_a_fit_has_seen_does_not_count_for_its_family():
    """The first group's binomial is the fastest of all; the family `seen` may not shine with it."""
    seen = [point.id for point in POINTS[:2]]
    own = predicted("seen", 1.0, held_out=[case not in seen for case in PREDICTED])
    rows = compared(pd.concat([predicted("f"), own]))
    assert rows.loc[rows["family"] == "f", "held_out"].all()
    of_seen = rows[rows["family"] == "seen"].set_index("point")
    assert of_seen["held_out"].tolist() == [False, False, True, True, True, True, True]
    assert of_seen["mu"].tolist()[:6] == pytest.approx([2, 1, 2, 1, 1.25, 1.125])  # shown, not counted
    assert of_seen["chosen"].tolist() == [False, False, False, False, True, False, False]
    by_family = summarize_errors(rows, ["family"]).set_index("family")
    assert by_family["points"].to_dict() == {"f": 6, "seen": 4}
    assert by_family.loc["seen", "mu_mean"] == pytest.approx(np.mean([2, 1, 1.25, 1.125]))
    assert summarize_choices(rows, ["family"]).set_index("family")["workloads"].to_dict() == {"f": 2, "seen": 1}


def test_without_a_library_there_is_nothing_to_compare_with(comparison):
    (choice,) = summarize_choices(comparison, ["family"]).to_dict("records")
    assert np.isnan(choice["over_default"])
    assert choice["over_fastest"] == pytest.approx((10 / 8 * 25 / 24) ** 0.5)


def busiest(pattern):
    """The obvious loop: count what arrives at each rank in each step."""
    arrived = {}
    for step, dst in zip(pattern.step, pattern.dst, strict=True):
        arrived[step, dst] = arrived.get((step, dst), 0) + 1
    return max(arrived.values(), default=0)


def test_fan_in_is_the_most_messages_a_rank_gets_in_one_step(comparison):
    points = [point for bytes in (0, 1, 8192, 100_000) for point in catalogue(13, bytes)]
    fan_in_of = find_fan_ins(points)
    assert fan_in_of == {point.id: busiest(build_schedule(point)) for point in points}
    assert {1, 12} <= set(fan_in_of.values())
    assert comparison["fan_in"].tolist() == [1] * 7


def test_fan_ins_builds_few_schedules(monkeypatch):
    built = []
    monkeypatch.setattr(
        "commodel.patterns.build.find_fan_in", lambda pattern: built.append(pattern) or busiest(pattern)
    )
    find_fan_ins([point for size in range(1, 200) for point in catalogue(4, size)])
    assert len(built) == 2 * len(catalogue(4, 1))


@pytest.mark.parametrize(
    ("second", "clear"),
    [
        ((1.05, 1.02, 1.10), True),
        ((1.05, 1.005, 1.10), False),  # the intervals overlap
        ((1.015, 1.0145, 1.0155), True),
        ((1.009, 1.0085, 1.0095), False),  # apart, and no reason to prefer anything
    ],
)
def test_clearly_faster_is_beyond_doubt_and_by_enough_to_matter(second, clear):
    names = ("measured", "measured_low", "measured_high")
    first, second = dict(zip(names, (1.0, 0.99, 1.008), strict=True)), dict(zip(names, second, strict=True))
    assert is_clearly_faster(first, second) == clear
    assert not is_clearly_faster(second, first)


def test_a_row_states_how_many_processes_shared_the_processors_of_a_host():
    points = [Point("p", "bcast", "linear", "", layout, 8, 64) for layout in ("block:3", "cyclic:2")]
    times = {point.id: 1.0 for point in points}
    rows = compared(predicted("f"), points=points, measured=times, processors={"b": 2})
    assert rows["processes"].tolist() == [3, 2]
    assert is_oversubscribed(rows).tolist() == [True, False]
    unknown = compared(predicted("f"), points=points, measured=times)
    assert unknown[["processes", "processors"]].isna().all(axis=None)
    assert not is_oversubscribed(unknown).any()


LAYOUTS = [
    Point("p", "bcast", choice, "", layout, 8, 8, nodes=4)
    for choice in ("linear", "library", "binomial")
    for layout in ("block:2", "cyclic:2")
]
TIMES = dict(zip([point.id for point in LAYOUTS], [10.0, 6.0, 9.0, 8.0, 4.0, 16.0], strict=True))


def laid_out(predicted_times):
    """Two algorithms and the library on two layouts; `predictions` of linear and binomial on block and cyclic."""
    plan = planned(Batch("b", "p", 8, tuple(LAYOUTS)), families=("f",))
    about = {"kind": "point", "valid": True, "pass": 1, "skew": 0.0, "stop": "precision"}
    rows = [about | {"id": case, "seconds": time} for case, time in TIMES.items() for _ in range(6)]
    predicted_ones = [point.id for point in LAYOUTS if point.predictable]
    predictions = [
        (case, "f", prediction, prediction, prediction, "valid")
        for case, prediction in zip(predicted_ones, predicted_times, strict=True)
    ]
    names = ["point", "family", "predicted", "predicted_low", "predicted_high", "validity"]
    return compare(plan, pd.DataFrame(rows), pd.DataFrame(predictions, columns=names))


def test_the_library_is_measured_and_of_no_family():
    rows = laid_out([1, 2, 3, 4])
    own = rows[rows["algorithm"] == "library"]
    assert own["family"].tolist() == ["", ""]
    assert own["validity"].tolist() == ["library default: measured, not predicted"] * 2
    assert own["measured"].tolist() == [9.0, 8.0]
    assert own["fan_in"].tolist() == [0, 0]
    assert not own[["chosen", "best", "tie", "covered"]].any(axis=None)
    assert rows["library_default"].tolist() == [8.0] * 6  # the better of its layouts
    assert rows["fastest"].tolist() == [4.0] * 6
    assert summarize_errors(rows, ["family"])["family"].tolist() == ["f"]
    assert summarize_choices(rows, ["family"])["family"].tolist() == ["f"]


def test_what_a_family_s_pick_is_to_the_library():
    rows = laid_out([1, 2, 3, 4])
    (pick,) = summarize_choices(rows, ["family"]).to_dict("records")
    assert (pick["over_default"], pick["over_fastest"]) == pytest.approx((10 / 8, 10 / 4))
    assert pick["regret_mean"] == pytest.approx(10 / 4 - 1)
    assert pick["tied"] == 0
    (right,) = summarize_choices(laid_out([4, 3, 1, 2]), ["family"]).to_dict("records")
    assert (right["over_default"], right["over_fastest"], right["regret_mean"]) == pytest.approx((0.5, 1, 0))


def test_means_over_the_library_are_geometric():
    """A family that is twice as fast in one job and half as fast in the other gains nothing."""
    rows = laid_out([4, 3, 1, 2])
    twice = pd.concat([rows, rows.assign(workload="other", measured=4 * rows["measured"])])
    (pick,) = summarize_choices(twice, ["family"]).to_dict("records")
    assert pick["over_default"] == pytest.approx(1)


def test_layouts_that_a_family_predictions_the_same_are_a_tie():
    blind = laid_out([2, 2 + 1e-12, 3, 3])
    assert blind["chosen"].tolist() == [True, False, False, False, False, False]  # the first in the plan
    assert blind["tie"].tolist() == blind["chosen"].tolist()
    last = laid_out([2 + 1e-12, 2, 3, 3])  # not the smaller by the last bit
    assert last["chosen"].tolist() == blind["chosen"].tolist()
    assert summarize_choices(blind, ["family"])["tied"].tolist() == [1.0]
    seeing = laid_out([2.1, 2, 3, 3])
    assert seeing["chosen"].tolist() == [False, True, False, False, False, False]
    assert not seeing["tie"].any()


RNG = np.random.default_rng(5)
SERIES = [
    Point("p", "bcast", choice, "", "block:1", ranks, size)
    for ranks in (4, 8, 16)
    for size in (8, 64, 512, 4096)
    for choice in ("linear", "binomial")
]
LAST = Point("p", "bcast", "chain", "", "block:1", 8, 512)
SERIES_TIMES = {point.id: point.ranks * (1 + point.bytes / 100) for point in SERIES}
ASKED = PointSeries.of(LAST, [8])
OFF = {point.id: float(np.exp(RNG.normal(0.3, 0.1))) for point in SERIES}


def made(off=OFF, held_out=True, times=SERIES_TIMES, reach=("", ""), alone=None, validity=None) -> pd.DataFrame:
    """Measured in one allocation, but for the last point; the family's own interval is 1 % wide. `reach`: of all points
    but the last, and of that."""
    points = [replace(point, reach=reach[0]) for point in SERIES]
    plan = planned(Batch("b", "p", 16, (*points, replace(LAST, reach=reach[1]))), families=("f",), passes=1)
    rows = [
        {"kind": "point", "id": key, "seconds": time, "valid": True, "pass": 1, "skew": 0.0, "stop": "precision"}
        for key, time in times.items()
    ]
    predicted_times = {key: time / off[key] for key, time in SERIES_TIMES.items()} | {LAST.id: 40.0}
    table = [
        (key, "f", prediction, 0.99 * prediction, 1.01 * prediction, "valid", held_out)
        for key, prediction in predicted_times.items()
    ]
    columns = ["point", "family", "predicted", "predicted_low", "predicted_high", "validity", "held_out"]
    predictions = pd.DataFrame(table, columns=columns)
    for name, column in {"single_message_ratio": alone, "validity": validity}.items():
        predictions = predictions.assign(**{name: predictions["point"].map(column)}) if column else predictions
    return compare(plan, pd.DataFrame(rows), predictions)


def test_bands_stand_beside_what_the_parameters_leave_open():
    table = made()
    rows = table[table["measured"].notna()]
    assert rows["covered"].mean() >= 0.9
    assert table["corrected"].between(table["predicted_low"], table["predicted_high"]).all()
    np.testing.assert_allclose(rows["parameters_low"], 0.99 * rows["predicted"])
    np.testing.assert_allclose(rows["parameters_high"], 1.01 * rows["predicted"])
    assert (rows["interval_basis"] == "at least: 1 allocation, 11 workloads of bcast").all()


def test_what_a_point_took_does_not_move_its_own_interval():
    point = SERIES[3]
    moved = made(times=SERIES_TIMES | {point.id: 50 * SERIES_TIMES[point.id]}).set_index("point").loc[point.id]
    before = made().set_index("point").loc[point.id]
    assert tuple(moved[["predicted_low", "predicted_high"]]) == tuple(before[["predicted_low", "predicted_high"]])
    assert not moved["covered"]


def test_what_was_not_measured_has_the_band_of_all_that_was():
    table = made()
    row = table.set_index("point").loc[LAST.id]
    band = read_residuals(table, "p", "f")["bcast"]
    assert row["interval_basis"].endswith("12 workloads of bcast")
    assert row["predicted_low"] == pytest.approx(40 * np.exp(band.low))
    assert row["predicted_high"] == pytest.approx(40 * np.exp(band.high))


def test_what_messages_alone_are_off_by_is_no_error_but_moves_the_interval(tmp_path):
    """Predictions that are as wrong as those of single messages have the bands of predictions that are right."""
    single = {point.id: 1.0 + np.log2(point.bytes) for point in (*SERIES, LAST)}
    wrong = {key: off * single[key] for key, off in OFF.items()}
    write_table(tmp_path / "c.csv", made(wrong, alone=single))
    right, silent, telling = made(), made(wrong), read_table(tmp_path / "c.csv", COMPARISON)
    bands = [read_residuals(table, "p", "f")["bcast"] for table in (right, telling, silent)]
    assert (bands[1].low, bands[1].high) == pytest.approx((bands[0].low, bands[0].high))
    assert bands[2].high - bands[2].low > 2 * (bands[0].high - bands[0].low)
    np.testing.assert_allclose(combine_residuals(telling, {"f": 1.0}).logs, combine_residuals(right, {"f": 1.0}).logs)
    ends = ["predicted_low", "predicted_high"]
    factor = np.where(telling["point"] == LAST.id, single[LAST.id], 1.0)[
        :, None
    ]  # whose prediction is the same in both
    np.testing.assert_allclose(telling[ends], right[ends] * factor)


def test_what_predictions_blind_to_their_size_are_off_by_informs_nothing_of_others():
    """Short messages predicted within a tenth, long ones thousandfold too low: of these a set carries nothing,
    either."""
    long = {point.id for point in SERIES if point.bytes > 8}
    wrong = {key: off * (1000 if key in long else 1) for key, off in OFF.items()}
    validity = {key: "size not modelled: valid for 8 B" if key in long else "valid" for key in (*OFF, LAST.id)}
    table, short = made(wrong, validity=validity).set_index("point"), [key for key in OFF if key not in long]
    assert (table.loc[short, "predicted_high"] < 3 * table.loc[short, "predicted"]).all()
    assert (table.loc[list(long), "predicted_low"] > 300 * table.loc[list(long), "predicted"]).all()
    (band,) = {errors.high for errors in read_residuals(table.reset_index(), "p", "f").values()}
    assert band < 1
    known = replace(make_given_set("logp", ["L=10us", "o=1us", "g=2us"]), bytes_range=(1.0, 8.0))
    carrying = replace(known, errors=read_residuals(table.reset_index(), "p", "f"))
    intervals = [
        prediction.interval for prediction in predict(carrying, [replace(SERIES[0], bytes=size) for size in (8, 4096)])
    ]
    assert IntervalBasis.parse(intervals[0]).of_residuals
    assert intervals[1] == PARAMETERS_ONLY_TEXT


def test_what_goes_farther_than_all_that_was_measured_has_no_band(tmp_path):
    """As tables keep it; of those measured each has that of the others."""
    write_table(tmp_path / "c.csv", made(reach=("node/leaf", "node/leaf/beyond")))
    table = read_table(tmp_path / "c.csv", COMPARISON)
    row = table.set_index("point").loc[LAST.id]
    assert row["interval_basis"] == f"{PARAMETERS_ONLY_TEXT}: nothing measured beyond one leaf"
    assert (row["predicted_low"], row["predicted_high"]) == (row["parameters_low"], row["parameters_high"])
    assert read_residuals(table, "p", "f")["bcast"].levels_crossed == ("node/leaf",)
    assert (table["interval_basis"].str.endswith("11 workloads of bcast")).sum() == len(SERIES)
    near = made(reach=("node/leaf/beyond", "node/leaf")).set_index("point").loc[LAST.id]
    assert near["interval_basis"].endswith("12 workloads of bcast")


def test_what_a_fit_has_seen_shows_nothing_about_its_errors():
    table = made(held_out=False)
    assert set(table["interval_basis"]) == {PARAMETERS_ONLY_TEXT}
    assert (table["predicted_low"] == table["parameters_low"]).all()
    assert read_residuals(table, "p", "f") == {}


def test_a_table_survives_its_file_and_an_older_one_is_read_as_what_it_is(tmp_path):
    table = made()
    write_table(tmp_path / "new.csv", table)
    assert set(read_table(tmp_path / "new.csv", COMPARISON)["interval_basis"]) == set(table["interval_basis"])
    older = table.drop(columns=["interval_basis", "parameters_low", "parameters_high"])
    write_table(tmp_path / "old.csv", older)
    shown = prepare_comparison(read_table(tmp_path / "old.csv", COMPARISON))
    assert set(shown["interval_basis"]) == {PARAMETERS_ONLY_TEXT}
    assert (shown["parameters_low"] == shown["predicted_low"]).all()


def test_a_vote_errs_by_the_weighted_mean_of_what_its_families_err():
    first = made().assign(family="f")
    second = made({key: 1 / value for key, value in OFF.items()}).assign(family="g")
    common = combine_residuals(pd.concat([first, second]), {"f": 0.5, "g": 0.5})
    np.testing.assert_allclose(common.logs, 0, atol=1e-12)
    alone = combine_residuals(pd.concat([first, second]), {"f": 1.0, "g": 0.0})
    np.testing.assert_allclose(np.sort(alone.logs), np.sort(np.log(list(OFF.values()))))
    assert combine_residuals(first[first["measured"].isna()], {"f": 1.0}) is None


def test_a_vote_does_not_err_where_a_family_was_blind_to_the_size_and_had_weight_0():
    rows = made()
    rows = rows[rows["measured"].notna()]
    large = rows["bytes"] > 8
    blind = rows.assign(
        family="g",
        predicted=rows["predicted"].where(~large, rows["predicted"] / 1000),
        validity=rows["validity"].where(~large, Validity(ValidityKind.SIZE, "valid for 8 B").text),
    )
    both = combine_residuals(pd.concat([rows, blind]), {"f": 0.7, "g": 0.3})
    np.testing.assert_allclose(np.sort(both.logs), np.sort(combine_residuals(rows, {"f": 1.0}).logs))
    assert len(combine_residuals(pd.concat([rows, blind]), {"f": 0.3, "g": 0.7}).logs) == (~large).sum()


def test_without_measurements_the_errors_that_sets_carry_add_up():
    bands = read_residuals(made(), "p", "f")
    interval = combine_intervals({"f": bands, "g": bands}, {"f": 0.25, "g": 0.75}, ASKED)
    assert (interval.low[0], interval.high[0]) == pytest.approx((bands["bcast"].low, bands["bcast"].high))
    assert "bcast" in interval.bases[0].text
    lacking = combine_intervals({"f": bands, "g": {}}, {"f": 0.25, "g": 0.75}, ASKED)
    assert [basis.text for basis in lacking.bases] == [PARAMETERS_ONLY_TEXT]


def test_errors_of_many_families_are_their_own():
    assert fit_bands(combine_residuals(made(), {"f": 1.0})) == read_residuals(made(), "p", "f")
