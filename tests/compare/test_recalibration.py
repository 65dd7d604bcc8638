"""Recalibration by a few new measurements, and the drift between allocations."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from commodel.compare.recalibration import (
    BASIS_PREDICTIONS,
    BASIS_SAME_POINTS,
    COLUMNS,
    MIN_POINTS_OF_FACTORS,
    Witness,
    list_campaign_witnesses,
    list_message_witnesses,
    measure_drift,
    recalibrate_sets,
    select_witnesses,
    summarize_samples,
)
from commodel.hierarchy import Hierarchy
from commodel.models.parameter_sets import make_given_set
from commodel.parameters import Errors
from commodel.patterns.points import Setting
from commodel.predictions.predictions import predict
from commodel.records import Batch, Point
from commodel.reports.sections.measurement_conditions import describe_settings, list_settings
from commodel.results.recalibrations import Calibration, RecordedFactor, RecordedFactors
from tests.models.exact import moved
from tests.patterns.catalogue import point
from tests.planning import planned

LOGGP = make_given_set("loggp", ["L=5us", "o_s=2us", "o_r=1us", "g=1us", "G=1ns"])
HOCKNEY = make_given_set("hockney", ["alpha=8us", "beta=1.2ns"])
LOGP = make_given_set("logp", ["L=5us", "o=2us", "g=1us"])
PMNF = make_given_set("pmnf", ["c0=1us"])
CAMPAIGN = [
    point(operation, choice, ranks=ranks, bytes=size, layout=layout)
    for operation, choice in (("bcast", "linear"), ("bcast", "binomial"), ("reduce", "binomial"), ("allgather", "ring"))
    for ranks, layout in ((2, "block:2"), (2, "block:1"), (8, "block:1"))
    for size in (8, 1 << 12, 1 << 20)
]
FLAT = Hierarchy()
TAKEN = 6  # points, as `commodel calibrate` does


def seconds(parameters, points):
    return [prediction.seconds for prediction in predict(parameters, points)]


def make_witnesses(machine, points=CAMPAIGN, off=0.2):
    """Of a campaign on that machine, whose times are off any prediction by up to a factor of their own."""
    own = np.exp(off * np.sin(np.arange(len(points)) * 7.0))
    return [
        Witness(entry, time * more) for entry, time, more in zip(points, seconds(machine, points), own, strict=True)
    ]


def measure_in_job(witnesses, machine, job):
    """The same points in the job: each off its prediction by the same factor as in the campaign."""
    points = [entry.point for entry in witnesses]
    ratios = np.array(seconds(job, points)) / seconds(machine, points)
    return [
        summarize_samples(entry, [{"seconds": entry.seconds * ratio, "valid": True}] * 6)
        for entry, ratio in zip(witnesses, ratios, strict=True)
    ]


@pytest.mark.parametrize("count", [4, 6])
@pytest.mark.parametrize(("latency", "per_byte"), [(1.0, 1.0), (2.0, 1.0), (1.0, 2.0), (0.7, 3.0)])
def test_a_campaign_s_predictions_are_moved_to_a_job_of_known_factors(latency, per_byte, count):
    witnesses, job = make_witnesses(LOGGP), moved(LOGGP, latency, per_byte)
    used, kept = select_witnesses(witnesses, [LOGGP], FLAT, count, 8)
    assert (len(used), len(kept), len(set(used) & set(kept))) == (count, 8, 0)
    ((done,), none) = recalibrate_sets(
        [LOGGP], measure_in_job(used, LOGGP, job), measure_in_job(kept, LOGGP, job), "job", {}
    )
    assert not none
    assert done.factors.latency.value == pytest.approx(latency, rel=1e-6)
    assert done.factors.per_byte.value == pytest.approx(per_byte, rel=1e-6)
    assert done.factors.latency.low <= latency <= done.factors.latency.high
    assert done.checked == 8
    still_off = np.mean(
        np.exp(
            np.abs(
                np.log(
                    [entry.witness.seconds for entry in measure_in_job(kept, LOGGP, LOGGP)]
                    / np.array(seconds(LOGGP, [entry.point for entry in kept]))
                )
            )
        )
    )
    assert done.after == pytest.approx(still_off)  # what it was off in the campaign
    if (latency, per_byte) != (1.0, 1.0):
        assert done.after < done.before


def test_of_every_distance_there_is_a_short_and_a_long_point():
    used, _ = select_witnesses(make_witnesses(LOGGP, off=0.0), [LOGGP], FLAT, 4, 4)
    within = [entry.point for entry in used if entry.point.layout == "block:2"]
    between = [entry.point for entry in used if entry.point.layout == "block:1"]
    for near in (within, between):
        assert sorted(entry.bytes for entry in near) == [8, 1 << 20]
        assert all(entry.ranks == 2 for entry in near)  # the quickest that tell as much


def test_points_with_local_work_show_less():
    worked = replace(LOGGP, values={**LOGGP.values, "gamma": LOGGP.values["G"]})
    used, _ = select_witnesses(make_witnesses(worked), [worked], FLAT, TAKEN, 8)
    assert "reduce" not in {entry.point.operation for entry in used}


def test_families_that_see_no_size_have_one_factor_and_what_has_none_is_marked():
    witnesses, job = make_witnesses(LOGGP, off=0.0), moved(LOGGP, 2.0, 2.0)
    used, kept = select_witnesses(witnesses, [LOGP, LOGGP], FLAT, TAKEN, 8)
    done, complaints = recalibrate_sets(
        [LOGGP, LOGP, PMNF], measure_in_job(used, LOGGP, job), measure_in_job(kept, LOGGP, job), "job", {}
    )
    paces = {entry.moved.family: entry.factors for entry in done}
    assert list(complaints) == ["pmnf"]
    assert not paces["logp"].per_byte.known
    assert paces["logp"].latency.value == pytest.approx(2.0, rel=0.05)
    assert [entry.after for entry in done] == sorted(entry.after for entry in done)


def test_without_a_campaign_what_predictions_are_off_widens_the_interval():
    """Messages against predictions: a family that is always off by a fifth does not take that for another job."""
    site = Setting("p", 16, 4, levels=(("leaf", (0,) * 8 + (1,) * 8),))
    messages, _ = list_message_witnesses(site)
    layouts = [entry.point.layout for entry in messages]
    messages = messages[:TAKEN]
    assert len(set(layouts)) == 3
    points = [entry.point for entry in messages]
    times = 1.2 * np.array(seconds(LOGGP, points))
    used = [
        summarize_samples(entry, [{"seconds": time, "valid": True}])
        for entry, time in zip(messages, times, strict=True)
    ]
    interval = Errors(
        -0.3,
        0.3,
        9,
        1,
        ("bcast",),
        {"ranks": (2.0,), "bytes": (8.0, float(1 << 20))},
        dict.fromkeys(("ranks", "bytes", "operation"), 0.0),
        dict.fromkeys(("ranks", "bytes"), 0.0),
    )
    for errors, holds in (({}, False), ({"loggp": {"bcast": interval}}, True)):
        ((done,), _) = recalibrate_sets([LOGGP], used, [], "job", errors)
        assert done.factors.latency.value == pytest.approx(1.2)
        assert (done.factors.latency.low < 1) is holds
        assert done.checked == 0


def test_two_points_show_two_factors_only_where_errors_are_known():
    used = measure_in_job(
        select_witnesses(make_witnesses(LOGGP), [LOGGP], FLAT, MIN_POINTS_OF_FACTORS, 8)[0],
        LOGGP,
        moved(LOGGP, 2.0, 2.0),
    )
    ((done,), _) = recalibrate_sets([LOGGP], used, [], "job", {})
    assert done.factors.together
    assert done.factors.latency.low <= 2.0 <= done.factors.latency.high


def test_witnesses_are_points_that_were_measured_and_are_quick():
    points = [replace(entry, platform="p") for entry in CAMPAIGN[:6]]
    points.append(Point("p", "bcast", "library", "", "block:1", 2, 8))
    rows = [
        {"point": entry.id, "operation": entry.operation, "held_out": True, "measured": 1e-3, "measured_low": 0.9e-3}
        | {"measured_high": 1.1e-3, "predicted": 1e-3, "waves": 1}
        for entry in points
    ]
    rows[0] |= {"measured": np.nan}
    rows[1] |= {"measured": 5.0}
    rows[2] |= {"waves": 10}
    witnesses = list_campaign_witnesses(points, pd.DataFrame(rows), 1)
    assert [entry.point for entry in witnesses] == [entry for entry in points[3:6] if entry.nodes <= 1]
    assert witnesses[0].noise == pytest.approx(np.log(1.1 / 0.9) / 2 / 1.96)
    assert summarize_samples(witnesses[0], [{"seconds": 1e-3, "valid": False}]) is None


FITTED = replace(make_given_set("hockney", ["alpha=10us", "beta=1ns"]), platform="p")
WRONG = replace(make_given_set("loggp", ["L=50us", "o_s=2us", "o_r=1us", "g=1us", "G=9ns"]), platform="p")
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
    slow = moved(FITTED, latency, per_byte)
    rows = []
    for batch, truth in zip(BATCH, (FITTED, slow), strict=True):
        for entry in predict(truth, batch.points):
            for known in (FITTED, WRONG):
                (prediction,) = predict(known, [entry.point])
                measured = entry.seconds * np.exp(noise * np.sin(len(rows) // 2 * 5.0))
                mu = max(prediction.seconds / measured, measured / prediction.seconds)
                rows.append(
                    {
                        "operation": "bcast",
                        "point": entry.point.id,
                        "platform": "p",
                        "family": known.family,
                        "batch": batch.name,
                        "mu": mu,
                    }
                    | {
                        "measured": measured,
                        "predicted": prediction.seconds,
                        "held_out": True,
                        "validity": "valid",
                        "waves": 1,
                    }
                )
    return pd.DataFrame(rows).assign(**({"simulated": False} | more))


def test_batches_are_distinguished_against_the_predictions_of_the_nearest_family():
    rows = measure_drift(PLAN, comparison(2.0, 3.0), [FITTED, WRONG], {}).set_index("allocation")
    assert set(rows["family"]) == {"hockney"}
    assert set(rows["against"]) == {BASIS_PREDICTIONS}
    for job, latency, per_byte in (("small", 1.0, 1.0), ("large", 2.0, 3.0)):
        row = rows.loc[job]
        assert row["latency_low"] <= latency <= row["latency_high"]
        assert row["per_byte_low"] <= per_byte <= row["per_byte_high"]
        assert row["latency_value"] == pytest.approx(latency, rel=0.05)
    assert not describe_settings(rows.reset_index())  # what a family is off may look the same


def test_where_people_show_settings_apart_these_are_the_jobs():
    rows = comparison(2.0)
    labelled = rows.assign(setting=np.where(rows["batch"] == "small", "", "friday"))
    assert set(measure_drift(PLAN, labelled, [FITTED, WRONG], {})["allocation"]) == {"(none)", "friday"}
    simulated = labelled.assign(simulated=True)
    assert len(measure_drift(PLAN, simulated, [FITTED, WRONG], {})) == 2


def test_batches_of_a_simulated_platform_are_one_job():
    alike = measure_drift(PLAN, comparison(2.0, simulated=True), [FITTED, WRONG], {})
    assert alike.empty
    assert list(alike) == COLUMNS
    assert list_settings(alike) == []


def calibration(latency, after=1.05):
    """By two families, of which one is nearer afterwards."""
    factor = RecordedFactor(latency, latency / 1.05, latency * 1.05, True)
    untold = RecordedFactor(1.0, 1.0, 1.0, False)
    near = RecordedFactors(factor, untold, False, 6, 0.01, 1.4, after, 6)
    far = replace(near, latency=replace(factor, value=9.0), after=2.0)
    return Calibration("rails=2", "p", "q", False, "2026-11-23", (), {"far": far, "near": near})


def test_calibrations_have_the_model_with_the_smallest_error_afterwards():
    rows = measure_drift(PLAN, comparison().iloc[:0], [FITTED], {"a": calibration(1.5), "b": calibration(1.0)})
    assert set(rows["family"]) == {"near"}
    assert set(rows["against"]) == {BASIS_SAME_POINTS}
    assert rows["per_byte_value"].isna().all()
    (only,) = describe_settings(rows)
    assert only.platform == "p"
    assert only.text.startswith("In rails=2, on q, latency is 1.5× [1.43, 1.58] that of the campaign")
    for figure in ("1.40", "1.05"):
        assert figure in only.text
    (section,) = list_settings(rows)
    assert len(section.tables[0].rows) == 2
