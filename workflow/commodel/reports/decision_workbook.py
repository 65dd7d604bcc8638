"""A decision table as a workbook: all rows with what they rest on, and of each operation a matrix of ranks (or leaves)
and message sizes that shows at a glance where the choice changes."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from commodel.predictions.prediction_intervals import IntervalBasis
from commodel.reports.charts import PALE, stem
from commodel.reports.shape import MICRO, Answer, Column, Report, Section, Table, table
from commodel.reports.values import CLOSE, count, size
from commodel.reports.xlsx.workbook import write_xlsx

MOST_WEIGHTS = 3  # sets of weights that are told


def write_decision_workbook(decided: pd.DataFrame, remarks: Sequence[str], path: Path) -> None:
    """`decided` is a table of decisions, `remarks` what a reader of all of it should know."""
    write_xlsx(report(decided, remarks), path)


def report(decided: pd.DataFrame, remarks: Sequence[str]) -> Report:
    simulated = bool(decided["simulated"].any())
    places = ", ".join(sorted(set(decided["platform"]) - {""})) or "a platform without a name"
    where = f"{places} (simulated)" if simulated else places
    banner = f"SIMULATED: what is known of {places} comes from a simulator, not from hardware." if simulated else ""
    operations = decided.groupby("operation", sort=False)
    sections = [Section("Decisions", "", (grounds(decided, remarks), listed(decided)))]
    sections += [Section(name, "", matrices(name, rows)) for name, rows in operations]
    return Report("commodel advise", f"what to use on {where}", banner, tuple(sections))


def grounds(decided: pd.DataFrame, remarks: Sequence[str]) -> Answer:
    """What the table rests on."""
    lines = [
        f"{count(len(decided), 'job')}; for each the choice that the weighted vote of all families prices lowest.",
        "Times are predicted, not measured.",
        *_intervals(decided["interval"]),
        "As good: what cannot be told apart from the choice by these families, as far as they erred here.",
    ]
    for name, rows in decided.groupby("operation", sort=False):
        weights = Counter(rows["weights"]).most_common()
        for text, jobs in weights[:MOST_WEIGHTS]:
            share = "" if len(weights) == 1 else f" at {jobs} of {count(len(rows), 'job')}"
            lines.append(f"Weights for {name}{share}: {text}.")
        if len(weights) > MOST_WEIGHTS:
            lines.append(f"Weights for {name} at the others: {len(weights) - MOST_WEIGHTS} more sets of them.")
    return Answer("What this rests on", (*lines, *(f"{remark}." for remark in remarks)))


def _intervals(words: pd.Series) -> list[str]:
    """What low and high are, at how many jobs; of those that rest on errors the most frequent is named."""
    lines = []
    bases = words.map(IntervalBasis.parse)
    kinds = bases.map(lambda basis: "" if basis.of_residuals else basis.sentence)
    for _, some in bases.groupby(kinds, sort=False):
        (basis, _), *_ = Counter(some).most_common(1)
        at = "" if len(some) == len(words) else f" at {len(some)} of {count(len(words), 'job')}"
        lines.append(f"Low and high{at}: {basis.sentence}.")
    return lines


def listed(decided: pd.DataFrame) -> Table:
    times = {name: decided[name] * MICRO for name in ("seconds", "low", "high")}
    shown = decided.assign(**times, size=[size(number) for number in decided["bytes"]])
    columns = [
        Column("operation", "operation"),
        Column("ranks", "ranks", "count"),
        *([Column("leaves", "leaves", "count")] if decided["leaves"].any() else []),
        Column("bytes", "bytes [B]", "count"),
        Column("size", "size"),
        Column("algorithm", "use"),
        Column("layout", "layout"),
        Column("seconds", "time [µs]", "number"),
        Column("low", "low [µs]", "number"),
        Column("high", "high [µs]", "number"),
        Column("as_good", "as good"),
        Column("doubt", "doubt"),
        Column("interval", "low and high", "text", "what they rest on"),
    ]
    place = [column.key for column in columns].index("algorithm")
    colours = palette(decided["algorithm"])
    behind = {(row, place): colours[stem(way)] for row, way in enumerate(decided["algorithm"]) if stem(way) in colours}
    return table("Decisions", "Job by job", columns, shown, fixed=len(columns) - 8, grounds=behind)


def matrices(name: str, rows: pd.DataFrame) -> tuple[Table, Table]:
    """Ranks (or leaves) down, message sizes across: what to use, and its predicted time."""
    over = "leaves" if rows["leaves"].any() else "ranks"
    layouts = sorted({layout.partition(":")[0] for layout in rows["layout"]})
    schedules = rows["algorithm"] + (", " + rows["layout"] if len(layouts) > 1 else "")
    cells = rows.assign(
        way=[CLOSE * bool(others) + way for others, way in zip(rows["as_good"], schedules, strict=True)]
    )
    cells = cells.assign(time=rows["seconds"] * MICRO)
    rows_at = {(getattr(row, over), row.bytes): row for row in cells.itertuples()}
    sizes, counts = sorted(set(rows["bytes"])), sorted(set(rows[over]))
    first, colours = Column("over", over, "count"), palette(rows["algorithm"])
    behind = {
        (at, place): colours[stem(row.algorithm)]
        for at, number in enumerate(counts)
        for place, length in enumerate(sizes, 1)
        if (row := rows_at.get((number, length))) is not None and stem(row.algorithm) in colours
    }

    def matrix(title: str, key: str, kind: str, note: str) -> Table:
        columns = (first, *(Column(f"= {length}", size(length), kind) for length in sizes))
        values = [
            (number, *(getattr(rows_at.get((number, length)), key, None) for length in sizes)) for number in counts
        ]
        return Table(f"{name} {key}", title, columns, tuple(values), note=note, grounds=behind)

    note = f"{CLOSE.strip()} before a choice: others cannot be told apart from it; Decisions names them."
    note += "" if len(layouts) > 1 else f" Layout: {layouts[0]}."
    return (
        matrix(f"What to use for {name}: {over} down, message size across", "way", "text", note),
        matrix("Its predicted time [µs]", "time", "number", "Same colours: one algorithm, whatever its argument."),
    )


def palette(choices: pd.Series) -> dict[str, str]:
    """A colour for each algorithm, the most frequent ones where there are too many."""
    return dict(zip([name for name, _ in Counter(map(stem, choices)).most_common()], PALE, strict=False))
