"""Intervals of a comparison: from other jobs only, beside those of the parameters; older tables have none."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from commodel.compare.comparison import compare
from commodel.compare.comparison_intervals import errors_of, voted, weighed
from commodel.files.tables import COMPARISON, read_table, write_table
from commodel.models.parameter_sets import set_given
from commodel.predictions.prediction_intervals import PARAMETERS, IntervalBasis, Workload, fit_bands
from commodel.predictions.predictions import predict
from commodel.predictions.validity import PriceStatus
from commodel.records import Batch, Point
from commodel.reports.frames import prepare
from tests.planning import planned

RNG = np.random.default_rng(5)
POINTS = [
    Point("p", "bcast", choice, "", "block:1", ranks, size)
    for ranks in (4, 8, 16)
    for size in (8, 64, 512, 4096)
    for choice in ("linear", "binomial")
]
LAST = Point("p", "bcast", "chain", "", "block:1", 8, 512)
TIMES = {point.id: point.ranks * (1 + point.bytes / 100) for point in POINTS}
ASKED = Workload.of(LAST, [8])
OFF = {point.id: float(np.exp(RNG.normal(0.3, 0.1))) for point in POINTS}


def made(off=OFF, held_out=True, times=TIMES, reach=("", ""), alone=None, status=None) -> pd.DataFrame:
    """Measured in one allocation, but for the last point; the family's own interval is 1 % wide. `reach`: of all points
    but the last, and of that."""
    points = [replace(point, reach=reach[0]) for point in POINTS]
    plan = planned(Batch("b", "p", 16, (*points, replace(LAST, reach=reach[1]))), families=("f",), passes=1)
    rows = [
        {"kind": "point", "id": key, "seconds": time, "valid": True, "pass": 1, "skew": 0.0, "stop": "precision"}
        for key, time in times.items()
    ]
    prices = {key: time / off[key] for key, time in TIMES.items()} | {LAST.id: 40.0}
    table = [(key, "f", price, 0.99 * price, 1.01 * price, "ok", held_out) for key, price in prices.items()]
    columns = ["point", "family", "predicted", "predicted_low", "predicted_high", "status", "held_out"]
    predictions = pd.DataFrame(table, columns=columns)
    for name, column in {"alone": alone, "status": status}.items():
        predictions = predictions.assign(**{name: predictions["point"].map(column)}) if column else predictions
    return compare(plan, pd.DataFrame(rows), predictions)


def test_bands_stand_beside_what_the_parameters_leave_open():
    table = made()
    rows = table[table["measured"].notna()]
    assert rows["inside"].mean() >= 0.9
    np.testing.assert_allclose(rows["parameters_low"], 0.99 * rows["predicted"])
    np.testing.assert_allclose(rows["parameters_high"], 1.01 * rows["predicted"])
    assert (rows["interval"] == "at least: 1 allocation, 11 groups of bcast").all()


def test_what_a_point_took_does_not_move_its_own_interval():
    point = POINTS[3]
    moved = made(times=TIMES | {point.id: 50 * TIMES[point.id]}).set_index("point").loc[point.id]
    before = made().set_index("point").loc[point.id]
    assert tuple(moved[["predicted_low", "predicted_high"]]) == tuple(before[["predicted_low", "predicted_high"]])
    assert not moved["inside"]


def test_what_was_not_measured_has_the_band_of_all_that_was():
    table = made()
    row = table.set_index("point").loc[LAST.id]
    band = errors_of(table, "p", "f")["bcast"]
    assert row["interval"].endswith("12 groups of bcast")
    assert row["predicted_low"] == pytest.approx(40 * np.exp(band.low))
    assert row["predicted_high"] == pytest.approx(40 * np.exp(band.high))


def test_what_messages_alone_are_off_by_is_no_error_but_moves_the_interval(tmp_path):
    """Prices that are as wrong as those of single messages have the bands of prices that are right."""
    single = {point.id: 1.0 + np.log2(point.bytes) for point in (*POINTS, LAST)}
    wrong = {key: off * single[key] for key, off in OFF.items()}
    write_table(tmp_path / "c.csv", made(wrong, alone=single))
    right, silent, telling = made(), made(wrong), read_table(tmp_path / "c.csv", COMPARISON)
    bands = [errors_of(table, "p", "f")["bcast"] for table in (right, telling, silent)]
    assert (bands[1].low, bands[1].high) == pytest.approx((bands[0].low, bands[0].high))
    assert bands[2].high - bands[2].low > 2 * (bands[0].high - bands[0].low)
    np.testing.assert_allclose(voted(telling, {"f": 1.0}).logs, voted(right, {"f": 1.0}).logs)
    ends = ["predicted_low", "predicted_high"]
    factor = np.where(telling["point"] == LAST.id, single[LAST.id], 1.0)[:, None]  # whose price is the same in both
    np.testing.assert_allclose(telling[ends], right[ends] * factor)


def test_what_prices_blind_to_their_size_are_off_by_says_nothing_of_others():
    """Short messages priced within a tenth, long ones thousandfold too low: of these a set carries nothing, either."""
    long = {point.id for point in POINTS if point.bytes > 8}
    wrong = {key: off * (1000 if key in long else 1) for key, off in OFF.items()}
    status = {key: "blind to size: holds for 8 B" if key in long else "ok" for key in (*OFF, LAST.id)}
    table, short = made(wrong, status=status).set_index("point"), [key for key in OFF if key not in long]
    assert (table.loc[short, "predicted_high"] < 3 * table.loc[short, "predicted"]).all()
    assert (table.loc[list(long), "predicted_low"] > 300 * table.loc[list(long), "predicted"]).all()
    (band,) = {errors.high for errors in errors_of(table.reset_index(), "p", "f").values()}
    assert band < 1
    known = replace(set_given("logp", ["L=10us", "o=1us", "g=2us"]), bytes_range=(1.0, 8.0))
    carrying = replace(known, errors=errors_of(table.reset_index(), "p", "f"))
    intervals = [price.interval for price in predict(carrying, [replace(POINTS[0], bytes=size) for size in (8, 4096)])]
    assert IntervalBasis.parse(intervals[0]).of_residuals
    assert intervals[1] == PARAMETERS


def test_what_goes_farther_than_all_that_was_measured_has_no_band(tmp_path):
    """As tables keep it; of those measured each has that of the others."""
    write_table(tmp_path / "c.csv", made(reach=("node/leaf", "node/leaf/beyond")))
    table = read_table(tmp_path / "c.csv", COMPARISON)
    row = table.set_index("point").loc[LAST.id]
    assert row["interval"] == f"{PARAMETERS}: nothing measured beyond one leaf"
    assert (row["predicted_low"], row["predicted_high"]) == (row["parameters_low"], row["parameters_high"])
    assert errors_of(table, "p", "f")["bcast"].reach == ("node/leaf",)
    assert (table["interval"].str.endswith("11 groups of bcast")).sum() == len(POINTS)
    near = made(reach=("node/leaf/beyond", "node/leaf")).set_index("point").loc[LAST.id]
    assert near["interval"].endswith("12 groups of bcast")


def test_what_a_fit_has_seen_tells_nothing_about_its_errors():
    table = made(held_out=False)
    assert set(table["interval"]) == {PARAMETERS}
    assert (table["predicted_low"] == table["parameters_low"]).all()
    assert errors_of(table, "p", "f") == {}


def test_a_table_survives_its_file_and_an_older_one_is_read_as_what_it_is(tmp_path):
    table = made()
    write_table(tmp_path / "new.csv", table)
    assert set(read_table(tmp_path / "new.csv", COMPARISON)["interval"]) == set(table["interval"])
    older = table.drop(columns=["interval", "parameters_low", "parameters_high"])
    write_table(tmp_path / "old.csv", older)
    shown = prepare(read_table(tmp_path / "old.csv", COMPARISON))
    assert set(shown["interval"]) == {PARAMETERS}
    assert (shown["parameters_low"] == shown["predicted_low"]).all()


def test_a_vote_errs_by_the_weighted_mean_of_what_its_families_err():
    first = made().assign(family="f")
    second = made({key: 1 / value for key, value in OFF.items()}).assign(family="g")
    common = voted(pd.concat([first, second]), {"f": 0.5, "g": 0.5})
    np.testing.assert_allclose(common.logs, 0, atol=1e-12)
    alone = voted(pd.concat([first, second]), {"f": 1.0, "g": 0.0})
    np.testing.assert_allclose(np.sort(alone.logs), np.sort(np.log(list(OFF.values()))))
    assert voted(first[first["measured"].isna()], {"f": 1.0}) is None


def test_a_vote_does_not_err_where_a_family_was_blind_to_the_size_and_had_no_say():
    rows = made()
    rows = rows[rows["measured"].notna()]
    large = rows["bytes"] > 8
    blind = rows.assign(
        family="g",
        predicted=rows["predicted"].where(~large, rows["predicted"] / 1000),
        status=rows["status"].where(~large, PriceStatus.BLIND.because("holds for 8 B")),
    )
    both = voted(pd.concat([rows, blind]), {"f": 0.7, "g": 0.3})
    np.testing.assert_allclose(np.sort(both.logs), np.sort(voted(rows, {"f": 1.0}).logs))
    assert len(voted(pd.concat([rows, blind]), {"f": 0.3, "g": 0.7}).logs) == (~large).sum()


def test_without_measurements_the_errors_that_sets_carry_add_up():
    bands = errors_of(made(), "p", "f")
    interval = weighed({"f": bands, "g": bands}, {"f": 0.25, "g": 0.75}, ASKED)
    assert (interval.low[0], interval.high[0]) == pytest.approx((bands["bcast"].low, bands["bcast"].high))
    assert "bcast" in interval.bases[0].text
    lacking = weighed({"f": bands, "g": {}}, {"f": 0.25, "g": 0.75}, ASKED)
    assert [basis.text for basis in lacking.bases] == [PARAMETERS]


def test_errors_of_many_families_are_their_own():
    assert fit_bands(voted(made(), {"f": 1.0})) == errors_of(made(), "p", "f")
