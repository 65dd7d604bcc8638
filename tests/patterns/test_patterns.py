"""What every pattern in the catalogue must be, whatever its algorithm."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.patterns.algorithms import ANY_ORDER, RANK_ORDER, Algorithm, algorithm
from commodel.patterns.arguments import Kind
from commodel.patterns.build import schedule
from commodel.patterns.operations import operation as operation_named
from commodel.patterns.phases import phase, sequence
from commodel.patterns.points import Setting, make_point
from tests.patterns.catalogue import ALGORITHMS, ENTRIES, TREE_OPERATIONS, TREES, catalogue, point
from tests.patterns.dataflow import Replay, finishes_with_synchronous_sends


@given(st.integers(2, 40), st.integers(0, 5000))
@settings(max_examples=40, deadline=None)
def test_messages_are_between_two_ranks_of_the_schedule(ranks, bytes):
    for entry in catalogue(ranks, bytes):
        pattern = schedule(entry)
        for column in (pattern.src, pattern.dst):
            assert column.min() >= 0
            assert column.max() < pattern.ranks
        assert np.all(pattern.src != pattern.dst)
        assert np.all(pattern.bytes >= 0)
        assert np.all(np.diff(pattern.step) >= 0)


@pytest.mark.parametrize(("operation", "choice"), ALGORITHMS)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_each_rank_gets_exactly_what_it_must(operation, choice, data):
    """Nothing is sent that the sender has not, nothing combined twice, and in the end everyone has what is promised:
    from all ranks, at any number of them."""
    ranks = data.draw(st.integers(2, 9 if operation == "alltoall" else 33), label="ranks")
    size = 0 if operation == "barrier" else data.draw(st.integers(0, 3 * ranks), label="bytes")
    Replay(schedule(point(operation, choice, ranks=ranks, bytes=size)), operation, size).check()


SEGMENTED = sorted(
    (entry.operation, entry.choice)
    for entry in ENTRIES.values()
    if isinstance(entry, Algorithm) and entry.argument and entry.argument.kind is Kind.SEGMENT
)


@pytest.mark.parametrize(("operation", "choice"), SEGMENTED)
@given(ranks=st.integers(2, 6), segment=st.integers(1, 7), size=st.integers(0, 80))
@settings(max_examples=15, deadline=None)
def test_segments_that_do_not_divide_the_data_carry_each_byte_once(operation, choice, ranks, segment, size):
    pattern = schedule(point(operation, f"{choice}:{segment}", ranks=ranks, bytes=size))
    Replay(pattern, operation, size).check()


@pytest.mark.parametrize(("operation", "choice"), [name for name in ALGORITHMS if operation_named(name[0]).reduces])
def test_the_order_of_a_reduction_is_what_it_says(operation, choice):
    """Where every partial result covers consecutive ranks, an associative operation is enough; else it must commute."""
    entry, _ = algorithm(operation, choice)
    orders = {
        Replay(schedule(point(operation, choice, ranks=ranks, bytes=40)), operation, 40).in_order
        for ranks in range(2, 20)
    }
    assert entry.order == (RANK_ORDER if orders == {True} else ANY_ORDER)


def test_only_reductions_have_an_order():
    for entry in ENTRIES.values():
        assert bool(entry.order) == operation_named(entry.operation).reduces, entry.name


@pytest.mark.parametrize("ranks", [2, 3, 7, 8, 13])
def test_no_deadlock_where_sends_wait_for_their_receives(ranks):
    for entry in catalogue(ranks, 100):
        assert finishes_with_synchronous_sends(schedule(entry)), entry


@pytest.mark.parametrize("operation", TREE_OPERATIONS)
@pytest.mark.parametrize("spec", TREES)
def test_trees_carry_the_data(operation, spec):
    size = 0 if operation == "barrier" else 7
    pattern = schedule(point(operation, topology=spec, bytes=size))
    Replay(pattern, operation, size).check()
    assert len(pattern.src) == (pattern.ranks - 1) * (2 if operation == "barrier" else 1)


def knowing(pattern):
    """Which ranks every rank has heard of in the end, directly or not."""
    known = [{rank} for rank in range(pattern.ranks)]
    for step in np.unique(pattern.step):
        before = [set(ranks) for ranks in known]
        for row in np.flatnonzero(pattern.step == step):
            known[pattern.dst[row]] |= before[pattern.src[row]]
    return known


@pytest.mark.parametrize("choice", [choice for operation, choice in ALGORITHMS if operation == "barrier"])
def test_nobody_leaves_a_barrier_before_all_are_there(choice):
    for ranks in (*range(2, 20), 31, 32, 33):
        heard_of = knowing(schedule(point("barrier", choice, ranks=ranks, bytes=0)))
        assert all(known == set(range(ranks)) for known in heard_of), ranks


@pytest.mark.parametrize(
    "spec", ["lineer", "linear:4", "chain:x", "chain:-1", "binomial:0", "binomial:x", "knomial:1", "knomial:x"]
)
def test_a_wrong_algorithm_is_one_line(spec):
    def use():
        entry, argument = algorithm("bcast", spec)
        entry.build(4, 10, *entry.values(argument))

    with pytest.raises(UserError) as caught:
        use()
    assert "\n" not in caught.value.format_message()


def test_a_rank_that_is_missed_is_found_by_the_slow_replay():
    """The oracle itself: a reduction that leaves one rank out, and a message of data that its sender has not."""
    whole = schedule(point("reduce", "linear", ranks=5, bytes=8))
    short = sequence(5, phase(0, np.arange(1, 4), 0, 8, combines=True), root=0)
    Replay(whole, "reduce", 8).check()
    with pytest.raises(AssertionError, match="only at"):
        Replay(short, "reduce", 8).check()
    with pytest.raises(KeyError):
        Replay(sequence(3, phase(0, 1, 2, 8)), "bcast", 8)


@pytest.mark.parametrize(
    ("operation", "spec", "own"),
    [
        ("bcast", "pipeline:4KiB", "chain:4KiB"),
        ("allreduce", "recursive_doubling", "recursive-doubling"),
        ("barrier", "tree", "binomial"),
    ],
)
def test_names_of_mpi_libraries_are_understood_and_written_as_here(operation, spec, own):
    made = make_point(Setting.unlimited(), {"operation": operation, "algorithm": spec, "ranks": 4, "bytes": 8})
    assert made.algorithm == own
    assert made == make_point(Setting.unlimited(), {"operation": operation, "algorithm": own, "ranks": 4, "bytes": 8})
