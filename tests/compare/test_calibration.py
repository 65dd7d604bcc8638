"""Prices that a few points move to another job: synthetic jobs whose factors are known, and which points are chosen."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from commodel.compare.recalibration import (
    FEWEST_POINTS,
    Witness,
    calibrate,
    known_witnesses,
    message_witnesses,
    picked,
    taken,
)
from commodel.hierarchy import Hierarchy
from commodel.models.parameter_sets import set_given
from commodel.parameters import Errors
from commodel.patterns.points import Setting
from commodel.predictions.predictions import predict
from commodel.records import Point
from tests.models.exact import moved
from tests.patterns.catalogue import point

LOGGP = set_given("loggp", ["L=5us", "o_s=2us", "o_r=1us", "g=1us", "G=1ns"])
HOCKNEY = set_given("hockney", ["alpha=8us", "beta=1.2ns"])
LOGP = set_given("logp", ["L=5us", "o=2us", "g=1us"])
PMNF = set_given("pmnf", ["c0=1us"])
CAMPAIGN = [
    point(operation, choice, ranks=ranks, bytes=size, layout=layout)
    for operation, choice in (("bcast", "linear"), ("bcast", "binomial"), ("reduce", "binomial"), ("allgather", "ring"))
    for ranks, layout in ((2, "block:2"), (2, "block:1"), (8, "block:1"))
    for size in (8, 1 << 12, 1 << 20)
]
FLAT = Hierarchy()
TAKEN = 6  # points, as `commodel calibrate` does


def seconds(parameters, points):
    return [price.seconds for price in predict(parameters, points)]


def known(machine, points=CAMPAIGN, off=0.2):
    """Of a campaign on that machine, whose times are off any price by up to a factor of their own."""
    own = np.exp(off * np.sin(np.arange(len(points)) * 7.0))
    return [
        Witness(entry, time * more) for entry, time, more in zip(points, seconds(machine, points), own, strict=True)
    ]


def in_job(witnesses, machine, job):
    """The same points in the job: each off its price by the same factor as in the campaign."""
    points = [entry.point for entry in witnesses]
    ratios = np.array(seconds(job, points)) / seconds(machine, points)
    return [
        taken(entry, [{"seconds": entry.seconds * ratio, "valid": True}] * 6)
        for entry, ratio in zip(witnesses, ratios, strict=True)
    ]


@pytest.mark.parametrize("count", [4, 6])
@pytest.mark.parametrize(("latency", "per_byte"), [(1.0, 1.0), (2.0, 1.0), (1.0, 2.0), (0.7, 3.0)])
def test_a_campaign_s_prices_are_moved_to_a_job_of_known_factors(latency, per_byte, count):
    witnesses, job = known(LOGGP), moved(LOGGP, latency, per_byte)
    used, kept = picked(witnesses, [LOGGP], FLAT, count, 8)
    assert (len(used), len(kept), len(set(used) & set(kept))) == (count, 8, 0)
    ((done,), none) = calibrate([LOGGP], in_job(used, LOGGP, job), in_job(kept, LOGGP, job), "job", {})
    assert not none
    assert done.pace.latency.value == pytest.approx(latency, rel=1e-6)
    assert done.pace.per_byte.value == pytest.approx(per_byte, rel=1e-6)
    assert done.pace.latency.low <= latency <= done.pace.latency.high
    assert done.checked == 8
    still_off = np.mean(
        np.exp(
            np.abs(
                np.log(
                    [entry.witness.seconds for entry in in_job(kept, LOGGP, LOGGP)]
                    / np.array(seconds(LOGGP, [entry.point for entry in kept]))
                )
            )
        )
    )
    assert done.after == pytest.approx(still_off)  # what it was off in the campaign
    if (latency, per_byte) != (1.0, 1.0):
        assert done.after < done.before


def test_of_every_distance_there_is_a_short_and_a_long_point():
    used, _ = picked(known(LOGGP, off=0.0), [LOGGP], FLAT, 4, 4)
    within = [entry.point for entry in used if entry.point.layout == "block:2"]
    between = [entry.point for entry in used if entry.point.layout == "block:1"]
    for near in (within, between):
        assert sorted(entry.bytes for entry in near) == [8, 1 << 20]
        assert all(entry.ranks == 2 for entry in near)  # the quickest that tell as much


def test_points_with_local_work_tell_less():
    worked = replace(LOGGP, values={**LOGGP.values, "gamma": LOGGP.values["G"]})
    used, _ = picked(known(worked), [worked], FLAT, TAKEN, 8)
    assert "reduce" not in {entry.point.operation for entry in used}


def test_families_that_see_no_size_have_one_factor_and_what_has_none_says_so():
    witnesses, job = known(LOGGP, off=0.0), moved(LOGGP, 2.0, 2.0)
    used, kept = picked(witnesses, [LOGP, LOGGP], FLAT, TAKEN, 8)
    done, complaints = calibrate([LOGGP, LOGP, PMNF], in_job(used, LOGGP, job), in_job(kept, LOGGP, job), "job", {})
    paces = {entry.moved.family: entry.pace for entry in done}
    assert list(complaints) == ["pmnf"]
    assert not paces["logp"].per_byte.known
    assert paces["logp"].latency.value == pytest.approx(2.0, rel=0.05)
    assert [entry.after for entry in done] == sorted(entry.after for entry in done)


def test_without_a_campaign_what_prices_are_off_widens_the_interval():
    """Messages against prices: a family that is always off by a fifth does not take that for another job."""
    site = Setting("p", 16, 4, levels=(("leaf", (0,) * 8 + (1,) * 8),))
    messages, _ = message_witnesses(site)
    layouts = [entry.point.layout for entry in messages]
    messages = messages[:TAKEN]
    assert len(set(layouts)) == 3
    points = [entry.point for entry in messages]
    times = 1.2 * np.array(seconds(LOGGP, points))
    used = [taken(entry, [{"seconds": time, "valid": True}]) for entry, time in zip(messages, times, strict=True)]
    band = Errors(
        -0.3,
        0.3,
        9,
        1,
        ("bcast",),
        {"ranks": (2.0,), "bytes": (8.0, float(1 << 20))},
        dict.fromkeys(("ranks", "bytes", "operation"), 0.0),
        dict.fromkeys(("ranks", "bytes"), 0.0),
    )
    for errors, holds in (({}, False), ({"loggp": {"bcast": band}}, True)):
        ((done,), _) = calibrate([LOGGP], used, [], "job", errors)
        assert done.pace.latency.value == pytest.approx(1.2)
        assert (done.pace.latency.low < 1) is holds
        assert done.checked == 0


def test_two_points_tell_two_factors_only_where_errors_are_known():
    used = in_job(picked(known(LOGGP), [LOGGP], FLAT, FEWEST_POINTS, 8)[0], LOGGP, moved(LOGGP, 2.0, 2.0))
    ((done,), _) = calibrate([LOGGP], used, [], "job", {})
    assert done.pace.together
    assert done.pace.latency.low <= 2.0 <= done.pace.latency.high


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
    witnesses = known_witnesses(points, pd.DataFrame(rows), 1)
    assert [entry.point for entry in witnesses] == [entry for entry in points[3:6] if entry.nodes <= 1]
    assert witnesses[0].noise == pytest.approx(np.log(1.1 / 0.9) / 2 / 1.96)
    assert taken(witnesses[0], [{"seconds": 1e-3, "valid": False}]) is None
