"""Tam and Wang 1999: a broadcast packet by packet, and gathers that lose packets or do not.

Table 1 has the model's values. Figures 1 and 3 are the tree of a broadcast, figure 2 its times by the cluster model and
by LogP, figures 4 and 5 gathers whose senders keep to a window or overflow the network's buffer.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from math import ceil, isfinite, nan

import numpy as np

from commodel.models.evaluation.buffer_overflow import admissible_windows, choose_window, transfer_ratio
from commodel.models.families.cluster import delivered, latency, repeat_over_tcp
from commodel.models.parameter_sets import read_published
from commodel.parameters import ParameterSet
from commodel.patterns.build import build_schedule
from commodel.predictions.model import Model
from commodel.predictions.papers import (
    NO_NUMBER,
    Evidence,
    Figure,
    Line,
    Numbers,
    Panel,
    Paper,
    Row,
    error_factor,
    exact,
    predict_patterns,
)
from commodel.records import Point
from commodel.units import format_bytes

RANKS = (4, 8, 16)  # of figures 2, 4 and 5
PACKET = 1500  # B
WORKLOAD = ("ranks", "bytes [B]")
SIZE, TIME = "message size [B]", "time [s]"
TABLE_1 = "with the values of table 1"


class Machine:
    """Values of the cluster model, in the paper's symbols."""

    def __init__(self, parameters: ParameterSet) -> None:
        self.values = Model.of_set(parameters).values

    def __call__(self, name: str, size: float) -> float:
        """Return the value of a parameter for a packet of this size; NaN if it is missing."""
        if name in self.values:
            return float(np.ravel(self.values[name])[0])
        if name not in self.values.functions:
            return nan
        return float(np.ravel(self.values.at(name, np.array([size])))[0])

    def latency(self, size: float, ranks: int) -> float:
        gap = self.values.at("g_s", np.array([size]))
        return float(np.ravel(latency(self.values, np.array([size]), ranks, gap))[0])

    def trip(self, size: float, ranks: int) -> float:
        """O_s + L + O_r + U_r."""
        return self("O_s", size) + self.latency(size, ranks) + self.taken(size)

    def taken(self, size: float) -> float:
        return self("O_r", size) + self("U_r", size)

    def equation_1(self, ranks: int, packets: int) -> float:
        """Return the tree once for each packet, by LogP whose L is the whole way of a packet."""
        return (ranks.bit_length() - 1) * ((packets - 1) * self("g_s", PACKET) + self.trip(PACKET, ranks))

    def equation_2(self, ranks: int, packets: int) -> float:
        """Return the same where node p/2 cannot send while it receives."""
        rounds = ranks.bit_length() - 1
        further = (rounds - 1) * self("g_s", PACKET) + self.taken(PACKET)
        return (packets - 1) * further + rounds * self.trip(PACKET, ranks)

    def equation_8(self, ranks: int, size: int) -> float:
        """D is a packet every g_r; C_1 and C_2, which the paper gives no values, together the whole way of a packet."""
        full = ceil(size / PACKET) - 1
        stream = full * self("g_r", PACKET) + self("g_r", size - full * PACKET)
        return (ranks - 1) * stream + self.trip(min(size, PACKET), ranks)

    def bottleneck(self, ranks: int, size: int) -> tuple[int, int, float, float, float]:
        """Return senders, packets of each, g_s, g_r and the buffer of a gather."""
        gaps = (self(name, min(size, PACKET)) for name in ("g_s", "g_r"))
        return ranks - 1, ceil(size / PACKET), *gaps, self("B_L", 0)

    def coordinated(self, ranks: int, size: int) -> str:
        """Return what the paper's algorithm 1 comes down to: all at once where the buffer holds all, else a window."""
        senders, packets_each, *gaps, buffer = self.bottleneck(ranks, size)
        allowed = choose_window(senders, packets_each, *gaps, buffer)[0] if min(gaps) > 0 else senders
        return "linear" if allowed == senders else f"windowed:{allowed}"


PACKETS = (1, 2, 5, 10, 20, 50, 100)  # of a message
PACKETWISE = f"binomial:{PACKET}"


def tree() -> Figure:
    """Return the example of figures 1 and 3: 16 nodes, a gap of 1, and 3 for the whole way of a packet."""
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
        first, second = predict_patterns(values, "bcast", PACKETWISE, 1 << rounds, (PACKET, 2 * PACKET))
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
        (Numbers("In units of the gap", ("model", "what"), ("predicted",), source, tuple(rows), "gaps"),),
    )


