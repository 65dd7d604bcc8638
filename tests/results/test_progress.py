"""A campaign's status, read from files as drivers leave them: states, counts, and text for people
and programs.

The expected end of a campaign is estimated from the samples of running attempts. A plan states how
long measurements on its platforms took before. The forecast ranges cover the end that a simple
simulation with the same duration ratio gives."""

import json
import os
import platform
import re
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from click.testing import CliRunner

from commodel.cli import main
from commodel.files.atomic import write_json
from commodel.plan.duration import Durations
from commodel.plan.planning import write_plan
from commodel.results.attempts import DAMAGED_OUTCOME
from commodel.results.campaign import forget_failures
from commodel.results.progress import (
    FINISHED,
    RUNNING,
    SILENT,
    STOPPED,
    WAITING,
    BatchWork,
    compare_with_earlier_durations,
    forecast_parallel,
    forecast_running_batch,
    format_status,
    make_json_data,
    read_earlier_durations,
    tabulate_batches,
    tabulate_platforms,
)
from tests.results.damages import DAMAGES
from tests.results.drivers import attempt, leave, make_campaign, read


def test_nothing_is_there_yet(campaign):
    status = read(campaign)
    assert [batch.state for batch in status.batches] == [WAITING] * 3
    assert status.has_ended  # nobody is at work
    assert status.forecast is None


def test_a_process_that_is_gone_died_without_a_word(campaign):
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    leave(campaign, 1, [attempt(time.time() - 9, pid=gone.pid)])
    leave(campaign, 2, [attempt(time.time() - 9, pid=gone.pid, host="elsewhere")])
    status = read(campaign)
    assert [batch.state for batch in status.batches] == [WAITING, STOPPED, RUNNING]
    assert "ended without a message" in tabulate_batches(status)[1]["state"]


def test_samples_of_a_batch_that_was_stopped_count(campaign):
    leave(
        campaign,
        1,
        [attempt(time.time() - 9, ended=time.time(), outcome="error: stopped")],
        in_passes=(4,),
    )
    entry = read(campaign).batches[1]
    assert (entry.state, entry.measured) == (STOPPED, 4)


def test_incomplete_passes_are_not_measured_after_a_failed_attempt(real):
    """A damaged state.json changes nothing: the plan has the number of passes."""
    failed = attempt(time.time() - 9, ended=time.time(), outcome="error: no image")
    folder = leave(real, 1, [failed], in_passes=(4, 2))
    for _ in range(2):
        entry = read(real).batches[1]
        assert (entry.state, entry.measured, entry.remaining) == (STOPPED, 0, entry.total)
        assert entry.remaining_work.cases == pytest.approx(entry.total - 6 / 3)
        (folder / "state.json").write_bytes(b"")


def test_no_sign_of_life_for_minutes_is_stated(campaign):
    old = time.time() - 1000
    folder = leave(campaign, 1, [attempt(old, updated=old, host="elsewhere")])
    assert read(campaign).batches[1].state == RUNNING  # its clock may be slow: the file is new
    os.utime(folder / "state.json", (old, old))
    status = read(campaign)
    assert status.batches[1].state == SILENT
    assert "no heartbeat for 17 min" in tabulate_batches(status)[1]["state"]
    assert status.has_ended


def test_an_error_is_reported_until_the_batch_is_done(campaign):
    ended = attempt(time.time() - 50, ended=time.time() - 10, outcome="error: n3: no route\x1b[2J")
    leave(campaign, 1, [ended], samples=3)
    status = read(campaign)
    assert status.batches[1].state == STOPPED
    assert tabulate_batches(status)[1]["state"].endswith(": error: n3: no route [2J")


