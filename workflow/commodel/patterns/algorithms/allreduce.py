"""Allreduces: Rabenseifner, recursive doubling, reduce and broadcast, and ring, as MPICH and Open MPI have them."""

from commodel.patterns.algorithms import ANY_ORDER, RANK_ORDER, Algorithm
from commodel.patterns.arguments import SEGMENT
from commodel.patterns.phases import Core, halves, knomial, ring, sequence, shares, up, whole
from commodel.patterns.schedule import Schedule, check_rows

ROUNDS_WRITTEN = 1000  # times round, beyond which a schedule is not only described


def rabenseifner(ranks: int, bytes: int) -> Schedule:
    """Reduce-scatter by recursive halving of the vector between partners at distance 1, 2, 4, …, then allgather the
    same way back. Ranks beyond a power of two share the combining with a neighbour first, as in Open MPI."""
    core = Core(ranks, odd=False, mirrored=True)
    ends = halves(bytes, core.rounds)
    return sequence(ranks, *core.fold_halves(bytes), core.halve(ends), core.double(ends), core.unfold(0, bytes))


def recursive_doubling(ranks: int, bytes: int) -> Schedule:
    """Partners at distance 1, 2, 4, … exchange whole vectors. Ranks beyond a power of two hand their vector to a
    neighbour first and get the result from it at the end."""
    core = Core(ranks)
    return sequence(ranks, core.fold(bytes), core.exchange(bytes), core.unfold(0, bytes))


def reduce_bcast(ranks: int, bytes: int) -> Schedule:
    """Reduce, then broadcast, both over the binomial tree."""
    edges = knomial(ranks)
    return sequence(ranks, up(edges, bytes), whole(edges, bytes))


def around_the_ring(ranks: int, bytes: int, segment: int | None) -> Schedule:
    """P − 1 steps of reduce-scatter, then P − 1 of allgather, one P-th of the vector at a time. With a segment size
    each such share is cut into equal parts of about that size, and the reduce-scatter goes round once for every part,
    as in Open MPI's segmented ring."""
    ends = shares(bytes, ranks)
    parts = _parts(ranks, bytes, segment) if segment else 1
    rounds = [ring(ends, combines=True, part=part, parts=parts) for part in range(parts)]
    return sequence(ranks, *rounds, ring(ends, ahead=1))


def _parts(ranks: int, bytes: int, segment: int) -> int:
    """As many as a share has whole segments; one more where more than half a segment of every share is left."""
    once = ranks * segment
    left = bytes % once
    parts = bytes // once + (left >= ranks and left > once // 2)
    if parts > ROUNDS_WRITTEN:
        check_rows(parts * ranks * (ranks - 1))
    return parts if bytes >= once else 1


ALGORITHM = (
    Algorithm(
        "allreduce", "rabenseifner", "recursive halving, then recursive doubling", rabenseifner, order=RANK_ORDER
    ),
    Algorithm(
        "allreduce",
        "recursive-doubling",
        "partners at distance 1, 2, 4, … exchange vectors",
        recursive_doubling,
        order=RANK_ORDER,
    ),
    Algorithm("allreduce", "reduce-bcast", "binomial reduce, then binomial broadcast", reduce_bcast, order=RANK_ORDER),
    Algorithm(
        "allreduce", "ring", "reduce-scatter, then allgather, around the ring", around_the_ring, SEGMENT, ANY_ORDER
    ),
)
