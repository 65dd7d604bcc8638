"""Closed forms from the papers, and LogGP's prediction of the catalogue derived by hand, message by
message (P from 2 to 64, gaps above and below the overhead, long messages whose bytes outweigh
everything else)."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from commodel.models.evaluation.values import Values
from commodel.models.families import complete_values, find_family
from commodel.patterns.build import build_schedule
from commodel.patterns.schedule import Schedule, Work
from tests.models.exact import cost as predict
from tests.patterns.catalogue import point
from tests.tables import agree

HOCKNEY = {"alpha.a": 5.0, "beta.a": 0.1}


def bcast(algorithm: str, ranks: int, bytes: int = 1) -> Schedule:
    return build_schedule(point("bcast", algorithm, ranks=ranks, bytes=bytes))


@pytest.mark.parametrize("ranks", [2, 4, 16])
def test_pram_ring_allreduce(ranks):
    """In p − 1 steps a rank combines a block of m/p bytes. The other steps only copy, and PRAM has
    no time for copies."""
    pattern = build_schedule(point("allreduce", "ring", ranks=ranks, bytes=1600))
    assert predict("pram", pattern, gamma=3) == pytest.approx(3 * (ranks - 1) * 1600 / ranks)


@pytest.mark.parametrize(("ranks", "steps"), [(2, 1), (8, 3), (11, 4)])
def test_bsp_binomial_broadcast(ranks, steps):
    """Every superstep has h = 1."""
    assert predict("bsp", bcast("binomial", ranks), g=2, **{"l.a": 10}) == steps * (2 + 10)


@pytest.mark.parametrize("ranks", [2, 9])
def test_bsp_linear_gather(ranks):
    """A linear gather is one superstep; h is the number of messages that the root receives."""
    pattern = build_schedule(point("gather", "linear", ranks=ranks, bytes=8))
    forms = {"l": "linear"}
    assert (
        predict("bsp", pattern, forms, g=2, **{"l.a": 10, "l.b": 3})
        == (ranks - 1) * 2 + 10 + 3 * ranks
    )


def test_bsp_supersteps_by_hand():
    """The supersteps have h = 2, 1, 0 and w = 30, 0, 5, where w is the largest work of a rank."""
    work = Work.reduce([0, 0, 0, 2], [1, 1, 0, 3], [10, 20, 25, 5])
    pattern = Schedule.of(4, [0, 0, 0, 1], [0, 0, 2, 3], [1, 2, 3, 0], 100, work=work)
    assert predict("bsp", pattern, g=7, gamma=1, **{"l.a": 100}) == (30 + 2 * 7 + 100) + (
        0 + 7 + 100
    ) + (5 + 0 + 100)


def test_bsp_ranks_leave_a_superstep_together():
    values = Values({"g": np.array([[2.0]]), "l.a": np.array([[5.0]])})
    finish = find_family("bsp").predict(
        bcast("linear", 6), complete_values(find_family("bsp"), values)
    )
    assert finish.tolist() == [[5 * 2 + 5] * 6]


@pytest.mark.parametrize("ranks", [4, 8, 16])
@pytest.mark.parametrize("packets", [1, 2, 5])
@pytest.mark.parametrize("lam", [1, 3, 6.5])
def test_postal_binomial_broadcast_of_packets(ranks, packets, lam):
    """The closed form is log2 p · (k·g + L − g) with L = λ·g."""
    g = 4.0
    pattern = bcast("binomial:1500", ranks, 1500 * packets - 7)
    closed = np.log2(ranks) * (packets * g + lam * g - g)
    assert predict("postal", pattern, lam=lam, g=g) == pytest.approx(closed)


@pytest.mark.parametrize(("lam", "ranks"), [(1, 8), (2, 13), (2, 2)])
def test_postal_linear_broadcast(lam, ranks):
    """The root starts one message every g; the last message arrives λ·g after its start."""
    assert predict("postal", bcast("linear", ranks), lam=lam, g=5) == pytest.approx(
        5 * (ranks - 2 + lam)
    )


@pytest.mark.parametrize("ranks", [4, 16, 64])
@pytest.mark.parametrize("gap", [0, 3])
def test_logp_binomial_broadcast(ranks, gap):
    """The time is log2 p · (2·o + L) if the gap does not delay the next send of the root: g ≤ 2·o +
    L."""
    pattern = bcast("binomial", ranks)
    assert predict("logp", pattern, L=10, o=2, g=gap) == pytest.approx(
        np.log2(ranks) * (2 * 2 + 10)
    )


@pytest.mark.parametrize("ranks", [2, 5, 16])
@pytest.mark.parametrize("gap", [0, 2, 7])
def test_logp_flat_broadcast(ranks, gap):
    closed = (ranks - 2) * max(gap, 3) + 2 * 3 + 10
    assert predict("logp", bcast("linear", ranks), L=10, o=3, g=gap) == pytest.approx(closed)


CONSTANT = {"o_s.1": 2, "o_s.1024": 2, "o_r.1": 3, "o_r.1024": 3, "g.1": 6, "g.1024": 6}


@pytest.mark.parametrize("ranks", [2, 5, 16])
def test_plogp_flat_broadcast(ranks):
    """The root starts one message every g; the last message arrives L + g after its start."""
    assert predict("plogp", bcast("linear", ranks), L=10, **CONSTANT) == pytest.approx(
        (ranks - 1) * 6 + 10
    )


@pytest.mark.parametrize("operation", ["bcast", "gather"])
@pytest.mark.parametrize("ranks", [2, 7, 16])
def test_plogp_with_constant_functions_is_loggp_with_latency_l_plus_g_minus_o(operation, ranks):
    """LogGP's L equals L + g − o_s − o_r of PLogP."""
    pattern = build_schedule(point(operation, "binomial", ranks=ranks, bytes=300))
    same = predict("loggp", pattern, L=10 + 6 - 2 - 3, o_s=2, o_r=3, g=6, G=0)
    assert predict("plogp", pattern, L=10, **CONSTANT) == pytest.approx(same)


