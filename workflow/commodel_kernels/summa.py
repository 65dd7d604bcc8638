"""SUMMA's communication: in iteration k every rank receives the rows of block column k of A, and
the columns of block row k of B, that its rectangle covers.

Without `iteration` it is the sum of all iterations; all ranks begin an iteration at once. Addresses
number the blocks of the column and then those of the row, iteration by iteration.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from commodel.errors import UserError
from commodel.patterns.arguments import parse_whole_number
from commodel.patterns.operations import (
    CaseFile,
    Extents,
    Grid,
    OperationParameter,
    make_switch_parameter,
    parse_parameters,
)
from commodel.records import Point
from commodel_kernels.rectangles import Rectangles, format_rectangles
from commodel_kernels.tilings import (
    PARTITION_SUFFIX,
    Kernel,
    make_partition_parameters,
    make_tiles,
    make_tiling,
)

DEFAULT_SIDE = 128  # blocks a side: the smaller of the paper's two cases
ALL, EVERY = -1, "all"


def parse_iteration(text: str) -> int:
    return (
        ALL if text == EVERY else parse_whole_number(text, "the number of an iteration, from 0", 0)
    )


def make_block_rectangles(
    ranks: int, n: int, grid: Grid, partition: str, iteration: int = ALL
) -> Rectangles:
    """Return the rectangles in blocks. Refuse rectangles that do not form columns, and iterations
    beyond the last."""
    rectangles = make_tiling(ranks, DEFAULT_SIDE, n, grid, partition)
    try:
        _ = rectangles.columns
    except UserError as error:
        raise UserError(f"{error.message}, which summa needs", file=partition) from None
    if iteration >= rectangles.side:
        raise UserError(
            f"found iteration {iteration}, wanted one below {rectangles.side}, the blocks a side"
        )
    return rectangles


def list_iterations(rectangles: Rectangles, iteration: int) -> range:
    return range(rectangles.side) if iteration == ALL else range(iteration, iteration + 1)


def group_iterations(
    ranks: int, n: int, grid: Grid, partition: str, iteration: int, overlapped: bool
) -> list[tuple[dict[str, int], int]]:
    """Return the first iteration of each group with equal communication, and the number of
    iterations in the group.

    Between two edges of rectangles, all block columns and rows are equivalent. With overlap, the
    first iteration is a group of its own, since it overlaps with no product.
    """
    rectangles = make_block_rectangles(ranks, n, grid, partition, iteration)
    if iteration != ALL:
        return [({"iteration": iteration}, 1)]
    nonempty = rectangles.area > 0
    second = [1] if overlapped and rectangles.side > 1 else []
    edges = np.unique(
        np.concatenate([rectangles.x[nonempty], rectangles.y[nonempty], [rectangles.side], second])
    ).astype(int)
    return [
        ({"iteration": int(k)}, int(count))
        for k, count in zip(edges[:-1], np.diff(edges), strict=True)
    ]


def _list_own_extents(
    rank: int,
    ranks: int,
    bytes: int,
    n: int,
    grid: Grid,
    partition: str,
    iteration: int,
    overlapped: bool,
) -> Extents:
    """Return the extents of each iteration's column and row that the rank's rectangle holds before
    the iteration."""
    rectangles, extents = make_block_rectangles(ranks, n, grid, partition, iteration), []
    x, y, width, height = (
        int(column[rank])
        for column in (rectangles.x, rectangles.y, rectangles.width, rectangles.height)
    )
    for number, k in enumerate(list_iterations(rectangles, iteration)):
        first = 2 * number * rectangles.side
        if x <= k < x + width:
            extents.append(((first + y) * bytes, height * bytes))
        if y <= k < y + height:
            extents.append(((first + rectangles.side + x) * bytes, width * bytes))
    return extents


def _list_needed_extents(
    rank: int,
    ranks: int,
    bytes: int,
    n: int,
    grid: Grid,
    partition: str,
    iteration: int,
    overlapped: bool,
) -> Extents:
    """Return the extents of each iteration's column and row that the rank needs for its product."""
    rectangles = make_block_rectangles(ranks, n, grid, partition, iteration)
    x, y, width, height = (
        int(column[rank]) * bytes
        for column in (rectangles.x, rectangles.y, rectangles.width, rectangles.height)
    )
    side = rectangles.side * bytes
    starts = (2 * number * side for number in range(len(list_iterations(rectangles, iteration))))
    return [
        extent for start in starts for extent in ((start + y, height), (start + side + x, width))
    ]


def count_flops(
    ranks: int, bytes: int, n: int, grid: Grid, partition: str, iteration: int, overlapped: bool
) -> float:
    """Return the operations of the largest rectangle over all iterations."""
    rectangles = make_block_rectangles(ranks, n, grid, partition, iteration)
    # of a block of b × b numbers; the product of two blocks takes 2 b³ operations
    numbers = bytes / 8
    return (
        float(rectangles.area.max())
        * len(list_iterations(rectangles, iteration))
        * (2 * numbers**1.5)
    )


def describe_case(point: Point, computes: bool) -> dict[str, Any]:
    """Return the columns of the case file. Only ranks that wait instead of computing need
    speeds."""
    values = parse_parameters(point.operation)
    iteration, overlapped = values.get("iteration", ALL), values.get("overlapped", False)

    def format_partition() -> str:
        tiling = make_tiles(point.operation, point.ranks)
        return format_rectangles(
            tiling if overlapped and not computes else replace(tiling, speed=None)
        )

    return {
        "partition": CaseFile(PARTITION_SUFFIX, format_partition),
        "bytes": point.bytes,
        "iteration": EVERY if iteration == ALL else iteration,
        "overlapped": int(overlapped),
        "barrier": int(values.get("barrier", True)),
        "compute": int(computes),
    }


OPERATION = Kernel(
    "summa",
    "one block",
    _list_own_extents,
    _list_needed_extents,
    parameters=(
        *make_partition_parameters("blocks", DEFAULT_SIDE),
        OperationParameter(
            "iteration",
            "80",
            "one iteration, from 0; default: the sum of all, each begun by all ranks at once",
            parse_iteration,
            lambda number: EVERY if number == ALL else str(number),
            ALL,
        ),
        make_switch_parameter(
            "overlapped",
            "whether panels are sent with non-blocking messages while ranks multiply the previous ones; the time is "
            "that of communication not hidden by computation; a prediction needs a partition with a column speed",
            False,
        ),
        make_switch_parameter(
            "barrier",
            "whether a measurement has a barrier before each iteration; predictions always assume it",
            True,
            measured=True,
        ),
    ),
    program="summa",
    check=lambda ranks, overlapped, **others: make_block_rectangles(ranks, **others),
    tiles=lambda ranks, overlapped, **others: make_block_rectangles(ranks, **others),
    summands=group_iterations,
    flops=count_flops,
    case=describe_case,
)
