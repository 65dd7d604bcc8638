"""Gathers to rank 0 and scatters from it, which are mirror images of each other: over the binomial tree, all at once,
one after the other, or with a window of messages in flight."""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.arguments import Argument, Kind, count
from commodel.patterns.phases import equal, phase, scatter_tree, sequence
from commodel.patterns.schedule import Schedule
from commodel.units import parse_bytes


def gather_binomial(ranks: int, bytes: int) -> Schedule:
    """Blocks are joined on the way, so that a message carries its sender's whole subtree."""
    return sequence(ranks, scatter_tree(equal(bytes, ranks)).backwards(), root=0)


def gather_linear(ranks: int, bytes: int) -> Schedule:
    source = np.arange(1, ranks)
    return sequence(ranks, phase(0, source, 0, bytes, lambda: source * bytes), root=0)


def gather_linear_sync(ranks: int, bytes: int, first: int) -> Schedule:
    """As in Open MPI: the root asks one rank after the other, each sends the first part of its block when it is asked
    and the rest, which may be empty, while the next is being asked."""
    first = min(first, bytes)
    source = np.arange(1, ranks)
    asking = phase(2 * (source - 1), 0, source, 0)
    begun = phase(2 * source - 1, source, 0, first, lambda: source * bytes)
    ended = phase(2 * source, source, 0, bytes - first, lambda: source * bytes + first)
    return sequence(ranks, (asking, begun, ended), root=0)


def gather_windowed(ranks: int, bytes: int, window: int) -> Schedule:
    """The cluster model's paper: no more than W ranks send to the root at once. Rank j > W waits for a token from rank
    j − W, which is sent when that one's block is on its way; the token is an empty message. How large W should be, the
    cluster model computes (`commodel advise --window`)."""
    source = np.arange(1, ranks)
    turn = (source - 1) // window
    blocks = phase(2 * turn, source, 0, bytes, lambda: source * bytes)
    passing = source[: max(ranks - 1 - window, 0)]
    tokens = phase(2 * ((passing - 1) // window) + 1, passing, passing + window, 0)
    return sequence(ranks, (blocks, tokens), root=0)


def scatter_binomial(ranks: int, bytes: int) -> Schedule:
    """Farthest first: a message carries the blocks of its receiver's whole subtree."""
    return sequence(ranks, scatter_tree(equal(bytes, ranks)))


def scatter_linear(ranks: int, bytes: int) -> Schedule:
    target = np.arange(1, ranks)
    return sequence(ranks, phase(0, 0, target, bytes, lambda: target * bytes))


def scatter_windowed(ranks: int, bytes: int, window: int = 1) -> Schedule:
    """Of the root's blocks no more than W are in flight unacknowledged; an acknowledgement is an empty message."""
    target = np.arange(1, ranks)
    turn = (target - 1) // window
    blocks = phase(2 * turn, 0, target, bytes, lambda: target * bytes)
    known = target[: max(ranks - 1 - window, 0)]  # the root waits for these before it goes on
    return sequence(ranks, (blocks, phase(2 * ((known - 1) // window) + 1, known, 0, 0)))


WINDOW = count("W", Kind.WINDOW)
OPEN_MPI_FIRST = Argument("FIRST BYTES", Kind.FIRST_PART, parse_bytes, optional=True, default=1024)

ALGORITHM = (
    Algorithm("gather", "binomial", "binomial tree, blocks joined on the way", gather_binomial),
    Algorithm("gather", "linear", "every rank sends to the root at once", gather_linear),
    Algorithm("gather", "linear-sync", "the root asks one rank after the other", gather_linear_sync, OPEN_MPI_FIRST),
    Algorithm("gather", "windowed", "at most W ranks send at once, tokens passed on", gather_windowed, WINDOW),
    Algorithm("scatter", "binomial", "binomial tree, blocks parted on the way", scatter_binomial),
    Algorithm("scatter", "linear", "root sends to every rank in turn", scatter_linear),
    Algorithm("scatter", "linear-sync", "the next block when the last has been acknowledged", scatter_windowed),
    Algorithm("scatter", "windowed", "at most W blocks unacknowledged", scatter_windowed, WINDOW),
)