def test_given_up_cases_are_counted_by_reason_and_the_whole_is_over(campaign):
    for index, batch in enumerate(campaign.plan.batches):
        done = attempt(time.time() - 50, ended=time.time() - 10, outcome="done")
        folder = leave(campaign, index, [done], samples=len(batch.ids) - 2, done=True)
        for case, kind in zip(batch.ids[-2:], ("timeout", "crash"), strict=True):
            write_json(
                folder / f"{case}.unmeasured.json", {"id": case, "status": kind, "reason": "so"}
            )
    status = read(campaign)
    assert status.count(FINISHED) == 3
    assert status.has_ended
    assert status.remaining == 0
    assert "6 not (3 crash, 3 timeout)" in format_status(status)
    assert tabulate_platforms(status)[0]["crash"] == 3
    data = json.loads(json.dumps(make_json_data(status)))
    assert data["unmeasured"] == {"crash": 3, "timeout": 3}
    assert data["batches"][0]["state"] == "finished"


def test_late_cases_are_no_measured_ones_and_are_tried_again_when_queried(campaign):
    done = attempt(time.time() - 50, ended=time.time() - 10, outcome="done")
    for index, batch in enumerate(campaign.plan.batches):
        leave(campaign, index, [done], samples=len(batch.ids), done=True)
    first, other, *_ = campaign.plan.batches
    folder = campaign.done_file(first).parent
    kept, late = folder / f"{first.ids[0]}.csv", folder / f"{first.ids[-1]}.late.csv"
    (folder / f"{first.ids[-1]}.csv").replace(late)
    total = sum(batch.total for batch in read(campaign).batches)
    assert f"{total - 1} of {total} measured, 1 not (1 late)" in format_status(read(campaign))
    assert tabulate_platforms(read(campaign))[0]["late"] == 1
    assert forget_failures(campaign) == 1
    assert not late.exists()
    assert kept.exists()
    assert not campaign.done_file(first).exists()
    assert campaign.done_file(other).exists()
    assert f"{total - 1} of {total} measured, 1 left" in format_status(read(campaign))
    assert forget_failures(campaign) == 0


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_story_stops_no_status(campaign, damage):
    folder = leave(campaign, 1, [attempt(time.time() - 60)], samples=3)
    (folder / "state.json").write_bytes(DAMAGES[damage])
    entry = read(campaign).batches[1]
    assert (entry.state, entry.measured) == (STOPPED, 3)
    assert tabulate_batches(read(campaign))[1]["state"].endswith(f": {DAMAGED_OUTCOME}")
    assert tabulate_batches(read(campaign))[1]["state"].startswith("stopped at ")
    json.dumps(make_json_data(read(campaign)), allow_nan=False)
    for case in entry.batch.ids:
        (folder / f"{case}.csv").touch()
    campaign.done_file(entry.batch).touch()
    assert read(campaign).batches[1].state == FINISHED


def test_each_change_is_shown_once(campaign, monkeypatch):
    began, looks = time.time() - 9, []
    folder = leave(campaign, 0, [attempt(began)])
    write_json(campaign.folder / "plan.json", campaign.plan.as_json())

    def later(seconds):
        looks.append(seconds)
        if len(looks) == 3:  # nothing changes before
            write_json(
                folder / "state.json",
                {"attempts": [attempt(began, ended=time.time(), outcome="error: x")]},
            )

    monkeypatch.chdir(campaign.folder.parents[1])
    monkeypatch.setattr("commodel.cli.run.STATUS_INTERVAL_S", 7.0)
    monkeypatch.setattr(time, "sleep", later)
    watched = CliRunner().invoke(main, ["status", "e", "--watch"], catch_exceptions=False)
    assert looks == [7.0] * 3
    assert [line for line in watched.output.splitlines() if line.startswith("e: ")] == [
        "e: 0 of 35 measured, 35 left, expected end unknown, 0% of the time over, 1 batch running",
        "e: 0 of 35 measured, 35 left",
    ]


@pytest.mark.parametrize("began", [0, -1e9])
def test_a_failed_attempt_with_an_absurd_start_time_reads_as_stopped(campaign, began):
    leave(campaign, 0, [attempt(began, ended=time.time(), outcome="error: x")], samples=1)
    assert read(campaign).batches[0].state == STOPPED


