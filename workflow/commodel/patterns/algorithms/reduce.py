"""Reductions to rank 0 and reduce-scatters: over trees and chains, with or without segments, by
halving, pairwise."""

import numpy as np

from commodel.patterns.algorithms import ANY_ORDER, RANK_ORDER, Algorithm, TreeAlgorithm
from commodel.patterns.arguments import SEGMENT_OR_DEFAULT
from commodel.patterns.phases import (
    PowerOfTwoCore,
    cut_phase,
    halve_blocks,
    join_stages,
    make_binary_tree,
    make_in_order_tree,
    make_knomial_tree,
    make_pairwise_rounds,
    make_phase,
    make_ring_rounds,
    reduce_unsplit,
    send_up_tree,
    split_evenly,
)
from commodel.patterns.schedule import Schedule
from commodel.patterns.trees.tree import Tree


def binary(ranks: int, bytes: int, segment: int) -> Schedule:
    """Return the reduction in segments up a tree in which every rank has two children."""
    return join_stages(
        ranks, cut_phase(reduce_unsplit(make_binary_tree(ranks), bytes), bytes, segment), root=0
    )


def binomial(ranks: int, bytes: int) -> Schedule:
    """Return the reduction up the binomial tree, nearest rank first, so that partial results cover
    consecutive ranks."""
    return join_stages(ranks, reduce_unsplit(make_knomial_tree(ranks), bytes), root=0)


def chain(ranks: int, bytes: int, segment: int) -> Schedule:
    """Return the reduction in segments along a chain of ranks. Open MPI calls it pipeline; its
    chain has several such chains."""
    hop = np.arange(ranks - 1)
    along_chain = make_phase(hop, ranks - 1 - hop, ranks - 2 - hop, bytes, combines=True)
    return join_stages(ranks, cut_phase(along_chain, bytes, segment), root=0)


def in_order(ranks: int, bytes: int, segment: int) -> Schedule:
    """Return the pipelined reduction over the in-order binary tree, which combines in the order of
    the ranks.

    The last rank gets the result and sends it to the root.
    """
    segments = cut_phase(reduce_unsplit(make_in_order_tree(ranks), bytes), bytes, segment)
    return join_stages(ranks, segments, make_phase(0, ranks - 1, 0, bytes), root=0)


def linear(ranks: int, bytes: int) -> Schedule:
    return join_stages(ranks, make_phase(0, np.arange(1, ranks), 0, bytes, combines=True), root=0)


def rabenseifner(ranks: int, bytes: int) -> Schedule:
    """Return Rabenseifner's reduction: reduce-scatter by recursive halving between partners at
    distance 1, 2, 4, …, then gather in the opposite order.

    Ranks beyond a power of two first share the reduction with a neighbour, as in Open MPI.
    """
    core = PowerOfTwoCore(ranks, second_of_pair=False, bits_reversed=True)
    ends = halve_blocks(bytes, core.rounds)
    return join_stages(
        ranks, *core.fold_halves(bytes), core.halve(ends), core.collect(ends), root=0
    )


def over_topology(tree: Tree, bytes: int) -> Schedule:
    return join_stages(tree.nodes, send_up_tree(tree, bytes, combines=True), root=0)


def pairwise(ranks: int, bytes: int) -> Schedule:
    """Return the reduce-scatter in which, in step i, rank r sends to rank r + i the block that rank
    r + i reduces."""
    ends = split_evenly(bytes, ranks)
    return join_stages(
        ranks,
        make_pairwise_rounds(np.diff(ends), lambda source, target: ends[target], combines=True),
    )


def recursive_halving(ranks: int, bytes: int) -> Schedule:
    """Return the reduce-scatter in which partners at distance P/2, P/4, … exchange the half that
    the other one reduces.

    Ranks beyond a power of two first send their vector to a neighbour and get their block of the
    result at the end.
    """
    core = PowerOfTwoCore(ranks)
    ends = split_evenly(bytes, ranks)
    outer = core.outer
    results_of_outer = core.unfold(ends[outer], ends[outer + 1] - ends[outer])
    return join_stages(
        ranks, core.fold(bytes), core.halve(core.merge_blocks(ends)), results_of_outer
    )


def around_the_ring(ranks: int, bytes: int) -> Schedule:
    """Return the reduce-scatter in which, in each of P − 1 steps, every rank combines one block and
    sends it to the next rank."""
    return join_stages(
        ranks, make_ring_rounds(split_evenly(bytes, ranks), offset=-1, combines=True)
    )


ALGORITHM = (
    Algorithm(
        operation="reduce",
        short_name="binary",
        title="segments follow each other up a binary tree",
        build=binary,
        argument=SEGMENT_OR_DEFAULT,
        order=ANY_ORDER,
    ),
    Algorithm(
        operation="reduce",
        short_name="binomial",
        title="binomial tree, nearest rank first",
        build=binomial,
        order=RANK_ORDER,
    ),
    Algorithm(
        operation="reduce",
        short_name="chain",
        title="segments follow each other along a chain of ranks",
        build=chain,
        argument=SEGMENT_OR_DEFAULT,
        order=RANK_ORDER,
    ),
    Algorithm(
        operation="reduce",
        short_name="in-order",
        title="segments up a binary tree that keeps the order",
        build=in_order,
        argument=SEGMENT_OR_DEFAULT,
        order=RANK_ORDER,
    ),
    Algorithm(
        operation="reduce",
        short_name="linear",
        title="every rank sends to the root at once",
        build=linear,
        order=RANK_ORDER,
    ),
    Algorithm(
        operation="reduce",
        short_name="rabenseifner",
        title="recursive halving, then binomial gather",
        build=rabenseifner,
        order=RANK_ORDER,
    ),
    TreeAlgorithm(
        operation="reduce",
        title="every node waits for its children, combines, sends to its parent",
        build=over_topology,
        order=ANY_ORDER,
    ),
    Algorithm(
        operation="reduce-scatter",
        short_name="pairwise",
        title="step i: rank r sends to rank r + i",
        build=pairwise,
        order=ANY_ORDER,
    ),
    Algorithm(
        operation="reduce-scatter",
        short_name="recursive-halving",
        title="partners exchange halves of the remaining data",
        build=recursive_halving,
        order=ANY_ORDER,
    ),
    Algorithm(
        operation="reduce-scatter",
        short_name="ring",
        title="blocks are combined around the ring",
        build=around_the_ring,
        order=ANY_ORDER,
    ),
)
