"""The figures of a paper, with a section for each: charts, the paper's numbers beside ours, and why
they differ.

The first section lists the rebuilt figures, and names those that are not rebuilt.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from commodel.predictions.papers import Figure, Line, Numbers, Panel, Paper, PaperEvidence
from commodel.records import PlatformKind
from commodel.reports.charts import bracket_unit, scale_to_micro
from commodel.reports.elements import (
    MICRO,
    AnsweredQuestion,
    Axis,
    Chart,
    Column,
    Remark,
    Section,
    Series,
    Table,
    join_words,
    make_table,
    to_plain_value,
)

EMULATION_NOTE = "Their processes and their TCP are real, their network is emulated."
SCALED_UNITS = {"s": ("µs", MICRO)}


def make_sections(
    paper: Paper, evidence: PaperEvidence, oversubscribed: Sequence[Remark] = ()
) -> list[Section]:
    """Return the first section, then a section for each figure. `oversubscribed` has remarks on
    oversubscribed hosts."""
    figures = paper.figures(evidence)
    return [
        make_first_section(paper, figures, oversubscribed),
        *(make_figure_section(figure, evidence) for figure in figures),
    ]


def make_first_section(
    paper: Paper, figures: Sequence[Figure], oversubscribed: Sequence[Remark]
) -> Section:
    rows = []
    for figure in figures:
        ratios_of_rows = [compute_ratio(row.ours[0], row.paper) for row in figure.numbers[0].rows]
        ratios = [ratio for ratio in ratios_of_rows if ratio is not None]
        ends = (np.median(ratios), min(ratios), max(ratios)) if ratios else (None, None, None)
        rows.append((figure.name, figure.title, len(ratios), *ends))
    note = "Here: our first column in the first table of a figure. Each figure has its own section."
    sentences = (
        f"{paper.citation}.",
        paper.absent,
        *(f"{platform}: {text}" for platform, text in oversubscribed),
    )
    table = make_table("Figures", "Rebuilt figures and tables", rows, note=note)
    return Section("The paper", "", (AnsweredQuestion("The paper", sentences), table))


def make_figure_section(figure: Figure, evidence: PaperEvidence) -> Section:

    def list_measured(kind: PlatformKind) -> list[str]:
        return [name for name in figure.measured if evidence.kinds[name] is kind]

    simulated = list_measured(PlatformKind.SIMULATED)
    emulated = list_measured(PlatformKind.NAMESPACES)
    real = [platform for platform in figure.measured if platform not in simulated]
    sentences = [figure.caption]
    if simulated:
        sentences.append(
            f"Simulated values come from a simulator of {join_words(simulated)}, not from hardware."
        )
    if emulated:
        sentences.append(
            f"The hosts of {join_words(emulated)} are network namespaces of one machine. {EMULATION_NOTE}"
        )
    if real:
        sentences.append(f"Measured values were measured on {join_words(real)}.")
    sentences.append(f"Why they differ: {figure.reason}")
    heading = AnsweredQuestion(f"{figure.name}: {figure.title}", tuple(sentences))
    mark = " (simulated)" if simulated and not real else ""
    charts = [make_chart(figure, panel, mark) for panel in figure.panels]
    charts = [chart for chart in charts if chart.series]  # empty: nothing was measured or predicted
    tables = [
        make_number_table(figure, numbers, index) for index, numbers in enumerate(figure.numbers)
    ]
    return Section(figure.name, "", (heading, *charts, *tables))


def make_chart(figure: Figure, panel: Panel, mark: str) -> Chart:
    x_factor, x = make_axis(panel.x, "x" in panel.log)
    y_factor, y = make_axis(panel.y, "y" in panel.log)
    lines = tuple(make_series(line, x_factor, y_factor, panel.log) for line in panel.lines)
    lines = tuple(line for line in lines if line.x)
    if panel.names:
        x = replace(x, names=tuple(map(to_plain_value, panel.names)))
    if panel.base is not None:
        values = chain.from_iterable(line.y for line in lines)
        highest = max(values, default=panel.base + 1)
        y = replace(y, low=panel.base, high=panel.base + 1.1 * (highest - panel.base))
    return Chart(
        name=f"{figure.name} {panel.title}",
        title=f"{figure.name}, {panel.title}{mark}",
        x=x,
        y=y,
        series=lines,
    )


def make_axis(label: str, log: bool) -> tuple[float, Axis]:
    factor, label = scale_to_micro(bracket_unit(label))
    return factor, Axis(label, log=log, bytes=log and "[B]" in label)


def make_series(line: Line, x_factor: float, y_factor: float, log: str) -> Series:
    """Return a line without missing values, and without 0 on a logarithmic axis."""
    x = np.array(line.x, float) * x_factor
    y = np.array(line.y, float) * y_factor
    shown = np.isfinite(y) & ((x > 0) | ("x" not in log)) & ((y > 0) | ("y" not in log))
    return Series(
        line.name, tuple(x[shown].tolist()), tuple(y[shown].tolist()), line.style, line.colour
    )


def make_number_table(figure: Figure, numbers: Numbers, index: int) -> Table:
    unit, factor = SCALED_UNITS.get(numbers.unit, (numbers.unit, 1.0))
    head = f" [{unit}]" if unit else ""
    values = [value for row in numbers.rows for value in (row.paper, *row.ours)]
    kind = choose_kind([value for value in values if not math.isnan(value)])
    kind = {"%": "percent"}.get(numbers.unit, kind)
    # Without a number of the paper, its column and the ratios would be empty.
    has_paper_values = any(math.isfinite(row.paper) for row in numbers.rows)
    columns = []
    for at, name in enumerate(numbers.subjects):
        subjects = [row.subject[at] for row in numbers.rows]
        columns.append(Column(f"subject {at}", name, choose_kind(subjects)))
    columns += [Column("paper", f"paper{head}", kind, numbers.source)] if has_paper_values else []
    for name in numbers.columns:
        columns.append(Column(f"ours {name}", f"{name}{head}", kind))
        columns += [Column(f"ratio {name}", f"{name} / paper", "ratio")] if has_paper_values else []
    rows = []
    for row in numbers.rows:
        cells = {f"subject {at}": subject for at, subject in enumerate(row.subject)}
        cells["paper"] = scale_or_none(row.paper, factor)
        for name, value in zip(numbers.columns, row.ours, strict=True):
            cells |= {
                f"ours {name}": scale_or_none(value, factor),
                f"ratio {name}": compute_ratio(value, row.paper),
            }
        rows.append(cells)
    note = f"paper: {numbers.source}."
    fixed = len(numbers.subjects)
    return make_table(
        f"{figure.name} {index}", numbers.title, rows, columns, note=note, fixed=fixed
    )


def choose_kind(values: Sequence[object]) -> str:
    if any(isinstance(value, str) for value in values):
        return "text"
    return "count" if all(isinstance(value, int) for value in values) else "number"


def scale_or_none(value: float, factor: float) -> float | None:
    """Return the scaled value; None if it is missing."""
    return None if math.isnan(value) else value * factor


def compute_ratio(ours: float, paper: float) -> float | None:
    """Return the ratio of our number to the paper's; None if one of them is missing or the paper's
    is 0."""
    return float(ours / paper) if math.isfinite(ours) and math.isfinite(paper) and paper else None
