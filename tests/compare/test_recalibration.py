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
    CalibrationPoint,
    list_campaign_points,
    list_single_messages,
    measure_drift,
    recalibrate_sets,
    select_calibration_points,
    summarize_samples,
)
from commodel.hierarchy import Hierarchy
from commodel.models.parameter_sets import make_given_set
from commodel.patterns.points import PlatformResources
from commodel.predictions.predictions import predict
from commodel.records import Batch, Point
from commodel.reports.sections.measurement_conditions import describe_settings, list_settings
from commodel.results.recalibrations import (
    Calibration,
    RecordedFactor,
    RecordedFactors,
    RecordedPoint,
)
from tests.models.exact import moved
from tests.patterns.catalogue import point
from tests.planning import planned
from tests.predictions.residuals import make_stored

LOGGP = make_given_set("loggp", ["L=5us", "o_s=2us", "o_r=1us", "g=1us", "G=1ns"])
HOCKNEY = make_given_set("hockney", ["alpha=8us", "beta=1.2ns"])
LOGP = make_given_set("logp", ["L=5us", "o=2us", "g=1us"])
PMNF = make_given_set("pmnf", ["c0=1us"])
CAMPAIGN = [
    point(operation, choice, ranks=ranks, bytes=size, layout=layout)
    for operation, choice in (
        ("bcast", "linear"),
        ("bcast", "binomial"),
        ("reduce", "binomial"),
        ("allgather", "ring"),
    )
    for ranks, layout in ((2, "block:2"), (2, "block:1"), (8, "block:1"))
    for size in (8, 1 << 12, 1 << 20)
]
FLAT = Hierarchy()
TAKEN = 6  # points, as `commodel calibrate` does


def seconds(parameters, points):
    return [prediction.seconds for prediction in predict(parameters, points)]


def make_calibration_points(machine, points=CAMPAIGN, off=0.2):
    """Return points of a campaign on a machine; the time of each differs from its prediction by a
    factor."""
    factors = np.exp(off * np.sin(np.arange(len(points)) * 7.0))
    return [
        CalibrationPoint(entry, time * factor)
        for entry, time, factor in zip(points, seconds(machine, points), factors, strict=True)
    ]


def measure_in_job(candidates, machine, job):
    """Return the times of the points in a job. The residual of each is the same as in the
    campaign."""
    points = [entry.point for entry in candidates]
    ratios = np.array(seconds(job, points)) / seconds(machine, points)
    return [
        summarize_samples(entry, [{"seconds": entry.seconds * ratio, "valid": True}] * 6)
        for entry, ratio in zip(candidates, ratios, strict=True)
    ]


@pytest.mark.parametrize("count", [4, 6])
@pytest.mark.parametrize(("latency", "per_byte"), [(1.0, 1.0), (2.0, 1.0), (1.0, 2.0), (0.7, 3.0)])
def test_factors_of_a_job_are_estimated_from_points_of_the_campaign(latency, per_byte, count):
    candidates, job = make_calibration_points(LOGGP), moved(LOGGP, latency, per_byte)
    used, kept = select_calibration_points(candidates, [LOGGP], FLAT, count, 8)
    assert (len(used), len(kept), len(set(used) & set(kept))) == (count, 8, 0)
    ((done,), none) = recalibrate_sets(
        [LOGGP], measure_in_job(used, LOGGP, job), measure_in_job(kept, LOGGP, job), "job", {}
    )
    assert not none
    assert done.factors.latency.value == pytest.approx(latency, rel=1e-6)
    assert done.factors.per_byte.value == pytest.approx(per_byte, rel=1e-6)
    assert done.factors.latency.low <= latency <= done.factors.latency.high
    assert done.checked == 8
    campaign_error = np.mean(
        np.exp(
            np.abs(
                np.log(
                    [
                        entry.calibration_point.seconds
                        for entry in measure_in_job(kept, LOGGP, LOGGP)
                    ]
                    / np.array(seconds(LOGGP, [entry.point for entry in kept]))
                )
            )
        )
    )
    assert done.after == pytest.approx(campaign_error)  # the error in the campaign
    if (latency, per_byte) != (1.0, 1.0):
        assert done.after < done.before


def test_a_short_and_a_long_message_is_selected_at_every_distance():
    used, _ = select_calibration_points(
        make_calibration_points(LOGGP, off=0.0), [LOGGP], FLAT, 4, 4
    )
    within = [entry.point for entry in used if entry.point.layout == "block:2"]
    between = [entry.point for entry in used if entry.point.layout == "block:1"]
    for near in (within, between):
        assert sorted(entry.bytes for entry in near) == [8, 1 << 20]
        assert all(entry.ranks == 2 for entry in near)  # the fastest of equally informative points


