"""An iteration of the wave equation in two dimensions: every rank gets the cells of its neighbours
along its rectangle's sides. The stencil has five points, so corners are not needed.

Addresses count the cells of the sides of rank 0 (left, right, top, bottom), then those of rank 1,
and so on. A corner cell belongs to two sides.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from commodel.patterns.operations import CaseFile, Extents, Grid
from commodel.records import Point
from commodel_kernels.rectangles import Rectangles, SharedSides, find_neighbours, format_rectangles
from commodel_kernels.tilings import (
    PARTITION_SUFFIX,
    Kernel,
    make_partition_parameters,
    make_tiles,
    make_tiling,
)

DEFAULT_SIDE = 512  # cells a side: the larger of the paper's two cases
OPERATIONS_PER_CELL = 8  # in one step


def make_cell_rectangles(ranks: int, n: int, grid: Grid, partition: str) -> Rectangles:
    return make_tiling(ranks, DEFAULT_SIDE, n, grid, partition)


def find_side_starts(parts: Rectangles) -> np.ndarray:
    """Return the first address of every rank's sides, in the order (rank, side), and the end of the
    last."""
    lengths = np.stack([parts.height, parts.height, parts.width, parts.width], axis=1)
    return np.concatenate([[0], np.cumsum(lengths)])


def find_message_starts(parts: Rectangles, shared: SharedSides) -> np.ndarray:
    """Return the first address of each message."""
    return find_side_starts(parts)[4 * shared.src + shared.side] + shared.first


def _list_own_extents(
    rank: int, ranks: int, bytes: int, n: int, grid: Grid, partition: str
) -> Extents:
    starts = find_side_starts(make_cell_rectangles(ranks, n, grid, partition))[
        4 * rank : 4 * rank + 5
    ]
    return [(int(starts[0]) * bytes, int(starts[-1] - starts[0]) * bytes)]


def _list_received_extents(
    rank: int, ranks: int, bytes: int, n: int, grid: Grid, partition: str
) -> Extents:
    parts = make_cell_rectangles(ranks, n, grid, partition)
    shared = find_neighbours(parts)
    to_rank = shared.dst == rank
    rows = zip(find_message_starts(parts, shared)[to_rank], shared.length[to_rank], strict=True)
    return [(int(first) * bytes, int(length) * bytes) for first, length in rows]


def count_flops(ranks: int, bytes: int, n: int, grid: Grid, partition: str) -> float:
    """Return the operations of the largest rectangle."""
    return float(make_cell_rectangles(ranks, n, grid, partition).area.max()) * OPERATIONS_PER_CELL


def describe_case(point: Point, computes: bool) -> dict[str, Any]:
    """Return the columns of the case file."""

    def format_partition() -> str:
        return format_rectangles(replace(make_tiles(point.operation, point.ranks), speed=None))

    return {
        "partition": CaseFile(PARTITION_SUFFIX, format_partition),
        "bytes": point.bytes,
        "compute": int(computes),
    }


OPERATION = Kernel(
    "wave2d",
    "one cell",
    _list_own_extents,
    _list_received_extents,
    parameters=make_partition_parameters("cells", DEFAULT_SIDE),
    program="wave2d",
    check=make_cell_rectangles,
    tiles=make_cell_rectangles,
    flops=count_flops,
    case=describe_case,
)
