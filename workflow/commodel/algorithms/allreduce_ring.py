"""Ring: P-1 steps of reduce-scatter, then P-1 of allgather, one P-th of the vector at a time."""

import numpy as np

from commodel.algorithms import Algorithm
from commodel.schedule import Schedule, Work
from commodel.segments import share


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    step, source = np.divmod(np.arange(2 * (ranks - 1) * ranks), ranks)
    target = (source + 1) % ranks
    sizes = share(bytes, ranks)[(source - step) % ranks]  # rank r sends chunk r - step
    reducing = step < ranks - 1
    work = Work.reduce(step[reducing], target[reducing], sizes[reducing])
    return Schedule.of(ranks, step, source, target, sizes, work=work)


ALGORITHM = Algorithm("allreduce", "ring", "reduce-scatter, then allgather, around the ring", build)
