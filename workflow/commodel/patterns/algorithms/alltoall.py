"""All-to-all exchanges: Bruck, linear and pairwise, as in MPICH and Open MPI."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import (
    join_stages,
    list_steps_and_sources,
    make_pairwise_rounds,
    make_phase,
)
from commodel.patterns.schedule import Runs, Schedule, Work, check_rows


def bruck(ranks: int, bytes: int) -> Schedule:
    """Return Bruck's exchange: a block for the rank d further on travels 2^s in round s if bit s of
    d is set.

    Before the first round and after the last, each rank reorders all its blocks: two copies. Every
    round packs its blocks into a message: a copy of the sent bytes. There is no copy for unpacking,
    since a receive can place blocks itself.
    """
    rounds = (ranks - 1).bit_length()
    step, source = list_steps_and_sources(rounds, ranks)
    distances = np.arange(ranks)
    sent = np.array([np.count_nonzero(distances >> bit & 1) for bit in range(rounds)])

    def contents() -> Runs:
        # the distances of the blocks of every message
        row, block = np.nonzero(distances >> step[:, None] & 1)
        start = (
            source[row] - (block & (1 << step[row]) - 1)
        ) % ranks  # they have travelled the lower bits of the distance
        first = (start * ranks + (start + block) % ranks) * bytes
        return Runs(row, first, np.full(len(row), bytes))

    # A step's copies come after its messages: round s packs for round s + 1. The first reordering
    # and the packing of round 0 are a step of their own, without messages.
    before = Work.copy(0, distances, (ranks + sent[0]) * bytes)
    packing = [
        Work.copy(number, distances, count * bytes) for number, count in enumerate(sent[1:], 1)
    ]
    after = Work.copy(rounds, distances, ranks * bytes)
    work = Work.concatenate([before, *packing, after])
    return join_stages(
        ranks,
        make_phase(
            step + 1,
            source,
            (source + (1 << step)) % ranks,
            sent[step] * bytes,
            contents,
            copies=work,
        ),
    )


def linear(ranks: int, bytes: int) -> Schedule:
    """Return the exchange in which every rank sends to all others at once, starting with the
    previous rank."""
    check_rows(ranks * (ranks - 1))
    source, target = _list_sources_and_targets(ranks)
    exchange = join_stages(
        ranks, make_phase(0, source, target, bytes, lambda: (source * ranks + target) * bytes)
    )
    return replace(exchange, shift=1)


@lru_cache(maxsize=1)  # a table has many sizes of one number of ranks
def _list_sources_and_targets(ranks: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranks of messages from each rank to all others, the previous one first."""
    target = (np.arange(ranks)[:, None] - np.arange(1, ranks)).ravel()
    target[target < 0] += ranks
    return np.repeat(np.arange(ranks), ranks - 1), target


def pairwise(ranks: int, bytes: int) -> Schedule:
    """Return the exchange in which, in step i, every rank sends to the rank i further on."""
    sizes = np.full(ranks, bytes)
    return join_stages(
        ranks, make_pairwise_rounds(sizes, lambda source, target: (source * ranks + target) * bytes)
    )


ALGORITHM = (
    Algorithm(
        operation="alltoall",
        short_name="bruck",
        title="round s: blocks with bit s of their distance, 2^s further",
        build=bruck,
    ),
    Algorithm(
        operation="alltoall",
        short_name="linear",
        title="everyone sends to everyone at once",
        build=linear,
    ),
    Algorithm(
        operation="alltoall",
        short_name="pairwise",
        title="step i: rank r sends to rank r + i",
        build=pairwise,
    ),
)
