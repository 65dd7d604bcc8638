"""A campaign's status is read off files as drivers leave them: states, counts, and words for people and programs."""

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commodel.files.atomic import write_json
from commodel.plan.make import make_plan
from commodel.results.attempts import DAMAGED
from commodel.results.campaign import Campaign, forget_failures
from commodel.results.status import FINISHED, RUNNING, SILENT, STOPPED, WAITING, Reader
from commodel.results.view import as_data, batch_rows, platform_rows, sentence
from tests.results.damages import DAMAGES

HERE = Path(__file__).parents[1] / "workflow"
EXPERIMENT = """
platform: loggp-64
families: [hockney]
probe_bytes: [1, 64]
matrix: [axes: {operation: bcast, algorithm: [linear, binomial], ranks: [8, 16], bytes: [1, 2, 3, 4, 5]}]
"""


def make_campaign(folder: Path, experiment: str) -> Campaign:
    for name in ("experiments", "platforms"):
        (folder / "params" / name).mkdir(parents=True)
    for path in HERE.glob("loggp-64.*"):
        (folder / "params/platforms" / path.name).write_text(path.read_text())
    (folder / "params/platforms/real.yaml").write_text("launcher: local\nnodes: 1\ncores: 16\n")
    (folder / "params/experiments/e.yaml").write_text(experiment)
    return Campaign(make_plan("e", folder), folder / "results/e")


@pytest.fixture
def campaign(tmp_path):
    return make_campaign(tmp_path, EXPERIMENT)


@pytest.fixture
def real(tmp_path):
    """On a machine that is measured: in three passes."""
    return make_campaign(tmp_path, EXPERIMENT.replace("loggp-64", "real"))


def attempt(began: float, **settings) -> dict:
    common = {"host": platform.node(), "pid": os.getpid(), "job": "", "deadline": None}
    return common | {"started": began, "updated": time.time(), "ended": None, "outcome": ""} | settings


def leave(campaign, index: int, attempts=(), samples=0, done=False, turn=1, in_passes=()):
    """What a driver leaves of a batch: raw files of its first cases, files of passes over the first of the others."""
    batch = campaign.plan.batches[index]
    folder = campaign.folder / "raw" / batch.name
    folder.mkdir(parents=True)
    for case in batch.ids[:samples]:
        (folder / f"{case}.csv").write_text("")
    for number, count in enumerate(in_passes, 1):
        (folder / f".pass-{number}").mkdir()
        for case in batch.ids[samples : samples + count]:
            (folder / f".pass-{number}" / f"{case}.csv").write_text("")
    if attempts:
        write_json(folder / "state.json", {"attempts": attempts, "pass": turn})
    if done:
        campaign.done(batch).touch()
    return folder


def read(campaign, now: float | None = None):
    return Reader(campaign).read("", time.time() if now is None else now)


def test_nothing_is_there_yet(campaign):
    status = read(campaign)
    assert [batch.state for batch in status.batches] == [WAITING] * 3
    assert status.over  # nobody is at work
    assert status.seconds is None


def test_a_driver_at_work_has_a_pace_and_one_that_has_just_begun_has_none(campaign):
    began = time.time() - 100
    leave(campaign, 1, [attempt(began, job="42")], in_passes=(4,))
    spread(campaign, 1, 1, began + 25, 25.0)
    entry = read(campaign, began + 100).batches[1]
    assert (entry.state, entry.measured, entry.left) == (RUNNING, 4, entry.total - 4)
    low, high = entry.seconds
    assert low < 100 * entry.left / 4 < high
    leave(campaign, 2, [attempt(began)])
    status = read(campaign)
    assert status.batches[2].state == RUNNING
    assert status.batches[2].seconds is None
    assert status.seconds is None
    assert f"running on {platform.node()} as job 42 since " in batch_rows(status)[1]["state"]


