"""commodel diff and history: compare results of different times, two or several with the first of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commodel.cli._help import Verb, make_option_group
from commodel.cli._options import PATH, check_workbook, out_option, style_option, verbose_option
from commodel.cli._output import print_answer, print_rows, show_waiting
from commodel.errors import UserError
from commodel.files.text_tables import format_table
from commodel.units import parse_fraction

if TYPE_CHECKING:
    pass


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
    from commodel.api.differences import diff as compare_results

    share = parse_fraction(limit) if limit is not None else None
    check_workbook(out)
    with show_waiting("comparing"):
        difference = compare_results(old, new)
    if style == "table":
        click.echo(difference.text(verbose))
    else:
        print_rows(difference.rows, style)
    if out is not None:
        difference.to_excel(out)
    exceeding = difference.list_exceeding(share) if share is not None else []
    if exceeding:
        click.echo(f"commodel: {len(exceeding)} changed by more than {limit} beyond their intervals", err=True)
        raise SystemExit(1)


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
    from commodel.api.differences import read_snapshot
    from commodel.compare.snapshots import compare_with_first

    with show_waiting("comparing"):
        snapshots = [read_snapshot(path) for path in results]
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
