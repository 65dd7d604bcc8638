"""commodel fit: parameters of a family on one platform, or of several from measured collectives."""

from pathlib import Path

import click

from commodel.cli._output import style_option, waiting
from commodel.errors import UserError


@click.command()
@click.option("--in", "observations", type=click.Path(path_type=Path), help="Table of observations.")
@click.option("--plan", "plan_file", type=click.Path(path_type=Path), help="plan.json of the experiment.")
@click.option(
    "--family", "families", multiple=True, required=True, help="Which model family; with --points repeated, or all."
)
@click.option("--platform", help="Whose parameters: a platform of the experiment.")
@click.option(
    "--points",
    "table",
    type=click.Path(path_type=Path),
    metavar="TABLE",
    help="Fit to these collectives instead: a CSV of operation, algorithm or topology, ranks, bytes, seconds.",
)
@click.option("--data-sheet", is_flag=True, help="Take what the file of --platform says of its network, unmeasured.")
@click.option(
    "--hold-out",
    "where",
    metavar="EXPRESSION",
    help="Of --points: price those for which this is true instead of fitting them, and tell how far off that is.",
)
@click.option(
    "--setting", help="Of --points: fit those of this setting.  [default: of the one with most; others get factors]"
)
@click.option("--out", type=click.Path(path_type=Path), help="Parameter set (YAML); a folder where there are several.")
@style_option
def fit(observations, plan_file, families, platform, table, data_sheet, where, setting, out, style) -> None:
    """Fit one family to what the probes measured on one platform, with 95 % intervals.

    \b
    commodel fit --family loggp --points collectives.csv --out loggp.yaml
    commodel fit --family all --points collectives.csv --hold-out "log2(bytes) // 3 % 2 == 0"
    commodel fit --family all --points collectives.csv --hold-out "operation != 'allreduce'" --out sets
    commodel fit --family shares --data-sheet --platform planned --out shares.yaml
    """
    from commodel.files.parameter_sets import write_parameters
    from commodel.files.safe_paths import SafePath
    from commodel.files.tables import OBSERVATIONS, read_table
    from commodel.fit.probe_fits import fit as fit_family
    from commodel.plan.planning import load_plan

    probed = {"--in": observations, "--plan": plan_file, "--platform": platform}
    if out is None and not where:
        raise UserError("--out is missing; without it give --hold-out")
    if data_sheet:
        others = {**probed, "--points": table, "--hold-out": where, "--setting": setting, "--platform": None}
        if given := [option for option, value in others.items() if value is not None]:
            raise UserError(f"--data-sheet takes --platform and --out: found {given[0]} beside it")
        from commodel.cli._fit import write_sheets

        write_sheets(families, platform, out)
        return
    if table:
        if given := [option for option, value in probed.items() if value is not None]:
            raise UserError(f"--points stands alone: found {given[0]} beside it")
        from commodel.cli._fit import fit_table

        fit_table(table, families, where, setting, out, style)
        return
    alone = {"--hold-out": where, "--setting": setting, "more than one --family": len(families) > 1 or None}
    if given := [option for option, value in alone.items() if value is not None]:
        raise UserError(f"{given[0]} needs --points")
    if missing := [option for option, value in probed.items() if value is None]:
        raise UserError(f"{missing[0]} is missing; give --in, --plan and --platform, or --points alone")
    results = plan_file.parent
    plan, samples = (SafePath.given(path, results) for path in (plan_file, observations))
    with waiting(f"fitting {families[0]}"):
        parameters = fit_family(load_plan(plan), read_table(samples, OBSERVATIONS), families[0], platform)
    write_parameters(SafePath.given(out, results), parameters)
    if not parameters.values:
        reason = next(iter(parameters.missing.values()))
        click.echo(f"commodel: family {families[0]} cannot be fitted on platform '{platform}': {reason}", err=True)
