"""The MRNet paper: a multicast and reduction network with up to 512 back-ends on Blue Pacific.

Figure 5 has micro-benchmarks (start-up, round trip, throughput) of flat, 4-way and 8-way trees,
figure 4 two trees with 16 back-ends under LogP. Of figure 6, the start-up of a tool, the network's
part is rebuilt: its ten activities that communicate, as filters and streams, and of these clock
skews and equivalence classes in detail.
"""

from collections.abc import Callable
from functools import partial
from math import nan

import numpy as np

from commodel.patterns.algorithms import find_tree_algorithm
from commodel.patterns.trees.tree import Tree
from commodel.predictions.papers import (
    Figure,
    Line,
    Numbers,
    Panel,
    Paper,
    PaperEvidence,
    make_exact_set,
    predict_pattern,
    tabulate,
)
from commodel.predictions.predictions import INFINITE_WAVES

TREES = {
    "flat": {leaves: f"flat:{leaves}" for leaves in (4, 8, 16, 64, 256, 512)},
    "4-way": {4**height: f"kary:4^{height}" for height in range(1, 5)},
    "8-way": {8**height: f"kary:8^{height}" for height in range(1, 4)},
}
BACK_ENDS = "back-ends"
DRAWN = "the text prints no number of figure 5, which is drawn only; "


def describe_hosts(evidence: PaperEvidence) -> str:
    """Return how processes share processors, for the end of a sentence."""
    shared = evidence.find_oversubscription()
    if not shared:
        return "and it had a host for each process."
    return (
        f"and it had a node for each process, while here up to {shared[0]} take turns on {shared[1]} "
        "processors, so that a tree only reduces the work of its root."
    )


def make_panel(title: str, axis: str, compute: Callable[[str], float]) -> tuple[Numbers, Panel]:
    """Return a panel of a quantity that is computed from each tree's topology, with a line for each
    kind."""
    leaf_counts = sorted(set().union(*TREES.values()))
    columns = {}
    lines = []
    for colour, (kind, trees) in enumerate(TREES.items()):
        values = {leaves: compute(spec) for leaves, spec in trees.items()}
        columns[kind] = [values.get(leaves, nan) for leaves in leaf_counts]
        lines.append(Line(kind, tuple(values), tuple(values.values()), "both", colour))
    unit = "s" if axis.endswith("[s]") else ""
    numbers = tabulate(title, {BACK_ENDS: leaf_counts}, columns, unit=unit)
    return numbers, Panel(title=title, x=BACK_ENDS, y=axis, lines=tuple(lines))


def make_microbenchmarks(evidence: PaperEvidence) -> tuple[Figure, ...]:
    reduction = {"operation": "reduce", "waves": 1}  # a point of it measures half of a round trip

    def rate(spec: str) -> float:
        points = evidence.points(topology=spec, operation="reduce")
        return next(
            (1 / time for time in points.loc[points["waves"] > 1, "measured"] if time > 0), nan
        )

    def figure(name: str, title: str, caption: str, *panels: tuple[Numbers, Panel]) -> Figure:
        numbers, drawn = zip(*panels, strict=True)
        machine = "its machine had 280 nodes of four 332 MHz processors, started processes by rsh, "
        reason = f"{DRAWN}{machine}{describe_hosts(evidence)}"
        return Figure(
            name=name,
            title=title,
            caption=caption,
            reason=reason,
            numbers=numbers,
            panels=drawn,
            measured=(evidence.platform,),
        )

    startup = make_panel(
        "Start-up",
        "time [s]",
        lambda spec: evidence.median(topology=spec, operation="overlay-startup"),
    )
    trips = make_panel(
        "Round trip", "time [s]", lambda spec: 2 * evidence.median(topology=spec, **reduction)
    )

    def predict_trip(model: str, spec: str) -> float:
        return 2 * evidence.prediction(model, topology=spec, **reduction)

    predictions = [
        make_panel(
            f"Round trip by {name}, fitted here",
            "time [s]",
            partial(predict_trip, family),
        )
        for family, name in (("tan", "TAN"), ("logp", "LogP"))
    ]
    rates = make_panel("Reductions per second", "reductions per second", rate)
    return (
        figure(
            "Figure 5a",
            "start-up of the network",
            "From the call until every back-end has attached. The paper states that a flat tree's time grows quickly, "
            "since processes are created one after the other, and that of 4-way and 8-way trees slowly, since "
            "sub-trees start concurrently.",
            startup,
        ),
        figure(
            "Figure 5b",
            "a broadcast and a reduction",
            "The round trip of a packet (the paper gives no size) down to all back-ends and of their sum up "
            "again. The paper states that it grows rapidly over a flat tree, whose messages are sent one after the "
            "other, and slowly over the others.",
            trips,
            *predictions,
        ),
        figure(
            "Figure 5c",
            "reductions in a row",
            "Reductions per second, of 50 that follow each other. The paper states that moderate fan-outs keep the "
            "throughput high with more back-ends.",
            rates,
        ),
    )


