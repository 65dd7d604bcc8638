"""When a campaign will be done: ranges that hold what an obvious simulation of the same pace finds."""

import pytest

from commodel.plan.duration import START
from commodel.results.progress import Work, measure_pace, running, then, together, waiting, within


def test_no_pace_no_forecast():
    assert running(60.0, Work(), Work(10, 5.0)) is None
    assert waiting(Work(10, 5.0), []) is None
    assert measure_pace(0.0, Work(1, 1.0)) is None
    assert measure_pace(9.0, Work()) is None


def test_equal_cases_at_an_even_pace_are_in_the_middle_of_the_range():
    low, high = running(50.0, Work(25, 5.0), Work(75, 15.0))
    assert (low + high) / 2 == pytest.approx(150.0)
    assert (high - low) / 2 == pytest.approx(150.0 / 5)  # 25 cases: the root is 5


def test_where_the_longest_cases_are_left_the_range_holds_what_they_will_take():
    """Cases take what the plan says times three; the short ones come first."""
    plan = [0.1 * 1.1**i for i in range(40)]
    for done in range(4, 40):
        spent, left = 3 * sum(plan[:done]), 3 * sum(plan[done:])
        low, high = running(spent, Work(done, sum(plan[:done])), Work(40 - done, sum(plan[done:])))
        assert low <= left <= high, done


def test_one_case_says_little():
    assert running(10.0, Work(1, 1.0), Work(9, 9.0)) == pytest.approx((0.0, 180.0))


def test_what_waits_is_as_far_off_as_the_others_were():
    assert waiting(Work(5, 10.0), [2.0, 3.0]) == pytest.approx((START + 20, START + 30))
    assert waiting(Work(5, 10.0), [2.0]) == pytest.approx((START + 10, START + 40))


def test_batches_share_the_lanes_and_none_is_done_before_itself():
    assert together([(10, 20), (10, 20), (10, 20), (10, 20)], 2) == (20, 40)
    assert together([(10, 100), (10, 20)], 2) == (10, 100)
    assert together([(10, 20), None], 1) is None
    assert together([(10, 20)], 0) is None
    assert together([], 1) is None


def test_nothing_takes_longer_than_until_it_is_ended():
    assert within((10.0, 9e5), 600.0) == (10.0, 600.0)
    assert within((10.0, 20.0), -5.0) == (0.0, 0.0)
    assert within(None, 600.0) is None


def test_what_comes_afterwards_counts():
    assert then((10.0, 20.0), 30.0) == (25.0, 80.0)
    assert then(None, 30.0) is None
