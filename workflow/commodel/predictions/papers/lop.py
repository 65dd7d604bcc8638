"""Hoefler and others 2005: rounds of one byte to n partners and back on 64 nodes with InfiniBand.

Figures 3 and 4 are round trips, figure 5 overheads, section 4.7 the formulas of L(n), section 2 a comparison of PRAM,
BSP, LogP and LoP, and section 5 what a barrier gains by several signals a round.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan

import numpy as np

from commodel.models import Array
from commodel.models.evaluation.values import TABLE
from commodel.models.families.lop import FUNCTIONS, time_rounds
from commodel.models.fitting.regression import fit_line
from commodel.models.keys import sample
from commodel.models.parameter_sets import read_published
from commodel.parameters import Estimate, ParameterSet
from commodel.predictions.barrier_bounds import DISSEMINATION, find_lower_bound, list_radices
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
    predict_patterns,
    tabulate,
)

PARTNERS = np.array([1, 2, 4, 8, 16, 32, 63])
SMOOTH = np.geomspace(1, 64, 64)
MESSAGE = "time a message [s]"


def evaluate_at(parameters: ParameterSet, function: str, partners: Array) -> Array:
    return np.ravel(Model.of_set(parameters).values.at(function, partners))


def latency(parameters: ParameterSet, partners: Array) -> Array:
    """L(n)."""
    return np.ravel(time_rounds(Model.of_set(parameters).values, partners).wire) / partners


def read(parameters: ParameterSet, **settings: str) -> ParameterSet:
    """Return the same values taken another way."""
    return replace(parameters, settings={**parameters.settings, **settings})


def time_per_message(evidence: Evidence, probe: str, how: str, statistic: str) -> dict[int, float]:
    """Return the time over n of a probe with n partners, by n."""
    return {int(case["n"]): case[statistic] / int(case["n"]) for case in evidence.cases(probe, how=how)}


def partners_of(*times: Mapping[int, float]) -> Array:
    """Return PARTNERS; if there are fewer nodes, also the most partners that were probed."""
    most = max((n for columns in times for n in columns), default=PARTNERS[-1])
    return np.union1d(PARTNERS, [min(most, PARTNERS[-1])])


def overlapped(parameters: ParameterSet, how: str, partners: Array) -> Array:
    """Return each message's share of the overheads of n − 1 messages, which a prediction includes and a round trip does
    not."""
    overhead = FUNCTIONS[how][1]
    both = evaluate_at(parameters, overhead, np.array([1.0])) + evaluate_at(parameters, overhead, partners)
    return (partners - 1) / partners * both


def fitted_trip(parameters: ParameterSet | None, how: str, partners: Array) -> Array:
    """Return the fitted round trip over n; NaN without measurements."""
    rtt = FUNCTIONS[how][0]
    if parameters is None or f"{rtt}.a" not in parameters.values:
        return np.full(len(partners), nan)
    return evaluate_at(parameters, rtt, partners) - overlapped(parameters, how, partners)


def round_trips(evidence: Evidence, name: str, title: str, source: str, why: str) -> Figure:
    how = {"infiniband-send": "isend", "infiniband-rdma-write": "put"}[source]
    paper, fitted, word = read_published(f"lop/{source}"), evidence.fitted("lop"), evidence.word()
    least, mean = (time_per_message(evidence, "round", how, statistic) for statistic in ("min", "mean"))
    partners = partners_of(least)
    ours = {
        f"{word}, least": [least.get(n, nan) for n in partners],
        f"{word}, average": [mean.get(n, nan) for n in partners],
        "fitted": fitted_trip(fitted, how, partners),
    }
    lines = (
        Line("paper, fitted to the least", SMOOTH, evaluate_at(paper, FUNCTIONS[how][0], SMOOTH), "dashed", -1),
        Line(f"{word}, least", tuple(least), tuple(least.values()), "dots"),
        Line(f"{word}, average", tuple(mean), tuple(mean.values()), "dots", 1),
        Line("fitted to medians", SMOOTH, fitted_trip(fitted, how, SMOOTH)),
    )
    return Figure(
        name,
        title,
        "One byte from a node to each of n others and one back from each: the time over n. The paper prints a function "
        "for the smallest times; the one for averages is not in its text.",
        why,
        (
            tabulate(
                "Round trip, a message",
                {"partners": partners},
                ours,
                "by the function printed in section 4.7, which was fitted to the smallest times",
                evaluate_at(paper, FUNCTIONS[how][0], partners),
            ),
        ),
        (Panel("round trip a message", "partners", MESSAGE, lines, "x"),),
        (evidence.platform,),
    )


def overheads(evidence: Evidence) -> Figure:
    paper, word = read_published("lop/infiniband-send"), evidence.word()
    posts = {
        f"{word}, {words}": time_per_message(evidence, "post", how, "median")
        for how, words in {"isend": "one by one", "list": "as a list", "put": "puts"}.items()
    }
    partners = partners_of(*posts.values())
    ours = {title: [times.get(n, nan) for n in partners] for title, times in posts.items()}
    about, printed = {"partners": partners}, evaluate_at(paper, "o_s", partners)
    lines = [Line("paper", SMOOTH, evaluate_at(paper, "o_s", SMOOTH), "dashed", -1)]
    lines += [
        Line(title, tuple(times), tuple(times.values()), "dots", place)
        for place, (title, times) in enumerate(posts.items())
    ]
    return Figure(
        "Figure 5",
        "the overhead of posting a send",
        "What posting n sends takes a processor, over n. The paper prints 0.52 + 0.84/(−0.12 + n) µs within its L(n), "
        "and says that Send/Receive and RDMA Write are alike; of the latter's own function only its constant, 0.5557 "
        "µs, is legible.",
        evidence.choose(
            "a simulated processor does what in the paper the network interface does, and has no caches to warm up, so "
            "that its overhead is higher and the same for any number of partners.",
            "here the processor and the system do what in the paper the network interface does.",
        ),
        (tabulate("Overhead of one send", about, ours, "by the numbers printed within L(n)", printed),),
        (Panel("overhead", "partners", MESSAGE, tuple(lines), "x"),),
        (evidence.platform,),
    )


NODES = (8, 16, 32, 64)
SIGNALS = range(2, 9)  # of a round: few, and beyond them those that end in fewer rounds
GAIN = 40  # %, "up to"


def fastest(parameters: ParameterSet, ranks: int) -> tuple[str, float, float]:
    """Return the cheapest dissemination of those that could be, its prediction, and that of the plain one."""
    names = (DISSEMINATION, *(f"n-way:{n}" for n in sorted({*SIGNALS, *list_radices(ranks)}) if n < ranks))
    costs = {name: predict_patterns(parameters, "barrier", name, ranks, [0])[0] for name in names}
    best = min(costs, key=costs.get)
    return best, costs[best], costs[DISSEMINATION]


def rdma_write() -> ParameterSet:
    """Return the values of RDMA Write with the overhead of figure 5, which the paper has for Send/Receive as well."""
    write, send = (read_published(f"lop/infiniband-{name}") for name in ("rdma-write", "send"))
    values = write.values | {f"o_put.{part}": send.values[f"o_s.{part}"] for part in ("a", "b", "c")}
    return replace(write, values=values, forms={**write.forms, "o_put": send.forms["o_s"]})


def barriers(evidence: Evidence) -> Figure:
    """Return the best n-way dissemination, the plain one, and the lower bound of barriers in rounds."""
    sources = {"RDMA Write": rdma_write(), "Send/Receive": read_published("lop/infiniband-send")}
    sets = {
        f"LoP, {source}, {latency}": read(parameters, latency=latency)
        for source, parameters in sources.items()
        for latency in ("printed", "halved")
    }
    if (fitted := evidence.fitted("lop")) is not None:
        sets[f"LoP, fitted on {evidence.platform}"] = fitted
    gains, times, panels = [], [], []
    for title, parameters in sets.items():
        cheapest = [fastest(parameters, ranks) for ranks in NODES]
        bounds = [find_lower_bound(parameters, ranks).seconds for ranks in NODES]
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
    word = evidence.word()
    nodes = int(evidence.points(operation="barrier")["ranks"].max()) if len(evidence.points(operation="barrier")) else 0
    points = evidence.points(operation="barrier", ranks=nodes)
    clocked = {
        name: time for name, time in zip(points["alternative"], points["measured"], strict=True) if name != "library"
    }
    if DISSEMINATION in clocked:
        best = min(clocked, key=clocked.get)
        gains.append(
            Row(
                (word if nodes == NODES[-1] else f"{word}, {nodes} nodes", best),
                GAIN,
                (100 * (1 - clocked[best] / clocked[DISSEMINATION]),),
            )
        )
    return Figure(
        "Section 5",
        "what a barrier gains by several signals a round",
        "The n-way dissemination that LoP finds cheapest, beside the plain one, and beside LoP's lower bound of all "
        "barriers in rounds: what a rank knows grows at most (n + 1)-fold in a round with n signals. RDMA Write has "
        "the overhead of figure 5, which is that of Send/Receive. The paper's gain, "
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


MODELS = {"logp": "LogP", "lop": "LoP", "bsp": "BSP", "pram": "PRAM"}
OPERATIONS = ("bcast", "gather", "barrier")
DRAWN = (("bcast", "linear"), ("gather", "linear"), ("barrier", "dissemination"), ("barrier", "n-way:3"))
HALF_TRIPS = "half of n round trips by the function of figure 3"


def printed_latency(n: Array) -> Array:
    """L(n) of Send/Receive with the numbers that stand in section 4.7, of two digits each."""
    trip = 4.58 + 11.23 / (-0.01 + n) + 0.01 * (1 - np.exp(-0.06 * (n - 101.31)))
    return (trip - (0.52 + 0.84 / (-0.12 + 1)) - (0.52 + 0.84 / (-0.12 + n))) * 1e-6


def once(parameters: ParameterSet) -> ParameterSet:
    """Return the same with the overlapping overheads on the round trips again, as a fit here does it; at PARTNERS
    only."""
    trips = evaluate_at(parameters, "rtt", PARTNERS) + overlapped(parameters, "isend", PARTNERS)
    values = {name: value for name, value in parameters.values.items() if not name.startswith("rtt.")}
    values |= {sample("rtt", n): Estimate(trip, "s", trip, trip) for n, trip in zip(PARTNERS, trips, strict=True)}
    return replace(read(parameters, latency="halved"), values=values, forms={**parameters.forms, "rtt": TABLE})


def one_to_n(parameters: ParameterSet) -> Array:
    """o(n) + n·L(n)."""
    rounds = time_rounds(Model.of_set(parameters).values, PARTNERS)
    return np.ravel(rounds.first + rounds.wire)


def formulas(evidence: Evidence) -> Figure:
    """L(n), the times that follow from it, and what is left in them of the round trips that all of it came from."""
    paper, fitted = read_published("lop/infiniband-send"), evidence.fitted("lop")
    halved = read(paper, latency="halved")
    ours = latency(fitted, PARTNERS) if fitted else np.full(len(PARTNERS), nan)
    half = PARTNERS * evaluate_at(paper, "rtt", PARTNERS) / 2
    return Figure(
        "Section 4.7",
        "L(n), and the time for one to n",
        "L(n) of Send/Receive as printed, in two digits, beside the same from the exact numbers of the round trip, "
        "with whole overheads taken off and with halves, and beside a fit of what was probed here. Then o(n) + n·L(n), "
        "which the paper has for one to n, beside the half of the printed round trip of n messages, for it takes one "
        "to n and n to one for equally long.",
        "the paper takes overheads of both ways off one half of the trip, and all of them off each of n messages, "
        "though they overlap; counted once, as a fit here does, they give the round trips back.",
        (
            tabulate(
                "L(n)",
                {"partners": PARTNERS},
                {
                    "as printed": latency(paper, PARTNERS),
                    "halved": latency(halved, PARTNERS),
                    "fitted here": ours,
                },
                "by the rounded numbers of section 4.7, whose last term is −4.1 µs with one partner, and −9.2/2 "
                "unrounded",
                printed_latency(PARTNERS),
            ),
            tabulate(
                "One to n",
                {"partners": PARTNERS},
                {
                    "as printed": one_to_n(paper),
                    "halved": one_to_n(halved),
                    "overlaps counted once": one_to_n(once(paper)),
                },
                HALF_TRIPS,
                half,
            ),
        ),
        measured=(evidence.platform,),
    )


def predict_one_to_n() -> dict[str, Array]:
    """Return one to n by every model, for PARTNERS."""
    paper = read_published("lop/infiniband-send")
    half = PARTNERS * evaluate_at(paper, "rtt", PARTNERS) / 2
    first, slope = fit_line(PARTNERS.astype(float), half[None], 1 / half**2)
    return {
        "paper": half,
        "LoP as printed": one_to_n(paper),
        "LoP, overlaps counted once": one_to_n(once(paper)),
        "LogP or BSP, nearest line": first[0] + slope[0] * PARTNERS,
        "PRAM": np.zeros(len(PARTNERS)),
    }


def collect_points(evidence: Evidence) -> tuple[Row, ...]:
    """Return what was measured, and the predictions of MODELS."""
    costs = {name: dict(evidence.predicted(name)[["point", "predicted"]].itertuples(index=False)) for name in MODELS}
    points = [
        point
        for point in evidence.points().itertuples()
        if point.operation in OPERATIONS and point.alternative != "library"
    ]
    points.sort(key=lambda point: (OPERATIONS.index(point.operation), point.alternative, point.ranks))
    return tuple(
        Row(
            (point.operation, point.alternative, point.ranks),
            nan,
            (point.measured, *(costs[name].get(point.point, nan) for name in MODELS)),
        )
        for point in points
    )


def mean_errors(times: tuple[Row, ...]) -> dict[str, list[float]]:
    """Return the mean error of each model, for each of OPERATIONS."""
    columns = {name: [] for name in MODELS.values()}
    for operation in OPERATIONS:
        of_it = [row.here for row in times if row.about[0] == operation]
        for place, column in enumerate(columns.values(), 1):
            errors = [error_factor(here[place], here[0]) for here in of_it]
            column.append(float(np.mean(errors)) if errors else nan)
    return columns


def panel(title: str, x: str, over: Sequence[float], columns: Mapping[str, Sequence[float]]) -> Panel:
    """Return the first column, of what all others are about, in dots."""
    lines = [
        Line(name, over, column, "line" if place else "dots", place)
        for place, (name, column) in enumerate(columns.items())
    ]
    return Panel(title, x, "time [s]", tuple(lines))


def by_formula() -> Figure:
    """Return predictions from the paper's own curve."""
    curve = predict_one_to_n()
    ours = {name: column for name, column in curve.items() if name != "paper"}
    return Figure(
        "Section 2",
        "PRAM, BSP, LogP and LoP on the paper's own curve",
        "One to n by each model, beside half of the printed round trips: for a single round LogP and BSP are both a "
        "straight line, here the nearest. The paper compares in words: PRAM's messages are free, BSP makes all wait "
        "for all, LogP is the most accurate of those that were known, and LoP more so with few partners.",
        "the printed round trips bend where the network interface saturates, which no line follows, and LoP as printed "
        "loses the overheads that it takes off more than once.",
        (tabulate("One to n", {"partners": PARTNERS}, ours, HALF_TRIPS, curve["paper"]),),
        (panel("one to n", "partners", PARTNERS, curve),),
    )


