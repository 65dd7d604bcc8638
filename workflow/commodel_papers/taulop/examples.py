"""The examples of τ–Lop's algebra, equations 4 to 13: every term n‖T of the paper and ours,
predictions of these terms with fitted values, and the times of the same messages."""

from collections import Counter
from collections.abc import Mapping
from math import nan
from typing import Any, NamedTuple

import numpy as np

from commodel.models.evaluation.values import Pairs
from commodel.models.families.taulop import make_stage_terms
from commodel.parameters import ParameterSet
from commodel.patterns.build import build_schedule
from commodel.patterns.operations import FILE
from commodel.patterns.pattern_files import read_pattern
from commodel.patterns.schedule import MEMORY, NETWORK, Schedule
from commodel.predictions.model import Model
from commodel.predictions.papers import (
    Figure,
    Line,
    Numbers,
    Panel,
    PaperEvidence,
    PaperRow,
    predict_pattern,
)
from commodel.records import Point
from commodel.sources import ROOT

BLOCK = 8192
DOUBLE = 8  # B: a block is 32 × 32 doubles
SIZES = tuple(4**power for power in range(3, 11))  # of a broadcast: 64 B to 1 MiB
Sum = dict[tuple[int, int], int]  # n‖T^c(m): m by n and c, in the paper's unit


class Example(NamedTuple):
    """An example: the file of its messages, the nodes of its ranks, the unit of its sizes, and the
    settings with which τ–Lop has the paper's interpretation."""

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
        return read_pattern(self.operation, ROOT).place(np.array(self.node))

    def terms(self, steps: slice = slice(None)) -> Sum:
        """Return our terms, with equal ones added up."""
        pattern = self.pattern
        collected: Counter[tuple[int, int]] = Counter()
        for step in make_stage_terms(pattern, pattern.bytes, self.settings, Pairs(pattern, None))[
            steps
        ]:
            for count, channel, size in zip(step.count, step.channel, step.bytes, strict=True):
                collected[int(count), int(channel)] += int(size) // self.unit
        return dict(collected)


LITERAL = {"shared": "channel", "rest": "message"}
CHANNELS = Example("taulop-two-channels", "block:4", (0, 0, 0, 0, 1, 1), BLOCK, LITERAL)
SUMMA = Example("taulop-summa", "block:3", (0, 0, 0, 1, 1, 1), BLOCK, LITERAL | {"join": "yes"})
WAVE = Example("taulop-wave", "block:4", (0, 0, 0, 0, 1, 1, 1), DOUBLE, LITERAL)
EQUATION_7 = {(2, MEMORY): 16, (2, NETWORK): 8, (1, NETWORK): 24}
EQUATION_8 = {(2, MEMORY): 116, (1, MEMORY): 18, (2, NETWORK): 104, (1, NETWORK): 54}
EQUATION_9 = {(3, NETWORK): 35, (2, NETWORK): 62, (1, NETWORK): 27}
EQUATION_10 = {
    (3, NETWORK): 35,
    (2, NETWORK): 166,
    (1, NETWORK): 81,
    (2, MEMORY): 116,
    (1, MEMORY): 18,
}
EQUATION_13 = {
    (3, NETWORK): 48,
    (2, NETWORK): 16,
    (1, NETWORK): 32,
    (3, MEMORY): 16,
    (2, MEMORY): 48,
}


def make_figures(evidence: PaperEvidence) -> tuple[Figure, ...]:
    return tuple(
        figure(evidence, evidence.fitted("taulop"))
        for figure in (compare_binomial, compare_channels, compare_summa, compare_wave)
    )


def compute_seconds(fitted: ParameterSet | None, terms: Sum, unit: int = 1) -> float:
    """Return a sum of n‖T^c(m) by equations 1 and 3; NaN on a platform with node types, which the
    examples do not have."""
    values = Model.of_set(fitted).values if fitted else None
    total = 0.0
    for (count, channel), size in terms.items():
        if values is None or not {f"o_{channel}", f"L_{channel}"} <= values.functions:
            return nan
        bytes = np.array([size * unit])
        transfers = (2 - channel) * values.at(f"L_{channel}", bytes, count)
        total += float(np.ravel(values.at(f"o_{channel}", bytes) + transfers)[0])
    return total


