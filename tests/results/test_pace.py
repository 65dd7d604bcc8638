"""When a campaign is expected to end: from the samples that were written while somebody was at work."""

import os
import platform
import time

import pytest

from commodel.results.progress import RUNNING, batch_rows
from tests.results.drivers import attempt, leave, read


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
