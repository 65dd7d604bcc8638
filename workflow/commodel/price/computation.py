"""What computing takes under functional performance models: of every process, in one iteration and in all."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from commodel.models.speeds import Speed
from commodel.patterns.rectangles import Rectangles


@dataclass(frozen=True, eq=False)
class Computation:
    """Seconds of one iteration, rank by rank, with the ends of their intervals; 0 without work."""

    speed: np.ndarray  # units a second with the rank's share
    seconds: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def slowest(self) -> float:
        return float(self.seconds.max())

    @property
    def imbalance(self) -> float:
        """By how much the slowest takes longer than the mean: 0 where all end together."""
        return float(self.seconds.max() / self.seconds.mean() - 1)


def computation(tiling: Rectangles, curves: Sequence[Speed]) -> Computation:
    area = tiling.area.astype(float)
    speed, low, high = np.zeros((3, tiling.ranks))
    for curve, ranks in _together(curves).items():
        speed[ranks] = curve.at(area[ranks])
        low[ranks], high[ranks] = curve.interval(area[ranks])
    return Computation(speed, area / speed, area / high, area / low)


def _together(curves: Sequence[Speed]) -> dict[Speed, list[int]]:
    """The ranks of each curve."""
    ranks: dict[Speed, list[int]] = {}
    for rank, curve in enumerate(curves):
        ranks.setdefault(curve, []).append(rank)
    return ranks


def iterations(kernel: str, tiling: Rectangles) -> int:
    """Of the whole kernel: SUMMA has one a block of the matrix's side; of the wave one is like another."""
    return tiling.side if kernel == "gemm" else 1
