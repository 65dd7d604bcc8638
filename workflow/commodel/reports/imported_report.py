"""The report on a folder of imported measurements (`build_imported_report`): what was imported, the
times of the MPI default and of algorithms, what models predict from them and how wrong they were,
and the files that were not used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from commodel.compare.comparison import name_default_algorithm
from commodel.parameters import ParameterSet
from commodel.records import DEFAULT_LABEL, LIBRARY, Point, Statistic
from commodel.reports.elements import (
    MICRO,
    AnsweredQuestion,
    Axis,
    Block,
    Chart,
    Report,
    Section,
    Series,
    format_count,
    format_size_range,
    join_words,
    make_table,
    select_columns,
    shorten_list,
    to_plain_value,
)
from commodel.reports.glossary import make_glossary_section
from commodel.reports.sections.evidence import make_parameter_section

MAX_CHARTS = 12
MAX_LINES = 8  # numbers of ranks in one chart
CASE = ["operation", "algorithm", "layout", "ranks", "setting", "statistic", "bytes"]
# From what is nearest to the time until an operation is complete.
STATISTICS = (
    Statistic.COMPLETION,
    Statistic.LAST_RANK,
    Statistic.RANK_MEAN,
    Statistic.FIRST_RANK,
    Statistic.UNKNOWN,
)
NAMES = ("model", "alternative")
TIMES = ("measured", "seconds", "low", "high")


@dataclass(frozen=True)
class ImportedMeasurements:
    """The table of a platform, what was understood of each file, and what was computed from it."""

    name: str  # of the folder
    times: pd.DataFrame  # the rows of table.csv
    files: pd.DataFrame  # those of files.csv
    sets: Sequence[ParameterSet] = ()
    held_out: pd.DataFrame = field(default_factory=pd.DataFrame)  # predicted, of the most ranks
    hold_out: str = ""  # which points were held out
    predicted: pd.DataFrame = field(default_factory=pd.DataFrame)  # beyond what was measured
    remarks: Sequence[str] = ()  # on the table and on fits
    commands: Sequence[tuple[str, str]] = ()  # questions, and the commands that answer them


def build_imported_report(imported: ImportedMeasurements) -> Report:
    """Return the report of a folder of imported measurements."""
    cases = _summarize_cases(imported.times)
    # The laws of the MPI default are no values of a model's equation.
    of_algorithms = [parameters for parameters in imported.sets if parameters.model != LIBRARY]
    sections = [
        _make_summary(imported, cases),
        *_make_time_sections(cases, imported.predicted),
        *_make_prediction_sections(imported),
        *([make_parameter_section(of_algorithms, {})] if of_algorithms else []),
        _make_file_section(imported.files),
        make_glossary_section(),
    ]
    return Report(
        experiment=to_plain_value(imported.name),
        title=f"Imported measurements: {to_plain_value(imported.name)}",
        banner="",
        sections=tuple(sections),
        sets=tuple(of_algorithms),
        source="table of measured collectives",
    )


def _summarize_cases(times: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each case: the median, least and largest of its times."""
    filled = times.assign(nodes=pd.to_numeric(times["nodes"]))
    filled["file"] = filled["source"].str.rpartition(":")[0]
    groups = filled.groupby(CASE, sort=False, dropna=False)
    cases = groups.agg(
        nodes=("nodes", "first"),
        median=("seconds", "median"),
        least=("seconds", "min"),
        largest=("seconds", "max"),
        count=("seconds", "size"),
        files=("file", "nunique"),
    )
    ordered = cases.reset_index().sort_values(["operation", "algorithm", "ranks", "bytes"])
    return ordered.reset_index(drop=True)


def _make_summary(imported: ImportedMeasurements, cases: pd.DataFrame) -> Section:
    used = imported.files["rows"].astype(int) > 0
    files = format_count(len(imported.files), "file")
    measured = [
        f"{format_count(len(imported.times), 'time')} of {format_count(len(cases), 'case')}.",
        f"Of {files} of the last import, {int(used.sum())} added times.",
    ]
    for operation, part in cases.groupby("operation", sort=True):
        measured.append(_describe_operation(str(operation), part))
    answers = [AnsweredQuestion("What was measured?", tuple(measured))]
    predicted = _describe_predictions(imported)
    answers.append(AnsweredQuestion("What can be predicted?", tuple(predicted)))
    if imported.remarks:
        answers.append(
            AnsweredQuestion("What limits this?", tuple(map(to_plain_value, imported.remarks)))
        )
    lines = tuple(f"{question} {command}" for question, command in imported.commands)
    answers.append(AnsweredQuestion("What else to ask?", lines))
    return Section("Summary", "", tuple(answers))


