"""Recursive doubling: partners at distance 1, 2, 4, … exchange whole vectors. Ranks beyond a power of two hand their
vector to a neighbour first and get the result from it at the end, as MPICH does."""

import numpy as np

from commodel.algorithms import Algorithm
from commodel.schedule import Schedule, Work


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    rounds = ranks.bit_length() - 1
    extra = ranks - (1 << rounds)  # the first 2·extra ranks form pairs; the odd one of each takes part
    even = np.arange(0, 2 * extra, 2)
    core = np.concatenate([even + 1, np.arange(2 * extra, ranks)])
    place = np.arange(len(core))
    steps, sources, targets = [np.zeros(extra, dtype=int)], [even], [even + 1]
    for bit in range(rounds):
        steps.append(np.full(len(core), bit + 1))
        sources.append(core)
        targets.append(core[place ^ (1 << bit)])
    reducing_step, reducing_rank = np.concatenate(steps), np.concatenate(targets)
    steps.append(np.full(extra, rounds + 1))
    sources.append(even + 1)
    targets.append(even)
    work = Work.reduce(reducing_step, reducing_rank, bytes)
    return Schedule.of(ranks, np.concatenate(steps), np.concatenate(sources), np.concatenate(targets), bytes, work=work)


ALGORITHM = Algorithm("allreduce", "recursive-doubling", "partners at distance 1, 2, 4, … exchange vectors", build)