def spread(campaign, index: int, number: int, first: float, step: float) -> None:
    """A pass's samples as if they had been written one after the other."""
    batch = campaign.plan.batches[index]
    folder = campaign.done(batch).parent / f".pass-{number}"
    for place, path in enumerate(folder / f"{case}.csv" for case in batch.ids):
        if path.exists():
            os.utime(str(path), (first + place * step, first + place * step))


def test_the_start_of_a_driver_is_no_pace(campaign):
    """Ten minutes until its first sample, then one a second: what is left is seconds away, not hours."""
    now = time.time()
    leave(campaign, 1, [attempt(now - 604)], in_passes=(4,))
    spread(campaign, 1, 1, now - 3, 1.0)
    status = read(campaign, now)
    entry = status.batches[1]
    low, high = entry.seconds
    assert low < entry.left < high < 10 * entry.left
    assert all(batch.seconds[1] < 600 for batch in status.batches)  # those that wait have their pace from it
    left = sum(batch.total for batch in status.batches)
    assert status.seconds[0] < left + status.analysis < status.seconds[1]


def test_one_sample_is_no_pace(campaign):
    now = time.time()
    leave(campaign, 1, [attempt(now - 600)], in_passes=(1,))
    assert read(campaign, now).batches[1].seconds is None


def test_no_batch_is_expected_to_outlive_its_time(campaign):
    """Two samples a minute apart, and hardly two minutes left for all."""
    now = time.time()
    leave(campaign, 1, [attempt(now - 120, deadline=now + 100)], in_passes=(2,))
    spread(campaign, 1, 1, now - 60, 60.0)
    status = read(campaign, now)
    assert status.batches[1].seconds[1] == pytest.approx(100)
    assert all(batch.seconds[1] <= 60 * batch.batch.minutes for batch in status.batches)


def test_passes_count_for_their_share(real):
    leave(real, 1, [attempt(time.time() - 60)], turn=2, in_passes=(10, 5))
    status = read(real)
    entry = status.batches[1]
    assert entry.measured == 0
    assert entry.done.cases == pytest.approx((15 - 1) / 3)  # the time of the first holds the start of all
    assert entry.ahead.cases == pytest.approx(entry.total - 15 / 3)
    assert "pass 2 of 3" in batch_rows(status)[1]["state"]
    total = sum(batch.total for batch in status.batches)
    assert status.part == pytest.approx(5 / total)


def test_what_was_measured_before_does_not_make_the_pace_faster(campaign):
    """Ten cases an hour ago, four in this attempt's hundred seconds."""
    now = time.time()
    folder = leave(campaign, 1, [attempt(now - 110)], samples=10, in_passes=(4,))
    spread(campaign, 1, 1, now - 340, 25.0)  # ten, and four from ninety seconds ago on
    for path in folder.glob("*.csv"):
        os.utime(str(path), (now - 3600, now - 3600))
    entry = read(campaign, now).batches[1]
    assert entry.done.cases == 3
    assert (entry.measured, entry.left) == (14, 1)


def test_a_process_that_is_gone_died_without_a_word(campaign):
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    leave(campaign, 1, [attempt(time.time() - 9, pid=gone.pid)])
    leave(campaign, 2, [attempt(time.time() - 9, pid=gone.pid, host="elsewhere")])
    status = read(campaign)
    assert [batch.state for batch in status.batches] == [WAITING, STOPPED, RUNNING]
    assert "died without a word" in batch_rows(status)[1]["state"]


def test_samples_of_a_batch_that_was_stopped_count(campaign):
    leave(campaign, 1, [attempt(time.time() - 9, ended=time.time(), outcome="error: stopped")], in_passes=(4,))
    entry = read(campaign).batches[1]
    assert (entry.state, entry.measured) == (STOPPED, 4)


def test_an_attempt_that_failed_before_its_first_pass_makes_no_pass_a_measurement(real):
    """Nor does a damaged story: the plan knows how many passes there are to be."""
    failed = attempt(time.time() - 9, ended=time.time(), outcome="error: no image")
    folder = leave(real, 1, [failed], in_passes=(4, 2))
    for _ in range(2):
        entry = read(real).batches[1]
        assert (entry.state, entry.measured, entry.left) == (STOPPED, 0, entry.total)
        assert entry.ahead.cases == pytest.approx(entry.total - 6 / 3)
        (folder / "state.json").write_bytes(b"")


