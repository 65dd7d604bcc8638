"""In-order binary tree, pipelined: every rank combines what lies before it in the order of the ranks. The last rank
gets the result and hands it to the root."""

from commodel.patterns.algorithms import RANK_ORDER, Algorithm
from commodel.patterns.phases import PIPELINED, phase, segment_sizes, segmented, sequence
from commodel.patterns.rounds import in_order, up
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    upwards = segmented(up(in_order(ranks), bytes), segment_sizes(bytes, argument))
    return sequence(ranks, upwards, phase(0, ranks - 1, 0, bytes), root=0)


ALGORITHM = Algorithm(
    "reduce", "in-order", "segments up a binary tree that keeps the order", build, argument=PIPELINED, order=RANK_ORDER
)
