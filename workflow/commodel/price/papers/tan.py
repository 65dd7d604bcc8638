"""What the TAN paper measured to get at its parameters: N-to-1 at three sizes, the latency, chain, N-to-1, table I.

Eight trees, one wave and many: TAN and LogP beside what was measured, and beside what the paper's values give.

The TAN paper: reductions up trees by MRNet on 256 nodes of Cab. Figures 1 and 2, the fits of figures 4 and 6 with
table I, the validation of figures 7 and 8, and equation 2."""

from collections.abc import Iterable
from dataclasses import replace
from math import isnan, nan

import numpy as np

from commodel.models.families import tan
from commodel.models.parameter_sets import published
from commodel.parameters import Curve, ParameterSet
from commodel.patterns.algorithms import over_tree
from commodel.patterns.schedule import Schedule
from commodel.patterns.trees.topologies import tree
from commodel.price.papers import NO_NUMBER, Evidence, Figure, Line, Numbers, Panel, Paper, Row, error_factor, price
from commodel.price.predictions import ENDLESS

PACKET = 1024  # bytes
SIZES = {1024: "1 KiB", 12 << 10: "12 KiB", 128 << 10: "128 KiB"}  # of figure 1; there 1, 12 and 131 KB
PRINTED_LATENCY = {"min": 59e-6, "mean": 98e-6, "max": 672e-6}
PRINTED_R2 = {"chain": 0.89, "N-to-1": 0.90}
HEIGHTS, LEAVES = np.array([1, 2, 4, 8, 16, 32]), np.array([1, 2, 4, 8, 16, 32, 64, 128])
TIME = "time [s]"


def reduction(spec: str) -> Schedule:
    """A wave of packets up a tree."""
    return over_tree("reduce").build(tree(spec), PACKET)


def n_to_1(evidence: Evidence) -> Figure:
    word = evidence.word(evidence.platform)
    times, growth, lines = [], [], []
    for place, (size, name) in enumerate(SIZES.items()):
        points = evidence.points(operation="gather", algorithm="linear", bytes=size)
        senders, seconds = (points["ranks"] - 1).tolist(), points["measured"].tolist()
        times += [Row((name, n), nan, (time,)) for n, time in zip(senders, seconds, strict=True)]
        growth.append(Row((name, max(senders, default=0)), nan, (seconds[-1] / seconds[0] if senders else nan,)))
        lines += [Line(name, senders, seconds, "both", place)] if senders else []
    about, here = ("packet", "senders"), (word,)
    table = Numbers("N-to-1", about, here, NO_NUMBER, tuple(times))
    return Figure(
        "Figure 1",
        "N-to-1 with three sizes of packet",
        "The time until a node has a packet from each of N others; the paper's have 1, 12 and 131 KB. It says in words "
        "that few senders cost next to nothing, and that with many of them handling comes to dominate.",
        "no number of the figure is in the text, and a simulated receiver takes one message after the other, so that "
        "its time grows in line with N from the first on.",
        (
            Numbers("Times as long as with one sender", about, here, NO_NUMBER, tuple(growth), ""),
            *((table,) if times else ()),
        ),
        (Panel("N-to-1", "senders", TIME, tuple(lines)),) if lines else (),
        (evidence.platform,),
    )


def latencies(evidence: Evidence) -> Figure:
    """Half of the round trips of one packet, on every platform: a simulated one has no spread to show."""
    columns = tuple(f"{evidence.word(platform)} on {platform}" for platform in evidence.simulated)
    halves = [
        {
            statistic: case[statistic] / 2
            for case in evidence.cases("pingpong", platform, bytes=PACKET)
            for statistic in PRINTED_LATENCY
        }
        for platform in evidence.simulated
    ]
    rows = tuple(
        Row((statistic,), printed, tuple(half.get(statistic, nan) for half in halves))
        for statistic, printed in PRINTED_LATENCY.items()
    )
    return Figure(
        "Figure 2",
        "the latency",
        "Half of the round trips of a packet of 1 KiB, in the paper 500 by TCP over InfiniBand, with two modes and a "
        "standard deviation of 30 µs. A block of the matrix on another platform adds that platform's column here, and "
        "its histogram to the sheet Latency.",
        "the simulated platform was given the paper's mean, and a simulated round trip is always the same."
        if evidence.simulated[evidence.platform]
        else "the network is another one, and both ends may be on one machine.",
        (Numbers("Latency", ("half a round trip",), columns, "printed in section IV A", rows),),
        measured=(evidence.platform,),
    )


