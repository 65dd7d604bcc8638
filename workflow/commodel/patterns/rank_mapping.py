"""Mapping of ranks to nodes that keeps heavy traffic local (`map_ranks`): recursive bisection of
the traffic graph over nested groups of nodes.

Each bisection starts from the order of the ranks, and from that of the second eigenvector of the
graph's Laplacian. Both are improved by swaps of two ranks, and the cut with fewer bytes is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from commodel.patterns.schedule import Schedule

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MESSAGE_WEIGHT = 1024  # bytes that represent the latency of a message, added to its size
MAX_DENSE_RANKS = 64  # ranks, up to which all eigenvectors are computed
MAX_SWAPS = 200  # largest number of swaps for one cut
MAX_CANDIDATES = 64  # ranks of each side whose swaps are tried


def make_traffic_graph(schedule: Schedule) -> csr_array:
    """Return the bytes that every two ranks exchange, in both directions together, plus
    MESSAGE_WEIGHT for each message."""
    from scipy.sparse import coo_array  # here, because it is slow to load

    between = schedule.src != schedule.dst
    weight = (np.broadcast_to(schedule.bytes, schedule.src.shape) + MESSAGE_WEIGHT)[between].astype(
        float
    )
    ranks = (schedule.src[between], schedule.dst[between])
    one_way = coo_array((weight, ranks), shape=(schedule.ranks, schedule.ranks)).tocsr()
    return (one_way + one_way.T).tocsr()


def map_ranks(
    weights: csr_array, slots: np.ndarray, levels: Sequence[Sequence[int] | np.ndarray] = ()
) -> np.ndarray:
    """Return the node of every rank.

    `slots` has each node once per rank that it can take, `levels` the group of every node,
    innermost level first.
    """
    keys = [slots, *(np.asarray(column)[slots] for column in levels)]
    order = np.lexsort(keys)
    slots = slots[order]
    tree = np.array([key[order] for key in reversed(keys)])  # the outermost level first
    node = np.empty(weights.shape[0], dtype=int)
    _assign_part(weights, np.arange(weights.shape[0]), slots, tree, node)
    return node


def _assign_part(
    weights: csr_array, ranks: np.ndarray, slots: np.ndarray, tree: np.ndarray, node: np.ndarray
) -> None:
    """Cut the slots at a boundary of the outermost groups, as evenly as possible, and the ranks
    accordingly."""
    while len(tree) and tree[0, 0] == tree[0, -1]:
        tree = tree[1:]
    if not len(tree):
        node[ranks] = slots
        return
    edges = np.flatnonzero(np.diff(tree[0])) + 1
    half = int(edges[np.abs(edges - len(slots) / 2).argmin()])
    first = _select_first_part(weights[ranks][:, ranks].tocsr(), half)
    _assign_part(weights, ranks[first], slots[:half], tree[:, :half], node)
    _assign_part(weights, ranks[~first], slots[half:], tree[:, half:], node)


def _select_first_part(weights: csr_array, size: int) -> np.ndarray:
    """Return a flag for each rank: `size` of them form a part that exchanges few bytes with the
    rest."""
    parts = []
    for order in (np.arange(weights.shape[0]), _order_by_eigenvector(weights)):
        part = np.zeros(weights.shape[0], dtype=bool)
        part[order[:size]] = True
        parts.append(_swap_ranks(weights, part))
    return min(parts, key=lambda part: count_cut_bytes(weights, part))


def count_cut_bytes(weights: csr_array, part: np.ndarray) -> float:
    """Return the bytes between the part and the rest."""
    return float((weights @ part.astype(float))[~part].sum())


def _order_by_eigenvector(weights: csr_array) -> np.ndarray:
    """Return the ranks in the order of the second eigenvector of the Laplacian."""
    from scipy.sparse.csgraph import laplacian  # here, because they are slow to load
    from scipy.sparse.linalg import ArpackError, eigsh

    count = weights.shape[0]
    matrix = laplacian(weights)
    if count <= MAX_DENSE_RANKS:
        vector = np.linalg.eigh(matrix.toarray())[1][:, 1]
    else:
        try:
            start = np.cos(np.arange(count, dtype=float))  # deterministic
            vector = eigsh(matrix, k=2, sigma=-1e-3 * (weights.sum() / count + 1), v0=start)[1][
                :, 1
            ]
        except (ArpackError, RuntimeError):  # e.g. of an unconnected graph
            return np.arange(count)
    return np.argsort(np.round(vector, 9), kind="stable")


def _swap_ranks(weights: csr_array, part: np.ndarray) -> np.ndarray:
    """Swap pairs of ranks greedily, by the gain of Kernighan and Lin, while the bytes of the cut
    decrease."""
    part = part.copy()
    for _ in range(MAX_SWAPS):
        to_part = weights @ part.astype(float)
        to_rest = weights @ (~part).astype(float)
        gain = np.where(part, to_rest - to_part, to_part - to_rest)
        first_part, second_part = (_select_candidates(gain, side) for side in (part, ~part))
        pair_gain = (
            gain[first_part][:, None]
            + gain[second_part]
            - 2 * weights[first_part][:, second_part].toarray()
        )
        row, column = np.unravel_index(pair_gain.argmax(), pair_gain.shape)
        if pair_gain[row, column] <= 1e-9 * max(float(gain.max()), 1.0):
            break
        part[first_part[row]] = False
        part[second_part[column]] = True
    return part


def _select_candidates(gain: np.ndarray, side: np.ndarray) -> np.ndarray:
    ranks = np.flatnonzero(side)
    return ranks[np.argsort(-gain[ranks], kind="stable")[:MAX_CANDIDATES]]