def at_packet_size(fitted: ParameterSet | None) -> dict[str, ParameterSet | None]:
    """Return LogP and Postal with the values of P-LogP for a packet, which was fitted to round trips of every size."""
    if fitted is None:
        return {"LogP": None, "Postal": None}
    known = Machine(fitted)
    o_s, o_r, g = (known(name, PACKET) for name in ("o_s", "o_r", "g"))
    way = known("L", PACKET) + max(o_s, o_r, g)
    logp = {"L": max(way - o_s - o_r, 0.0), "o": (o_s + o_r) / 2, "g": g}
    return {"LogP": exact("logp", logp), "Postal": exact("postal", {"lam": max(way / g, 1.0) if g else 1.0, "g": g})}


def headline(evidence: Evidence, fitted: ParameterSet | None) -> tuple[Numbers, Numbers]:
    """Return the paper's comparison with values fitted here: predictions of three models beside what was measured, and
    the mean error of each."""
    sizes, sets = [PACKET * packets for packets in PACKETS], {"cluster model": fitted}
    sets |= at_packet_size(evidence.fitted("plogp"))
    times, errors = [], []
    for ranks in RANKS:
        measured = evidence.times(sizes, operation="bcast", alternative=PACKETWISE, ranks=ranks)
        columns = [predict_patterns(parameters, "bcast", PACKETWISE, ranks, sizes) for parameters in sets.values()]
        times += [Row((ranks, size), nan, tuple(here)) for size, *here in zip(sizes, measured, *columns, strict=True)]
        errors.append(Row((ranks,), nan, tuple(mean_error(column, measured) for column in columns)))
    title = f"Three models fitted here beside what was {evidence.word()}"
    return (
        Numbers(title, WORKLOAD, (evidence.word(), *sets), NO_NUMBER, tuple(times)),
        Numbers("Mean error of the three, either way (×)", ("ranks",), tuple(sets), NO_NUMBER, tuple(errors), ""),
    )


def mean_error(predicted: Sequence[float], measured: Sequence[float]) -> float:
    """Return the mean factor by which predictions are off where both are known."""
    pairs = [pair for pair in zip(predicted, measured, strict=True) if all(time > 0 for time in pair)]
    return float(np.mean([error_factor(*pair) for pair in pairs])) if pairs else nan


def broadcast(evidence: Evidence, printed: ParameterSet, fitted: ParameterSet | None) -> Figure:
    paper, word = Machine(printed), evidence.word()
    sizes = [PACKET * packets for packets in PACKETS]
    by_model, by_logp, panels = [], [], []
    for ranks in RANKS:
        first = [paper.equation_1(ranks, packets) for packets in PACKETS]
        second = [paper.equation_2(ranks, packets) for packets in PACKETS]
        measured = evidence.times(sizes, operation="bcast", alternative=PACKETWISE, ranks=ranks)
        logp = exact("logp", {"L": paper.trip(PACKET, ranks), "o": 0.0, "g": paper("g_s", PACKET)})
        predicted, refitted, whole = (
            predict_patterns(some, "bcast", PACKETWISE, ranks, sizes) for some in (printed, fitted, logp)
        )
        about = [(ranks, size) for size in sizes]
        by_model += map(Row, about, second, zip(predicted, measured, refitted, strict=True))
        by_logp += map(Row, about, first, zip(whole, strict=True))
        lines = (
            Line("cluster model, equation 2", sizes, second, "dashed", 1),
            Line("LogP, equation 1", sizes, first, "dashed", 2),
            Line("predicted", sizes, predicted, "line", 1),
            Line("predicted as fitted", sizes, refitted, "line", 0),
            Line(word, sizes, measured, "dots", 0),
        )
        panels.append(Panel(f"p = {ranks}", SIZE, TIME, lines, log=""))
    here = ("predicted", word, "predicted as fitted")
    return Figure(
        "Figure 2",
        "a broadcast packet by packet: measured, by the cluster model and by LogP",
        "A binomial tree over p ranks, once for each packet of 1500 bytes. Dashed: the paper's equations with the "
        "values of table 1. Predicted: the schedule's messages by the cluster family with the same values, and with "
        "those "
        f"fitted to probes on {evidence.platform}. The last two tables have the paper's comparison with values fitted "
        "here: LogP and Postal have those of a packet of 1500 bytes.",
        "a prediction takes the longer of equations 1 and 2, which here is 1, and its L is of the packets in flight at "
        "once, not of all p; "
        + evidence.choose(
            "the simulated processors have no O_r, and the simulated switch has no limit to all packets in flight.",
            "the hosts share the processors of one machine, and TCP acknowledges the packets.",
            "the machine is another one, with its own network and MPI.",
        ),
        (
            Numbers("By the cluster model", WORKLOAD, here, f"by equation 2 {TABLE_1}", tuple(by_model)),
            Numbers("By LogP", WORKLOAD, ("predicted",), f"by equation 1 {TABLE_1}", tuple(by_logp)),
            *headline(evidence, fitted),
        ),
        tuple(panels),
        (evidence.platform,),
    )