def chain(evidence: Evidence, table_1: ParameterSet) -> Figure:
    word = evidence.word(evidence.platform)
    whole, overhead = drawn(evidence, tan.CHAIN), drawn(evidence, tan.PAPERS_CHAIN)
    L, level = table_1.values["L"].value, table_1.values["o.a"].value
    by_line, smooth = (L + 2 * level) * HEIGHTS, np.array([1, 32])
    equation_1 = [price(table_1, reduction(f"chain:{height}")) for height in HEIGHTS]
    waves = tuple(
        Row(row.about, row.paper, (*row.here, cost))
        for row, cost in zip(beside(whole, HEIGHTS, by_line), equation_1, strict=True)
    )
    return Figure(
        "Figure 4",
        "a wave up a chain",
        "What it takes beyond a latency for every hop, halved, for a level sends and receives, is the overhead of a "
        "level: 49.3 µs in the paper, R² 0.89. So the wave itself takes h·(L + 2·49.3 µs) by its line; equation 1 has "
        "one overhead a level, and with the values that came from this chain prices it a quarter lower.",
        "MRNet's processes lie above the TCP that the latency was measured on and take time of their own, while here "
        "chain and ping-pong are messages of one MPI, and nothing is left beyond the latency."
        if evidence.simulated[evidence.platform]
        else "the processes of this overlay network take less time than MRNet's, and what is left beyond the latency "
        "is theirs; where the network holds messages up, the ping-pong has more of that than a level of a chain.",
        (
            Numbers(
                "A wave",
                ("height",),
                (word, "fitted", "equation 1, the paper's values"),
                "by the fit of section IV B 1, with the latencies put on again",
                waves,
            ),
            Numbers(
                "Overhead",
                ("height",),
                (word, "fitted"),
                "by the fit of section IV B 1",
                beside(overhead, HEIGHTS, level * HEIGHTS),
            ),
        ),
        (
            Panel(
                "chain",
                "height",
                TIME,
                (
                    *lines(whole, word, smooth, (L + 2 * level) * smooth),
                    Line("equation 1, the paper's values", HEIGHTS, equation_1, "dashed", 1),
                ),
                "",
            ),
        ),
        (evidence.platform,),
    )


def fan_in(evidence: Evidence, table_1: ParameterSet) -> Figure:
    word, curve = evidence.word(evidence.platform), drawn(evidence, tan.PAPERS_FAN)
    b, c = (table_1.values[name].value for name in ("o.b", "o.c"))
    smooth = np.arange(1, 129)
    best = f"; here {curve.form.partition(' through')[0].removeprefix('a + ')} is" if curve else ""
    return Figure(
        "Figure 6",
        "the overhead of N-to-1",
        "Half of the round trip of a wave to N leaves and back, less a latency and the overhead of a level, fitted "
        f"through the origin: in the paper b·x + c·x² is best, R² 0.90{best}.",
        f"every further child costs the {'simulated ' if evidence.simulated[evidence.platform] else ''}root about the "
        "same, and the paper's 1 µs at first and 41 µs at 128.",
        (
            Numbers(
                "Overhead",
                ("leaves",),
                (word, "fitted"),
                "by the fit of section IV B 2",
                beside(curve, LEAVES, b * LEAVES + c * LEAVES**2),
            ),
        ),
        (Panel("N-to-1", "leaves", TIME, lines(curve, word, smooth, b * smooth + c * smooth**2), ""),),
        (evidence.platform,),
    )


def drawn(evidence: Evidence, title: str) -> Curve | None:
    """What the fit of that title saw, and found."""
    fitted = evidence.fitted("tan")
    return next((curve for curve in fitted.curves if curve.title == title), None) if fitted else None


def lines(curve: Curve | None, word: str, x: np.ndarray, printed: np.ndarray) -> tuple[Line, ...]:
    paper = Line("paper's fit", x, printed, "dashed", -1)
    if curve is None:
        return (paper,)
    return paper, Line(word, curve.x, curve.measured, "dots"), Line("fitted", curve.x, curve.fitted)


def beside(curve: Curve | None, where: np.ndarray, printed: np.ndarray) -> tuple[Row, ...]:
    seen = {x: both for x, *both in zip(curve.x, curve.measured, curve.fitted, strict=True)} if curve else {}
    return tuple(
        Row((int(x),), float(paper), tuple(seen.get(float(x), (nan, nan))))
        for x, paper in zip(where, printed, strict=True)
    )


