"""Figures 4 and 5: gathers whose senders keep to a window, and gathers whose senders overflow the network's buffer."""

from collections.abc import Mapping, Sequence
from math import isfinite, nan

import numpy as np

from commodel.models.families.cluster import through
from commodel.models.pricing.window import fits, transfer_ratio, window
from commodel.parameters import ParameterSet
from commodel.patterns.build import schedule
from commodel.price.papers import Evidence, Figure, Line, Numbers, Panel, Row, prices
from commodel.price.papers.cluster.machine import JOB, RANKS, SIZE, TABLE_1, TIME, Machine
from commodel.records import Point
from commodel.units import format_bytes

GATHERED = tuple(4**power << 10 for power in range(6))  # B of each sender: 1 KiB to 1 MiB
Table = dict[str, list[float]]


def gathers(evidence: Evidence, printed: ParameterSet, fitted: ParameterSet | None, ranks: int) -> Table:
    """Seconds at each size: by equation 8, of the simple gather, of the coordinated one. Where no buffer was found, its
    window is by table 1."""
    paper = Machine(printed)
    here = Machine(fitted) if fitted and "B_L" in fitted.values else paper

    def choices(knows: Machine) -> list[str]:
        return [knows.coordinated(ranks, size) for size in GATHERED]

    def priced(values: ParameterSet | None, choices: Sequence[str]) -> list[float]:
        return prices(values, "gather", choices, ranks, GATHERED)

    def measured(choices: Sequence[str]) -> list[float]:
        times = {name: evidence.times(GATHERED, operation="gather", choice=name, ranks=ranks) for name in choices}
        return [times[choice][place] for place, choice in enumerate(choices)]

    simple = ["linear"] * len(GATHERED)
    return {
        "optimal": [paper.equation_8(ranks, size) for size in GATHERED],
        "simple, priced": priced(printed, simple),
        "simple, as fitted": priced(fitted, simple),
        "priced": priced(printed, choices(paper)),
        "priced as fitted": priced(fitted, choices(here)),
        "simple, measured": measured(simple),
        "measured": measured(choices(here)),
    }


def rows(tables: Mapping[int, Table], *names: str) -> tuple[Row, ...]:
    """Of all ranks and sizes: the optimum, and what is beside it."""
    return tuple(
        Row((ranks, size), table["optimal"][place], tuple(table[name][place] for name in names))
        for ranks, table in tables.items()
        for place, size in enumerate(GATHERED)
    )


def figures_4_and_5(evidence: Evidence, printed: ParameterSet, fitted: ParameterSet | None) -> tuple[Figure, Figure]:
    tables = {ranks: gathers(evidence, printed, fitted, ranks) for ranks in RANKS}
    return gather(evidence, printed, fitted, tables), two_gathers(evidence, printed, tables)


def gather(
    evidence: Evidence, printed: ParameterSet, fitted: ParameterSet | None, tables: Mapping[int, Table]
) -> Figure:
    paper, word = Machine(printed), evidence.word(evidence.platform)
    windows, lines = [], []
    for colour, (ranks, table) in enumerate(tables.items()):
        lines += [
            Line(f"p = {ranks}, {word}", GATHERED, table["measured"], "dots", colour),
            Line(f"p = {ranks}, priced", GATHERED, table["priced"], "line", colour),
            Line(f"p = {ranks}, equation 8", GATHERED, table["optimal"], "dashed", colour),
        ]
        for size in GATHERED:
            senders, packets_each, *gaps, buffer = paper.bottleneck(ranks, size)
            packets = senders * packets_each
            letter = senders if buffer > packets else max(fits(senders, packets, *gaps, buffer), default=nan)
            windows.append(Row((ranks, size), letter, (window(senders, packets_each, *gaps, buffer)[0],)))
    times = rows(tables, "priced", "measured", "priced as fitted")
    rule = f"by algorithm 1 and equation 7 {TABLE_1}; blank where no window fulfils it to the letter"
    return Figure(
        "Figure 4",
        "the gather that keeps its senders to a window: measured and predicted",
        "Each of p − 1 senders has as many bytes for the root: all at once where the network's buffer holds them, else "
        "as many senders as equation 7 allows. Dashed is equation 8: how long the root's port takes for all packets.",
        "a price has the tokens that senders pass on, and lets a packet's way and the stream overlap, which equation 8 "
        "adds up; to the letter equation 7 wants senders left over at the end, which we take for a slip.",
        (
            Numbers("Times", JOB, ("priced", word, "priced as fitted"), f"by equation 8 {TABLE_1}", times),
            accuracy(times, fitted, word),
            Numbers("The window", JOB, ("window",), rule, tuple(windows), "senders"),
        ),
        (Panel("p = 4, 8 and 16", SIZE, TIME, tuple(lines)),),
        (evidence.platform,),
    )


