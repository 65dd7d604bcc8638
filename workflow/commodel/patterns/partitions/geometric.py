"""Shares that all take equally long under functional performance models (Lastovetsky and Reddy, IJHPCA 21(1), 2007).

On the plot of speed over size, shares of equal time lie on one line through the origin. Bisection finds its slope.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Protocol

import numpy as np

from commodel.errors import UserError
from commodel.patterns.partitions.rounding import whole

STEPS = 100


class Curve(Protocol):
    """The speed of a process over the size of its share."""

    def seconds(self, size: float) -> float: ...

    def most(self, seconds: float) -> float:
        """The largest share that takes no longer; never shrinks as the time grows, and has no bound."""


def geometric(curves: Sequence[Curve], total: int) -> np.ndarray:
    """n_i blocks for each process, n_i / s_i(n_i) the same for all but for rounding to whole blocks. Processes that
    share a curve are looked at once."""
    check_blocks(len(curves), total)
    places = {id(curve): place for place, curve in reversed(list(enumerate(curves)))}
    kinds, kind = np.unique([places[id(curve)] for curve in curves], return_inverse=True)
    processes = np.bincount(kind)

    def shares(seconds: float) -> np.ndarray:
        return np.array([float(curves[place].most(seconds)) for place in kinds])

    even = [float(curves[place].seconds(total / len(curves))) for place in kinds]
    low, high = min(even), max(even)  # all have at most an even share, all have at least one
    while processes @ shares(low) > total:
        low /= 2
    while processes @ shares(high) < total:
        high *= 2
    for _ in range(STEPS):
        middle = sqrt(low) * sqrt(high) if high > 2 * low else (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if processes @ shares(middle) < total else (low, middle)
    # A curve may jump at the very time that is wanted: then what lies between the ends is shared out as they differ.
    below, above = shares(low), shares(high)
    gap = processes @ above - processes @ below
    size = below + (above - below) * ((total - processes @ below) / gap if gap > 0 else 0)
    return whole((size * (total / (processes @ size)))[kind], total)


def check_blocks(processes: int, blocks: int) -> None:
    if processes > blocks:
        raise UserError(f"found {processes} processes for {blocks} blocks, wanted at least a block for each")
