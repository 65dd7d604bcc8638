"""Properties of all patterns of the catalogue, and closed forms of the messages of single
algorithms."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.patterns.algorithms import ANY_ORDER, RANK_ORDER, Algorithm, find_algorithm
from commodel.patterns.arguments import Kind
from commodel.patterns.build import build_schedule
from commodel.patterns.operations import find_operation
from commodel.patterns.phases import join_stages, make_phase
from commodel.patterns.points import PlatformResources, make_point
from commodel.patterns.schedule import KINDS
from tests.patterns.catalogue import (
    ALGORITHMS,
    ENTRIES,
    TREE_OPERATIONS,
    TREES,
    catalogue,
    point,
    with_memory,
)
from tests.patterns.dataflow import Replay, finishes_with_synchronous_sends
from tests.refusals import catch_error_message


@given(st.integers(2, 40), st.integers(0, 5000))
@settings(max_examples=40, deadline=None)
def test_messages_are_between_two_ranks_of_the_schedule(ranks, bytes):
    for entry in catalogue(ranks, bytes):
        pattern = build_schedule(entry)
        for column in (pattern.src, pattern.dst):
            assert column.min() >= 0
            assert column.max() < pattern.ranks
        assert np.all(pattern.src != pattern.dst)
        assert np.all(pattern.bytes >= 0)
        assert np.all(np.diff(pattern.step) >= 0)


@pytest.mark.parametrize(("operation", "choice"), ALGORITHMS)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_every_algorithm_delivers_exactly_the_data_of_the_operation(operation, choice, data):
    """Ranks send only data that they have, combine no operand twice, and end with the data of the
    operation, at any number of ranks."""
    ranks = data.draw(st.integers(2, 9 if operation == "alltoall" else 33), label="ranks")
    size = 0 if operation == "barrier" else data.draw(st.integers(0, 3 * ranks), label="bytes")
    Replay(
        build_schedule(point(operation, choice, ranks=ranks, bytes=size)), operation, size
    ).check()


SEGMENTED = sorted(
    (entry.operation, entry.short_name)
    for entry in ENTRIES.values()
    if isinstance(entry, Algorithm) and entry.argument and entry.argument.kind is Kind.SEGMENT
)


@pytest.mark.parametrize(("operation", "choice"), SEGMENTED)
@given(ranks=st.integers(2, 6), segment=st.integers(1, 7), size=st.integers(0, 80))
@settings(max_examples=15, deadline=None)
def test_segments_that_do_not_divide_the_data_carry_each_byte_once(
    operation, choice, ranks, segment, size
):
    pattern = build_schedule(point(operation, f"{choice}:{segment}", ranks=ranks, bytes=size))
    Replay(pattern, operation, size).check()


@pytest.mark.parametrize(
    ("operation", "choice"), [name for name in ALGORITHMS if find_operation(name[0]).reduces]
)
def test_a_reduction_combines_operands_in_the_stated_order(operation, choice):
    """If partial results always cover consecutive ranks, the order is RANK_ORDER; otherwise
    ANY_ORDER."""
    entry, _ = find_algorithm(operation, choice)
    orders = {
        Replay(
            build_schedule(point(operation, choice, ranks=ranks, bytes=40)), operation, 40
        ).in_order
        for ranks in range(2, 20)
    }
    assert entry.order == (RANK_ORDER if orders == {True} else ANY_ORDER)


def test_only_reductions_have_an_order():
    for entry in ENTRIES.values():
        assert bool(entry.order) == find_operation(entry.operation).reduces, entry.name


@pytest.mark.parametrize("ranks", [2, 3, 7, 8, 13])
def test_no_deadlock_where_sends_wait_for_their_receives(ranks):
    for entry in catalogue(ranks, 100):
        assert finishes_with_synchronous_sends(build_schedule(entry)), entry


@pytest.mark.parametrize("operation", TREE_OPERATIONS)
@pytest.mark.parametrize("spec", TREES)
def test_trees_carry_the_data(operation, spec):
    size = 0 if operation == "barrier" else 7
    pattern = build_schedule(point(operation, topology=spec, bytes=size))
    Replay(pattern, operation, size).check()
    assert len(pattern.src) == (pattern.ranks - 1) * (2 if operation == "barrier" else 1)


def find_informing_ranks(pattern):
    """Return the ranks whose information has reached each rank in the end, directly or not."""
    reached = [{rank} for rank in range(pattern.ranks)]
    for step in np.unique(pattern.step):
        before = [set(ranks) for ranks in reached]
        for row in np.flatnonzero(pattern.step == step):
            reached[pattern.dst[row]] |= before[pattern.src[row]]
    return reached


@pytest.mark.parametrize(
    "choice", [choice for operation, choice in ALGORITHMS if operation == "barrier"]
)
def test_no_rank_leaves_a_barrier_before_all_have_entered(choice):
    for ranks in (*range(2, 20), 31, 32, 33):
        heard_of = find_informing_ranks(
            build_schedule(point("barrier", choice, ranks=ranks, bytes=0))
        )
        assert all(known == set(range(ranks)) for known in heard_of), ranks


@pytest.mark.parametrize(
    ("operation", "spec"),
    [
        *(
            ("bcast", spec)
            for spec in ("lineer", "linear:4", "chain:x", "chain:-1", "binomial:0", "knomial:1")
        ),
        *(("gather", spec) for spec in ("windowed", "windowed:0", "windowed:x")),
    ],
)
def test_a_wrong_algorithm_is_refused_in_one_line(operation, spec):
    def use():
        entry, argument = find_algorithm(operation, spec)
        entry.build(4, 10, *entry.parse_argument(argument))

    catch_error_message(use)


def test_the_slow_replay_detects_a_missing_rank_and_missing_data():
    """A reduction omits one rank, and a rank sends data that it does not have."""
    complete = build_schedule(point("reduce", "linear", ranks=5, bytes=8))
    without_a_rank = join_stages(5, make_phase(0, np.arange(1, 4), 0, 8, combines=True), root=0)
    Replay(complete, "reduce", 8).check()
    with pytest.raises(AssertionError, match="only at"):
        Replay(without_a_rank, "reduce", 8).check()
    with pytest.raises(KeyError):
        Replay(join_stages(3, make_phase(0, 1, 2, 8)), "bcast", 8)


@pytest.mark.parametrize(
    ("operation", "spec", "own"),
    [
        ("bcast", "pipeline:4KiB", "chain:4KiB"),
        ("allreduce", "recursive_doubling", "recursive-doubling"),
        ("barrier", "tree", "binomial"),
    ],
)
def test_algorithm_names_of_mpi_libraries_are_translated(operation, spec, own):
    translated = make_point(
        PlatformResources.unlimited(),
        {"operation": operation, "algorithm": spec, "ranks": 4, "bytes": 8},
    )
    assert translated.algorithm == own
    assert translated == make_point(
        PlatformResources.unlimited(),
        {"operation": operation, "algorithm": own, "ranks": 4, "bytes": 8},
    )


@pytest.mark.parametrize("ranks", [2, 3, 8, 9, 10, 26, 27, 28])
@pytest.mark.parametrize("ways", [1, 2, 3])
def test_n_way_dissemination_takes_log_rounds(ways, ranks):
    pattern = build_schedule(point("barrier", f"n-way:{ways}", ranks=ranks, bytes=0))
    assert len(pattern.steps) == next(r for r in range(1, 99) if (ways + 1) ** r >= ranks)


def test_n_way_dissemination_has_as_many_ways_as_there_are_ranks():
    """With more ways than other ranks, all signals are sent in one round, and memory is used only
    for these."""
    pattern, most = with_memory(
        lambda: build_schedule(point("barrier", "n-way:9999999", ranks=5, bytes=0))
    )
    wanted = build_schedule(point("barrier", "n-way:4", ranks=5, bytes=0))
    assert (pattern.src.tolist(), pattern.dst.tolist()) == (
        wanted.src.tolist(),
        wanted.dst.tolist(),
    )
    assert most < 1 << 20


def volumes(ranks, size):
    """Return the total bytes sent by algorithms, by closed forms."""
    once, twice, every = (ranks - 1) * size, 2 * (ranks - 1) * size, ranks * (ranks - 1) * size
    hops = sum(far.bit_count() for far in range(ranks)) * size
    short = sum(
        min(low, ranks - rank) * size / ranks for rank in range(1, ranks) if (low := rank & -rank)
    )
    return {
        "bcast": dict.fromkeys(
            ("linear", "binomial", "binomial-near", "chain", "knomial:3", "binary", "split-binary"),
            once,
        )
        | {"scatter-allgather-ring": short + once},
        "gather": dict.fromkeys(("linear", "linear-sync:100", "windowed:3"), once)
        | {"binomial": hops},
        "scatter": dict.fromkeys(("linear", "linear-sync", "windowed:3"), once)
        | {"binomial": hops},
        "reduce": dict.fromkeys(("linear", "binomial", "binary"), once)
        | {"in-order": ranks * size},
        "allreduce": dict.fromkeys(("ring", "ring:100", "reduce-bcast"), twice),
        "reduce-scatter": dict.fromkeys(("ring", "pairwise"), once),
        "allgather": dict.fromkeys(("ring", "bruck", "neighbor-exchange"), every),
        "alltoall": dict.fromkeys(("linear", "pairwise"), every) | {"bruck": ranks * hops},
    }


@pytest.mark.parametrize("ranks", [2, 3, 7, 8, 12, 16, 21])
def test_sent_bytes_equal_the_closed_forms(ranks):
    for operation, volume in volumes(ranks, 1000).items():
        for choice, wanted in volume.items():
            sent = build_schedule(point(operation, choice, ranks=ranks, bytes=1000)).bytes.sum()
            assert sent == pytest.approx(wanted, rel=0.02 if "scatter-all" in choice else 0), (
                operation,
                choice,
            )
    barriers = {"dissemination": (ranks - 1).bit_length() * ranks, "linear": 2 * (ranks - 1)}
    for choice, messages in barriers.items():
        pattern = build_schedule(point("barrier", choice, ranks=ranks, bytes=0))
        assert (len(pattern.src), pattern.bytes.sum()) == (messages, 0)


@pytest.mark.parametrize("ranks", [2, 4, 8, 64])
def test_recursive_doubling_of_a_power_of_two(ranks):
    pattern = build_schedule(point("allreduce", "recursive-doubling", ranks=ranks, bytes=8))
    assert len(pattern.steps) == ranks.bit_length() - 1
    assert len(pattern.src) == ranks * (ranks.bit_length() - 1)


@pytest.mark.parametrize("ranks", [16, 64, 128])
def test_rabenseifner_sends_the_long_halves_to_the_near_ranks(ranks):
    """With 8 ranks a node, a half, a quarter and an eighth of the vector stay within the node. Only
    the remaining exchanges, in both phases, leave the node."""
    size = 1 << 20
    pattern = build_schedule(point("allreduce", "rabenseifner", ranks=ranks, bytes=size))
    outside = pattern.bytes[pattern.src // 8 != pattern.dst // 8].sum()
    assert outside == ranks * 2 * (size // 8 - size // ranks)


def test_binomial_trees_send_to_the_farthest_or_the_nearest_rank_first():
    far = build_schedule(point("bcast", "binomial", ranks=8))
    near = build_schedule(point("bcast", "binomial-near", ranks=8))
    assert far.dst[far.src == 0].tolist() == [4, 2, 1]
    assert near.dst[near.src == 0].tolist() == [1, 2, 4]


def test_chain_is_cut_into_segments_that_follow_each_other():
    pattern = build_schedule(point("bcast", "chain:100", ranks=4, bytes=250))
    sizes = defaultdict(list)
    for src, size in zip(pattern.src, pattern.bytes, strict=True):
        sizes[int(src)].append(int(size))
    assert sizes == {0: [100, 100, 50], 1: [100, 100, 50], 2: [100, 100, 50]}
    assert pattern.step.max() == (4 - 2) + (3 - 1)


@pytest.mark.parametrize("ranks", [2, 3, 8, 11])
def test_segments_go_down_the_binomial_tree_one_after_the_other(ranks):
    whole = build_schedule(point("bcast", "binomial", ranks=ranks, bytes=250))
    pattern = build_schedule(point("bcast", "binomial:100", ranks=ranks, bytes=250))
    rounds = whole.step.max() + 1
    for number, size in enumerate([100, 100, 50]):
        rows = pattern.step // rounds == number
        assert pattern.bytes[rows].tolist() == [size] * (ranks - 1)
        for column in ("src", "dst"):
            np.testing.assert_array_equal(getattr(pattern, column)[rows], getattr(whole, column))
        np.testing.assert_array_equal(pattern.step[rows] - number * rounds, whole.step)


@pytest.mark.parametrize("ranks", [9, 16])
def test_a_windowed_gather_has_at_most_the_window_of_blocks_in_flight(ranks):
    """A sender sends its block in a step after it received its token. The rank that sent the token
    had sent its block before."""
    pattern = build_schedule(point("gather", "windowed:3", ranks=ranks, bytes=10))
    blocks, tokens = pattern.dst == 0, pattern.dst != 0
    sent = dict(zip(pattern.src[blocks].tolist(), pattern.step[blocks].tolist(), strict=True))
    got = dict(
        zip(
            pattern.dst[tokens].tolist(),
            zip(pattern.src[tokens], pattern.step[tokens], strict=True),
            strict=True,
        )
    )
    for rank, step in sent.items():
        if rank <= 3:
            assert rank not in got
        else:
            before, when = got[rank]
            assert before == rank - 3
            assert sent[int(before)] < when < step


BRUCK = {("alltoall", "bruck"), ("allgather", "bruck")}


def count_copied_bytes(pattern):
    """Return the bytes that each rank copies."""
    rows = pattern.work.kind == KINDS.index("copy")
    return np.bincount(pattern.work.rank[rows], pattern.work.bytes[rows], minlength=pattern.ranks)


def count_noncontiguous_bytes(pattern):
    """Return the bytes that each rank sends in messages of non-contiguous data."""
    sent = np.zeros(pattern.ranks)
    runs = pattern.contents()
    order = np.lexsort((runs.first, runs.row))
    row, first, end = (column[order] for column in (runs.row, runs.first, runs.first + runs.length))
    apart = (row[1:] == row[:-1]) & (first[1:] != end[:-1])
    for row_number in np.unique(row[1:][apart]):
        sent[pattern.src[row_number]] += pattern.bytes[row_number]
    return sent


@pytest.mark.parametrize(("operation", "choice"), ALGORITHMS)
@pytest.mark.parametrize("ranks", [8, 13])
def test_a_rank_copies_at_least_the_noncontiguous_bytes_of_sent_messages(operation, choice, ranks):
    pattern = build_schedule(
        point(operation, choice, ranks=ranks, bytes=0 if operation == "barrier" else 24 * ranks)
    )
    pieces = count_noncontiguous_bytes(pattern)
    assert np.all(count_copied_bytes(pattern) >= pieces)
    assert pieces.any() or (operation, choice) not in BRUCK
