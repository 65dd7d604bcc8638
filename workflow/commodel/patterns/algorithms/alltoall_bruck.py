"""Bruck: a block that has d ranks to go travels 2^s in round s where bit s of d is set. Blocks are put in that order
before the first round and back after the last: two copies of everything; and gathered into a message in every round: a
copy of what is sent. (Unpacking is left out: a receive can place blocks itself.)"""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import copies, every_step, phase, sequence
from commodel.patterns.schedule import Runs, Schedule, Work


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    rounds = (ranks - 1).bit_length()
    step, source = every_step(rounds, ranks)
    far = np.arange(ranks)
    sent = np.array([np.count_nonzero(far >> bit & 1) for bit in range(rounds)])
    length = sent[step] * bytes

    def holds() -> Runs:
        row, block = np.nonzero(far >> step[:, None] & 1)  # of every message the distances that its blocks go
        start = (source[row] - (block & (1 << step[row]) - 1)) % ranks  # they have gone the lower bits of it
        first = (start * ranks + (start + block) % ranks) * bytes
        return Runs(row, first, np.full(len(row), bytes))

    # A step's copies come after its messages: round s packs for round s + 1; the first order and packing of round 0 are
    # a step of their own, without messages.
    rank = np.arange(ranks)
    before = Work.copy(0, rank, (ranks + sent[0]) * bytes)
    packing = [Work.copy(number, rank, count * bytes) for number, count in enumerate(sent[1:], 1)]
    after = Work.copy(rounds, rank, ranks * bytes)
    travel = phase(step + 1, source, (source + (1 << step)) % ranks, length, holds)
    return sequence(ranks, (travel, copies(Work.joined([before, *packing, after]))))


ALGORITHM = Algorithm("alltoall", "bruck", "round s: blocks with bit s of their distance, 2^s further", build)
