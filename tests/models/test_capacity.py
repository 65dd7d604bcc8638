"""LogP's finite capacity ⌈L/g⌉, against closed forms and against the replay without a limit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.models.families import complete, family
from commodel.models.pricing.values import Values
from commodel.patterns.build import schedule
from commodel.patterns.schedule import Schedule, stack
from tests.models.test_replay import schedules
from tests.patterns.catalogue import catalogue, point
from tests.patterns.rank_local import built, programs


def finish(pattern, L, o, g, capacity="finite", gamma=0.0) -> np.ndarray:
    numbers = {name: np.array([[float(value)]]) for name, value in {"L": L, "o": o, "g": g, "gamma": gamma}.items()}
    values = complete(family("logp"), Values(numbers, settings={"capacity": capacity}))
    return family("logp").price(pattern, values)[0]


@pytest.mark.parametrize(("L", "o", "g"), [(10, 2, 4), (10, 2, 10), (10, 1, 3), (8, 3, 2)])
def test_many_to_one(L, o, g):
    """⌈L/g⌉ messages leave at o. The k-th of the others leaves when the k-th of all has left the network, L + (k−1)·g
    later; and the receiver has them all as soon as without a limit."""
    senders, limit = 12, -(-L // g)
    pattern = schedule(point("gather", "linear", ranks=senders + 1, bytes=1))
    finished = finish(pattern, L, o, g)
    stalled = [o + L + k * g for k in range(senders - limit)]
    assert sorted(finished[1:]) == pytest.approx([o] * limit + stalled)
    assert finish(pattern, L, o, g, "unlimited")[1:] == pytest.approx(o)
    assert finished[0] == pytest.approx(finish(pattern, L, o, g, "unlimited")[0])


def test_who_stalls_sends_its_next_later():
    """Five send to 0, then on to a neighbour of their own. L = 10, g = 5: two at once. The third leaves at 2 + 10, the
    fifth at 2 + 20; its next message takes 2 + 10 + 2 from there."""
    pattern = Schedule.of(11, [0] * 5 + [1] * 5, [1, 2, 3, 4, 5] * 2, [0] * 5 + [6, 7, 8, 9, 10], 1)
    finished = finish(pattern, 10, 2, 5)
    assert finished[6:] == pytest.approx([5 + 2 + 12, 5 + 2 + 12, 12 + 3 + 14, 17 + 3 + 14, 22 + 3 + 14])
    assert finish(pattern, 10, 2, 5, "unlimited")[6:] == pytest.approx([5 + 2 + 12] * 5)


def test_two_in_one_step_stall_the_one_behind():
    pattern = Schedule.of(5, 0, [1, 2, 3, 3], [0, 0, 0, 4], 1)
    assert finish(pattern, 10, 2, 10)[4] > finish(pattern, 10, 2, 10, "unlimited")[4]


@given(schedules(), st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_never_sooner_than_without_a_limit(pattern, L, o, g):
    limited, free = (finish(pattern, L, o, g, capacity, gamma=2.0) for capacity in ("finite", "unlimited"))
    assert np.all(limited >= free - 1e-9)
    if not g:
        np.testing.assert_allclose(limited, free)


@given(schedules(), st.integers(0, 40), st.integers(1, 40))
def test_a_network_that_holds_all_is_the_replays(pattern, o, g):
    """⌈L/g⌉ is more than there are messages."""
    limited, free = (finish(pattern, 10_000, o, g, capacity, gamma=2.0) for capacity in ("finite", "unlimited"))
    np.testing.assert_allclose(limited, free, rtol=1e-12)


@pytest.mark.parametrize("entry", [entry for entry in catalogue(7, 1000) if entry.operation in ("bcast", "allgather")])
def test_where_no_two_send_to_one_at_once_nobody_stalls(entry):
    pattern = schedule(entry)
    into_one = np.unique(pattern.step * pattern.ranks + pattern.dst, return_counts=True)[1].max()
    if into_one == 1:
        np.testing.assert_allclose(finish(pattern, 10, 2, 4), finish(pattern, 10, 2, 4, "unlimited"))


def test_stacks_of_sizes_are_priced_as_one_by_one():
    several = [schedule(point("gather", "linear", ranks=9, bytes=size)) for size in (1, 8)]
    values = Values({name: np.array([[2.0], [3.0]]) for name in "Log"}, settings={"capacity": "finite"})
    values = complete(family("logp"), values)
    together = family("logp").price(stack(several), values)
    alone = family("logp").price(several[0], values)
    np.testing.assert_allclose(np.broadcast_to(together, (2, 2, 9)), np.broadcast_to(alone, (2, 2, 9)))


@given(programs(), st.integers(0, 40), st.integers(1, 40))
def test_ranks_that_take_later_than_others_send(program, o, g):
    """Of rank-local steps, a network that holds all is the replay's as well."""
    try:
        pattern = built(*program)
    except UserError:
        return  # a deadlock
    limited, free = (finish(pattern, 10_000, o, g, capacity, gamma=2.0) for capacity in ("finite", "unlimited"))
    np.testing.assert_allclose(limited, free, rtol=1e-12)
