"""How much jobs differ: of batches against prices, where people or allocations tell them apart; and on paper."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from commodel.compare.recalibration import BATCHES, CALIBRATED, COLUMNS, drift
from commodel.models.parameter_sets import set_given
from commodel.predictions.predictions import predict
from commodel.records import Batch
from commodel.reports.sections.conditions import describe_settings, list_settings
from commodel.results.recalibrations import Calibration, NotedFactor, NotedPace
from tests.models.exact import moved
from tests.patterns.catalogue import point
from tests.planning import planned

HOCKNEY = replace(set_given("hockney", ["alpha=10us", "beta=1ns"]), platform="p")
WRONG = replace(set_given("loggp", ["L=50us", "o_s=2us", "o_r=1us", "g=1us", "G=9ns"]), platform="p")
POINTS = [
    replace(point("bcast", choice, ranks=ranks, bytes=size), platform="p")
    for choice in ("linear", "binomial")
    for ranks in (4, 8)
    for size in (8, 1 << 12, 1 << 18)
]
BATCH = (Batch("small", "p", 4, tuple(POINTS[:6])), Batch("large", "p", 8, tuple(POINTS[6:])))
PLAN = planned(*BATCH, families=("hockney", "loggp"))


def comparison(latency=1.0, per_byte=1.0, noise=0.01, **more):
    """The second batch is of a job with these factors."""
    slow = moved(HOCKNEY, latency, per_byte)
    rows = []
    for batch, truth in zip(BATCH, (HOCKNEY, slow), strict=True):
        for entry in predict(truth, batch.points):
            for known in (HOCKNEY, WRONG):
                (price,) = predict(known, [entry.point])
                measured = entry.seconds * np.exp(noise * np.sin(len(rows) // 2 * 5.0))
                mu = max(price.seconds / measured, measured / price.seconds)
                rows.append(
                    {
                        "operation": "bcast",
                        "point": entry.point.id,
                        "platform": "p",
                        "family": known.family,
                        "batch": batch.name,
                        "mu": mu,
                    }
                    | {"measured": measured, "predicted": price.seconds, "held_out": True, "status": "ok", "waves": 1}
                )
    return pd.DataFrame(rows).assign(**({"simulated": False} | more))


def test_batches_are_told_apart_against_the_prices_of_the_nearest_family():
    rows = drift(PLAN, comparison(2.0, 3.0), [HOCKNEY, WRONG], {}).set_index("job")
    assert set(rows["family"]) == {"hockney"}
    assert set(rows["against"]) == {BATCHES}
    for job, latency, per_byte in (("small", 1.0, 1.0), ("large", 2.0, 3.0)):
        row = rows.loc[job]
        assert row["latency_low"] <= latency <= row["latency_high"]
        assert row["per_byte_low"] <= per_byte <= row["per_byte_high"]
        assert row["latency_value"] == pytest.approx(latency, rel=0.05)
    assert not describe_settings(rows.reset_index())  # what a family is off may look the same


def test_where_people_tell_settings_apart_these_are_the_jobs():
    rows = comparison(2.0)
    labelled = rows.assign(setting=np.where(rows["batch"] == "small", "", "friday"))
    assert set(drift(PLAN, labelled, [HOCKNEY, WRONG], {})["job"]) == {"(none)", "friday"}
    simulated = labelled.assign(simulated=True)
    assert len(drift(PLAN, simulated, [HOCKNEY, WRONG], {})) == 2


def test_batches_of_a_simulated_platform_are_one_job():
    alike = drift(PLAN, comparison(2.0, simulated=True), [HOCKNEY, WRONG], {})
    assert alike.empty
    assert list(alike) == COLUMNS
    assert list_settings(alike) == []


def calibration(latency, after=1.05):
    """By two families, of which one is nearer afterwards."""
    factor = NotedFactor(latency, latency / 1.05, latency * 1.05, True)
    untold = NotedFactor(1.0, 1.0, 1.0, False)
    near = NotedPace(factor, untold, False, 6, 0.01, 1.4, after, 6)
    far = replace(near, latency=replace(factor, value=9.0), after=2.0)
    return Calibration("rails=2", "p", "q", False, "2026-11-23", (), {"far": far, "near": near})


def test_calibrations_are_told_by_the_family_that_is_nearest_afterwards():
    rows = drift(PLAN, comparison().iloc[:0], [HOCKNEY], {"a": calibration(1.5), "b": calibration(1.0)})
    assert set(rows["family"]) == {"near"}
    assert set(rows["against"]) == {CALIBRATED}
    assert rows["per_byte_value"].isna().all()
    (only,) = describe_settings(rows)
    assert only.startswith("In job rails=2, on q latency is 1.5× [1.43, 1.58] that of the campaign")
    assert "1.40 times off there, 1.05 after" in only
    (section,) = list_settings(rows)
    assert len(section.tables[0].rows) == 2
