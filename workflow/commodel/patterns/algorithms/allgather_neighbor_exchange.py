"""Neighbour exchange: a rank exchanges with its two neighbours in turn the pair of blocks it got last. Works in pairs:
an odd number of ranks goes around the ring instead, as in Open MPI."""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.algorithms.allgather_ring import build as around_the_ring
from commodel.patterns.phases import phase, sequence
from commodel.patterns.repeated import Rounds
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    if ranks % 2:
        return around_the_ring(ranks, bytes, argument)
    rank = np.arange(ranks)
    swapped = phase(0, rank, rank ^ 1, bytes, lambda: rank * bytes)

    def to(number: np.ndarray, source: np.ndarray) -> np.ndarray:
        return (source + np.where((source + number) % 2, 1, -1)) % ranks  # even ranks turn back first, odd ones go on

    def held(number: np.ndarray, source: np.ndarray) -> np.ndarray:
        """The pair of ranks whose blocks came last: an even rank's pairs come from ever farther on, one side at a
        time."""
        side = np.where(source % 2, 1, -1)
        pair = source // 2 + np.where(number % 2, side * ((number + 1) // 2), -side * (number // 2))
        return pair % (ranks // 2)

    sizes = np.full(ranks // 2, 2 * bytes)
    exchanged = Rounds(
        ranks, ranks // 2 - 1, to, held, sizes, lambda number, source: 2 * bytes * held(number, source), turn=2
    )
    return sequence(ranks, swapped, exchanged)


ALGORITHM = Algorithm("allgather", "neighbor-exchange", "neighbours exchange the pair of blocks they got last", build)
