"""Families fitted to a table of measured collectives instead of probes: their sets, and what they make of points that
are held out."""

from pathlib import Path

import click
import pandas as pd

from commodel.cli._heldout import show_errors
from commodel.compare.heldout import fit_seen, judged, split
from commodel.errors import UserError
from commodel.files.sets import write_parameters
from commodel.fit.collectives import fit_measured, from_collectives
from commodel.fit.pointtable import read_points
from commodel.models.families import family

MANY = 100  # points, from which on a fit takes long enough to wonder


def fit_table(table: Path, families: tuple[str, ...], where: str | None, out: Path | None, style: str) -> None:
    """Each family's set into the file, or where there are several into a folder; the errors on the screen."""
    names = from_collectives() if "all" in families else [family(name).name for name in dict.fromkeys(families)]
    if len(names) > 1 and out and out.is_file():
        raise UserError(f"found a file, wanted a folder for the sets of {len(names)} families", file=out)
    measured = read_points(table)
    if measured.unpriced:
        click.echo(f"commodel: left out {measured.unpriced} rows of algorithm 'library': no price", err=True)
    parts = split(measured, where) if where else None
    rows = []
    for name in names:
        if (count := len((parts.seen if parts else measured).points)) > MANY:
            click.echo(f"commodel: fitting {name} to {count} points, which can take minutes", err=True)
        try:
            if parts:
                fitted = fit_seen(parts, name, table.name)
            else:
                fitted = fit_measured(measured.points, measured.seconds, name, table.name)
        except UserError as error:
            if len(names) == 1:
                raise
            click.echo(f"commodel: {error.message}", err=True)
            continue
        if out:
            write_parameters(out / f"{name}.yaml" if len(names) > 1 else out, fitted)
        if parts:
            rows.append(judged(fitted, parts.unseen))
    if rows:
        show_errors(pd.concat(rows, ignore_index=True), style)
