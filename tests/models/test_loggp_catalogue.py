"""LogGP's price of the catalogue against what is derived by hand, message by message: P from 2 to 64, gaps above and
below the overhead, long messages whose bytes outweigh everything else."""

import pytest

from commodel.patterns.build import schedule
from tests.models.test_closed_forms import price
from tests.patterns.catalogue import point

MACHINES = {  # L, o, g, G: overhead counts; the gap is above the overhead; above a whole message; bytes outweigh all
    "overhead": (10.0, 1.5, 1.0, 0.001),
    "gap": (10.0, 1.5, 4.0, 0.001),
    "wide gap": (3.0, 0.5, 20.0, 0.002),
    "bytes": (1.0, 0.5, 0.5, 0.1),
}
POWERS = (2, 4, 8, 16, 32, 64)
ANY = (*range(2, 10), 15, 17, 31, 33, 64)

every_machine = pytest.mark.parametrize("machine", MACHINES)
sizes = pytest.mark.parametrize("size", [1, 1001])


class Machine:
    def __init__(self, name: str, size: int):
        self.L, self.o, self.g, self.G = MACHINES[name]
        self.body = (size - 1) * self.G
        self.one = 2 * self.o + self.L + self.body  # a message alone
        self.apart = max(self.g + self.body, self.o)  # from one message to the next

    def price(self, operation: str, algorithm: str, ranks: int, size: int, **more) -> float:
        pattern = schedule(point(operation, algorithm, ranks=ranks, bytes=size))
        return price("loggp", pattern, L=self.L, o_s=self.o, o_r=self.o, g=self.g, G=self.G, **more)

    def of(self, size: int) -> tuple[float, float]:
        """A message of another size alone, and how long after it the next may start."""
        body = max(size - 1, 0) * self.G
        return 2 * self.o + self.L + body, max(self.g + body, self.o)


@every_machine
@sizes
@pytest.mark.parametrize("ranks", ANY)
@pytest.mark.parametrize(("operation", "algorithm"), [("bcast", "linear"), ("scatter", "linear"), ("gather", "linear")])
def test_flat(machine, size, ranks, operation, algorithm):
    """P − 2 messages follow the first, each as soon as the port is free."""
    m = Machine(machine, size)
    assert m.price(operation, algorithm, ranks, size) == pytest.approx((ranks - 2) * m.apart + m.one)


@every_machine
@sizes
@pytest.mark.parametrize("ranks", POWERS)
def test_binomial_broadcast(machine, size, ranks):
    """The last leaf waits for the root's last message or for log2 P messages in a row, whichever is later."""
    m, rounds = Machine(machine, size), ranks.bit_length() - 1
    closed = m.one + (rounds - 1) * max(m.one, m.apart)
    assert m.price("bcast", "binomial", ranks, size) == pytest.approx(closed)


@every_machine
@sizes
@pytest.mark.parametrize("ranks", POWERS)
@pytest.mark.parametrize("gamma", [0.0, 0.05])
def test_recursive_doubling(machine, size, ranks, gamma):
    """Every round is a message each way, then the combination; the next send waits for that, or for the gap."""
    m, rounds = Machine(machine, size), ranks.bit_length() - 1
    step = m.one + gamma * size
    closed = step + (rounds - 1) * max(step, m.apart)
    assert m.price("allreduce", "recursive-doubling", ranks, size, gamma=gamma) == pytest.approx(closed)


@every_machine
@sizes
@pytest.mark.parametrize("ranks", ANY)
def test_ring(machine, size, ranks):
    m = Machine(machine, size)
    assert m.price("allgather", "ring", ranks, size) == pytest.approx(m.one + (ranks - 2) * max(m.one, m.apart))


@every_machine
@pytest.mark.parametrize("ranks", ANY)
def test_dissemination(machine, ranks):
    m = Machine(machine, 1)  # an empty message costs what one of a byte does
    rounds = (ranks - 1).bit_length()
    assert m.price("barrier", "dissemination", ranks, 0) == pytest.approx(m.one + (rounds - 1) * max(m.one, m.apart))


@every_machine
@sizes
@pytest.mark.parametrize("ranks", POWERS)
def test_binomial_scatter(machine, size, ranks):
    """A root of n ranks sends n/2 blocks, then n/4, …; each receiver is the root of as many ranks."""
    m = Machine(machine, size)

    def below(n: int) -> float:
        start, last, part = 0.0, 0.0, n // 2
        while part:
            one, apart = m.of(part * size)
            last = max(last, start + one + below(part))
            start += apart
            part //= 2
        return last

    assert m.price("scatter", "binomial", ranks, size) == pytest.approx(below(ranks))


@every_machine
@sizes
@pytest.mark.parametrize("ranks", POWERS)
def test_binomial_gather(machine, size, ranks):
    """A root of n ranks takes a message of 1 block, then of 2, … up to n/2; each sender is done with its own first."""
    m = Machine(machine, size)

    def ready(n: int) -> float:
        begin, done, part = -1e9, 0.0, 1
        while part < n:
            one, apart = m.of(part * size)  # its bytes come in before it is there: the gap is that of the later message
            begin = max(ready(part) + one - m.o, begin + apart, done)
            done = begin + m.o
            part *= 2
        return done

    assert m.price("gather", "binomial", ranks, size) == pytest.approx(ready(ranks))


@every_machine
@sizes
@pytest.mark.parametrize("ranks", ANY)
def test_linear_alltoall(machine, size, ranks):
    """A rank posts P − 1 sends, which leave as the port allows; then it takes one message every `apart`."""
    m = Machine(machine, size)
    first = max((ranks - 1) * m.o, m.one - m.o)
    assert m.price("alltoall", "linear", ranks, size) == pytest.approx(first + (ranks - 2) * m.apart + m.o)
