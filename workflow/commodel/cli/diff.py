"""commodel diff: what changed between two results, comparisons or parameter sets.

What diff and history compare, whatever it is in."""

from dataclasses import asdict
from pathlib import Path

import click

from commodel.cli._output import check_workbook, show, style_option, table, waiting
from commodel.compare.snapshots import Snapshot, read
from commodel.units import format_seconds, parse_fraction


@click.command()
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option("--fail-above", "limit", metavar="SHARE", help="Exit code 1 for a larger change than this, e.g. 10%.")
@style_option
@click.option("--out", type=click.Path(path_type=Path), help="Also a workbook (.xlsx) of all of it.")
def diff(old: Path, new: Path, limit: str | None, style: str, out: Path | None) -> None:
    """Lay NEW beside OLD: did an upgrade change the network?

    Both are folders of results, reports' workbooks (.xlsx), comparisons (.csv) or parameter sets (.yaml). The table
    shows what changed beyond its 95 % interval, points and parameters with their ratio new / old, and what is other
    in the provenance; json and csv hold every point and parameter. With --fail-above 10% the exit code
    is 1 where anything changed by more than that and its interval does not hold 1. Of a hundred
    unchanged numbers some five leave their 95 % interval: the share should be larger than they are wide.

    \b
    commodel diff results/october results/november --fail-above 10%
    """
    from commodel.compare.snapshots import CHANGED, changes, provenance, sentences

    share = parse_fraction(limit) if limit is not None else None
    check_workbook(out)
    with waiting("comparing"):
        before, after = snapshot(old), snapshot(new)
        compared = changes(before, after)
    if style != "table":
        show([_plain(asdict(change)) for change in compared], style)
    else:
        shown = [_row(change) for change in compared if change.verdict in CHANGED]
        click.echo(table(shown) + "\n" if shown else "nothing changed beyond its interval\n")
        if other := provenance(before, after):
            columns = ("platform", "what", "old", "new")
            click.echo(table([dict(zip(columns, row, strict=True)) for row in other]) + "\n")
        click.echo("\n".join(sentences(before, after, compared)))
    if out is not None:
        from commodel.report.difference import write_difference

        write_difference(before, after, compared, out)
    if share is not None and (beyond := [change for change in compared if change.exceeds(share)]):
        click.echo(f"commodel: {len(beyond)} changed by more than {limit} beyond their intervals", err=True)
        raise SystemExit(1)


def _row(change) -> dict[str, object]:
    names = {"platform": change.platform, "what": change.name}
    interval = f"[{change.low:.3f}, {change.high:.3f}]" if change.ratio > 0 else "-"
    return names | {
        "old": _value(change.old, change.unit),
        "new": _value(change.new, change.unit),
        "new / old": change.ratio,
        "interval": interval,
        "verdict": change.verdict,
    }


def _value(value: float, unit: str) -> str:
    return format_seconds(value) if unit == "s" else f"{value:.4g} {unit}"


def _plain(row: dict) -> dict:
    """JSON knows no NaN."""
    return {name: None if value != value else value for name, value in row.items()}


def snapshot(path: Path) -> Snapshot:
    if path.suffix == ".xlsx":
        from commodel.report.difference import snapshot as of_workbook  # slow to load

        return of_workbook(path)
    return read(path)
