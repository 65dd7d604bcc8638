"""Optimal broadcast trees under LogP and the postal model (`make_optimal_tree`).

A node that has the message sends it to one more node every `gap`, and each message arrives
`latency` after its send starts. In an optimal broadcast, all nodes send as early and as often as
possible: the N earliest arrivals of that infinite tree are the optimal tree (Karp, Sahay, Santos,
Schauser, SPAA 1993; for gap 1, the postal model, Bar-Noy and Kipnis, SPAA 1992). Times are
integers, so they are compared exactly.
"""

from fractions import Fraction

import numpy as np

from commodel.errors import UserError
from commodel.patterns.arguments import Argument, Kind, count_argument
from commodel.patterns.trees.topologies import Topology
from commodel.patterns.trees.tree import Tree, check_size
from commodel.units import parse_bare_number, parse_number, parse_seconds

MAX_DENOMINATOR = 10**9  # of the latency as a fraction of the gap
DEEPEST_TREE = 100_000


def _read_times(text: str) -> list[Fraction]:
    """Return L, o and g: three times such as 5us, or three numbers, since only their ratios
    matter."""
    times = [time.strip() for time in text.split(",")]
    if len(times) != 3:
        raise UserError("wanted three times such as 5us")
    parse = (
        parse_number
        if all(parse_bare_number(time) is not None for time in times)
        else parse_seconds
    )
    L, o, g = (Fraction(str(parse(time))) for time in times)
    if not L + 2 * o:
        raise UserError("wanted L or o above 0")
    return [L, o, g]


def _read_latency(text: str) -> Fraction:
    latency = Fraction(str(parse_number(text)))
    if latency < 1:
        raise UserError("wanted a LAMBDA of 1 or more")
    return latency


def _logp(times: list[Fraction], nodes: int) -> Tree:
    """Return the tree under LogP: a message arrives L + 2·o after its start, and the next may start
    max(g, o) later."""
    L, o, g = times
    return make_optimal_tree(nodes, L + 2 * o, max(g, o))


def _postal(latency: Fraction, nodes: int) -> Tree:
    """Return the tree of the postal model: binomial for LAMBDA 1, a Fibonacci tree for 2."""
    return make_optimal_tree(nodes, latency, Fraction(1))


def make_optimal_tree(nodes: int, latency: Fraction, gap: Fraction) -> Tree:
    """Return the optimal tree, built level by level, so that parents come first.

    The children of a node are in the order of sending: the first has the most time left, and the
    largest subtree. Complexity: O(nodes), with one pass of numpy per level.
    """
    check_size(nodes)
    # If one message takes as long as sending to all, no node forwards it. If all can forward it
    # within one gap, no node sends twice. Larger and smaller ratios give the same trees.
    ratio = min(latency / gap, Fraction(nodes)) if gap else Fraction(nodes)
    ratio = max(ratio, Fraction(1, nodes)).limit_denominator(MAX_DENOMINATOR)
    if ratio < Fraction(1, DEEPEST_TREE):
        raise UserError(
            f"found a tree deeper than {DEEPEST_TREE:,}, since the latency is a small part of the gap"
        )
    travel, unit = ratio.numerator, ratio.denominator
    end = _find_finish_time(nodes, travel, unit)
    # arrival times of a level's nodes, and the number of the first
    level = np.zeros(1, dtype=int)
    first = 0
    parents = [np.array([-1])]
    arrivals = [level]
    while len(level):
        children = np.maximum((end - travel - level) // unit + 1, 0)
        nth = np.arange(children.sum()) - np.repeat(np.cumsum(children) - children, children)
        parents.append(np.repeat(np.arange(first, first + len(level)), children))
        first += len(level)
        level = np.repeat(level, children) + travel + nth * unit
        arrivals.append(level)
    return Tree(
        _remove_surplus_leaves(
            np.concatenate(parents), np.flatnonzero(np.concatenate(arrivals) == end), nodes
        )
    )


def count_reached(end: int, travel: int, unit: int, limit: int) -> int:
    """Return the number of nodes that have the message at time `end`, at most `limit`.

    At depth d, with up to s gaps waited on the way, there are C(s + d, d).
    """
    total = 0
    depth = 0
    remaining = end
    while total < limit and remaining >= 0:
        total += _choose(remaining // unit + depth, depth, limit)
        depth += 1
        remaining -= travel
    return min(total, limit)


def _choose(n: int, k: int, limit: int) -> int:
    """Return C(n, k), or a number ≥ `limit` if it is larger."""
    product = 1
    k = min(k, n - k)
    for factor in range(1, k + 1):
        product = product * (n - k + factor) // factor
        if product >= limit:
            break
    return product


def _find_finish_time(nodes: int, travel: int, unit: int) -> int:
    """Return the earliest time at which `nodes` nodes have the message."""
    low = 0
    high = travel + unit * nodes
    while low < high:
        middle = (low + high) // 2
        if count_reached(middle, travel, unit, nodes) >= nodes:
            high = middle
        else:
            low = middle + 1
    return low


def _remove_surplus_leaves(parent: np.ndarray, last: np.ndarray, nodes: int) -> np.ndarray:
    """Return the tree with `nodes` nodes: remove surplus leaves, all with the latest arrival
    time."""
    keep = np.delete(np.arange(len(parent)), last[len(last) - (len(parent) - nodes) :])
    number = np.zeros(len(parent), dtype=int)
    number[keep] = np.arange(nodes)
    return np.concatenate([[-1], number[parent[keep[1:]]]])


NODES = count_argument("NODES")
TIMES = Argument("L,o,g", Kind.TIMES, _read_times)
LATENCY = Argument("LAMBDA", Kind.NUMBER, _read_latency)

TOPOLOGY = (
    Topology(
        name="optimal",
        title="optimal broadcast tree under LogP",
        arguments=(TIMES, NODES),
        separators="@",
        build=_logp,
    ),
    Topology(
        name="postal",
        title="optimal broadcast tree of the postal model",
        arguments=(LATENCY, NODES),
        separators="@",
        build=_postal,
    ),
)
