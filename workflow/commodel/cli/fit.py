"""commodel fit: parameters of one family on one platform."""

from pathlib import Path

import click

from commodel.collect import TEXT
from commodel.fit import fit as fit_family
from commodel.plan import load_plan
from commodel.tables import read_table, write_parameters


@click.command()
@click.option("--in", "observations", type=click.Path(path_type=Path), required=True, help="Table of observations.")
@click.option(
    "--plan", "plan_file", type=click.Path(path_type=Path), required=True, help="plan.json of the experiment."
)
@click.option("--family", required=True, help="Which model family.")
@click.option("--platform", required=True, help="Whose parameters: a platform of the experiment.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Parameter set (YAML).")
def fit(observations: Path, plan_file: Path, family: str, platform: str, out: Path) -> None:
    """Fit one family to what the probes measured on one platform, with 95 % intervals."""
    found = fit_family(load_plan(plan_file), read_table(observations, TEXT), family, platform)
    write_parameters(out, found)
    if not found.values:
        reason = next(iter(found.missing.values()))
        click.echo(f"commodel: family {family} cannot be fitted on platform '{platform}': {reason}", err=True)