def test_a_driver_at_work_has_a_duration_ratio_and_one_that_has_just_begun_has_none(campaign):
    began = time.time() - 100
    leave(campaign, 1, [attempt(began, job="42")], in_passes=(4,))
    spread(campaign, 1, 1, began + 25, 25.0)
    entry = read(campaign, began + 100).batches[1]
    assert (entry.state, entry.measured, entry.remaining) == (RUNNING, 4, entry.total - 4)
    low, high = entry.forecast
    assert low < 100 * entry.remaining / 4 < high
    leave(campaign, 2, [attempt(began)])
    status = read(campaign)
    assert status.batches[2].state == RUNNING
    assert status.batches[2].forecast is None
    assert status.forecast is None
    assert f"running on {platform.node()} as job 42 since " in tabulate_batches(status)[1]["state"]


def spread(campaign, index: int, number: int, first: float, step: float) -> None:
    """Set the modification times of a pass's samples to `first`, `first + step`, …."""
    batch = campaign.plan.batches[index]
    folder = campaign.done_file(batch).parent / f".pass-{number}"
    for place, path in enumerate(folder / f"{case}.csv" for case in batch.ids):
        if path.exists():
            os.utime(str(path), (first + place * step, first + place * step))


def test_the_start_of_a_driver_does_not_count_for_the_duration_ratio(campaign):
    """The first sample comes after ten minutes, the next ones once a second; the rest is expected
    within seconds."""
    now = time.time()
    leave(campaign, 1, [attempt(now - 604)], in_passes=(4,))
    spread(campaign, 1, 1, now - 3, 1.0)
    status = read(campaign, now)
    entry = status.batches[1]
    low, high = entry.forecast
    assert low < entry.remaining < high < 10 * entry.remaining
    # those that wait have their duration ratio from it
    assert all(batch.forecast[1] < 600 for batch in status.batches)
    left = sum(batch.total for batch in status.batches)
    assert status.forecast[0] < left + status.analysis_seconds < status.forecast[1]


def test_samples_that_have_their_final_names_count_until_the_batch_is_finished(campaign):
    """Samples of a start are joined at its end; the pass keeps their times. The next start has no
    sample yet."""
    now = time.time()
    folder = leave(campaign, 1, [attempt(now - 60)], in_passes=(6,))
    spread(campaign, 1, 1, now - 50, 10.0)
    for path in (folder / ".pass-1").iterdir():
        (folder / path.name).write_text("")
    entry = read(campaign, now).batches[1]
    assert (entry.measured, entry.done_work.cases) == (6, 5)
    low, high = entry.forecast
    assert low < 10 * entry.remaining < high


def test_the_fraction_done_is_below_100_percent_while_a_case_remains(campaign):
    now = time.time()
    for index, batch in enumerate(campaign.plan.batches[:2]):
        leave(campaign, index, samples=len(batch.ids), done=True)
    leave(campaign, 2, [attempt(now - 60)], in_passes=(len(campaign.plan.batches[2].ids) - 1,))
    status = read(campaign, now)
    almost_done = replace(status.batches[2], remaining_work=BatchWork(1, 1e-6, 1e-6))
    text = format_status(replace(status, batches=(*status.batches[:2], almost_done)))
    assert "1 left" in text
    assert "99% of the time over" in text


COLLECTIVES = """
platform: loggp-64
models: [hockney]
probes: [pingpong, work]
probe_bytes: [1]
measure: {precision: 5%, min_samples: 2, max_samples: 5, seconds: 1}
batch: {smaller: true}
matrix: [axes: {operation: allgather, algorithm: ring, ranks: [8, 16, 32, 64], bytes: [1KiB, 4KiB, 64KiB]}]
"""


