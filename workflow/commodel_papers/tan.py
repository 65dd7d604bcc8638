"""The TAN paper: reductions up trees by MRNet on 256 nodes of Cab.

Figures 1, 2, 4 and 6 and table I are the parameters and the experiments to which they are fitted.
Figures 7 and 8 validate TAN and LogP on eight trees, equation 2 predicts streams of waves.
"""

from collections.abc import Iterable
from dataclasses import replace
from math import isnan, nan

import numpy as np

from commodel.models.families import tan
from commodel.models.parameter_sets import read_published
from commodel.parameters import Curve, ParameterSet
from commodel.patterns.algorithms import find_tree_algorithm
from commodel.patterns.schedule import Schedule
from commodel.patterns.trees.topologies import make_tree
from commodel.predictions.papers import (
    Figure,
    Line,
    Numbers,
    Panel,
    Paper,
    PaperEvidence,
    compute_error_factor,
    predict_pattern,
    tabulate,
)
from commodel.predictions.predictions import INFINITE_WAVES

PACKET = 1024  # bytes
# of figure 1; there 1, 12 and 131 KB
SIZES = {1024: "1 KiB", 12 << 10: "12 KiB", 128 << 10: "128 KiB"}
DEVIATION = "standard deviation"
PRINTED_LATENCY = {"min": 59e-6, "mean": 98e-6, "max": 672e-6, DEVIATION: 30e-6}
PRINTED_R2 = {"chain": 0.89, "N-to-1": 0.90}
HEIGHTS = np.array([1, 2, 4, 8, 16, 32])
LEAVES = np.array([1, 2, 4, 8, 16, 32, 64, 128])
TIME = "time [s]"


def make_reduction(spec: str) -> Schedule:
    """Return a wave of packets up a tree."""
    return find_tree_algorithm("reduce").build(make_tree(spec), PACKET)


def compare_n_to_1(evidence: PaperEvidence) -> Figure:
    word = evidence.word()
    times = []
    growth = []
    lines = []
    for colour, (size, name) in enumerate(SIZES.items()):
        points = evidence.points(operation="gather", algorithm="linear", bytes=size)
        senders = (points["ranks"] - 1).tolist()
        seconds = points["measured"].tolist()
        times += [(name, n, time) for n, time in zip(senders, seconds, strict=True)]
        growth.append((name, max(senders, default=0), seconds[-1] / seconds[0] if senders else nan))
        lines += [Line(name, senders, seconds, "both", colour)] if senders else []

    def of_senders(title: str, rows: list[tuple[str, int, float]], unit: str) -> Numbers:
        packets, senders, ours = zip(*rows, strict=True)
        return tabulate(title, {"packet": packets, "senders": senders}, {word: ours}, unit=unit)

    return Figure(
        name="Figure 1",
        title="N-to-1 with three sizes of packet",
        caption=(
            "The time until a node has received a packet from each of N others; the paper's "
            "packets have 1, 12 and 131 KB. It states that few senders add almost no time, and "
            "that with many the handling of packets dominates."
        ),
        reason="no number of the figure is in the text, and "
        + evidence.choose("a simulated receiver", "here a receiver")
        + " handles one message after the other, so its time is linear in N from the first message on.",
        numbers=(
            of_senders("Times as long as with one sender", growth, ""),
            *((of_senders("N-to-1", times, "s"),) if times else ()),
        ),
        panels=(Panel(title="N-to-1", x="senders", y=TIME, lines=tuple(lines)),) if lines else (),
        measured=(evidence.platform,),
    )