def models(evidence: Evidence) -> Figure:
    """Return predictions from measurements."""
    word, times = evidence.word(), collect_points(evidence)
    columns = (word, *MODELS.values())
    panels = []
    for pattern in DRAWN:
        if of_it := [row for row in times if row.about[:2] == pattern]:
            lines = dict(zip(columns, zip(*(row.here for row in of_it), strict=True), strict=True))
            panels.append(panel(" ".join(pattern), "nodes", [row.about[2] for row in of_it], lines))
    return Figure(
        "Section 2.5",
        f"PRAM, BSP, LogP and LoP beside what was {word}",
        "One to n is bcast linear, n to one is gather linear; n-way:2 is a barrier with two signals a round. All "
        "values are fitted to probes. The paper chooses LogP among those that were known, and measures no pattern by "
        "any.",
        evidence.choose("the simulated machine is LogP, on which LogP is exact; ", "the machine is another one; ")
        + "BSP has every rank wait for all in each step, and LoP neglects that a rank that signals n others in a round "
        "is signalled by n.",
        (
            tabulate(
                f"How far predictions are off what was {word}, either way, mean (×)",
                {"operation": OPERATIONS},
                mean_errors(times),
                unit="",
            ),
            *((Numbers("Times", ("operation", "algorithm", "nodes"), columns, NO_NUMBER, times),) if times else ()),
        ),
        tuple(panels),
        (evidence.platform,),
    )


def figures(evidence: Evidence) -> tuple[Figure, ...]:
    return (
        by_formula(),
        models(evidence),
        round_trips(
            evidence,
            "Figure 3",
            "round trips by Send/Receive",
            "infiniband-send",
            evidence.choose(
                "infiniband-64 was given the paper's round trip with one partner and about its least with several, and "
                "stays there with many, where the paper's network interface saturates; simulated times hardly vary.",
                "here messages pass TCP at 100 Mbit/s in place of InfiniBand, and all hosts share one machine.",
                "the machine is another one, and its averages contain other work of its processors.",
            ),
        ),
        round_trips(
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
        overheads(evidence),
        formulas(evidence),
        barriers(evidence),
    )


PAPER = Paper(
    name="lop",
    citation="T. Hoefler, T. Mehlan, F. Mietke, W. Rehm, A communication model for small messages with InfiniBand, "
    "PARS 2005",
    figures=figures,
    published=("lop/infiniband-send", "lop/infiniband-rdma-write"),
    absent="Figures 1 and 2 are drawings of the model without numbers. Of figures 3 to 5 the text has the functions "
    "that were fitted to the smallest times; averages, inline sends and other ways to post are drawn only.",
)
