"""Rabenseifner: reduce-scatter by recursive halving of the vector between partners at distance 1, 2, 4, …, then
allgather the same way back. Ranks beyond a power of two share the combining with a neighbour first, as in Open MPI."""

from commodel.patterns.algorithms import RANK_ORDER, Algorithm, mpich, open_mpi
from commodel.patterns.doubling import Core, halves
from commodel.patterns.phases import sequence
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    core = Core(ranks, odd=False, mirrored=True)
    ends = halves(bytes, core.rounds)
    return sequence(ranks, *core.fold_halves(bytes), core.halve(ends), core.double(ends), core.unfold(0, bytes))


LINEAR = "linear where the operation does not commute, or elements are fewer than the power of two that works"
FOLDS = "beyond a power of two the even ranks of the first pairs hand over whole vectors; even shares"

ALGORITHM = Algorithm(
    "allreduce",
    "rabenseifner",
    "recursive halving, then recursive doubling",
    build,
    order=RANK_ORDER,
    like=(
        open_mpi("allreduce_intra_redscat_allgather", 6, LINEAR),
        mpich("Allreduce_intra_reduce_scatter_allgather", FOLDS),
    ),
)