GATHERED = tuple(4**power << 10 for power in range(6))  # B of each sender: 1 KiB to 1 MiB
Table = dict[str, list[float]]


def gathers(evidence: Evidence, printed: ParameterSet, fitted: ParameterSet | None, ranks: int) -> Table:
    """Seconds at each size: by equation 8, of the simple gather, of the coordinated one. Where no buffer was found, its
    window is by table 1."""
    paper = Machine(printed)
    here = Machine(fitted) if fitted and "B_L" in fitted.values else paper

    def choices(machine: Machine) -> list[str]:
        return [machine.coordinated(ranks, size) for size in GATHERED]

    def predicted(values: ParameterSet | None, choices: Sequence[str]) -> list[float]:
        return predict_patterns(values, "gather", choices, ranks, GATHERED)

    def measured(choices: Sequence[str]) -> list[float]:
        times = {name: evidence.times(GATHERED, operation="gather", alternative=name, ranks=ranks) for name in choices}
        return [times[choice][place] for place, choice in enumerate(choices)]

    simple = ["linear"] * len(GATHERED)
    return {
        "optimal": [paper.equation_8(ranks, size) for size in GATHERED],
        "simple, predicted": predicted(printed, simple),
        "simple, as fitted": predicted(fitted, simple),
        "predicted": predicted(printed, choices(paper)),
        "predicted as fitted": predicted(fitted, choices(here)),
        "simple, measured": measured(simple),
        "measured": measured(choices(here)),
    }


def rows(tables: Mapping[int, Table], *names: str) -> tuple[Row, ...]:
    """Return the optimum and the other numbers, for all ranks and sizes."""
    return tuple(
        Row((ranks, size), table["optimal"][place], tuple(table[name][place] for name in names))
        for ranks, table in tables.items()
        for place, size in enumerate(GATHERED)
    )


def figures_4_and_5(evidence: Evidence, printed: ParameterSet, fitted: ParameterSet | None) -> tuple[Figure, Figure]:
    tables = {ranks: gathers(evidence, printed, fitted, ranks) for ranks in RANKS}
    return gather(evidence, printed, fitted, tables), two_gathers(evidence, printed, fitted, tables)


def gather(
    evidence: Evidence, printed: ParameterSet, fitted: ParameterSet | None, tables: Mapping[int, Table]
) -> Figure:
    paper, word = Machine(printed), evidence.word()
    windows, lines = [], []
    for colour, (ranks, table) in enumerate(tables.items()):
        lines += [
            Line(f"p = {ranks}, {word}", GATHERED, table["measured"], "dots", colour),
            Line(f"p = {ranks}, predicted", GATHERED, table["predicted"], "line", colour),
            Line(f"p = {ranks}, equation 8", GATHERED, table["optimal"], "dashed", colour),
        ]
        for size in GATHERED:
            senders, packets_each, *gaps, buffer = paper.bottleneck(ranks, size)
            packets = senders * packets_each
            letter = (
                senders if buffer > packets else max(admissible_windows(senders, packets, *gaps, buffer), default=nan)
            )
            windows.append(Row((ranks, size), letter, (choose_window(senders, packets_each, *gaps, buffer)[0],)))
    times = rows(tables, "predicted", "measured", "predicted as fitted")
    rule = f"by algorithm 1 and equation 7 {TABLE_1}; blank where no window fulfils it to the letter"
    return Figure(
        "Figure 4",
        "the gather that keeps its senders to a window: measured and predicted",
        "Each of p − 1 senders has as many bytes for the root: all at once where the network's buffer holds them, else "
        "as many senders as equation 7 allows. Dashed is equation 8: how long the root's port takes for all packets.",
        "a prediction has the tokens that senders pass on, and lets a packet's way and the stream overlap, which "
        "equation 8 "
        "adds up; to the letter equation 7 wants senders left over at the end, which we take for a slip.",
        (
            Numbers("Times", WORKLOAD, ("predicted", word, "predicted as fitted"), f"by equation 8 {TABLE_1}", times),
            accuracy(times, fitted, word),
            Numbers("The window", WORKLOAD, ("window",), rule, tuple(windows), "senders"),
        ),
        (Panel("p = 4, 8 and 16", SIZE, TIME, tuple(lines)),),
        (evidence.platform,),
    )


