"""Neighbour exchange: a rank exchanges with its two neighbours in turn the pair of blocks it got last. Works in pairs:
an odd number of ranks goes around the ring instead, as in Open MPI."""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.algorithms.allgather_ring import build as around_the_ring
from commodel.patterns.phases import every_step, phase, sequence
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    if ranks % 2:
        return around_the_ring(ranks, bytes, argument)
    rank = np.arange(ranks)
    swapped = phase(0, rank, rank ^ 1, bytes, lambda: rank * bytes)
    step, source = every_step(ranks // 2 - 1, ranks)
    away = np.where((source + step) % 2, 1, -1)  # even ranks turn back first, odd ones go on
    # The pair of ranks whose blocks came last: an even rank's pairs come from ever farther on, one side at a time.
    side = np.where(source % 2, 1, -1)
    pair = (source // 2 + np.where(step % 2, side * ((step + 1) // 2), -side * (step // 2))) % (ranks // 2)
    held = phase(step, source, (source + away) % ranks, 2 * bytes, lambda: 2 * pair * bytes)
    return sequence(ranks, swapped, held)


ALGORITHM = Algorithm("allgather", "neighbor-exchange", "neighbours exchange the pair of blocks they got last", build)
