"""All-to-all exchanges: Bruck, linear and pairwise, as MPICH and Open MPI have them."""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import every_step, phase, sequence
from commodel.patterns.phases import pairwise as pairwise_rounds
from commodel.patterns.schedule import Runs, Schedule, Work, check_rows


def bruck(ranks: int, bytes: int) -> Schedule:
    """A block that has d ranks to go travels 2^s in round s where bit s of d is set. Blocks are put in that order
    before the first round and back after the last: two copies of everything; and gathered into a message in every
    round: a copy of what is sent. (Unpacking is left out: a receive can place blocks itself.)"""
    rounds = (ranks - 1).bit_length()
    step, source = every_step(rounds, ranks)
    far = np.arange(ranks)
    sent = np.array([np.count_nonzero(far >> bit & 1) for bit in range(rounds)])

    def holds() -> Runs:
        row, block = np.nonzero(far >> step[:, None] & 1)  # of every message the distances that its blocks go
        start = (source[row] - (block & (1 << step[row]) - 1)) % ranks  # they have gone the lower bits of it
        first = (start * ranks + (start + block) % ranks) * bytes
        return Runs(row, first, np.full(len(row), bytes))

    # A step's copies come after its messages: round s packs for round s + 1; the first order and packing of round 0 are
    # a step of their own, without messages.
    before = Work.copy(0, far, (ranks + sent[0]) * bytes)
    packing = [Work.copy(number, far, count * bytes) for number, count in enumerate(sent[1:], 1)]
    after = Work.copy(rounds, far, ranks * bytes)
    work = Work.joined([before, *packing, after])
    return sequence(
        ranks, phase(step + 1, source, (source + (1 << step)) % ranks, sent[step] * bytes, holds, copies=work)
    )


def linear(ranks: int, bytes: int) -> Schedule:
    """Everyone sends to everyone at once, each beginning with the rank before its own."""
    check_rows(ranks * (ranks - 1))
    source, turn = np.divmod(np.arange(ranks * (ranks - 1)), ranks - 1)
    target = (source - turn - 1) % ranks
    return sequence(ranks, phase(0, source, target, bytes, lambda: (source * ranks + target) * bytes))


def pairwise(ranks: int, bytes: int) -> Schedule:
    """In step i every rank sends to the rank i further on and receives from the rank i before."""
    sizes = np.full(ranks, bytes)
    return sequence(ranks, pairwise_rounds(sizes, lambda source, target: (source * ranks + target) * bytes))


ALGORITHM = (
    Algorithm("alltoall", "bruck", "round s: blocks with bit s of their distance, 2^s further", bruck),
    Algorithm("alltoall", "linear", "everyone sends to everyone at once", linear),
    Algorithm("alltoall", "pairwise", "step i: to the rank i further on", pairwise),
)
