"""Prices in the order of time: Python against a slow way, the compiled ones against Python, and closed forms."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.models.pricing import native_replay
from commodel.models.pricing.time_order import Program, Traffic, in_python, in_time
from commodel.patterns.rank_local_steps import rank_local
from commodel.patterns.schedule import Schedule, Work
from tests.patterns import slow_shares
from tests.patterns.rank_local import built, programs

WHOLE, BROKEN = st.integers(0, 9), st.floats(0, 9)


@st.composite
def traffics(draw, times=WHOLE):
    """A schedule, which of its messages ask, which of these hold their senders up, what passes which of three lines,
    and what all costs."""
    try:
        pattern = built(*draw(programs()))
    except UserError:
        assume(False)
    several = len(pattern.src)

    def column(values):
        return np.array(draw(st.lists(values, min_size=several, max_size=several)))

    lines = np.concatenate([column(st.integers(0, 3)), column(st.integers(0, 3))])  # 3: none
    message, some = np.tile(np.arange(several), 2), lines < 3
    some[several:] &= lines[several:] != lines[:several]
    asks, waits = column(st.booleans()), column(st.booleans())
    wire, alone = column(times).astype(float), column(times).astype(float)
    uses = np.concatenate([column(times), column(times)]).astype(float)[some]
    count = int(lines[some].max(initial=-1)) + 1
    opposite = np.array(draw(st.sampled_from([[-1, -1, -1], [1, 0, -1], [-1, 2, 1], [0, 2, 1]])))[:count]
    work = pattern.work_seconds(0.0)
    return (
        pattern,
        asks,
        asks & waits,
        (message[some], lines[some]),
        Traffic(column(times), column(times), wire, alone, uses, work, draw(st.sampled_from([0.05, 0.25]))),
        np.where(opposite < count, opposite, -1),
    )


def played(pattern, asks, waits, uses, traffic, opposite=None, play=in_python, in_turn=False):
    program = Program.of(pattern, asks, uses, in_turn, waits, opposite)
    return play(program, traffic, program.uses(traffic.uses), program.work(traffic.work))


@settings(max_examples=50)
@given(traffics())
def test_all_on_a_line_get_equal_shares_at_every_moment(traffic):
    pattern, asks, waits, (message, line), costs, opposite = traffic
    passed = defaultdict(dict)
    for number, other, seconds in zip(message.tolist(), line.tolist(), costs.uses.tolist(), strict=True):
        passed[number][other] = seconds
    columns = costs.send, costs.receive, costs.wire, costs.alone, costs.work
    facing = {line: other for line, other in enumerate(opposite.tolist()) if other >= 0}
    slow = slow_shares.finish_times(pattern, asks, waits, passed, facing, costs.back, False, *columns)
    fast = played(*traffic)
    if slow is None:
        assert fast is None
    else:
        np.testing.assert_allclose(fast, slow, atol=1e-6)


@settings(max_examples=50)
@given(traffics(BROKEN), st.booleans())
def test_what_is_compiled_is_pythons_to_the_bit(library, traffic, in_turn):
    plain, native = (played(*traffic, play, in_turn) for play in (in_python, native_replay.in_time))
    assert (plain is None) == (native is None)
    if plain is not None:
        np.testing.assert_array_equal(plain, native)


@pytest.mark.parametrize("seed", range(20))
def test_many_on_few_lines_are_pythons_to_the_bit(library, seed):
    """Of one size, of few and of many, so that they leave lines in the order in which they joined, or in another."""
    rng = np.random.default_rng(seed)
    ranks, several = int(rng.integers(2, 9)), int(rng.integers(100, 400))
    src = rng.integers(0, ranks, several)
    dst = (src + rng.integers(1, ranks, several)) % ranks
    pattern = Schedule.of(ranks, np.sort(rng.integers(0, 4, several)), src, dst, 8)
    number, line = np.divmod(np.flatnonzero(rng.random(5 * several) < 0.4), 5)
    sizes = rng.random(several) if seed % 2 else rng.integers(1, 4, several)
    asks = rng.random(several) < rng.choice([0.0, 0.3])
    traffic = Traffic(sizes / 4, sizes / 4, sizes, sizes, sizes[number] * (1 + line % 2), np.zeros(0), 0.05)
    opposite = np.array([1, 0, 3, 2, 4 - 5 * (seed % 2)]) if seed % 4 > 1 else None
    plain, native = (
        played(pattern, asks, asks, (number, line), traffic, opposite, play, seed % 3 == 0)
        for play in (in_python, native_replay.in_time)
    )
    np.testing.assert_array_equal(plain, native)


def chain(ranks, parts):
    part, src = np.divmod(np.arange(parts * (ranks - 1)), ranks - 1)
    pattern = Schedule.of(ranks, part + src, src, src + 1, 8)
    return pattern, np.zeros(len(part), dtype=bool), (np.arange(len(part)), pattern.src)


@pytest.mark.parametrize("compiles", [False, True])
def test_parts_that_go_in_turn_make_a_pipeline_and_parts_that_share_do_not(library, compiles):
    """A part takes 5 + 4: p − 1 links, and behind the first part the others, 5 each. Where all parts that the first
    rank has sent share its link, all come late."""
    ranks, parts, o_s, o_r, L, lasts = 8, 40, 1.0, 1.0, 2.0, 5.0
    pattern, asks, uses = chain(ranks, parts)
    columns = (np.full(len(asks), seconds) for seconds in (L, lasts, lasts))
    traffic = Traffic(o_s, o_r, *columns, np.zeros(0))
    play = native_replay.in_time if compiles else in_python
    in_turn, sharing = (played(pattern, asks, asks, uses, traffic, None, play, turn)[-1] for turn in (True, False))
    assert in_turn == pytest.approx((ranks - 1) * (o_s + lasts + L + o_r) + (parts - 1) * lasts)
    assert sharing > 1.3 * in_turn


def test_who_asks_waits_until_the_message_is_through():
    """Sent at 1, it lasts 3 for both, and 2 more on the wire."""
    pattern = rank_local(2, [0], [1], 8, 0, 0, 1, 1)
    program = Program.of(pattern, np.array([True]), (np.array([0]), np.array([0])))
    late = Traffic(1.0, 1.0, np.array([2.0]), np.array([3.0]), np.array([3.0]), np.zeros(0))
    np.testing.assert_allclose(in_time(program, late), [4.0, 7.0])


def test_who_is_not_held_up_goes_on_while_the_message_waits_for_its_receiver():
    """As above, but the sender is done when it has sent."""
    pattern = rank_local(2, [0], [1], 8, 0, 0, 1, 1, work=Work.compute(0, np.array([1]), np.array([0.0, 7.0])))
    program = Program.of(pattern, np.array([True]), (np.array([0]), np.array([0])), waits=np.array([False]))
    costs = Traffic(1.0, 1.0, np.array([2.0]), np.array([3.0]), np.array([3.0]), np.array([7.0]))
    np.testing.assert_allclose(in_time(program, costs), [1.0, 7.0 + 3.0 + 2.0 + 1.0])


def test_ranks_that_wait_for_each_other_are_an_error(library):
    """Both send before they open what the other sends."""
    pattern = rank_local(2, [0, 1], [1, 0], 8, 0, 0, 1, 1)
    none, asks = np.zeros(0, dtype=int), np.ones(2, dtype=bool)
    traffic = Traffic(1.0, 1.0, *np.ones((2, 2)), np.zeros(0), np.zeros(0))
    for play in (in_python, native_replay.in_time):
        assert played(pattern, asks, asks, (none, none), traffic, None, play) is None
    with pytest.raises(UserError, match="ranks wait for each other"):
        in_time(Program.of(pattern, asks, (none, none)), traffic)
    np.testing.assert_allclose(in_time(Program.of(pattern, ~asks, (none, none)), traffic), [4.0, 4.0])


def test_a_library_of_other_sources_is_not_used(library, monkeypatch):
    assert library is not None
    monkeypatch.setattr(native_replay, "FORM", native_replay.FORM + 1)
    assert native_replay.library.__wrapped__() is None
