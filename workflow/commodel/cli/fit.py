"""commodel fit: parameters of one family on one platform."""

from pathlib import Path

import click

from commodel.collect import TEXT
from commodel.errors import UserError
from commodel.fit import fit as fit_family
from commodel.plan import load_plan
from commodel.pointfit import fit_measured
from commodel.pointtable import read_points
from commodel.tables import read_table, write_parameters


@click.command()
@click.option("--in", "observations", type=click.Path(path_type=Path), help="Table of observations.")
@click.option("--plan", "plan_file", type=click.Path(path_type=Path), help="plan.json of the experiment.")
@click.option("--family", required=True, help="Which model family.")
@click.option("--platform", help="Whose parameters: a platform of the experiment.")
@click.option(
    "--points",
    "table",
    type=click.Path(path_type=Path),
    metavar="TABLE",
    help="Fit to these collectives instead: a CSV of operation, algorithm or topology, ranks, bytes, seconds.",
)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Parameter set (YAML).")
def fit(observations, plan_file, family, platform, table, out) -> None:
    """Fit one family to what the probes measured on one platform, with 95 % intervals.

    \b
    commodel fit --family loggp --points collectives.csv --out loggp.yaml
    """
    probed = {"--in": observations, "--plan": plan_file, "--platform": platform}
    if table:
        if given := [option for option, value in probed.items() if value is not None]:
            raise UserError(f"--points stands alone: found {given[0]} beside it")
        measured = read_points(table)
        if measured.unpriced:
            click.echo(f"commodel: left out {measured.unpriced} rows of algorithm 'library': no price", err=True)
        found = fit_measured(measured.points, measured.seconds, family, table.name)
    else:
        if missing := [option for option, value in probed.items() if value is None]:
            raise UserError(f"{missing[0]} is missing; give --in, --plan and --platform, or --points alone")
        found = fit_family(load_plan(plan_file), read_table(observations, TEXT), family, platform)
    write_parameters(out, found)
    if not found.values:
        reason = next(iter(found.missing.values()))
        click.echo(f"commodel: family {family} cannot be fitted on platform '{platform}': {reason}", err=True)
