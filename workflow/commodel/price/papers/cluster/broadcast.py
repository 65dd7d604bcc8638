"""Figure 2: a broadcast packet by packet, by the cluster model and by LogP. The tree of figures 1 and 3."""

from commodel.parameters import ParameterSet
from commodel.price.papers import Evidence, Figure, Line, Numbers, Panel, Row, exact, prices
from commodel.price.papers.cluster.machine import JOB, PACKET, RANKS, SIZE, TABLE_1, TIME, Machine

PACKETS = (1, 2, 5, 10, 20, 50, 100)  # of a message
PACKETWISE = f"binomial:{PACKET}"


def tree() -> Figure:
    """The example of figures 1 and 3: 16 nodes, a gap of 1, and 3 for the whole way of a packet."""
    rounds, way, taken = 4, 3.0, 0.6 + 0.7
    machines = {
        "LogP": (exact("logp", {"L": way, "o": 0.0, "g": 1.0}), rounds),
        "the cluster model": (
            exact("cluster", {"O_s.a": 0.4, "g_s.a": 1, "g_r.a": 1, "O_r.a": 0.6, "U_r": 0.7, "L_0": 1.3, "L_m": 0}),
            rounds - 1 + taken,
        ),
    }
    rows = []
    for name, (values, further) in machines.items():
        first, second = prices(values, "bcast", PACKETWISE, 1 << rounds, (PACKET, 2 * PACKET))
        rows += [
            Row((name, "first packet"), rounds * way, (first,)),
            Row((name, "next packet"), further, (second - first,)),
        ]
    source = "by equations 1 and 2 with the values that stand under the figures"
    return Figure(
        "Figures 1 and 3",
        "the broadcast tree, and the node that its packets wait for",
        "A packet after the other down a binomial tree over 16 nodes, in units of the gap; the whole way of a packet "
        "takes 3 of them. By LogP packets wait for the root, by the cluster model for node 8, which cannot send while "
        "it receives.",
        "they do not, since what the schedule costs, message by message, is what the equations say.",
        (Numbers("In units of the gap", ("model", "what"), ("priced",), source, tuple(rows), "gaps"),),
    )


def broadcast(evidence: Evidence, printed: ParameterSet, fitted: ParameterSet | None) -> Figure:
    paper, word = Machine(printed), evidence.word(evidence.platform)
    sizes = [PACKET * packets for packets in PACKETS]
    by_model, by_logp, panels = [], [], []
    for ranks in RANKS:
        first = [paper.equation_1(ranks, packets) for packets in PACKETS]
        second = [paper.equation_2(ranks, packets) for packets in PACKETS]
        measured = evidence.times(sizes, operation="bcast", choice=PACKETWISE, ranks=ranks)
        logp = exact("logp", {"L": paper.trip(PACKET, ranks), "o": 0.0, "g": paper("g_s", PACKET)})
        priced, refitted, whole = (prices(some, "bcast", PACKETWISE, ranks, sizes) for some in (printed, fitted, logp))
        about = [(ranks, size) for size in sizes]
        by_model += map(Row, about, second, zip(priced, measured, refitted, strict=True))
        by_logp += map(Row, about, first, zip(whole, strict=True))
        lines = (
            Line("cluster model, equation 2", sizes, second, "dashed", 1),
            Line("LogP, equation 1", sizes, first, "dashed", 2),
            Line("priced", sizes, priced, "line", 1),
            Line("priced as fitted", sizes, refitted, "line", 0),
            Line(word, sizes, measured, "dots", 0),
        )
        panels.append(Panel(f"p = {ranks}", SIZE, TIME, lines, log=""))
    here = ("priced", word, "priced as fitted")
    return Figure(
        "Figure 2",
        "a broadcast packet by packet: measured, by the cluster model and by LogP",
        "A binomial tree over p ranks, once for each packet of 1500 bytes. Dashed: the paper's equations with the "
        "values of table 1. Priced: the schedule's messages by the cluster family with the same values, and with those "
        f"fitted to probes on {evidence.platform}.",
        "a price takes the longer of equations 1 and 2, which here is 1, and its L is of the packets that fly at once, "
        "not of all p; what is simulated has no O_r, and a switch without a limit to all that fly at once.",
        (
            Numbers("By the cluster model", JOB, here, f"by equation 2 {TABLE_1}", tuple(by_model)),
            Numbers("By LogP", JOB, ("priced",), f"by equation 1 {TABLE_1}", tuple(by_logp)),
        ),
        tuple(panels),
        (evidence.platform,),
    )