def compare_latencies(evidence: PaperEvidence) -> Figure:
    """Return the figure with half of the round trips of one packet, on every platform."""
    columns = {}
    for platform in evidence.kinds:
        cases = evidence.cases("pingpong", platform, bytes=PACKET)
        halves = {}
        for case in cases:
            for statistic in PRINTED_LATENCY:
                if statistic in case:
                    halves[statistic] = case[statistic] / 2
        name = f"{evidence.word(platform)} on {platform}"
        halves[DEVIATION] = evidence.deviation(PACKET, platform)
        columns[name] = [halves.get(statistic, nan) for statistic in PRINTED_LATENCY]
    keys = {"half a round trip": PRINTED_LATENCY}
    printed = PRINTED_LATENCY.values()
    return Figure(
        name="Figure 2",
        title="the latency",
        caption=(
            "Half of the round trips of a packet of 1 KiB, in the paper 500 by TCP over "
            "InfiniBand, with two modes. The standard deviation here is from the histogram. A "
            "block of the matrix on another platform adds that platform's column here, and its "
            "histogram to the sheet Network."
        ),
        reason="the simulated platform has the paper's mean, and simulated round trips are all equal."
        if evidence.is_simulated
        else "the network is another one, and both ends may be on one machine.",
        numbers=(tabulate("Latency", keys, columns, "printed in section IV A", printed),),
        measured=(evidence.platform,),
    )


def compare_chain(evidence: PaperEvidence, table_1: ParameterSet) -> Figure:
    word = evidence.word()
    wave = find_fit_curve(evidence, tan.CHAIN)
    overhead = find_fit_curve(evidence, tan.PAPER_CHAIN)
    L, level = table_1.values["L"].value, table_1.values["o.a"].value
    by_line = (L + 2 * level) * HEIGHTS
    smooth = np.array([1, 32])
    equation_1 = [predict_pattern(table_1, make_reduction(f"chain:{height}")) for height in HEIGHTS]
    keys = {"height": HEIGHTS}
    equation = "equation 1, the paper's values"
    return Figure(
        name="Figure 4",
        title="a wave up a chain",
        caption=(
            "The time minus a latency for every hop, halved since a level sends and receives, "
            "is the overhead of a level: 49.3 µs in the paper, R² 0.89. By this fit a wave "
            "takes h·(L + 2·49.3 µs). Equation 1 has one overhead per level, so its prediction "
            "with the values of this chain is a quarter lower."
        ),
        reason="MRNet's processes add time to that of the TCP with which the latency was measured, "
        "while here chain and ping-pong are messages of one MPI, so nothing remains after subtracting the latency."
        if evidence.is_simulated
        else "the processes of this overlay network take less time than MRNet's; if the network delays messages, the "
        "ping-pong has more delay than a level of a chain.",
        numbers=(
            tabulate(
                "A wave",
                keys,
                {**select_curve_columns(wave, word, HEIGHTS), equation: equation_1},
                "by the fit of section IV B 1, plus the latencies",
                by_line,
            ),
            tabulate(
                "Overhead",
                keys,
                select_curve_columns(overhead, word, HEIGHTS),
                "by the fit of section IV B 1",
                level * HEIGHTS,
            ),
        ),
        panels=(
            Panel(
                title="chain",
                x="height",
                y=TIME,
                lines=(
                    *make_lines(wave, word, smooth, (L + 2 * level) * smooth),
                    Line(equation, HEIGHTS, equation_1, "dashed", 1),
                ),
                log="",
            ),
        ),
        measured=(evidence.platform,),
    )


def compare_fan_in(evidence: PaperEvidence, table_1: ParameterSet) -> Figure:
    word = evidence.word()
    curve = find_fit_curve(evidence, tan.PAPER_FAN)
    b, c = (table_1.values[name].value for name in ("o.b", "o.c"))
    smooth = np.arange(1, 129)
    best = f"; here {curve.form.partition(' through')[0].removeprefix('a + ')} is" if curve else ""
    return Figure(
        name="Figure 6",
        title="the overhead of N-to-1",
        caption=(
            "Half of the round trip of a wave to N leaves and back, minus a latency and the "
            "overhead of a level, fitted through the origin: in the paper b·x + c·x² is best, "
            f"R² 0.90{best}."
        ),
        reason=(
            "every further child takes about the same time of the "
            f"{'simulated ' if evidence.is_simulated else ''}root, but in the paper 1 µs at "
            "first and 41 µs at 128."
        ),
        numbers=(
            tabulate(
                "Overhead",
                {"leaves": LEAVES},
                select_curve_columns(curve, word, LEAVES),
                "by the fit of section IV B 2",
                b * LEAVES + c * LEAVES**2,
            ),
        ),
        panels=(
            Panel(
                title="N-to-1",
                x="leaves",
                y=TIME,
                lines=make_lines(curve, word, smooth, b * smooth + c * smooth**2),
                log="",
            ),
        ),
        measured=(evidence.platform,),
    )


