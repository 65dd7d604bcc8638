"""Predictions of each family as formulas: those of `models.families`, for patterns whose closed form is known.

Closed forms are of what our own pricing replays: messages of one size down or up a tree, ranks each with a port. All
ranks that a step of the tree reaches are alike, so that the last is reached over one of few longest paths. A message
costs its sender `send`, leaves the next one `apart` later, is `hop` later taken in. Binomial trees are those of
`patterns.rounds`, for any number of ranks: the farthest first on the way down, the nearest first on the way up.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from commodel.errors import UserError
from commodel.reports.xlsx.calculator.cells import (
    BITS,
    Known,
    Number,
    Pattern,
    Row,
    Surface,
    Term,
    down,
    largest,
    rounds,
    smallest,
    term,
    total,
    up,
    when,
)

LINEAR, BINOMIAL, CHAIN, KARY, TREE = "linear", "binomial", "chain", "k-ary", "tree"
WAYS = (LINEAR, BINOMIAL, CHAIN, KARY, TREE)
BCAST, REDUCE = "bcast", "reduce"
OPERATIONS = (BCAST, REDUCE)

PredictedTimes = dict[tuple[str, str], Term]  # by operation and way, in microseconds


@dataclass(frozen=True, slots=True)
class Message:
    """Seconds of one message, as of `models.evaluation.replay.Costs`."""

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
        """Return the same in columns of their own."""
        return Message(*(row.put(f"{name} {part}", getattr(self, part)) for part in self.__slots__))


def ports(row: Row, name: str, pattern: Pattern, message: Callable[[Term], Message], gamma: Term) -> PredictedTimes:
    """Of a family in which every message of a size costs the same."""
    whole = message(pattern.bytes).put(row, name)
    apart, hop = row.put(f"{name} apart", whole.apart), row.put(f"{name} hop", whole.hop)
    work = row.put(f"{name} work", gamma * pattern.bytes)
    spread, taken = largest(whole.receive, whole.gap_in), whole.send + whole.wire + whole.receive

    def fanned(children: Number) -> Term:
        return (term(children) - 1) * apart + hop

    def gathered(children: Number) -> Term:
        return taken + (term(children) - 1) * spread + children * work

    predictions = {(BCAST, way): prediction for way, prediction in _trees(pattern, fanned).items()}
    predictions |= {(REDUCE, way): prediction for way, prediction in _trees(pattern, gathered).items()}
    predictions[BCAST, BINOMIAL] = binomial_down(pattern.ranks, hop, apart)
    predictions[BCAST, CHAIN] = pipeline(row, name, pattern, message)
    predictions[REDUCE, BINOMIAL] = binomial_up(row, name, pattern.ranks, whole, work)
    predictions[REDUCE, CHAIN] = (pattern.ranks - 1) * gathered(1)
    return predictions


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
    """Return the finish times of a reduction. A rank takes its children's one after the other, the smallest subtree
    first. Column j is the time of the lowest j bits of P: the top bit's rank is the last child, with the ranks of the
    bits below it."""
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
    """Return whether the j-th lowest bit of P is 1, and the number that those below it are."""
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


def cluster(row: Row, known: Known, pattern: Pattern) -> PredictedTimes:
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
        """Return what the last child of a node waits for: of one sender's messages several are under way at once."""
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
    """Return how many may send to one at once (equations 5 to 7), when a buffer is full and what gets through if all do
    (equations 3 and 4), by `models.evaluation.buffer_overflow`."""
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
    """Return the largest window between both that leaves enough senders over at the end (as printed), or none; 0:
    none."""
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


MOST_HEIGHT = 24  # of a k-ary tree


def of_one_node(known: Known) -> bool:
    """Return whether all that was measured is messages within nodes."""
    return not any(name.startswith("L_1") for name in known.values.functions)


def taulop(row: Row, known: Known, pattern: Pattern) -> PredictedTimes:
    channel = 0 if of_one_node(known) else 1
    if f"L_{channel}" not in known.values.functions or f"o_{channel}" not in known.values.functions:
        raise UserError("its values differ from node type to node type")
    if known.setting("join") != "no" or (channel and known.setting("network") != "rdma"):
        raise UserError("it joins stages or copies at both ends, of which there is no formula here")
    surface = known.surface(row, f"L_{channel}", pattern.bytes)
    overhead = row.put("taulop overhead", known.at(f"o_{channel}", pattern.bytes))
    port = known.setting("shared") == "port"
    empty = row.put("taulop busy", known.at(f"o_{channel}", 0)) if port else None  # a processor, beside the port
    if channel:
        return _of_many_nodes(row, known, pattern, overhead, surface, empty)
    return _Memory(row, known, overhead, surface, empty).predictions(pattern)