def _describe_operation(operation: str, cases: pd.DataFrame) -> str:
    """Return a sentence on the range of the measurements of an operation."""
    names = [_name_alternative(name) for name in dict.fromkeys(cases["algorithm"])]
    ranks = sorted({int(number) for number in cases["ranks"]})
    sizes = [int(number) for number in cases["bytes"]]
    on = format_count(ranks[0], "rank")
    if len(ranks) > 1:
        on = f"{ranks[0]} to {ranks[-1]} ranks ({len(ranks)} numbers)"
    size_range = format_size_range(min(sizes), max(sizes))
    return f"{to_plain_value(operation)}: {shorten_list(names)} on {on}, {size_range}."


def _name_alternative(algorithm: str) -> str:
    return DEFAULT_LABEL if algorithm == LIBRARY else to_plain_value(algorithm)


def _describe_predictions(imported: ImportedMeasurements) -> list[str]:
    models = [parameters.model for parameters in imported.sets]
    if not models:
        return ["No model was fitted: the reasons stand below."]
    shown = [_name_alternative(model) for model in models]
    sentences = [f"Fitted to the table: {join_words(shown)}."]
    held_out = imported.held_out
    if held_out.empty:
        return [*sentences, "No points could be held out, so their errors are unknown."]
    for model, part in held_out.groupby("model", sort=False):
        finite = part[part["mu"].notna()]
        if finite.empty:
            continue
        covered = (part["measured"] >= part["low"]) & (part["measured"] <= part["high"])
        sentences.append(
            f"{_name_alternative(str(model))}: with {to_plain_value(imported.hold_out)} held out, median "
            f"error μ {finite['mu'].median():.2f} at {format_count(len(finite), 'point')}; the 95 % "
            f"intervals cover {100 * covered.mean():.0f} %."
        )
    return sentences


def _make_time_sections(cases: pd.DataFrame, predicted: pd.DataFrame) -> list[Section]:
    """Return a section for the MPI default, and one for algorithms, if there are times of them."""
    sections = []
    is_default = cases["algorithm"] == LIBRARY
    for name, part in ((DEFAULT_LABEL, cases[is_default]), ("Algorithms", cases[~is_default])):
        if part.empty:
            continue
        charts = [
            _draw_operation(name, str(operation), str(algorithm), of_operation, predicted)
            for (operation, algorithm), of_operation in part.groupby(["operation", "algorithm"])
        ]
        shown = part.rename(columns={"algorithm": "alternative"}).assign(
            alternative=part["algorithm"].map(_name_alternative),
            **{column: part[column] * MICRO for column in ("median", "least", "largest")},
        )
        shown = shown.assign(default_algorithm=_name_default_algorithms(part))
        is_known = shown["default_algorithm"].ne("").any()
        table = make_table(
            "Imported times",
            f"Times of {name}",
            shown,
            select_columns("Imported times", without=() if is_known else ("default_algorithm",)),
            blank={"nodes": shown["nodes"].isna()},
            fixed=3,
        )
        note = "Median of all times of a case; several files with one case are its repetitions."
        if len(charts) > MAX_CHARTS:
            note += f" Charts show the first {MAX_CHARTS} of {len(charts)}."
        sections.append(Section(name, note, (*charts[:MAX_CHARTS], table)))
    return sections


def _name_default_algorithms(cases: pd.DataFrame) -> list[str]:
    """Return, for each case, the algorithm that the rules of its library select; empty for cases of
    algorithms, and where the library or the number of nodes is unknown."""
    names = []
    for row in cases.itertuples():
        if not row.nodes > 0:
            names.append("")
            continue
        point = Point(
            platform="",
            operation=str(row.operation),
            algorithm=str(row.algorithm),
            topology="",
            layout=str(row.layout),
            ranks=int(row.ranks),
            bytes=int(row.bytes),
            nodes=int(row.nodes),
            per_node=math.ceil(row.ranks / row.nodes),
        )
        names.append(name_default_algorithm(str(row.setting), point))
    return names