def accuracy(times: Sequence[Row], fitted: ParameterSet | None, word: str) -> Numbers:
    """Return the ratios of equation 8 with fitted values, and of predictions, to measurements."""
    here = Machine(fitted) if fitted else None
    errors = {}
    for row in times:
        _, measured, predicted_ones = row.here
        predicted = (here.equation_8(*row.about) if here else nan, predicted_ones)
        errors[row.about] = [100 * abs(seconds / measured - 1) if measured > 0 else nan for seconds in predicted]
    errors = {workload: both for workload, both in errors.items() if all(map(isfinite, both))}
    worst = max(errors, key=errors.__getitem__, default=None)
    place = f"; here at {worst[0]} ranks and {format_bytes(worst[1])}" if worst else ""
    table = np.array(list(errors.values())) if errors else np.full((1, 2), nan)
    entries = (
        Row(("average",), 8, tuple(table.mean(axis=0).tolist())),
        Row(("largest",), 35, tuple(table.max(axis=0).tolist())),
    )
    source = f"printed in section 5.5, the largest at 4 ranks and 1 KB{place}"
    title, here = f"Error of the prediction over what was {word}", ("equation 8 as fitted", "predicted as fitted")
    return Numbers(title, ("of all workloads",), here, source, entries, "%")


def _recovery(fitted: ParameterSet | None) -> str:
    """Return how the predictions as fitted treat lost packets."""
    if fitted and fitted.settings.get("recovery") == "tcp":
        return "Predicted as fitted: TCP sends it again, simulated packet by packet; the median of repeats."
    return "Predicted as fitted: the same with fitted values." if fitted else ""


def over_tcp(fitted: ParameterSet | None) -> tuple[Numbers, ...]:
    """Return the range of repeats of the simple gather, and how many have a timeout, where losses are simulated."""
    values, times, timeouts = Machine(fitted).values if fitted else None, [], []
    for ranks, size in product(RANKS, GATHERED) if values and "B_L" in values else ():
        pattern = build_schedule(Point("", "gather", "linear", "", "block:1", ranks, size))
        share = delivered(pattern, values)
        repeats = repeat_over_tcp(pattern, values) if share is not None and np.ravel(share)[0] < 1 else None
        if repeats:
            low, middle, high = np.percentile(pattern.cost(repeats.finish), [2.5, 50, 97.5]).tolist()
            times.append(Row((ranks, size), nan, (middle, low, high)))
            timeouts.append(Row((ranks, size), nan, (100 * float(np.mean(repeats.timeouts > 0)),)))
    if not times:
        return ()
    columns = ("median", "95 % from", "95 % to")
    title = "Repeats of the simple gather over TCP, predicted as fitted"
    return (
        Numbers(title, WORKLOAD, columns, NO_NUMBER, tuple(times)),
        Numbers(f"{title}: with a timeout", WORKLOAD, ("repeats",), NO_NUMBER, tuple(timeouts), "%"),
    )


