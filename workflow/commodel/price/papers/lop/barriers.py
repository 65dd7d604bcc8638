"""What a barrier gains by several signals a round: the LoP paper's conclusion."""

from math import nan

from commodel.models.sets import published
from commodel.parameters import ParameterSet
from commodel.price.papers import NO_NUMBER, Evidence, Figure, Line, Numbers, Panel, Row, prices
from commodel.price.papers.lop.roundtrips import read
from commodel.price.rounds import DISSEMINATION, lower_bound, radices

NODES = (8, 16, 32, 64)
SIGNALS = range(2, 9)  # of a round: few, and beyond them those that end in fewer rounds
GAIN = 40  # %, "up to"


def fastest(parameters: ParameterSet, ranks: int) -> tuple[str, float, float]:
    """The cheapest dissemination of those that could be, its price, and that of the plain one."""
    names = (DISSEMINATION, *(f"n-way:{n}" for n in sorted({*SIGNALS, *radices(ranks)}) if n < ranks))
    costs = {name: prices(parameters, "barrier", name, ranks, [0])[0] for name in names}
    best = min(costs, key=costs.get)
    return best, costs[best], costs[DISSEMINATION]


def barriers(evidence: Evidence) -> Figure:
    """The best n-way dissemination beside the plain one, and beside what no barrier in rounds can be below."""
    sets = {
        f"LoP, {source}, {latency}": read(published(f"lop/infiniband-{name}"), latency=latency)
        for name, source in (("rdma-write", "RDMA Write"), ("send", "Send/Receive"))
        for latency in ("printed", "halved")
    }
    if (fitted := evidence.fitted("lop")) is not None:
        sets[f"LoP, fitted on {evidence.platform}"] = fitted
    gains, times, panels = [], [], []
    for title, parameters in sets.items():
        cheapest = [fastest(parameters, ranks) for ranks in NODES]
        bounds = [lower_bound(parameters, ranks).seconds for ranks in NODES]
        for ranks, bound, (best, cost, plain) in zip(NODES, bounds, cheapest, strict=True):
            times.append(Row((title, ranks, best), nan, (bound, cost, plain)))
        best, cost, plain = cheapest[-1]
        gains.append(Row((title, best), GAIN, (100 * (1 - cost / plain),)))
        lines = (
            Line("plain", NODES, [plain for *_, plain in cheapest], "dashed", 1),
            Line("best n-way", NODES, [cost for _, cost, _ in cheapest], "both"),
            Line("lower bound", NODES, bounds, "dashed", -1),
        )
        panels.append(Panel(title, "nodes", "time [s]", lines))
    word = evidence.word(evidence.platform)
    points = evidence.points(operation="barrier", ranks=NODES[-1])
    clocked = {name: time for name, time in zip(points["choice"], points["measured"], strict=True) if name != "library"}
    if DISSEMINATION in clocked:
        best = min(clocked, key=clocked.get)
        gains.append(Row((word, best), GAIN, (100 * (1 - clocked[best] / clocked[DISSEMINATION]),)))
    return Figure(
        "Section 5",
        "what a barrier gains by several signals a round",
        "The n-way dissemination that LoP finds cheapest, beside the plain one, and beside LoP's lower bound of all "
        "barriers in rounds: what a rank knows grows at most (n + 1)-fold in a round with n signals. The paper's gain, "
        "up to 40 % over the best barrier known then, was measured.",
        "LoP charges a rank for the n signals that it sends in a round or for the n that it takes, not for both, and "
        "so promises more than a network interface or a processor can keep that does both.",
        (
            Numbers("Gain on 64 nodes", ("by", "best"), ("gain",), "section 5: up to 40 %", tuple(gains), "%"),
            Numbers(
                "Times by LoP",
                ("values", "nodes", "best"),
                ("lower bound", "best n-way", "plain"),
                NO_NUMBER,
                tuple(times),
            ),
        ),
        tuple(panels),
        (evidence.platform,) if clocked else (),
    )