def find_fit_curve(evidence: PaperEvidence, title: str) -> Curve | None:
    """Return the curve of a fit: measured and fitted values; None without it."""
    fitted = evidence.fitted("tan")
    return (
        next((curve for curve in fitted.curves if curve.title == title), None) if fitted else None
    )


def make_lines(
    curve: Curve | None, word: str, x: np.ndarray, printed: np.ndarray
) -> tuple[Line, ...]:
    paper = Line("paper's fit", x, printed, "dashed", -1)
    if curve is None:
        return (paper,)
    return paper, Line(word, curve.x, curve.measured, "dots"), Line("fitted", curve.x, curve.fitted)


def select_curve_columns(
    curve: Curve | None, word: str, where: np.ndarray
) -> dict[str, list[float]]:
    """Return the measured and fitted values at some x; NaN where nothing was measured."""
    by_x = (
        {x: both for x, *both in zip(curve.x, curve.measured, curve.fitted, strict=True)}
        if curve
        else {}
    )
    ours = [by_x.get(float(x), (nan, nan)) for x in where]
    measured, fitted = zip(*ours, strict=True)
    return {word: list(measured), "fitted": list(fitted)}


def tabulate_parameters(evidence: PaperEvidence, table_1: ParameterSet) -> Figure:
    """Return the figure with values of the paper's procedure and of the joint fit, and R² of the
    procedure's two fits."""
    fitted = evidence.fitted("tan")
    values = fitted.numbers if fitted else {}
    names = ("L", "o.a", "o.b", "o.c")
    ours = {
        "paper's recipe": [values.get(name.replace("o.", "o_paper."), nan) for name in names],
        "joint fit": [values.get(name, nan) for name in names],
    }
    printed = [table_1.values[name].value for name in names]
    curves = {
        "chain": find_fit_curve(evidence, tan.PAPER_CHAIN),
        "N-to-1": find_fit_curve(evidence, tan.PAPER_FAN),
    }
    no_layer = "with no layer between tree and network, " if evidence.is_simulated else ""
    quality = {"fitted": [curve.r2 if curve else nan for curve in curves.values()]}
    return Figure(
        name="Table I",
        title="the parameters of TAN",
        caption=(
            "Of o(x) = o.a + o.b·x + o.c·x²; the paper sets g and C to 0. Its recipe fits each "
            "parameter to a separate experiment; the joint fit uses chain and N-to-1 together, "
            "with the best form."
        ),
        reason=(
            f"the machine is another one, {no_layer}and the recipe forces the curve of N-to-1 "
            "through the origin, so that it fits a parabola to times that are linear in N."
        ),
        numbers=(
            tabulate("Values", {"parameter": names}, ours, "printed in table I", printed),
            tabulate(
                "R² of the recipe's fits",
                {"experiment": curves},
                quality,
                "printed in section IV B",
                [PRINTED_R2[name] for name in curves],
                "",
            ),
        ),
        measured=(evidence.platform,),
    )


TREES = {
    32: {
        "two levels": "groups:6,6,5,5,5,5",
        "binomial": "binomial:6",
        "binary": "kary:2^5",
        "all to one": "flat:32",
    },
    128: {
        "two levels": "groups:12x7,11x4",
        "binomial": "binomial:8",
        "binary": "kary:2^7",
        "all to one": "flat:128",
    },
}
FIGURES = {32: "Figure 7", 128: "Figure 8"}
TAN, DRAWN = "TAN", "LogP as drawn"
FAMILIES = {"tan": TAN, "logp-tan": DRAWN, "logp": "LogP"}
WAVES = 20  # of a stream


