"""A campaign's status is read off files as drivers leave them: states, counts, and words for people and programs."""

import json
import os
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from commodel.cli import main
from commodel.files.atomic import write_json
from commodel.results.attempts import DAMAGED
from commodel.results.campaign import forget_failures
from commodel.results.progress import (
    FINISHED,
    RUNNING,
    SILENT,
    STOPPED,
    WAITING,
    as_data,
    batch_rows,
    platform_rows,
    sentence,
)
from tests.results.damages import DAMAGES
from tests.results.drivers import attempt, leave, read


def test_nothing_is_there_yet(campaign):
    status = read(campaign)
    assert [batch.state for batch in status.batches] == [WAITING] * 3
    assert status.over  # nobody is at work
    assert status.seconds is None


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


def test_who_watches_is_told_each_change_once(campaign, monkeypatch):
    began, looks = time.time() - 9, []
    folder = leave(campaign, 0, [attempt(began)])
    write_json(campaign.folder / "plan.json", campaign.plan.as_json())

    def later(seconds):
        looks.append(seconds)
        if len(looks) == 3:  # nothing changes before
            write_json(folder / "state.json", {"attempts": [attempt(began, ended=time.time(), outcome="error: x")]})

    monkeypatch.chdir(campaign.folder.parents[1])
    monkeypatch.setattr("commodel.cli.run.BETWEEN_LOOKS", 7.0)
    monkeypatch.setattr(time, "sleep", later)
    watched = CliRunner().invoke(main, ["status", "e", "--watch"], catch_exceptions=False)
    assert looks == [7.0] * 3
    assert [line for line in watched.output.splitlines() if line.startswith("e: ")] == [
        "e: 0 of 35 measured, 35 left, expected end unknown, 0% done, 1 batch running",
        "e: 0 of 35 measured, 35 left",
    ]


@pytest.mark.parametrize("began", [0, -1e9])
def test_an_attempt_from_before_all_clocks_stops_nobody(campaign, began):
    leave(campaign, 0, [attempt(began, ended=time.time(), outcome="error: x")], samples=1)
    assert read(campaign).batches[0].state == STOPPED
