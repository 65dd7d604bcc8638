"""commodel diff and history: compare results of different times, two or several with the first of them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commodel.cli._help import Verb, make_option_group
from commodel.cli._options import PATH, check_workbook, out_option, style_option, verbose_option
from commodel.cli._output import print_answer, print_rows, show_waiting
from commodel.errors import UserError, make_printable
from commodel.files.text_tables import format_table
from commodel.units import format_seconds, parse_fraction

if TYPE_CHECKING:
    from commodel.compare.snapshots import Snapshot


COMPARED = "folders of results, workbooks of reports (.xlsx), comparisons (.csv) or parameter sets (.yaml)"


@click.command(
    cls=Verb,
    examples=(
        "commodel diff results/october results/november --fail-above 10%",
        "commodel diff old/loggp.yaml new/loggp.yaml",
    ),
    arguments={"OLD NEW": f"Two {COMPARED}."},
)
@click.argument("old", type=PATH)
@click.argument("new", type=PATH)
@make_option_group(
    "Output",
    click.option("--fail-above", "limit", metavar="SHARE", help="Exit with code 1 after a larger change, e.g. 10%."),
    style_option,
    out_option("Workbook (.xlsx) to write, with every point and parameter."),
    verbose_option,
)
def diff(old: Path, new: Path, limit: str | None, style: str, out: Path | None, verbose: bool) -> None:
    from commodel.compare.snapshots import (
        CHANGED,
        SAME,
        compare_provenance,
        describe_changes,
        find_renamed_platform,
        list_changes,
    )

    share = parse_fraction(limit) if limit is not None else None
    check_workbook(out)
    with show_waiting("comparing"):
        before, after = _read_snapshot(old), _read_snapshot(new)
        compared = list_changes(before, after)
    if style != "table":
        print_rows([asdict(change) for change in compared], style)
    else:
        shown = [_make_change_row(change) for change in compared if change.verdict in CHANGED]
        shared = sum(change.verdict in (SAME, *CHANGED) for change in compared)
        changed = f"{len(shown) or 'None'} of {shared} points and parameters"
        answer = f"{changed} changed by more than 1 % and beyond the 95 % interval."
        for new_name, old_name in find_renamed_platform(before, after).items():
            answer += f" Platforms: old {old_name}, new {new_name}."
        provenance = []
        for row in compare_provenance(before, after):
            texts = [str(text) if verbose else make_printable(text, MAX_TEXT) for text in row]
            provenance.append(dict(zip(("platform", "provenance", "old", "new"), texts, strict=True)))
        body = "\n\n".join(part for part in (format_table(shown), format_table(provenance)) if part)
        print_answer(answer, body, [f"{line}." for line in describe_changes(before, after, compared)], verbose)
    if out is not None:
        from commodel.reports.workbooks import write_difference

        write_difference(before, after, compared, out)
    if share is not None and (exceeding := [change for change in compared if change.exceeds(share)]):
        click.echo(f"commodel: {len(exceeding)} changed by more than {limit} beyond their intervals", err=True)
        raise SystemExit(1)


MAX_TEXT = 60  # characters of a provenance entry, without --verbose


def _make_change_row(change) -> dict[str, Any]:
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


def _read_snapshot(path: Path) -> Snapshot:
    if path.suffix == ".xlsx":
        from commodel.reports.workbooks import read_snapshot  # slow to load

        return read_snapshot(path)
    from commodel.compare.snapshots import read_results_snapshot

    return read_results_snapshot(path)


MIN_SHOWN_CHANGE = 0.01  # changes by less are not in the table


@click.command(
    cls=Verb,
    examples=(
        "commodel history results/september results/october results/november",
        "commodel history results/september results/november --out history.xlsx",
    ),
    arguments={"FIRST NEXT…": f"Two or more {COMPARED}, the oldest first."},
)
@click.argument("results", metavar="FIRST NEXT…", nargs=-1, type=PATH)
@make_option_group("Output", style_option, out_option("Workbook (.xlsx) to write, with charts."))
def history(results: tuple[Path, ...], style: str, out: Path | None) -> None:
    if len(results) < 2:
        missing = f"one result, {results[0]}" if results else "no results"
        raise UserError(f"found {missing}; wanted two or more to compare, the oldest first")
    check_workbook(out)
    from commodel.compare.snapshots import compare_with_first

    with show_waiting("comparing"):
        snapshots = [_read_snapshot(path) for path in results]
        lines = compare_with_first(snapshots)
    if style == "table":
        changed = sorted((line for line in lines if line.change > MIN_SHOWN_CHANGE), key=lambda line: -line.change)
        answer = f"{len(changed) or 'None'} of {len(lines)} numbers changed by more than 1 % from {snapshots[0].name}."
        compared = ", ".join(f"{number} {snapshot.name}" for number, snapshot in enumerate(snapshots, 1))
        notes = [f"Columns: {compared}; ratios to {snapshots[0].name}."]
        if names := sorted({name for snapshot in snapshots for name in snapshot.simulated}):
            notes.append(f"simulated, not measured on hardware: {', '.join(names)}.")
        print_answer(answer, format_table([_make_history_row(line) for line in changed]), notes)
    else:
        print_rows([_make_history_row(line, exact=True) for line in lines], style)
    if out is not None:
        from commodel.reports.workbooks import write_history

        write_history(snapshots, lines, out)


def _make_history_row(line, exact: bool = False) -> dict[str, Any]:
    ratios = [None if ratio != ratio else ratio if exact else f"{ratio:.3f}" for ratio in line.ratios]
    names = {"kind": line.kind, "platform": line.platform, "what": line.name if exact else line.label}
    return names | {str(number): ratio for number, ratio in enumerate(ratios, 1)}