def accuracy(times: Sequence[Row], fitted: ParameterSet | None, word: str) -> Numbers:
    """Of equation 8 with what was fitted, as the paper predicts, and of prices with it, over what was measured."""
    here = Machine(fitted) if fitted else None
    errors = {}
    for row in times:
        _, measured, priced = row.here
        predicted = (here.equation_8(*row.about) if here else nan, priced)
        errors[row.about] = [100 * abs(seconds / measured - 1) if measured > 0 else nan for seconds in predicted]
    errors = {job: both for job, both in errors.items() if all(map(isfinite, both))}
    worst = max(errors, key=errors.__getitem__, default=None)
    place = f"; here at {worst[0]} ranks and {format_bytes(worst[1])}" if worst else ""
    table = np.array(list(errors.values())) if errors else np.full((1, 2), nan)
    entries = (
        Row(("average",), 8, tuple(table.mean(axis=0).tolist())),
        Row(("largest",), 35, tuple(table.max(axis=0).tolist())),
    )
    source = f"printed in section 5.5, the largest at 4 ranks and 1 KB{place}"
    title, here = f"Error of the prediction over what was {word}", ("equation 8 as fitted", "priced as fitted")
    return Numbers(title, ("of all jobs",), here, source, entries, "%")


def two_gathers(evidence: Evidence, printed: ParameterSet, tables: Mapping[int, Table]) -> Figure:
    paper, word = Machine(printed), evidence.word(evidence.platform)
    shares, panels = [], []
    for ranks, table in tables.items():
        lines = (
            Line("optimal, equation 8", GATHERED, table["optimal"], "dashed", -1),
            Line("simple, priced", GATHERED, table["simple, priced"], "line", 1),
            Line(f"simple, {word}", GATHERED, table["simple, measured"], "dots", 1),
            Line("coordinated, priced", GATHERED, table["priced"], "line", 0),
            Line(f"coordinated, {word}", GATHERED, table["measured"], "dots", 0),
        )
        panels.append(Panel(f"p = {ranks}", SIZE, TIME, lines))
        for size in GATHERED:
            senders, packets_each, *rest = paper.bottleneck(ranks, size)
            pattern = schedule(Point("", "gather", "linear", "", "block:1", ranks, size))
            through_here = 100 * float(np.ravel(through(pattern, paper.values))[0])
            shares.append(
                Row((ranks, size), 100 * transfer_ratio(senders, senders * packets_each, *rest), (through_here,))
            )
    here = (
        "simple, priced",
        f"simple, {word}",
        "simple, priced as fitted",
        "coordinated, priced",
        f"coordinated, {word}",
    )
    times = rows(tables, "simple, priced", "simple, measured", "simple, as fitted", "priced", "measured")
    return Figure(
        "Figure 5",
        "two gathers beside the optimum: all at once, and kept to a window",
        "Simple: all senders at once, which overflow the network's buffer where they have more than it holds; priced, "
        "what is lost is sent again a time-out later, 0.2 s here, for which the paper has no number. Coordinated: the "
        "gather of figure 4. Optimal: equation 8.",
        "what a loss costs depends on the protocol above, of which the paper says only that it delays; no simulated "
        "packet is ever lost, so that there the simple gather is as good, unlike over TCP (`make lab-paper`).",
        (
            Numbers("Times over the optimum", JOB, here, f"by equation 8 {TABLE_1}", times),
            Numbers(
                "What gets through where all send at once",
                JOB,
                ("priced",),
                f"by equation 4 {TABLE_1}",
                tuple(shares),
                "%",
            ),
        ),
        tuple(panels),
        (evidence.platform,),
    )
