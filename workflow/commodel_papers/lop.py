"""Hoefler and others 2005: rounds of one byte to n partners and back on 64 nodes with InfiniBand.

Figures 3 and 4 are round trips, figure 5 overheads, section 4.7 the formulas of L(n), section 2 a
comparison of PRAM, BSP, LogP and LoP, and section 5 the gain of barriers with several signals per
round.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import nan

import numpy as np

from commodel.models import Array
from commodel.models.evaluation.values import TABLE
from commodel.models.families.lop import FUNCTIONS_OF_WAY, time_rounds
from commodel.models.fitting.regression import fit_line
from commodel.models.keys import make_sample_key
from commodel.models.parameter_sets import read_published
from commodel.parameters import Estimate, ParameterSet
from commodel.predictions.barrier_bounds import DISSEMINATION, find_lower_bound, list_radices
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
    predict_patterns,
    tabulate,
)

PARTNERS = np.array([1, 2, 4, 8, 16, 32, 63])
SMOOTH = np.geomspace(1, 64, 64)
MESSAGE = "time per message [s]"


def evaluate_at(parameters: ParameterSet, function: str, partners: Array) -> Array:
    return np.ravel(Model.of_set(parameters).values.at(function, partners))


def compute_latency(parameters: ParameterSet, partners: Array) -> Array:
    """Return L(n)."""
    return np.ravel(time_rounds(Model.of_set(parameters).values, partners).wire) / partners


def find_times_per_message(
    evidence: PaperEvidence, probe: str, how: str, statistic: str
) -> dict[int, float]:
    """Return the time over n of a probe with n partners, by n."""
    return {
        int(case["n"]): case[statistic] / int(case["n"]) for case in evidence.cases(probe, how=how)
    }


def list_partners(*times: Mapping[int, float]) -> Array:
    """Return PARTNERS; if there are fewer nodes, also the most partners that were probed."""
    max_partners = max(chain.from_iterable(times), default=PARTNERS[-1])
    return np.union1d(PARTNERS, [min(max_partners, PARTNERS[-1])])


def compute_overlapping_overheads(parameters: ParameterSet, how: str, partners: Array) -> Array:
    """Return each message's share of the overheads of n − 1 messages, which a prediction includes
    and a round trip does not."""
    overhead = FUNCTIONS_OF_WAY[how][1]
    both = evaluate_at(parameters, overhead, np.array([1.0])) + evaluate_at(
        parameters, overhead, partners
    )
    return (partners - 1) / partners * both


def compute_fitted_trip(parameters: ParameterSet | None, how: str, partners: Array) -> Array:
    """Return the fitted round trip over n; NaN without measurements."""
    rtt = FUNCTIONS_OF_WAY[how][0]
    if parameters is None or f"{rtt}.a" not in parameters.values:
        return np.full(len(partners), nan)
    return evaluate_at(parameters, rtt, partners) - compute_overlapping_overheads(
        parameters, how, partners
    )


def compare_round_trips(
    evidence: PaperEvidence, name: str, title: str, source: str, why: str
) -> Figure:
    how = {"infiniband-send": "isend", "infiniband-rdma-write": "put"}[source]
    paper = read_published(f"lop/{source}")
    fitted = evidence.fitted("lop")
    word = evidence.word()
    least, mean = (
        find_times_per_message(evidence, "round", how, statistic) for statistic in ("min", "mean")
    )
    partners = list_partners(least)
    ours: dict[str, Iterable[float]] = {
        f"{word}, least": [least.get(n, nan) for n in partners],
        f"{word}, average": [mean.get(n, nan) for n in partners],
        "fitted": compute_fitted_trip(fitted, how, partners),
    }
    lines = (
        Line(
            "paper, fitted to the least",
            SMOOTH,
            evaluate_at(paper, FUNCTIONS_OF_WAY[how][0], SMOOTH),
            "dashed",
            -1,
        ),
        Line(f"{word}, least", tuple(least), tuple(least.values()), "dots"),
        Line(f"{word}, average", tuple(mean), tuple(mean.values()), "dots", 1),
        Line("fitted to medians", SMOOTH, compute_fitted_trip(fitted, how, SMOOTH)),
    )
    return Figure(
        name=name,
        title=title,
        caption=(
            "One byte from a node to each of n others and one back from each: the time divided "
            "by n. The paper prints a function for the smallest times; that for averages is not "
            "in its text."
        ),
        reason=why,
        numbers=(
            tabulate(
                "Round trip per message",
                {"partners": partners},
                ours,
                "by the function printed in section 4.7, which was fitted to the smallest times",
                evaluate_at(paper, FUNCTIONS_OF_WAY[how][0], partners),
            ),
        ),
        panels=(
            Panel(title="round trip per message", x="partners", y=MESSAGE, lines=lines, log="x"),
        ),
        measured=(evidence.platform,),
    )


def compare_overheads(evidence: PaperEvidence) -> Figure:
    paper = read_published("lop/infiniband-send")
    word = evidence.word()
    posts = {
        f"{word}, {name}": find_times_per_message(evidence, "post", how, "median")
        for how, name in {"isend": "one by one", "list": "as a list", "put": "puts"}.items()
    }
    partners = list_partners(*posts.values())
    ours = {}
    for title, times in posts.items():
        ours[title] = [times.get(n, nan) for n in partners]
    keys = {"partners": partners}
    printed = evaluate_at(paper, "o_s", partners)
    lines = [Line("paper", SMOOTH, evaluate_at(paper, "o_s", SMOOTH), "dashed", -1)]
    lines += [
        Line(title, tuple(times), tuple(times.values()), "dots", index)
        for index, (title, times) in enumerate(posts.items())
    ]
    return Figure(
        name="Figure 5",
        title="the overhead of posting a send",
        caption=(
            "Processor time of posting n sends, divided by n. The paper prints 0.52 + "
            "0.84/(−0.12 + n) µs within its L(n), and states that Send/Receive and RDMA Write "
            "are similar; of the latter's function only the constant, 0.5557 µs, is legible."
        ),
        reason=evidence.choose(
            "a simulated processor has the work of the paper's network interface and no caches, so its overhead is "
            "higher, and equal for any number of partners.",
            "here the processor and the operating system do the work of the paper's network interface.",
        ),
        numbers=(
            tabulate(
                "Overhead of one send", keys, ours, "by the numbers printed within L(n)", printed
            ),
        ),
        panels=(Panel(title="overhead", x="partners", y=MESSAGE, lines=tuple(lines), log="x"),),
        measured=(evidence.platform,),
    )


NODES = (8, 16, 32, 64)
SIGNALS = range(2, 9)  # of a round; more signals are tried if they need fewer rounds
GAIN = 40  # %, "up to"


def find_fastest_dissemination(parameters: ParameterSet, ranks: int) -> tuple[str, float, float]:
    """Return the dissemination with the lowest prediction, its prediction, and that of the plain
    one."""
    names = (
        DISSEMINATION,
        *(f"n-way:{n}" for n in sorted({*SIGNALS, *list_radices(ranks)}) if n < ranks),
    )
    predictions = {
        name: predict_patterns(parameters, "barrier", name, ranks, [0])[0] for name in names
    }
    best = min(predictions, key=lambda name: predictions[name])
    return best, predictions[best], predictions[DISSEMINATION]


def read_rdma_write() -> ParameterSet:
    """Return the values of RDMA Write with the overhead of figure 5, which the paper uses for
    both."""
    write, send = (read_published(f"lop/infiniband-{name}") for name in ("rdma-write", "send"))
    values = dict(write.values) | {
        f"o_put.{part}": send.values[f"o_s.{part}"] for part in ("a", "b", "c")
    }
    return replace(write, values=values, forms={**write.forms, "o_put": send.forms["o_s"]})


def compare_barriers(evidence: PaperEvidence) -> Figure:
    """Return the best n-way dissemination, the plain one, and the lower bound of barriers in
    rounds."""
    write = read_rdma_write()
    send = read_published("lop/infiniband-send")
    sets = {
        "LoP, RDMA Write, printed": write.with_settings(latency="printed"),
        "LoP, RDMA Write, halved": write.with_settings(latency="halved"),
        "LoP, Send/Receive, printed": send.with_settings(latency="printed"),
        "LoP, Send/Receive, halved": send.with_settings(latency="halved"),
    }
    fitted = evidence.fitted("lop")
    if fitted is not None:
        sets[f"LoP, fitted on {evidence.platform}"] = fitted
    gains = []
    times = []
    panels = []
    for title, parameters in sets.items():
        cheapest = [find_fastest_dissemination(parameters, ranks) for ranks in NODES]
        bounds = [find_lower_bound(parameters, ranks).seconds for ranks in NODES]
        for ranks, bound, (best, prediction, plain) in zip(NODES, bounds, cheapest, strict=True):
            times.append(PaperRow((title, ranks, best), nan, (bound, prediction, plain)))
        best, prediction, plain = cheapest[-1]
        gains.append(PaperRow((title, best), GAIN, (100 * (1 - prediction / plain),)))
        lines = (
            Line("plain", NODES, [plain for *_, plain in cheapest], "dashed", 1),
            Line("best n-way", NODES, [prediction for _, prediction, _ in cheapest], "both"),
            Line("lower bound", NODES, bounds, "dashed", -1),
        )
        panels.append(Panel(title=title, x="nodes", y="time [s]", lines=lines))
    word = evidence.word()
    nodes = int(evidence.points(operation="barrier")["ranks"].to_numpy().max(initial=0))
    points = evidence.points(operation="barrier", ranks=nodes)
    clocked = {
        name: time
        for name, time in zip(points["alternative"], points["measured"], strict=True)
        if name != "library"
    }
    if DISSEMINATION in clocked:
        best = min(clocked, key=lambda name: clocked[name])
        gains.append(
            PaperRow(
                (word if nodes == NODES[-1] else f"{word}, {nodes} nodes", best),
                GAIN,
                (100 * (1 - clocked[best] / clocked[DISSEMINATION]),),
            )
        )
    return Figure(
        name="Section 5",
        title="the gain of barriers with several signals per round",
        caption=(
            "The n-way dissemination with LoP's lowest prediction, the plain one, and LoP's "
            "lower bound of all barriers in rounds: the number of ranks whose entry is known to "
            "a rank grows at most (n + 1)-fold in a round with n signals. RDMA Write has the "
            "overhead of figure 5, which is that of Send/Receive. The paper's gain, up to 40 % "
            "over the best barrier of its time, was measured."
        ),
        reason=(
            "in LoP a rank pays for the n signals that it sends in a round or for the n that it "
            "receives, not for both, so it overestimates a network interface or processor that "
            "does both."
        ),
        numbers=(
            Numbers(
                title="Gain on 64 nodes",
                subjects=("by", "best"),
                columns=("gain",),
                source="section 5: up to 40 %",
                rows=tuple(gains),
                unit="%",
            ),
            Numbers(
                title="Times by LoP",
                subjects=("values", "nodes", "best"),
                columns=("lower bound", "best n-way", "plain"),
                source=NO_NUMBER,
                rows=tuple(times),
            ),
        ),
        panels=tuple(panels),
        measured=(evidence.platform,) if clocked else (),
    )


MODELS = {"logp": "LogP", "lop": "LoP", "bsp": "BSP", "pram": "PRAM"}
OPERATIONS = ("bcast", "gather", "barrier")
DRAWN = (
    ("bcast", "linear"),
    ("gather", "linear"),
    ("barrier", "dissemination"),
    ("barrier", "n-way:3"),
)
HALF_TRIPS = "half of n round trips by the function of figure 3"


def compute_printed_latency(n: Array) -> Array:
    """Return L(n) of Send/Receive with the numbers printed in section 4.7, of two digits each."""
    trip = 4.58 + 11.23 / (-0.01 + n) + 0.01 * (1 - np.exp(-0.06 * (n - 101.31)))
    return (trip - (0.52 + 0.84 / (-0.12 + 1)) - (0.52 + 0.84 / (-0.12 + n))) * 1e-6


def count_overlaps_once(parameters: ParameterSet) -> ParameterSet:
    """Return the set with overlapping overheads counted once, as in a fit of this program; at
    PARTNERS only."""
    trips = evaluate_at(parameters, "rtt", PARTNERS) + compute_overlapping_overheads(
        parameters, "isend", PARTNERS
    )
    values = {
        name: value for name, value in parameters.values.items() if not name.startswith("rtt.")
    }
    values |= {
        make_sample_key("rtt", n): Estimate.exact(trip, "s")
        for n, trip in zip(PARTNERS, trips, strict=True)
    }
    return replace(
        parameters.with_settings(latency="halved"),
        values=values,
        forms={**parameters.forms, "rtt": TABLE},
    )


def compute_one_to_n(parameters: ParameterSet) -> Array:
    """Return o(n) + n·L(n)."""
    rounds = time_rounds(Model.of_set(parameters).values, PARTNERS)
    return np.ravel(rounds.first + rounds.wire)


def compare_formulas(evidence: PaperEvidence) -> Figure:
    """Return the figure with L(n), and the times that follow from it compared with the round
    trips."""
    paper = read_published("lop/infiniband-send")
    fitted = evidence.fitted("lop")
    halved = paper.with_settings(latency="halved")
    ours = compute_latency(fitted, PARTNERS) if fitted else np.full(len(PARTNERS), nan)
    half_trips = PARTNERS * evaluate_at(paper, "rtt", PARTNERS) / 2
    return Figure(
        name="Section 4.7",
        title="L(n), and the time for one to n",
        caption=(
            "L(n) of Send/Receive as printed, in two digits, and from the exact numbers of the "
            "round trip, minus whole and minus half overheads, and fitted to probes here. Then "
            "o(n) + n·L(n), the paper's time for one to n, and half of the printed round trip "
            "of n messages, since the paper assumes equal times for one to n and n to one."
        ),
        reason=(
            "the paper subtracts the overheads of both directions from one half of the trip, "
            "and all of them from each of n messages, though they overlap; counted once, as in "
            "a fit of this program, they reproduce the round trips."
        ),
        numbers=(
            tabulate(
                "L(n)",
                {"partners": PARTNERS},
                {
                    "as printed": compute_latency(paper, PARTNERS),
                    "halved": compute_latency(halved, PARTNERS),
                    "fitted here": ours,
                },
                "by the rounded numbers of section 4.7, whose last term is −4.1 µs with one partner, and −9.2/2 "
                "unrounded",
                compute_printed_latency(PARTNERS),
            ),
            tabulate(
                "One to n",
                {"partners": PARTNERS},
                {
                    "as printed": compute_one_to_n(paper),
                    "halved": compute_one_to_n(halved),
                    "overlaps counted once": compute_one_to_n(count_overlaps_once(paper)),
                },
                HALF_TRIPS,
                half_trips,
            ),
        ),
        measured=(evidence.platform,),
    )


def predict_one_to_n() -> dict[str, Array]:
    """Return the time of one to n by every model, for PARTNERS."""
    paper = read_published("lop/infiniband-send")
    half_trips = PARTNERS * evaluate_at(paper, "rtt", PARTNERS) / 2
    first, slope = fit_line(PARTNERS.astype(float), half_trips[None], 1 / half_trips**2)
    return {
        "paper": half_trips,
        "LoP as printed": compute_one_to_n(paper),
        "LoP, overlaps counted once": compute_one_to_n(count_overlaps_once(paper)),
        "LogP or BSP, nearest line": first[0] + slope[0] * PARTNERS,
        "PRAM": np.zeros(len(PARTNERS)),
    }


def collect_points(evidence: PaperEvidence) -> tuple[PaperRow, ...]:
    """Return what was measured, and the predictions of MODELS."""
    predictions = {
        name: dict(evidence.predicted(name)[["point", "seconds"]].itertuples(index=False))
        for name in MODELS
    }
    points = [
        point
        for point in evidence.points().itertuples()
        if point.operation in OPERATIONS and point.alternative != "library"
    ]
    points.sort(
        key=lambda point: (OPERATIONS.index(point.operation), point.alternative, point.ranks)
    )
    rows = []
    for point in points:
        predicted = [predictions[name].get(point.point, nan) for name in MODELS]
        subject = (point.operation, point.alternative, point.ranks)
        rows.append(PaperRow(subject, nan, (point.measured, *predicted)))
    return tuple(rows)


def find_mean_errors(times: tuple[PaperRow, ...]) -> dict[str, list[float]]:
    """Return the mean error of each model, for each of OPERATIONS."""
    columns: dict[str, list[float]] = {name: [] for name in MODELS.values()}
    for operation in OPERATIONS:
        rows = [row.ours for row in times if row.subject[0] == operation]
        for number, column in enumerate(columns.values(), 1):
            errors = [compute_error_factor(ours[number], ours[0]) for ours in rows]
            column.append(float(np.mean(errors)) if errors else nan)
    return columns


Values = Sequence[float] | np.ndarray


def make_panel(title: str, x: str, over: Values, columns: Mapping[str, Values]) -> Panel:
    """Return the first column as dots, and the others as lines."""
    lines = [
        Line(name, over, column, "line" if number else "dots", number)
        for number, (name, column) in enumerate(columns.items())
    ]
    return Panel(title=title, x=x, y="time [s]", lines=tuple(lines))


def compare_models_on_printed_curve() -> Figure:
    """Return predictions from the paper's own curve."""
    curve = predict_one_to_n()
    ours = {name: column for name, column in curve.items() if name != "paper"}
    return Figure(
        name="Section 2",
        title="PRAM, BSP, LogP and LoP on the paper's own curve",
        caption=(
            "One to n by each model, and half of the printed round trips. For a single round "
            "LogP and BSP are both a straight line, here the best fit. The paper compares in "
            "words: PRAM's messages are free, in BSP all ranks wait for all, LogP is the most "
            "accurate earlier model, and LoP is more accurate with few partners."
        ),
        reason=(
            "the printed round trips bend when the network interface saturates, which no line "
            "does, and LoP as printed subtracts overheads more than once."
        ),
        numbers=(tabulate("One to n", {"partners": PARTNERS}, ours, HALF_TRIPS, curve["paper"]),),
        panels=(make_panel("one to n", "partners", PARTNERS, curve),),
    )


