"""Tam and Wang 1999: a pipelined broadcast of packets, and gathers with and without loss of
packets.

Table 1 has the model's values. Figures 1 and 3 are the tree of a broadcast, figure 2 its times by
the cluster model and by LogP, figures 4 and 5 gathers with a window of senders, or that overflow
the network's buffer.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from math import ceil, isfinite, nan

import numpy as np

from commodel.models.evaluation.buffer_overflow import (
    choose_window,
    compute_transfer_ratio,
    list_admissible_windows,
)
from commodel.models.families.cluster import (
    compute_delivered_share,
    compute_latency,
    repeat_over_tcp,
)
from commodel.models.parameter_sets import read_published
from commodel.parameters import ParameterSet
from commodel.patterns.build import build_schedule
from commodel.predictions.model import Model
from commodel.predictions.papers import (
    NO_NUMBER,
    Figure,
    Line,
    Numbers,
    Panel,
    Paper,
    PaperEvidence,
    PaperRow,
    compute_error_factor,
    make_exact_set,
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
        return float(np.ravel(compute_latency(self.values, np.array([size]), ranks, gap))[0])

    def one_way_time(self, size: float, ranks: int) -> float:
        """Return O_s + L + O_r + U_r."""
        return self("O_s", size) + self.latency(size, ranks) + self.receive_time(size)

    def receive_time(self, size: float) -> float:
        return self("O_r", size) + self("U_r", size)

    def equation_1(self, ranks: int, packets: int) -> float:
        """Return the time by LogP whose L is the one-way time of a packet."""
        return (ranks.bit_length() - 1) * (
            (packets - 1) * self("g_s", PACKET) + self.one_way_time(PACKET, ranks)
        )

    def equation_2(self, ranks: int, packets: int) -> float:
        """Return the time if node p/2 cannot send while it receives."""
        rounds = ranks.bit_length() - 1
        per_packet = (rounds - 1) * self("g_s", PACKET) + self.receive_time(PACKET)
        return (packets - 1) * per_packet + rounds * self.one_way_time(PACKET, ranks)

    def equation_8(self, ranks: int, size: int) -> float:
        """Return the time of a gather. D is a packet every g_r. C_1 + C_2, of which the paper has
        no values, is the one-way time of a packet."""
        full = ceil(size / PACKET) - 1
        stream = full * self("g_r", PACKET) + self("g_r", size - full * PACKET)
        return (ranks - 1) * stream + self.one_way_time(min(size, PACKET), ranks)

    def gather_arguments(self, ranks: int, size: int) -> tuple[int, int, float, float, float]:
        """Return senders, packets of each, g_s, g_r and the buffer of a gather."""
        send_gap, receive_gap = (self(name, min(size, PACKET)) for name in ("g_s", "g_r"))
        return ranks - 1, ceil(size / PACKET), send_gap, receive_gap, self("B_L", 0)

    def choose_algorithm(self, ranks: int, size: int) -> str:
        """Return the gather of the paper's algorithm 1: linear if the buffer takes all packets,
        else windowed."""
        arguments = self.gather_arguments(ranks, size)
        senders, _, send_gap, receive_gap, _ = arguments
        allowed = choose_window(*arguments)[0] if min(send_gap, receive_gap) > 0 else senders
        return "linear" if allowed == senders else f"windowed:{allowed}"


PACKETS = (1, 2, 5, 10, 20, 50, 100)  # of a message
PACKETWISE = f"binomial:{PACKET}"


def draw_broadcast_tree() -> Figure:
    """Return the example of figures 1 and 3: 16 nodes, a gap of 1, and a one-way time of 3."""
    rounds = 4
    one_way = 3.0
    receive_time = 0.6 + 0.7
    machines = {
        "LogP": (make_exact_set("logp", {"L": one_way, "o": 0.0, "g": 1.0}), rounds),
        "the cluster model": (
            make_exact_set(
                "cluster",
                {
                    "O_s.a": 0.4,
                    "g_s.a": 1,
                    "g_r.a": 1,
                    "O_r.a": 0.6,
                    "U_r": 0.7,
                    "L_0": 1.3,
                    "L_m": 0,
                },
            ),
            rounds - 1 + receive_time,
        ),
    }
    rows = []
    for name, (values, per_packet) in machines.items():
        first, second = predict_patterns(
            values, "bcast", PACKETWISE, 1 << rounds, (PACKET, 2 * PACKET)
        )
        rows += [
            PaperRow((name, "first packet"), rounds * one_way, (first,)),
            PaperRow((name, "next packet"), per_packet, (second - first,)),
        ]
    source = "by equations 1 and 2 with the values printed under the figures"
    return Figure(
        name="Figures 1 and 3",
        title="the broadcast tree, and the node that its packets wait for",
        caption=(
            "Packets follow each other down a binomial tree over 16 nodes. Times are in units "
            "of the gap; the one-way time of a packet is 3. In LogP packets wait for the root, "
            "in the cluster model for node 8, which cannot send while it receives."
        ),
        reason="they do not differ, since predictions of the schedule equal the equations.",
        numbers=(
            Numbers(
                title="In units of the gap",
                subjects=("model", "what"),
                columns=("predicted",),
                source=source,
                rows=tuple(rows),
                unit="gaps",
            ),
        ),
    )


def fit_at_packet_size(fitted: ParameterSet | None) -> dict[str, ParameterSet | None]:
    """Return LogP and Postal with the values of P-LogP, fitted to round trips of all sizes, for one
    packet."""
    if fitted is None:
        return {"LogP": None, "Postal": None}
    machine = Machine(fitted)
    o_s, o_r, g = (machine(name, PACKET) for name in ("o_s", "o_r", "g"))
    one_way = machine("L", PACKET) + max(o_s, o_r, g)
    logp = {"L": max(one_way - o_s - o_r, 0.0), "o": (o_s + o_r) / 2, "g": g}
    return {
        "LogP": make_exact_set("logp", logp),
        "Postal": make_exact_set("postal", {"lam": max(one_way / g, 1.0) if g else 1.0, "g": g}),
    }


def compare_fitted_models(
    evidence: PaperEvidence, fitted: ParameterSet | None
) -> tuple[Numbers, Numbers]:
    """Return the paper's comparison with values fitted here: predictions of three models,
    measurements, and the mean error of each model."""
    sizes = [PACKET * packets for packets in PACKETS]
    sets = {"cluster model": fitted}
    sets |= fit_at_packet_size(evidence.fitted("plogp"))
    times, errors = [], []
    for ranks in RANKS:
        measured = evidence.times(sizes, operation="bcast", alternative=PACKETWISE, ranks=ranks)
        columns = [
            predict_patterns(parameters, "bcast", PACKETWISE, ranks, sizes)
            for parameters in sets.values()
        ]
        times += [
            PaperRow((ranks, size), nan, tuple(ours))
            for size, *ours in zip(sizes, measured, *columns, strict=True)
        ]
        errors.append(
            PaperRow((ranks,), nan, tuple(find_mean_error(column, measured) for column in columns))
        )
    title = f"Three models fitted here, and {evidence.word()} times"
    return (
        Numbers(
            title=title,
            subjects=WORKLOAD,
            columns=(evidence.word(), *sets),
            source=NO_NUMBER,
            rows=tuple(times),
        ),
        Numbers(
            title="Mean error factor of the three (×)",
            subjects=("ranks",),
            columns=tuple(sets),
            source=NO_NUMBER,
            rows=tuple(errors),
            unit="",
        ),
    )


def find_mean_error(predicted: Sequence[float], measured: Sequence[float]) -> float:
    """Return the mean error factor of the predictions with a measurement."""
    factors = [
        compute_error_factor(ours, theirs)
        for ours, theirs in zip(predicted, measured, strict=True)
        if ours > 0 and theirs > 0
    ]
    return float(np.mean(factors)) if factors else nan


def compare_broadcasts(
    evidence: PaperEvidence, printed: ParameterSet, fitted: ParameterSet | None
) -> Figure:
    paper = Machine(printed)
    word = evidence.word()
    sizes = [PACKET * packets for packets in PACKETS]
    by_model: list[PaperRow] = []
    by_logp: list[PaperRow] = []
    panels: list[Panel] = []
    for ranks in RANKS:
        first = [paper.equation_1(ranks, packets) for packets in PACKETS]
        second = [paper.equation_2(ranks, packets) for packets in PACKETS]
        measured = evidence.times(sizes, operation="bcast", alternative=PACKETWISE, ranks=ranks)
        logp = make_exact_set(
            "logp", {"L": paper.one_way_time(PACKET, ranks), "o": 0.0, "g": paper("g_s", PACKET)}
        )
        predicted, refitted, broadcasts = (
            predict_patterns(parameters, "bcast", PACKETWISE, ranks, sizes)
            for parameters in (printed, fitted, logp)
        )
        keys = [(ranks, size) for size in sizes]
        by_model += map(PaperRow, keys, second, zip(predicted, measured, refitted, strict=True))
        by_logp += map(PaperRow, keys, first, zip(broadcasts, strict=True))
        lines = (
            Line("cluster model, equation 2", sizes, second, "dashed", 1),
            Line("LogP, equation 1", sizes, first, "dashed", 2),
            Line("predicted", sizes, predicted, "line", 1),
            Line("predicted as fitted", sizes, refitted, "line", 0),
            Line(word, sizes, measured, "dots", 0),
        )
        panels.append(Panel(title=f"p = {ranks}", x=SIZE, y=TIME, lines=lines, log=""))
    titles = ("predicted", word, "predicted as fitted")
    return Figure(
        name="Figure 2",
        title="a broadcast packet by packet: measured, by the cluster model and by LogP",
        caption=(
            "A binomial tree over p ranks, once for each packet of 1500 bytes. Dashed: the "
            "paper's equations with the values of table 1. Predicted: the schedule's messages "
            "by the cluster model with the same values, and with those fitted to probes on "
            f"{evidence.platform}. The last two tables have the paper's comparison with values "
            "fitted here: LogP and Postal have those of a packet of 1500 bytes."
        ),
        reason="a prediction is the maximum of equations 1 and 2, here equation 1, and its L depends on the packets in "
        "flight, not on all p ranks; "
        + evidence.choose(
            "the simulated processors have no O_r, and the simulated switch has no limit to all packets in flight.",
            "the hosts share the processors of one machine, and TCP acknowledges the packets.",
            "the machine is another one, with its own network and MPI.",
        ),
        numbers=(
            Numbers(
                title="By the cluster model",
                subjects=WORKLOAD,
                columns=titles,
                source=f"by equation 2 {TABLE_1}",
                rows=tuple(by_model),
            ),
            Numbers(
                title="By LogP",
                subjects=WORKLOAD,
                columns=("predicted",),
                source=f"by equation 1 {TABLE_1}",
                rows=tuple(by_logp),
            ),
            *compare_fitted_models(evidence, fitted),
        ),
        panels=tuple(panels),
        measured=(evidence.platform,),
    )


GATHERED = tuple(4**power << 10 for power in range(6))  # B of each sender: 1 KiB to 1 MiB
Table = dict[str, list[float]]


def tabulate_gathers(
    evidence: PaperEvidence, printed: ParameterSet, fitted: ParameterSet | None, ranks: int
) -> Table:
    """Return seconds at each size: by equation 8, of the simple gather, and of the coordinated one.
    If no buffer was fitted, its window is that of table 1."""
    paper = Machine(printed)
    our_machine = Machine(fitted) if fitted and "B_L" in fitted.values else paper

    def choices(machine: Machine) -> list[str]:
        return [machine.choose_algorithm(ranks, size) for size in GATHERED]

    def predicted(values: ParameterSet | None, choices: Sequence[str]) -> list[float]:
        return predict_patterns(values, "gather", choices, ranks, GATHERED)

    def measured(choices: Sequence[str]) -> list[float]:
        times = {
            name: evidence.times(GATHERED, operation="gather", alternative=name, ranks=ranks)
            for name in choices
        }
        return [times[choice][index] for index, choice in enumerate(choices)]

    simple = ["linear"] * len(GATHERED)
    return {
        "optimal": [paper.equation_8(ranks, size) for size in GATHERED],
        "simple, predicted": predicted(printed, simple),
        "simple, as fitted": predicted(fitted, simple),
        "predicted": predicted(printed, choices(paper)),
        "predicted as fitted": predicted(fitted, choices(our_machine)),
        "simple, measured": measured(simple),
        "measured": measured(choices(our_machine)),
    }


def list_rows(tables: Mapping[int, Table], *names: str) -> tuple[PaperRow, ...]:
    """Return the optimum and the named columns, for all ranks and sizes."""
    rows = []
    for ranks, table in tables.items():
        for index, size in enumerate(GATHERED):
            ours = tuple(table[name][index] for name in names)
            rows.append(PaperRow((ranks, size), table["optimal"][index], ours))
    return tuple(rows)


def make_gather_figures(
    evidence: PaperEvidence, printed: ParameterSet, fitted: ParameterSet | None
) -> tuple[Figure, Figure]:
    tables = {ranks: tabulate_gathers(evidence, printed, fitted, ranks) for ranks in RANKS}
    arguments = (evidence, printed, fitted, tables)
    return compare_coordinated_gather(*arguments), compare_two_gathers(*arguments)


def compare_coordinated_gather(
    evidence: PaperEvidence,
    printed: ParameterSet,
    fitted: ParameterSet | None,
    tables: Mapping[int, Table],
) -> Figure:
    paper = Machine(printed)
    word = evidence.word()
    windows, lines = [], []
    for colour, (ranks, table) in enumerate(tables.items()):
        lines += [
            Line(f"p = {ranks}, {word}", GATHERED, table["measured"], "dots", colour),
            Line(f"p = {ranks}, predicted", GATHERED, table["predicted"], "line", colour),
            Line(f"p = {ranks}, equation 8", GATHERED, table["optimal"], "dashed", colour),
        ]
        for size in GATHERED:
            arguments = paper.gather_arguments(ranks, size)
            senders, packets_each, send_gap, receive_gap, buffer = arguments
            packets = senders * packets_each
            literal = (
                senders
                if buffer > packets
                else max(
                    list_admissible_windows(senders, packets, send_gap, receive_gap, buffer),
                    default=nan,
                )
            )
            windows.append(PaperRow((ranks, size), literal, (choose_window(*arguments)[0],)))
    times = list_rows(tables, "predicted", "measured", "predicted as fitted")
    rule = f"by algorithm 1 and equation 7 {TABLE_1}; blank if no window fulfils it literally"
    return Figure(
        name="Figure 4",
        title="the gather with a window of senders: measured and predicted",
        caption=(
            "Each of p − 1 senders sends as many bytes to the root: all at once if the "
            "network's buffer has room for them, else as many senders as equation 7 admits. "
            "Dashed: equation 8, the time of the root's port for all packets."
        ),
        reason=(
            "a prediction includes the tokens that senders pass on, and overlaps the one-way "
            "time of a packet with the stream, while equation 8 adds them; read literally, "
            "equation 7 requires that senders remain at the end, which we take for a misprint."
        ),
        numbers=(
            Numbers(
                title="Times",
                subjects=WORKLOAD,
                columns=("predicted", word, "predicted as fitted"),
                source=f"by equation 8 {TABLE_1}",
                rows=times,
            ),
            tabulate_errors(times, fitted, word),
            Numbers(
                title="The window",
                subjects=WORKLOAD,
                columns=("window",),
                source=rule,
                rows=tuple(windows),
                unit="senders",
            ),
        ),
        panels=(Panel(title="p = 4, 8 and 16", x=SIZE, y=TIME, lines=tuple(lines)),),
        measured=(evidence.platform,),
    )


def tabulate_errors(times: Sequence[PaperRow], fitted: ParameterSet | None, word: str) -> Numbers:
    """Return the average and the largest relative error, in %, of equation 8 with fitted values and
    of predictions."""
    machine = Machine(fitted) if fitted else None
    errors = {}
    for row in times:
        _, measured, as_fitted = row.ours
        predicted = (machine.equation_8(*row.subject) if machine else nan, as_fitted)
        errors[row.subject] = [
            100 * abs(seconds / measured - 1) if measured > 0 else nan for seconds in predicted
        ]
    errors = {workload: both for workload, both in errors.items() if all(map(isfinite, both))}
    worst = max(errors, key=errors.__getitem__, default=None)
    worst_here = f"; here at {worst[0]} ranks and {format_bytes(worst[1])}" if worst else ""
    table = np.array(list(errors.values())) if errors else np.full((1, 2), nan)
    entries = (
        PaperRow(("average",), 8, tuple(table.mean(axis=0).tolist())),
        PaperRow(("largest",), 35, tuple(table.max(axis=0).tolist())),
    )
    source = f"printed in section 5.5, the largest at 4 ranks and 1 KB{worst_here}"
    title = f"Relative error of the prediction of {word} times"
    columns = ("equation 8 as fitted", "predicted as fitted")
    return Numbers(
        title=title,
        subjects=("of all workloads",),
        columns=columns,
        source=source,
        rows=entries,
        unit="%",
    )


def _describe_recovery(fitted: ParameterSet | None) -> str:
    """Return how the predictions as fitted treat lost packets."""
    if fitted and fitted.settings.get("recovery") == "tcp":
        return (
            "Predicted as fitted: TCP sends it again, simulated packet by packet; the median of "
            "repeats."
        )
    return "Predicted as fitted: the same with fitted values." if fitted else ""


def tabulate_tcp_repeats(fitted: ParameterSet | None) -> tuple[Numbers, ...]:
    """Return the range of repeats of the simple gather, and how many have a timeout, where losses
    are simulated."""
    values = Machine(fitted).values if fitted else None
    if values is None or "B_L" not in values:
        return ()
    times, timeouts = [], []
    for ranks, size in product(RANKS, GATHERED):
        pattern = build_schedule(Point("", "gather", "linear", "", "block:1", ranks, size))
        share = compute_delivered_share(pattern, values)
        repeats = (
            repeat_over_tcp(pattern, values)
            if share is not None and np.ravel(share)[0] < 1
            else None
        )
        if repeats:
            low, middle, high = np.percentile(
                pattern.cost(repeats.finish), [2.5, 50, 97.5]
            ).tolist()
            times.append(PaperRow((ranks, size), nan, (middle, low, high)))
            timeouts.append(
                PaperRow((ranks, size), nan, (100 * float(np.mean(repeats.timeouts > 0)),))
            )
    if not times:
        return ()
    columns = ("median", "95 % from", "95 % to")
    title = "Repeats of the simple gather over TCP, predicted as fitted"
    return (
        Numbers(
            title=title, subjects=WORKLOAD, columns=columns, source=NO_NUMBER, rows=tuple(times)
        ),
        Numbers(
            title=f"{title}: with a timeout",
            subjects=WORKLOAD,
            columns=("repeats",),
            source=NO_NUMBER,
            rows=tuple(timeouts),
            unit="%",
        ),
    )


def compare_two_gathers(
    evidence: PaperEvidence,
    printed: ParameterSet,
    fitted: ParameterSet | None,
    tables: Mapping[int, Table],
) -> Figure:
    paper = Machine(printed)
    word = evidence.word()
    shares, panels = [], []
    for ranks, table in tables.items():
        lines = (
            Line("optimal, equation 8", GATHERED, table["optimal"], "dashed", -1),
            Line("simple, predicted", GATHERED, table["simple, predicted"], "line", 1),
            Line(f"simple, {word}", GATHERED, table["simple, measured"], "dots", 1),
            Line("coordinated, predicted", GATHERED, table["predicted"], "line", 0),
            Line(f"coordinated, {word}", GATHERED, table["measured"], "dots", 0),
        )
        panels.append(Panel(title=f"p = {ranks}", x=SIZE, y=TIME, lines=lines))
        for size in GATHERED:
            senders, packets_each, *other_arguments = paper.gather_arguments(ranks, size)
            pattern = build_schedule(Point("", "gather", "linear", "", "block:1", ranks, size))
            delivered = compute_delivered_share(pattern, paper.values)
            assert delivered is not None
            through_here = 100 * float(np.ravel(delivered)[0])
            shares.append(
                PaperRow(
                    (ranks, size),
                    100 * compute_transfer_ratio(senders, senders * packets_each, *other_arguments),
                    (through_here,),
                )
            )
    values = (
        "simple, predicted",
        f"simple, {word}",
        "simple, predicted as fitted",
        "coordinated, predicted",
        f"coordinated, {word}",
    )
    times = list_rows(
        tables,
        "simple, predicted",
        "simple, measured",
        "simple, as fitted",
        "predicted",
        "measured",
    )
    return Figure(
        name="Figure 5",
        title="two gathers and the optimum: all senders at once, and a window of senders",
        caption="Simple: all senders at once, which may overflow the network's buffer. "
        "Predicted: with table 1, and a lost packet is sent again a timeout of 0.2 s later, for which the paper has no "
        f"number. {_describe_recovery(fitted)} Coordinated: the gather of figure 4. Optimal: equation 8.",
        reason="the time of a loss depends on the transport protocol, of which the paper states only "
        "that it adds a delay; "
        + evidence.choose(
            "no simulated packet is lost, so the simple gather is as fast, unlike over TCP (`make lab-paper`).",
            "here TCP detects most losses by acknowledgements, and few cause a timeout.",
        ),
        numbers=(
            Numbers(
                title="Times over the optimum",
                subjects=WORKLOAD,
                columns=values,
                source=f"by equation 8 {TABLE_1}",
                rows=times,
            ),
            Numbers(
                title="Share of packets that arrive if all send at once",
                subjects=WORKLOAD,
                columns=("predicted",),
                source=f"by equation 4 {TABLE_1}",
                rows=tuple(shares),
                unit="%",
            ),
            *tabulate_tcp_repeats(fitted),
        ),
        panels=tuple(panels),
        measured=(evidence.platform,),
    )


def make_figures(evidence: PaperEvidence) -> tuple[Figure, ...]:
    printed = read_published("cluster/fast-ethernet-16")
    arguments = (evidence, printed, evidence.fitted("cluster"))
    return (
        tabulate_parameters(*arguments),
        draw_broadcast_tree(),
        compare_broadcasts(*arguments),
        *make_gather_figures(*arguments),
    )


def tabulate_parameters(
    evidence: PaperEvidence, printed: ParameterSet, fitted: ParameterSet | None
) -> Figure:
    paper = Machine(printed)
    machine = Machine(fitted) if fitted else None
    rows = []
    for name in ("O_s", "T_s", "g_s", "g_r", "O_r", "U_r", "M_ctc", "M_ctm", "M_mtm"):
        for size in (40, PACKET):
            ours = machine(name, size) if machine else nan
            rows.append(PaperRow((name, size), paper(name, size), (ours,)))
    for ranks in (2, 16):
        latency = machine.latency(PACKET, ranks) if machine else nan
        rows.append(
            PaperRow((f"L, {ranks} ranks", PACKET), paper.latency(PACKET, ranks), (latency,))
        )
    buffer = PaperRow(("B_L",), paper("B_L", 0), (machine("B_L", 0) if machine else nan,))
    buffer_text = (
        f"the fit found {machine('B_L', 0):.0f}"
        if machine and "B_L" in machine.values
        else "the fit found no limit"
    )
    return Figure(
        name="Table 1",
        title="the parameters of the cluster model",
        caption=(
            "Values of the table's formulas for packets of 40 and 1500 bytes, and the same of "
            f"parameters fitted to probes on {evidence.platform}. The network's buffer has 1935 "
            f"packets in the paper; {buffer_text}."
        ),
        reason="the machine is another one; "
        + evidence.choose(
            "the simulated one has O_s, U_r, the ports' throughput and a latency from this table, but no O_r, since "
            "simulated processes have no interrupts, and its switch has no limit.",
            "its processors are newer, its ports have the paper's 100 Mbit/s, and the buffers of its switch are set in "
            "`tests/labs/network.sh`.",
            "its processors and its network are newer.",
        ),
        numbers=(
            Numbers(
                title="Parameters",
                subjects=("parameter", "packet [B]"),
                columns=("fitted",),
                source="by the formulas of table 1",
                rows=tuple(rows),
            ),
            Numbers(
                title="Buffer",
                subjects=("parameter",),
                columns=("fitted",),
                source="printed in table 1",
                rows=(buffer,),
                unit="packets",
            ),
        ),
        measured=(evidence.platform,),
    )


PAPER = Paper(
    name="cluster",
    citation="A. Tam, C.-L. Wang, Realistic communication model for parallel computing on cluster, IWCC 1999",
    figures=make_figures,
    published=("cluster/fast-ethernet-16",),
    absent="All of its figures and tables are reproduced, figures 1 and 3 as numbers. No prediction needs T_s, which "
    "the paper does not explain. The authors' measurements are drawn and not printed, so figures 2, 4 and 5 have the "
    "curves of the equations instead.",
)
