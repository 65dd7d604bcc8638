"""Dissemination barrier: in round s every rank signals the rank 2^s further on, around the ring."""

import numpy as np

from commodel.patterns.algorithms import Algorithm, mpich, open_mpi
from commodel.patterns.phases import phase, sequence
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    step, source = np.divmod(np.arange((ranks - 1).bit_length() * ranks), ranks)
    return sequence(ranks, phase(step, source, (source + (1 << step)) % ranks, 0))


ALGORITHM = Algorithm(
    "barrier",
    "dissemination",
    "round s: signal the rank 2^s further on",
    build,
    like=(
        open_mpi("barrier_intra_bruck", 4),
        mpich("Barrier_intra_dissemination", "since 4.1 k_dissemination with K = 2"),
    ),
)
