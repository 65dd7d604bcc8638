"""commodel history: several results, comparisons or parameter sets in a row, each beside the first."""

from pathlib import Path

import click

from commodel.cli._output import check_workbook, show, style_option, table, waiting
from commodel.errors import UserError

LITTLE = 0.01  # changes by less are not in the table


@click.command()
@click.argument("results", metavar="FIRST NEXT…", nargs=-1, type=click.Path(path_type=Path))
@style_option
@click.option("--out", type=click.Path(path_type=Path), help="Also a workbook (.xlsx): all of it, and charts.")
def history(results: tuple[Path, ...], style: str, out: Path | None) -> None:
    """How did the network change over several results, from the oldest on?

    Each is laid beside the first, as of `commodel diff`. A row is the average ratio of the points of an
    operation, or that of a parameter. The table shows what changed by more than 1 %, what changed most
    first; json, csv and the workbook have all.

    \b
    commodel history results/september results/october results/november
    """
    if len(results) < 2:
        missing = f"one result, {results[0]}" if results else "no results"
        raise UserError(f"found {missing}; wanted two or more to compare, the oldest first")
    check_workbook(out)
    from commodel.cli.diff import snapshot
    from commodel.compare.snapshots import history as beside_the_first

    with waiting("comparing"):
        snapshots = [snapshot(path) for path in results]
        lines = beside_the_first(snapshots)
    if style == "table":
        changed = sorted((line for line in lines if line.change > LITTLE), key=lambda line: -line.change)
        click.echo("\n".join(f"{number}. {snapshot.name}" for number, snapshot in enumerate(snapshots, 1)) + "\n")
        click.echo(table([_row(line) for line in changed]) if changed else "nothing changed by more than 1 %")
        if changed and (rest := len(lines) - len(changed)):
            click.echo(f"\n{rest} more changed by 1 % or less")
        if names := sorted({name for snapshot in snapshots for name in snapshot.simulated}):
            click.echo(f"\nsimulated, not measured on hardware: {', '.join(names)}")
    else:
        show([_row(line, exact=True) for line in lines], style)
    if out is not None:
        from commodel.report.difference import write_history

        write_history(snapshots, lines, out)


def _row(line, exact: bool = False) -> dict[str, object]:
    ratios = [None if ratio != ratio else ratio if exact else f"{ratio:.3f}" for ratio in line.ratios]
    names = {"kind": line.kind, "platform": line.platform, "what": line.name}
    return names | {str(number): ratio for number, ratio in enumerate(ratios, 1)}
