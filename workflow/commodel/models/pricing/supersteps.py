"""What a step costs where all ranks leave it together."""

import numpy as np

from commodel.models import Array
from commodel.patterns.schedule import Schedule
from commodel.patterns.steps import Groups


def longest_work(schedule: Schedule, seconds: Array, times: np.ndarray) -> Array:
    """The largest local work of a rank in each step, summed over the steps, where every row of work takes `seconds`
    (last axis) and each step occurs so many times."""
    total = np.zeros(seconds.shape[:-1])
    for step, occurs in zip(schedule.steps, times, strict=True):
        if step.work.stop > step.work.start:
            groups, work = Groups(schedule.work.rank[step.work]), seconds[..., step.work]
            if groups.order is not None:
                work = np.add.reduceat(work[..., groups.order], groups.first, axis=-1)
            total = total + occurs * work.max(axis=-1)
    return total


def most_rows(groups: Groups) -> int:
    """Messages of the rank that has the most of them."""
    return groups.longest if groups.order is not None else min(len(groups.ranks), 1)
