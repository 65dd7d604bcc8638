"""Ranks in a Cartesian grid, numbered as MPI_Cart_create does: the last dimension varies fastest."""

from dataclasses import dataclass
from math import isqrt

import numpy as np

from commodel.patterns.schedule import check_rows


def squarest(ranks: int) -> tuple[int, int]:
    """The two dimensions that are as near as can be, the larger first."""
    short = next(side for side in range(isqrt(ranks), 0, -1) if ranks % side == 0)
    return ranks // short, short


@dataclass(frozen=True, eq=False)
class Faces:
    """What ranks of a grid send to their neighbours. Face 2d of a rank looks down dimension d, face 2d + 1 up."""

    src: np.ndarray
    dst: np.ndarray
    face: np.ndarray  # of the sender
    of_each: int  # faces of a rank

    def address(self, bytes: int) -> np.ndarray:
        """Where the data of each face begin: all faces of rank 0, then those of rank 1, and so on."""
        return (self.src * self.of_each + self.face) * bytes


def faces(grid: tuple[int, ...], periodic: bool) -> Faces:
    """All faces of all ranks that have a neighbour there, by face. Along a dimension of one rank there is none."""
    ranks = int(np.prod(grid))
    check_rows(2 * len(grid) * ranks)
    rank = np.arange(ranks)
    own, columns = np.array(np.unravel_index(rank, grid)), []
    for face in range(2 * len(grid)):
        dimension, length = face // 2, grid[face // 2]
        place = own.copy()
        place[dimension] += 1 if face % 2 else -1
        there = (place[dimension] >= 0) & (place[dimension] < length) | periodic
        place[dimension] %= length
        other = np.ravel_multi_index(tuple(place), grid)
        kept = there & (other != rank)
        columns.append((rank[kept], other[kept], np.full(int(kept.sum()), face)))
    return Faces(*(np.concatenate(column) for column in zip(*columns, strict=True)), 2 * len(grid))
