"""Faces of a grid's cells for their neighbours, as every stencil exchanges them before a step."""

from math import prod

from commodel.patterns.grids import faces, squarest
from commodel.patterns.operations import Extents, Operation, Parameter, read_grid, switch, write_grid


def _own_extents(rank: int, ranks: int, bytes: int, grid: tuple[int, ...], periodic: bool) -> Extents:
    return [(2 * len(grid) * rank * bytes, 2 * len(grid) * bytes)]


def _neighbours(rank: int, ranks: int, bytes: int, grid: tuple[int, ...], periodic: bool) -> Extents:
    sent = faces(grid, periodic)
    addresses = sent.address(bytes)[sent.dst == rank]
    return [(int(address), bytes) for address in addresses]


OPERATION = Operation(
    "halo",
    "the face that each rank sends to each of its neighbours in the grid",
    _own_extents,
    _neighbours,
    parameters=(
        Parameter(
            "grid",
            "4x2",
            "ranks in each dimension, the last the fastest; left out, two that are as near as can be",
            read_grid,
            write_grid,
            squarest,
            prod,
        ),
        switch("periodic", "whether the last ranks of a dimension are neighbours of the first", False),
    ),
)