def test_plogp_overheads_overlap_in_a_long_message():
    """A message takes L + g, although o_s + o_r > L + g. The sender is free after o_s."""
    values = {"L": 10, "o_s.1": 50, "o_r.1": 60, "g.1": 60}
    assert predict("plogp", bcast("linear", 2), **values) == pytest.approx(10 + 60)
    assert predict("plogp", bcast("linear", 3), **values) == pytest.approx(60 + 10 + 60)


def test_plogp_between_and_beyond_samples():
    """g is 6 at 1 B and 16 at 1001 B. It is interpolated between the samples and extrapolated with
    the same slope."""
    table = {"o_s.1": 0, "o_r.1": 0, "g.1": 6, "g.1001": 16}
    for size, gap in ((0, 6), (1, 6), (501, 11), (1001, 16), (2001, 26)):
        assert predict("plogp", bcast("linear", 2, size), L=10, **table) == pytest.approx(10 + gap)


@pytest.mark.parametrize(
    ("operation", "algorithm"),
    [("bcast", "linear"), ("gather", "binomial"), ("allreduce", "ring"), ("bcast", "chain:64")],
)
def test_loggops_without_overhead_per_byte_is_loggp(operation, algorithm):
    pattern = build_schedule(point(operation, algorithm, ranks=9, bytes=1000))
    same = predict("loggp", pattern, L=10, o_s=2, o_r=2, g=3, G=0.01, gamma=0.1)
    assert predict("loggops", pattern, L=10, o=2, g=3, G=0.01, gamma=0.1) == pytest.approx(same)


@pytest.mark.parametrize(
    ("size", "asking"), [(0, 0), (1, 0), (500, 0), (501, 2 * 10 + 2 * 2), (9000, 2 * 10 + 2 * 2)]
)
def test_loggops_one_message(size, asking):
    """The time is 2·(o + (m−1)·O) + L + (m−1)·G. Rendezvous above S bytes adds 2·L + 2·o."""
    body = max(size - 1, 0)
    closed = 2 * (2 + body * 0.5) + 10 + body * 0.25 + asking
    values = {"L": 10, "o": 2, "g": 3, "G": 0.25, "O": 0.5, "S": 500}
    assert predict("loggops", bcast("linear", 2, size), **values) == pytest.approx(closed)


