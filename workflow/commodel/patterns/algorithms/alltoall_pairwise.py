"""Pairwise: in step i every rank sends to the rank i further on and receives from the rank i before."""

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import every_step, phase, sequence
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    step, source = every_step(ranks - 1, ranks)
    target = (source + step + 1) % ranks
    return sequence(ranks, phase(step, source, target, bytes, lambda: (source * ranks + target) * bytes))


ALGORITHM = Algorithm("alltoall", "pairwise", "step i: to the rank i further on", build)
