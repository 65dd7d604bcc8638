"""Split binary tree: one half of the message goes down each side of a binary tree, in segments; then ranks of the two
sides exchange halves in pairs. A rank that is left over gets its other half from the root. As in Open MPI, a message
whose half is shorter than a segment goes down a chain instead."""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.algorithms.bcast_chain import build as down_a_chain
from commodel.patterns.phases import PIPELINED, UNCUT, Phase, phase, segment_size, segment_sizes, segmented, sequence
from commodel.patterns.rounds import Edges, binary, shares, whole
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    _, middle, end = (int(place) for place in shares(bytes, 2))
    if end - middle < (segment_size(argument) if segment_size(argument) < UNCUT else 1):
        return down_a_chain(ranks, bytes, argument)
    edges = binary(ranks)
    left = edges.dst % 2 == 1  # all below rank 1
    down = _down(edges, left, 0, middle, argument), _down(edges, ~left, middle, end, argument)
    first = np.arange(1, ranks, 2)
    partner = np.where(first + 1 < ranks, first + 1, 0)
    exchange = (
        phase(0, first[partner > 0], partner[partner > 0], middle),
        phase(0, partner, first, end - middle, middle),
    )
    return sequence(ranks, down, exchange)


def _down(edges: Edges, side: np.ndarray, start: int, end: int, argument: str) -> Phase:
    """One side of the tree."""
    its = Edges(edges.step[side], edges.src[side], edges.dst[side], edges.below[side])
    return segmented(whole(its, end - start), segment_sizes(end - start, argument), start=start)


ALGORITHM = Algorithm(
    "bcast", "split-binary", "a half down each side of a binary tree, then halves exchanged", build, argument=PIPELINED
)
