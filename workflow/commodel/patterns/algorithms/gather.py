"""Gathers to rank 0 and scatters from it: over the binomial tree, linear, with one request after
the other, or with a window of messages in flight.
"""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.arguments import Argument, Kind, count_argument
from commodel.patterns.phases import join_stages, make_phase, make_scatter_tree, split_equally
from commodel.patterns.schedule import Schedule
from commodel.units import parse_bytes


def gather_binomial(ranks: int, bytes: int) -> Schedule:
    """Return the gather over a binomial tree, in which a message carries the blocks of its sender's
    whole subtree."""
    return join_stages(ranks, make_scatter_tree(split_equally(bytes, ranks)).reverse(), root=0)


def gather_linear(ranks: int, bytes: int) -> Schedule:
    source = np.arange(1, ranks)
    return join_stages(ranks, make_phase(0, source, 0, bytes, lambda: source * bytes), root=0)


def gather_linear_sync(ranks: int, bytes: int, first_bytes: int) -> Schedule:
    """Return Open MPI's linear-sync gather: the root requests one rank after the other.

    Each rank sends `first_bytes` of its block on request, and the rest, which may be empty, during
    the next request.
    """
    first_bytes = min(first_bytes, bytes)
    source = np.arange(1, ranks)
    requests = make_phase(2 * (source - 1), 0, source, 0)
    first_parts = make_phase(2 * source - 1, source, 0, first_bytes, lambda: source * bytes)
    rests = make_phase(
        2 * source, source, 0, bytes - first_bytes, lambda: source * bytes + first_bytes
    )
    return join_stages(ranks, (requests, first_parts, rests), root=0)


def gather_windowed(ranks: int, bytes: int, window: int) -> Schedule:
    """Return the gather of the cluster model's paper, in which at most W ranks send to the root at
    once.

    Rank j > W waits for a token, an empty message, from rank j − W, which sends it after its block.
    The cluster model determines W (`advice.gather_windows`).
    """
    source = np.arange(1, ranks)
    round_number = (source - 1) // window
    blocks = make_phase(2 * round_number, source, 0, bytes, lambda: source * bytes)
    token_senders = source[: max(ranks - 1 - window, 0)]
    tokens = make_phase(
        2 * ((token_senders - 1) // window) + 1, token_senders, token_senders + window, 0
    )
    return join_stages(ranks, (blocks, tokens), root=0)


def scatter_binomial(ranks: int, bytes: int) -> Schedule:
    """Return the scatter over a binomial tree, farthest rank first; a message carries the blocks of
    its receiver's subtree."""
    return join_stages(ranks, make_scatter_tree(split_equally(bytes, ranks)))


def scatter_linear(ranks: int, bytes: int) -> Schedule:
    target = np.arange(1, ranks)
    return join_stages(ranks, make_phase(0, 0, target, bytes, lambda: target * bytes))


def scatter_windowed(ranks: int, bytes: int, window: int = 1) -> Schedule:
    """Return the scatter with at most W unacknowledged blocks in flight; an acknowledgement is an
    empty message."""
    target = np.arange(1, ranks)
    round_number = (target - 1) // window
    blocks = make_phase(2 * round_number, 0, target, bytes, lambda: target * bytes)
    # the root waits for these before it continues
    acknowledging_ranks = target[: max(ranks - 1 - window, 0)]
    acknowledgements = make_phase(
        2 * ((acknowledging_ranks - 1) // window) + 1, acknowledging_ranks, 0, 0
    )
    return join_stages(ranks, (blocks, acknowledgements))


WINDOW = count_argument("W", Kind.WINDOW)
FIRST_BYTES = Argument("FIRST BYTES", Kind.FIRST_PART, parse_bytes, optional=True, default=1024)

ALGORITHM = (
    Algorithm(
        operation="gather",
        short_name="binomial",
        title="binomial tree, blocks joined on the way",
        build=gather_binomial,
    ),
    Algorithm(
        operation="gather",
        short_name="linear",
        title="every rank sends to the root at once",
        build=gather_linear,
    ),
    Algorithm(
        operation="gather",
        short_name="linear-sync",
        title="the root requests one rank after the other",
        build=gather_linear_sync,
        argument=FIRST_BYTES,
    ),
    Algorithm(
        operation="gather",
        short_name="windowed",
        title="at most W ranks send at once, by tokens",
        build=gather_windowed,
        argument=WINDOW,
    ),
    Algorithm(
        operation="scatter",
        short_name="binomial",
        title="binomial tree, blocks split on the way",
        build=scatter_binomial,
    ),
    Algorithm(
        operation="scatter",
        short_name="linear",
        title="root sends to one rank after the other",
        build=scatter_linear,
    ),
    Algorithm(
        operation="scatter",
        short_name="linear-sync",
        title="the next block when the last has been acknowledged",
        build=scatter_windowed,
    ),
    Algorithm(
        operation="scatter",
        short_name="windowed",
        title="at most W blocks unacknowledged",
        build=scatter_windowed,
        argument=WINDOW,
    ),
)
