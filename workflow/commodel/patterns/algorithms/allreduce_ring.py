"""Ring: P − 1 steps of reduce-scatter, then P − 1 of allgather, one P-th of the vector at a time. With a segment size
each such share is cut into equal parts of about that size, and the reduce-scatter goes round once for every part, as in
Open MPI's segmented ring."""

from commodel.patterns.algorithms import ANY_ORDER, Algorithm
from commodel.patterns.phases import segment_size, sequence
from commodel.patterns.rounds import ring, shares
from commodel.patterns.schedule import Schedule, check_rows

ROUNDS_WRITTEN = 1000  # times round, beyond which a schedule is not only described


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    ends = shares(bytes, ranks)
    parts = _parts(ranks, bytes, argument) if argument else 1
    rounds = [ring(ends, combines=True, part=part, parts=parts) for part in range(parts)]
    return sequence(ranks, *rounds, ring(ends, ahead=1))


def _parts(ranks: int, bytes: int, argument: str) -> int:
    """As many as a share has whole segments; one more where more than half a segment of every share is left."""
    once = ranks * segment_size(argument)
    left = bytes % once
    parts = bytes // once + (left >= ranks and left > once // 2)
    if parts > ROUNDS_WRITTEN:
        check_rows(parts * ranks * (ranks - 1))
    return parts if bytes >= once else 1


ALGORITHM = Algorithm(
    "allreduce",
    "ring",
    "reduce-scatter, then allgather, around the ring",
    build,
    argument="[SEGMENT BYTES]",
    order=ANY_ORDER,
)
