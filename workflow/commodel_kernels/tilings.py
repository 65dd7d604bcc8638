"""Kernels (`Kernel`): operations whose ranks compute the rectangles of a square, and the parameters
that define these (`make_partition_parameters`)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from commodel.errors import UserError
from commodel.patterns.arguments import parse_whole_number
from commodel.patterns.operations import (
    Grid,
    Operation,
    OperationParameter,
    fill_parameters,
    find_operation,
    find_squarest_grid,
    read_grid,
    write_grid,
)
from commodel_kernels.rectangles import MAX_SIDE, Rectangles, make_even_grid, read_rectangles

PARTITION_SUFFIX = ".partition"  # of the file from which a program reads its rectangles


@dataclass(frozen=True)
class Kernel(Operation):
    """An operation whose ranks compute, each a rectangle."""

    # Takes the number of ranks, and the parameters by name.
    tiles: Callable[..., Rectangles] | None = None


def make_tiles(text: str, ranks: int) -> Rectangles:
    """Return the rectangle of a kernel's matrix that each rank computes."""
    kernel = find_operation(text)
    assert isinstance(kernel, Kernel), f"{text} is no kernel"
    assert kernel.tiles is not None
    return kernel.tiles(ranks, **fill_parameters(text, ranks))


OPEN, SQUAREST, EVEN = "any", "squarest", "even"  # texts of default values


def read_side(text: str) -> int:
    """Return N; 0 if it is not set."""
    side = 0 if text == OPEN else parse_whole_number(text)
    if side > MAX_SIDE:
        raise UserError(f"found '{text}', wanted at most {MAX_SIDE}")
    return side


def read_grid_2d(text: str) -> Grid:
    if text == SQUAREST:
        return ()
    grid = read_grid(text)
    if len(grid) != 2:
        raise UserError(f"found '{text}', wanted rows x columns of ranks, such as 4x2")
    return grid


def count_partition_ranks(path: str) -> int | None:
    return None if path == EVEN else read_rectangles(path).ranks


def read_partition(text: str) -> str:
    if not text:
        raise UserError("found nothing, wanted the file of a partition")
    return text


def make_partition_parameters(unit: str, default_side: int) -> tuple[OperationParameter, ...]:
    """Return the parameters of a partition: N, a grid or a file."""
    return (
        OperationParameter(
            "n",
            "128",
            f"{unit} along a side of the square; default: those of the partition, else {default_side}",
            read_side,
            lambda side: str(side) if side else OPEN,
            0,
        ),
        OperationParameter(
            "grid",
            "4x2",
            "rows x columns of ranks, numbered row by row, with rectangles of nearly equal size; default: the grid "
            "nearest to a square",
            read_grid_2d,
            lambda grid: write_grid(grid) if grid else SQUAREST,
            (),
            lambda grid: prod(grid) if grid else None,
        ),
        OperationParameter(
            "partition",
            "PATH",
            "a CSV of rank,x,y,width,height instead of a grid",
            read_partition,
            str,
            EVEN,
            count_partition_ranks,
            file=lambda path: read_rectangles(path).table,
        ),
    )


def make_tiling(ranks: int, default_side: int, n: int, grid: Grid, partition: str) -> Rectangles:
    """Return the rectangles of the parameters; `default_side` is the default of N."""
    if partition == EVEN:
        return _make_cached_even_grid(n or default_side, grid or find_squarest_grid(ranks))
    if grid:
        raise UserError("found grid and partition, wanted one of them")
    tiling = read_rectangles(partition)
    if n not in (0, tiling.side):
        raise UserError(f"found {tiling.side}×{tiling.side}, wanted n={n}", file=partition)
    if tiling.ranks != ranks:
        raise UserError(f"found {tiling.ranks} ranks, wanted {ranks}", file=partition)
    return tiling


_make_cached_even_grid = lru_cache(maxsize=16)(make_even_grid)