@pytest.mark.parametrize("ranks", [2, 4, 32])
def test_loggops_binomial_broadcast_above_the_threshold(ranks):
    """Every level has its own rendezvous: log2 p times the time of one message."""
    values = {"L": 10, "o": 2, "g": 3, "G": 0.25, "O": 0.5, "S": 500}
    message = predict("loggops", bcast("linear", 2, 801), **values)
    assert predict("loggops", bcast("binomial", ranks, 801), **values) == pytest.approx(
        np.log2(ranks) * message
    )


MLOGNP = {"o_mem.a": 1, "o_mem.b": 0.01, "o_net.a": 20, "o_net.b": 0.1, "l_net": 5}


def test_mlognp_counts_the_transfers_of_each_message():
    """Four ranks on two nodes, 100 B: a copy takes 2, the network 20 + 10 + 5. The root first sends
    to rank 2 on the other node, then to rank 1 on its own node."""
    pattern = build_schedule(point("bcast", "binomial", ranks=4, bytes=100, layout="block:2"))
    forms = {"o_mem": "linear", "o_net": "linear"}
    assert predict("mlognp", pattern, forms, **MLOGNP) == pytest.approx((2 * 2 + 35) + 2 * 2)


@pytest.mark.parametrize("ranks", [2, 4, 16])
def test_mlognp_binomial_broadcast_over_nodes(ranks):
    """The critical path has log2 p messages."""
    forms = {"o_mem": "linear", "o_net": "linear"}
    closed = np.log2(ranks) * (2 * 2 + 35)
    assert predict("mlognp", bcast("binomial", ranks, 100), forms, **MLOGNP) == pytest.approx(
        closed
    )


@pytest.mark.parametrize("ranks", [2, 8, 32])
def test_hockney_binomial_broadcast_is_log2_p_messages(ranks):
    assert predict("hockney", bcast("binomial", ranks, 100), **HOCKNEY) == pytest.approx(
        np.log2(ranks) * (5 + 10)
    )


@pytest.mark.parametrize("ranks", [2, 9])
def test_hockney_linear_broadcast_is_a_message_after_the_other(ranks):
    assert predict("hockney", bcast("linear", ranks, 100), **HOCKNEY) == pytest.approx(
        (ranks - 1) * (5 + 10)
    )


@pytest.mark.parametrize(("ranks", "parts"), [(2, 5), (6, 1), (6, 7)])
def test_hockney_pipeline_of_the_linear_cost_model(ranks, parts):
    """The closed form is (p − 2 + n)·(α + β·m/n)."""
    pattern = bcast("chain:100", ranks, 100 * parts)
    assert predict("hockney", pattern, **HOCKNEY) == pytest.approx((ranks - 2 + parts) * (5 + 10))


def test_lmo_flat_broadcast():
    """The root's processor handles one message after the other; transfers on the network
    overlap."""
    C, t, L, invbeta, m, n = 2.0, 0.01, 10.0, 0.02, 100, 9
    seconds = predict("lmo", bcast("linear", n, m), C=C, t=t, L=L, invbeta=invbeta)
    assert seconds == pytest.approx((n - 1) * (C + t * m) + L + invbeta * m + C + t * m)


