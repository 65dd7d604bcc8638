"""What single algorithms send, by closed forms and by hand: volumes, rounds, segments, windows."""

from collections import defaultdict

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.patterns.build import schedule
from tests.patterns.catalogue import point
from tests.patterns.memory import with_memory


@pytest.mark.parametrize("ranks", [2, 3, 8, 9, 10, 26, 27, 28])
@pytest.mark.parametrize("ways", [1, 2, 3])
def test_n_way_dissemination_takes_log_rounds(ways, ranks):
    pattern = schedule(point("barrier", f"n-way:{ways}", ranks=ranks, bytes=0))
    assert len(pattern.steps) == next(r for r in range(1, 99) if (ways + 1) ** r >= ranks)


def test_n_way_dissemination_has_as_many_ways_as_there_are_ranks():
    """More signals than others to send them to: all of them in one round, in memory for those only."""
    pattern, most = with_memory(lambda: schedule(point("barrier", "n-way:9999999", ranks=5, bytes=0)))
    wanted = schedule(point("barrier", "n-way:4", ranks=5, bytes=0))
    assert (pattern.src.tolist(), pattern.dst.tolist()) == (wanted.src.tolist(), wanted.dst.tolist())
    assert most < 1 << 20


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
        ("allreduce", "ring:100"): 2 * (ranks - 1) * size,
        ("allreduce", "reduce-bcast"): 2 * (ranks - 1) * size,
        ("bcast", "knomial:3"): (ranks - 1) * size,
        ("bcast", "binary"): (ranks - 1) * size,
        ("bcast", "split-binary"): (ranks - 1) * size,
        ("bcast", "scatter-allgather-ring"): sum(
            min(low, ranks - rank) * size / ranks for rank in range(1, ranks) if (low := rank & -rank)
        )
        + (ranks - 1) * size,
        ("scatter", "linear"): (ranks - 1) * size,
        ("scatter", "linear-sync"): (ranks - 1) * size,
        ("scatter", "windowed:3"): (ranks - 1) * size,
        ("gather", "linear-sync:100"): (ranks - 1) * size,
        ("gather", "windowed:3"): (ranks - 1) * size,
        ("reduce", "linear"): (ranks - 1) * size,
        ("reduce", "binomial"): (ranks - 1) * size,
        ("reduce", "binary"): (ranks - 1) * size,
        ("reduce", "in-order"): ranks * size,
        ("reduce-scatter", "ring"): (ranks - 1) * size,
        ("reduce-scatter", "pairwise"): (ranks - 1) * size,
        ("allgather", "bruck"): ranks * (ranks - 1) * size,
        ("allgather", "neighbor-exchange"): ranks * (ranks - 1) * size,
        ("alltoall", "linear"): ranks * (ranks - 1) * size,
        ("alltoall", "pairwise"): ranks * (ranks - 1) * size,
        ("alltoall", "bruck"): ranks * sum(bin(far).count("1") for far in range(ranks)) * size,
    }
    for (operation, choice), volume in total.items():
        sent = schedule(point(operation, choice, ranks=ranks, bytes=size)).bytes.sum()
        assert sent == pytest.approx(volume, rel=0.02 if "scatter-all" in choice else 0), (operation, choice)
    barrier = schedule(point("barrier", "dissemination", ranks=ranks, bytes=0))
    assert len(barrier.src) == rounds * ranks
    assert len(schedule(point("barrier", "linear", ranks=ranks, bytes=0)).src) == 2 * (ranks - 1)


@pytest.mark.parametrize("ranks", [2, 4, 8, 64])
def test_recursive_doubling_of_a_power_of_two(ranks):
    pattern = schedule(point("allreduce", "recursive-doubling", ranks=ranks, bytes=8))
    assert len(pattern.steps) == ranks.bit_length() - 1
    assert len(pattern.src) == ranks * (ranks.bit_length() - 1)


@pytest.mark.parametrize("ranks", [16, 64, 128])
def test_rabenseifner_sends_the_long_halves_to_the_near_ranks(ranks):
    """In blocks of 8 a half, a quarter and an eighth stay in the node; only the rest goes out of it, twice."""
    size = 1 << 20
    pattern = schedule(point("allreduce", "rabenseifner", ranks=ranks, bytes=size))
    outside = pattern.bytes[pattern.src // 8 != pattern.dst // 8].sum()
    assert outside == ranks * 2 * (size // 8 - size // ranks)


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


@pytest.mark.parametrize("spec", ["windowed", "windowed:0", "windowed:x"])
def test_a_window_must_be_given(spec):
    with pytest.raises(UserError):
        schedule(point("gather", spec, ranks=4))


@pytest.mark.parametrize("ranks", [9, 16])
def test_no_more_than_the_window_are_on_their_way(ranks):
    """A sender's block leaves in the step after that in which its token came; the token's sender had sent before."""
    pattern = schedule(point("gather", "windowed:3", ranks=ranks, bytes=10))
    blocks, tokens = pattern.dst == 0, pattern.dst != 0
    sent = dict(zip(pattern.src[blocks].tolist(), pattern.step[blocks].tolist(), strict=True))
    got = dict(
        zip(pattern.dst[tokens].tolist(), zip(pattern.src[tokens], pattern.step[tokens], strict=True), strict=True)
    )
    for rank, step in sent.items():
        if rank <= 3:
            assert rank not in got
        else:
            before, when = got[rank]
            assert before == rank - 3
            assert sent[int(before)] < when < step
