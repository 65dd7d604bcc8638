"""Where rectangles stand inside their columns: what nodes send each other depends on it, what they compute does not.

Processes of one kind have one area, so that they may also change places between columns.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, islice

import numpy as np

from commodel.patterns.rectangles import Rectangles

MOST_TRIALS = 20_000
MOST_RANKS = 512  # a trial looks at all pairs of them

Volume = Callable[[Rectangles, np.ndarray], float]


def summa_volume(tiling: Rectangles, node: np.ndarray) -> float:
    """Blocks that all iterations of SUMMA send between nodes. A rank sends its rows of each pivot column that it holds
    to those that they overlap, and its part of each pivot row that it holds to the others of its column."""
    rows = _overlap(tiling.y, tiling.bottom)
    in_column = (tiling.x[:, None] == tiling.x) & (rows.diagonal()[:, None] > 0) & (rows.diagonal() > 0)
    sent = np.where(in_column, tiling.area[:, None], rows * tiling.width[:, None])
    return float(sent[node[:, None] != node].sum())


def wave_volume(tiling: Rectangles, node: np.ndarray) -> float:
    """Cells that an iteration of the wave sends between nodes: both ways over each side where they touch."""
    beside = (tiling.right[:, None] == tiling.x) * _overlap(tiling.y, tiling.bottom)
    above = (tiling.bottom[:, None] == tiling.y) * _overlap(tiling.x, tiling.right)
    return 2 * float((beside + above)[node[:, None] != node].sum())


def _overlap(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """How long each pair of intervals is one over the other; 0 for empty ones."""
    return np.maximum(np.minimum(end[:, None], end) - np.maximum(start[:, None], start), 0)


VOLUMES: dict[str, Volume] = {"gemm": summa_volume, "wave": wave_volume}


def nearer(tiling: Rectangles, node: np.ndarray, kinds: Sequence[str], volume: Volume) -> Rectangles:
    """Exchanges two ranks of a column, or two of one kind, as long as nodes then send each other less. Columns keep
    their widths and heights."""
    if tiling.ranks > MOST_RANKS:
        return tiling
    columns = [list(column) for column in tiling.columns]
    places = [(c, place) for c, column in enumerate(columns) for place in range(len(column))]
    least, trials, better = volume(tiling, node), 0, True
    while better and trials < MOST_TRIALS:
        better = False
        for (c, i), (d, j) in islice(combinations(places, 2), MOST_TRIALS - trials):
            first, second = columns[c][i], columns[d][j]
            if node[first] == node[second] or (c != d and kinds[first] != kinds[second]):
                continue
            trials += 1
            exchanged = _exchanged(tiling, first, second, columns[c] if c == d else None)
            if (now := volume(exchanged, node)) < least:
                tiling, least, better = exchanged, now, True
                columns[c][i], columns[d][j] = second, first
    return tiling


def _exchanged(tiling: Rectangles, first: int, second: int, column: list[int] | None) -> Rectangles:
    """Ranks of different columns take each other's rectangle; of one column each takes its height along."""
    ends = [first, second]
    if column is None:
        x, y, width, height = (values.copy() for values in (tiling.x, tiling.y, tiling.width, tiling.height))
        for values in (x, y, width, height):
            values[ends] = values[ends[::-1]]
        return replace(tiling, x=x, y=y, width=width, height=height)
    order = [{first: second, second: first}.get(rank, rank) for rank in column]
    y = tiling.y.copy()
    y[order] = np.cumsum(tiling.height[order]) - tiling.height[order]
    return replace(tiling, y=y)
