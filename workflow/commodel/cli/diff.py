"""commodel diff: compare results of different times, a new one with the old one, or several with
the first."""

from __future__ import annotations

from pathlib import Path

import click

from commodel.cli._help import VerbCommand, make_option_group
from commodel.cli._options import PATH, check_workbook, out_option, style_option, verbose_option
from commodel.cli._output import print_rows, show_waiting
from commodel.errors import UserError
from commodel.units import parse_fraction

COMPARED = (
    "folders of results, workbooks of reports (.xlsx), comparisons (.csv) or parameter sets (.yaml)"
)


@click.command(
    cls=VerbCommand,
    examples=(
        "commodel diff results/october results/november --fail-above 10%",
        "commodel diff results/september results/october results/november --out changes.xlsx",
    ),
    arguments={"OLD NEW…": f"Two or more {COMPARED}, the oldest first."},
)
@click.argument("results", metavar="OLD NEW…", nargs=-1, type=PATH)
@make_option_group(
    "Output",
    click.option(
        "--fail-above",
        "limit",
        metavar="SHARE",
        help="Exit with code 1 after a larger change, e.g. 10%.",
    ),
    style_option,
    out_option(
        "Workbook (.xlsx) to write, with every point and parameter; of several results with charts."
    ),
    verbose_option,
)
def diff(
    results: tuple[Path, ...], limit: str | None, style: str, out: Path | None, verbose: bool
) -> None:
    if len(results) < 2:
        missing = f"one result, {results[0]}" if results else "no results"
        raise UserError(f"found {missing}; wanted two or more to compare, the oldest first")
    if limit is not None and len(results) > 2:
        raise UserError(f"--fail-above: found {len(results)} results, wanted two")
    from commodel.api.differences import Difference
    from commodel.api.differences import diff as compare_results

    share = parse_fraction(limit) if limit is not None else None
    check_workbook(out)
    with show_waiting("comparing"):
        compared = compare_results(*results)
    if style == "table":
        click.echo(compared.text(verbose))
    else:
        print_rows(compared.rows, style)
    if out is not None:
        compared.to_excel(out)
    if share is not None and isinstance(compared, Difference):
        exceeding = compared.list_exceeding(share)
        if exceeding:
            click.echo(
                f"commodel: {len(exceeding)} changed by more than {limit} beyond their intervals",
                err=True,
            )
            raise SystemExit(1)
