"""Results compared, from Python: `diff` returns the changes of their times and parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from commodel.api.charts import load_altair
from commodel.api.result import Answer
from commodel.compare.snapshots import (
    CHANGED,
    SAME,
    Change,
    HistoryLine,
    Snapshot,
    compare_provenance,
    compare_with_first,
    describe_changes,
    find_renamed_platform,
    list_changes,
    read_results_snapshot,
)
from commodel.errors import make_printable
from commodel.files.text_tables import format_answer, format_table
from commodel.units import format_seconds

if TYPE_CHECKING:
    import altair

    from commodel.api.campaigns import Run

MIN_SHOWN_CHANGE = 0.01  # changes by less are not in the table of several results
MAX_TEXT = 60  # characters of a provenance entry, if not all is shown


@dataclass(frozen=True, eq=False, repr=False)
class Difference(Answer):
    """The changes of measured times and parameters from an old result to a new one: a row for
    each."""

    before: Snapshot
    after: Snapshot
    changes: Sequence[Change]

    @classmethod
    def of(cls, before: Snapshot, after: Snapshot) -> Difference:
        changes = list_changes(before, after)
        count = sum(change.verdict in CHANGED for change in changes)
        shared = sum(change.verdict in (SAME, *CHANGED) for change in changes)
        changed = f"{count or 'None'} of {shared} points and parameters"
        sentence = f"{changed} changed by more than 1 % and beyond the 95 % interval."
        for new_name, old_name in find_renamed_platform(before, after).items():
            sentence += f" Platforms: old {old_name}, new {new_name}."
        names = ("platform", "provenance", "old", "new")
        provenance = [
            dict(zip(names, map(str, row), strict=True))
            for row in compare_provenance(before, after)
        ]
        notes = [f"{line}." for line in describe_changes(before, after, changes)]
        return cls(
            [asdict(change) for change in changes],
            sentence,
            notes,
            provenance,
            before,
            after,
            changes,
        )

    def text(self, verbose: bool = True) -> str:
        shown = [_make_change_row(change) for change in self.changes if change.verdict in CHANGED]
        provenance: Sequence[Mapping[str, Any]] = self.provenance
        if not verbose:
            provenance = [
                {name: make_printable(text, MAX_TEXT) for name, text in row.items()}
                for row in self.provenance
            ]
        body = "\n\n".join(part for part in (format_table(shown), format_table(provenance)) if part)
        return format_answer(self.sentence, body, self.notes, verbose)

    def to_excel(self, file: str | Path) -> None:
        """Write a workbook with every point and parameter, and the provenance."""
        from commodel.reports.workbooks import write_difference  # slow to load

        write_difference(self.before, self.after, list(self.changes), Path(file))

    def plot(self) -> altair.Chart:
        """Return a chart of the ratios new over old of what changed, with their 95 % intervals; of
        all if nothing changed."""
        altair = load_altair()
        changed = [change for change in self.changes if change.verdict in CHANGED] or list(
            self.changes
        )
        names = {
            name: [getattr(change, name) for change in changed]
            for name in ("platform", "ratio", "low", "high")
        }
        names["name"] = [change.label for change in changed]
        rows = [
            dict(zip(names, values, strict=True)) for values in zip(*names.values(), strict=True)
        ]
        chart = altair.Chart(
            altair.Data(values=rows), title=self.sentence.partition(". ")[0].rstrip(".")
        )
        labels = altair.Y("name:N", sort=None, title=None)
        ratio = altair.X("ratio:Q", title="new / old", scale=altair.Scale(zero=False))
        intervals = chart.mark_rule().encode(altair.X("low:Q"), labels, x2="high:Q")
        return intervals + chart.mark_point(filled=True).encode(ratio, labels, color="platform:N")

    def list_exceeding(self, share: float) -> list[Change]:
        """Return the changes by more than a share, either way, that the intervals do not
        explain."""
        return [change for change in self.changes if change.exceeds(share)]


@dataclass(frozen=True, eq=False, repr=False)
class History(Answer):
    """Several results, compared with the first: a row for each operation and parameter, with its
    ratio to the first."""

    snapshots: Sequence[Snapshot]
    lines: Sequence[HistoryLine]

    @classmethod
    def of(cls, snapshots: Sequence[Snapshot], files: Sequence[Path]) -> History:
        lines = compare_with_first(list(snapshots))
        first = snapshots[0].name
        changed = sum(line.change > MIN_SHOWN_CHANGE for line in lines)
        sentence = (
            f"{changed or 'None'} of {len(lines)} numbers changed by more than 1 % from {first}."
        )
        compared = ", ".join(
            f"{number} {snapshot.name}" for number, snapshot in enumerate(snapshots, 1)
        )
        notes = [f"Columns: {compared}; ratios to {first}."]
        names = sorted({name for snapshot in snapshots for name in snapshot.simulated})
        if names:
            notes.append(f"simulated, not measured on hardware: {', '.join(names)}.")
        rows = [_make_history_row(line, exact=True) for line in lines]
        return cls(
            rows, sentence, notes, [{"source": str(file)} for file in files], snapshots, lines
        )

    def text(self, verbose: bool = True) -> str:
        """Return the sentence, the numbers that changed by more than 1 %, and the notes."""
        changed = (line for line in self.lines if line.change > MIN_SHOWN_CHANGE)
        shown = [_make_history_row(line) for line in sorted(changed, key=lambda line: -line.change)]
        return format_answer(self.sentence, format_table(shown), self.notes, verbose)

    def to_excel(self, file: str | Path) -> None:
        """Write a workbook with charts."""
        from commodel.reports.workbooks import write_history  # slow to load

        write_history(self.snapshots, self.lines, Path(file))


def _make_history_row(line: HistoryLine, exact: bool = False) -> dict[str, Any]:
    ratios = [
        None if ratio != ratio else ratio if exact else f"{ratio:.3f}" for ratio in line.ratios
    ]
    names = {
        "kind": line.kind,
        "platform": line.platform,
        "what": line.name if exact else line.label,
    }
    return names | {str(number): ratio for number, ratio in enumerate(ratios, 1)}


@overload
def diff(old: str | Path | Run, new: str | Path | Run) -> Difference: ...


@overload
def diff(
    old: str | Path | Run, new: str | Path | Run, *newer: str | Path | Run
) -> Difference | History: ...


def diff(
    old: str | Path | Run, new: str | Path | Run, *newer: str | Path | Run
) -> Difference | History:
    """Compare results: runs, folders of results, reports (.xlsx), comparisons (.csv) or parameter
    sets (.yaml).

    Of two results, every change of a time or a parameter is returned with its interval. Of more,
    each is compared with the first.

    >>> diff("results/october", "results/november").frame  # doctest: +SKIP
    """
    files = [_find_path(result) for result in (old, new, *newer)]
    snapshots = [read_snapshot(file) for file in files]
    return History.of(snapshots, files) if newer else Difference.of(*snapshots)


def read_snapshot(path: Path) -> Snapshot:
    """Return the measured times and parameters of one result."""
    if path.suffix == ".xlsx":
        from commodel.reports.workbooks import read_snapshot as read_workbook  # slow to load

        return read_workbook(path)
    return read_results_snapshot(path)


def _find_path(result: str | Path | Run) -> Path:
    return Path(result) if isinstance(result, str | Path) else result.folder


def _make_change_row(change: Change) -> dict[str, Any]:
    return {
        "platform": change.platform,
        "what": change.label,
        "old": _format_value(change.old, change.unit),
        "new": _format_value(change.new, change.unit),
        "new / old": change.ratio,
        "interval": f"[{change.low:.3f}, {change.high:.3f}]" if change.ratio > 0 else "-",
        "verdict": change.verdict,
    }


def _format_value(value: float, unit: str) -> str:
    if unit == "s":
        return format_seconds(value)
    return f"{value / 1024:.4g} KiB" if unit == "B" and value >= 1024 else f"{value:.4g} {unit}"
