"""Predictions of each model as formulas, as by `models.families`, for patterns with a closed form. `FORMULAS` has the
function of each model.

The closed forms are of the patterns that our own prediction replays: messages of one size down or up a tree, each rank
with one port. All ranks that a step of the tree reaches are equivalent, so the last rank is reached over one of few
longest paths. A message occupies its sender for `send`, the next one leaves `send_interval` later; a message is
received `hop` later. Binomial trees are those of `patterns.rounds`, for any number of ranks: the farthest rank first on
the way down, the nearest first on the way up."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from commodel.errors import UserError
from commodel.reports.xlsx.calculator.cells import (
    BITS,
    ModelTerms,
    Number,
    Pattern,
    Row,
    Surface,
    Term,
    add_terms,
    choose_if,
    count_rounds,
    largest,
    make_term,
    round_down,
    round_up,
    smallest,
)

LINEAR, BINOMIAL, CHAIN, KARY, TREE = "linear", "binomial", "chain", "k-ary", "tree"
ALTERNATIVES = (LINEAR, BINOMIAL, CHAIN, KARY, TREE)
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
    def send_interval(self) -> Term:
        return largest(self.send, self.gap_out)

    def put(self, row: Row, name: str) -> "Message":
        """Put the parts into columns of their own and return the message with these cells."""
        return Message(*(row.put(f"{name} {part}", getattr(self, part)) for part in self.__slots__))


def predict_port_model(
    row: Row, name: str, pattern: Pattern, message: Callable[[Term], Message], gamma: Term
) -> PredictedTimes:
    """Return the predictions of a model in which all messages of one size cost the same."""
    costs = message(pattern.bytes).put(row, name)
    gap, hop = row.put(f"{name} send interval", costs.send_interval), row.put(f"{name} hop", costs.hop)
    work = row.put(f"{name} work", gamma * pattern.bytes)
    spread, transfer = largest(costs.receive, costs.gap_in), costs.send + costs.wire + costs.receive

    def fanned(children: Number) -> Term:
        return (make_term(children) - 1) * gap + hop

    def gathered(children: Number) -> Term:
        return transfer + (make_term(children) - 1) * spread + children * work

    predictions = {(BCAST, kind): prediction for kind, prediction in _predict_trees(pattern, fanned).items()}
    predictions |= {(REDUCE, kind): prediction for kind, prediction in _predict_trees(pattern, gathered).items()}
    predictions[BCAST, BINOMIAL] = predict_binomial_broadcast(pattern.ranks, hop, gap)
    predictions[BCAST, CHAIN] = predict_pipeline(row, name, pattern, message)
    predictions[REDUCE, BINOMIAL] = predict_binomial_reduction(row, name, pattern.ranks, costs, work)
    predictions[REDUCE, CHAIN] = (pattern.ranks - 1) * gathered(1)
    return predictions


def _predict_trees(pattern: Pattern, level: Callable[[Number], Term]) -> dict[str, Term]:
    """Return the times over linear, k-ary and general trees; `level` returns the time of a level with so many children
    a node."""
    tree = add_terms([choose_if(count > 0, level(count), 0) for count in pattern.fan_outs])
    return {LINEAR: level(pattern.ranks - 1), KARY: pattern.height * level(pattern.fan_out), TREE: tree}


def predict_binomial_broadcast(ranks: Term, hop: Term, gap: Term) -> Term:
    """Return the time of a broadcast over a binomial tree of k = ⌈log₂ P⌉ rounds. In each round the longest path
    continues by a hop, or waits while its rank sends to another one. A rank is k hops away only if P = 2^k. The last
    send of a rank is a hop, so a path does not wait in all rounds."""
    k = count_rounds(ranks)
    most_hops = choose_if(ranks.equals(2**k), k * hop, (k - 1) * hop + gap)
    return largest(hop + (k - 1) * gap, most_hops)


def predict_binomial_reduction(row: Row, name: str, ranks: Term, message: Message, work: Term) -> Term:
    """Return the finish time of a reduction over a binomial tree. A rank receives from its children one after the
    other, the smallest subtree first. Column j is the time of the lowest j bits of P: the rank of the top bit is the
    last child, with the ranks of the bits below it."""
    arrival, received = message.send + message.wire, message.receive + work
    step = row.put(f"{name} step up", largest(arrival + received, message.gap_in))

    def whole(bits: int) -> Term:  # 2^bits ranks
        return arrival + received + (bits - 1) * step if bits else make_term(0)

    below = row.put(f"{name} up 0", 0)
    for j in range(1, BITS + 1):
        top, low_part = split_low_bits(ranks, j)
        starts = [whole(j - 1), below + arrival]
        starts += [arrival + (j - 2) * step + message.gap_in] if j > 1 else []
        below = row.put(
            f"{name} up {j}",
            choose_if(top, choose_if(low_part.equals(0), whole(j - 1), largest(*starts) + received), below),
        )
    return below


def split_low_bits(ranks: Term, j: int) -> tuple[Term, Term]:
    """Return whether the j-th lowest bit of P is 1, and the number formed by the bits below it."""
    power = 1 << (j - 1)
    low_part = ranks - power * round_down(ranks / power)
    half = round_down(ranks / power)
    return (half - 2 * round_down(half / 2)).equals(1), low_part


def predict_pipeline(row: Row, name: str, pattern: Pattern, message: Callable[[Term], Message]) -> Term:
    """Return the time of a broadcast of segments down a chain of ranks; the last segment may be shorter. The longest
    path follows the first segment for some hops, then passes from segment to segment at one rank, at the pace of the
    slowest step, and follows the last segment. Its time is linear in the number of hops before, so only the ends need
    comparing."""
    ranks, count = pattern.ranks, row.put(f"{name} segments", largest(round_up(pattern.bytes / pattern.segment), 1))
    long = message(choose_if(count > 1, pattern.segment, pattern.bytes)).put(row, f"{name} segment")
    last = message(pattern.bytes - pattern.segment * (count - 1)).put(row, f"{name} last")
    hop, last_hop = row.put(f"{name} segment hop", long.hop), row.put(f"{name} last hop", last.hop)
    arrival, gap = long.send + long.wire, largest(long.send, long.gap_out)
    both = long.send + long.receive  # of a rank that passes a segment on while it gets the next
    slowest = choose_if(ranks > 2, largest(both, long.gap_out, long.gap_in), largest(gap, long.receive, long.gap_in))
    pace = row.put(f"{name} pace", (count - 2) * slowest)

    def change_at(rank: Number) -> Term:
        """Return the time of the path that passes to the last segment at this rank, which is neither first nor last."""
        until, after = rank * hop + pace, (ranks - 1 - rank) * last_hop
        posted = largest(both, last.gap_in) + last.receive
        return until - long.receive + after + largest(posted, gap + long.receive)

    at_root = (count - 1) * gap + (ranks - 1) * last_hop
    at_last = (
        (ranks - 1) * arrival + (ranks - 2) * long.receive + pace + largest(long.receive, last.gap_in) + last.receive
    )
    middle = choose_if(ranks > 2, largest(change_at(make_term(1)), change_at(ranks - 2)), 0)
    return choose_if(count > 1, largest(at_root, at_last, middle), (ranks - 1) * last_hop)


MOST_SENDERS = 1024  # whose windows are tried
LEAST_TIME = 1e-6  # µs


@dataclass(frozen=True, slots=True)
class PacketTrain:
    """A message as packets: the bytes of the last packet, and the number of full ones before it."""

    values: ModelTerms
    last_bytes: Term
    full: Term
    of_last_packet: dict[str, Term]  # functions of the last packet, and of a full one
    of_full_packet: dict[str, Term]

    @property
    def busy(self) -> Term:
        return self.full * self.of_full_packet["g_s"] + self.of_last_packet["g_s"]

    def compute_latency(self, bytes: Term, ranks: Number, gap: Term) -> Term:
        values = self.values
        share = (
            ranks * bytes / (values["capacity"] * largest(gap, LEAST_TIME)) if "capacity" in values else make_term(0)
        )
        return values["L_0"] + values["L_p"] * ranks + values["L_m"] * bytes * largest(1, share)

    def hop(self, ranks: Term) -> Term:
        """Return the time from the start of a message until it is received, while `ranks` ranks exchange messages."""
        values, packet = self.values, self.values["packet"]
        received = self.of_full_packet["O_r"] + values["U_r"]
        last = self.full * self.of_full_packet["g_s"] + self.of_last_packet["O_s"]
        last = last + self.compute_latency(self.last_bytes, ranks, self.of_last_packet["g_s"])
        before = self.of_full_packet["O_s"] + self.compute_latency(packet, ranks, self.of_full_packet["g_s"]) + received
        before = before + (self.full - 1) * largest(self.of_full_packet["g_s"], received)
        arrival = choose_if(self.full > 0, largest(last, before), last)
        return arrival + self.of_last_packet["O_r"] + values["U_r"]


def predict_cluster(row: Row, values: ModelTerms, pattern: Pattern) -> PredictedTimes:
    full = row.put("cluster full packets", largest(round_up(pattern.bytes / values["packet"]) - 1, 0))
    last_bytes = row.put("cluster last packet", pattern.bytes - full * values["packet"])
    names = ("O_s", "g_s", "O_r")
    of_last_packet = {name: row.put(f"cluster {name}", values.at(name, last_bytes)) for name in names}
    of_full_packet = {name: row.put(f"cluster {name} full", values.at(name, values["packet"])) for name in names}
    train = PacketTrain(values, last_bytes, full, of_last_packet, of_full_packet)
    busy = row.put("cluster busy", train.busy)
    single = row.put(
        "cluster in flight", round_up(train.compute_latency(last_bytes, 2, of_last_packet["g_s"]) / largest(busy, 1e-9))
    )
    every_rank = pattern.ranks

    def level(name: str, parents: Number, children: Number) -> Term:
        """Return the time until the last child of a node is reached. Several messages of one sender are in flight at
        once."""
        ranks = parents * (1 + smallest(largest(single, 1), children))
        return row.put(f"cluster {name}", (make_term(children) - 1) * busy + train.hop(ranks))

    nodes, reached, ready = make_term(1), make_term(0), make_term(0)
    for number, children in enumerate(pattern.fan_outs, 1):
        has_children, child_count = children > 0, largest(children, 1)
        down = level(f"level {number}", nodes, child_count)
        ready = row.put(
            f"cluster done {number}", choose_if(has_children, largest(ready, reached + children * busy), ready)
        )
        reached = row.put(f"cluster reached {number}", choose_if(has_children, reached + down, reached))
        nodes = row.put(f"cluster nodes {number}", nodes * child_count)
    return {
        (BCAST, LINEAR): largest(level("linear", make_term(1), every_rank - 1), (every_rank - 1) * busy),
        (BCAST, TREE): largest(reached, ready),
        (BCAST, BINOMIAL): _predict_cluster_binomial(row, pattern, train, busy),
    }


def count_sent_in_round(row: Row, ranks: Term, j: int) -> Term:
    """Return the number of messages in round j of a binomial tree, farthest first; 0 after the last round. Models share
    this column."""
    name = f"round {j}"
    if name in row.terms:
        return row.refer_to(name)
    k = row.put("rounds", count_rounds(ranks)) if j == 1 else row.refer_to("rounds")
    distance = 2 ** largest(k - j, 0)
    return row.put(name, choose_if(k < j, 0, round_down((ranks - 1 + distance) / (2 * distance))))


def _predict_cluster_binomial(row: Row, pattern: Pattern, train: PacketTrain, busy: Term) -> Term:
    """Return the time of a broadcast over a binomial tree, round by round, from two times: when the last of all ranks
    may send, and when the rank may send whose subtree is cut off by P."""
    early, edge, cut_off = make_term(0), make_term(0), pattern.ranks  # `cut_off`: ranks of the subtree that is cut off
    k = None
    for j in range(1, BITS + 1):
        sent = count_sent_in_round(row, pattern.ranks, j)
        k = row.refer_to("rounds")
        distance = 2 ** largest(k - j, 0)
        hop = row.put(f"cluster round {j}", train.hop(2 * sent))
        sends, over = k > (j - 1), cut_off > distance
        complete = row.put(f"cluster complete {j}", early + largest(busy, hop))
        passed = largest(complete, edge + busy) if j > 1 else edge + busy
        early = row.put(
            f"cluster early {j}", choose_if(sends, choose_if(over, passed, complete if j > 1 else 0), early)
        )
        edge = row.put(f"cluster edge {j}", choose_if(sends, choose_if(over, edge + hop, edge), edge))
        cut_off = row.put(
            f"cluster cut off {j}", choose_if(sends, choose_if(over, cut_off - distance, cut_off), cut_off)
        )
    return largest(early, edge)


def find_bounds(row: Row, values: ModelTerms, pattern: Pattern) -> dict[str, Term]:
    """Return how many ranks may send to one at once (equations 5 to 7), when a buffer is full, and the share of packets
    that arrives if all send at once (equations 3 and 4), as `models.evaluation.buffer_overflow` does."""
    senders = row.put("senders", pattern.ranks - 1)
    size = smallest(pattern.bytes, values["packet"])
    g_s, g_r = (row.put(f"bounds {name}", values.at(name, size)) for name in ("g_s", "g_r"))
    packets = row.put("bounds packets", largest(round_up(pattern.bytes / values["packet"]), 1) * senders)
    smallest_window = row.put("bounds fewest", round_up(g_s / g_r))
    if "B_L" not in values:
        return {"fewest": smallest(smallest_window, senders), "most": senders, "window": senders}
    buffer = values["B_L"]
    lossless = smallest(senders, round_down(g_s * packets / (g_r * (packets - buffer))))
    largest_window = row.put("bounds most", choose_if(packets <= buffer, senders, lossless))
    even_window = row.put(
        "bounds even", _find_best_window(senders, smallest_window, largest_window, with_remainder=False)
    )
    printed = row.put(
        "bounds printed", _find_best_window(senders, smallest_window, largest_window, with_remainder=True)
    )
    both = largest(even_window, printed)
    tried = choose_if(both.equals(0), largest(1, smallest(largest_window, senders)), both)
    window = row.put("bounds window", choose_if(buffer > packets, senders, tried))
    through = row.put("bounds through", smallest(1, g_s / (senders * g_r) + buffer / packets))
    surplus = senders / g_s - 1 / g_r
    full = row.put("bounds full", choose_if(surplus > 0, buffer / surplus, 0))
    return {
        "fewest": smallest(smallest_window, senders),
        "most": largest_window,
        "window": window,
        "through": through,
        "full": full,
    }


def _find_best_window(senders: Term, smallest: Term, largest: Term, *, with_remainder: bool) -> Term:
    """Return the largest window within the bounds that divides the senders evenly or, if `with_remainder`, leaves at
    least `smallest` at the end (as printed); 0 if there is none."""
    every = f"ROW($1:${MOST_SENDERS})"
    over = f"MOD({senders.text},{every})"
    good = f"({over}>={smallest.text})" if with_remainder else f"({over}=0)"
    text = f"SUMPRODUCT(MAX(({every}>={smallest.text})*({every}<={largest.text})*{good}*{every}))"
    if math.isnan(smallest.value + largest.value):
        return Term(text, math.nan)
    counts = range(max(int(smallest.value), 1), min(int(largest.value), MOST_SENDERS) + 1)
    remainders = ((x, int(senders.value) % x) for x in counts)
    value = max((x for x, over in remainders if (over >= smallest.value if with_remainder else over == 0)), default=0)
    return Term(text, float(value))


MOST_HEIGHT = 24  # of a k-ary tree


def is_of_one_node(values: ModelTerms) -> bool:
    """Return whether only messages within nodes were measured."""
    return not any(name.startswith("L_1") for name in values.values.functions)


def predict_taulop(row: Row, values: ModelTerms, pattern: Pattern) -> PredictedTimes:
    channel = 0 if is_of_one_node(values) else 1
    if f"L_{channel}" not in values.values.functions or f"o_{channel}" not in values.values.functions:
        raise UserError("its values differ from node type to node type")
    if values.find_setting("join") != "no" or (channel and values.find_setting("network") != "rdma"):
        raise UserError("joined stages, and copies at both ends, have no formula here")
    surface = values.put_surface(row, f"L_{channel}", pattern.bytes)
    overhead = row.put("taulop overhead", values.at(f"o_{channel}", pattern.bytes))
    port = values.find_setting("shared") == "port"
    empty = row.put("taulop busy", values.at(f"o_{channel}", 0)) if port else None  # a processor, beside the port
    if channel:
        return _predict_taulop_of_nodes(row, values, pattern, overhead, surface, empty)
    return _Memory(row, values, overhead, surface, empty).predict_all(pattern)


def _predict_taulop_of_nodes(
    row: Row, values: ModelTerms, pattern: Pattern, overhead: Term, surface: Surface, empty: Term | None
) -> PredictedTimes:
    both_ways = values.find_setting("rings") == "both-ways"
    rounds = []
    for j in range(1, BITS + 1):
        sent = count_sent_in_round(row, pattern.ranks, j)
        at_once = largest(sent, 1) if values.find_setting("shared") == "channel" else make_term(2 if both_ways else 1)
        lasts = overhead + surface.at(at_once)
        rounds.append(row.put(f"taulop round {j}", choose_if(sent > 0, largest(lasts, empty or 0), 0)))
    return {(BCAST, BINOMIAL): add_terms(rounds)}


@dataclass(frozen=True, slots=True)
class _Memory:
    """The memory of a node, which every message passes twice, and its processors. The root of a tree is the only parent
    of the first level; the next level has as many parents as the first has children."""

    row: Row
    values: ModelTerms
    overhead: Term
    surface: Surface
    empty: Term | None

    def compute_level_time(self, name: str, parents: Number, children: Number) -> Term:
        """Return the time until all messages of a level have arrived, from each parent to each of its children."""
        seconds = self.overhead + 2 * self.surface.at(largest(make_term(parents) * children, 1))
        if self.empty is not None:
            further = self.values["p_0"] if "p_0" in self.values else make_term(0)
            seconds = largest(seconds, self.empty + (make_term(children) - 1) * further, children * further)
        return self.row.put(f"taulop {name}", seconds)

    def compute_time_down(self, name: str, parents: Number, children: Number, gathered: Term) -> Term:
        """Return the time down a level: the same as up, unless a rank sends one message after the other. Then each
        message is concurrent with one of every other parent."""
        if self.values.find_setting("shared") != "node":
            return gathered
        single = self.overhead + 2 * self.surface.at(make_term(parents))
        return self.row.put(f"taulop {name} down", children * single)

    def predict_all(self, pattern: Pattern) -> PredictedTimes:
        row, bytes = self.row, pattern.bytes
        work = row.put("taulop work", choose_if(bytes > 0, self.values.at("gamma", bytes), 0))
        children = pattern.ranks - 1
        gathered = self.compute_level_time("linear", 1, children)
        predictions = {
            (BCAST, LINEAR): self.compute_time_down("linear", 1, children, gathered),
            (REDUCE, LINEAR): gathered + children * work,
            (REDUCE, CHAIN): children * (self.compute_level_time("chain", 1, 1) + work),
        }
        rounds = []
        for j in range(1, BITS + 1):
            sent = count_sent_in_round(row, pattern.ranks, j)
            is_sent = sent > 0
            rounds.append(
                (
                    row.put(f"taulop takes {j}", choose_if(is_sent, self.compute_level_time(f"round {j}", sent, 1), 0)),
                    is_sent,
                )
            )
        predictions[BCAST, BINOMIAL] = add_terms([seconds for seconds, _ in rounds])
        predictions[REDUCE, BINOMIAL] = add_terms(
            [seconds + choose_if(is_sent, work, 0) for seconds, is_sent in rounds]
        )
        heights = [choose_if(pattern.height > level, pattern.fan_out, 0) for level in range(MOST_HEIGHT)]
        for kind, fan_outs in ((KARY, heights), (TREE, pattern.fan_outs)):
            predictions[BCAST, kind], predictions[REDUCE, kind] = self._predict_levels(kind, list(fan_outs), work)
        return predictions

    def _predict_levels(self, kind: str, fan_outs: list[Term], work: Term) -> tuple[Term, Term]:
        parents, spread, raised = make_term(1), [], []
        for number, children in enumerate(fan_outs, 1):
            name, has_children = f"{kind} {number}", children > 0
            up = self.compute_level_time(name, parents, children)
            down = self.compute_time_down(name, parents, children, up)
            spread.append(choose_if(has_children, down, 0))
            raised.append(choose_if(has_children, up + children * work, 0))
            parents = self.row.put(f"taulop {name} nodes", parents * largest(children, 1))
        return add_terms(spread), add_terms(raised)


POSTING = {"isend": ("rtt", "o_s"), "list": ("rtt_list", "o_list"), "put": ("rtt_put", "o_put")}


def predict_hockney(row: Row, values: ModelTerms, pattern: Pattern) -> PredictedTimes:
    def message(bytes: Term) -> Message:
        seconds = values.at("alpha", bytes) + values.at("beta", bytes) * bytes
        return Message(make_term(0), seconds, make_term(0), seconds, seconds)

    return predict_port_model(row, "hockney", pattern, message, values["gamma"])


def predict_logp(row: Row, values: ModelTerms, pattern: Pattern) -> PredictedTimes:
    if values.find_setting("capacity") == "finite":
        raise UserError("a finite capacity has no closed form")
    message = Message(values["o"], values["L"], values["o"], values["g"], values["g"])
    return predict_port_model(row, "logp", pattern, lambda _: message, values["gamma"])


def predict_loggp(row: Row, values: ModelTerms, pattern: Pattern) -> PredictedTimes:
    def message(bytes: Term) -> Message:
        body = values["G"] * largest(bytes - 1, 0)
        gap = values["g"] + body
        return Message(values["o_s"], values["L"] + body, values["o_r"], gap, gap)

    return predict_port_model(row, "loggp", pattern, message, values["gamma"])


def predict_lop(row: Row, values: ModelTerms, pattern: Pattern) -> PredictedTimes:
    """Return the predictions of the model lop. With one partner, a rank is a port with free receives. Otherwise the
    time of a message depends on the number of messages sent or received with it."""
    posting, printed = values.find_setting("posting"), values.find_setting("latency") == "printed"
    statistic = values.find_setting("statistic")
    rtt, o = POSTING[posting]
    rtt += "" if statistic == "median" else f"_{statistic}"
    if rtt not in {name.partition(".")[0] for name in values.values.numbers}:
        raise UserError(f"no {rtt} in this set")
    of_one = row.put("lop o(1)", values.at(o, make_term(1)))

    def round_of(name: str, partners: Number) -> tuple[Term, Term, Term]:
        """Return the time until the network starts on the messages, the time from then until they have arrived, and the
        time that the processor is busy."""
        count = row.put(f"lop {name} partners", largest(partners, 1))
        of_many = row.put(f"lop {name} o(n)", values.at(o, count))
        busy = count * of_many
        first = busy if posting == "list" else of_many
        overheads = of_one + first if printed else (of_one + of_many) / 2
        wire = count * largest(values.at(rtt, count) / 2 - overheads, 0)
        return tuple(
            row.put(f"lop {name} {part}", value) for part, value in zip(PARTS, (first, wire, busy), strict=True)
        )

    first, wire, _ = single = round_of("single", 1)
    message = Message(first, wire, make_term(0), make_term(0), make_term(0))
    predictions = predict_port_model(row, "lop", pattern, lambda _: message, values["gamma"])
    work = values["gamma"] * pattern.bytes

    def level(name: str, children: Number) -> tuple[Term, Term, Term]:
        """Return the time down a level, the time that its parent is busy, and the time up."""
        posted, arrival, busy = round_of(name, children)
        return posted + largest(arrival, single[1]), busy, first + largest(arrival, single[1]) + children * work

    down, busy, up = level("linear", pattern.ranks - 1)
    predictions[BCAST, LINEAR], predictions[REDUCE, LINEAR] = largest(down, busy), up
    down, busy, up = level("k-ary", pattern.fan_out)
    before = (pattern.height - 1) * down
    predictions[BCAST, KARY], predictions[REDUCE, KARY] = before + largest(down, busy), pattern.height * up
    reached, ready, raised = make_term(0), make_term(0), make_term(0)
    for number, children in enumerate(pattern.fan_outs, 1):
        down, busy, up = level(f"level {number}", children)
        arrival = children > 0
        ready = row.put(f"lop done {number}", choose_if(arrival, largest(ready, reached + busy), ready))
        reached = row.put(f"lop reached {number}", choose_if(arrival, reached + down, reached))
        raised = row.put(f"lop raised {number}", choose_if(arrival, raised + up, raised))
    predictions[BCAST, TREE], predictions[REDUCE, TREE] = largest(reached, ready), raised
    return predictions


PARTS = ("first", "wire", "busy")


def predict_tan(row: Row, values: ModelTerms, pattern: Pattern) -> PredictedTimes:
    """Return the predictions of reductions; the model has no cost of sends."""
    function, constant = ("o", "C")
    if values.find_setting("recipe") == "paper":
        if "o_paper" not in values.values.functions:
            raise UserError("no o_paper in this set")
        function, constant = "o_paper", "C_paper" if "C_paper" in values else "C"
    start = values[constant]

    def level(name: str, children: Number) -> Term:
        return row.put(f"tan {name}", values["L"] + values.at(function, children + make_term(1)) + values["g"])

    def upwards(name: str, levels: Term, children: Number) -> Term:
        """Return the time of some levels of equal duration; a negative duration counts once."""
        seconds = level(name, children)
        return start + choose_if(seconds > 0, levels, 1) * seconds

    predictions = {
        (REDUCE, LINEAR): start + level("linear", pattern.ranks - 1),
        (REDUCE, CHAIN): upwards("chain", pattern.ranks - 1, 1),
        (REDUCE, KARY): upwards("k-ary", pattern.height, pattern.fan_out),
    }
    ready = start
    for number, children in reversed(list(enumerate(pattern.fan_outs, 1))):
        seconds = level(f"level {number}", children)
        ready = row.put(f"tan ready {number}", choose_if(children > 0, seconds + largest(start, ready), ready))
    predictions[REDUCE, TREE] = ready
    predictions[REDUCE, BINOMIAL] = _predict_tan_binomial(row, pattern.ranks, start, level)
    return predictions


def _predict_tan_binomial(row: Row, ranks: Term, start: Term, level: Callable[[str, Number], Term]) -> Term:
    """Return the time of a reduction over a binomial tree, in columns as in `binomial_up`: the rank of the top bit is
    the last of j children. All j children are received in one phase."""
    full_tree, latest, below = (
        start,
        start,
        make_term(0),
    )  # of 2^(j-1) ranks, the latest of those and of fewer, of the low bits
    before = start
    for j in range(1, BITS + 1):
        top, low_part = split_low_bits(ranks, j)
        seconds = level(f"of {j}", j)
        upward = seconds + largest(before, below)
        below = row.put(f"tan up {j}", choose_if(top, choose_if(low_part.equals(0), full_tree, upward), below))
        full_tree = row.put(f"tan full {j}", seconds + latest)
        before, latest = latest, row.put(f"tan latest {j}", largest(latest, full_tree))
    return below


FORMULAS: dict[str, Callable[[Row, ModelTerms, Pattern], PredictedTimes]] = {
    "hockney": predict_hockney,
    "logp": predict_logp,
    "loggp": predict_loggp,
    "tan": predict_tan,
    "cluster": predict_cluster,
    "lop": predict_lop,
    "taulop": predict_taulop,
}