def test_the_seconds_of_a_simulation_are_learned_from_single_cases(tmp_path):
    """Messages in flight together take 20 times as long as planned, all else 3 times. Cases on up
    to 32 ranks are measured, in 15 s; those on 64 ranks remain, which take 210 s."""
    campaign, now = make_campaign(tmp_path, COLLECTIVES), time.time()
    batch = campaign.plan.batches[1]
    durations = Durations.of_platform(campaign.plan, "loggp-64")
    seconds = {point.id: durations.estimate_parts(point) @ [3, 20] for point in batch.points}
    measured = [point.id for point in batch.points if point.ranks < 64]
    truth = sum(seconds[point.id] for point in batch.points if point.ranks == 64)
    folder = leave(campaign, 1, [attempt(now - 60)])
    (folder / ".pass-1").mkdir()
    end = now - sum(seconds[case] for case in measured)
    for case in measured:
        end += seconds[case]
        (folder / ".pass-1" / f"{case}.csv").write_text("")
        os.utime(folder / ".pass-1" / f"{case}.csv", (end, end))
    status = read(campaign, now)
    low, high = status.batches[1].forecast
    assert truth / 2.1 < low < truth < high < 1.5 * truth
    assert status.fraction_done < 0.1  # 18 of 27 cases
    (slowdown,) = re.findall(r", (\d+) times as long as planned", format_status(status))
    planned = status.batches[1].total_work.estimate
    assert int(slowdown) == pytest.approx(sum(seconds.values()) / planned, rel=0.2)


def test_one_sample_gives_no_duration_ratio(campaign):
    now = time.time()
    leave(campaign, 1, [attempt(now - 600)], in_passes=(1,))
    assert read(campaign, now).batches[1].forecast is None


def test_forecasts_do_not_exceed_the_deadline_of_a_batch(campaign):
    """Two samples were measured a minute apart; less than two minutes remain."""
    now = time.time()
    leave(campaign, 1, [attempt(now - 120, deadline=now + 100)], in_passes=(2,))
    spread(campaign, 1, 1, now - 60, 60.0)
    status = read(campaign, now)
    assert status.batches[1].forecast[1] == pytest.approx(100)
    assert all(batch.forecast[1] <= 60 * batch.batch.minutes for batch in status.batches)


def test_passes_count_for_their_share(real):
    leave(real, 1, [attempt(time.time() - 60)], turn=2, in_passes=(10, 5))
    status = read(real)
    entry = status.batches[1]
    assert entry.measured == 0
    # the time of the first holds the start of all
    assert entry.done_work.cases == pytest.approx((15 - 1) / 3)
    assert entry.remaining_work.cases == pytest.approx(entry.total - 15 / 3)
    assert "pass 2 of 3" in tabulate_batches(status)[1]["state"]
    total = sum(batch.total_work.estimate for batch in status.batches)
    remaining = sum(batch.remaining_work.estimate for batch in status.batches)
    assert status.fraction_done == pytest.approx(1 - remaining / total)
    assert 0 < status.fraction_done < 0.5


def test_cases_of_earlier_attempts_do_not_lower_the_duration_ratio(campaign):
    """Ten cases were measured an hour ago, four in the 110 s of this attempt."""
    now = time.time()
    folder = leave(campaign, 1, [attempt(now - 110)], samples=10, in_passes=(4,))
    spread(campaign, 1, 1, now - 340, 25.0)  # ten, and four from ninety seconds ago on
    for path in folder.glob("*.csv"):
        os.utime(str(path), (now - 3600, now - 3600))
    entry = read(campaign, now).batches[1]
    assert entry.done_work.cases == 3
    assert (entry.measured, entry.remaining) == (14, 1)


@pytest.fixture
def read_platform_notes(real, monkeypatch):
    """Return a function that compares the same plan with earlier durations and returns the
    notes."""
    monkeypatch.chdir(real.folder.parent.parent)
    write_plan(real.plan, "e", real.folder.parent.parent)
    return lambda: list(compare_with_earlier_durations(real.plan, real.folder.parent))


