"""LogGP's price of the catalogue against what is derived by hand, message by message: P from 2 to 64, gaps above and
below the overhead, long messages whose bytes outweigh everything else."""

from collections.abc import Iterator
from itertools import product

import pytest

from commodel.patterns.build import schedule
from tests.models.test_closed_forms import price
from tests.patterns.catalogue import point
from tests.tables import agree

MACHINES = {  # L, o, g, G: overhead counts; the gap is above the overhead; above a whole message; bytes outweigh all
    "overhead": (10.0, 1.5, 1.0, 0.001),
    "gap": (10.0, 1.5, 4.0, 0.001),
    "wide gap": (3.0, 0.5, 20.0, 0.002),
    "bytes": (1.0, 0.5, 0.5, 0.1),
}
POWERS = (2, 4, 8, 16, 32, 64)
ANY = (*range(2, 10), 15, 17, 31, 33, 64)

SIZES = (1, 1001)


def rounds(ranks: int) -> int:
    return (ranks - 1).bit_length()


class Machine:
    def __init__(self, name: str, size: int):
        self.name = f"{name}, {size} B"
        self.L, self.o, self.g, self.G = MACHINES[name]
        self.body = (size - 1) * self.G
        self.one = 2 * self.o + self.L + self.body  # a message alone
        self.apart = max(self.g + self.body, self.o)  # from one message to the next

    def __repr__(self) -> str:
        return self.name

    def price(self, operation: str, algorithm: str, ranks: int, size: int, **more) -> float:
        pattern = schedule(point(operation, algorithm, ranks=ranks, bytes=size))
        return price("loggp", pattern, L=self.L, o_s=self.o, o_r=self.o, g=self.g, G=self.G, **more)

    def of(self, size: int) -> tuple[float, float]:
        """A message of another size alone, and how long after it the next may start."""
        body = max(size - 1, 0) * self.G
        return 2 * self.o + self.L + body, max(self.g + body, self.o)


def every(counts: tuple[int, ...]) -> Iterator[tuple[Machine, int, int]]:
    """(machine, size, ranks)"""
    for name, size, ranks in product(MACHINES, SIZES, counts):
        yield Machine(name, size), size, ranks


def test_flat():
    """P − 2 messages follow the first, each as soon as the port is free."""
    agree(
        ((m, operation, ranks), m.price(operation, "linear", ranks, size), (ranks - 2) * m.apart + m.one)
        for m, size, ranks in every(ANY)
        for operation in ("bcast", "scatter", "gather")
    )


def test_binomial_broadcast():
    """The last leaf waits for the root's last message or for log2 P messages in a row, whichever is later."""
    agree(
        ((m, ranks), m.price("bcast", "binomial", ranks, size), m.one + (rounds(ranks) - 1) * max(m.one, m.apart))
        for m, size, ranks in every(POWERS)
    )


@pytest.mark.parametrize("gamma", [0.0, 0.05])
def test_recursive_doubling(gamma):
    """Every round is a message each way, then the combination; the next send waits for that, or for the gap."""

    def closed(m: Machine, size: int, ranks: int) -> float:
        step = m.one + gamma * size
        return step + (rounds(ranks) - 1) * max(step, m.apart)

    agree(
        ((m, ranks), m.price("allreduce", "recursive-doubling", ranks, size, gamma=gamma), closed(m, size, ranks))
        for m, size, ranks in every(POWERS)
    )


def test_ring():
    agree(
        ((m, ranks), m.price("allgather", "ring", ranks, size), m.one + (ranks - 2) * max(m.one, m.apart))
        for m, size, ranks in every(ANY)
    )


def test_dissemination():
    """An empty message costs what one of a byte does."""
    agree(
        ((m, ranks), m.price("barrier", "dissemination", ranks, 0), m.one + (rounds(ranks) - 1) * max(m.one, m.apart))
        for m, size, ranks in every(ANY)
        if size == 1
    )


def test_binomial_scatter():
    """A root of n ranks sends n/2 blocks, then n/4, …; each receiver is the root of as many ranks."""

    def below(m: Machine, size: int, ranks: int) -> float:
        start, last, part = 0.0, 0.0, ranks // 2
        while part:
            took, apart = m.of(part * size)
            last = max(last, start + took + below(m, size, part))
            start += apart
            part //= 2
        return last

    agree(
        ((m, ranks), m.price("scatter", "binomial", ranks, size), below(m, size, ranks))
        for m, size, ranks in every(POWERS)
    )


def test_binomial_gather():
    """A root of n ranks takes a message of 1 block, then of 2, … up to n/2; each sender is done with its own first."""

    def ready(m: Machine, size: int, ranks: int) -> float:
        begin, done, part = -1e9, 0.0, 1
        while part < ranks:
            # Its bytes come in before it is there: the gap is that of the later message.
            took, apart = m.of(part * size)
            begin = max(ready(m, size, part) + took - m.o, begin + apart, done)
            done = begin + m.o
            part *= 2
        return done

    agree(
        ((m, ranks), m.price("gather", "binomial", ranks, size), ready(m, size, ranks))
        for m, size, ranks in every(POWERS)
    )


def test_linear_alltoall():
    """A rank posts P − 1 sends, which leave as the port allows; then it takes one message every `apart`."""

    def closed(m: Machine, ranks: int) -> float:
        return max((ranks - 1) * m.o, m.one - m.o) + (ranks - 2) * m.apart + m.o

    agree(((m, ranks), m.price("alltoall", "linear", ranks, size), closed(m, ranks)) for m, size, ranks in every(ANY))