def tabulate_equations(
    equations: Mapping[str, tuple[Sum, Sum]], unit: str, source: str = "printed in the equation"
) -> Numbers:
    """Return the terms of the paper's equations and ours."""
    rows = []
    for equation, (paper, ours) in equations.items():
        for count, channel in sorted({*paper, *ours}, key=lambda term: (-term[1], -term[0])):
            term = f"{f'{count} ‖ ' if count > 1 else ''}T{'⁰¹'[channel]}"
            sizes = (terms.get((count, channel), nan) for terms in (paper, ours))
            rows.append(PaperRow((equation, term), next(sizes), (next(sizes),)))
    return Numbers(
        title="Terms",
        subjects=("equation", "term"),
        columns=("here",),
        source=source,
        rows=tuple(rows),
        unit=unit,
    )


def compare_costs(
    evidence: PaperEvidence, example: Example, equation: str, paper: float
) -> Numbers:
    """Return the time of the paper's terms with fitted values, predictions of the schedule, and its
    measured time."""
    pattern = example.pattern

    def predicted(model: str, settings: Mapping[str, str]) -> float:
        fitted = evidence.fitted(model)
        return predict_pattern(fitted, pattern, **dict[str, Any](settings)) if fitted else nan

    where = {"operation": example.operation, "layout": example.layout}
    (measured,) = evidence.times([int(pattern.bytes.max())], **where)
    ours = {
        "predicted": predicted("taulop", example.settings),
        evidence.word(): measured,
        "predicted by default": predicted("taulop", {}),
        "predicted by HLogGP": predicted("hloggp", {}),
    }
    row = PaperRow((equation,), paper, tuple(ours.values()))
    return Numbers(
        title="Times",
        subjects=("equation",),
        columns=tuple(ours),
        source="by its terms with the values fitted here",
        rows=(row,),
    )


def compare_binomial(evidence: PaperEvidence, fitted: ParameterSet | None) -> Figure:
    def predict(pattern: Schedule, shared: str) -> float:
        return predict_pattern(fitted, pattern, shared=shared) if fitted else nan

    word = evidence.word()
    stages: list[PaperRow] = []
    times: list[PaperRow] = []
    panels: list[Panel] = []
    for layout, nodes, last_channel in (
        ("block:16", "one node", MEMORY),
        ("cyclic:8", "two nodes in turn", NETWORK),
    ):
        patterns = [
            build_schedule(Point("", "bcast", "binomial", "", layout, 16, size)) for size in SIZES
        ]
        for stage, step in enumerate(
            make_stage_terms(patterns[0], patterns[0].bytes, {}, Pairs(patterns[0], None))
        ):
            stages.append(PaperRow((nodes, stage), 1 << stage, (int(step.count[0]),)))
        counts = {(1, MEMORY), (2, MEMORY), (4, MEMORY), (8, last_channel)}
        paper = [compute_seconds(fitted, dict.fromkeys(counts, size)) for size in SIZES]
        predicted = [predict(pattern, "channel") for pattern in patterns]
        by_port = [predict(pattern, "port") for pattern in patterns]
        measured = evidence.times(SIZES, operation="bcast", alternative="binomial", layout=layout)
        keys = [(nodes, size) for size in SIZES]
        times += map(PaperRow, keys, paper, zip(predicted, measured, by_port, strict=True))
        lines = (
            Line("equation 4", SIZES, paper, "dashed", 1),
            Line("predicted", SIZES, predicted, "line", 1),
            Line("predicted, counted by port", SIZES, by_port, "line", 0),
            Line(word, SIZES, measured, "dots", 2),
        )
        panels.append(Panel(title=nodes, x="message size [B]", y="time [s]", lines=lines))
    return Figure(
        name="Figure 4",
        title="the binomial broadcast over 16 processes, whose stages double the concurrent transfers",
        caption=(
            "Equation 4 for 16 processes of one node, and for two nodes with alternate "
            "processes, whose last stage uses the network: the transmissions that share the "
            "channel in each stage, and the time of all with the values fitted on "
            f"{evidence.platform}."
        ),
        reason=(
            "terms and predictions do not differ, but times do: L is fitted to rings with half "
            "of the messages in each direction, while those of the last stage have one "
            "direction through a port, which counting by port models, and short messages of "
            "successive stages overlap."
        ),
        numbers=(
            Numbers(
                title="Concurrent transmissions",
                subjects=("processes", "stage"),
                columns=("here",),
                source="by equation 4",
                rows=tuple(stages),
                unit="transmissions",
            ),
            Numbers(
                title="Times",
                subjects=("processes", "bytes [B]"),
                columns=("predicted", word, "predicted, counted by port"),
                source="by equation 4 with the values fitted here",
                rows=tuple(times),
            ),
        ),
        panels=tuple(panels),
        measured=(evidence.platform,),
    )


