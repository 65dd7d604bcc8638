"""Figure 16: errors for a homogeneous grid of processes beside those for heterogeneous layouts."""

from math import nan

from commodel.price.papers import NO_NUMBER, Figure, Line, Numbers, Panel, Row
from commodel.price.papers.taulop.runs import HOMOGENEOUS, MODELS, NETWORKS, Run, mean, measured_on

KINDS, COLOURS = ("homogeneous", "heterogeneous"), (5, 0)


def homogeneous(every: list[Run]) -> Figure:
    rows, panels = [], []
    for platform, network in NETWORKS.items():
        runs = [run for run in every if run.platform == platform]
        bars = []
        for model in MODELS:
            grid = mean(run.error(model) for run in runs if run.layout == HOMOGENEOUS)
            layouts = mean(run.error(model) for run in runs if run.layout != HOMOGENEOUS)
            rows.append(Row((network, model), nan, (grid, layouts)))
            bars.append((grid, layouts))
        places = range(len(MODELS))
        lines = tuple(
            Line(what, places, errors, "bars", colour)
            for what, errors, colour in zip(KINDS, zip(*bars, strict=True), COLOURS, strict=True)
        )
        panels.append(Panel(f"N = 128 on {network}", "model", "mean proportional error", lines, "", MODELS, 1.0))
    return Figure(
        "Figure 16",
        "errors on a homogeneous grid and on heterogeneous layouts",
        "SUMMA with N = 128: mean proportional errors of 64 processes on eight like nodes, each with a column "
        "of the grid of 8 × 8, and of the layouts of table 1.",
        "the paper's bars stand in a drawing alone.",
        (
            Numbers(
                "Mean proportional errors",
                ("network", "model"),
                KINDS,
                NO_NUMBER,
                tuple(rows),
                "",
            ),
        ),
        tuple(panels),
        measured_on(every),
    )
