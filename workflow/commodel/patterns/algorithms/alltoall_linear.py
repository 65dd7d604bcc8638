"""Everyone sends to everyone at once, each beginning with the rank before its own."""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import phase, sequence
from commodel.patterns.schedule import Schedule, check_rows


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    check_rows(ranks * (ranks - 1))
    source, turn = np.divmod(np.arange(ranks * (ranks - 1)), ranks - 1)
    target = (source - turn - 1) % ranks
    return sequence(ranks, phase(0, source, target, bytes, lambda: (source * ranks + target) * bytes))


ALGORITHM = Algorithm("alltoall", "linear", "everyone sends to everyone at once", build)
