"""Pipelined binary tree: segments follow each other up a tree where every rank has two children."""

from commodel.patterns.algorithms import ANY_ORDER, Algorithm
from commodel.patterns.phases import PIPELINED, segment_sizes, segmented, sequence
from commodel.patterns.rounds import binary, up
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    return sequence(ranks, segmented(up(binary(ranks), bytes), segment_sizes(bytes, argument)), root=0)


ALGORITHM = Algorithm(
    "reduce", "binary", "segments follow each other up a binary tree", build, argument=PIPELINED, order=ANY_ORDER
)