def parameters(evidence: Evidence, table_1: ParameterSet) -> Figure:
    """By the paper's recipe and by the joint fit, and how good the recipe's two fits are."""
    fitted = evidence.fitted("tan")
    values = fitted.numbers if fitted else {}
    rows = tuple(
        Row(
            (name,),
            table_1.values[name].value,
            (values.get(name.replace("o.", "o_paper."), nan), values.get(name, nan)),
        )
        for name in ("L", "o.a", "o.b", "o.c")
    )
    curves = {"chain": drawn(evidence, tan.PAPERS_CHAIN), "N-to-1": drawn(evidence, tan.PAPERS_FAN)}
    alone = "with no layer between tree and network, " if evidence.simulated[evidence.platform] else ""
    quality = tuple(Row((name,), PRINTED_R2[name], (curve.r2 if curve else nan,)) for name, curve in curves.items())
    return Figure(
        "Table I",
        "the parameters of TAN",
        "Of o(x) = o.a + o.b·x + o.c·x²; g and C are left at 0 there. The recipe takes each from an experiment of its "
        "own; the joint fit takes chain and N-to-1 together, in the form that suits them best.",
        f"the machine is another one, {alone}and the recipe forces the curve of N-to-1 through the origin, so that it "
        "makes a parabola of times in line with N.",
        (
            Numbers("Values", ("parameter",), ("paper's recipe", "joint fit"), "printed in table I", rows),
            Numbers("R² of the recipe's fits", ("experiment",), ("fitted",), "printed in section IV B", quality, ""),
        ),
        measured=(evidence.platform,),
    )


TREES = {
    32: {"two levels": "groups:6,6,5,5,5,5", "binomial": "binomial:6", "binary": "kary:2^5", "all to one": "flat:32"},
    128: {"two levels": "groups:12x7,11x4", "binomial": "binomial:8", "binary": "kary:2^7", "all to one": "flat:128"},
}
FIGURES = {32: "Figure 7", 128: "Figure 8"}
TAN, DRAWN = "TAN", "LogP as drawn"
FAMILIES = {"tan": TAN, "logp-tan": DRAWN, "logp": "LogP"}
WAVES = 20  # of a stream


def a_level(table_1: ParameterSet) -> ParameterSet:
    """LogP as the paper drew it: of o only what the chain told."""
    values = {"L": table_1.values["L"], "o": table_1.values["o.a"], "C": table_1.values["C"]}
    return replace(table_1, family="logp-tan", values=values, forms={})


def by_recipe(fitted: ParameterSet | None, specs: Iterable[str]) -> list[float]:
    if fitted is None or "o_paper.a" not in fitted.values:
        return [nan for _ in specs]
    return [price(fitted, reduction(spec), recipe="paper") for spec in specs]


def mean(values: list[float]) -> float:
    """Of those that there are."""
    known = [value for value in values if not isnan(value)]
    return sum(known) / len(known) if known else nan


def table(rows: Iterable[tuple]) -> tuple[Row, ...]:
    """Of a name, the paper's number, and ours."""
    return tuple(Row((name,), paper, tuple(here)) for name, paper, *here in rows)


def compared(evidence: Evidence, specs: Iterable[str], waves: int) -> tuple[list[float], dict[str, list[float]]]:
    """What was measured of each tree, and every family's prices."""

    def first(column: Iterable[float]) -> float:
        return next(map(float, column), nan)

    about = [{"topology": spec, "waves": waves} for spec in specs]
    measured = [first(evidence.points(**where)["measured"]) for where in about]
    prices = {
        title: [first(evidence.priced(name, **where)["predicted"]) for where in about]
        for name, title in FAMILIES.items()
    }
    return measured, prices


def crowded(evidence: Evidence) -> tuple[int, int] | None:
    """The most processes that shared the processors of a host, and these; None where each had one."""
    if not {"processes", "processors"} <= set(evidence.comparison):
        return None
    rows = evidence.comparison[evidence.comparison["processes"] > evidence.comparison["processors"]]
    return (int(rows["processes"].max()), int(rows["processors"].min())) if len(rows) else None


def why(evidence: Evidence) -> str:
    """Whoever is nearer: what keeps each model from what was measured there."""
    if evidence.simulated[evidence.platform]:
        return (
            "TAN lets a node begin when its last child has sent, and a simulated node has handled the early ones by "
            "then, so that TAN is too dear where children come one after the other, up a binomial tree, and exact "
            "where all come at once."
        )
    if room := crowded(evidence):
        return (
            f"up to {room[0]} processes take turns on {room[1]} processors here, while every model lets sub-trees go "
            "on at the same time, so that all are too low on trees of several levels, LogP as drawn the most, and "
            "only all to one, which is what N-to-1 was fitted to, costs what TAN and LogP say."
        )
    return (
        "TAN counts all children of a node after the last has sent, and is too dear up a binomial tree, where they "
        "come one after the other; LogP lets only those wait that meet, and is too cheap there; LogP as drawn knows no "
        "children at all, and is too cheap wherever there are several."
    )