def test_points_with_local_work_are_not_selected():
    worked = replace(LOGGP, values={**LOGGP.values, "gamma": LOGGP.values["G"]})
    used, _ = select_calibration_points(make_calibration_points(worked), [worked], FLAT, TAKEN, 8)
    assert "reduce" not in {entry.point.operation for entry in used}


def test_models_without_message_size_have_one_factor_and_models_without_a_factor_a_reason():
    candidates, job = make_calibration_points(LOGGP, off=0.0), moved(LOGGP, 2.0, 2.0)
    used, kept = select_calibration_points(candidates, [LOGP, LOGGP], FLAT, TAKEN, 8)
    done, reasons = recalibrate_sets(
        [LOGGP, LOGP, PMNF],
        measure_in_job(used, LOGGP, job),
        measure_in_job(kept, LOGGP, job),
        "job",
        {},
    )
    factors = {entry.parameters.model: entry.factors for entry in done}
    assert list(reasons) == ["pmnf"]
    assert not factors["logp"].per_byte.known
    assert factors["logp"].latency.value == pytest.approx(2.0, rel=0.05)
    assert [entry.after for entry in done] == sorted(entry.after for entry in done)


def test_without_a_campaign_the_error_of_the_model_widens_the_interval():
    """Single messages are compared with predictions. A constant error of 20 % does not count as
    another setting."""
    resources = PlatformResources("p", 16, 4, levels=(("leaf", (0,) * 8 + (1,) * 8),))
    messages, _ = list_single_messages(resources)
    layouts = [entry.point.layout for entry in messages]
    messages = messages[:TAKEN]
    assert len(set(layouts)) == 3
    points = [entry.point for entry in messages]
    times = 1.2 * np.array(seconds(LOGGP, points))
    used = [
        summarize_samples(entry, [{"seconds": time, "valid": True}])
        for entry, time in zip(messages, times, strict=True)
    ]
    residuals = make_stored(
        np.tile([-0.3, 0.3], 9),
        ranks=2.0,
        nodes=2.0,
        size=np.repeat([8, 1024, 1 << 20], 6),
        alternative="linear",
    )
    for elsewhere, holds in (({}, False), ({"loggp": residuals}, True)):
        ((done,), _) = recalibrate_sets([LOGGP], used, [], "job", elsewhere)
        assert done.factors.latency.value == pytest.approx(1.2)
        assert (done.factors.latency.low < 1) is holds
        assert done.checked == 0


def test_two_points_without_known_errors_have_one_common_factor():
    used = measure_in_job(
        select_calibration_points(
            make_calibration_points(LOGGP), [LOGGP], FLAT, MIN_POINTS_OF_FACTORS, 8
        )[0],
        LOGGP,
        moved(LOGGP, 2.0, 2.0),
    )
    ((done,), _) = recalibrate_sets([LOGGP], used, [], "job", {})
    assert done.factors.together
    assert done.factors.latency.low <= 2.0 <= done.factors.latency.high


def test_calibration_points_are_measured_and_fast():
    points = [replace(entry, platform="p") for entry in CAMPAIGN[:6]]
    points.append(Point("p", "bcast", "library", "", "block:1", 2, 8))
    rows = [
        {
            "point": entry.id,
            "operation": entry.operation,
            "held_out": True,
            "measured": 1e-3,
            "measured_low": 0.9e-3,
        }
        | {"measured_high": 1.1e-3, "seconds": 1e-3, "waves": 1}
        for entry in points
    ]
    rows[0] |= {"measured": np.nan}
    rows[1] |= {"measured": 5.0}
    rows[2] |= {"waves": 10}
    candidates = list_campaign_points(points, pd.DataFrame(rows), 1)
    assert [entry.point for entry in candidates] == [
        entry for entry in points[3:6] if entry.nodes <= 1
    ]
    assert candidates[0].noise == pytest.approx(np.log(1.1 / 0.9) / 2 / 1.96)
    assert summarize_samples(candidates[0], [{"seconds": 1e-3, "valid": False}]) is None


FITTED = replace(make_given_set("hockney", ["alpha=10us", "beta=1ns"]), platform="p")
WRONG = replace(
    make_given_set("loggp", ["L=50us", "o_s=2us", "o_r=1us", "g=1us", "G=9ns"]), platform="p"
)
POINTS = [
    replace(point("bcast", choice, ranks=ranks, bytes=size), platform="p")
    for choice in ("linear", "binomial")
    for ranks in (4, 8)
    for size in (8, 1 << 12, 1 << 18)
]
BATCH = (Batch("small", "p", 4, tuple(POINTS[:6])), Batch("large", "p", 8, tuple(POINTS[6:])))
PLAN = planned(*BATCH, models=("hockney", "loggp"))


