"""The table of collective operations, the halo exchange, and operations of an overlay network."""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from commodel.errors import UserError
from commodel.patterns.operations import (
    MPI,
    OVERLAY,
    Extents,
    Operation,
    Parameter,
    at_root,
    block,
    blocks,
    column,
    find_squarest_grid,
    make_choice_parameter,
    make_switch_parameter,
    no_data,
    own_share,
    read_grid,
    row,
    vector,
    write_grid,
)
from commodel.patterns.schedule import check_rows
from commodel.units import parse_seconds

FILTERS = ("sum", "min", "max", "average", "none", "concat")
FORWARDING_FILTERS = ("none", "concat")  # filters whose output is as long as all input: no reduction
MODES = ("waves", "synchronous", "timed")
SKEW_MODES = ("tree", "direct", "tree-error", "direct-error")
MAX_PAUSE = 1.0  # seconds of a filter, or between two waves: an answer times out after a minute


def _time_parameter(name: str, form: str, title: str, default: float) -> Parameter:
    """Return a parameter of an overlay network whose value is a time."""

    def read(text: str) -> float:
        seconds = parse_seconds(text)
        if seconds > MAX_PAUSE:
            raise UserError(f"found '{text}', wanted at most {MAX_PAUSE:g} s")
        return seconds

    return Parameter(name, form, title, read, lambda seconds: f"{1e6 * seconds:.12g}us", default, overlay=True)


def _is_no_reduction(values: dict[str, Any]) -> bool:
    return values["filter"] in FORWARDING_FILTERS or values["compute"] > 0


REDUCE = (
    make_choice_parameter("filter", FILTERS, "of an overlay network", overlay=True),
    _time_parameter(
        "compute",
        "10us",
        "of an overlay network: seconds that each node computes instead of the filter; default 0",
        0.0,
    ),
    make_choice_parameter(
        "mode",
        MODES,
        "of an overlay network: the root requests each wave, and half the round trip counts (waves); all leaves send "
        "at an agreed time (synchronous); or each leaf sends once per period (timed)",
        overlay=True,
    ),
    _time_parameter("period", "10ms", "of mode timed: from one wave to the next; default 10 ms", 0.01),
)


@dataclass(frozen=True, eq=False)
class Faces:
    """Messages of ranks in a grid to their neighbours. Face 2d of a rank is down dimension d, face 2d + 1 up."""

    src: np.ndarray
    dst: np.ndarray
    face: np.ndarray  # of the sender
    per_rank: int  # faces of a rank

    def address(self, bytes: int) -> np.ndarray:
        """Return the address of each face's data: all faces of rank 0, then those of rank 1, and so on."""
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
        dimension, length = face // 2, grid[face // 2]
        position = own.copy()
        position[dimension] += 1 if face % 2 else -1
        exists = (position[dimension] >= 0) & (position[dimension] < length) | periodic
        position[dimension] %= length
        neighbour = np.ravel_multi_index(tuple(position), grid)
        sends = exists & (neighbour != rank)
        columns.append((rank[sends], neighbour[sends], np.full(int(sends.sum()), face)))
    src, dst, faces = (np.concatenate(column) for column in zip(*columns, strict=True))
    return Faces(src, dst, faces, 2 * len(grid))


def _list_sent_faces(rank: int, ranks: int, bytes: int, grid: tuple[int, ...], periodic: bool) -> Extents:
    return [(2 * len(grid) * rank * bytes, 2 * len(grid) * bytes)]


def _list_received_faces(rank: int, ranks: int, bytes: int, grid: tuple[int, ...], periodic: bool) -> Extents:
    sent = list_faces(grid, periodic)
    return [(int(address), bytes) for address in sent.address(bytes)[sent.dst == rank]]


HALO = (
    Parameter(
        "grid",
        "4x2",
        "ranks in each dimension, the last varies fastest; default: the two-dimensional grid nearest to a square",
        read_grid,
        write_grid,
        find_squarest_grid,
        prod,
    ),
    make_switch_parameter("periodic", "whether the last ranks of a dimension are neighbours of the first", False),
)
CLASSES = make_choice_parameter(
    "mode",
    ("binned", "all"),
    "checksums are sorted into classes on their way up, then one back-end of each class sends its data (binned); or "
    "all send",
    overlay=True,
)
SKEW = make_choice_parameter(
    "mode",
    SKEW_MODES,
    "time of 100 rounds over each link (tree), or to each back-end (direct); or the error of the skews that they find, "
    "which are 10 ms",
    overlay=True,
)


def _make_measured_only(name: str, bytes: str, *parameters: Parameter) -> Operation:
    """Return an operation of an overlay network, which no schedule describes."""
    return Operation(
        name,
        bytes,
        no_data,
        no_data,
        parameters=parameters,
        substrates=(OVERLAY,),
        without_schedule=lambda values: True,
    )


OPERATION = (
    Operation("allgather", "the block that each rank sends to all", block, blocks, mpi="MPI_Allgather"),
    Operation(
        "allreduce",
        "the vector that every rank contributes, and everyone's result",
        vector,
        vector,
        reduces=True,
        mpi="MPI_Allreduce",
    ),
    Operation("alltoall", "the block that each rank sends to each other one", row, column, mpi="MPI_Alltoall"),
    Operation("barrier", "", no_data, no_data, mpi="MPI_Barrier"),
    Operation(
        "bcast",
        "the message that the root sends to all",
        at_root(vector),
        vector,
        mpi="MPI_Bcast",
        substrates=(MPI, OVERLAY),
    ),
    Operation("gather", "the block that each rank sends to the root", block, at_root(blocks), mpi="MPI_Gather"),
    Operation(
        "halo",
        "the face that each rank sends to each of its neighbours in the grid",
        _list_sent_faces,
        _list_received_faces,
        parameters=HALO,
    ),
    _make_measured_only("overlay-classes", "the data of each back-end, of which there are four kinds", CLASSES),
    _make_measured_only("overlay-skew", "", SKEW),
    _make_measured_only("overlay-startup", ""),
    Operation(
        "reduce",
        "the vector that every rank contributes, and the root's result",
        vector,
        at_root(vector),
        reduces=True,
        mpi="MPI_Reduce",
        parameters=REDUCE,
        substrates=(MPI, OVERLAY),
        without_schedule=_is_no_reduction,
    ),
    Operation(
        "reduce-scatter",
        "the vector that every rank contributes; each gets its share of the result",
        vector,
        own_share,
        reduces=True,
        mpi="MPI_Reduce_scatter",
    ),
    Operation("scatter", "the block that the root sends to each rank", at_root(blocks), block, mpi="MPI_Scatter"),
)
