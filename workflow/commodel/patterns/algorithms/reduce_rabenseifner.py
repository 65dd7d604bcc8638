"""Rabenseifner: reduce-scatter by recursive halving of the vector between partners at distance 1, 2, 4, …, then gather
the same way back. Ranks beyond a power of two share the combining with a neighbour first, as in Open MPI."""

from commodel.patterns.algorithms import RANK_ORDER, Algorithm, mpich, open_mpi
from commodel.patterns.doubling import Core, halves
from commodel.patterns.phases import sequence
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    core = Core(ranks, odd=False, mirrored=True)
    ends = halves(bytes, core.rounds)
    return sequence(ranks, *core.fold_halves(bytes), core.halve(ends), core.collect(ends), root=0)


LINEAR = "linear where the operation does not commute, or elements are fewer than the power of two that works"
FOLDS = "beyond a power of two the odd ranks of the first pairs hand over whole vectors; even shares"

ALGORITHM = Algorithm(
    "reduce",
    "rabenseifner",
    "recursive halving, then binomial gather",
    build,
    order=RANK_ORDER,
    like=(open_mpi("reduce_intra_redscat_gather", 7, LINEAR), mpich("Reduce_intra_reduce_scatter_gather", FOLDS)),
)
