"""The steps that GOAL's tasks become keep every need, message and calculation; a slow loop finds the same order."""

import numpy as np
import pytest
from hypothesis import event, given, settings

from commodel.errors import UserError
from commodel.patterns.written.tasks import CALCULATE, RECEIVE, SEND, Steps, match, schedule
from tests.patterns.goal_programs import programs
from tests.patterns.test_written_goal import ends


def slow_order(tasks):
    """In which order all begin, and which ends of messages belong together; None where they cannot all be done."""
    needs = list(zip(tasks.needs.before, tasks.needs.after, tasks.needs.begun, strict=True))
    posted, over, queues, other = [], set(), {}, {}
    while len(over) < len(tasks.rank):
        ready = [
            task
            for task in range(len(tasks.rank))
            if task not in posted and all(b in (posted if begun else over) for b, a, begun in needs if a == task)
        ]
        if not ready:
            return None
        for task in ready:
            posted.append(task)
            if tasks.kind[task] != RECEIVE:
                over.add(task)
            if tasks.kind[task] != CALCULATE:
                pair = (tasks.rank[task], tasks.peer[task])[:: 1 if tasks.kind[task] == SEND else -1]
                queues.setdefault((*pair, tasks.tag[task]), ([], []))[int(tasks.kind[task] == RECEIVE)].append(task)
        for sends, receives in queues.values():
            for send, receive in zip(sends, receives, strict=False):
                over.add(receive)
                other |= {send: receive, receive: send}
    return posted, other


@settings(max_examples=300)
@given(programs())
def test_steps_keep_all_that_is_required(tasks):
    """Every need holds in the steps of its rank, all bytes and all work are there, and no order means a deadlock."""
    expected = slow_order(tasks)
    if expected is None:
        with pytest.raises(UserError, match=r"^made up: (a deadlock|a circle of requires): task \d+ of rank") as caught:
            schedule(tasks)
        event(caught.value.message.split(":")[1])
        return
    event("schedule")
    posted, other = expected
    matching = match(tasks)
    assert matching.other.tolist() == [other.get(task, -1) for task in range(len(tasks.rank))]
    assert posted == sorted(posted, key=lambda task: (matching.round[task], task))
    assert_kept(tasks, posted, Steps.of(tasks, matching))
    pattern = schedule(tasks)
    sent, time = (tasks.size[tasks.kind == kind] for kind in (SEND, CALCULATE))
    assert sorted(pattern.bytes) == sorted(sent)
    assert pattern.work.seconds.sum() == pytest.approx(time.sum() / 1e9)
    assert np.isfinite(ends(pattern)).all()


def assert_kept(tasks, posted, steps):
    """Within a step a rank posts receives, then sends, waits, and calculates."""
    begun, over = {}, {}
    needs = list(zip(tasks.needs.before, tasks.needs.after, tasks.needs.begun, strict=True))
    for task in posted:
        before = [(begun if begins else over)[b] for b, a, begins in needs if a == task]
        if tasks.idle[task]:
            begun[task] = over[task] = max(before, default=(-1, 0))
        elif tasks.works[task]:
            begun[task] = over[task] = steps.post[task], 3
            assert all(place <= over[task] for place in before)
        else:
            begun[task], over[task] = (steps.post[task], int(tasks.kind[task] == SEND)), (steps.wait[task], 2)
            assert all(place <= begun[task] for place in before)
            assert begun[task] < over[task]
