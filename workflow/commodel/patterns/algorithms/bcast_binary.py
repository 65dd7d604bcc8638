"""Pipelined binary tree: segments follow each other down a tree where every rank has two children."""

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import PIPELINED, segment_sizes, segmented, sequence
from commodel.patterns.rounds import binary, whole
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    return sequence(ranks, segmented(whole(binary(ranks), bytes), segment_sizes(bytes, argument)))


ALGORITHM = Algorithm("bcast", "binary", "segments follow each other down a binary tree", build, argument=PIPELINED)