def _draw_operation(
    name: str, operation: str, algorithm: str, cases: pd.DataFrame, predicted: pd.DataFrame
) -> Chart:
    """Return a chart of time over message size, with a line for each number of ranks, and a dashed
    one for the predictions of the next larger number; of an operation without a size, over ranks.

    Of several statistics and settings, it shows one: the most complete statistic, the most frequent
    setting."""
    statistic = min(cases["statistic"], key=lambda kind: STATISTICS.index(Statistic(kind)))
    shown = cases[cases["statistic"] == statistic]
    setting = shown["setting"].value_counts().idxmax()
    shown = shown[shown["setting"] == setting]
    what = "" if algorithm == LIBRARY else f" {to_plain_value(algorithm)}"
    of_setting = f"; {to_plain_value(setting)}" if setting else ""
    note = f"Statistic: {statistic}{of_setting}. Bars reach from the least to the largest time."
    if (shown["bytes"] > 0).any():
        x = Axis("bytes", bytes=True)
        by_ranks = list(shown[shown["bytes"] > 0].groupby(["ranks", "layout"]))
        step = -(-len(by_ranks) // MAX_LINES)
        lines = []
        for number, ((ranks, layout), part) in enumerate(by_ranks[::step]):
            suffix = f", {to_plain_value(layout)}" if layout else ""
            lines.append(
                _make_line(f"{format_count(ranks, 'rank')}{suffix}", part, "bytes", number)
            )
        if step > 1:
            note += f" One of every {step} numbers of ranks is drawn."
        lines += _draw_predicted(operation, algorithm, predicted, len(lines))
    else:
        x = Axis("ranks")
        lines = [_make_line("median", shown.drop_duplicates("ranks"), "ranks", 0)]
    return Chart(
        name=f"{name} {to_plain_value(operation)}{what}",
        title=f"{to_plain_value(operation)}{what or f', {DEFAULT_LABEL}'}",
        x=x,
        y=Axis("time [µs]"),
        series=tuple(lines),
        note=note,
    )


def _draw_predicted(
    operation: str, algorithm: str, predicted: pd.DataFrame, colour: int
) -> list[Series]:
    """Return the line of an alternative's predictions for the smallest number of ranks of these, if
    there are any."""
    if predicted.empty:
        return []
    of_operation = predicted["operation"] == operation
    rows = predicted[of_operation & (predicted["alternative"] == algorithm)]
    rows = rows[rows["ranks"] == rows["ranks"].min()]
    if rows.empty:
        return []
    line = Series(
        name=f"{format_count(rows['ranks'].iloc[0], 'rank')}, predicted",
        x=tuple(rows["bytes"].astype(float)),
        y=tuple(rows["seconds"] * MICRO),
        style="dashed",
        colour=colour,
        low=tuple(rows["low"] * MICRO),
        high=tuple(rows["high"] * MICRO),
    )
    return [line]


def _make_line(name: str, cases: pd.DataFrame, x: str, colour: int) -> Series:
    return Series(
        name=name,
        x=tuple(cases[x].astype(float)),
        y=tuple(cases["median"] * MICRO),
        style="both",
        colour=colour,
        low=tuple(cases["least"] * MICRO),
        high=tuple(cases["largest"] * MICRO),
    )


def _make_prediction_sections(imported: ImportedMeasurements) -> list[Section]:
    blocks: list[Block] = []
    for name, title, frame in (
        ("Predicted times", "Beyond the measurements", imported.predicted),
        ("Held-out times", "Held-out points", imported.held_out),
    ):
        if frame.empty:
            continue
        scaled = {column: frame[column] * MICRO for column in TIMES if column in frame}
        names = {column: frame[column].map(_name_alternative) for column in NAMES}
        shown = frame.assign(**names, **scaled)
        blocks.append(make_table(name, title, shown, fixed=4))
    if not blocks:
        return []
    note = "Models are fitted to the imported table alone."
    if len(imported.held_out):
        note += f" Held out: {to_plain_value(imported.hold_out)}."
    return [Section("Predictions", note, tuple(blocks))]


def _make_file_section(files: pd.DataFrame) -> Section:
    renamed = files.rename(columns={"placement from": "origin", "not used because": "reason"})
    shown = renamed.assign(rows=renamed["rows"].astype(int))
    used = int((shown["rows"] > 0).sum())
    note = f"{used} of {format_count(len(files), 'file')} added times."
    return Section(
        "Files", note, (make_table("Imported files", "Files of the last import", shown),)
    )
