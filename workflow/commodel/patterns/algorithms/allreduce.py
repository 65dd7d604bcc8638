"""Allreduces: Rabenseifner, recursive doubling, reduce and broadcast, and ring, as in MPICH and
Open MPI."""

from commodel.patterns.algorithms import ANY_ORDER, RANK_ORDER, Algorithm
from commodel.patterns.arguments import SEGMENT
from commodel.patterns.phases import (
    PowerOfTwoCore,
    broadcast_unsplit,
    halve_blocks,
    join_stages,
    make_knomial_tree,
    make_ring_rounds,
    reduce_unsplit,
    split_evenly,
)
from commodel.patterns.schedule import Schedule, check_rows

MAX_UNCHECKED_PARTS = 1000  # above it, the number of messages is checked


def rabenseifner(ranks: int, bytes: int) -> Schedule:
    """Return Rabenseifner's allreduce: reduce-scatter by recursive halving between partners at
    distance 1, 2, 4, …, then allgather in the opposite order.

    Ranks beyond a power of two first share the reduction with a neighbour, as in Open MPI.
    """
    core = PowerOfTwoCore(ranks, second_of_pair=False, bits_reversed=True)
    ends = halve_blocks(bytes, core.rounds)
    return join_stages(
        ranks, *core.fold_halves(bytes), core.halve(ends), core.double(ends), core.unfold(0, bytes)
    )


def recursive_doubling(ranks: int, bytes: int) -> Schedule:
    """Return recursive doubling: partners at distance 1, 2, 4, … exchange whole vectors.

    Ranks beyond a power of two first send their vector to a neighbour and get the result from it at
    the end.
    """
    core = PowerOfTwoCore(ranks)
    return join_stages(ranks, core.fold(bytes), core.exchange(bytes), core.unfold(0, bytes))


def reduce_bcast(ranks: int, bytes: int) -> Schedule:
    """Return a reduction followed by a broadcast, both over the binomial tree."""
    edges = make_knomial_tree(ranks)
    return join_stages(ranks, reduce_unsplit(edges, bytes), broadcast_unsplit(edges, bytes))


def around_the_ring(ranks: int, bytes: int, segment: int | None) -> Schedule:
    """Return the ring: P − 1 steps of reduce-scatter, then P − 1 of allgather, one P-th of the
    vector at a time.

    With a segment size, each share is cut into equal parts of about that size. Each part has its
    own reduce-scatter, as in Open MPI's segmented ring.
    """
    ends = split_evenly(bytes, ranks)
    parts = _parts(ranks, bytes, segment) if segment else 1
    rounds = [
        make_ring_rounds(ends, combines=True, part=part, parts=parts) for part in range(parts)
    ]
    return join_stages(ranks, *rounds, make_ring_rounds(ends, offset=1))


def _parts(ranks: int, bytes: int, segment: int) -> int:
    """Return the number of parts of a share: its complete segments, plus one if more than half a
    segment remains."""
    round_bytes = ranks * segment
    remainder = bytes % round_bytes
    parts = bytes // round_bytes + (remainder >= ranks and remainder > round_bytes // 2)
    if parts > MAX_UNCHECKED_PARTS:
        check_rows(parts * ranks * (ranks - 1))
    return parts if bytes >= round_bytes else 1


ALGORITHM = (
    Algorithm(
        operation="allreduce",
        short_name="rabenseifner",
        title="recursive halving, then recursive doubling",
        build=rabenseifner,
        order=RANK_ORDER,
    ),
    Algorithm(
        operation="allreduce",
        short_name="recursive-doubling",
        title="partners at distance 1, 2, 4, … exchange vectors",
        build=recursive_doubling,
        order=RANK_ORDER,
    ),
    Algorithm(
        operation="allreduce",
        short_name="reduce-bcast",
        title="binomial reduce, then binomial broadcast",
        build=reduce_bcast,
        order=RANK_ORDER,
    ),
    Algorithm(
        operation="allreduce",
        short_name="ring",
        title="reduce-scatter, then allgather, around the ring",
        build=around_the_ring,
        argument=SEGMENT,
        order=ANY_ORDER,
    ),
)