def make_printed_logp(table_1: ParameterSet) -> ParameterSet:
    """Return LogP as the paper draws it: o is that of the chain."""
    values = {"L": table_1.values["L"], "o": table_1.values["o.a"], "C": table_1.values["C"]}
    return replace(table_1, model="logp-tan", values=values, forms={})


def predict_by_recipe(fitted: ParameterSet | None, specs: Iterable[str]) -> list[float]:
    if fitted is None or "o_paper.a" not in fitted.values:
        return [nan for _ in specs]
    return [predict_pattern(fitted, make_reduction(spec), recipe="paper") for spec in specs]


def find_mean(values: list[float]) -> float:
    """Return the mean of the numbers that are not NaN."""
    numbers = [value for value in values if not isnan(value)]
    return sum(numbers) / len(numbers) if numbers else nan


def compare_trees(
    evidence: PaperEvidence, specs: Iterable[str], waves: int
) -> tuple[list[float], dict[str, list[float]]]:
    """Return the measured times of the trees, and every family's predictions."""
    keys = [{"topology": spec, "waves": waves} for spec in specs]
    predictions = {}
    for name, title in FAMILIES.items():
        predictions[title] = [evidence.prediction(name, **where) for where in keys]
    return [evidence.median(**where) for where in keys], predictions


def explain_errors(evidence: PaperEvidence) -> str:
    """Return a text that explains the error of each model."""
    if evidence.is_simulated:
        return (
            "in TAN a node begins when its last child has sent, while a simulated node has handled earlier children by "
            "then, so TAN overestimates a binomial tree, whose children send one after the other, and is exact if all "
            "send at once."
        )
    shared = evidence.find_oversubscription()
    if shared:
        return (
            f"up to {shared[0]} processes take turns on {shared[1]} processors here, while in every model sub-trees "
            "proceed concurrently, so that all underestimate trees of several levels, LogP as drawn most, and TAN and "
            "LogP are right only for all to one, to which N-to-1 was fitted."
        )
    return (
        "in TAN a node handles all children after the last has sent, so it overestimates a binomial tree, whose "
        "children send one after the other; in LogP only messages that arrive at the same time wait, and it "
        "underestimates that tree; LogP as drawn does not model the number of children, and underestimates trees with "
        "several."
    )