def test_the_duration_ratio_relates_measured_to_planned_time_of_done_batches(
    real, read_platform_notes
):
    """All attempts of a completed batch count; an incomplete batch is ignored."""
    now, batches = time.time(), real.plan.batches
    died, done = (
        attempt(now - 99, ended=now - 99 + seconds, outcome=how)
        for seconds, how in ((5, "x"), (20, "done"))
    )
    leave(real, 0, [died, done])
    leave(real, 1, [attempt(now - 99, ended=now, outcome="error: stopped")])
    before = read_earlier_durations("real", real.plan.platforms["real"].digest, real.folder.parent)
    assert (before.experiment, before.seconds, before.estimate) == ("e", 25.0, batches[0].seconds)
    (sentence,) = read_platform_notes()
    assert f"e took 25 s there, where {batches[0].seconds:.3g} s were estimated" in sentence
    assert before.duration_ratio * sum(batch.seconds for batch in batches) == pytest.approx(
        float(sentence.split(" takes ")[1].removesuffix(" s")), rel=5e-3
    )


def test_without_earlier_measurements_the_estimate_states_the_assumptions(
    real, read_platform_notes
):
    leave(real, 0, [attempt(time.time() - 9, ended=time.time(), outcome="done")])
    other = replace(real.plan.platforms["real"], digest="another file")
    (real.folder / "plan.json").write_text("no plan")
    assert read_platform_notes() == [
        "real: no earlier measurement there; the estimate assumes no packet loss and no other load"
    ]
    write_plan(replace(real.plan, platforms={"real": other}), "e", real.folder.parent.parent)
    assert read_platform_notes()[0].startswith("real: no earlier measurement")


def test_of_a_simulated_platform_nothing_unknown_is_stated(campaign):
    assert list(compare_with_earlier_durations(campaign.plan, campaign.folder.parent)) == []


def test_the_forecast_range_covers_the_remaining_time_if_long_cases_come_last():
    """Each case takes three times the planned time; short cases come first."""
    plan = [0.1 * 1.1**i for i in range(40)]
    for done in range(4, 40):
        spent, left = 3 * sum(plan[:done]), 3 * sum(plan[done:])
        low, high = forecast_running_batch(
            spent, BatchWork(done, sum(plan[:done])), BatchWork(40 - done, sum(plan[done:]))
        )
        assert low <= left <= high, done


def test_batches_share_the_lanes_and_none_is_done_before_itself():
    assert forecast_parallel([(10, 20), (10, 20), (10, 20), (10, 20)], 2) == (20, 40)
    assert forecast_parallel([(10, 100), (10, 20)], 2) == (10, 100)
    assert forecast_parallel([(10, 20), None], 1) is None
    assert forecast_parallel([(10, 20)], 0) is None
    assert forecast_parallel([], 1) is None


def test_a_case_that_runs_for_long_is_named(campaign):
    """Cases that run for seconds are not named, and neither is the last case of a program that has
    ended."""
    batch = campaign.plan.batches[2]
    point = batch.points[-1]
    folder = leave(campaign, 2, [attempt(time.time() - 500)], in_passes=(3,))
    assert read(campaign).batches[2].running_case is None
    current = folder / ".pass-1" / ".now"
    current.write_text(point.id)
    assert read(campaign).batches[2].running_case is None
    begun = time.time() - 200
    os.utime(current, (begun, begun))
    status = read(campaign)
    wanted = (
        f"bcast (MPI default) over {point.ranks} ranks, block:1, 5 B has been running for 3 min"
    )
    assert status.batches[2].running_case.sentence == wanted
    assert format_status(status).endswith(wanted)
    assert tabulate_batches(status)[2]["state"].endswith(wanted)
    data = json.loads(json.dumps(make_json_data(status)))
    assert data["batches"][2]["running_case"]["seconds"] == pytest.approx(200, abs=20)
    current.write_text("")
    assert read(campaign).batches[2].running_case is None