def two_gathers(
    evidence: Evidence, printed: ParameterSet, fitted: ParameterSet | None, tables: Mapping[int, Table]
) -> Figure:
    paper, word = Machine(printed), evidence.word()
    shares, panels = [], []
    for ranks, table in tables.items():
        lines = (
            Line("optimal, equation 8", GATHERED, table["optimal"], "dashed", -1),
            Line("simple, predicted", GATHERED, table["simple, predicted"], "line", 1),
            Line(f"simple, {word}", GATHERED, table["simple, measured"], "dots", 1),
            Line("coordinated, predicted", GATHERED, table["predicted"], "line", 0),
            Line(f"coordinated, {word}", GATHERED, table["measured"], "dots", 0),
        )
        panels.append(Panel(f"p = {ranks}", SIZE, TIME, lines))
        for size in GATHERED:
            senders, packets_each, *rest = paper.bottleneck(ranks, size)
            pattern = build_schedule(Point("", "gather", "linear", "", "block:1", ranks, size))
            through_here = 100 * float(np.ravel(delivered(pattern, paper.values))[0])
            shares.append(
                Row((ranks, size), 100 * transfer_ratio(senders, senders * packets_each, *rest), (through_here,))
            )
    here = (
        "simple, predicted",
        f"simple, {word}",
        "simple, predicted as fitted",
        "coordinated, predicted",
        f"coordinated, {word}",
    )
    times = rows(tables, "simple, predicted", "simple, measured", "simple, as fitted", "predicted", "measured")
    return Figure(
        "Figure 5",
        "two gathers beside the optimum: all at once, and kept to a window",
        "Simple: all senders at once, which overflow the network's buffer where they have more than it holds. "
        "Predicted: with table 1, and a lost packet is sent again a timeout of 0.2 s later, for which the paper has no "
        f"number. {_recovery(fitted)} Coordinated: the gather of figure 4. Optimal: equation 8.",
        "what a loss costs depends on the protocol above, of which the paper says only that it delays; "
        + evidence.choose(
            "no simulated packet is ever lost, so that there the simple gather is as good, unlike over TCP "
            "(`make lab-paper`).",
            "here TCP detects most losses by acknowledgements, and few cost a timeout.",
        ),
        (
            Numbers("Times over the optimum", WORKLOAD, here, f"by equation 8 {TABLE_1}", times),
            Numbers(
                "What gets through where all send at once",
                WORKLOAD,
                ("predicted",),
                f"by equation 4 {TABLE_1}",
                tuple(shares),
                "%",
            ),
            *over_tcp(fitted),
        ),
        tuple(panels),
        (evidence.platform,),
    )


def figures(evidence: Evidence) -> tuple[Figure, ...]:
    printed = read_published("cluster/fast-ethernet-16")
    known = (evidence, printed, evidence.fitted("cluster"))
    return (parameters(*known), tree(), broadcast(*known), *figures_4_and_5(*known))


def parameters(evidence: Evidence, printed: ParameterSet, fitted: ParameterSet | None) -> Figure:
    paper, here = Machine(printed), Machine(fitted) if fitted else None
    rows = [
        Row((name, size), paper(name, size), (here(name, size) if here else nan,))
        for name in ("O_s", "T_s", "g_s", "g_r", "O_r", "U_r", "M_ctc", "M_ctm", "M_mtm")
        for size in (40, PACKET)
    ]
    for ranks in (2, 16):
        whole = here.latency(PACKET, ranks) if here else nan
        rows.append(Row((f"L, {ranks} ranks", PACKET), paper.latency(PACKET, ranks), (whole,)))
    buffer = Row(("B_L",), paper("B_L", 0), (here("B_L", 0) if here else nan,))
    held = f"{here('B_L', 0):.0f} were found here" if here and "B_L" in here.values else "none could be seen here"
    return Figure(
        "Table 1",
        "the parameters of the cluster model",
        "What the formulas of the table give for a packet of 40 and of 1500 bytes, beside the same of what was fitted "
        f"to probes on {evidence.platform}. Of the network's buffer, in the paper 1935 packets, {held}.",
        "the machine is another one; "
        + evidence.choose(
            "the simulated one was given O_s, U_r, the ports' throughput and a latency from this table, but no O_r, as "
            "nothing interrupts a simulated process, and its switch has no limit.",
            "its processors are of another time, its ports have the paper's 100 Mbit/s, and a port of its switch holds "
            "as much as `tests/lab/network.sh` gave it.",
            "its processors and its network are of another time.",
        ),
        (
            Numbers("Parameters", ("parameter", "packet [B]"), ("fitted",), "by the formulas of table 1", tuple(rows)),
            Numbers("Buffer", ("parameter",), ("fitted",), "printed in table 1", (buffer,), "packets"),
        ),
        measured=(evidence.platform,),
    )


PAPER = Paper(
    name="cluster",
    citation="A. Tam, C.-L. Wang, Realistic communication model for parallel computing on cluster, IWCC 1999",
    figures=figures,
    published=("cluster/fast-ethernet-16",),
    absent="All of its figures and tables are here: figures 1 and 3 by their numbers. No prediction needs T_s, "
    "which the paper does not explain. What its authors measured is drawn there and not printed, so in figures 2, 4 "
    "and 5 the curves of its equations stand for it.",
)
