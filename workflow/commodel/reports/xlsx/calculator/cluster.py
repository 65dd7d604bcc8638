"""The cluster model: broadcasts, in which what a message takes hangs on how many ranks exchange at once, and how many
may send to one at once without a loss."""

import math
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
    smallest,
    term,
    up,
    when,
)
from commodel.reports.xlsx.calculator.closed_forms import BCAST, BINOMIAL, LINEAR, TREE, Prices
from commodel.reports.xlsx.calculator.known import Known

MOST_SENDERS = 1024  # whose windows are tried
LEAST_TIME = 1e-6  # µs


@dataclass(frozen=True, slots=True)
class Train:
    """A message as packets: the last one's bytes, and how many full ones go before it."""

    known: Known
    rest: Term
    full: Term
    at_rest: dict[str, Term]  # functions of the last packet, and of a full one
    at_full: dict[str, Term]

    @property
    def busy(self) -> Term:
        return self.full * self.at_full["g_s"] + self.at_rest["g_s"]

    def latency(self, bytes: Term, ranks: Number, gap: Term) -> Term:
        known = self.known
        share = ranks * bytes / (known["capacity"] * largest(gap, LEAST_TIME)) if "capacity" in known else term(0)
        return known["L_0"] + known["L_p"] * ranks + known["L_m"] * bytes * largest(1, share)

    def hop(self, ranks: Term) -> Term:
        """From when it leaves until it is taken in; `ranks` exchange messages meanwhile."""
        known, packet = self.known, self.known["packet"]
        taken = self.at_full["O_r"] + known["U_r"]
        last = self.full * self.at_full["g_s"] + self.at_rest["O_s"]
        last = last + self.latency(self.rest, ranks, self.at_rest["g_s"])
        before = self.at_full["O_s"] + self.latency(packet, ranks, self.at_full["g_s"]) + taken
        before = before + (self.full - 1) * largest(self.at_full["g_s"], taken)
        there = when(self.full > 0, largest(last, before), last)
        return there + self.at_rest["O_r"] + known["U_r"]


def prices(row: Row, known: Known, pattern: Pattern) -> Prices:
    full = row.put("cluster full packets", largest(up(pattern.bytes / known["packet"]) - 1, 0))
    rest = row.put("cluster last packet", pattern.bytes - full * known["packet"])
    names = ("O_s", "g_s", "O_r")
    at_rest = {name: row.put(f"cluster {name}", known.at(name, rest)) for name in names}
    at_full = {name: row.put(f"cluster {name} full", known.at(name, known["packet"])) for name in names}
    train = Train(known, rest, full, at_rest, at_full)
    busy = row.put("cluster busy", train.busy)
    alone = row.put("cluster flying", up(train.latency(rest, 2, at_rest["g_s"]) / largest(busy, 1e-9)))
    every_rank = pattern.ranks

    def level(name: str, parents: Number, children: Number) -> Term:
        """What the last child of a node waits for: of one sender's messages several are under way at once."""
        ranks = parents * (1 + smallest(largest(alone, 1), children))
        return row.put(f"cluster {name}", (term(children) - 1) * busy + train.hop(ranks))

    nodes, reached, ready = term(1), term(0), term(0)
    for number, children in enumerate(pattern.fan_outs, 1):
        there, some = children > 0, largest(children, 1)
        down = level(f"level {number}", nodes, some)
        ready = row.put(f"cluster done {number}", when(there, largest(ready, reached + children * busy), ready))
        reached = row.put(f"cluster reached {number}", when(there, reached + down, reached))
        nodes = row.put(f"cluster nodes {number}", nodes * some)
    return {
        (BCAST, LINEAR): largest(level("linear", term(1), every_rank - 1), (every_rank - 1) * busy),
        (BCAST, TREE): largest(reached, ready),
        (BCAST, BINOMIAL): _binomial(row, pattern, train, busy),
    }


