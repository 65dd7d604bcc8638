"""Closed forms of what our own pricing replays: messages of one size down or up a tree, ranks each with a port.

All ranks that a step of the tree reaches are alike, so that the last is reached over one of few longest paths. A
message costs its sender `send`, leaves the next one `apart` later, is `hop` later taken in. Binomial trees are those of
`patterns.phases`, for any number of ranks: the farthest first on the way down, the nearest first on the way up.
"""

from collections.abc import Callable
from dataclasses import dataclass

from commodel.reports.xlsx.calculator.cells import (
    BITS,
    Number,
    Pattern,
    Row,
    Term,
    down,
    largest,
    rounds,
    term,
    total,
    up,
    when,
)

LINEAR, BINOMIAL, CHAIN, KARY, TREE = "linear", "binomial", "chain", "k-ary", "tree"
WAYS = (LINEAR, BINOMIAL, CHAIN, KARY, TREE)
BCAST, REDUCE = "bcast", "reduce"
OPERATIONS = (BCAST, REDUCE)

Prices = dict[tuple[str, str], Term]  # by operation and way, in microseconds


@dataclass(frozen=True, slots=True)
class Message:
    """Seconds of one message, as of `models.pricing.replay.Costs`."""

    send: Term
    wire: Term
    receive: Term
    gap_out: Term
    gap_in: Term

    @property
    def hop(self) -> Term:
        return self.send + self.wire + self.receive

    @property
    def apart(self) -> Term:
        return largest(self.send, self.gap_out)

    def put(self, row: Row, name: str) -> "Message":
        """The same in columns of their own."""
        return Message(*(row.put(f"{name} {part}", getattr(self, part)) for part in self.__slots__))


def ports(row: Row, name: str, pattern: Pattern, message: Callable[[Term], Message], gamma: Term) -> Prices:
    """Of a family in which every message of a size costs the same."""
    whole = message(pattern.bytes).put(row, name)
    apart, hop = row.put(f"{name} apart", whole.apart), row.put(f"{name} hop", whole.hop)
    work = row.put(f"{name} work", gamma * pattern.bytes)
    spread, taken = largest(whole.receive, whole.gap_in), whole.send + whole.wire + whole.receive

    def fanned(children: Number) -> Term:
        return (term(children) - 1) * apart + hop

    def gathered(children: Number) -> Term:
        return taken + (term(children) - 1) * spread + children * work

    prices = {(BCAST, way): price for way, price in _trees(pattern, fanned).items()}
    prices |= {(REDUCE, way): price for way, price in _trees(pattern, gathered).items()}
    prices[BCAST, BINOMIAL] = binomial_down(pattern.ranks, hop, apart)
    prices[BCAST, CHAIN] = pipeline(row, name, pattern, message)
    prices[REDUCE, BINOMIAL] = binomial_up(row, name, pattern.ranks, whole, work)
    prices[REDUCE, CHAIN] = (pattern.ranks - 1) * gathered(1)
    return prices


def _trees(pattern: Pattern, level: Callable[[Number], Term]) -> dict[str, Term]:
    """`level`: what a level of so many children takes."""
    tree = total([when(count > 0, level(count), 0) for count in pattern.fan_outs])
    return {LINEAR: level(pattern.ranks - 1), KARY: pattern.height * level(pattern.fan_out), TREE: tree}


def binomial_down(ranks: Term, hop: Term, apart: Term) -> Term:
    """k = ⌈log₂ P⌉ rounds: in each a path goes on by a hop or waits while its rank sends elsewhere. Only where P = 2^k
    a rank is k hops away; the last send of a rank is one, so that not all rounds can be waited for."""
    k = rounds(ranks)
    most_hops = when(ranks.same(2**k), k * hop, (k - 1) * hop + apart)
    return largest(hop + (k - 1) * apart, most_hops)


def binomial_up(row: Row, name: str, ranks: Term, message: Message, work: Term) -> Term:
    """A rank takes its children's one after the other, the smallest subtree first. Column j is the time of the lowest j
    bits of P: the top bit's rank is the last child, with the ranks of the bits below it."""
    there, taken = message.send + message.wire, message.receive + work
    step = row.put(f"{name} step up", largest(there + taken, message.gap_in))

    def whole(bits: int) -> Term:  # 2^bits ranks
        return there + taken + (bits - 1) * step if bits else term(0)

    below = row.put(f"{name} up 0", 0)
    for j in range(1, BITS + 1):
        top, rest = low_bits(ranks, j)
        begun = [whole(j - 1), below + there]
        begun += [there + (j - 2) * step + message.gap_in] if j > 1 else []
        below = row.put(f"{name} up {j}", when(top, when(rest.same(0), whole(j - 1), largest(*begun) + taken), below))
    return below


def low_bits(ranks: Term, j: int) -> tuple[Term, Term]:
    """Whether the j-th lowest bit of P is 1, and the number that those below it are."""
    power = 1 << (j - 1)
    rest = ranks - power * down(ranks / power)
    half = down(ranks / power)
    return (half - 2 * down(half / 2)).same(1), rest


def pipeline(row: Row, name: str, pattern: Pattern, message: Callable[[Term], Message]) -> Term:
    """Segments follow each other down a row of ranks, the last one shorter. The longest path goes along with a segment
    for some hops, then from segment to segment at one rank, at the pace of the slowest, and on with the last: as a path
    is a line in the number of hops before it changes to the last segment, the ends of that line are all there is."""
    ranks, count = pattern.ranks, row.put(f"{name} segments", largest(up(pattern.bytes / pattern.segment), 1))
    long = message(when(count > 1, pattern.segment, pattern.bytes)).put(row, f"{name} segment")
    last = message(pattern.bytes - pattern.segment * (count - 1)).put(row, f"{name} last")
    hop, last_hop = row.put(f"{name} segment hop", long.hop), row.put(f"{name} last hop", last.hop)
    there, apart = long.send + long.wire, largest(long.send, long.gap_out)
    both = long.send + long.receive  # of a rank that passes a segment on while it gets the next
    slowest = when(ranks > 2, largest(both, long.gap_out, long.gap_in), largest(apart, long.receive, long.gap_in))
    pace = row.put(f"{name} pace", (count - 2) * slowest)

    def change_at(rank: Number) -> Term:
        """At a rank in the middle."""
        until, after = rank * hop + pace, (ranks - 1 - rank) * last_hop
        posted = largest(both, last.gap_in) + last.receive
        return until - long.receive + after + largest(posted, apart + long.receive)

    at_root = (count - 1) * apart + (ranks - 1) * last_hop
    at_last = (
        (ranks - 1) * there + (ranks - 2) * long.receive + pace + largest(long.receive, last.gap_in) + last.receive
    )
    middle = when(ranks > 2, largest(change_at(term(1)), change_at(ranks - 2)), 0)
    return when(count > 1, largest(at_root, at_last, middle), (ranks - 1) * last_hop)
