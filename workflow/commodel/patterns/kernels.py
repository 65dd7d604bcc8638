"""Parameters that the operations of data-parallel kernels share: which rectangle of the square each rank has."""

from functools import lru_cache
from math import prod

from commodel.errors import UserError
from commodel.patterns import rectanglefile
from commodel.patterns.arguments import whole_number
from commodel.patterns.grids import squarest
from commodel.patterns.named import read_grid, write_grid
from commodel.patterns.operations import Parameter
from commodel.patterns.rectangles import MAX_SIDE, Rectangles, even

OPEN, SQUAREST, EVEN = "any", "squarest", "even"  # how parameters are written that are left out
Grid = tuple[int, ...]


def read_side(text: str) -> int:
    """N, 0 where it is left open."""
    side = 0 if text == OPEN else whole_number(text)
    if side > MAX_SIDE:
        raise UserError(f"found '{text}', wanted at most {MAX_SIDE}")
    return side


def read_two(text: str) -> Grid:
    if text == SQUAREST:
        return ()
    grid = read_grid(text)
    if len(grid) != 2:
        raise UserError(f"found '{text}', wanted rows x columns of ranks, such as 4x2")
    return grid


def ranks_of_partition(path: str) -> int | None:
    return None if path == EVEN else rectanglefile.read(path).ranks


def read_partition(text: str) -> str:
    if not text:
        raise UserError("found nothing, wanted the file of a partition")
    return text


def partition_parameters(unit: str, usual: int) -> tuple[Parameter, ...]:
    """N, a grid or a file; `usual` is N where nothing says it."""
    return (
        Parameter(
            "n",
            "128",
            f"{unit} along a side of the square; left out, those of the partition, else {usual}",
            read_side,
            lambda side: str(side) if side else OPEN,
            0,
        ),
        Parameter(
            "grid",
            "4x2",
            "rows and columns of ranks, the last the fastest, whose rectangles are as even as can be; left out, two "
            "numbers that are as near as can be",
            read_two,
            lambda grid: write_grid(grid) if grid else SQUAREST,
            (),
            lambda grid: prod(grid) if grid else None,
        ),
        Parameter(
            "partition",
            "PATH",
            "a CSV of rank,x,y,width,height in the place of a grid",
            read_partition,
            str,
            EVEN,
            ranks_of_partition,
            file=True,
        ),
    )


def tiling(ranks: int, usual: int, n: int, grid: Grid, partition: str) -> Rectangles:
    """The rectangles that the parameters mean; `usual` is N where nothing says it."""
    if partition == EVEN:
        return _even(n or usual, grid or squarest(ranks))
    if grid:
        raise UserError("found grid beside partition, wanted one of them")
    tiling = rectanglefile.read(partition)
    if n not in (0, tiling.side):
        raise UserError(f"found {tiling.side}×{tiling.side}, wanted n={n}", file=partition)
    if tiling.ranks != ranks:
        raise UserError(f"found {tiling.ranks} ranks, wanted {ranks}", file=partition)
    return tiling


_even = lru_cache(maxsize=16)(even)
