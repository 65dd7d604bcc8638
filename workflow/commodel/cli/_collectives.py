"""Families fitted to a table of measured collectives instead of probes: their sets, and what they make of points that
are held out."""

from functools import partial
from pathlib import Path

import click
import pandas as pd

from commodel.cli._finished import FITTED_TO, digest_of, finished, signed
from commodel.cli._heldout import show_errors
from commodel.cli._progress import waiting
from commodel.compare.baselines import choices, judged_baselines
from commodel.compare.heldout import fit_seen, judged, split
from commodel.errors import UserError
from commodel.files.sets import write_parameters
from commodel.fit.collectives import from_collectives
from commodel.fit.pointtable import read_points
from commodel.fit.remarks import remarks
from commodel.fit.settings import fit_in_settings, in_setting, paces_in_words, reference_of
from commodel.models.families import family


def fit_table(
    table: Path, families: tuple[str, ...], where: str | None, setting: str | None, out: Path | None, style: str
) -> None:
    """Each family's set into the file, or where there are several into a folder; the errors on the screen."""
    names = from_collectives() if "all" in families else [family(name).name for name in dict.fromkeys(families)]
    if len(names) > 1 and out and out.is_file():
        raise UserError(f"found a file, wanted a folder for the sets of {len(names)} families", file=out)
    with waiting(f"reading {table.name}"):
        measured = read_points(table)
    if measured.unpriced:
        click.echo(f"commodel: left out {measured.unpriced} rows of algorithm 'library': no price", err=True)
    if measured.streams:
        click.echo(f"commodel: left out {measured.streams} rows of several waves: one wave is fitted", err=True)
    parts = split(measured, where) if where else None
    seen = parts.seen if parts else measured
    reference = reference_of(seen, setting)
    fit = partial(fit_seen, parts) if parts else partial(fit_in_settings, measured)
    rows = []
    for number, name in enumerate(names, 1):
        digest = digest_of(table, name, where, reference)
        try:
            if out and len(names) > 1 and (fitted := finished(out / f"{name}.yaml", digest)):
                kept = "fitted to this table before, kept; remove the set to fit again"
                click.echo(f"commodel: {name}: {kept}", err=True)
            else:
                title = f"{name}, family {number} of {len(names)}" if len(names) > 1 else name
                with waiting(f"fitting {title}", aloud=True):
                    fitted = fit(name, table.name, setting)
        except UserError as error:
            if len(names) == 1:
                raise
            click.echo(f"commodel: {error.message}", err=True)
            continue
        if out and FITTED_TO not in fitted.provenance:
            write_parameters(out / f"{name}.yaml" if len(names) > 1 else out, signed(fitted, digest))
        for remark in (*paces_in_words(fitted), *remarks(fitted, in_setting(seen, reference), table.name)):
            click.echo(f"commodel: {name}: {remark}", err=True)
        if parts:
            with waiting(f"pricing what {name} has not seen"):
                rows.append(judged(fitted, parts.unseen))
    if rows:
        together = pd.concat(rows, ignore_index=True)
        baselines = judged_baselines(parts, reference)
        show_errors(together, style, baselines, choices(pd.concat([together, baselines]), parts.seen, parts.unseen))
