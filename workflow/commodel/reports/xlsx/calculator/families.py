"""Prices of each family as formulas: what stands in `models.families`, for patterns whose closed form is known."""

from collections.abc import Callable

from commodel.errors import UserError
from commodel.reports.xlsx.calculator import cluster, taulop
from commodel.reports.xlsx.calculator.cells import BITS, Number, Pattern, Row, Term, largest, term, when
from commodel.reports.xlsx.calculator.closed_forms import (
    BCAST,
    BINOMIAL,
    CHAIN,
    KARY,
    LINEAR,
    REDUCE,
    TREE,
    Message,
    Prices,
    low_bits,
    ports,
)
from commodel.reports.xlsx.calculator.known import Known

POSTING = {"isend": ("rtt", "o_s"), "list": ("rtt_list", "o_list"), "put": ("rtt_put", "o_put")}


def hockney(row: Row, known: Known, pattern: Pattern) -> Prices:
    def message(bytes: Term) -> Message:
        seconds = known.at("alpha", bytes) + known.at("beta", bytes) * bytes
        return Message(term(0), seconds, term(0), seconds, seconds)

    return ports(row, "hockney", pattern, message, known["gamma"])


def logp(row: Row, known: Known, pattern: Pattern) -> Prices:
    if known.setting("capacity") == "finite":
        raise UserError("of a finite capacity there is no closed form")
    message = Message(known["o"], known["L"], known["o"], known["g"], known["g"])
    return ports(row, "logp", pattern, lambda _: message, known["gamma"])


def loggp(row: Row, known: Known, pattern: Pattern) -> Prices:
    def message(bytes: Term) -> Message:
        body = known["G"] * largest(bytes - 1, 0)
        gap = known["g"] + body
        return Message(known["o_s"], known["L"] + body, known["o_r"], gap, gap)

    return ports(row, "loggp", pattern, message, known["gamma"])


def lop(row: Row, known: Known, pattern: Pattern) -> Prices:
    """Where a rank has one partner, a port that takes nothing for receiving; else what a message costs hangs on how
    many are sent or received with it."""
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
    prices = ports(row, "lop", pattern, lambda _: message, known["gamma"])
    work = known["gamma"] * pattern.bytes

    def level(name: str, children: Number) -> tuple[Term, Term, Term]:
        """Down a level, the time that its parent is busy, and up."""
        ahead, there, busy = round_of(name, children)
        return ahead + largest(there, single[1]), busy, first + largest(there, single[1]) + children * work

    down, busy, up = level("linear", pattern.ranks - 1)
    prices[BCAST, LINEAR], prices[REDUCE, LINEAR] = largest(down, busy), up
    down, busy, up = level("k-ary", pattern.fan_out)
    before = (pattern.height - 1) * down
    prices[BCAST, KARY], prices[REDUCE, KARY] = before + largest(down, busy), pattern.height * up
    reached, ready, raised = term(0), term(0), term(0)
    for number, children in enumerate(pattern.fan_outs, 1):
        down, busy, up = level(f"level {number}", children)
        there = children > 0
        ready = row.put(f"lop done {number}", when(there, largest(ready, reached + busy), ready))
        reached = row.put(f"lop reached {number}", when(there, reached + down, reached))
        raised = row.put(f"lop raised {number}", when(there, raised + up, raised))
    prices[BCAST, TREE], prices[REDUCE, TREE] = largest(reached, ready), raised
    return prices


PARTS = ("first", "wire", "busy")


def tan(row: Row, known: Known, pattern: Pattern) -> Prices:
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
        """A level that takes less than nothing is not waited for again."""
        seconds = level(name, children)
        return start + when(seconds > 0, levels, 1) * seconds

    prices = {
        (REDUCE, LINEAR): start + level("linear", pattern.ranks - 1),
        (REDUCE, CHAIN): upwards("chain", pattern.ranks - 1, 1),
        (REDUCE, KARY): upwards("k-ary", pattern.height, pattern.fan_out),
    }
    ready = start
    for number, children in reversed(list(enumerate(pattern.fan_outs, 1))):
        seconds = level(f"level {number}", children)
        ready = row.put(f"tan ready {number}", when(children > 0, seconds + largest(start, ready), ready))
    prices[REDUCE, TREE] = ready
    prices[REDUCE, BINOMIAL] = _tan_binomial(row, pattern.ranks, start, level)
    return prices


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


FORMULAS: dict[str, Callable[[Row, Known, Pattern], Prices]] = {
    "hockney": hockney,
    "logp": logp,
    "loggp": loggp,
    "tan": tan,
    "cluster": cluster.prices,
    "lop": lop,
    "taulop": taulop.prices,
}
