"""Workbooks of what changed: between two times, and over several."""

import math
from collections.abc import Sequence
from pathlib import Path

from commodel.compare.difference import CHANGED, Change, provenance, sentences
from commodel.compare.history import Line
from commodel.compare.snapshot import PARAMETER, POINT, Snapshot
from commodel.report.sections.parameters import UNITS
from commodel.report.shape import Answer, Axis, Chart, Column, Report, Section, Series, Table
from commodel.report.values import plain
from commodel.report.xlsx.workbook import write_xlsx

MEANT = (
    "Ratio: new over old. Its interval is that of two independent measurements; where it holds 1, the change is "
    "explained by noise, and the verdict is `same`."
)


def write_difference(old: Snapshot, new: Snapshot, changed: Sequence[Change], path: Path) -> None:
    in_short = Answer("In short", (*sentences(old, new, changed), MEANT))
    sections = [Section("Summary", "", (in_short, table([change for change in changed if change.verdict in CHANGED])))]
    for kind, name in ((POINT, "Points"), (PARAMETER, "Parameters")):
        if of_kind := [change for change in changed if change.kind == kind]:
            sections.append(Section(name, MEANT, (table(of_kind, name),)))
    titles = [Column(key, key) for key in ("platform", "what", "old", "new")]
    rows = tuple(tuple(plain(text) for text in row) for row in provenance(old, new))
    sections.append(Section("Provenance", "What differs.", (Table("Provenance", "", tuple(titles), rows, fixed=2),)))
    title = f"What changed from {plain(old.name)} to {plain(new.name)}"
    write_xlsx(Report(f"{old.name} {new.name}", title, _banner(old, new), tuple(sections)), path)


def table(changed: Sequence[Change], name: str = "Changes") -> Table:
    columns = [Column(key, key) for key in ("platform", "name", "unit")]
    columns += [Column(key, key, "number") for key in ("old", "new")]
    columns += [Column(key, head, "ratio") for key, head in (("ratio", "new / old"), ("low", "low"), ("high", "high"))]
    columns.append(Column("verdict", "verdict"))
    rows = []
    for change in changed:
        unit, factor = UNITS.get(change.unit, (change.unit, 1.0))
        values = (None if math.isnan(value) else value * factor for value in (change.old, change.new))
        ratios = (None if math.isnan(value) else value for value in (change.ratio, change.low, change.high))
        rows.append((plain(change.platform), plain(change.name), plain(unit), *values, *ratios, change.verdict))
    return Table(name, "What changed beyond its interval" if name == "Changes" else name, tuple(columns), tuple(rows))


def write_history(snapshots: Sequence[Snapshot], lines: Sequence[Line], path: Path) -> None:
    """Average ratios of the points of an operation, and single parameters, drawn in a row."""
    names = [f"{number}. {snapshot.name}" for number, snapshot in enumerate(snapshots, 1)]
    columns = [Column(key, key) for key in ("kind", "platform", "what")]
    columns += [Column(f"at {number}", name, "ratio") for number, name in enumerate(names, 1)]
    rows = tuple((line.kind, plain(line.platform), plain(line.name), *line.ratios) for line in lines)
    note = "Over the first; of points the geometric mean of all that an operation has in common with it."
    blocks = [Table("History", "Ratios to the first", tuple(columns), rows, note=note, fixed=3)]
    for kind, title in ((POINT, "Measured points"), (PARAMETER, "Parameters")):
        drawn = sorted((line for line in lines if line.kind == kind), key=lambda line: -line.change)
        series = [
            Series(plain(f"{line.platform} {line.name}"), *_drawn(line.ratios), "both", place)
            for place, line in enumerate(drawn[:MOST_LINES])
        ]
        if series:
            note = f"The {MOST_LINES} that changed most" if len(drawn) > MOST_LINES else ""
            axes = Axis("number of the result", log=False), Axis("ratio to the first [×]", log=False)
            blocks.append(Chart(f"History {kind}", title, *axes, tuple(series), note))
    about = Answer("The results, from the oldest on", tuple(names))
    title = "The network over time"
    write_xlsx(Report("history", title, _banner(*snapshots), (Section("Summary", "", (about, *blocks)),)), path)


MOST_LINES = 8


def _drawn(values: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    shown = [(float(number), value) for number, value in enumerate(values, 1) if not math.isnan(value)]
    return tuple(number for number, _ in shown), tuple(value for _, value in shown)


def _banner(*snapshots: Snapshot) -> str:
    names = ", ".join(sorted({plain(name) for snapshot in snapshots for name in snapshot.simulated}))
    return f"SIMULATED: every measurement on {names} comes from a simulator, not from hardware." if names else ""