def comparison(latency=1.0, per_byte=1.0, noise=0.01, **more):
    """Return the comparison of two batches; the second was measured in a job with these factors."""
    slow = moved(FITTED, latency, per_byte)
    rows = []
    for batch, truth in zip(BATCH, (FITTED, slow), strict=True):
        for entry in predict(truth, batch.points):
            for parameters in (FITTED, WRONG):
                (prediction,) = predict(parameters, [entry.point])
                measured = entry.seconds * np.exp(noise * np.sin(len(rows) // 2 * 5.0))
                mu = max(prediction.seconds / measured, measured / prediction.seconds)
                rows.append(
                    {
                        "operation": "bcast",
                        "point": entry.point.id,
                        "platform": "p",
                        "model": parameters.model,
                        "batch": batch.name,
                        "mu": mu,
                    }
                    | {
                        "measured": measured,
                        "seconds": prediction.seconds,
                        "held_out": True,
                        "validity": "valid",
                        "waves": 1,
                    }
                )
    return pd.DataFrame(rows).assign(**({"simulated": False} | more))


def test_batches_are_compared_with_the_predictions_of_the_best_model():
    rows = measure_drift(PLAN, comparison(2.0, 3.0), [FITTED, WRONG], {}).set_index("allocation")
    assert set(rows["model"]) == {"hockney"}
    assert set(rows["compared_with"]) == {BASIS_PREDICTIONS}
    for job, latency, per_byte in (("small", 1.0, 1.0), ("large", 2.0, 3.0)):
        row = rows.loc[job]
        assert row["latency_low"] <= latency <= row["latency_high"]
        assert row["per_byte_low"] <= per_byte <= row["per_byte_high"]
        assert row["latency_value"] == pytest.approx(latency, rel=0.05)
    assert not describe_settings(rows.reset_index())  # errors of the model may look the same


def test_named_settings_count_as_allocations():
    rows = comparison(2.0)
    labelled = rows.assign(setting=np.where(rows["batch"] == "small", "", "friday"))
    assert set(measure_drift(PLAN, labelled, [FITTED, WRONG], {})["allocation"]) == {
        "(none)",
        "friday",
    }
    simulated = labelled.assign(simulated=True)
    assert len(measure_drift(PLAN, simulated, [FITTED, WRONG], {})) == 2


def test_batches_of_a_simulated_platform_are_one_job():
    drift = measure_drift(PLAN, comparison(2.0, simulated=True), [FITTED, WRONG], {})
    assert drift.empty
    assert list(drift) == COLUMNS
    assert list_settings(drift) == []


def calibration(latency, after=1.05):
    """Return a calibration by two models, of which one has a smaller error afterwards."""
    factor = RecordedFactor(latency, latency / 1.05, latency * 1.05, True)
    unknown = RecordedFactor(1.0, 1.0, 1.0, False)
    near = RecordedFactors(factor, unknown, False, 6, 0.01, 1.4, after, 6)
    far = replace(near, latency=replace(factor, value=9.0), after=2.0)
    return Calibration("rails=2", "p", "q", False, "2026-11-23", (), {"far": far, "near": near})


def test_calibrations_have_the_model_with_the_smallest_error_afterwards():
    rows = measure_drift(
        PLAN, comparison().iloc[:0], [FITTED], {"a": calibration(1.5), "b": calibration(1.0)}
    )
    assert set(rows["model"]) == {"near"}
    assert set(rows["compared_with"]) == {BASIS_SAME_POINTS}
    assert rows["per_byte_value"].isna().all()
    (only,) = describe_settings(rows)
    assert only.platform == "p"
    assert only.text.startswith(
        "In rails=2, on q, latency is 1.5× [1.43, 1.58] that of the campaign"
    )
    for figure in ("mean error there: 40 %", "after `commodel calibrate`: 5 %"):
        assert figure in only.text
    (section,) = list_settings(rows)
    assert len(section.tables[0].rows) == 2


def test_single_messages_are_compared_with_predictions():
    """Points that the campaign did not measure are not the same points, and the first screen has no
    remark on them."""
    message = RecordedPoint("bcast", "linear", "block", 2, 8, 3e-6, None, True)
    held_out = replace(message, used=False)
    unmeasured = replace(calibration(1.5), points=(message, held_out))
    measured = replace(calibration(1.5), points=(replace(message, elsewhere=2e-6), held_out))
    rows = measure_drift(PLAN, comparison().iloc[:0], [FITTED], {"a": unmeasured, "b": measured})
    assert rows["compared_with"].tolist() == [BASIS_PREDICTIONS, BASIS_SAME_POINTS]
    assert len(describe_settings(rows)) == 1