def validation(evidence: Evidence, leaves: int, table_1: ParameterSet) -> Figure:
    trees, word = TREES[leaves], evidence.word(evidence.platform)
    measured, prices = compared(evidence, trees.values(), 1)
    prices["TAN, paper's recipe"] = by_recipe(evidence.fitted("tan"), trees.values())
    by_table, by_levels = (
        [price(values, reduction(spec)) for spec in trees.values()] for values in (table_1, a_level(table_1))
    )
    errors = {
        title: [error_factor(*pair) for pair in zip(costs, measured, strict=True)] for title, costs in prices.items()
    }
    none, titles = [nan] * len(trees), ("tree",)
    nearer = [tan <= logp for tan, logp in zip(errors[TAN], errors[DRAWN], strict=True) if not isnan(tan + logp)]
    numbers = (
        Numbers(
            "A wave",
            titles,
            (word, *prices),
            "TAN with the values of table I; the observed bars are not legible",
            table(zip(trees, by_table, measured, *prices.values(), strict=True)),
        ),
        Numbers(
            "LogP as the paper drew it",
            titles,
            (DRAWN,),
            "L + o a level, with the values of table I",
            table(zip(trees, by_levels, prices[DRAWN], strict=True)),
        ),
        Numbers(
            f"How far off what is {word}, either way (×)",
            titles,
            tuple(errors),
            NO_NUMBER,
            table([*zip(trees, none, *errors.values(), strict=True), ("their mean", nan, *map(mean, errors.values()))]),
            "",
        ),
        Numbers(
            "Trees on which TAN is nearer than LogP as drawn",
            ("of four trees",),
            ("here",),
            "said in section V A",
            (Row((f"{leaves} leaves",), len(trees), (sum(nearer) if nearer else nan,)),),
            "",
        ),
    )
    places = range(1, len(trees) + 1)
    lines = [
        Line("paper, TAN", places, by_table, "dashed", 1),
        Line("paper, LogP as drawn", places, by_levels, "dashed", 2),
    ]
    columns = {word: measured} | prices
    lines += [
        Line(title, places, times, "both" if title == word else "dots", colour)
        for colour, (title, times) in enumerate(columns.items())
        if not isnan(sum(times))
    ]
    title = ", ".join(f"{place} {name}" for place, name in enumerate(trees, 1))
    return Figure(
        FIGURES[leaves],
        f"a wave up four trees with {leaves} leaves",
        "LogP as the paper drew it has one overhead a level, LogP itself one for every child. The paper prints no "
        "errors, and says that TAN is nearer than LogP on every tree.",
        why(evidence),
        numbers,
        (Panel(title, "tree", TIME, tuple(lines), "y"),),
        (evidence.platform,),
    )


def stream(evidence: Evidence, table_1: ParameterSet) -> Figure:
    """Equation 2: the node with the most children sets the pace, whatever the height."""
    word = evidence.word(evidence.platform)
    rows = []
    for leaves, trees in TREES.items():
        measured, prices = compared(evidence, trees.values(), WAVES)
        by_table = [price(table_1, reduction(spec), ENDLESS) for spec in trees.values()]
        columns = zip(trees, by_table, measured, prices[TAN], prices["LogP"], strict=True)
        rows += [Row((name, leaves), paper, tuple(here)) for name, paper, *here in columns]
    return Figure(
        "Equation 2",
        "the time between two waves of a stream",
        f"Of {WAVES} waves that follow each other without waiting. The paper has the equation and measured no stream.",
        "equation 2 adds the latency to every period, while a node handles messages of the next wave during it, as "
        f"LogP has it{'' if evidence.simulated[evidence.platform] else ', and here packets travel together'}.",
        (
            Numbers(
                "Between two waves",
                ("tree", "leaves"),
                (word, TAN, "LogP"),
                "by equation 2 with the values of table I",
                tuple(rows),
            ),
        ),
        measured=(evidence.platform,),
    )


def figures(evidence: Evidence) -> tuple[Figure, ...]:
    table_1 = published("tan/cab-mrnet")
    gathered = evidence.simulated[evidence.platform] or len(evidence.points(operation="gather"))
    return (
        *((n_to_1(evidence),) if gathered else ()),  # an overlay network has no gather
        latencies(evidence),
        chain(evidence, table_1),
        fan_in(evidence, table_1),
        parameters(evidence, table_1),
        *(validation(evidence, leaves, table_1) for leaves in TREES),
        stream(evidence, table_1),
    )


PAPER = Paper(
    name="tan",
    citation="LogP for tree aggregation networks (TAN model), evaluated with MRNet on LLNL Cab",
    figures=figures,
    published=("tan/cab-mrnet",),
    absent="Figures 3 and 5 are drawings of a chain and of N-to-1. No figure shows a stream of waves, which the paper "
    "did not measure; its equation 2 has a section all the same.",
)
