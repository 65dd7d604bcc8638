"""Whole blocks that even out times: a row of blocks, or a column of them, goes from the slowest to where it hurts less.

Rounding each width and height to the nearest block knows nothing of speeds, and of rectangles that are 15 blocks high a
row is 7 % of the work.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from commodel.patterns.partitions.geometric import Curve
from commodel.patterns.rectangles import Rectangles

MOST_TRIALS = 500_000  # times of processes that are worked out; a step takes one for each


def evened(tiling: Rectangles, curves: Sequence[Curve]) -> Rectangles:
    """The same columns with other widths and heights, as long as a step makes the slowest process faster, and no other
    as slow as it was."""
    columns = [list(column) for column in tiling.columns]
    width = {rank: int(tiling.width[rank]) for column in columns for rank in column}
    height = {rank: int(tiling.height[rank]) for column in columns for rank in column}

    def seconds(rank: int, wider: int = 0, higher: int = 0) -> float:
        return float(curves[rank].seconds((width[rank] + wider) * (height[rank] + higher)))

    def steps(column: list[int], slowest: int) -> Iterator[tuple[float, list[int], list[int]]]:
        """What the slowest of those that change would take, and who loses and gains how: one row, or one column."""
        if height[slowest] > 1:
            for other in column:
                if other != slowest:
                    yield max(seconds(slowest, higher=-1), seconds(other, higher=1)), [slowest], [other]
        if width[slowest] > 1:
            for others in columns:
                if others is not column:
                    yield max(seconds(rank, wider=1) for rank in others), column, others

    times = {rank: seconds(rank) for rank in width}
    for _ in range(MOST_TRIALS // max(len(times), 1)):
        slowest = max(times, key=times.__getitem__)
        column = next(column for column in columns if slowest in column)
        best = min(steps(column, slowest), key=lambda step: step[0], default=None)
        if best is None or best[0] >= times[slowest] * (1 - 1e-12):
            break
        _, losing, gaining = best
        changed = width if losing is column else height
        for ranks, more in ((losing, -1), (gaining, 1)):
            for rank in ranks:
                changed[rank] += more
        times |= {rank: seconds(rank) for rank in (*losing, *gaining)}
    return _placed(tiling, columns, width, height)


def _placed(tiling: Rectangles, columns: list[list[int]], width: dict[int, int], height: dict[int, int]) -> Rectangles:
    x, y, wide, high = np.zeros((4, tiling.ranks), dtype=np.int64)
    left = 0
    for column in columns:
        heights = np.array([height[rank] for rank in column])
        x[column], y[column], wide[column], high[column] = left, np.cumsum(heights) - heights, width[column[0]], heights
        left += width[column[0]]
    return Rectangles(x, y, wide, high, tiling.side)
