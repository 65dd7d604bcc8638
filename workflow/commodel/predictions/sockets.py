"""The inside of a node: its sockets, and the memory that its ranks share.

A parameter set may have these settings:

- `sockets`: of a node, from a data sheet. Its ranks are divided among them evenly, consecutive
  ranks together (`place_in_sockets`). Predictions then count each socket as a node, and the
  distance class `host` is that of sockets in one node.
- `memory_bandwidth`: bytes per second by distance class. For `node`, of all messages within a
  socket, or a node without sockets; for `host`, of all that leave a socket for others of its node.
  No prediction of any model is faster (`find_memory_seconds`). It is from a data sheet, or from
  probe `memory`.
- `memory_from`: bytes of the shortest message to which a measured bandwidth applies. Shorter ones
  may stay in caches.
- `message_bandwidth`: of one message within a node, if the sheet does not state the bandwidth of
  all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from commodel.hierarchy import NODE, Hierarchy
from commodel.models import Array
from commodel.parameters import MEMORY_BANDWIDTH, MEMORY_FROM
from commodel.patterns.repeated import sample_rounds
from commodel.patterns.schedule import Schedule

SOCKETS, MESSAGE_BANDWIDTH = "sockets", "message_bandwidth"


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


def count_copied_bytes(
    pattern: Schedule, distance: int, levels: Hierarchy, shortest: int = 0
) -> Array:
    """Return, for each size of a stack, the bytes of messages at a distance from ranks of one node
    or socket, for that which sends most. Messages below the `shortest` do not count."""
    nodes = int(pattern.node.max(initial=0)) + 1
    copied = np.zeros((pattern.sizes, nodes))
    for count, part in sample_rounds(pattern):
        if part.bytes.max(initial=0) < shortest:
            continue
        source = part.node[part.src]
        at_distance = levels.distance(source, part.node[part.dst]) == distance
        chosen = np.flatnonzero(at_distance)
        lengths = part.bytes.reshape(-1, len(part.src))[:, chosen]
        for number, of_size in enumerate(np.where(lengths < shortest, 0, lengths)):
            copied[number] += count * np.bincount(source[chosen], of_size, minlength=nodes)
    return copied.max(axis=1)


def find_memory_seconds(pattern: Schedule, settings: Mapping[str, Any]) -> Array:
    """Return, for each size of a stack, the least time in which the memory of a node copies all
    messages within it; 0 if its bandwidth is unknown."""
    least = np.zeros(pattern.sizes)
    bandwidths = settings.get(MEMORY_BANDWIDTH)
    if not bandwidths or not pattern.messages:
        return least
    hierarchy = Hierarchy.of(settings.get("levels", {}))
    shortest = int(settings.get(MEMORY_FROM, 0))
    for distance, name in enumerate(hierarchy.names):
        if name in bandwidths:
            copied = count_copied_bytes(pattern, distance, hierarchy, shortest)
            least = np.maximum(least, copied / bandwidths[name])
    return least


def find_copy_rate(pattern: Schedule, seconds: Array) -> Array:
    """Return the bytes per second that the ranks of a node copy together, if the pattern takes so
    many seconds at each size of a stack."""
    levels = Hierarchy()
    copied = count_copied_bytes(pattern, levels.names.index(NODE), levels)
    return np.divide(copied, seconds, out=np.zeros(len(copied)), where=seconds > 0)
