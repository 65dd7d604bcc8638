"""A rank that dies or hangs in a case loses the samples of that case, not of the batch. Real
signals are sent to real ranks. Files in shared memory are removed with the ranks, however a
measurement is stopped."""

import os
import signal
import time

import pytest

from tests.waiting import until


def strike(campaign, driver, number, hit):
    """Send a signal to a rank in a case that was not hit before, and append that case to `hit`. The
    rank is stopped first. The other rank then advances at most to the next case, so the current
    case no longer changes."""

    def fresh():
        now = campaign.now()
        return now not in {*hit, *campaign.pass_samples()} and now

    until(fresh, by=driver)
    rank = until(lambda: campaign.ranks(driver), by=driver)[-1]
    campaign.note_shared_files(driver)
    os.kill(rank, signal.SIGSTOP)
    hit.append(until(lambda: read_when_stable(fresh)))
    os.kill(rank, number)


def read_when_stable(read):
    """Return the value of `read()` if it is the same half a second later, else None."""
    before = read()
    time.sleep(0.5)
    return before if read() == before else None


def run_and_strike(campaign, number, times=1):
    """Start the measurement and send the signal; return the driver's exit code, the cases that were
    hit, and the output."""
    hit = []
    with campaign.start() as driver:
        for _ in range(times):
            strike(campaign, driver, number, hit)
        _, printed = driver.communicate(timeout=600)
    return driver.returncode, hit, printed


@pytest.mark.alone
def test_a_killed_rank_marks_one_case_as_crashed_and_the_batch_continues(campaign):
    here = campaign()
    code, (case,), printed = run_and_strike(here, signal.SIGKILL)
    assert code == 0, printed
    marker = here.markers()[case]
    assert marker["status"] == "crash"
    assert "signal 9" in marker["reason"].lower() or "killed" in marker["reason"].lower()
    assert set(here.markers()) == {case}
    assert here.samples() == here.ids - {case}
    assert not here.left_behind()
    assert [attempt["outcome"] for attempt in here.state()["attempts"]] == ["done"]
    before = {path: path.stat().st_mtime_ns for path in here.raw.glob("[!.]*")}
    here.measure()  # a marked case counts as finished, and a look at what is finished as no attempt
    assert {path: path.stat().st_mtime_ns for path in here.raw.glob("[!.]*")} == before
    (here.raw / f"{case}.unmeasured.json").unlink()
    here.measure()
    assert here.samples() == here.ids


@pytest.mark.alone
def test_a_hung_rank_marks_the_case_as_timed_out(campaign):
    here = campaign(timeout="2 s")
    code, (case,), printed = run_and_strike(here, signal.SIGSTOP)
    assert code == 0, printed
    assert here.markers()[case]["status"] == "timeout"
    assert "2.3 s" in here.markers()[case]["reason"]
    assert here.samples()
    # others may take as long on a machine that is busy
    assert here.samples() == here.ids - set(here.markers())
    assert not here.left_behind()


def test_three_in_a_row_give_up_the_start_and_a_batch_without_any_sample_leaves_no_markers(
    campaign,
):
    here = campaign(seconds="10 s")
    code, hit, printed = run_and_strike(here, signal.SIGKILL, times=3)
    assert code == 2
    assert len(set(hit)) == 3
    assert "nothing could be measured, 4 of 4 cases failed" in printed
    assert not here.markers()
    assert not here.samples()
    assert here.state()["attempts"][-1]["outcome"].startswith("error: ")


def test_three_in_a_row_after_a_sample_mark_the_rest(campaign):
    here = campaign(points=6, seconds="1 s")
    with here.start() as driver:
        until(here.pass_samples, by=driver)
        hit = []
        for _ in range(3):
            strike(here, driver, signal.SIGKILL, hit)
        _, printed = driver.communicate(timeout=600)
    assert driver.returncode == 0, printed
    assert here.samples()
    assert set(here.markers()) == here.ids - here.samples()
    others = [marker for case, marker in here.markers().items() if case not in hit]
    assert all(marker["reason"].startswith("three cases in a row failed: ") for marker in others)
