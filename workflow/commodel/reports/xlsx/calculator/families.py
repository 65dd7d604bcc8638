"""Predictions of each model as spreadsheet formulas: those of `models.families`, for patterns with a closed form.
`FORMULAS` has the function of each model.

The patterns send messages of one size down or up a tree, and each rank has one port. All ranks that a step of the tree
reaches are equivalent, so the last rank is reached over one of few longest paths. A message occupies its sender for
`send`, the next one leaves `send_interval` later; a message is received `hop` later. Binomial trees are those of
`patterns.rounds`, for any number of ranks: the farthest rank first on the way down, the nearest first on the way up."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from commodel.errors import UserError
from commodel.reports.xlsx.calculator.cells import (
    MAX_RANK_BITS,
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

PredictedTimes = dict[tuple[str, str], Term]  # by operation and alternative, in microseconds


@dataclass(frozen=True, slots=True)
class Message:
    """The times of one message in microseconds, with the fields of `models.evaluation.replay.Costs`."""

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
        """Put each field into its own column and return the message that refers to these cells."""
        return Message(*(row.put(f"{name} {part}", getattr(self, part)) for part in self.__slots__))


def predict_port_model(
    row: Row, name: str, pattern: Pattern, message: Callable[[Term], Message], gamma: Term
) -> PredictedTimes:
    """Return the predictions of a model in which all messages of one size cost the same."""
    costs = message(pattern.bytes).put(row, name)
    gap, hop = row.put(f"{name} send interval", costs.send_interval), row.put(f"{name} hop", costs.hop)
    work = row.put(f"{name} work", gamma * pattern.bytes)
    receive_interval, transfer = largest(costs.receive, costs.gap_in), costs.send + costs.wire + costs.receive

    def compute_broadcast_level(children: Number) -> Term:
        return (make_term(children) - 1) * gap + hop

    def compute_reduction_level(children: Number) -> Term:
        return transfer + (make_term(children) - 1) * receive_interval + children * work

    predictions = {
        (BCAST, kind): prediction for kind, prediction in _predict_trees(pattern, compute_broadcast_level).items()
    }
    predictions |= {
        (REDUCE, kind): prediction for kind, prediction in _predict_trees(pattern, compute_reduction_level).items()
    }
    predictions[BCAST, BINOMIAL] = predict_binomial_broadcast(pattern.ranks, hop, gap)
    predictions[BCAST, CHAIN] = predict_pipeline(row, name, pattern, message)
    predictions[REDUCE, BINOMIAL] = predict_binomial_reduction(row, name, pattern.ranks, costs, work)
    predictions[REDUCE, CHAIN] = (pattern.ranks - 1) * compute_reduction_level(1)
    return predictions


def _predict_trees(pattern: Pattern, level: Callable[[Number], Term]) -> dict[str, Term]:
    """Return the times over linear, k-ary and general trees. `level(n)` returns the time of a level in which each
    parent has n children."""
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
    arrival, receive_and_work = message.send + message.wire, message.receive + work
    step = row.put(f"{name} step up", largest(arrival + receive_and_work, message.gap_in))

    def compute_full_tree(bits: int) -> Term:  # 2^bits ranks
        return arrival + receive_and_work + (bits - 1) * step if bits else make_term(0)

    low_ranks_time = row.put(f"{name} up 0", 0)
    for j in range(1, MAX_RANK_BITS + 1):
        bit_is_set, low_part = split_low_bits(ranks, j)
        starts = [compute_full_tree(j - 1), low_ranks_time + arrival]
        starts += [arrival + (j - 2) * step + message.gap_in] if j > 1 else []
        low_ranks_time = row.put(
            f"{name} up {j}",
            choose_if(
                bit_is_set,
                choose_if(low_part.equals(0), compute_full_tree(j - 1), largest(*starts) + receive_and_work),
                low_ranks_time,
            ),
        )
    return low_ranks_time


def split_low_bits(ranks: Term, j: int) -> tuple[Term, Term]:
    """Return whether the j-th lowest bit of P is 1, and the number formed by the bits below it."""
    power = 1 << (j - 1)
    low_part = ranks - power * round_down(ranks / power)
    half = round_down(ranks / power)
    return (half - 2 * round_down(half / 2)).equals(1), low_part


def predict_pipeline(row: Row, name: str, pattern: Pattern, message: Callable[[Term], Message]) -> Term:
    """Return the time of a broadcast of segments down a chain of ranks; the last segment may be shorter.

    The longest path follows the first segment for some hops. Then it stays at one rank, where each segment takes as
    long as the slowest step. From there it follows the last segment. Its time is linear in the number of hops before,
    so only the ends need comparing."""
    ranks, count = pattern.ranks, row.put(f"{name} segments", largest(round_up(pattern.bytes / pattern.segment), 1))
    segment = message(choose_if(count > 1, pattern.segment, pattern.bytes)).put(row, f"{name} segment")
    last_segment = message(pattern.bytes - pattern.segment * (count - 1)).put(row, f"{name} last")
    hop, last_hop = row.put(f"{name} segment hop", segment.hop), row.put(f"{name} last hop", last_segment.hop)
    arrival, gap = segment.send + segment.wire, largest(segment.send, segment.gap_out)
    relay_time = segment.send + segment.receive  # of a rank that forwards a segment and then receives the next one
    slowest = choose_if(
        ranks > 2, largest(relay_time, segment.gap_out, segment.gap_in), largest(gap, segment.receive, segment.gap_in)
    )
    middle_segments_time = row.put(f"{name} middle segments", (count - 2) * slowest)

    def change_at(rank: Number) -> Term:
        """Return the time of the path that passes to the last segment at this rank, which is neither first nor last."""
        time_before, time_after = rank * hop + middle_segments_time, (ranks - 1 - rank) * last_hop
        last_received = largest(relay_time, last_segment.gap_in) + last_segment.receive
        return time_before - segment.receive + time_after + largest(last_received, gap + segment.receive)

    changed_at_root = (count - 1) * gap + (ranks - 1) * last_hop
    changed_at_last_rank = (
        (ranks - 1) * arrival
        + (ranks - 2) * segment.receive
        + middle_segments_time
        + largest(segment.receive, last_segment.gap_in)
        + last_segment.receive
    )
    changed_between = choose_if(ranks > 2, largest(change_at(make_term(1)), change_at(ranks - 2)), 0)
    return choose_if(count > 1, largest(changed_at_root, changed_at_last_rank, changed_between), (ranks - 1) * last_hop)


MAX_SENDERS = 1024  # largest window that the formula tries
MIN_GAP_US = 1e-6  # avoids a division by 0


@dataclass(frozen=True, slots=True)
class PacketTrain:
    """A message as packets: `full_packets` packets of full size, then one of `last_bytes` bytes."""

    values: ModelTerms
    last_bytes: Term
    full_packets: Term
    of_last_packet: dict[str, Term]  # O_s, g_s and O_r at the size of the last packet
    of_full_packet: dict[str, Term]  # the same at the size of a full packet

    @property
    def busy(self) -> Term:
        return self.full_packets * self.of_full_packet["g_s"] + self.of_last_packet["g_s"]

    def compute_latency(self, bytes: Term, ranks: Number, gap: Term) -> Term:
        values = self.values
        share = (
            ranks * bytes / (values["capacity"] * largest(gap, MIN_GAP_US)) if "capacity" in values else make_term(0)
        )
        return values["L_0"] + values["L_p"] * ranks + values["L_m"] * bytes * largest(1, share)

    def hop(self, ranks: Term) -> Term:
        """Return the time from the start of a message until it is received, while `ranks` ranks exchange messages."""
        values, packet = self.values, self.values["packet"]
        received = self.of_full_packet["O_r"] + values["U_r"]
        sender_bound = self.full_packets * self.of_full_packet["g_s"] + self.of_last_packet["O_s"]
        sender_bound = sender_bound + self.compute_latency(self.last_bytes, ranks, self.of_last_packet["g_s"])
        receiver_bound = (
            self.of_full_packet["O_s"] + self.compute_latency(packet, ranks, self.of_full_packet["g_s"]) + received
        )
        receiver_bound = receiver_bound + (self.full_packets - 1) * largest(self.of_full_packet["g_s"], received)
        arrival = choose_if(self.full_packets > 0, largest(sender_bound, receiver_bound), sender_bound)
        return arrival + self.of_last_packet["O_r"] + values["U_r"]


def predict_cluster(row: Row, values: ModelTerms, pattern: Pattern) -> PredictedTimes:
    full_packets = row.put("cluster full packets", largest(round_up(pattern.bytes / values["packet"]) - 1, 0))
    last_bytes = row.put("cluster last packet", pattern.bytes - full_packets * values["packet"])
    names = ("O_s", "g_s", "O_r")
    of_last_packet = {name: row.put(f"cluster {name}", values.at(name, last_bytes)) for name in names}
    of_full_packet = {name: row.put(f"cluster {name} full", values.at(name, values["packet"])) for name in names}
    train = PacketTrain(values, last_bytes, full_packets, of_last_packet, of_full_packet)
    busy = row.put("cluster busy", train.busy)
    messages_in_flight = row.put(
        "cluster in flight", round_up(train.compute_latency(last_bytes, 2, of_last_packet["g_s"]) / largest(busy, 1e-9))
    )
    ranks_in_total = pattern.ranks

    def level(name: str, parents: Number, children: Number) -> Term:
        """Return the time until the last child of a node is reached. Several messages of one sender are in flight at
        once."""
        ranks = parents * (1 + smallest(largest(messages_in_flight, 1), children))
        return row.put(f"cluster {name}", (make_term(children) - 1) * busy + train.hop(ranks))

    nodes, reached, senders_done = make_term(1), make_term(0), make_term(0)
    for number, children in enumerate(pattern.fan_outs, 1):
        has_children, child_count = children > 0, largest(children, 1)
        level_time = level(f"level {number}", nodes, child_count)
        senders_done = row.put(
            f"cluster done {number}",
            choose_if(has_children, largest(senders_done, reached + children * busy), senders_done),
        )
        reached = row.put(f"cluster reached {number}", choose_if(has_children, reached + level_time, reached))
        nodes = row.put(f"cluster nodes {number}", nodes * child_count)
    return {
        (BCAST, LINEAR): largest(level("linear", make_term(1), ranks_in_total - 1), (ranks_in_total - 1) * busy),
        (BCAST, TREE): largest(reached, senders_done),
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
    """Return the time of a broadcast over a binomial tree. Each round updates two times: when the last rank with a full
    subtree may send, and when the rank may send whose subtree has fewer ranks because P is no power of two."""
    all_ready, cut_rank_ready, cut_off = (
        make_term(0),
        make_term(0),
        pattern.ranks,
    )  # `cut_off`: ranks of the incomplete subtree
    k = None
    for j in range(1, MAX_RANK_BITS + 1):
        sent = count_sent_in_round(row, pattern.ranks, j)
        k = row.refer_to("rounds")
        distance = 2 ** largest(k - j, 0)
        hop = row.put(f"cluster round {j}", train.hop(2 * sent))
        sends, contains_cut = k > (j - 1), cut_off > distance
        complete = row.put(f"cluster complete {j}", all_ready + largest(busy, hop))
        latest_ready = largest(complete, cut_rank_ready + busy) if j > 1 else cut_rank_ready + busy
        all_ready = row.put(
            f"cluster ready {j}",
            choose_if(sends, choose_if(contains_cut, latest_ready, complete if j > 1 else 0), all_ready),
        )
        cut_rank_ready = row.put(
            f"cluster cut-off ready {j}",
            choose_if(sends, choose_if(contains_cut, cut_rank_ready + hop, cut_rank_ready), cut_rank_ready),
        )
        cut_off = row.put(
            f"cluster cut off {j}", choose_if(sends, choose_if(contains_cut, cut_off - distance, cut_off), cut_off)
        )
    return largest(all_ready, cut_rank_ready)


def find_bounds(row: Row, values: ModelTerms, pattern: Pattern) -> dict[str, Term]:
    """Return how many ranks may send to one at once (equations 5 to 7), when a buffer is full, and the share of packets
    that arrives if all send at once (equations 3 and 4), as `models.evaluation.buffer_overflow` does."""
    senders = row.put("senders", pattern.ranks - 1)
    packet_bytes = smallest(pattern.bytes, values["packet"])
    g_s, g_r = (row.put(f"gather {name}", values.at(name, packet_bytes)) for name in ("g_s", "g_r"))
    packets = row.put("gather packets", largest(round_up(pattern.bytes / values["packet"]), 1) * senders)
    smallest_window = row.put("gather fewest senders", round_up(g_s / g_r))
    if "B_L" not in values:
        return {"fewest": smallest(smallest_window, senders), "most": senders, "window": senders}
    buffer = values["B_L"]
    lossless = smallest(senders, round_down(g_s * packets / (g_r * (packets - buffer))))
    largest_window = row.put("gather most senders", choose_if(packets <= buffer, senders, lossless))
    even_window = row.put(
        "gather even window", _find_best_window(senders, smallest_window, largest_window, with_remainder=False)
    )
    printed_window = row.put(
        "gather printed window", _find_best_window(senders, smallest_window, largest_window, with_remainder=True)
    )
    best_window = largest(even_window, printed_window)
    allowed_window = choose_if(best_window.equals(0), largest(1, smallest(largest_window, senders)), best_window)
    window = row.put("gather window", choose_if(buffer > packets, senders, allowed_window))
    arriving_share = row.put("gather arriving share", smallest(1, g_s / (senders * g_r) + buffer / packets))
    surplus = senders / g_s - 1 / g_r
    fill_time = row.put("gather fill time", choose_if(surplus > 0, buffer / surplus, 0))
    return {
        "fewest": smallest(smallest_window, senders),
        "most": largest_window,
        "window": window,
        "arriving_share": arriving_share,
        "fill_time": fill_time,
    }


def _find_best_window(senders: Term, smallest: Term, largest: Term, *, with_remainder: bool) -> Term:
    """Return the largest window within the bounds that divides the senders evenly or, if `with_remainder`, leaves at
    least `smallest` at the end (as printed); 0 if there is none."""
    candidates = f"ROW($1:${MAX_SENDERS})"
    remainder = f"MOD({senders.text},{candidates})"
    is_allowed = f"({remainder}>={smallest.text})" if with_remainder else f"({remainder}=0)"
    text = f"SUMPRODUCT(MAX(({candidates}>={smallest.text})*({candidates}<={largest.text})*{is_allowed}*{candidates}))"
    if math.isnan(smallest.value + largest.value):
        return Term(text, math.nan)
    windows = range(max(int(smallest.value), 1), min(int(largest.value), MAX_SENDERS) + 1)
    remainders = ((window, int(senders.value) % window) for window in windows)
    value = max(
        (
            window
            for window, remainder in remainders
            if (remainder >= smallest.value if with_remainder else remainder == 0)
        ),
        default=0,
    )
    return Term(text, float(value))


MAX_KARY_HEIGHT = 24  # levels


def is_of_one_node(values: ModelTerms) -> bool:
    """Return whether only messages within nodes were measured."""
    return not any(name.startswith("L_1") for name in values.values.functions)


def predict_taulop(row: Row, values: ModelTerms, pattern: Pattern) -> PredictedTimes:
    channel = 0 if is_of_one_node(values) else 1
    if f"L_{channel}" not in values.values.functions or f"o_{channel}" not in values.values.functions:
        raise UserError("its values differ between node types")
    if values.find_setting("join") != "no" or (channel and values.find_setting("network") != "rdma"):
        raise UserError("this sheet has no formula for joined stages or for copies at both ends")
    surface = values.put_surface(row, f"L_{channel}", pattern.bytes)
    overhead = row.put("taulop overhead", values.at(f"o_{channel}", pattern.bytes))
    shares_port = values.find_setting("shared") == "port"
    empty_overhead = (
        row.put("taulop empty overhead", values.at(f"o_{channel}", 0)) if shares_port else None
    )  # the processor, which the port does not block
    if channel:
        return _predict_taulop_of_nodes(row, values, pattern, overhead, surface, empty_overhead)
    return _Memory(row, values, overhead, surface, empty_overhead).predict_all(pattern)


def _predict_taulop_of_nodes(
    row: Row, values: ModelTerms, pattern: Pattern, overhead: Term, surface: Surface, empty_overhead: Term | None
) -> PredictedTimes:
    both_ways = values.find_setting("rings") == "both-ways"
    rounds = []
    for j in range(1, MAX_RANK_BITS + 1):
        sent = count_sent_in_round(row, pattern.ranks, j)
        concurrent_messages = (
            largest(sent, 1) if values.find_setting("shared") == "channel" else make_term(2 if both_ways else 1)
        )
        message_time = overhead + surface.at(concurrent_messages)
        rounds.append(row.put(f"taulop round {j}", choose_if(sent > 0, largest(message_time, empty_overhead or 0), 0)))
    return {(BCAST, BINOMIAL): add_terms(rounds)}


@dataclass(frozen=True, slots=True)
class _Memory:
    """The memory of a node, which every message passes twice, and its processors. The root of a tree is the only parent
    of the first level; the next level has as many parents as the first has children."""

    row: Row
    values: ModelTerms
    overhead: Term
    surface: Surface
    empty_overhead: Term | None  # of a message of 0 bytes; None: a processor may work while it sends

    def compute_level_time(self, name: str, parents: Number, children: Number) -> Term:
        """Return the time until all messages of a level have arrived, from each parent to each of its children."""
        seconds = self.overhead + 2 * self.surface.at(largest(make_term(parents) * children, 1))
        if self.empty_overhead is not None:
            further_message_time = self.values["p_0"] if "p_0" in self.values else make_term(0)
            seconds = largest(
                seconds,
                self.empty_overhead + (make_term(children) - 1) * further_message_time,
                children * further_message_time,
            )
        return self.row.put(f"taulop {name}", seconds)

    def compute_time_down(self, name: str, parents: Number, children: Number, gathered: Term) -> Term:
        """Return the time of a level of a broadcast: that of a reduction (`gathered`), unless a parent sends its
        messages one after the other. Then a message is concurrent with one message of each other parent."""
        if self.values.find_setting("shared") != "node":
            return gathered
        message_time = self.overhead + 2 * self.surface.at(make_term(parents))
        return self.row.put(f"taulop {name} down", children * message_time)

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
        for j in range(1, MAX_RANK_BITS + 1):
            sent = count_sent_in_round(row, pattern.ranks, j)
            is_sent = sent > 0
            rounds.append(
                (
                    row.put(
                        f"taulop round time {j}", choose_if(is_sent, self.compute_level_time(f"round {j}", sent, 1), 0)
                    ),
                    is_sent,
                )
            )
        predictions[BCAST, BINOMIAL] = add_terms([seconds for seconds, _ in rounds])
        predictions[REDUCE, BINOMIAL] = add_terms(
            [seconds + choose_if(is_sent, work, 0) for seconds, is_sent in rounds]
        )
        heights = [choose_if(pattern.height > level, pattern.fan_out, 0) for level in range(MAX_KARY_HEIGHT)]
        for kind, fan_outs in ((KARY, heights), (TREE, pattern.fan_outs)):
            predictions[BCAST, kind], predictions[REDUCE, kind] = self._predict_levels(kind, list(fan_outs), work)
        return predictions

    def _predict_levels(self, kind: str, fan_outs: list[Term], work: Term) -> tuple[Term, Term]:
        parents, times_down, times_up = make_term(1), [], []
        for number, children in enumerate(fan_outs, 1):
            name, has_children = f"{kind} {number}", children > 0
            up = self.compute_level_time(name, parents, children)
            down = self.compute_time_down(name, parents, children, up)
            times_down.append(choose_if(has_children, down, 0))
            times_up.append(choose_if(has_children, up + children * work, 0))
            parents = self.row.put(f"taulop {name} nodes", parents * largest(children, 1))
        return add_terms(times_down), add_terms(times_up)


POSTING_PARAMETERS = {"isend": ("rtt", "o_s"), "list": ("rtt_list", "o_list"), "put": ("rtt_put", "o_put")}


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
    """Return the predictions of the model lop. With one partner, receives take no time. With more partners, the time
    of a message depends on the number of messages that the rank sends or receives together with it."""
    posting, uses_printed_latency = values.find_setting("posting"), values.find_setting("latency") == "printed"
    statistic = values.find_setting("statistic")
    rtt_name, overhead_name = POSTING_PARAMETERS[posting]
    rtt_name += "" if statistic == "median" else f"_{statistic}"
    if rtt_name not in {name.partition(".")[0] for name in values.values.numbers}:
        raise UserError(f"no {rtt_name} in this set")
    single_overhead = row.put("lop o(1)", values.at(overhead_name, make_term(1)))

    def round_of(name: str, partners: Number) -> tuple[Term, Term, Term]:
        """Return three times of a round: until the first message is posted, from then until all messages have arrived,
        and how long the processor is busy."""
        count = row.put(f"lop {name} partners", largest(partners, 1))
        message_overhead = row.put(f"lop {name} o(n)", values.at(overhead_name, count))
        busy = count * message_overhead
        first = busy if posting == "list" else message_overhead
        overheads = single_overhead + first if uses_printed_latency else (single_overhead + message_overhead) / 2
        wire = count * largest(values.at(rtt_name, count) / 2 - overheads, 0)
        posted, arrived, used = (
            row.put(f"lop {name} {part}", value) for part, value in zip(ROUND_TIMES, (first, wire, busy), strict=True)
        )
        return posted, arrived, used

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
    reached_time, senders_done, time_up = make_term(0), make_term(0), make_term(0)
    for number, children in enumerate(pattern.fan_outs, 1):
        down, busy, up = level(f"level {number}", children)
        arrival = children > 0
        senders_done = row.put(
            f"lop done {number}", choose_if(arrival, largest(senders_done, reached_time + busy), senders_done)
        )
        reached_time = row.put(f"lop reached {number}", choose_if(arrival, reached_time + down, reached_time))
        time_up = row.put(f"lop time up {number}", choose_if(arrival, time_up + up, time_up))
    predictions[BCAST, TREE], predictions[REDUCE, TREE] = largest(reached_time, senders_done), time_up
    return predictions


ROUND_TIMES = ("first", "wire", "busy")


def predict_tan(row: Row, values: ModelTerms, pattern: Pattern) -> PredictedTimes:
    """Return the predictions of reductions. The model tan predicts no broadcasts."""
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
    """Return the time of a reduction over a binomial tree, in columns as in `predict_binomial_reduction`: the rank of
    the top bit is the last of j children. All j children are received in one phase."""
    full_tree, latest, low_ranks_time = (
        start,
        start,
        make_term(0),
    )  # of 2^(j-1) ranks, the latest of those and of fewer, of the low bits
    previous_latest = start
    for j in range(1, MAX_RANK_BITS + 1):
        bit_is_set, low_part = split_low_bits(ranks, j)
        seconds = level(f"children {j}", j)
        reception_end = seconds + largest(previous_latest, low_ranks_time)
        low_ranks_time = row.put(
            f"tan up {j}",
            choose_if(bit_is_set, choose_if(low_part.equals(0), full_tree, reception_end), low_ranks_time),
        )
        full_tree = row.put(f"tan full {j}", seconds + latest)
        previous_latest, latest = latest, row.put(f"tan latest {j}", largest(latest, full_tree))
    return low_ranks_time


FORMULAS: dict[str, Callable[[Row, ModelTerms, Pattern], PredictedTimes]] = {
    "hockney": predict_hockney,
    "logp": predict_logp,
    "loggp": predict_loggp,
    "tan": predict_tan,
    "cluster": predict_cluster,
    "lop": predict_lop,
    "taulop": predict_taulop,
}
