"""Windowed gather of the cluster model's paper: no more than W ranks send to the root at once. Rank j > W waits for a
token from rank j − W, which is sent when that one's block is on its way; the token is an empty message. How large W
should be, the cluster family knows (`commodel window`)."""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.arguments import whole_number
from commodel.patterns.phases import phase, sequence
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    window, source = whole_number(argument), np.arange(1, ranks)
    turn = (source - 1) // window
    blocks = phase(2 * turn, source, 0, bytes, lambda: source * bytes)
    passing = source[: max(ranks - 1 - window, 0)]
    tokens = phase(2 * ((passing - 1) // window) + 1, passing, passing + window, 0)
    return sequence(ranks, (blocks, tokens), root=0)


ALGORITHM = Algorithm("gather", "windowed", "at most W ranks send at once, tokens passed on", build, argument="W")