def test_no_sign_of_life_for_minutes_is_said(campaign):
    old = time.time() - 1000
    folder = leave(campaign, 1, [attempt(old, updated=old, host="elsewhere")])
    assert read(campaign).batches[1].state == RUNNING  # its clock may be slow: the file is new
    os.utime(folder / "state.json", (old, old))
    status = read(campaign)
    assert status.batches[1].state == SILENT
    assert "no sign of life for 17 min" in batch_rows(status)[1]["state"]
    assert status.over


def test_an_error_is_told_until_the_batch_is_done(campaign):
    ended = attempt(time.time() - 50, ended=time.time() - 10, outcome="error: n3: no route\x1b[2J")
    leave(campaign, 1, [ended], samples=3)
    status = read(campaign)
    assert status.batches[1].state == STOPPED
    assert batch_rows(status)[1]["state"].endswith(": error: n3: no route [2J")


def test_given_up_cases_are_counted_by_reason_and_the_whole_is_over(campaign):
    for index, batch in enumerate(campaign.plan.batches):
        done = attempt(time.time() - 50, ended=time.time() - 10, outcome="done")
        folder = leave(campaign, index, [done], samples=len(batch.ids) - 2, done=True)
        for case, kind in zip(batch.ids[-2:], ("timeout", "crash"), strict=True):
            write_json(folder / f"{case}.unmeasured.json", {"id": case, "status": kind, "reason": "so"})
    status = read(campaign)
    assert status.count(FINISHED) == 3
    assert status.over
    assert status.left == 0
    assert "6 not (3 crash, 3 timeout)" in sentence(status)
    assert platform_rows(status)[0]["crash"] == 3
    data = json.loads(json.dumps(as_data(status)))
    assert data["unmeasured"] == {"crash": 3, "timeout": 3}
    assert data["batches"][0]["state"] == "finished"


def test_late_cases_are_no_measured_ones_and_are_tried_again_when_asked(campaign):
    done = attempt(time.time() - 50, ended=time.time() - 10, outcome="done")
    for index, batch in enumerate(campaign.plan.batches):
        leave(campaign, index, [done], samples=len(batch.ids), done=True)
    first, other, *_ = campaign.plan.batches
    folder = campaign.done(first).parent
    kept, late = folder / f"{first.ids[0]}.csv", folder / f"{first.ids[-1]}.late.csv"
    (folder / f"{first.ids[-1]}.csv").replace(late)
    total = sum(batch.total for batch in read(campaign).batches)
    assert f"{total - 1} of {total} measured, 1 not (1 late)" in sentence(read(campaign))
    assert platform_rows(read(campaign))[0]["late"] == 1
    assert forget_failures(campaign) == 1
    assert not late.exists()
    assert kept.exists()
    assert not campaign.done(first).exists()
    assert campaign.done(other).exists()
    assert f"{total - 1} of {total} measured, 1 left" in sentence(read(campaign))
    assert forget_failures(campaign) == 0


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_story_stops_no_status(campaign, damage):
    folder = leave(campaign, 1, [attempt(time.time() - 60)], samples=3)
    (folder / "state.json").write_bytes(DAMAGES[damage])
    entry = read(campaign).batches[1]
    assert (entry.state, entry.measured) == (STOPPED, 3)
    assert batch_rows(read(campaign))[1]["state"].endswith(f": {DAMAGED}")
    assert batch_rows(read(campaign))[1]["state"].startswith("stopped at ")
    json.dumps(as_data(read(campaign)), allow_nan=False)
    for case in entry.batch.ids:
        (folder / f"{case}.csv").touch()
    campaign.done(entry.batch).touch()
    assert read(campaign).batches[1].state == FINISHED
