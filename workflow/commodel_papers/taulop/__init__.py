"""Rico-Gallego, Lastovetsky and Díaz-Martín 2017: whole kernels on heterogeneous layouts;
`examples` has the examples of τ–Lop's algebra.

A run is SUMMA or the wave equation on a layout of table 1, on clusters with the nodes, cores and
networks of the paper's Fermi. Table 2 and figures 12 to 15 have the errors of models for whole
kernels, figure 16 those for a homogeneous grid of processes and for heterogeneous layouts.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import isnan, nan
from operator import itemgetter
from statistics import fmean
from typing import Any

from commodel.parameters import ParameterSet
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
)
from commodel.predictions.predictions import CostFunction, predict
from commodel.records import PlatformKind, Point
from commodel_kernels.times import SUMMED_FAMILIES, predict_by_sums
from commodel_papers.taulop import examples

NETWORKS = {"fermi-ib": "InfiniBand", "fermi": "TCP"}  # by platform
# N: blocks of 32 × 32 doubles, and cells
MATRIX_SIDES = {"summa": (128, 256), "wave2d": (256, 512)}
TITLES = {"summa": "SUMMA", "wave2d": "Wave2D"}
FAMILIES = {
    "taulop": "τ–Lop",
    "hloggp": "HLogGP",
    "loggph": "LogGPH",
    "mlognp": "mlognP",
    "loggp": "LogGP",
    "hockney": "Hockney",
}
# by the paper's rules for kernels
SUMS = {family: f"{FAMILIES[family]}, sums" for family in SUMMED_FAMILIES}
MODELS = ("τ–Lop", *SUMS.values(), *(name for name in FAMILIES.values() if name != "τ–Lop"))
INTERPRETATIONS = {  # of τ–Lop, other than the fitted one
    "one channel": {"shared": "channel"},
    "one channel, joined": {"shared": "channel", "join": "yes"},
    "by node": {"shared": "node"},
}
RUN = re.compile(r"(summa|wave2d):partition=.*-([0-9]+)/(M[0-9]+)\.csv(:barrier=no)?")
GRID = "summa:n=128:grid=8x8"
COLUMNS = "cyclic:8"  # ranks of a column of the grid share a node
HOMOGENEOUS = "8×8"


@dataclass(frozen=True, eq=False)
class KernelRun:
    """A kernel on one layout: its measured and predicted times."""

    platform: str
    kernel: str
    side: int
    layout: str  # M1 to M16, or the homogeneous grid
    barrier: bool
    measured: float
    predictions: Mapping[str, float]  # by model

    def error(self, model: str) -> float:
        """Return the error factor: 1 if prediction and time are equal; NaN without either."""
        prediction = self.predictions.get(model, nan)
        return (
            compute_error_factor(prediction, self.measured)
            if prediction > 0 and self.measured > 0
            else nan
        )


def list_runs(evidence: PaperEvidence, platform: str) -> list[KernelRun]:
    """Return the runs of a platform, sorted by kernel, N and layout."""
    rows = evidence.comparison[evidence.comparison["platform"] == platform]
    predictions = {
        point: dict(zip(part["model"], part["seconds"], strict=True))
        for point, part in rows.groupby("point")
    }
    read_point = itemgetter("operation", "algorithm", "topology", "layout", "ranks", "bytes")
    recognised = []
    points = []
    for row in evidence.points(platform).to_dict("records"):
        run = _parse_run(row)
        if run:
            recognised.append((run, row))
            points.append(Point("", *read_point(row)))
    other_rules = [dict[str, float]() for _ in points]
    for name, seconds in _predict_by_other_rules(evidence, platform, points):
        for by_model, prediction in zip(other_rules, seconds, strict=True):
            by_model[name] = prediction
    kernel_runs = []
    for (run, row), by_model in zip(recognised, other_rules, strict=True):
        by_model |= {
            FAMILIES[family]: prediction
            for family, prediction in predictions[row["point"]].items()
            if family in FAMILIES
        }
        kernel_runs.append(KernelRun(platform, *run, float(row["measured"]), by_model))
    return sorted(kernel_runs, key=lambda run: (run.kernel, run.side, len(run.layout), run.layout))


def _predict_by_other_rules(
    evidence: PaperEvidence, platform: str, points: list[Point]
) -> Iterator[tuple[str, list[float]]]:
    """Yield predictions that the comparison does not have: by the paper's rules, and by other
    interpretations of τ–Lop."""
    for family, name in SUMS.items():
        fitted = evidence.fitted(family, platform)
        if fitted:
            yield name, _predict_seconds(fitted, points, predict_by_sums)
    fitted = evidence.fitted("taulop", platform)
    if fitted:
        for name, settings in INTERPRETATIONS.items():
            yield name, _predict_seconds(fitted.with_settings(**settings), points)


def _predict_seconds(
    fitted: ParameterSet, points: list[Point], cost: CostFunction | None = None
) -> list[float]:
    return [
        prediction.seconds
        for prediction in predict(fitted, points, strict=False, draws=0, cost=cost)
    ]


def _parse_run(row: Mapping[str, Any]) -> tuple[str, int, str, bool] | None:
    """Return kernel, N, layout and whether there is a barrier; None if the row is no such run."""
    if (row["operation"], row["layout"]) == (GRID, COLUMNS):
        return "summa", 128, HOMOGENEOUS, True
    match = RUN.fullmatch(row["operation"])
    return (match[1], int(match[2]), match[3], not match[4]) if match else None


def find_mean(numbers: Iterable[float]) -> float:
    valid = [number for number in numbers if not isnan(number)]
    return fmean(valid) if valid else nan


def select_runs(
    all_runs: Iterable[KernelRun], platform: str, kernel: str, side: int
) -> list[KernelRun]:
    return [
        run for run in all_runs if (run.platform, run.kernel, run.side) == (platform, kernel, side)
    ]


def list_platforms(all_runs: Iterable[KernelRun]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(run.platform for run in all_runs))


KINDS = ("homogeneous", "heterogeneous")
COLOURS = (5, 0)


def compare_homogeneous_grid(all_runs: list[KernelRun]) -> Figure:
    rows, panels = [], []
    for platform, network in NETWORKS.items():
        runs = [run for run in all_runs if run.platform == platform]
        bars = []
        for model in MODELS:
            grid = find_mean(run.error(model) for run in runs if run.layout == HOMOGENEOUS)
            layouts = find_mean(run.error(model) for run in runs if run.layout != HOMOGENEOUS)
            rows.append(PaperRow((network, model), nan, (grid, layouts)))
            bars.append((grid, layouts))
        positions = range(len(MODELS))
        lines = tuple(
            Line(kind, positions, errors, "bars", colour)
            for kind, errors, colour in zip(KINDS, zip(*bars, strict=True), COLOURS, strict=True)
        )
        panels.append(
            Panel(
                title=f"N = 128 on {network}",
                x="model",
                y="mean proportional error",
                lines=lines,
                log="",
                names=MODELS,
                base=1.0,
            )
        )
    return Figure(
        name="Figure 16",
        title="errors on a homogeneous grid and on heterogeneous layouts",
        caption="SUMMA with N = 128: mean proportional errors of 64 processes on eight equal nodes, each with a column "
        "of the grid of 8 × 8, and of the layouts of table 1.",
        reason="the paper's bars are only drawn.",
        numbers=(tabulate_runs("Mean proportional errors", ("network", "model"), KINDS, rows),),
        panels=tuple(panels),
        measured=list_platforms(all_runs),
    )


TABLE_2 = {  # τ–Lop and HLogGP
    ("InfiniBand", "SUMMA", 128): (1.16, 12.44),
    ("InfiniBand", "SUMMA", 256): (1.12, 14.46),
    ("InfiniBand", "Wave2D", 256): (1.21, 6.53),
    ("InfiniBand", "Wave2D", 512): (1.20, 7.06),
    ("TCP", "SUMMA", 128): (1.34, 6.64),
    ("TCP", "SUMMA", 256): (1.19, 6.69),
    ("TCP", "Wave2D", 256): (3.88, 13.08),
    ("TCP", "Wave2D", 512): (3.11, 14.19),
}


DRAWN = (("τ–Lop", 1), (SUMS["hloggp"], 3), ("HLogGP", 0))  # and their colours


def make_kernel_figures(evidence: PaperEvidence) -> tuple[Figure, ...]:
    all_runs: list[KernelRun] = []
    for platform in NETWORKS:
        if platform in evidence.kinds:
            all_runs += list_runs(evidence, platform)
    with_barrier = [run for run in all_runs if run.barrier and run.layout != HOMOGENEOUS]
    return (
        compare_errors(evidence, with_barrier),
        compare_times(evidence, "Figure 12", "summa", with_barrier),
        compare_times(evidence, "Figure 13", "wave2d", with_barrier),
        compare_errors_by_layout(with_barrier),
        compare_without_barrier(
            [
                run
                for run in all_runs
                if (run.platform, run.kernel, run.side) == ("fermi", "summa", 128)
            ]
        ),
        compare_homogeneous_grid(
            [run for run in all_runs if (run.kernel, run.side, run.barrier) == ("summa", 128, True)]
        ),
    )


def tabulate_runs(
    title: str,
    key_titles: tuple[str, ...],
    value_titles: tuple[str, ...],
    rows: Sequence[PaperRow],
    unit: str = "",
) -> Numbers:
    """Return the table; if nothing was measured, with a row `none`."""
    rows = tuple(rows) or (PaperRow(("none",) * len(key_titles), nan, (nan,) * len(value_titles)),)
    return Numbers(
        title=title,
        subjects=key_titles,
        columns=value_titles,
        source=NO_NUMBER,
        rows=rows,
        unit=unit,
    )


def tabulate_real_hosts(evidence: PaperEvidence, all_runs: list[KernelRun]) -> Numbers:
    """Return mean errors of kernels on platforms that are not simulated, and those of simulated
    layouts if any."""
    real = [name for name, kind in evidence.kinds.items() if kind is not PlatformKind.SIMULATED]
    columns = ("real", "simulated") if "fermi" in evidence.kinds else ("real",)
    rows = []
    for platform, kernel in product(real, MATRIX_SIDES):
        printed = TABLE_2["TCP", TITLES[kernel], MATRIX_SIDES[kernel][0]][0]
        simulated = [run for run in all_runs if run.kernel == kernel and run.platform == "fermi"]
        for family, model in FAMILIES.items():
            points = evidence.predicted(family, platform)
            points = points[
                points["operation"].str.startswith(f"{kernel}:") & (points["seconds"] > 0)
            ]
            errors = map(compute_error_factor, points["seconds"], points["measured"])
            mean_errors = (find_mean(errors), find_mean(run.error(model) for run in simulated))[
                : len(columns)
            ]
            if not isnan(mean_errors[0]):
                rows.append(
                    PaperRow(
                        (platform, TITLES[kernel], model),
                        printed if family == "taulop" else nan,
                        mean_errors,
                    )
                )
    source = "printed in table 2 for TCP and the smaller N"
    table = tabulate_runs(
        "Mean proportional errors on real hosts", ("platform", "kernel", "model"), columns, rows
    )
    return replace(table, source=source) if rows else table


def compare_errors(evidence: PaperEvidence, all_runs: list[KernelRun]) -> Figure:
    rows, readings = [], []
    for platform, kernel in product(NETWORKS, MATRIX_SIDES):
        for side in MATRIX_SIDES[kernel]:
            keys = NETWORKS[platform], TITLES[kernel], side
            runs = select_runs(all_runs, platform, kernel, side)
            printed = dict(zip(("τ–Lop", SUMS["hloggp"]), TABLE_2[keys], strict=True))
            errors = {}
            for model in (*MODELS, *INTERPRETATIONS):
                errors[model] = find_mean(run.error(model) for run in runs)
            rows += [
                PaperRow((*keys, model), printed.get(model, nan), (errors[model],))
                for model in MODELS
            ]
            readings.append(
                PaperRow(
                    keys,
                    printed["τ–Lop"],
                    tuple(errors[name] for name in ("τ–Lop", *INTERPRETATIONS)),
                )
            )
    layouts = len({run.layout for run in all_runs})
    hosts = tabulate_real_hosts(evidence, all_runs)
    platforms_of_hosts = {row.subject[0] for row in hosts.rows}
    return Figure(
        name="Table 2",
        title="mean proportional errors of whole kernels on heterogeneous layouts",
        caption="SUMMA and the wave equation on layouts of table 1, balanced over declared speeds by "
        "`commodel partition`. The "
        f"communication of every iteration after a barrier was {_describe_times(evidence)} and predicted, and added "
        f"up; means are over {layouts or 16} layouts. Sums are the printed numbers: the paper's rule for HLogGP and "
        "its relatives adds the messages of a process as if each were alone. Models without sums replay the messages. "
        "τ–Lop counts transfers that share a node's memory or one direction of its port, and sends the column during "
        "the row. One channel: all nodes' transfers count (equation 4); joined: by A1 as in equations 8 to 11; by "
        "node: those into one node, as in the authors' library. mlognP's copies are fitted to round trips within nodes"
        + evidence.choose(", since copying takes no simulated time.", "."),
        reason="the paper's times are from a cluster with noise and TCP's delays, "
        + evidence.choose(
            "these from a simulated switch; ",
            "and here all hosts share the processors of one machine: overheads of ranks are sequential, and "
            "most of an iteration with short messages is overhead; ",
            "and this is another machine; ",
        )
        + _describe_worst_error(all_runs),
        numbers=(
            Numbers(
                title="Mean proportional errors",
                subjects=("network", "kernel", "N", "model"),
                columns=("here",),
                source="printed in table 2",
                rows=tuple(rows),
                unit="",
            ),
            Numbers(
                title="Other interpretations of τ–Lop",
                subjects=("network", "kernel", "N"),
                columns=("as fitted", *INTERPRETATIONS),
                source="printed in table 2",
                rows=tuple(readings),
                unit="",
            ),
            hosts,
        ),
        measured=(
            *list_platforms(all_runs),
            *(name for name in evidence.kinds if name in platforms_of_hosts),
        ),
    )


def _describe_worst_error(all_runs: list[KernelRun]) -> str:
    """Return the run with the largest error of τ–Lop, and the reason, as text."""
    predicted = [run for run in all_runs if not isnan(run.error("τ–Lop"))]
    if not predicted:
        return "no layout of table 1 was measured here."
    worst = max(predicted, key=lambda run: run.error("τ–Lop"))
    ratio = worst.predictions["τ–Lop"] / worst.measured
    where = (
        f"{TITLES[worst.kernel]} with N = {worst.side} and layout {worst.layout} on "
        f"{NETWORKS[worst.platform]}"
    )
    reason = (
        "since in it all messages in one direction of a port are sequential"
        if ratio > 1
        else "since in it ports and processors work concurrently, and ranks that block each other are not modelled"
    )
    return (
        f"the largest error of τ–Lop is that of {where}: its prediction is {ratio:.2f} times the "
        f"time, {reason}."
    )


def _describe_times(evidence: PaperEvidence) -> str:
    """Return the word for the times of the runs: measured or simulated."""
    return evidence.word(
        next((platform for platform in NETWORKS if platform in evidence.kinds), "")
    )


def compare_times(
    evidence: PaperEvidence, name: str, kernel: str, all_runs: list[KernelRun]
) -> Figure:
    rows = []
    panels = []
    word = _describe_times(evidence)
    for platform, side in product(NETWORKS, MATRIX_SIDES[kernel]):
        runs = select_runs(all_runs, platform, kernel, side)
        keys = NETWORKS[platform], side
        for run in runs:
            predictions = [run.predictions.get(model, nan) for model in MODELS]
            rows.append(PaperRow((*keys, run.layout), nan, (run.measured, *predictions)))
        numbers = [int(run.layout[1:]) for run in runs]
        lines = []
        for model, colour in DRAWN:
            predicted = [run.predictions.get(model, nan) for run in runs]
            lines.append(Line(model, numbers, predicted, "both", colour))
        lines.append(Line(word, numbers, [run.measured for run in runs], "dots", 2))
        panels.append(
            Panel(
                title=f"N = {side} on {NETWORKS[platform]}",
                x="layout M",
                y="time [s]",
                lines=tuple(lines),
                log="y",
            )
        )
    return Figure(
        name=name,
        title=f"{TITLES[kernel]} on the layouts of table 1, {word} and predicted",
        caption="Time of the communication of "
        + ("all N iterations" if kernel == "summa" else "an iteration")
        + " over the layouts, from few processes to many.",
        reason="the paper's points are only drawn, and its machine is another one.",
        numbers=(tabulate_runs("Times", ("network", "N", "layout"), (word, *MODELS), rows, "s"),),
        panels=tuple(panels),
        measured=list_platforms(all_runs),
    )


def compare_errors_by_layout(all_runs: list[KernelRun]) -> Figure:
    rows, panels = [], []
    for kernel in MATRIX_SIDES:
        for platform, side in product(NETWORKS, MATRIX_SIDES[kernel]):
            runs = select_runs(all_runs, platform, kernel, side)
            keys = TITLES[kernel], NETWORKS[platform], side
            rows += [
                PaperRow((*keys, run.layout), nan, tuple(map(run.error, MODELS))) for run in runs
            ]
            numbers = [int(run.layout[1:]) for run in runs]
            lines = []
            for model, colour in DRAWN:
                errors = [run.error(model) for run in runs]
                lines.append(Line(model, numbers, errors, "both", colour))
            title = f"{TITLES[kernel]}, N = {side} on {NETWORKS[platform]}"
            panels.append(
                Panel(
                    title=title, x="layout M", y="proportional error", lines=tuple(lines), log="y"
                )
            )
    return Figure(
        name="Figure 14",
        title="proportional errors layout by layout",
        caption="Error factors of the predictions of figures 12 and 13; 1: no error.",
        reason="the paper's points are only drawn; table 2 has their means.",
        numbers=(
            tabulate_runs(
                "Proportional errors", ("kernel", "network", "N", "layout"), MODELS, rows
            ),
        ),
        panels=tuple(panels),
        measured=list_platforms(all_runs),
    )


def compare_without_barrier(all_runs: list[KernelRun]) -> Figure:
    with_barrier = {run.layout: run for run in all_runs if run.barrier}
    without_barrier = [run for run in all_runs if not run.barrier]
    columns = ("no barrier", "barrier", *(model for model, _ in DRAWN))
    rows = []
    for run in without_barrier:
        other = with_barrier.get(run.layout)
        values = (
            (other.measured, *(other.predictions.get(model, nan) for model in columns[2:]))
            if other
            else (nan,) * (len(columns) - 1)
        )
        rows.append(PaperRow((run.layout,), nan, (run.measured, *values)))
    layouts = [int(run.layout[1:]) for run in without_barrier]
    lines = []
    for number, column in enumerate(columns):
        times = [row.ours[number] for row in rows]
        lines.append(Line(column, layouts, times, "dots" if number == 0 else "both", number))
    return Figure(
        name="Figure 15",
        title="SUMMA without barriers between iterations",
        caption=(
            "N = 128 on TCP: the time of all iterations with and without a barrier before each, "
            "and predictions, which assume that all processes begin an iteration together."
        ),
        reason=(
            "the paper's time without a barrier is longer, since processes then wait for others "
            "that still compute, while here nothing is computed and iterations overlap."
        ),
        numbers=(tabulate_runs("Times", ("layout",), columns, rows, "s"),),
        panels=(
            Panel(title="N = 128 on TCP", x="layout M", y="time [s]", lines=tuple(lines), log="y"),
        ),
        measured=list_platforms(all_runs),
    )


def make_figures(evidence: PaperEvidence) -> tuple[Figure, ...]:
    return (*examples.make_figures(evidence), *make_kernel_figures(evidence))


PAPER = Paper(
    name="taulop",
    citation="J.-A. Rico-Gallego, A. L. Lastovetsky, J.-C. Díaz-Martín, Model-based estimation of the communication "
    "cost of hybrid data-parallel applications on heterogeneous clusters, IEEE TPDS 28, 2017",
    figures=make_figures,
    absent="Table 1 is in params/layouts/fermi, and the partition of figure 10, for M10, in "
    "params/partitions/fermi/summa-128/M10.csv; section Kernels draws it. Figures 1 to 3, 5, 7 and 11 have no data.",
)
