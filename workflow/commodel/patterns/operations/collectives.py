"""The table of collective operations, and the halo exchange."""

from dataclasses import dataclass
from math import prod

import numpy as np

from commodel.patterns.operations import (
    Extents,
    Operation,
    OperationParameter,
    at_root,
    block,
    blocks,
    column,
    find_squarest_grid,
    make_switch_parameter,
    no_data,
    own_share,
    read_grid,
    row,
    vector,
    write_grid,
)
from commodel.patterns.schedule import check_rows


@dataclass(frozen=True, eq=False)
class Faces:
    """Messages of ranks in a grid to their neighbours. Face 2d of a rank is down dimension d, face
    2d + 1 up."""

    src: np.ndarray
    dst: np.ndarray
    face: np.ndarray  # of the sender
    per_rank: int  # faces of a rank

    def address(self, bytes: int) -> np.ndarray:
        """Return the address of each face's data: all faces of rank 0, then those of rank 1, and so
        on."""
        return (self.src * self.per_rank + self.face) * bytes


def list_faces(grid: tuple[int, ...], periodic: bool) -> Faces:
    """Return all faces of ranks towards another rank, by face. A dimension of one rank has none.

    Ranks are numbered as by MPI_Cart_create: the last dimension varies fastest.
    """
    ranks = int(np.prod(grid))
    check_rows(2 * len(grid) * ranks)
    rank = np.arange(ranks)
    own = np.array(np.unravel_index(rank, grid))
    columns: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for face in range(2 * len(grid)):
        dimension = face // 2
        length = grid[face // 2]
        position = own.copy()
        position[dimension] += 1 if face % 2 else -1
        exists = (position[dimension] >= 0) & (position[dimension] < length) | periodic
        position[dimension] %= length
        neighbour = np.ravel_multi_index(tuple(position), grid)
        sends = exists & (neighbour != rank)
        columns.append((rank[sends], neighbour[sends], np.full(int(sends.sum()), face)))
    src, dst, faces = (np.concatenate(column) for column in zip(*columns, strict=True))
    return Faces(src=src, dst=dst, face=faces, per_rank=2 * len(grid))


def _list_sent_faces(
    rank: int, ranks: int, bytes: int, grid: tuple[int, ...], periodic: bool
) -> Extents:
    return [(2 * len(grid) * rank * bytes, 2 * len(grid) * bytes)]


def _list_received_faces(
    rank: int, ranks: int, bytes: int, grid: tuple[int, ...], periodic: bool
) -> Extents:
    sent = list_faces(grid, periodic)
    return [(int(address), bytes) for address in sent.address(bytes)[sent.dst == rank]]


HALO = (
    OperationParameter(
        name="grid",
        form="4x2",
        title="ranks in each dimension, the last varies fastest; default: the two-dimensional grid nearest to a square",
        read=read_grid,
        write=write_grid,
        default=find_squarest_grid,
        ranks=prod,
    ),
    make_switch_parameter(
        "periodic", "whether the last ranks of a dimension are neighbours of the first", False
    ),
)
OPERATION = (
    Operation(
        name="allgather",
        bytes="the block that each rank sends to all",
        initial_data=block,
        final_data=blocks,
        mpi="MPI_Allgather",
    ),
    Operation(
        name="allreduce",
        bytes="the vector that every rank contributes, and everyone's result",
        initial_data=vector,
        final_data=vector,
        reduces=True,
        mpi="MPI_Allreduce",
    ),
    Operation(
        name="alltoall",
        bytes="the block that each rank sends to each other one",
        initial_data=row,
        final_data=column,
        mpi="MPI_Alltoall",
    ),
    Operation(
        name="barrier", bytes="", initial_data=no_data, final_data=no_data, mpi="MPI_Barrier"
    ),
    Operation(
        name="bcast",
        bytes="the message that the root sends to all",
        initial_data=at_root(vector),
        final_data=vector,
        mpi="MPI_Bcast",
    ),
    Operation(
        name="gather",
        bytes="the block that each rank sends to the root",
        initial_data=block,
        final_data=at_root(blocks),
        mpi="MPI_Gather",
    ),
    Operation(
        name="halo",
        bytes="the face that each rank sends to each of its neighbours in the grid",
        initial_data=_list_sent_faces,
        final_data=_list_received_faces,
        parameters=HALO,
    ),
    Operation(
        name="reduce",
        bytes="the vector that every rank contributes, and the root's result",
        initial_data=vector,
        final_data=at_root(vector),
        reduces=True,
        mpi="MPI_Reduce",
    ),
    Operation(
        name="reduce-scatter",
        bytes="the vector that every rank contributes; each gets its share of the result",
        initial_data=vector,
        final_data=own_share,
        reduces=True,
        mpi="MPI_Reduce_scatter",
    ),
    Operation(
        name="scatter",
        bytes="the block that the root sends to each rank",
        initial_data=at_root(blocks),
        final_data=block,
        mpi="MPI_Scatter",
    ),
)
