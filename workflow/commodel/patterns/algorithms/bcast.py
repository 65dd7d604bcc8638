"""Broadcasts from rank 0: over trees and chains, with or without segments, and as a scatter with an
allgather."""

import numpy as np

from commodel.patterns.algorithms import Algorithm, TreeAlgorithm
from commodel.patterns.arguments import (
    SEGMENT,
    SEGMENT_OR_DEFAULT,
    UNSEGMENTED,
    Kind,
    count_argument,
)
from commodel.patterns.phases import (
    Edges,
    broadcast_unsplit,
    cut_phase,
    join_stages,
    make_binary_tree,
    make_doubling_allgather,
    make_knomial_tree,
    make_near_first_tree,
    make_phase,
    make_ring_rounds,
    make_scatter_tree,
    send_down_tree,
    split_evenly,
    split_rounding_up,
)
from commodel.patterns.schedule import Schedule
from commodel.patterns.trees.tree import Tree


def binary(ranks: int, bytes: int, segment: int) -> Schedule:
    """Return the broadcast in segments down a tree in which every rank has two children."""
    return join_stages(
        ranks, cut_phase(broadcast_unsplit(make_binary_tree(ranks), bytes), bytes, segment)
    )


def binomial(ranks: int, bytes: int, segment: int | None) -> Schedule:
    """Return the broadcast down a binomial tree, farthest rank first: the root sends to P/2, then
    P/4, …. MPICH does so, and Open MPI's k-nomial tree of radix 2."""
    return _send_segments_down(make_knomial_tree(ranks), ranks, bytes, segment)


def binomial_near(ranks: int, bytes: int, segment: int | None) -> Schedule:
    """Return the broadcast down a binomial tree, nearest rank first, as in Open MPI: in round s
    every rank below 2^s sends to the rank 2^s further on."""
    return _send_segments_down(make_near_first_tree(ranks), ranks, bytes, segment)


def _send_segments_down(edges: Edges, ranks: int, bytes: int, segment: int | None) -> Schedule:
    """Return the broadcast of segments one after the other, each down the whole tree."""
    phase = broadcast_unsplit(edges, bytes)
    return join_stages(ranks, cut_phase(phase, bytes, segment, stride=phase.steps))


def chain(ranks: int, bytes: int, segment: int) -> Schedule:
    """Return the broadcast in segments along a chain of ranks. Open MPI calls it pipeline; its
    algorithm `chain` uses several chains at once."""
    hop = np.arange(ranks - 1)
    return join_stages(ranks, cut_phase(make_phase(hop, hop, hop + 1, bytes), bytes, segment))


def knomial(ranks: int, bytes: int, radix: int) -> Schedule:
    """Return the broadcast down a k-nomial tree, farthest rank first: in a round every rank that
    has the message sends it to K − 1 others."""
    return join_stages(ranks, broadcast_unsplit(make_knomial_tree(ranks, radix), bytes))


def linear(ranks: int, bytes: int) -> Schedule:
    """Return the linear broadcast: the root sends the whole message to every rank in turn."""
    return join_stages(ranks, make_phase(0, 0, np.arange(1, ranks), bytes))


def scatter_allgather(ranks: int, bytes: int) -> Schedule:
    """Return van de Geijn's broadcast of long messages: a binomial scatter and an allgather by
    recursive doubling.

    Block sizes are rounded up, so the last blocks are shorter or empty.
    """
    ends = split_rounding_up(bytes, ranks)
    return join_stages(ranks, make_scatter_tree(ends), make_doubling_allgather(ends))


def scatter_allgather_ring(ranks: int, bytes: int) -> Schedule:
    """Return the broadcast as a binomial scatter and an allgather around the ring."""
    ends = split_rounding_up(bytes, ranks)
    return join_stages(ranks, make_scatter_tree(ends), make_ring_rounds(ends))


def split_binary(ranks: int, bytes: int, segment: int) -> Schedule:
    """Return the broadcast of one half of the message down each subtree of the root of a binary
    tree, in segments.

    Then ranks of the two subtrees exchange halves in pairs; a rank without a partner gets its other
    half from the root. As in Open MPI, a message whose half is shorter than a segment uses the
    chain instead.
    """
    _, middle, end = (int(offset) for offset in split_evenly(bytes, 2))
    if end - middle < (segment if segment < UNSEGMENTED else 1):
        return chain(ranks, bytes, segment)
    edges = make_binary_tree(ranks)
    in_left_subtree = edges.dst % 2 == 1  # rank 1 and its descendants
    down = tuple(
        cut_phase(broadcast_unsplit(edges.select(subtree), size), size, segment, start=start)
        for subtree, start, size in (
            (in_left_subtree, 0, middle),
            (~in_left_subtree, middle, end - middle),
        )
    )
    first = np.arange(1, ranks, 2)
    partner = np.where(first + 1 < ranks, first + 1, 0)
    exchange = (
        make_phase(0, first[partner > 0], partner[partner > 0], middle),
        make_phase(0, partner, first, end - middle, middle),
    )
    return join_stages(ranks, down, exchange)


def over_topology(tree: Tree, bytes: int) -> Schedule:
    return join_stages(tree.nodes, send_down_tree(tree, bytes))


OPEN_MPI_RADIX = count_argument("K", Kind.RADIX, least=2, default=4)

ALGORITHM = (
    Algorithm(
        operation="bcast",
        short_name="binary",
        title="segments follow each other down a binary tree",
        build=binary,
        argument=SEGMENT_OR_DEFAULT,
    ),
    Algorithm(
        operation="bcast",
        short_name="binomial",
        title="binomial tree, farthest rank first",
        build=binomial,
        argument=SEGMENT,
    ),
    Algorithm(
        operation="bcast",
        short_name="binomial-near",
        title="binomial tree, nearest rank first",
        build=binomial_near,
        argument=SEGMENT,
    ),
    Algorithm(
        operation="bcast",
        short_name="chain",
        title="segments follow each other along a chain of ranks",
        build=chain,
        argument=SEGMENT_OR_DEFAULT,
    ),
    Algorithm(
        operation="bcast",
        short_name="knomial",
        title="k-nomial tree: K − 1 messages a round",
        build=knomial,
        argument=OPEN_MPI_RADIX,
    ),
    Algorithm(
        operation="bcast",
        short_name="linear",
        title="root sends to one rank after the other",
        build=linear,
    ),
    Algorithm(
        operation="bcast",
        short_name="scatter-allgather",
        title="binomial scatter, then allgather by recursive doubling",
        build=scatter_allgather,
    ),
    Algorithm(
        operation="bcast",
        short_name="scatter-allgather-ring",
        title="binomial scatter, then allgather around the ring",
        build=scatter_allgather_ring,
    ),
    Algorithm(
        operation="bcast",
        short_name="split-binary",
        title="one half down each subtree of a binary tree, then halves are exchanged",
        build=split_binary,
        argument=SEGMENT_OR_DEFAULT,
    ),
    TreeAlgorithm(
        operation="bcast", title="every node sends to its children in turn", build=over_topology
    ),
)
