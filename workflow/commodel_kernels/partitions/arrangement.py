"""Arrangement of shares as rectangles in columns of a matrix (`arrange_in_columns`), and exchanges
of ranks that reduce the traffic between nodes (`exchange_ranks`).

The arrangement minimises the sum of half perimeters, and thus the volume of SUMMA (Beaumont,
Boudet, Rastello and Robert, IEEE TPDS 12(10), 2001). In the best arrangement each column has areas
that are consecutive in order of size, so dynamic programming over that order finds it. The order of
rectangles in a column only changes the traffic between nodes. Processes of one kind have equal
areas, so they may also be exchanged between columns.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, islice, pairwise

import numpy as np

from commodel_kernels.partitions.shares import check_blocks, round_shares
from commodel_kernels.rectangles import Rectangles

MAX_TRIALS = 20_000
MAX_RANKS = 512  # a trial computes all pairs of ranks

Volume = Callable[[Rectangles, np.ndarray], float]


def count_summa_blocks(tiling: Rectangles, node: np.ndarray) -> float:
    """Return the blocks that all iterations of SUMMA send between nodes.

    A rank sends its part of each pivot column to the ranks whose rows overlap it, and its part of
    each pivot row to the other ranks of its column.
    """
    rows = _compute_overlap(tiling.y, tiling.bottom)
    in_column = (
        (tiling.x[:, None] == tiling.x) & (rows.diagonal()[:, None] > 0) & (rows.diagonal() > 0)
    )
    sent = np.where(in_column, tiling.area[:, None], rows * tiling.width[:, None])
    return float(sent[node[:, None] != node].sum())


def count_wave_cells(tiling: Rectangles, node: np.ndarray) -> float:
    """Return the cells that a step of the wave equation sends between nodes: both ways over each
    common side."""
    horizontal = (tiling.right[:, None] == tiling.x) * _compute_overlap(tiling.y, tiling.bottom)
    above = (tiling.bottom[:, None] == tiling.y) * _compute_overlap(tiling.x, tiling.right)
    return 2 * float((horizontal + above)[node[:, None] != node].sum())


def _compute_overlap(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the length of the overlap of each pair of intervals; 0 for empty ones."""
    return np.maximum(np.minimum(end[:, None], end) - np.maximum(start[:, None], start), 0)


VOLUMES: dict[str, Volume] = {"gemm": count_summa_blocks, "wave": count_wave_cells}


def exchange_ranks(
    tiling: Rectangles, node: np.ndarray, kinds: Sequence[str], volume: Volume
) -> Rectangles:
    """Exchange two ranks of a column, or two of one kind, as long as this reduces the traffic
    between nodes.

    The widths of columns, and the heights in each, do not change.
    """
    if tiling.ranks > MAX_RANKS:
        return tiling
    columns = [list(column) for column in tiling.columns]
    slots = [(c, i) for c, column in enumerate(columns) for i in range(len(column))]
    least, trials, improved = volume(tiling, node), 0, True
    while improved and trials < MAX_TRIALS:
        improved = False
        for (c, i), (d, j) in islice(combinations(slots, 2), MAX_TRIALS - trials):
            first, second = columns[c][i], columns[d][j]
            if node[first] == node[second] or (c != d and kinds[first] != kinds[second]):
                continue
            trials += 1
            exchanged = _exchange_pair(tiling, first, second, columns[c] if c == d else None)
            traffic = volume(exchanged, node)
            if traffic < least:
                tiling, least, improved = exchanged, traffic, True
                columns[c][i], columns[d][j] = second, first
    return tiling


def _exchange_pair(
    tiling: Rectangles, first: int, second: int, column: list[int] | None
) -> Rectangles:
    """Return the tiling after an exchange: ranks of different columns swap rectangles, ranks of one
    column keep their heights."""
    ends = [first, second]
    if column is None:
        x, y, width, height = (
            values.copy() for values in (tiling.x, tiling.y, tiling.width, tiling.height)
        )
        for values in (x, y, width, height):
            values[ends] = values[ends[::-1]]
        return replace(tiling, x=x, y=y, width=width, height=height)
    order = [{first: second, second: first}.get(rank, rank) for rank in column]
    y = tiling.y.copy()
    y[order] = np.cumsum(tiling.height[order]) - tiling.height[order]
    return replace(tiling, y=y)


# ranks of each column, columns from left to right, ranks from top to bottom
Columns = list[list[int]]


def find_best_columns(
    areas: np.ndarray, limit: int | None = None, column_cost: float = 1.0
) -> Columns:
    """Return the best arrangement; ranks without an area are omitted.

    `limit` is the maximum of columns, and of ranks in a column. `column_cost` is the cost of a
    column in the sum of half perimeters: 1, the height of the matrix, gives the minimum, a higher
    cost gives fewer columns.
    """
    order = [int(rank) for rank in np.argsort(areas, kind="stable") if areas[rank] > 0]
    shares = np.asarray(areas, dtype=float)[order] / np.sum(areas)
    limit = limit or len(order)
    while len(cuts := _find_cuts(shares, limit, column_cost)) - 1 > limit:
        column_cost *= 1.1
    return [sorted(order[start:end]) for start, end in pairwise(cuts)]


def _find_cuts(shares: np.ndarray, limit: int, column_cost: float) -> list[int]:
    """Return the indices at which columns begin in the ascending shares, and their number.

    Column (r, q] of width w has q − r rectangles of that width, whose heights add up to 1, so f(q)
    = min over r of f(r) + (q − r) w + 1.
    """
    before = np.r_[0.0, np.cumsum(shares)]
    cost, start = np.zeros(len(before)), np.zeros(len(before), dtype=int)
    for q in range(1, len(before)):
        r = np.arange(max(0, q - limit), q)
        sums = cost[r] + (q - r) * (before[q] - before[r])
        start[q] = r[best := int(np.argmin(sums))]
        cost[q] = sums[best] + column_cost
    cuts = [len(shares)]
    while cuts[-1]:
        cuts.append(int(start[cuts[-1]]))
    return cuts[::-1]


def tile_square(
    columns: Columns, areas: np.ndarray, side: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return x, y, width and height of every rank in whole blocks, which tile side × side
    blocks."""
    check_blocks(sum(map(len, columns)), side * side)
    areas = np.asarray(areas, dtype=float)
    x, y, width, height = np.zeros((4, len(areas)), dtype=np.int64)
    weights = np.array([areas[column].sum() for column in columns])
    widths = round_shares(side * weights / weights.sum(), side, least=1)
    for column, left, column_width, weight in zip(
        columns, np.cumsum(widths) - widths, widths, weights, strict=True
    ):
        heights = round_shares(side * areas[column] / weight, side, least=1)
        x[column], width[column], height[column], y[column] = (
            left,
            column_width,
            heights,
            np.cumsum(heights) - heights,
        )
    return x, y, width, height


def arrange_in_columns(shares: Sequence[int] | np.ndarray, side: int) -> Rectangles:
    """Return the rectangle of every rank for its share of blocks."""
    return Rectangles(
        *tile_square(find_best_columns(np.asarray(shares), side), np.asarray(shares), side), side
    )
