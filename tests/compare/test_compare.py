"""The metrics, on a table small enough to work out by hand."""

import numpy as np
import pandas as pd
import pytest

from commodel.compare.comparison import Measurement, clearly_faster, compare, is_oversubscribed, selection, summarize
from commodel.patterns.build import fan_ins, schedule
from commodel.records import Batch, Point
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
    rows = [(case, family, factor * value, value - 1, value + 1, "ok") for case, value in PREDICTED.items()]
    columns = ["point", "family", "predicted", "predicted_low", "predicted_high", "status"]
    return pd.DataFrame(rows, columns=columns).assign(**more)


@pytest.fixture
def comparison():
    return compared(predicted("f"))


def compared(
    predictions,
    unmeasured=None,
    points=POINTS,
    measured=MEASURED,
    asked=1,
    good=True,
    simulated=False,
    scatter=None,
    **more,
):
    """`scatter`: the largest sample of a case over its smallest, where the interval of eleven goes over 0.8 of that."""
    batch = Batch("b", "p", 8, tuple(points))
    plan = planned(batch, families=("f",), passes=asked, simulated=("p",) if simulated else ())
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
    assert not first["inside"]
    assert first["samples"] == 11
    assert first["invalid"] == 1
    assert rows.loc[POINTS[2].id, "mu"] == pytest.approx(2.0)
    assert rows.loc[POINTS[1].id, "inside"]


def test_prices_stand_alone_where_no_point_was_measured():
    """Observations are those of probes then."""
    plan = planned(Batch("b", "p", 8, tuple(POINTS)), families=("f",))
    probes = {"kind": "probe", "id": "x", "seconds": 1.0, "valid": True, "pass": 1, "skew": 0.0, "stop": "precision"}
    rows = compare(plan, pd.DataFrame([probes] * 6), predicted("f"))
    assert rows["measured"].isna().all()
    assert rows["predicted"].tolist() == list(PREDICTED.values())
    assert not rows["best"].any()


def test_a_point_without_measurement_stays_and_says_so(comparison):
    row = comparison.set_index("point").loc[POINTS[-1].id]
    assert np.isnan(row["measured"])
    assert np.isnan(row["mu"])
    assert row["measurement"] == "not measured"
    assert row["predicted"] == 3.0


def test_a_point_without_measurement_says_why():
    """And where none is known, no more than that; a point that was measured after all is ok."""
    why = pd.DataFrame([(POINTS[6].id, "budget"), (POINTS[0].id, "crash")], columns=["id", "status"])
    rows = compared(predicted("f"), why).set_index("point")["measurement"]
    assert rows[POINTS[6].id] == "not measured: budget"
    assert set(rows.drop(POINTS[6].id)) == {"ok"}


def test_a_point_without_a_valid_sample_says_so():
    rows = compared(predicted("f"), good=False).set_index("point")["measurement"]
    assert rows[POINTS[0].id] == "not measured: no valid sample"
    assert rows[POINTS[6].id] == "not measured"


def test_a_point_whose_passes_differ_says_how_well_it_is_known():
    """As where others used the machine meanwhile; the words about its passes stay what they are."""
    scatter = {POINTS[0].id: 5.0, POINTS[1].id: 2.0}
    rows = compared(predicted("f"), asked=3, scatter=scatter).set_index("point")["measurement"]
    assert rows[POINTS[0].id] == "ok, 1 of 3 passes, known to a factor of 3.6"
    assert set(rows.drop([POINTS[0].id, POINTS[6].id])) == {"ok, 1 of 3 passes"}
    assert {Measurement.parse(text).passes for text in rows.drop(POINTS[6].id)} == {"1 of 3 passes"}
    rows = compared(predicted("f"), scatter=scatter).set_index("point")["measurement"]
    assert rows[POINTS[0].id] == "ok, known to a factor of 3.6"
    assert not Measurement.parse(rows[POINTS[0].id]).passes


def test_a_point_with_some_of_its_passes_says_so():
    rows = compared(predicted("f"), asked=3).set_index("point")["measurement"]
    assert set(rows.drop(POINTS[6].id)) == {"ok, 1 of 3 passes"}
    assert "ok" in set(compared(predicted("f"), asked=3, simulated=True)["measurement"])