# the paper has no values; with any g above o the terms can be distinguished
g = 10e-6
o = 4e-6
L = 20e-6
BALANCED = Tree(np.array([-1, *[0] * 4, *(1 + leaf // 4 for leaf in range(16))]))
# A binomial tree of four nodes, 0 to 3, and four back-ends at each: the root has six children.
UNBALANCED = Tree(np.array([-1, 0, 0, 1, *(leaf // 4 for leaf in range(16))]))


def compare_topologies() -> Figure:
    logp = make_exact_set("logp", {"L": L, "o": o, "g": g})
    trees = {
        "balanced": (BALANCED, 8 * g + 4 * o + 2 * L, 4 * g),
        "unbalanced": (UNBALANCED, nan, 6 * g),
    }
    casts = {
        name: find_tree_algorithm("bcast").build(tree, 1) for name, (tree, _, _) in trees.items()
    }
    single = [predict_pattern(logp, cast, 1) for cast in casts.values()]
    stream = [predict_pattern(logp, cast, INFINITE_WAVES) for cast in casts.values()]
    _, printed, least = zip(*trees.values(), strict=True)
    values = f"with g = {g * 1e6:g}, o = {o * 1e6:g} and L = {L * 1e6:g} µs"
    return Figure(
        name="Figure 4",
        title="balanced or not, by LogP",
        caption=(
            "A broadcast to 16 back-ends over a tree with four children per node, and over a "
            "binomial tree of four nodes with four back-ends each. The paper has formulas and "
            "no values."
        ),
        reason=(
            "the paper also counts a gap after the last child of each level, 8·g; in LogP the "
            "send to the last child starts after three gaps: 6·g."
        ),
        numbers=(
            tabulate(
                "One broadcast",
                {"tree": trees},
                {"predicted": single},
                f"8·g + 4·o + 2·L, {values}",
                printed,
            ),
            tabulate(
                "Between two broadcasts",
                {"tree": trees},
                {"predicted": stream},
                f"4·g and at least 6·g, {values}",
                least,
            ),
        ),
    )


SHIFT = 10e-3  # seconds that every back-end's clock is set ahead or behind
METHODS = {"along the tree": ("tree", 10.5), "direct": ("direct", 17.5)}
DEVIATIONS = {"along the tree": 80.4, "direct": 78.9}  # % as well
SKEW_TREE = "kary:4^3"
PRINTED_SPEEDUP = 3.4  # times, all of start-up with 512 daemons


CODE_BYTES = 16 << 10  # of each back-end's code resources
# Activities, operation, bytes of each back-end, and a factor of its time: 2 for half of a round
# trip. The paper prints no sizes.
ACTIVITIES = (
    ("Report Self", "reduce:filter=concat", 64, 2),
    ("Report Metrics", "overlay-classes", 4 << 10, 1),
    ("Find Clock Skew", "overlay-skew", None, 1),
    ("Report Process", "reduce:filter=concat", 256, 2),
    ("Report Machine Resources", "reduce:filter=concat", 1 << 10, 2),
    ("Report Code Eq Classes, Report Code Resources", "overlay-classes", CODE_BYTES, 1),
    ("Report Callgraph Eq Classes, Report Callgraph", "overlay-classes", 64 << 10, 1),
    ("Report Done", "reduce:filter=max", 8, 2),
)
PAIRS = {64: ("flat:64", "kary:8^2"), 512: ("flat:512", "kary:8^3")}


def compare_activities(evidence: PaperEvidence) -> Figure:
    rows, gains = [], []
    for leaves, pair in PAIRS.items():
        sums = np.zeros(2)
        for name, operation, size, factor in ACTIVITIES:
            times = [
                factor * evidence.median(operation=operation, topology=topology, bytes=size)
                for topology in pair
            ]
            rows.append((name, leaves, *times, times[0] / times[1]))
            sums += np.nan_to_num(times) * (not np.isnan(times).any())
        gains.append(float(sums[0] / sums[1]) if sums[1] else nan)
    names, leaves_of_rows, flat, tree, ratios = zip(*rows, strict=True)
    subjects = {"activity": names, BACK_ENDS: leaves_of_rows}
    return Figure(
        name="Figure 6b",
        title="activities of a tool's start-up",
        caption=(
            "The ten activities that communicate, as filters and streams: reports are "
            "concatenated, equal data come from one back-end of each class, clock skews are "
            "measured along the tree. Parsing of the executable is local work, and omitted."
        ),
        reason=(
            "the paper's times contain the tool's own work on 512 nodes, and it prints no "
            "sizes: those here are 8 B to 64 KiB for each back-end, of four kinds in classes."
        ),
        numbers=(
            tabulate(
                "Time until the front-end has the data", subjects, {"flat": flat, "8-way": tree}
            ),
            tabulate("Times faster over an 8-way tree", subjects, {"gain": ratios}, unit=""),
            tabulate(
                "Times faster, all measured activities together",
                {BACK_ENDS: list(PAIRS)},
                {"gain": gains},
                "stated in section 4.2",
                [nan, PRINTED_SPEEDUP],
                "",
            ),
        ),
        measured=(evidence.platform,),
    )


def compare_skews(evidence: PaperEvidence) -> Figure:
    word = evidence.word()
    # `tree` is the default, which is omitted from the operation's name
    errors = []
    times = []
    for mode, _ in METHODS.values():
        name = "overlay-skew" if mode == "tree" else f"overlay-skew:mode={mode}"
        error_name = f"overlay-skew:mode={mode}-error"
        errors.append(evidence.median(operation=error_name, topology=SKEW_TREE))
        times.append(evidence.median(operation=name, topology=SKEW_TREE))
    return Figure(
        name="Clock skew",
        title="skews of 64 clocks, over a 4-way tree",
        caption=(
            "Mean error of the measured skews, in percent of the true ones: here every "
            "back-end's clock is set 10 ms ahead or behind; in the paper they are those of the "
            "machine, from the switch's clock. Here both methods send 100 requests, and only "
            "the means are recorded."
        ),
        reason=(
            "a percentage depends on the size of the skews, which the paper does not state; "
            "here the fastest of 100 round trips is used, in the paper the one with the "
            "smallest skew; and all processes here are on one machine."
        ),
        numbers=(
            tabulate(
                "Error",
                {"method": METHODS},
                {word: [100 * error / SHIFT for error in errors]},
                "printed in section 4.2",
                [printed for _, printed in METHODS.values()],
                "%",
            ),
            tabulate(
                "Standard deviation of the errors",
                {"method": DEVIATIONS},
                {word: [nan] * len(DEVIATIONS)},
                "printed in section 4.2",
                DEVIATIONS.values(),
                "%",
            ),
            tabulate(
                "Mean error, and time of 100 rounds",
                {"method": METHODS},
                {f"error, {word}": errors, f"time, {word}": times},
            ),
        ),
        measured=(evidence.platform,),
    )


def compare_classes(evidence: PaperEvidence) -> Figure:
    word = evidence.word()
    rows, gains = [], []
    operations = {"all": "overlay-classes:mode=all", "binned": "overlay-classes"}
    for leaves, pair in PAIRS.items():
        times_by_method = {}
        for method, operation in operations.items():
            for tree, topology in zip(("flat", "8-way"), pair, strict=True):
                time = evidence.median(operation=operation, topology=topology, bytes=CODE_BYTES)
                times_by_method[f"{method}, {tree}"] = time
        rows += [(method, leaves, time) for method, time in times_by_method.items()]
        gains.append(times_by_method["binned, flat"] / times_by_method["binned, 8-way"])
    methods, leaves_of_rows, times = zip(*rows, strict=True)
    return Figure(
        name="Equivalence classes",
        title="equal data of many back-ends",
        caption=(
            "Every back-end has 16 KiB, of four kinds. Either all send their data, or all send "
            "a checksum, a filter sorts these into classes on their way up, and one back-end of "
            "each class sends its data. The paper's Paradyn did the latter also without MRNet, "
            "and sorted in its front-end: that is binned and flat."
        ),
        reason=(
            "the paper's number is of all of Paradyn's start-up with 512 daemons on as many "
            "nodes, most of it the tool's own work, and here every back-end's checksum is "
            "computed by the same few processors."
        ),
        numbers=(
            tabulate(
                "Until the front-end has the data of every class",
                {"way": methods, BACK_ENDS: leaves_of_rows},
                {word: times},
            ),
            tabulate(
                "Times faster over an 8-way tree than without one",
                {BACK_ENDS: list(PAIRS)},
                {"binned": gains},
                "stated in section 4.2 for all activities together",
                [nan, PRINTED_SPEEDUP],
                "",
            ),
        ),
        measured=(evidence.platform,),
    )


def make_figures(evidence: PaperEvidence) -> tuple[Figure, ...]:
    return (
        compare_topologies(),
        *make_microbenchmarks(evidence),
        compare_activities(evidence),
        compare_skews(evidence),
        compare_classes(evidence),
    )


PAPER = Paper(
    name="mrnet",
    citation="P. Roth, D. Arnold and B. Miller, MRNet: a software-based multicast/reduction network for scalable "
    "tools, SC 2003",
    figures=make_figures,
    absent="Figures 1 to 3 are drawings and code. Figure 6 is the start-up of Paradyn, a tool that is not included: "
    "the communication of its activities is reproduced, without the tool's own work; figure 6a is their sum. The text "
    "prints no number of figure 5; of figure 6 it prints the errors of the skews, and that starting with 512 daemons "
    "was 3.4 times faster over an 8-way tree.",
)
