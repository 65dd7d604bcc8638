"""Rank-local steps: predictions and deadlocks equal those of an event simulator; examples of
schedule.md."""

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.models.evaluation.replay import Costs, finish_times
from commodel.patterns.rank_local_steps import make_rank_local_schedule
from commodel.patterns.schedule import Schedule
from tests.patterns import slow_events
from tests.patterns.rank_local import built, computed, ends, programs
from tests.patterns.slow_events import DeadlockError


def predicted(case, columns, asking):
    """Return the finish times by common steps and replay; None for a deadlock."""
    ranks, rows, work = case
    try:
        pattern = built(ranks, rows, work)
        send, wire, receive, gap_out, gap_in, request, answer = columns[:, None, pattern.bytes]
        asks = (request, answer) if asking else ()
        return finish_times(
            pattern, Costs(send, receive, wire, gap_out, gap_in, *asks), pattern.work_seconds(0.0)
        )[0]
    except UserError as error:
        if "deadlock" not in error.message:
            raise
        return None


@settings(max_examples=500)
@given(programs(), st.integers(0, 1 << 20), st.sampled_from([0.0, 0.3, 1.0]))
def test_predictions_and_deadlocks_equal_the_results_of_the_event_simulator(case, seed, asking):
    ranks, rows, work = case
    rng = np.random.default_rng(seed)
    # no two arrivals at the same time, whose order is anyone's
    columns = 40 * rng.random((7, len(rows)))
    columns[5, rng.random(len(rows)) >= asking] = np.nan
    fast = predicted(case, columns, asking)
    try:
        slow = slow_events.finish_times(ranks, rows, work, lambda row: tuple(columns[:, row]))
    except DeadlockError:
        event("deadlock")
        assert fast is None
    else:
        event("price")
        np.testing.assert_allclose(fast, slow, rtol=1e-12, atol=1e-9)


@given(programs())
def test_common_steps_keep_waits_after_posts_and_the_order_of_each_rank(case):
    """No wait is before its post. Computing common steps twice does not change the finish times."""
    try:
        pattern = built(*case)
    except UserError:
        return
    assert (pattern.dst_wait >= pattern.step).all()
    assert (pattern.src_wait >= pattern.step).all()
    assert (pattern.dst_wait >= pattern.dst_step).all()
    again = make_rank_local_schedule(
        pattern.ranks,
        *(
            pattern.src,
            pattern.dst,
            pattern.bytes,
            pattern.step,
            pattern.src_wait,
            pattern.dst_step,
            pattern.dst_wait,
        ),
        work=pattern.work,
    )
    costs = Costs(3.0, 2.0, 10.0, 4.0, 5.0)
    first, second = (
        finish_times(schedule, costs, schedule.work_seconds(0.0)) for schedule in (pattern, again)
    )
    np.testing.assert_allclose(first, second)


def test_posts_and_waits_in_one_step_make_a_plain_schedule():
    pattern = make_rank_local_schedule(3, 0, [1, 2], 8, [0, 1], [0, 1], [0, 1], [0, 1])
    assert pattern.nonblocking is None
    assert pattern.has_same_structure(Schedule.of(3, [0, 1], 0, [1, 2], 8))


def test_a_ping_pong_may_be_one_step_of_one_rank():
    """Rank 0 posts a send and a receive and waits for both; rank 1 answers in its second step."""
    pattern = make_rank_local_schedule(2, [0, 1], [1, 0], 8, [0, 1], [0, 1], [0, 0], [0, 0])
    assert ends(pattern) == [6, 4]


def test_goal_file_of_three_ranks():
    """Rank 0 computes for 5 and sends twice; rank 1 receives and computes for 1; rank 2 receives
    (shared/schedule.md, example 3)."""
    work = computed([(0, 0, 5.0), (1, 1, 1.0)])
    pattern = make_rank_local_schedule(3, 0, [1, 2], 8, 1, 1, 0, 0, work=work)
    assert ends(pattern) == [7, 9, 9]


@pytest.mark.parametrize(("senders", "tokens"), [(7, 1), (7, 3), (8, 4), (9, 20)])
def test_a_gather_passes_tokens_as_specified(senders, tokens):
    """Sender i waits for its token in step 0 and sends in step 1. The root sends a token when a
    block has arrived. The event simulator gives the same times, and the root has ⌈senders/tokens⌉
    waves."""
    rows = []
    for sender in range(1, senders + 1):
        wave = (sender - 1) // tokens
        rows.append(slow_events.Message(0, sender, 0, wave, wave, 0, 0))
        rows.append(slow_events.Message(sender, 0, 1024, 1, 1, wave, wave))
    case = senders + 1, rows, []
    cost = 1.0, 10.0, 2.0, 3.0, 4.0, np.nan, 0.0
    slow = slow_events.finish_times(*case, lambda row: cost)
    columns = np.array(
        [
            [row.src, row.dst, row.bytes, row.src_step, row.src_wait, row.dst_step, row.dst_wait]
            for row in rows
        ]
    )
    pattern = make_rank_local_schedule(senders + 1, *columns.T)
    np.testing.assert_allclose(ends(pattern, Costs(1.0, 2.0, 10.0, 3.0, 4.0)), slow, rtol=1e-12)
    assert len(np.unique(pattern.dst_wait[pattern.dst == 0])) == -(-senders // tokens)


def test_overlap_costs_the_longer_of_communication_and_computation():
    """Both ranks post an exchange, compute, and wait for the exchange in the next step."""
    for compute, expected in ((2.0, 12.0), (100.0, 102.0)):
        work = computed([(0, 0, compute), (1, 0, compute)])
        overlapped = make_rank_local_schedule(2, [0, 1], [1, 0], 8, 0, 1, 0, 1, work=work)
        assert ends(overlapped, Costs(1.0, 1.0, 10.0)) == [expected, expected]
        one_after_the_other = make_rank_local_schedule(2, [0, 1], [1, 0], 8, 0, 0, 0, 0, work=work)
        assert ends(one_after_the_other, Costs(1.0, 1.0, 10.0)) == [12 + compute] * 2


def test_the_error_for_a_deadlock_names_the_ranks_of_the_cycle():
    cycle = (
        "deadlock: rank 0 in step 3 waits for rank 1 in step 7, which waits for rank 0 in step 3"
    )
    with pytest.raises(UserError, match=cycle):
        make_rank_local_schedule(2, [0, 1], [1, 0], 8, [4, 8], [4, 8], [7, 3], [7, 3])


def test_a_wait_before_the_post_of_the_receive_is_refused():
    with pytest.raises(
        UserError, match="rank 1 receives a message in step 5 and waits for it in step 4"
    ):
        make_rank_local_schedule(2, 0, 1, 8, 5, 5, 5, 4)


def test_an_exchange_that_sends_first_needs_short_messages():
    """MPI buffers short messages until they are received. If only one message uses rendezvous, the
    other rank still reaches its receive."""
    pattern = make_rank_local_schedule(2, [0, 1], [1, 0], 8, 0, 0, 1, 1)
    assert ends(pattern) == [3, 3]
    assert ends(
        pattern, Costs(1.0, 1.0, 1.0, request=np.array([1.0, np.nan]), grant=np.full(2, 0.5))
    ) == [3.5, 4.5]
    with pytest.raises(UserError, match=r"deadlock: .*: messages of this size use rendezvous"):
        ends(pattern, Costs(1.0, 1.0, 1.0, request=np.array([1.0, 1.0]), grant=np.zeros(2)))
