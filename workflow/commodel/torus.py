"""Torus networks: nodes at the points of a grid whose rows are rings of links (`Torus`).

A message passes the links of one dimension after the other, in each in the shorter direction
(dimension-order routing). Node numbers increase along the first dimension first. `find_torus`
returns the torus that explains the latencies of pairs of nodes, if there is one.

    >>> torus = Torus((4, 4))
    >>> torus.count_hops(np.array([0, 0]), np.array([5, 2]))
    array([2, 2])
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

MIN_HOPS = 3  # of the farthest pair; with fewer, hops hardly differ
MAX_DIMENSIONS, MAX_LENGTH = 6, 8192  # dimensions; nodes of a dimension
MIN_LATENCY_RATIO = 1.3  # of the farthest to the nearest pair
MAX_LOG_DEVIATION = 0.1  # of latencies from a line of the hops; of 90 % of the pairs


@dataclass(frozen=True)
class Torus:
    """A torus with this number of nodes in each dimension."""

    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{'torus' if len(self.shape) > 1 else 'ring'} of {' × '.join(map(str, self.shape))}"

    @property
    def nodes(self) -> int:
        return prod(self.shape)

    @property
    def links(self) -> int:
        """The number of links: each node has one in either direction of each dimension."""
        return 2 * len(self.shape) * self.nodes

    @property
    def max_hops(self) -> int:
        return sum(length // 2 for length in self.shape)

    @cached_property
    def strides(self) -> np.ndarray:
        """The difference of the numbers of two neighbours, by dimension."""
        return np.cumprod((1, *self.shape))[:-1]

    def find_offsets(self, src: np.ndarray, dst: np.ndarray) -> np.ndarray:
        """Return the hops from one node to another in each dimension, negative if downwards:
        (dimensions, pairs)."""
        lengths, strides = np.array(self.shape)[:, None], self.strides[:, None]
        point = src // strides % lengths
        upwards = (dst // strides - point) % lengths
        # If both directions are equally long, messages go upwards, except those from the middle of
        # a ring.
        return np.where(2 * upwards + (2 * point == lengths) <= lengths, upwards, upwards - lengths)

    def count_hops(self, src: np.ndarray, dst: np.ndarray) -> np.ndarray:
        return np.abs(self.find_offsets(src, dst)).sum(axis=0)

    def list_links(
        self, src: np.ndarray, dst: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield for each hop the messages that pass it, and the number of the link of each."""
        node, dimensions = src.copy(), len(self.shape)
        offsets = self.find_offsets(src, dst)
        for dimension, (length, stride, offset) in enumerate(
            zip(self.shape, self.strides, offsets, strict=True)
        ):
            direction = np.sign(offset)
            for hop in range(length // 2):
                rows = np.flatnonzero(np.abs(offset) > hop)
                if not len(rows):
                    break
                yield rows, 2 * (node[rows] * dimensions + dimension) + (direction[rows] < 0)
                point = node[rows] // stride % length
                node[rows] += ((point + direction[rows]) % length - point) * stride

    def find_opposite(self, link: np.ndarray) -> np.ndarray:
        """Return the links of the opposite direction."""
        node_and_dimension, downwards = np.divmod(link, 2)
        node, dimension = np.divmod(node_and_dimension, len(self.shape))
        stride, length = self.strides[dimension], np.array(self.shape)[dimension]
        point = node // stride % length
        neighbour = node + ((point + 1 - 2 * downwards) % length - point) * stride
        return 2 * (neighbour * len(self.shape) + dimension) + 1 - downwards


def find_torus(pairs: np.ndarray, latency: np.ndarray, nodes: int) -> Torus | None:
    """Return the torus for which a + b·hops explains the latencies of pairs of nodes (pairs, 2)
    best; None if no torus explains them."""
    candidates = []
    for shape in _list_shapes(nodes, MAX_DIMENSIONS):
        torus = Torus(shape)
        if torus.max_hops < MIN_HOPS or max(shape) > MAX_LENGTH:
            continue
        hops = torus.count_hops(*pairs.T)
        if np.ptp(hops) < MIN_HOPS - 1:
            continue
        b, a = np.polyfit(hops, latency, 1, w=1 / latency)
        nearest, farthest = a + b, a + b * hops.max(initial=1)
        if nearest > 0 and farthest > MIN_LATENCY_RATIO * nearest:
            deviation = float(np.percentile(np.abs(np.log(latency / (a + b * hops))), 90))
            candidates.append((round(deviation, 6), len(shape), shape))
    deviation, _, shape = min(candidates, default=(np.inf, 0, ()))
    return Torus(shape) if deviation < MAX_LOG_DEVIATION else None


def _list_shapes(nodes: int, dimensions: int) -> Iterator[tuple[int, ...]]:
    """Yield all ordered products of at most `dimensions` factors above 1."""
    yield (nodes,)
    for length in range(2, nodes // 2 + 1) if dimensions > 1 else ():
        if nodes % length == 0:
            yield from (
                (length, *inner_shape)
                for inner_shape in _list_shapes(nodes // length, dimensions - 1)
            )
