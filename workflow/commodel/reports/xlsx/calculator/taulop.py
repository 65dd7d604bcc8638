"""τ–Lop: of ranks on nodes of their own a broadcast, round by round; of ranks of one node all trees, whose messages
share its memory. What is sent in a round goes on at once, and rounds add up."""

from dataclasses import dataclass

from commodel.errors import UserError
from commodel.reports.xlsx.calculator.cells import BITS, Number, Pattern, Row, Term, largest, term, total, when
from commodel.reports.xlsx.calculator.closed_forms import BCAST, BINOMIAL, CHAIN, KARY, LINEAR, REDUCE, TREE, Prices
from commodel.reports.xlsx.calculator.cluster import sent_in_round
from commodel.reports.xlsx.calculator.known import Known, Surface

MOST_HEIGHT = 24  # of a k-ary tree


def of_one_node(known: Known) -> bool:
    """Whether all that was measured is messages within nodes."""
    return not any(name.startswith("L_1") for name in known.values.functions)


def prices(row: Row, known: Known, pattern: Pattern) -> Prices:
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
    return _Memory(row, known, overhead, surface, empty).prices(pattern)


def _of_many_nodes(
    row: Row, known: Known, pattern: Pattern, overhead: Term, surface: Surface, empty: Term | None
) -> Prices:
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

    def prices(self, pattern: Pattern) -> Prices:
        row, bytes = self.row, pattern.bytes
        work = row.put("taulop work", when(bytes > 0, self.known.at("gamma", bytes), 0))
        others = pattern.ranks - 1
        gathered = self.lasts("linear", 1, others)
        prices = {
            (BCAST, LINEAR): self.down("linear", 1, others, gathered),
            (REDUCE, LINEAR): gathered + others * work,
            (REDUCE, CHAIN): others * (self.lasts("chain", 1, 1) + work),
        }
        rounds = []
        for j in range(1, BITS + 1):
            sent = sent_in_round(row, pattern.ranks, j)
            there = sent > 0
            rounds.append((row.put(f"taulop takes {j}", when(there, self.lasts(f"round {j}", sent, 1), 0)), there))
        prices[BCAST, BINOMIAL] = total([seconds for seconds, _ in rounds])
        prices[REDUCE, BINOMIAL] = total([seconds + when(there, work, 0) for seconds, there in rounds])
        heights = [when(pattern.height > level, pattern.fan_out, 0) for level in range(MOST_HEIGHT)]
        for way, fan_outs in ((KARY, heights), (TREE, pattern.fan_outs)):
            prices[BCAST, way], prices[REDUCE, way] = self._levels(way, list(fan_outs), work)
        return prices

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
