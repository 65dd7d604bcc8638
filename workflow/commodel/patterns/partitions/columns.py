"""Rectangles of given areas in columns, the sum of their half perimeters, and so what SUMMA sends, as small as can be.

Beaumont, Boudet, Rastello and Robert (IEEE TPDS 12(10), 2001): in the best arrangement of columns each holds areas that
are next to each other in their order of size, so dynamic programming over that order finds it.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from commodel.patterns.partitions.geometric import check_blocks
from commodel.patterns.partitions.rounding import whole
from commodel.patterns.rectangles import Rectangles

Columns = list[list[int]]  # ranks of each column, from left to right, each from the top down


def best_columns(areas: np.ndarray, most: int | None = None, dear: float = 1.0) -> Columns:
    """The arrangement; a rank without an area has no place in it. `most`: columns, and ranks of each. `dear`: half
    perimeters that a column adds, 1 the height of the matrix; with others columns are fewer, or more, than best."""
    order = [int(rank) for rank in np.argsort(areas, kind="stable") if areas[rank] > 0]
    shares = np.asarray(areas, dtype=float)[order] / np.sum(areas)
    most = most or len(order)
    while len(cuts := _cuts(shares, most, dear)) - 1 > most:
        dear *= 1.1
    return [sorted(order[start:end]) for start, end in pairwise(cuts)]


def _cuts(shares: np.ndarray, most: int, dear: float) -> list[int]:
    """Where columns begin and end in growing shares: column (r, q] of width w has q − r rectangles of that width and
    one full height together, so f(q) = min over r of f(r) + (q − r) w + 1."""
    before = np.r_[0.0, np.cumsum(shares)]
    cost, start = np.zeros(len(before)), np.zeros(len(before), dtype=int)
    for q in range(1, len(before)):
        r = np.arange(max(0, q - most), q)
        sums = cost[r] + (q - r) * (before[q] - before[r])
        start[q] = r[place := int(np.argmin(sums))]
        cost[q] = sums[place] + dear
    cuts = [len(shares)]
    while cuts[-1]:
        cuts.append(int(start[cuts[-1]]))
    return cuts[::-1]


def tiled(columns: Columns, areas: np.ndarray, side: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """x, y, width and height of every rank in whole blocks, which tile side × side."""
    check_blocks(sum(map(len, columns)), side * side)
    areas = np.asarray(areas, dtype=float)
    x, y, width, height = np.zeros((4, len(areas)), dtype=np.int64)
    weight = np.array([areas[column].sum() for column in columns])
    widths = whole(side * weight / weight.sum(), side, least=1)
    for column, left, wide, held in zip(columns, np.cumsum(widths) - widths, widths, weight, strict=True):
        heights = whole(side * areas[column] / held, side, least=1)
        x[column], width[column], height[column], y[column] = left, wide, heights, np.cumsum(heights) - heights
    return x, y, width, height


def by_columns(shares: Sequence[int] | np.ndarray, side: int) -> Rectangles:
    """The rectangle of every rank for its share of blocks."""
    return Rectangles(*tiled(best_columns(np.asarray(shares), side), np.asarray(shares), side), side)
