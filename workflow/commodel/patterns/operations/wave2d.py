"""An iteration of the wave equation in two dimensions: every rank gets the cells of its neighbours along its
rectangle's sides. The stencil has five points, so corners are not needed.

Addresses: every cell has four places, one for each side of its rectangle (left, right, top, bottom). Each side has one
run after the other: the sides of rank 0, then those of rank 1, and so on.
"""

import numpy as np

from commodel.patterns.operations import Extents, Grid, Operation, partition_parameters, tiling
from commodel.patterns.rectangles import Rectangles, Touching, find_neighbours

USUAL = 512  # cells a side: the larger of the paper's two cases


def cells(ranks: int, n: int, grid: Grid, partition: str) -> Rectangles:
    return tiling(ranks, USUAL, n, grid, partition)


def sides(parts: Rectangles) -> np.ndarray:
    """Return where the cells of the sides of every rank begin: (rank, side), with the end of the last."""
    lengths = np.stack([parts.height, parts.height, parts.width, parts.width], axis=1)
    return np.concatenate([[0], np.cumsum(lengths)])


def addresses(parts: Rectangles, shared: Touching) -> np.ndarray:
    """Return where the cells of each message begin."""
    return sides(parts)[4 * shared.src + shared.side] + shared.first


def _own_extents(rank: int, ranks: int, bytes: int, n: int, grid: Grid, partition: str) -> Extents:
    starts = sides(cells(ranks, n, grid, partition))[4 * rank : 4 * rank + 5]
    return [(int(starts[0]) * bytes, int(starts[-1] - starts[0]) * bytes)]


def _neighbours(rank: int, ranks: int, bytes: int, n: int, grid: Grid, partition: str) -> Extents:
    parts = cells(ranks, n, grid, partition)
    shared = find_neighbours(parts)
    to_rank = shared.dst == rank
    rows = zip(addresses(parts, shared)[to_rank], shared.length[to_rank], strict=True)
    return [(int(first) * bytes, int(length) * bytes) for first, length in rows]


OPERATION = Operation(
    "wave2d",
    "one cell",
    _own_extents,
    _neighbours,
    parameters=partition_parameters("cells", USUAL),
    program="wave2d",
    tiles=cells,
)
