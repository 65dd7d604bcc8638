"""Reduce, then broadcast, both over the binomial tree."""

from commodel.algorithms import RANK_ORDER, Algorithm, open_mpi
from commodel.phases import sequence
from commodel.rounds import knomial, up, whole
from commodel.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    edges = knomial(ranks)
    return sequence(ranks, up(edges, bytes), whole(edges, bytes))


ALGORITHM = Algorithm(
    "allreduce",
    "reduce-bcast",
    "binomial reduce, then binomial broadcast",
    build,
    order=RANK_ORDER,
    like=(
        open_mpi("allreduce_intra_nonoverlapping", 0, "reduces and broadcasts with whatever Open MPI chooses for each"),
    ),
)
