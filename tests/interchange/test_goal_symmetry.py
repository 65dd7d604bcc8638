"""GOAL programs in which all ranks do the same, shifted: put in order and priced by their first ranks, to the last
digit as without."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.hierarchy import Hierarchy
from commodel.models.families import complete, family
from commodel.models.pricing.repeated_rounds import first_ranks
from commodel.patterns.layouts import place
from commodel.patterns.written import tasks as goal_tasks
from commodel.patterns.written.tasks import CALCULATE, RECEIVE, SEND, Needs, Tasks, find_turn, schedule
from tests.models.exact import numbers


def repeated(own, needs, turn, turns):
    """`own`: the rows (kind, size, away, tag) of each of the first ranks; their needs (before, after, begun) by row."""
    ranks = turn * turns
    rows, all_needs = [], []
    for rank in range(ranks):
        first = len(rows)
        for kind, size, away, tag in own[rank % turn]:
            rows.append((rank, kind, size, 0 if kind == CALCULATE else (rank + away) % ranks, tag))
        all_needs += [(first + before, first + after, begun) for before, after, begun in needs[rank % turn]]
    columns = np.array(rows, dtype=np.int64).T
    before, after, begun = np.array(all_needs, dtype=np.int64).reshape(-1, 3).T
    return Tasks("made up", ranks, *columns, Needs(before, after, begun.astype(bool)))


@st.composite
def programs(draw):
    """Rounds in which every rank sends and receives, and calculates; now and then one rank does otherwise."""
    turn, turns = draw(st.integers(1, 3)), draw(st.integers(2, 5))
    ranks = turn * turns
    own, needs = [[] for _ in range(turn)], [[] for _ in range(turn)]
    for tag in range(draw(st.integers(1, 4))):
        away, size = draw(st.integers(1, ranks - 1)), draw(st.sampled_from([1, 8, 9000]))
        orders = draw(st.lists(st.booleans(), min_size=turn, max_size=turn))
        for rank in range(turn):
            moves = [(SEND, size + rank, away, tag), (RECEIVE, 0, -away, tag)]
            own[rank] += moves if orders[rank] else moves[::-1]
            own[rank] += [(CALCULATE, draw(st.sampled_from([0, 700])), 0, 0)]
    for rank in range(turn):
        for _ in range(draw(st.integers(0, 8))):
            ends = sorted(draw(st.sets(st.integers(0, len(own[rank]) - 1), min_size=2, max_size=2)))
            needs[rank].append((*ends, draw(st.booleans())))
    tasks = repeated(own, needs, turn, turns)
    if draw(st.integers(0, 3)) == 0:
        size = tasks.size.copy()
        size[draw(st.integers(0, len(size) - 1))] += 1
        tasks = replace(tasks, size=size)
    return tasks


def without_symmetry(tasks):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(goal_tasks, "find_turn", lambda tasks: tasks.ranks)
        return schedule(tasks)


def outcome(make, *arguments):
    try:
        return make(*arguments)
    except UserError as error:
        return error.message


SETS = {
    "loggp": {"L": 2.3e-6, "o_s": 7e-7, "o_r": 4e-7, "g": 1.1e-6, "G": 9e-10, "gamma": 1e-9},
    "loggops": {"L": 2.3e-6, "o": 7e-7, "g": 1.1e-6, "G": 9e-10, "O": 2e-10, "S": 4000.0, "gamma": 1e-9},
}


def finish(name, pattern, levels=None):
    """When each rank is done; on a network of two levels messages between leaves take longer."""
    values = complete(family(name), numbers(SETS[name]))
    if levels:
        far = {**values.numbers, "L.leaf": np.array([[7e-6]])}
        values = replace(values, numbers=far, settings={"classes": ["leaf"], "levels": levels.settings})
    return family(name).price(pattern, values)


@given(programs())
def test_columns_are_those_of_all_ranks_in_order(tasks):
    first, whole = outcome(schedule, tasks), outcome(without_symmetry, tasks)
    if isinstance(whole, str):
        assert first == whole
        return
    assert first.content() == whole.content()
    assert (first.turn is None) == (find_turn(tasks) == tasks.ranks)


@given(programs(), st.sampled_from(["block:1", "block:2", "cyclic:2"]), st.sampled_from(sorted(SETS)), st.booleans())
def test_price_is_that_of_all_ranks_to_the_last_digit(tasks, layout, name, near):
    pattern = outcome(schedule, tasks)
    if isinstance(pattern, str):
        return
    node = place(layout, pattern.ranks)
    levels = Hierarchy.written({"leaf": 2}, int(node.max()) + 1) if near else None
    pattern = pattern.placed(node)
    first, whole = (outcome(finish, name, one, levels) for one in (pattern, replace(pattern, turn=None)))
    assert np.array_equal(first, whole)


def test_ring_is_replayed_by_one_rank():
    rounds = 6
    own = [row for _ in range(rounds) for row in ((SEND, 64, 1, 0), (RECEIVE, 64, -1, 0))]
    needs = [(2 * number - 1, 2 * number, False) for number in range(1, rounds)]
    ring = schedule(repeated([own], [needs], 1, 4))
    sent, played = first_ranks(ring)
    assert (ring.turn, played.ranks, sent.messages, ring.messages) == (1, 1, rounds, 4 * rounds)
    assert finish("loggp", ring)[0].tolist() == pytest.approx([rounds * (7e-7 + 2.3e-6 + 63 * 9e-10 + 4e-7)] * 4)


def test_two_sizes_in_turn_are_two_ranks():
    own = [[(SEND, size, 2, 0), (RECEIVE, size, -2, 0)] for size in (8, 9)]
    assert find_turn(repeated(own, [[], []], 2, 3)) == 2
