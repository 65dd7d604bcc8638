"""Allgathers: Bruck, neighbour exchange, recursive doubling and ring, as in MPICH and Open MPI."""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import (
    PowerOfTwoCore,
    join_stages,
    list_steps_and_sources,
    make_phase,
    make_ring_rounds,
    split_equally,
    wrap_addresses,
)
from commodel.patterns.repeated import Rounds
from commodel.patterns.schedule import Schedule, Work


def bruck(ranks: int, bytes: int) -> Schedule:
    """Return Bruck's allgather: in round s every rank sends all its blocks to the rank 2^s before
    it.

    In the end, each rank except 0 copies everything into the order of the ranks.
    """
    rounds = (ranks - 1).bit_length()
    step, source = list_steps_and_sources(rounds, ranks)
    distance = 1 << step
    length = np.minimum(distance, ranks - distance) * bytes
    return join_stages(
        ranks,
        make_phase(
            step,
            source,
            (source - distance) % ranks,
            length,
            lambda: wrap_addresses(source * bytes, length, ranks * bytes),
            copies=Work.copy(rounds - 1, np.arange(1, ranks), ranks * bytes),
        ),
    )


def neighbor_exchange(ranks: int, bytes: int) -> Schedule:
    """Return the neighbour exchange: a rank exchanges the two blocks that it received last with its
    left and right neighbour in turn.

    An odd number of ranks uses the ring instead, as in Open MPI.
    """
    if ranks % 2:
        return around_the_ring(ranks, bytes)
    rank = np.arange(ranks)
    first = make_phase(0, rank, rank ^ 1, bytes, lambda: rank * bytes)

    def find_receiver(round_number: np.ndarray | int, source: np.ndarray) -> np.ndarray:
        # Even ranks first send to the lower neighbour, odd ones to the upper.
        return (source + np.where((source + round_number) % 2, 1, -1)) % ranks

    def find_last_pair(round_number: np.ndarray | int, source: np.ndarray) -> np.ndarray:
        """Return the pair of ranks whose blocks arrived last, at growing distances on alternating
        sides."""
        side = np.where(source % 2, 1, -1)
        pair = source // 2 + np.where(
            round_number % 2, side * ((round_number + 1) // 2), -side * (round_number // 2)
        )
        return pair % (ranks // 2)

    sizes = np.full(ranks // 2, 2 * bytes)
    rounds = Rounds(
        ranks=ranks,
        count=ranks // 2 - 1,
        receiver=find_receiver,
        block=find_last_pair,
        sizes=sizes,
        address=lambda round_number, source: 2 * bytes * find_last_pair(round_number, source),
        shift=2,
    )
    return join_stages(ranks, first, rounds)


def recursive_doubling(ranks: int, bytes: int) -> Schedule:
    """Return recursive doubling: partners at distance 1, 2, 4, … exchange all their blocks.

    A number of ranks that is no power of two uses Bruck's algorithm, as in Open MPI.
    """
    if ranks & (ranks - 1):
        return bruck(ranks, bytes)
    return join_stages(ranks, PowerOfTwoCore(ranks).double(split_equally(bytes, ranks)))


def around_the_ring(ranks: int, bytes: int) -> Schedule:
    """Return the ring: in each of P − 1 steps every rank sends the block that it received last to
    the next rank."""
    return join_stages(ranks, make_ring_rounds(split_equally(bytes, ranks)))


ALGORITHM = (
    Algorithm(
        operation="allgather",
        short_name="bruck",
        title="round s: all blocks to the rank 2^s before",
        build=bruck,
    ),
    Algorithm(
        operation="allgather",
        short_name="neighbor-exchange",
        title="neighbours exchange the two blocks that they received last",
        build=neighbor_exchange,
    ),
    Algorithm(
        operation="allgather",
        short_name="recursive-doubling",
        title="partners at distance 1, 2, 4, … exchange all their blocks",
        build=recursive_doubling,
    ),
    Algorithm(
        operation="allgather",
        short_name="ring",
        title="every rank forwards the block that it received last",
        build=around_the_ring,
    ),
)