def compare_models(evidence: PaperEvidence) -> Figure:
    """Return predictions from measurements."""
    word = evidence.word()
    times = collect_points(evidence)
    columns = (word, *MODELS.values())
    panels = []
    for pattern in DRAWN:
        rows = [row for row in times if row.subject[:2] == pattern]
        if rows:
            lines = dict(zip(columns, zip(*(row.ours for row in rows), strict=True), strict=True))
            panels.append(
                make_panel(" ".join(pattern), "nodes", [row.subject[2] for row in rows], lines)
            )
    return Figure(
        name="Section 2.5",
        title=f"predictions by PRAM, BSP, LogP and LoP, and {word} times",
        caption=(
            "One to n is bcast linear, n to one is gather linear; n-way:2 is a barrier with two "
            "signals a round. All values are fitted to probes. The paper prefers LogP among the "
            "earlier models, and measures no pattern."
        ),
        reason=evidence.choose(
            "the simulated machine is LogP, on which LogP is exact; ",
            "the machine is another one; ",
        )
        + "BSP has every rank wait for all in each step, and LoP neglects that a rank that signals n others in a round "
        "is signalled by n.",
        numbers=(
            tabulate(
                f"Mean error factor of predictions of {word} times (×)",
                {"operation": OPERATIONS},
                find_mean_errors(times),
                unit="",
            ),
            *(
                (
                    Numbers(
                        title="Times",
                        subjects=("operation", "algorithm", "nodes"),
                        columns=columns,
                        source=NO_NUMBER,
                        rows=times,
                    ),
                )
                if times
                else ()
            ),
        ),
        panels=tuple(panels),
        measured=(evidence.platform,),
    )


