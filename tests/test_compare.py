"""The metrics, on a table small enough to work out by hand."""

import numpy as np
import pandas as pd
import pytest

from commodel.compare import compare, selection, summarize
from commodel.records import Batch, Plan, Point

POINTS = [
    Point("p", "bcast", choice, "", "block:1", 8, size)
    for size in (8, 1024)
    for choice in ("linear", "binomial", "chain")
] + [Point("p", "barrier", "dissemination", "", "block:1", 8, 0)]
MEASURED = dict(zip([point.id for point in POINTS], [10.0, 8.0, 20.0, 30.0, 25.0, 24.0, None], strict=True))
PREDICTED = dict(zip([point.id for point in POINTS], [5.0, 8.0, 40.0, 30.0, 20.0, 27.0, 3.0], strict=True))


@pytest.fixture
def comparison():
    plan = Plan(
        "e", "e", "d", 1, ("f",), {}, {}, {"p": {"simulated": False}}, (Batch("b", "p", 8, tuple(POINTS)),), "0"
    )
    rows = [
        {
            "kind": "point",
            "id": case,
            "seconds": median + offset,
            "valid": valid,
            "pass": 1,
            "skew": 0.0,
            "stop": "precision",
        }
        for case, median in MEASURED.items()
        if median
        for offset, valid in [(0.1 * step, True) for step in range(-5, 6)] + [(100.0, False)]
    ]
    predictions = pd.DataFrame(
        [(case, "f", value, value - 1, value + 1, "ok") for case, value in PREDICTED.items()],
        columns=["point", "family", "predicted", "predicted_low", "predicted_high", "status"],
    )
    return compare(plan, pd.DataFrame(rows), predictions)


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


def test_a_point_without_measurement_stays_and_says_so(comparison):
    row = comparison.set_index("point").loc[POINTS[-1].id]
    assert np.isnan(row["measured"])
    assert np.isnan(row["mu"])
    assert row["measurement"] == "not measured"
    assert row["predicted"] == 3.0


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