def _of_many_nodes(
    row: Row, known: Known, pattern: Pattern, overhead: Term, surface: Surface, empty: Term | None
) -> PredictedTimes:
    both_ways = known.setting("rings") == "both-ways"
    rounds = []
    for j in range(1, BITS + 1):
        sent = sent_in_round(row, pattern.ranks, j)
        at_once = largest(sent, 1) if known.setting("shared") == "channel" else term(2 if both_ways else 1)
        lasts = overhead + surface.at(at_once)
        rounds.append(row.put(f"taulop round {j}", when(sent > 0, largest(lasts, empty or 0), 0)))
    return {(BCAST, BINOMIAL): total(rounds)}


@dataclass(frozen=True, slots=True)
class _Memory:
    """The memory of a node, through which every message goes twice, and its processors. The root of a tree is its first
    level's only parent; of the next there are as many as the first has children."""

    row: Row
    known: Known
    overhead: Term
    surface: Surface
    empty: Term | None

    def lasts(self, name: str, parents: Number, children: Number) -> Term:
        """Until all messages of a level are there, as many of each parent as it has children."""
        seconds = self.overhead + 2 * self.surface.at(largest(term(parents) * children, 1))
        if self.empty is not None:
            further = self.known["p_0"] if "p_0" in self.known else term(0)
            seconds = largest(seconds, self.empty + (term(children) - 1) * further, children * further)
        return self.row.put(f"taulop {name}", seconds)

    def down(self, name: str, parents: Number, children: Number, gathered: Term) -> Term:
        """As long as up, but where sends of a rank follow one another: then each goes on with those of other ranks."""
        if self.known.setting("shared") != "node":
            return gathered
        single = self.overhead + 2 * self.surface.at(term(parents))
        return self.row.put(f"taulop {name} down", children * single)

    def predictions(self, pattern: Pattern) -> PredictedTimes:
        row, bytes = self.row, pattern.bytes
        work = row.put("taulop work", when(bytes > 0, self.known.at("gamma", bytes), 0))
        others = pattern.ranks - 1
        gathered = self.lasts("linear", 1, others)
        predictions = {
            (BCAST, LINEAR): self.down("linear", 1, others, gathered),
            (REDUCE, LINEAR): gathered + others * work,
            (REDUCE, CHAIN): others * (self.lasts("chain", 1, 1) + work),
        }
        rounds = []
        for j in range(1, BITS + 1):
            sent = sent_in_round(row, pattern.ranks, j)
            there = sent > 0
            rounds.append((row.put(f"taulop takes {j}", when(there, self.lasts(f"round {j}", sent, 1), 0)), there))
        predictions[BCAST, BINOMIAL] = total([seconds for seconds, _ in rounds])
        predictions[REDUCE, BINOMIAL] = total([seconds + when(there, work, 0) for seconds, there in rounds])
        heights = [when(pattern.height > level, pattern.fan_out, 0) for level in range(MOST_HEIGHT)]
        for way, fan_outs in ((KARY, heights), (TREE, pattern.fan_outs)):
            predictions[BCAST, way], predictions[REDUCE, way] = self._levels(way, list(fan_outs), work)
        return predictions

    def _levels(self, way: str, fan_outs: list[Term], work: Term) -> tuple[Term, Term]:
        parents, spread, raised = term(1), [], []
        for number, children in enumerate(fan_outs, 1):
            name, there = f"{way} {number}", children > 0
            up = self.lasts(name, parents, children)
            down = self.down(name, parents, children, up)
            spread.append(when(there, down, 0))
            raised.append(when(there, up + children * work, 0))
            parents = self.row.put(f"taulop {name} nodes", parents * largest(children, 1))
        return total(spread), total(raised)


POSTING = {"isend": ("rtt", "o_s"), "list": ("rtt_list", "o_list"), "put": ("rtt_put", "o_put")}


def hockney(row: Row, known: Known, pattern: Pattern) -> PredictedTimes:
    def message(bytes: Term) -> Message:
        seconds = known.at("alpha", bytes) + known.at("beta", bytes) * bytes
        return Message(term(0), seconds, term(0), seconds, seconds)

    return ports(row, "hockney", pattern, message, known["gamma"])


def logp(row: Row, known: Known, pattern: Pattern) -> PredictedTimes:
    if known.setting("capacity") == "finite":
        raise UserError("of a finite capacity there is no closed form")
    message = Message(known["o"], known["L"], known["o"], known["g"], known["g"])
    return ports(row, "logp", pattern, lambda _: message, known["gamma"])


def loggp(row: Row, known: Known, pattern: Pattern) -> PredictedTimes:
    def message(bytes: Term) -> Message:
        body = known["G"] * largest(bytes - 1, 0)
        gap = known["g"] + body
        return Message(known["o_s"], known["L"] + body, known["o_r"], gap, gap)

    return ports(row, "loggp", pattern, message, known["gamma"])


