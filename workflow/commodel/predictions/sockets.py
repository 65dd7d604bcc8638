"""The inside of a node: its sockets, and the memory that its ranks share.

A parameter set from a data sheet may have these settings:

- `sockets`: of a node. Its ranks are divided among them evenly, consecutive ranks together
  (`place_in_sockets`). Predictions then count each socket as a node, and the distance class `host`
  is that of sockets in one node.
- `memory_bandwidth`: bytes per second by distance class. For `node`, of all messages within a
  socket, or a node without sockets; for `host`, of all that leave a socket for others of its node.
  No prediction of any model is faster (`find_memory_seconds`).
- `message_bandwidth`: of one message within a node, if the sheet does not state the bandwidth of
  all.

Sets fitted to probes have none of these: in probes, ranks of a node copy at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from commodel.hierarchy import NODE, Hierarchy
from commodel.models import Array
from commodel.patterns.repeated import sample_rounds
from commodel.patterns.schedule import Schedule

SOCKETS, MEMORY_BANDWIDTH, MESSAGE_BANDWIDTH = "sockets", "memory_bandwidth", "message_bandwidth"


def place_in_sockets(pattern: Schedule, settings: Mapping[str, Any]) -> Schedule:
    """Return the pattern with the socket of each rank in place of its node, if the settings have
    sockets."""
    sockets = settings.get(SOCKETS)
    if not sockets:
        return pattern
    return pattern.place(number_sockets(pattern.node, int(sockets)))


def number_sockets(node: np.ndarray, sockets: int) -> np.ndarray:
    """Return the socket of each rank, numbered through all nodes.

    >>> number_sockets(np.array([0, 0, 0, 0, 1, 1, 1]), 2).tolist()
    [0, 0, 1, 1, 2, 2, 3]
    """
    order = np.argsort(node, kind="stable")
    _, first, counts = np.unique(node[order], return_index=True, return_counts=True)
    position = np.arange(len(node)) - np.repeat(first, counts)
    ranks_of_socket = -(-counts // sockets)
    numbers = np.empty(len(node), dtype=np.int64)
    numbers[order] = node[order] * sockets + position // np.repeat(ranks_of_socket, counts)
    return numbers


def count_copied_bytes(pattern: Schedule, distance: int, levels: Hierarchy) -> Array:
    """Return, for each size of a stack, the bytes of messages at a distance from ranks of one node
    or socket, for that which sends most."""
    nodes = int(pattern.node.max(initial=0)) + 1
    copied = np.zeros((pattern.sizes, nodes))
    for count, part in sample_rounds(pattern):
        source = part.node[part.src]
        at_distance = levels.distance(source, part.node[part.dst]) == distance
        chosen = np.flatnonzero(at_distance)
        lengths = part.bytes.reshape(-1, len(part.src))[:, chosen]
        for number, of_size in enumerate(lengths):
            copied[number] += count * np.bincount(source[chosen], of_size, minlength=nodes)
    return copied.max(axis=1)


def find_memory_seconds(
    pattern: Schedule, bandwidths: Mapping[str, float], levels: Mapping[str, Sequence[int]]
) -> Array:
    """Return, for each size of a stack, the least time in which the memory of a node copies all
    messages within it."""
    hierarchy = Hierarchy.of(levels)
    least = np.zeros(pattern.sizes)
    for distance, name in enumerate(hierarchy.names):
        if name in bandwidths:
            copied = count_copied_bytes(pattern, distance, hierarchy)
            least = np.maximum(least, copied / bandwidths[name])
    return least


def find_copy_rate(pattern: Schedule, seconds: Array) -> Array:
    """Return the bytes per second that the ranks of a node copy together, if the pattern takes so
    many seconds at each size of a stack."""
    levels = Hierarchy()
    copied = count_copied_bytes(pattern, levels.names.index(NODE), levels)
    return np.divide(copied, seconds, out=np.zeros(len(copied)), where=seconds > 0)