def make_figures(evidence: PaperEvidence) -> tuple[Figure, ...]:
    return (
        compare_models_on_printed_curve(),
        compare_models(evidence),
        compare_round_trips(
            evidence,
            "Figure 3",
            "round trips by Send/Receive",
            "infiniband-send",
            evidence.choose(
                "infiniband-64 has the paper's round trip with one partner and about its minimum with several, but "
                "does not saturate with many, as the paper's network interface does; simulated times hardly vary.",
                "here messages use TCP at 100 Mbit/s instead of InfiniBand, and all hosts share one machine.",
                "the machine is another one, and its averages contain other work of its processors.",
            ),
        ),
        compare_round_trips(
            evidence,
            "Figure 4",
            "round trips by RDMA Write",
            "infiniband-rdma-write",
            evidence.choose(
                "a simulated put is announced, sent and closed by messages, three for one, while the paper's adapter "
                "writes without its partner's processor.",
                "here the MPI announces and closes a put by messages, while the paper's adapter writes without its "
                "partner's processor.",
            ),
        ),
        compare_overheads(evidence),
        compare_formulas(evidence),
        compare_barriers(evidence),
    )


PAPER = Paper(
    name="lop",
    citation="T. Hoefler, T. Mehlan, F. Mietke, W. Rehm, A communication model for small messages with InfiniBand, "
    "PARS 2005",
    figures=make_figures,
    published=("lop/infiniband-send", "lop/infiniband-rdma-write"),
    absent="Figures 1 and 2 are drawings of the model without numbers. Of figures 3 to 5 the text has the functions "
    "that were fitted to the smallest times; averages, inline sends and other ways to post are drawn only.",
)