def lop(row: Row, known: Known, pattern: Pattern) -> PredictedTimes:
    """Return where a rank has one partner, a port that takes nothing for receiving; else what a message costs hangs on
    how many are sent or received with it."""
    posting, printed = known.setting("posting"), known.setting("latency") == "printed"
    statistic = known.setting("statistic")
    rtt, o = POSTING[posting]
    rtt += "" if statistic == "median" else f"_{statistic}"
    if rtt not in {name.partition(".")[0] for name in known.values.numbers}:
        raise UserError(f"no {rtt} in this set")
    of_one = row.put("lop o(1)", known.at(o, term(1)))

    def round_of(name: str, partners: Number) -> tuple[Term, Term, Term]:
        """Until the network starts on the messages, then until they are there, and how long the processor is busy."""
        count = row.put(f"lop {name} partners", largest(partners, 1))
        of_many = row.put(f"lop {name} o(n)", known.at(o, count))
        busy = count * of_many
        first = busy if posting == "list" else of_many
        overheads = of_one + first if printed else (of_one + of_many) / 2
        wire = count * largest(known.at(rtt, count) / 2 - overheads, 0)
        return tuple(
            row.put(f"lop {name} {part}", value) for part, value in zip(PARTS, (first, wire, busy), strict=True)
        )

    first, wire, _ = single = round_of("single", 1)
    message = Message(first, wire, term(0), term(0), term(0))
    predictions = ports(row, "lop", pattern, lambda _: message, known["gamma"])
    work = known["gamma"] * pattern.bytes

    def level(name: str, children: Number) -> tuple[Term, Term, Term]:
        """Down a level, the time that its parent is busy, and up."""
        ahead, there, busy = round_of(name, children)
        return ahead + largest(there, single[1]), busy, first + largest(there, single[1]) + children * work

    down, busy, up = level("linear", pattern.ranks - 1)
    predictions[BCAST, LINEAR], predictions[REDUCE, LINEAR] = largest(down, busy), up
    down, busy, up = level("k-ary", pattern.fan_out)
    before = (pattern.height - 1) * down
    predictions[BCAST, KARY], predictions[REDUCE, KARY] = before + largest(down, busy), pattern.height * up
    reached, ready, raised = term(0), term(0), term(0)
    for number, children in enumerate(pattern.fan_outs, 1):
        down, busy, up = level(f"level {number}", children)
        there = children > 0
        ready = row.put(f"lop done {number}", when(there, largest(ready, reached + busy), ready))
        reached = row.put(f"lop reached {number}", when(there, reached + down, reached))
        raised = row.put(f"lop raised {number}", when(there, raised + up, raised))
    predictions[BCAST, TREE], predictions[REDUCE, TREE] = largest(reached, ready), raised
    return predictions


PARTS = ("first", "wire", "busy")


def tan(row: Row, known: Known, pattern: Pattern) -> PredictedTimes:
    """Reductions only: it names no cost for what a rank sends."""
    function, constant = ("o", "C")
    if known.setting("recipe") == "paper":
        if "o_paper" not in known.values.functions:
            raise UserError("no o_paper in this set")
        function, constant = "o_paper", "C_paper" if "C_paper" in known else "C"
    start = known[constant]

    def level(name: str, children: Number) -> Term:
        return row.put(f"tan {name}", known["L"] + known.at(function, children + term(1)) + known["g"])

    def upwards(name: str, levels: Term, children: Number) -> Term:
        """Return a level that takes less than nothing is not waited for again."""
        seconds = level(name, children)
        return start + when(seconds > 0, levels, 1) * seconds

    predictions = {
        (REDUCE, LINEAR): start + level("linear", pattern.ranks - 1),
        (REDUCE, CHAIN): upwards("chain", pattern.ranks - 1, 1),
        (REDUCE, KARY): upwards("k-ary", pattern.height, pattern.fan_out),
    }
    ready = start
    for number, children in reversed(list(enumerate(pattern.fan_outs, 1))):
        seconds = level(f"level {number}", children)
        ready = row.put(f"tan ready {number}", when(children > 0, seconds + largest(start, ready), ready))
    predictions[REDUCE, TREE] = ready
    predictions[REDUCE, BINOMIAL] = _tan_binomial(row, pattern.ranks, start, level)
    return predictions


def _tan_binomial(row: Row, ranks: Term, start: Term, level: Callable[[str, Number], Term]) -> Term:
    """As `ways.binomial_up`: the top bit's rank is the last of j children, and all of them are one phase."""
    whole, latest, below = start, start, term(0)  # of 2^(j-1) ranks, the latest of those and of fewer, of the low bits
    before = start
    for j in range(1, BITS + 1):
        top, rest = low_bits(ranks, j)
        seconds = level(f"of {j}", j)
        upward = seconds + largest(before, below)
        below = row.put(f"tan up {j}", when(top, when(rest.same(0), whole, upward), below))
        whole = row.put(f"tan whole {j}", seconds + latest)
        before, latest = latest, row.put(f"tan latest {j}", largest(latest, whole))
    return below


FORMULAS: dict[str, Callable[[Row, Known, Pattern], PredictedTimes]] = {
    "hockney": hockney,
    "logp": logp,
    "loggp": loggp,
    "tan": tan,
    "cluster": cluster,
    "lop": lop,
    "taulop": taulop,
}
