"""Shares in proportion to constant speeds, which is the baseline of functional performance models: each process is as
fast as it is with an even share, whatever it gets."""

from collections.abc import Sequence

import numpy as np

from commodel.patterns.partitions.geometric import Curve, check_blocks
from commodel.patterns.partitions.rounding import whole


def constant(curves: Sequence[Curve], total: int) -> np.ndarray:
    check_blocks(len(curves), total)
    even = total / len(curves)
    speeds = {curve: even / float(curve.seconds(even)) for curve in curves}
    speed = np.array([speeds[curve] for curve in curves])
    return whole(total * speed / speed.sum(), total)
