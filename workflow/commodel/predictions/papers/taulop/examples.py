"""The worked examples of τ–Lop's algebra, equations 4 to 13. Every term
n‖T of theirs beside ours, then what the terms cost by fitted values, and what the same messages took."""

from collections import Counter
from collections.abc import Mapping
from math import nan
from typing import NamedTuple

import numpy as np

from commodel.models.evaluation.values import Pairs
from commodel.models.families.taulop import make_stage_terms
from commodel.parameters import ParameterSet
from commodel.patterns.build import build_schedule
from commodel.patterns.operations import FILE
from commodel.patterns.pattern_files import read_pattern
from commodel.patterns.schedule import MEMORY, NETWORK, Schedule
from commodel.predictions.model import Model
from commodel.predictions.papers import Evidence, Figure, Line, Numbers, Panel, Row, predict_pattern
from commodel.records import Point
from commodel.sources import ROOT

BLOCK, DOUBLE = 8192, 8  # B: a block is 32 × 32 doubles
SIZES = tuple(4**power for power in range(3, 11))  # of a broadcast: 64 B to 1 MiB
Sum = dict[tuple[int, int], int]  # n‖T^c(m): m by n and c, in the paper's unit


class Example(NamedTuple):
    """Messages that the paper works out: their file, where their ranks sit, the unit of its sizes, and how its equation
    reads the assumptions."""

    file: str
    layout: str
    node: tuple[int, ...]
    unit: int  # B
    settings: dict[str, str]

    @property
    def operation(self) -> str:
        return f"{FILE}params/patterns/{self.file}.csv"

    @property
    def pattern(self) -> Schedule:
        return read_pattern(self.operation, ROOT).place(self.node)

    def terms(self, steps: slice = slice(None)) -> Sum:
        """Ours, collected."""
        pattern, collected = self.pattern, Counter()
        for step in make_stage_terms(pattern, pattern.bytes, self.settings, Pairs(pattern, None))[steps]:
            for count, channel, size in zip(step.count, step.channel, step.bytes, strict=True):
                collected[int(count), int(channel)] += int(size) // self.unit
        return dict(collected)


LETTER = {"shared": "channel", "rest": "message"}
CHANNELS = Example("taulop-two-channels", "block:4", (0, 0, 0, 0, 1, 1), BLOCK, LETTER)
SUMMA = Example("taulop-summa", "block:3", (0, 0, 0, 1, 1, 1), BLOCK, LETTER | {"join": "yes"})
WAVE = Example("taulop-wave", "block:4", (0, 0, 0, 0, 1, 1, 1), DOUBLE, LETTER)
EQUATION_7 = {(2, MEMORY): 16, (2, NETWORK): 8, (1, NETWORK): 24}
EQUATION_8 = {(2, MEMORY): 116, (1, MEMORY): 18, (2, NETWORK): 104, (1, NETWORK): 54}
EQUATION_9 = {(3, NETWORK): 35, (2, NETWORK): 62, (1, NETWORK): 27}
EQUATION_10 = {(3, NETWORK): 35, (2, NETWORK): 166, (1, NETWORK): 81, (2, MEMORY): 116, (1, MEMORY): 18}
EQUATION_13 = {(3, NETWORK): 48, (2, NETWORK): 16, (1, NETWORK): 32, (3, MEMORY): 16, (2, MEMORY): 48}


def figures(evidence: Evidence) -> tuple[Figure, ...]:
    return tuple(figure(evidence, evidence.fitted("taulop")) for figure in (binomial, channels, summa, wave))


def seconds(fitted: ParameterSet | None, terms: Sum, unit: int = 1) -> float:
    """Return a sum of n‖T^c(m) by equations 1 and 3; NaN where nodes have types, of which the paper's examples have
    none."""
    values, total = Model.of_set(fitted).values if fitted else None, 0.0
    for (count, channel), size in terms.items():
        if values is None or not {f"o_{channel}", f"L_{channel}"} <= values.functions:
            return nan
        bytes = np.array([size * unit])
        transfers = (2 - channel) * values.at(f"L_{channel}", bytes, count)
        total += float(np.ravel(values.at(f"o_{channel}", bytes) + transfers)[0])
    return total


def tabulate_equations(
    title: str, equations: Mapping[str, tuple[Sum, Sum]], unit: str, source: str = "printed there"
) -> Numbers:
    """Return the terms of the paper's equations and ours."""
    rows = []
    for equation, (paper, here) in equations.items():
        for count, channel in sorted({*paper, *here}, key=lambda term: (-term[1], -term[0])):
            term = f"{f'{count} ‖ ' if count > 1 else ''}T{'⁰¹'[channel]}"
            sizes = (terms.get((count, channel), nan) for terms in (paper, here))
            rows.append(Row((equation, term), next(sizes), (next(sizes),)))
    return Numbers(title, ("equation", "term"), ("here",), source, tuple(rows), unit)


def costs(evidence: Evidence, example: Example, equation: str, paper: float) -> Numbers:
    """Return what the paper's terms cost with fitted values, what the schedule does, and what it took."""
    pattern = example.pattern

    def predicted(family: str, settings: Mapping[str, str]) -> float:
        fitted = evidence.fitted(family)
        return predict_pattern(fitted, pattern, **settings) if fitted else nan

    where = {"operation": example.operation, "layout": example.layout}
    (measured,) = evidence.times([int(pattern.bytes.max())], **where)
    here = {
        "predicted": predicted("taulop", example.settings),
        evidence.word(): measured,
        "predicted by default": predicted("taulop", {}),
        "predicted by HLogGP": predicted("hloggp", {}),
    }
    row = Row((equation,), paper, tuple(here.values()))
    return Numbers("What it costs", ("equation",), tuple(here), "by its terms with the values fitted here", (row,))