def sent_in_round(row: Row, ranks: Term, j: int) -> Term:
    """Messages of round j of a binomial tree, farthest first; 0 after the last round. A column that families share."""
    name = f"round {j}"
    if name in row.terms:
        return row.again(name)
    k = row.put("rounds", rounds(ranks)) if j == 1 else row.again("rounds")
    distance = 2 ** largest(k - j, 0)
    return row.put(name, when(k < j, 0, down((ranks - 1 + distance) / (2 * distance))))


def _binomial(row: Row, pattern: Pattern, train: Train, busy: Term) -> Term:
    """Round by round: when the last of all ranks may send, and when that one may whose subtree is cut off by P."""
    early, edge, left = term(0), term(0), pattern.ranks  # `left`: ranks of the subtree that is cut off
    k = None
    for j in range(1, BITS + 1):
        sent = sent_in_round(row, pattern.ranks, j)
        k = row.again("rounds")
        distance = 2 ** largest(k - j, 0)
        hop = row.put(f"cluster round {j}", train.hop(2 * sent))
        sends, over = k > (j - 1), left > distance
        whole = row.put(f"cluster whole {j}", early + largest(busy, hop))
        passed = largest(whole, edge + busy) if j > 1 else edge + busy
        early = row.put(f"cluster early {j}", when(sends, when(over, passed, whole if j > 1 else 0), early))
        edge = row.put(f"cluster edge {j}", when(sends, when(over, edge + hop, edge), edge))
        left = row.put(f"cluster left {j}", when(sends, when(over, left - distance, left), left))
    return largest(early, edge)


def bounds(row: Row, known: Known, pattern: Pattern) -> dict[str, Term]:
    """How many may send to one at once (equations 5 to 7), when a buffer is full and what gets through if all do
    (equations 3 and 4), by `models.pricing.buffer_overflow`."""
    senders = row.put("senders", pattern.ranks - 1)
    size = smallest(pattern.bytes, known["packet"])
    g_s, g_r = (row.put(f"bounds {name}", known.at(name, size)) for name in ("g_s", "g_r"))
    packets = row.put("bounds packets", largest(up(pattern.bytes / known["packet"]), 1) * senders)
    fewest = row.put("bounds fewest", up(g_s / g_r))
    if "B_L" not in known:
        return {"fewest": smallest(fewest, senders), "most": senders, "window": senders}
    held = known["B_L"]
    lossless = smallest(senders, down(g_s * packets / (g_r * (packets - held))))
    most = row.put("bounds most", when(packets <= held, senders, lossless))
    even = row.put("bounds even", _best(senders, fewest, most, rest=False))
    printed = row.put("bounds printed", _best(senders, fewest, most, rest=True))
    both = largest(even, printed)
    tried = when(both.same(0), largest(1, smallest(most, senders)), both)
    window = row.put("bounds window", when(held > packets, senders, tried))
    through = row.put("bounds through", smallest(1, g_s / (senders * g_r) + held / packets))
    surplus = senders / g_s - 1 / g_r
    full = row.put("bounds full", when(surplus > 0, held / surplus, 0))
    return {"fewest": smallest(fewest, senders), "most": most, "window": window, "through": through, "full": full}


def _best(senders: Term, fewest: Term, most: Term, *, rest: bool) -> Term:
    """The largest window between both that leaves enough senders over at the end (as printed), or none; 0: none."""
    every = f"ROW($1:${MOST_SENDERS})"
    over = f"MOD({senders.text},{every})"
    good = f"({over}>={fewest.text})" if rest else f"({over}=0)"
    text = f"SUMPRODUCT(MAX(({every}>={fewest.text})*({every}<={most.text})*{good}*{every}))"
    if math.isnan(fewest.value + most.value):
        return Term(text, math.nan)
    counts = range(max(int(fewest.value), 1), min(int(most.value), MOST_SENDERS) + 1)
    left = ((x, int(senders.value) % x) for x in counts)
    value = max((x for x, over in left if (over >= fewest.value if rest else over == 0)), default=0)
    return Term(text, float(value))