def test_a_gap_changes_no_figure_of_the_others():
    """As if the point had never been planned: here the fastest of its job."""
    gone = POINTS[1].id
    lacking = compared(predicted("f"), measured={case: time for case, time in MEASURED.items() if case != gone})
    never = [point for point in POINTS if point.id != gone]
    planned = compared(predicted("f"), points=never)
    for figures in (summarize, selection):
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
    (summary,) = summarize(comparison, ["family"]).to_dict("records")
    assert summary["points"] == 6
    assert summary["mu_mean"] == pytest.approx(np.mean([2, 1, 2, 1, 1.25, 1.125]))
    assert summary["bias"] == pytest.approx(np.median([-0.5, 0, 1, 0, -0.2, 0.125]))
    (choice,) = selection(comparison, ["family"]).to_dict("records")
    assert choice["groups"] == 2
    assert choice["right"] == 0.0  # 10 against 8, 25 against 24: the intervals do not overlap
    assert choice["regret_max"] == pytest.approx(0.25)


def test_a_choice_that_cannot_be_told_from_the_best_is_right(comparison):
    close = comparison.assign(measured_low=comparison["measured_low"] - 1.0)
    (choice,) = selection(close, ["family"]).to_dict("records")
    assert choice["right"] == 0.5


def test_a_price_of_zero_is_infinitely_wrong():
    free = compared(pd.concat([predicted("f"), predicted("free", 0.0)]))
    rows = summarize(free, ["family"]).set_index("family")
    assert rows.loc["free", "mu_mean"] == rows.loc["free", "mu_reached"] == np.inf
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
    by_family = summarize(rows, ["family"]).set_index("family")
    assert by_family["points"].to_dict() == {"f": 6, "seen": 4}
    assert by_family.loc["seen", "mu_mean"] == pytest.approx(np.mean([2, 1, 1.25, 1.125]))
    assert selection(rows, ["family"]).set_index("family")["groups"].to_dict() == {"f": 2, "seen": 1}


def test_without_a_library_there_is_nothing_to_compare_with(comparison):
    (choice,) = selection(comparison, ["family"]).to_dict("records")
    assert np.isnan(choice["over_library"])
    assert choice["over_fastest"] == pytest.approx((10 / 8 * 25 / 24) ** 0.5)


def busiest(pattern):
    """The obvious loop: count what arrives at each rank in each step."""
    arrived = {}
    for step, dst in zip(pattern.step, pattern.dst, strict=True):
        arrived[step, dst] = arrived.get((step, dst), 0) + 1
    return max(arrived.values(), default=0)


def test_fan_in_is_the_most_messages_a_rank_gets_in_one_step(comparison):
    points = [point for bytes in (0, 1, 8192, 100_000) for point in catalogue(13, bytes)]
    fan_in_of = fan_ins(points)
    assert fan_in_of == {point.id: busiest(schedule(point)) for point in points}
    assert {1, 12} <= set(fan_in_of.values())
    assert comparison["fan_in"].tolist() == [1] * 7


def test_fan_ins_builds_few_schedules(monkeypatch):
    built = []
    monkeypatch.setattr("commodel.patterns.build.fan_in", lambda pattern: built.append(pattern) or busiest(pattern))
    fan_ins([point for size in range(1, 200) for point in catalogue(4, size)])
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
    assert clearly_faster(first, second) == clear
    assert not clearly_faster(second, first)


def test_a_row_says_how_many_processes_shared_the_processors_of_a_host():
    points = [Point("p", "bcast", "linear", "", layout, 8, 64) for layout in ("block:3", "cyclic:2")]
    times = {point.id: 1.0 for point in points}
    rows = compared(predicted("f"), points=points, measured=times, processors={"b": 2})
    assert rows["processes"].tolist() == [3, 2]
    assert is_oversubscribed(rows).tolist() == [True, False]
    unknown = compared(predicted("f"), points=points, measured=times)
    assert unknown[["processes", "processors"]].isna().all(axis=None)
    assert not is_oversubscribed(unknown).any()