def validate_trees(evidence: PaperEvidence, leaves: int, table_1: ParameterSet) -> Figure:
    trees = TREES[leaves]
    word = evidence.word()
    measured, predictions = compare_trees(evidence, trees.values(), 1)
    predictions["TAN, paper's recipe"] = predict_by_recipe(evidence.fitted("tan"), trees.values())
    reductions = [make_reduction(spec) for spec in trees.values()]
    printed_logp = make_printed_logp(table_1)
    by_table = [predict_pattern(table_1, reduction) for reduction in reductions]
    by_levels = [predict_pattern(printed_logp, reduction) for reduction in reductions]
    errors = {}
    for title, predicted in predictions.items():
        errors[title] = list(map(compute_error_factor, predicted, measured))
    keys = {"tree": trees}
    nearer = [
        tan <= logp
        for tan, logp in zip(errors[TAN], errors[DRAWN], strict=True)
        if not isnan(tan + logp)
    ]
    numbers = (
        tabulate(
            "A wave",
            keys,
            {word: measured, **predictions},
            "TAN with the values of table I; the observed bars are not legible",
            by_table,
        ),
        tabulate(
            "LogP as drawn, with the values of the paper",
            keys,
            {DRAWN: predictions[DRAWN]},
            "L + o a level, with the values of table I",
            by_levels,
        ),
        tabulate(
            f"Error factor of predictions of {word} times (×)",
            {"tree": [*trees, "their mean"]},
            {title: [*column, find_mean(column)] for title, column in errors.items()},
            unit="",
        ),
        tabulate(
            "Trees on which TAN is more accurate than LogP as drawn",
            {"of four trees": [f"{leaves} leaves"]},
            {"here": [sum(nearer) if nearer else nan]},
            "stated in section V A",
            [len(trees)],
            "",
        ),
    )
    numbers_of_trees = range(1, len(trees) + 1)
    lines = [
        Line("paper, TAN", numbers_of_trees, by_table, "dashed", 1),
        Line("paper, LogP as drawn", numbers_of_trees, by_levels, "dashed", 2),
    ]
    columns = {word: measured} | predictions
    lines += [
        Line(title, numbers_of_trees, times, "both" if title == word else "dots", colour)
        for colour, (title, times) in enumerate(columns.items())
        if not isnan(sum(times))
    ]
    title = ", ".join(f"{number} {name}" for number, name in enumerate(trees, 1))
    return Figure(
        name=FIGURES[leaves],
        title=f"a wave up four trees with {leaves} leaves",
        caption=(
            "LogP as the paper draws it has one overhead per level, LogP itself one for every "
            "child. The paper prints no errors, and states that TAN is nearer than LogP on "
            "every tree."
        ),
        reason=explain_errors(evidence),
        numbers=numbers,
        panels=(Panel(title=title, x="tree", y=TIME, lines=tuple(lines), log="y"),),
        measured=(evidence.platform,),
    )


def compare_streams(evidence: PaperEvidence, table_1: ParameterSet) -> Figure:
    """Return the figure of equation 2: the node with the most children determines the period, at
    any height."""
    word = evidence.word()
    names = []
    leaves_of_trees = []
    specs = []
    for leaves, trees in TREES.items():
        for name, spec in trees.items():
            names.append(name)
            leaves_of_trees.append(leaves)
            specs.append(spec)
    measured, predictions = compare_trees(evidence, specs, WAVES)
    by_table = [predict_pattern(table_1, make_reduction(spec), INFINITE_WAVES) for spec in specs]
    return Figure(
        name="Equation 2",
        title="the time between two waves of a stream",
        caption=(
            f"Of {WAVES} waves that follow each other without waiting. The paper has the "
            "equation and measured no stream."
        ),
        reason=(
            "equation 2 adds the latency to every period, while a node handles messages of the "
            "next wave during it, as in "
            f"LogP{'' if evidence.is_simulated else ', and here packets are sent in batches'}."
        ),
        numbers=(
            tabulate(
                "Between two waves",
                {"tree": names, "leaves": leaves_of_trees},
                {word: measured, TAN: predictions[TAN], "LogP": predictions["LogP"]},
                "by equation 2 with the values of table I",
                by_table,
            ),
        ),
        measured=(evidence.platform,),
    )


def make_figures(evidence: PaperEvidence) -> tuple[Figure, ...]:
    table_1 = read_published("tan/cab-mrnet")
    gathered = evidence.is_simulated or len(evidence.points(operation="gather"))
    return (
        *((compare_n_to_1(evidence),) if gathered else ()),  # an overlay network has no gather
        compare_latencies(evidence),
        compare_chain(evidence, table_1),
        compare_fan_in(evidence, table_1),
        tabulate_parameters(evidence, table_1),
        *(validate_trees(evidence, leaves, table_1) for leaves in TREES),
        compare_streams(evidence, table_1),
    )


PAPER = Paper(
    name="tan",
    citation="LogP for tree aggregation networks (TAN model), evaluated with MRNet on LLNL Cab",
    figures=make_figures,
    published=("tan/cab-mrnet",),
    absent="Figures 3 and 5 are drawings of a chain and of N-to-1. No figure shows a stream of waves, which the paper "
    "did not measure; its equation 2 has a section all the same.",
)