# L, o, g, G: overhead counts; the gap is above the overhead; above a whole message; bytes outweigh
# all
MACHINES = {
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

    def predict(self, operation: str, algorithm: str, ranks: int, size: int, **more) -> float:
        pattern = build_schedule(point(operation, algorithm, ranks=ranks, bytes=size))
        return predict(
            "loggp", pattern, L=self.L, o_s=self.o, o_r=self.o, g=self.g, G=self.G, **more
        )

    def of(self, size: int) -> tuple[float, float]:
        """Return the time of a single message of another size, and the time until the next message
        may start."""
        body = max(size - 1, 0) * self.G
        return 2 * self.o + self.L + body, max(self.g + body, self.o)


def every(counts: tuple[int, ...]) -> Iterator[tuple[Machine, int, int]]:
    """Yield (machine, size, ranks)."""
    for name, size, ranks in product(MACHINES, SIZES, counts):
        yield Machine(name, size), size, ranks


def test_flat():
    """P − 2 messages follow the first one. Each starts when the port is free."""
    agree(
        (
            (m, operation, ranks),
            m.predict(operation, "linear", ranks, size),
            (ranks - 2) * m.apart + m.one,
        )
        for m, size, ranks in every(ANY)
        for operation in ("bcast", "scatter", "gather")
    )


def test_binomial_broadcast():
    """The last leaf receives after the last message of the root or after log2 P messages in
    sequence, whichever is later."""
    agree(
        (
            (m, ranks),
            m.predict("bcast", "binomial", ranks, size),
            m.one + (rounds(ranks) - 1) * max(m.one, m.apart),
        )
        for m, size, ranks in every(POWERS)
    )


@pytest.mark.parametrize("gamma", [0.0, 0.05])
def test_recursive_doubling(gamma):
    """In every round both ranks send a message and combine the data. The next send waits for the
    combination or for the gap."""

    def closed(m: Machine, size: int, ranks: int) -> float:
        step = m.one + gamma * size
        return step + (rounds(ranks) - 1) * max(step, m.apart)

    agree(
        (
            (m, ranks),
            m.predict("allreduce", "recursive-doubling", ranks, size, gamma=gamma),
            closed(m, size, ranks),
        )
        for m, size, ranks in every(POWERS)
    )


def test_ring():
    agree(
        (
            (m, ranks),
            m.predict("allgather", "ring", ranks, size),
            m.one + (ranks - 2) * max(m.one, m.apart),
        )
        for m, size, ranks in every(ANY)
    )


def test_dissemination():
    """An empty message takes as long as a message of one byte."""
    agree(
        (
            (m, ranks),
            m.predict("barrier", "dissemination", ranks, 0),
            m.one + (rounds(ranks) - 1) * max(m.one, m.apart),
        )
        for m, size, ranks in every(ANY)
        if size == 1
    )


def test_binomial_scatter():
    """The root of n ranks sends n/2 blocks, then n/4, …; each receiver is the root of a subtree of
    the same number of ranks."""

    def below(m: Machine, size: int, ranks: int) -> float:
        start, last, part = 0.0, 0.0, ranks // 2
        while part:
            message_time, apart = m.of(part * size)
            last = max(last, start + message_time + below(m, size, part))
            start += apart
            part //= 2
        return last

    agree(
        ((m, ranks), m.predict("scatter", "binomial", ranks, size), below(m, size, ranks))
        for m, size, ranks in every(POWERS)
    )


def test_binomial_gather():
    """The root of n ranks receives messages of 1, 2, … n/2 blocks. Each sender first completes the
    gather of its subtree."""

    def ready(m: Machine, size: int, ranks: int) -> float:
        begin, done, part = -1e9, 0.0, 1
        while part < ranks:
            # Its bytes come in before it is there: the gap is that of the later message.
            message_time, apart = m.of(part * size)
            begin = max(ready(m, size, part) + message_time - m.o, begin + apart, done)
            done = begin + m.o
            part *= 2
        return done

    agree(
        ((m, ranks), m.predict("gather", "binomial", ranks, size), ready(m, size, ranks))
        for m, size, ranks in every(POWERS)
    )


def test_linear_alltoall():
    """A rank posts P − 1 sends, limited by the port; then it receives one message every `apart`
    seconds."""

    def closed(m: Machine, ranks: int) -> float:
        return max((ranks - 1) * m.o, m.one - m.o) + (ranks - 2) * m.apart + m.o

    agree(
        ((m, ranks), m.predict("alltoall", "linear", ranks, size), closed(m, ranks))
        for m, size, ranks in every(ANY)
    )
