"""What every pattern in the catalogue must be, whatever its algorithm."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.algorithms import algorithm
from commodel.errors import UserError
from commodel.patterns import schedule
from tests.patterns import ALGORITHMS, SEGMENTED, TREE_OPERATIONS, TREES, catalogue, point


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


def spread(pattern, start):
    """Which ranks know what after the whole schedule, when a message carries all its sender knew before the step."""
    known = {rank: set(found) for rank, found in start.items()}
    for step in np.unique(pattern.step):
        before = {rank: set(found) for rank, found in known.items()}
        for row in np.flatnonzero(pattern.step == step):
            known[pattern.dst[row]] |= before[pattern.src[row]]
    return known


@pytest.mark.parametrize("ranks", [*range(2, 20), 31, 32, 33])
@pytest.mark.parametrize(("operation", "choice"), ALGORITHMS + SEGMENTED)
def test_everyone_who_must_know_in_the_end_does(operation, choice, ranks):
    pattern = schedule(point(operation, choice, ranks=ranks, bytes=1000))
    everyone = set(range(ranks))
    if operation == "bcast":
        known = spread(pattern, {rank: {0} if rank == 0 else set() for rank in everyone})
        assert all(found == {0} for found in known.values())
        return
    known = spread(pattern, {rank: {rank} for rank in everyone})
    receivers = {0} if operation in ("gather", "reduce") else everyone
    assert all(known[rank] == everyone for rank in receivers)


@pytest.mark.parametrize("operation", TREE_OPERATIONS)
@pytest.mark.parametrize("spec", TREES)
def test_trees_carry_one_message_an_edge(operation, spec):
    pattern = schedule(point(operation, topology=spec))
    assert len(pattern.src) == pattern.ranks - 1
    down, up = pattern.src, pattern.dst
    if operation == "reduce":
        down, up = up, down
        assert pattern.root == 0
        assert pattern.work.bytes.sum() == 64 * (pattern.ranks - 1)
    assert len(set(up.tolist())) == pattern.ranks - 1  # every node but the root has one parent


@pytest.mark.parametrize("ranks", [2, 3, 7, 8, 12, 16, 21])
def test_volumes_by_closed_form(ranks):
    size, rounds = 1000, (ranks - 1).bit_length()
    total = {
        ("bcast", "linear"): (ranks - 1) * size,
        ("bcast", "binomial"): (ranks - 1) * size,
        ("bcast", "binomial-near"): (ranks - 1) * size,
        ("bcast", "chain"): (ranks - 1) * size,
        ("gather", "linear"): (ranks - 1) * size,
        ("gather", "binomial"): sum(bin(rank).count("1") for rank in range(ranks)) * size,
        ("barrier", "dissemination"): 0,
        ("barrier", "linear"): 0,
        ("allgather", "ring"): ranks * (ranks - 1) * size,
        ("allreduce", "ring"): 2 * (ranks - 1) * size,
    }
    for (operation, choice), volume in total.items():
        assert schedule(point(operation, choice, ranks=ranks, bytes=size)).bytes.sum() == volume, (operation, choice)
    barrier = schedule(point("barrier", "dissemination", ranks=ranks, bytes=0))
    assert len(barrier.src) == rounds * ranks
    assert len(schedule(point("barrier", "linear", ranks=ranks, bytes=0)).src) == 2 * (ranks - 1)


@pytest.mark.parametrize("ranks", [2, 4, 8, 64])
def test_recursive_doubling_of_a_power_of_two(ranks):
    pattern = schedule(point("allreduce", "recursive-doubling", ranks=ranks, bytes=8))
    assert len(pattern.steps) == ranks.bit_length() - 1
    assert len(pattern.src) == ranks * (ranks.bit_length() - 1)


def test_far_first_and_near_first():
    far = schedule(point("bcast", "binomial", ranks=8))
    near = schedule(point("bcast", "binomial-near", ranks=8))
    assert far.dst[far.src == 0].tolist() == [4, 2, 1]
    assert near.dst[near.src == 0].tolist() == [1, 2, 4]


def test_chain_is_cut_into_segments_that_follow_each_other():
    pattern = schedule(point("bcast", "chain:100", ranks=4, bytes=250))
    sizes = defaultdict(list)
    for src, size in zip(pattern.src, pattern.bytes, strict=True):
        sizes[int(src)].append(int(size))
    assert sizes == {0: [100, 100, 50], 1: [100, 100, 50], 2: [100, 100, 50]}
    assert pattern.step.max() == (4 - 2) + (3 - 1)


@pytest.mark.parametrize("ranks", [2, 3, 8, 11])
def test_segments_go_down_the_binomial_tree_one_after_the_other(ranks):
    whole = schedule(point("bcast", "binomial", ranks=ranks, bytes=250))
    pattern = schedule(point("bcast", "binomial:100", ranks=ranks, bytes=250))
    rounds = whole.step.max() + 1
    for number, size in enumerate([100, 100, 50]):
        rows = pattern.step // rounds == number
        assert pattern.bytes[rows].tolist() == [size] * (ranks - 1)
        for column in ("src", "dst"):
            np.testing.assert_array_equal(getattr(pattern, column)[rows], getattr(whole, column))
        np.testing.assert_array_equal(pattern.step[rows] - number * rounds, whole.step)


@pytest.mark.parametrize("spec", ["lineer", "linear:4", "chain:x", "chain:-1", "binomial:0", "binomial:x"])
def test_a_wrong_algorithm_is_one_line(spec):
    def use():
        entry, argument = algorithm("bcast", spec)
        entry.build(4, 10, argument)

    with pytest.raises(UserError) as caught:
        use()
    assert "\n" not in caught.value.format_message()
