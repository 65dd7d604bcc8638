"""Windowed scatter: of the root's blocks no more than W are on their way unacknowledged. The mirror image of the
windowed gather; an acknowledgement is an empty message."""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.arguments import whole_number
from commodel.patterns.phases import phase, sequence
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    window, target = whole_number(argument), np.arange(1, ranks)
    turn = (target - 1) // window
    blocks = phase(2 * turn, 0, target, bytes, lambda: target * bytes)
    known = target[: max(ranks - 1 - window, 0)]  # the root waits for these before it goes on
    return sequence(ranks, (blocks, phase(2 * ((known - 1) // window) + 1, known, 0, 0)))


ALGORITHM = Algorithm("scatter", "windowed", "at most W blocks unacknowledged", build, argument="W")