def binomial(evidence: Evidence, fitted: ParameterSet | None) -> Figure:
    word, stages, times, panels = evidence.word(), [], [], []
    for layout, where, last in (("block:16", "one node", MEMORY), ("cyclic:8", "two nodes in turn", NETWORK)):
        patterns = [build_schedule(Point("", "bcast", "binomial", "", layout, 16, size)) for size in SIZES]
        for stage, step in enumerate(make_stage_terms(patterns[0], patterns[0].bytes, {}, Pairs(patterns[0], None))):
            stages.append(Row((where, stage), 1 << stage, (int(step.count[0]),)))
        counts = {(1, MEMORY), (2, MEMORY), (4, MEMORY), (8, last)}
        paper = [seconds(fitted, dict.fromkeys(counts, size)) for size in SIZES]
        predicted, by_port = (
            [predict_pattern(fitted, pattern, shared=shared) if fitted else nan for pattern in patterns]
            for shared in ("channel", "port")
        )
        measured = evidence.times(SIZES, operation="bcast", alternative="binomial", layout=layout)
        rows = zip(SIZES, paper, zip(predicted, measured, by_port, strict=True), strict=True)
        times += [Row((where, size), equation, here) for size, equation, here in rows]
        lines = (
            Line("equation 4", SIZES, paper, "dashed", 1),
            Line("predicted", SIZES, predicted, "line", 1),
            Line("predicted, counted by port", SIZES, by_port, "line", 0),
            Line(word, SIZES, measured, "dots", 2),
        )
        panels.append(Panel(where, "message size [B]", "time [s]", lines))
    return Figure(
        "Figure 4",
        "the binomial broadcast over 16 processes, whose stages double the concurrent transfers",
        "Equation 4 for 16 processes of one node, and for two nodes that have every other process, where the last "
        "stage goes over the network: stage by stage how many transmissions share the channel, and what all of them "
        f"cost with the values fitted on {evidence.platform}.",
        "terms and predictions do not; L is from rings half of whose messages go either way, where the last stage's "
        "all go "
        "one way through a port, which counting by port allows for, and short messages overlap from stage to stage.",
        (
            Numbers(
                "Transmissions at once",
                ("processes", "stage"),
                ("here",),
                "by equation 4",
                tuple(stages),
                "transmissions",
            ),
            Numbers(
                "Times",
                ("processes", "bytes [B]"),
                ("predicted", word, "predicted, counted by port"),
                "by equation 4 with the values fitted here",
                tuple(times),
            ),
        ),
        tuple(panels),
        (evidence.platform,),
    )


def channels(evidence: Evidence, fitted: ParameterSet | None) -> Figure:
    return Figure(
        "Figure 6",
        "two processes that each send over memory first and then over the network",
        "The paper's general case of equation 5, to which it gives letters and no numbers: here m_a is 16 blocks of 8 "
        "KiB, m_c 24, m_b 32 and m_d 8. Equation 7 is what remains by A2 and A3.",
        "our steps add up, so the rest of m_c is paid, which in equation 7 goes on behind T¹(m_b); both messages over "
        "the network go one way, where L is from rings half of whose messages go either way.",
        (
            tabulate_equations(
                "Terms", {"7": (EQUATION_7, CHANNELS.terms())}, "blocks", "by equation 7 with these sizes"
            ),
            costs(evidence, CHANNELS, "7", seconds(fitted, EQUATION_7, BLOCK)),
        ),
        measured=(evidence.platform,),
    )


def summa(evidence: Evidence, fitted: ParameterSet | None) -> Figure:
    terms = {
        "8, pivot column": (EQUATION_8, SUMMA.terms(slice(0, 1))),
        "9, pivot row": (EQUATION_9, SUMMA.terms(slice(1, 2))),
        "10, both": (EQUATION_10, SUMMA.terms()),
    }
    return Figure(
        "Figure 8",
        "iteration 80 of SUMMA over six processes on two nodes",
        "What the owners of the pivot column and of the pivot row send, in blocks. Predicted: with A1 across stages "
        "and "
        "A2 to the letter, as equations 8 to 10 have them; by default what shares a memory or one way of a port "
        "counts, and the row goes on beside the column. A block is 8 KiB, as in the paper's evaluation.",
        "the terms do not; L is from rings half of whose messages go either way, where two of the pivot row's three go "
        "through the same port the same way.",
        (
            tabulate_equations("Terms", terms, "blocks"),
            costs(evidence, SUMMA, "10", seconds(fitted, EQUATION_10, BLOCK)),
        ),
        measured=(evidence.platform,),
    )


def wave(evidence: Evidence, fitted: ParameterSet | None) -> Figure:
    network = {term: size for term, size in EQUATION_13.items() if term[1] == NETWORK}
    memory = {term: size for term, size in EQUATION_13.items() if term[1] == MEMORY}
    longest = max(seconds(fitted, terms, DOUBLE) for terms in (network, memory))
    return Figure(
        "Figure 9",
        "what process 1 of the wave equation's example sends to its six neighbours",
        "Equation 13: three messages over the network and three in memory, all at once. The paper stops at the sum of "
        "messages; its terms by A2 are worked out by hand. By A3 the longer of both channels is the cost. Equation 14, "
        "all eight processes, needs sizes that stand in the drawing alone.",
        "the terms do not; A2 to the letter has an overhead for every rest of a message that goes on, here three in "
        "all, where processes that run pay one, as our default does.",
        (
            tabulate_equations(
                "Terms", {"13": (EQUATION_13, WAVE.terms())}, "doubles", "by equation 13 and A2, by hand"
            ),
            costs(evidence, WAVE, "13", longest),
        ),
        measured=(evidence.platform,),
    )