def compare_channels(evidence: PaperEvidence, fitted: ParameterSet | None) -> Figure:
    return Figure(
        name="Figure 6",
        title="two processes that each send through memory first and then over the network",
        caption=(
            "The paper's general case of equation 5, with letters instead of numbers: here m_a "
            "is 16 blocks of 8 KiB, m_c 24, m_b 32 and m_d 8. Equation 7 is the result by A2 "
            "and A3."
        ),
        reason=(
            "our steps are added, so the rest of m_c counts, which in equation 7 is hidden "
            "behind T¹(m_b); both messages over the network have one direction, while L is "
            "fitted to rings with half of the messages in each direction."
        ),
        numbers=(
            tabulate_equations(
                {"7": (EQUATION_7, CHANNELS.terms())}, "blocks", "by equation 7 with these sizes"
            ),
            compare_costs(evidence, CHANNELS, "7", compute_seconds(fitted, EQUATION_7, BLOCK)),
        ),
        measured=(evidence.platform,),
    )


def compare_summa(evidence: PaperEvidence, fitted: ParameterSet | None) -> Figure:
    terms = {
        "8, pivot column": (EQUATION_8, SUMMA.terms(slice(0, 1))),
        "9, pivot row": (EQUATION_9, SUMMA.terms(slice(1, 2))),
        "10, both": (EQUATION_10, SUMMA.terms()),
    }
    return Figure(
        name="Figure 8",
        title="iteration 80 of SUMMA over six processes on two nodes",
        caption=(
            "Messages of the owners of the pivot column and of the pivot row, in blocks. "
            "Predicted: with A1 across stages and literal A2, as in equations 8 to 10; by "
            "default, transfers that share a memory or one direction of a port are counted, and "
            "row and column are concurrent. A block is 8 KiB, as in the paper's evaluation."
        ),
        reason=(
            "the terms do not differ, but times do: L is fitted to rings with half of the "
            "messages in each direction, while two of the pivot row's three messages use the "
            "same port in one direction."
        ),
        numbers=(
            tabulate_equations(terms, "blocks"),
            compare_costs(evidence, SUMMA, "10", compute_seconds(fitted, EQUATION_10, BLOCK)),
        ),
        measured=(evidence.platform,),
    )


def compare_wave(evidence: PaperEvidence, fitted: ParameterSet | None) -> Figure:
    network = {term: size for term, size in EQUATION_13.items() if term[1] == NETWORK}
    memory = {term: size for term, size in EQUATION_13.items() if term[1] == MEMORY}
    longest = max(compute_seconds(fitted, terms, DOUBLE) for terms in (network, memory))
    return Figure(
        name="Figure 9",
        title="messages of process 1 of the wave equation's example to its six neighbours",
        caption=(
            "Equation 13: three messages over the network and three in memory, all concurrent. "
            "The paper has only the sum of messages; its terms by A2 were derived by hand. By "
            "A3 the time is that of the slower channel. Equation 14, all eight processes, needs "
            "sizes that are only drawn."
        ),
        reason=(
            "the terms do not differ, but times do: literal A2 has an overhead for every rest "
            "of a message, here three, while actual processes have one, as in our default."
        ),
        numbers=(
            tabulate_equations(
                {"13": (EQUATION_13, WAVE.terms())}, "doubles", "by equation 13 and A2, by hand"
            ),
            compare_costs(evidence, WAVE, "13", longest),
        ),
        measured=(evidence.platform,),
    )
